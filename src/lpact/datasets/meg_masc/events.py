"""Events of MEG-MASC recordings, and the words of a story on one clock, from the events of all its recordings."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from lpact.codes import Reason
from lpact.datasets._files.strict import TsvFile
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import excluded, note, words_table
from lpact.datasets._mne import sample_mismatch
from lpact.errors import RecordingError, StimulusError
from lpact.math.types import FloatArray

TOLERANCE_SAMPLES = 1.0
"""``onset`` and ``sample`` may differ by this much; beyond it, ``sample`` counts."""

SAME_START_S = 0.001
"""Two words are the same if their places in the sound differ by no more."""

_STORY = re.compile(r"""['"]story['"]\s*:\s*['"]([^'"]+)['"]""")
_STORY_CHARACTERS = 2**16
_DRIFT_NOTE_S = 0.0015
_MISFIT_S, _MISFIT = 0.05, 0.01
_REMEDY = "fix the line, or copy or download the file again"
NOT_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
"""What `literal` raises where a cell is not the literal of a dict."""

_NUMBER = r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|0|[1-9][0-9]*)(?:[eE][+-]?[0-9]+)?"
_TEXT = r"'[^'\\]*'|\"[^\"\\]*\""
_PAIR = rf"(?!'kind'|\"kind\")(?:{_TEXT}) *: *(?:{_TEXT}|{_NUMBER}|None|True|False)"
_PHONEME = re.compile(
    rf"\{{ *(?:{_PAIR} *, *)*'kind' *: *'phoneme' *(?:, *{_PAIR} *)*(?:, *)?\}}", re.ASCII
)
"""A whole literal of texts and numbers whose only ``kind`` is phoneme; no other cell fits, broken or not."""


def sound_name(path: str) -> str:
    """Name of a sound file: ``stimuli/audio/LW1_0.0.wav`` and ``stimuli/audio/lw1_0.wav`` are both ``lw1_0``."""
    stem = path.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".wav")
    return stem.removesuffix(".0")


Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
Number = Annotated[float, Field(allow_inf_nan=False)]
Whole = Annotated[int, Field(gt=-(10**18), lt=10**18)]


class SoundEvent(BaseModel):
    """The onset of a sound file in a recording: ``time_s`` on its clock, at ``start_s`` of the file."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    line: int
    time_s: float
    story: Text
    sound: Annotated[Text, AfterValidator(sound_name)]
    start_s: Number = Field(alias="start")


class WordEvent(SoundEvent):
    """One word of a recording: ``start_s`` is counted from the beginning of the sound file."""

    duration_s: float = Field(ge=0)
    word: Text
    sequence_id: Whole
    word_index: Whole
    condition: Text
    pronounced: Number | None = None

    @property
    def key(self) -> tuple[str, str, int, int, str]:
        """What identifies the word, besides its place in the sound."""
        return (self.sound, self.condition, self.sequence_id, self.word_index, self.word)


class WordIndex:
    """Rows of words by their key and their place in the sound."""

    def __init__(self, words: Sequence[WordEvent] = ()) -> None:
        self._rows: dict[tuple[str, str, int, int, str], list[tuple[float, int]]] = {}
        for row, word in enumerate(words):
            self.add(word, row)

    def add(self, word: WordEvent, row: int) -> None:
        """Add a word."""
        self._rows.setdefault(word.key, []).append((word.start_s, row))

    def find(self, word: WordEvent) -> int | None:
        """Return the row of the same word, if there is one."""
        rows = self._rows.get(word.key, ())
        return next((row for s, row in rows if abs(s - word.start_s) <= SAME_START_S), None)


@dataclass(frozen=True)
class RecordingEvents:
    """Sounds and words of one ``events.tsv``, in order of time; ``spelling`` is the story's name as it is written."""

    path: Path
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


def literal(cell: str) -> Mapping[str, Any] | None:
    """Return the dict that a cell writes; None where it is about a phoneme, which most are, and is not evaluated."""
    if cell.startswith('"') and cell.endswith('"') and len(cell) > 1:
        cell = cell[1:-1].replace('""', '"')  # a cell that a CSV writer has quoted
    if _PHONEME.fullmatch(cell):
        return None
    about = ast.literal_eval(cell)
    if not isinstance(about, dict):
        raise TypeError("not a dict")
    return None if about.get("kind") == "phoneme" else about


def first_story(path: Path) -> str:
    """Return the story that the first events of a recording name, in lower case; `read_events` checks the others."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        match = _STORY.search(stream.read(_STORY_CHARACTERS))
    if match is None:
        raise RecordingError(
            "no event states the story",
            where=str(path),
            got=f"none in the first {_STORY_CHARACTERS} characters",
            expected="a column 'trial_type' of Python literals with the key 'story'",
            remedy="copy or download the file again",
        )
    return match[1].lower()


def read_events(path: Path, where: str, sampling_rate_hz: float | None) -> RecordingEvents:
    """Read an ``events.tsv``.

    A word's time is ``onset``; where ``onset`` and ``sample / sampling_rate_hz`` differ by more than one sample in
    any line, ``sample`` counts in the whole file. Lines about phonemes are passed over.
    """
    table = TsvFile(path, RecordingError)
    table.require(("onset", "duration", "trial_type"))
    times_s, findings = _times(table, where, sampling_rate_hz)
    durations_s = table.numbers_or_nan("duration")
    sounds: list[SoundEvent] = []
    words: list[WordEvent] = []
    for row, cell in enumerate(table.cells("trial_type")):
        event = _event(path, row, cell, times_s[row], durations_s[row])
        if isinstance(event, WordEvent):
            words.append(event)
        elif event is not None:
            sounds.append(event)
    spelling = _one_story(path, sorted([*sounds, *words], key=lambda event: event.line))
    words = _without_repeats(path, words, where, 1.5 / (sampling_rate_hz or 1000.0), findings)
    words = _in_order(path, words, where, findings)
    return RecordingEvents(path, spelling, tuple(sounds), tuple(words), tuple(findings))


def _event(
    path: Path, row: int, cell: str, time_s: float, duration_s: float
) -> SoundEvent | WordEvent | None:
    """Return the event of a row, None for a phoneme."""
    try:
        about = literal(cell)
    except NOT_LITERAL as problem:
        expected = "a Python literal: a dict such as {'kind': 'word', 'word': 'a', …}, of texts and numbers"
        raise _wrong(path, row, f"{cell[:200]!r} ({type(problem).__name__})", expected) from None
    if about is None:
        return None
    kind = about.get("kind")
    if kind not in ("sound", "word"):
        raise _wrong(path, row, f"an event of kind {kind!r}", "sound, word, phoneme")
    times = {"line": row + 2, "time_s": time_s, "duration_s": duration_s}
    try:
        return (WordEvent if kind == "word" else SoundEvent).model_validate({**about, **times})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0])
        got = f"'{field}' is {repr(about.get(field))[:200]}"
        raise _wrong(path, row, got, f"'{field}': {first['msg']}") from None


def _wrong(path: Path, row: int, got: str, expected: str) -> RecordingError:
    return RecordingError(
        "an event is not valid",
        where=f"{path}, line {row + 2}, column 'trial_type'",
        got=got,
        expected=expected,
        remedy=_REMEDY,
    )


def _times(
    table: TsvFile, where: str, sampling_rate_hz: float | None
) -> tuple[list[float], list[Finding]]:
    onsets = table.numbers("onset")
    if "sample" not in table.columns or sampling_rate_hz is None:
        return onsets, []
    samples = table.integers("sample")
    mismatch = sample_mismatch(onsets, samples, sampling_rate_hz, TOLERANCE_SAMPLES)
    if mismatch is None:
        return onsets, []
    finding = note(
        "sample",
        Reason.SIDECAR_DISAGREES,
        where,
        mismatch.found,
        mismatch.expected,
        "the column 'sample' counts in this file; check which of the two is right",
    )
    return [sample / sampling_rate_hz for sample in samples], [finding]


def _one_story(path: Path, events: Sequence[SoundEvent]) -> str:
    """Return the first spelling of the story; raises unless all events are of one story."""
    lines: dict[str, int] = {}
    for event in events:
        lines.setdefault(event.story, event.line)
    if len({spelling.lower() for spelling in lines}) != 1:
        raise RecordingError(
            "a recording must be of one story",
            where=str(path),
            got=", ".join(f"'{name}' (line {line})" for name, line in lines.items()) or "none",
            expected="one story for all sounds and words, written in any case",
            remedy="copy or download the file again",
        )
    return next(iter(lines))


def _without_repeats(
    path: Path, words: list[WordEvent], where: str, near_s: float, findings: list[Finding]
) -> list[WordEvent]:
    """Leave out words that are listed twice at one time; at two times they are an error."""
    kept: list[WordEvent] = []
    repeats: list[WordEvent] = []
    seen = WordIndex()
    for word in words:
        row = seen.find(word)
        if row is None:
            seen.add(word, len(kept))
            kept.append(word)
        elif abs(kept[row].time_s - word.time_s) <= near_s:
            repeats.append(word)
        else:
            raise RecordingError(
                f"the word '{word.word}' is listed twice, at different times",
                where=f"{path}, lines {kept[row].line} and {word.line}",
                got=f"{kept[row].time_s:.4f} s and {word.time_s:.4f} s, both {word.start_s:g} s into '{word.sound}'",
                expected="every word of a sound file once",
                remedy="leave one of the lines out; if the sound was played twice, keep one presentation",
            )
    if repeats:
        findings.append(
            excluded(
                "trial_type",
                Reason.SOURCE_ROWS_LEFT_OUT,
                where,
                f"{len(repeats)} word(s) written twice; first: line {repeats[0].line}, '{repeats[0].word}'",
                "every word once",
                "none is needed: the first of equal lines counts",
            )
        )
    return kept


def _in_order(
    path: Path, words: list[WordEvent], where: str, findings: list[Finding]
) -> list[WordEvent]:
    """Sort words by time, with a note; words of a sound whose times contradict their places are an error."""
    in_time = sorted(words, key=lambda word: (word.time_s, word.start_s))
    before: dict[str, WordEvent] = {}
    for word in in_time:
        last = before.get(word.sound)
        if last is not None and word.start_s < last.start_s - SAME_START_S:
            raise RecordingError(
                "the times of words go backwards",
                where=f"{path}, lines {last.line} and {word.line}",
                got=f"'{last.word}' at {last.time_s:.4f} s, '{word.word}' at {word.time_s:.4f} s; in the sound "
                f"'{word.sound}' they start at {last.start_s:g} and {word.start_s:g} s",
                expected="words in the order in which their sound file has them",
                remedy=_REMEDY,
            )
        before[word.sound] = word
    if in_time != words:
        first = next(a for a, b in zip(words, in_time, strict=True) if a != b)
        findings.append(
            note(
                "onset",
                Reason.SOURCE_ROWS_SORTED,
                where,
                f"lines that are not in order of time, from line {first.line} on",
                "lines in order of time",
                "none is needed: they were sorted",
            )
        )
    return in_time


@dataclass(frozen=True)
class StoryWords:
    """Words of a story: the table, one event per row, and where each sound file begins on the table's clock."""

    table: pl.DataFrame
    rows: tuple[WordEvent, ...]
    origins: Mapping[str, float]
    findings: tuple[Finding, ...]

    def times_s(self, events: RecordingEvents) -> tuple[FloatArray, FloatArray]:
        """Return each word's time in a recording (NaN where it has none), and the drift of its clock, [n_words] each.

        Drift is the recording's time less the table's, less the same of the sound's first word.
        """
        index = WordIndex(self.rows)
        times = np.full(len(self.rows), np.nan)
        for word in events.words:
            row = index.find(word)
            if row is not None:
                times[row] = word.time_s
        drift = times - self.table["onset_s"].to_numpy()
        sounds = self.table["sound"].to_numpy()
        for sound in dict.fromkeys(sounds):
            own = np.flatnonzero((sounds == sound) & np.isfinite(times))
            if own.size:
                drift[sounds == sound] -= drift[own[0]]
        return times, drift


def story_words(
    story: str,
    recordings: Mapping[str, RecordingEvents],
    conditions: Sequence[str],
    where: str,
) -> StoryWords:
    """Put the words of all recordings of a story on one clock; ``conditions`` are those whose words are kept.

    The clock is that of the first recording, with 0 where its first sound begins. A word is at the origin of its
    sound plus its place in the sound. A sound that the first recording lacks is placed by the next recording that has
    it, at its distance from the sound nearest to it that both have.
    """
    placed, notes = _place_sounds(story, recordings, where)
    index = WordIndex()
    every: list[WordEvent] = []
    for events in recordings.values():
        for word in events.words:
            if index.find(word) is None:
                index.add(word, len(every))
                every.append(word)
    kept = [word for word in every if word.condition in conditions]
    counts = Counter(word.condition for word in every if word.condition not in conditions)
    others = ", ".join(f"{n} word(s) in '{name}'" for name, n in sorted(counts.items()))
    if not kept:
        raise StimulusError(
            f"the story '{story}' has no words in the chosen conditions",
            where=where,
            got=others or "no words at all",
            expected=f"words in {', '.join(conditions)}",
            remedy="give other 'conditions' in the options of the dataset",
        )
    first_s = min(placed.values())
    by_time = sorted(placed.items(), key=lambda item: item[1])
    origins = {sound: origin_s - first_s for sound, origin_s in by_time}
    rank = {sound: number for number, sound in enumerate(origins)}
    kept.sort(key=lambda word: (rank[word.sound], word.start_s, word.sequence_id, word.word_index))
    _check_sounds_apart(story, kept, origins, where)
    notes += _conflicts(kept, where)
    if others:
        notes.append(
            excluded(
                "condition",
                Reason.SOURCE_ROWS_LEFT_OUT,
                where,
                others,
                f"words in {', '.join(conditions)}",
                "list them in the option 'conditions' to keep them",
            )
        )
    return StoryWords(_table(story, kept, origins), tuple(kept), origins, tuple(notes))


def _place_sounds(
    story: str, recordings: Mapping[str, RecordingEvents], where: str
) -> tuple[dict[str, float], list[Finding]]:
    waiting = {name: events.origins() for name, events in recordings.items()}
    placed = waiting.pop(next(iter(waiting)))
    notes: list[Finding] = []
    while waiting:
        name = next((n for n, origins in waiting.items() if placed.keys() & origins), None)
        if name is None:
            name, origins = next(iter(waiting.items()))
            raise StimulusError(
                f"sounds of the story '{story}' cannot be put in order",
                where=str(recordings[name].path),
                got=f"{', '.join(origins) or 'no sound'}; others have {', '.join(placed)}",
                expected="recordings that have at least one sound in common",
                remedy="leave this recording out with the option 'subjects', or copy or download it again",
            )
        origins = waiting.pop(name)
        shared = [sound for sound in origins if sound in placed]
        new = {sound: at for sound, at in origins.items() if sound not in placed}
        for sound, at in new.items():
            near = min(shared, key=lambda other: abs(origins[other] - at))
            placed[sound] = placed[near] + at - origins[near]
        if new:
            notes.append(
                note(
                    "sound",
                    Reason.TRIGGERS_DROPPED,
                    where,
                    f"{', '.join(new)} not in the recording(s) before {name}",
                    "all sounds of the story in its first recording",
                    f"none is needed: {name} says when they were played",
                )
            )
    return placed, notes


def _check_sounds_apart(
    story: str, words: Sequence[WordEvent], origins: Mapping[str, float], where: str
) -> None:
    for before, after in pairwise(words):
        first_s = origins[before.sound] + before.start_s
        next_s = origins[after.sound] + after.start_s
        if next_s < first_s or next_s < 0.0:
            raise StimulusError(
                f"words of the story '{story}' would go backwards",
                where=where,
                got=f"'{before.word}' of '{before.sound}' at {first_s:.3f} s, then '{after.word}' of "
                f"'{after.sound}' at {next_s:.3f} s",
                expected="sounds that follow one another",
                remedy="check the events of the sounds in the first recording of the story",
            )


def _table(story: str, words: Sequence[WordEvent], origins: Mapping[str, float]) -> pl.DataFrame:
    onset_s = np.array([origins[word.sound] + word.start_s for word in words])
    sequence = [(word.sound, word.condition, word.sequence_id) for word in words]
    new = [False, *(a != b for a, b in pairwise(sequence))]
    columns: dict[str, Any] = {
        name: [getattr(word, name) for word in words]
        for name in ("condition", "sound", "sequence_id", "word_index")
    }
    if any(word.pronounced is not None for word in words):
        known = [math.nan if word.pronounced is None else word.pronounced for word in words]
        columns["pronounced"] = known
    texts, durations_s = [word.word for word in words], [word.duration_s for word in words]
    return words_table(texts, onset_s, onset_s + durations_s, np.cumsum(new), story, columns)


def _conflicts(words: Sequence[WordEvent], where: str) -> list[Finding]:
    """Return a note where recordings have two words at one place of a sequence."""
    seen: dict[tuple[str, str, int, int], WordEvent] = {}
    pairs = [(seen.setdefault(word.key[:4], word), word) for word in words]
    pairs = [(one, two) for one, two in pairs if one is not two]
    if not pairs:
        return []
    one, two = pairs[0]
    return [
        note(
            "word_index",
            Reason.SIDECAR_DISAGREES,
            where,
            f"{len(pairs)} place(s) of a sequence with two words; first: '{one.word}' at {one.start_s:g} s and "
            f"'{two.word}' at {two.start_s:g} s of '{one.sound}'",
            "one word for each word_index of a sequence",
            "check the events; both words are kept",
        )
    ]


def timing_findings(words: StoryWords, events: RecordingEvents, where: str) -> list[Finding]:
    """Return notes on words that a recording lacks, on drift, and on sounds that do not fit their words."""
    times_s, drift_s = words.times_s(events)
    notes = []
    missing = np.flatnonzero(np.isnan(times_s))
    if missing.size:
        notes.append(
            note(
                "word_onsets_s",
                Reason.WORDS_WITHOUT_TIME,
                where,
                f"{missing.size} of {times_s.size} words of the story are not in these events; first: "
                f"{_described(words.rows[missing[0]])}",
                "every word of the story",
                "none is needed: those words are left out of this recording",
            )
        )
    if missing.size < times_s.size and np.nanmax(np.abs(drift_s)) > _DRIFT_NOTE_S:
        row = int(np.nanargmax(np.abs(drift_s)))
        notes.append(
            note(
                "word_onsets_s",
                Reason.CLOCK_DRIFT,
                where,
                f"up to {1000 * drift_s[row]:+.1f} ms since the sound's first word, at {_described(words.rows[row])}",
                f"clocks that stay within {1000 * _DRIFT_NOTE_S:g} ms",
                "none is needed: word times follow this recording's events",
            )
        )
    sounds = {event.sound: event.time_s - event.start_s for event in reversed(events.sounds)}
    off = [
        (word, by_s)
        for word in events.words
        if word.sound in sounds
        and abs(by_s := word.time_s - word.start_s - sounds[word.sound])
        > _MISFIT_S + _MISFIT * word.start_s
    ]
    if off:
        word, by_s = off[0]
        notes.append(
            note(
                "sound",
                Reason.SIDECAR_DISAGREES,
                where,
                f"{len(off)} word(s) away from their place by the event of the sound; first: line {word.line}, "
                f"'{word.word}', by {1000 * by_s:+.0f} ms",
                f"time of the sound + start, within {1000 * _MISFIT_S:g} ms and {100 * _MISFIT:g} %",
                "the words' own times count; check the event of the sound",
            )
        )
    return notes


def _described(word: WordEvent) -> str:
    return f"'{word.word}', {word.start_s:g} s into '{word.sound}'"
