"""Events of a MEG-MASC recording: sounds and words, each described by a Python literal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lpact.codes import Reason
from lpact.datasets._files.strict import TsvFile, read_text
from lpact.datasets._finding import Finding
from lpact.datasets._mne.event_samples import sample_mismatch
from lpact.datasets.meg_masc.literals import (
    NOT_LITERAL,
    REMEDY,
    evaluated,
    literal,
    number,
    pronounced,
    texts,
    whole,
    wrong,
)
from lpact.errors import RecordingError

COLUMNS = ("onset", "duration", "trial_type")
TOLERANCE_SAMPLES = 1.0
"""``onset`` and ``sample`` may differ by this much; beyond it, ``sample`` counts."""

SAME_START_S = 0.001
"""Two words are the same if their places in the sound differ by no more."""

_AUDIO_NUMBER = re.compile(r"\.0$")


@dataclass(frozen=True)
class SoundEvent:
    """The onset of a sound file in a recording: ``time_s`` on its clock, at ``start_s`` of the file."""

    line: int
    time_s: float
    sound: str
    start_s: float


@dataclass(frozen=True)
class WordEvent:
    """One word of a recording: ``time_s`` on its clock, ``start_s`` from the beginning of the sound file."""

    line: int
    time_s: float
    duration_s: float
    word: str
    sound: str
    start_s: float
    sequence_id: int
    word_index: int
    condition: str
    pronounced: float

    @property
    def key(self) -> tuple[str, str, int, int, str]:
        """What names the word, beside its place in the sound."""
        return (self.sound, self.condition, self.sequence_id, self.word_index, self.word)


@dataclass(frozen=True)
class RecordingEvents:
    """Sounds and words of one ``events.tsv``, in order of time; ``spelling`` is the story's name as it is written."""

    path: Path
    story: str
    spelling: str
    sounds: tuple[SoundEvent, ...]
    words: tuple[WordEvent, ...]
    findings: tuple[Finding, ...]

    def origins(self) -> dict[str, float]:
        """Return when each sound file began, by its own event, or else by its first word."""
        found = {event.sound: event.time_s - event.start_s for event in reversed(self.sounds)}
        for word in self.words:
            found.setdefault(word.sound, word.time_s - word.start_s)
        return found


def sound_name(path: str) -> str:
    """Name of a sound file: ``stimuli/audio/LW1_0.0.wav`` and ``stimuli/audio/lw1_0.wav`` are both ``lw1_0``."""
    stem = path.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".wav")
    return _AUDIO_NUMBER.sub("", stem)


def first_story(path: Path) -> str:
    """Return the story that an ``events.tsv`` is about, in lower case; no more lines are read than must be."""
    header: list[str] = []
    try:
        with path.open(encoding="utf-8-sig") as lines:
            header = next(lines, "").rstrip("\n").split("\t")
            for line in lines if "trial_type" in header else ():
                story = _story_of(line.rstrip("\n").split("\t"), header)
                if story:
                    return story.lower()
    except (OSError, UnicodeDecodeError):
        read_text(path, RecordingError)  # names what cannot be read
    raise RecordingError(
        "no event says which story was heard",
        where=str(path),
        got=f"columns {header}",
        expected="a column 'trial_type' of Python literals with the key 'story'",
        remedy="copy or download the file again",
    )


def _story_of(cells: list[str], header: list[str]) -> str:
    """Return a line's story; empty where it has none, or is broken: `read_events` names what is wrong with it."""
    if len(cells) != len(header):
        return ""
    try:
        about = literal(cells[header.index("trial_type")])
    except NOT_LITERAL:
        return ""
    story = about.get("story") if about is not None else None
    return story if isinstance(story, str) else ""


def read_events(path: Path, where: str, sampling_rate_hz: float | None) -> RecordingEvents:
    """Read an ``events.tsv``.

    A word's time is ``onset``; where ``onset`` and ``sample / sampling_rate_hz`` differ by more than one sample in
    any line, ``sample`` counts in the whole file. Lines about phonemes are passed over.
    """
    table = TsvFile(path, RecordingError)
    table.require(COLUMNS)
    times_s, findings = _times(table, where, sampling_rate_hz)
    durations_s = table.numbers_or_nan("duration")
    sounds: list[SoundEvent] = []
    words: list[WordEvent] = []
    spellings: dict[str, int] = {}
    for row, cell in enumerate(table.cells("trial_type")):
        about = evaluated(table, row, cell)
        if about is None:
            continue
        kind = about.get("kind")
        if kind not in ("sound", "word"):
            raise wrong(
                path, row, "an event is of no known kind", repr(kind), "sound, word, phoneme"
            )
        text = texts(path, row, about, ("story", "sound"))
        spellings.setdefault(text["story"], row)
        sound = sound_name(text["sound"])
        line, time_s = row + 2, times_s[row]
        start_s = number(path, row, about, "start")
        if kind == "sound":
            sounds.append(SoundEvent(line, time_s, sound, start_s))
            continue
        text = texts(path, row, about, ("word", "condition"))
        words.append(
            WordEvent(
                line=line,
                time_s=time_s,
                duration_s=_duration(path, row, durations_s[row]),
                word=text["word"],
                sound=sound,
                start_s=start_s,
                sequence_id=whole(path, row, about, "sequence_id"),
                word_index=whole(path, row, about, "word_index"),
                condition=text["condition"],
                pronounced=pronounced(path, row, about),
            )
        )
    story, spelling = _one_story(path, spellings)
    events = RecordingEvents(path, story, spelling, tuple(sounds), tuple(words), findings)
    return _in_order(_without_repeats(events, where, sampling_rate_hz), where)


def _times(
    table: TsvFile, where: str, sampling_rate_hz: float | None
) -> tuple[list[float], tuple[Finding, ...]]:
    onsets = table.numbers("onset")
    if "sample" not in table.columns or sampling_rate_hz is None:
        return onsets, ()
    samples = table.integers("sample")
    mismatch = sample_mismatch(onsets, samples, sampling_rate_hz, TOLERANCE_SAMPLES)
    if mismatch is None:
        return onsets, ()
    note = Finding(
        field="sample",
        reason=Reason.SIDECAR_DISAGREES,
        severity="note",
        where=where,
        found=mismatch.found,
        expected=mismatch.expected,
        remedy="the column 'sample' counts in this file; check which of the two is right",
    )
    return [sample / sampling_rate_hz for sample in samples], (note,)


def _duration(path: Path, row: int, duration_s: float) -> float:
    if not duration_s >= 0.0:
        raise wrong(path, row, "a word has no duration", f"{duration_s} s", "a time ≥ 0 s")
    return duration_s


def _one_story(path: Path, spellings: Mapping[str, int]) -> tuple[str, str]:
    stories = {spelling.lower(): spelling for spelling in reversed(list(spellings))}
    if len(stories) != 1:
        raise RecordingError(
            "a recording must be of one story",
            where=str(path),
            got=", ".join(f"'{name}' (line {row + 2})" for name, row in spellings.items())
            or "none",
            expected="one story for all sounds and words, written in any case",
            remedy="copy or download the file again",
        )
    return next(iter(stories.items()))


def _without_repeats(
    events: RecordingEvents, where: str, sampling_rate_hz: float | None
) -> RecordingEvents:
    """Leave out words that are there twice at one time; at two times they are an error."""
    near_s = 1.5 / (sampling_rate_hz or 1000.0)
    kept: list[WordEvent] = []
    repeats: list[WordEvent] = []
    seen: dict[tuple[str, str, int, int, str], list[WordEvent]] = {}
    for word in events.words:
        same = seen.setdefault(word.key, [])
        twin = next((w for w in same if abs(w.start_s - word.start_s) <= SAME_START_S), None)
        if twin is None:
            same.append(word)
            kept.append(word)
        elif abs(twin.time_s - word.time_s) <= near_s:
            repeats.append(word)
        else:
            raise RecordingError(
                f"the word '{word.word}' is there twice, at different times",
                where=f"{events.path}, lines {twin.line} and {word.line}",
                got=f"{twin.time_s:.4f} s and {word.time_s:.4f} s, both {word.start_s:g} s into '{word.sound}'",
                expected="every word of a sound file once",
                remedy="leave one of the lines out; if the sound was played twice, keep one presentation",
            )
    if not repeats:
        return events
    note = Finding(
        field="trial_type",
        reason=Reason.SOURCE_ROWS_LEFT_OUT,
        severity="excluded",
        where=where,
        found=f"{len(repeats)} word(s) written twice; first: line {repeats[0].line}, '{repeats[0].word}'",
        expected="every word once",
        remedy="none is needed: the first of equal lines counts",
    )
    return replace(events, words=tuple(kept), findings=(*events.findings, note))


def _in_order(events: RecordingEvents, where: str) -> RecordingEvents:
    """Sort words by time, with a note; words of a sound whose times contradict their places are an error."""
    words = tuple(sorted(events.words, key=lambda word: (word.time_s, word.start_s)))
    before: dict[str, WordEvent] = {}
    for word in words:
        last = before.get(word.sound)
        if last is not None and word.start_s < last.start_s - SAME_START_S:
            raise RecordingError(
                "the times of words go backwards",
                where=f"{events.path}, lines {last.line} and {word.line}",
                got=f"'{last.word}' at {last.time_s:.4f} s, '{word.word}' at {word.time_s:.4f} s; in the sound "
                f"'{word.sound}' they start at {last.start_s:g} and {word.start_s:g} s",
                expected="words in the order in which their sound file has them",
                remedy=REMEDY,
            )
        before[word.sound] = word
    if words == events.words:
        return events
    first = next(
        i for i, pair in enumerate(zip(words, events.words, strict=True)) if pair[0] != pair[1]
    )
    note = Finding(
        field="onset",
        reason=Reason.SOURCE_ROWS_SORTED,
        severity="note",
        where=where,
        found=f"lines that are not in order of time, from line {events.words[first].line} on",
        expected="lines in order of time",
        remedy="none is needed: they were sorted",
    )
    return replace(events, words=words, findings=(*events.findings, note))
