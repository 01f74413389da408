"""Events of MEG-MASC recordings, and the words of a story on one clock, from the events of all its recordings."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from lpact.codes import Reason
from lpact.datasets._files.strict import TextTable, invalid
from lpact.datasets._folder_dataset import words_table
from lpact.datasets._mne import sample_mismatch
from lpact.datasets.base import Finding, Findings
from lpact.errors import RecordingError, StimulusError
from lpact.math.types import FloatArray

_STORY = re.compile(r"""['"]story['"]\s*:\s*['"]([^'"]+)['"]""")
_STORY_CHARACTERS = 2**16
_SAME_TIME_S = 0.0015
_SAME_START_S = 0.001
_DRIFT_NOTE_S = 0.0015
_MISFIT_S, _MISFIT = 0.05, 0.01


def sound_name(path: str) -> str:
    """Name of a sound file: ``stimuli/audio/LW1_0.0.wav`` and ``stimuli/audio/lw1_0.wav`` are both ``lw1_0``."""
    stem = path.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".wav")
    return stem.removesuffix(".0")


Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
Number = Annotated[float, Field(allow_inf_nan=False)]
Whole = Annotated[int, Field(gt=-(10**18), lt=10**18)]
Key = tuple[str, str, int, int, str, float]


class SoundEvent(BaseModel):
    """The onset of a sound file in a recording: ``time_s`` on its clock, at ``start_s`` of the file."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    line: int
    time_s: float
    story: Text
    sound: Annotated[Text, AfterValidator(sound_name)]
    start_s: Number = Field(alias="start")

    @property
    def origin_s(self) -> float:
        """When the sound file began, on the recording's clock."""
        return self.time_s - self.start_s


class WordEvent(SoundEvent):
    """One word of a recording: ``start_s`` is counted from the beginning of the sound file."""

    duration_s: float = Field(ge=0)
    word: Text
    sequence_id: Whole
    word_index: Whole
    condition: Text
    pronounced: Number | None = None

    @property
    def key(self) -> Key:
        """What identifies the word in all recordings of a story."""
        place = (self.sequence_id, self.word_index, self.word, round(self.start_s, 3))
        return (self.sound, self.condition, *place)

    def __str__(self) -> str:
        return f"'{self.word}', {self.start_s:g} s into '{self.sound}'"


@dataclass(frozen=True)
class RecordingEvents:
    """Words of one ``events.tsv`` in order of time, and when each sound file began.

    ``spelling`` is the story's name as it is written. A sound begins by its own event, or else by its first word.
    """

    path: Path
    spelling: str
    words: Mapping[Key, WordEvent]
    origins: Mapping[str, float]
    findings: Sequence[Finding]


def first_story(path: Path) -> str:
    """Return the story that the first events of a recording name, in lower case; `read_events` checks the others."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        match = _STORY.search(stream.read(_STORY_CHARACTERS))
    if match is None:
        expected = "a column 'trial_type' of Python literals with the key 'story'"
        raise invalid(path, "no event that states the story", expected)
    return match[1].lower()


def read_events(path: Path, where: str, rate_hz: float | None) -> RecordingEvents:
    """Read an ``events.tsv``; ``rate_hz`` is the recording's sampling rate, None if it cannot be read.

    A word's time is ``onset``; another ``sample`` at that rate is an error. Phonemes are not kept.
    """
    table = TextTable(path, RecordingError)
    table.require(("onset", "duration", "trial_type"))
    onsets_s, durations_s = table.numbers("onset"), table.numbers_or_nan("duration")
    if rate_hz is not None and "sample" in table.columns:
        mismatch = sample_mismatch(onsets_s, table.integers("sample"), rate_hz)
        if mismatch is not None:
            remedy = "write 'sample' at the recording's sampling rate, or remove the column if 'onset' is right"
            raise invalid(f"{path}, columns 'onset' and 'sample'", *mismatch.texts, remedy=remedy)
    found = [
        _event(path, row, cell, onsets_s[row], durations_s[row]) for row, cell in enumerate(table.cells("trial_type"))
    ]
    events = [event for event in found if event is not None]
    spelling, findings = _one_story(path, events), Findings(where)
    words = _in_order(path, [e for e in events if isinstance(e, WordEvent)], findings)
    origins: dict[str, float] = {}
    for event in (*(e for e in events if not isinstance(e, WordEvent)), *words):
        origins.setdefault(event.sound, event.origin_s)
    _note_misfits(words, origins, findings)
    return RecordingEvents(path, spelling, _unique(path, words, findings), origins, findings)


def _note_misfits(words: Sequence[WordEvent], origins: Mapping[str, float], findings: Findings) -> None:
    apart_s = [(word.origin_s - origins[word.sound], word) for word in words]
    off = [(s, word) for s, word in apart_s if abs(s) > _MISFIT_S + _MISFIT * word.start_s]
    if off:
        by_s, word = off[0]
        findings.note(
            "sound",
            Reason.SIDECAR_DISAGREES,
            f"{len(off)} word(s) that do not fit the onset of their sound; first: line {word.line}, {word}, by "
            f"{1000 * by_s:+.0f} ms",
            f"onset of the sound + start, within {1000 * _MISFIT_S:g} ms and {100 * _MISFIT:g} %",
            "the words' own times are used; check the event of the sound",
        )


def _event(path: Path, row: int, cell: str, time_s: float, duration_s: float) -> SoundEvent | None:
    """Return the sound or word of a row, None for a phoneme."""
    where = f"{path}, line {row + 2}, column 'trial_type'"
    if cell.startswith('"') and cell.endswith('"') and len(cell) > 1:
        cell = cell[1:-1].replace('""', '"')  # a cell that a CSV writer has quoted
    try:
        about = ast.literal_eval(cell)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        about = None
    kind = about.get("kind") if isinstance(about, dict) else None
    if kind == "phoneme":
        return None
    if kind not in ("sound", "word"):
        expected = "a Python literal: a dict of texts and numbers, with the kind sound, word or phoneme"
        found = f"the kind {kind!r}" if isinstance(about, dict) else repr(cell[:200])
        raise invalid(where, found, expected)
    times = {"line": row + 2, "time_s": time_s, "duration_s": duration_s}
    try:
        return (WordEvent if kind == "word" else SoundEvent).model_validate({**about, **times})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0])
        found = f"'{field}' is {about.get(field)!r}"
        raise invalid(where, found, f"'{field}': {first['msg']}") from None


def _one_story(path: Path, events: Sequence[SoundEvent]) -> str:
    """Return the first spelling of the story; raises unless all events are of one story."""
    lines: dict[str, int] = {}
    for event in events:
        lines.setdefault(event.story, event.line)
    if len({spelling.lower() for spelling in lines}) != 1:
        found = ", ".join(f"'{name}' (line {line})" for name, line in lines.items()) or "none"
        raise invalid(path, found, "one story for all sounds and words")
    return next(iter(lines))


def _in_order(path: Path, words: list[WordEvent], findings: Findings) -> list[WordEvent]:
    """Sort words by time; words of a sound whose times contradict their places are an error."""
    in_time = sorted(words, key=lambda word: (word.time_s, word.start_s))
    before: dict[str, WordEvent] = {}
    for word in in_time:
        last = before.get(word.sound, word)
        if word.start_s < last.start_s - _SAME_START_S:
            found = f"{last} at {last.time_s:.4f} s; {word} at {word.time_s:.4f} s"
            expected = "times that rise, in the order in which the sound file has the words"
            raise invalid(f"{path}, lines {last.line} and {word.line}", found, expected)
        before[word.sound] = word
    if in_time != words:
        first = next(a for a, b in zip(words, in_time, strict=True) if a != b)
        found = f"lines that are not in order of time, from line {first.line} on"
        remedy = "nothing to do: they are sorted"
        expected = "lines in order of time"
        findings.note("onset", Reason.SOURCE_ROWS_SORTED, found, expected, remedy)
    return in_time


def _unique(path: Path, words: list[WordEvent], findings: Findings) -> dict[Key, WordEvent]:
    """Leave out words that are listed twice at one time; at two times they are an error."""
    kept: dict[Key, WordEvent] = {}
    repeats: list[WordEvent] = []
    for word in words:
        first = kept.setdefault(word.key, word)
        if word.time_s - first.time_s > _SAME_TIME_S:
            where = f"{path}, lines {first.line} and {word.line}"
            found = f"{word}, at {first.time_s:.4f} s and {word.time_s:.4f} s"
            remedy = "remove one of the lines; of a sound that was played twice, keep one presentation"
            raise invalid(where, found, "every word of a sound file once", remedy=remedy)
        if first is not word:
            repeats.append(word)
    if repeats:
        found = f"{len(repeats)} word(s) written twice; first: line {repeats[0].line}, '{repeats[0].word}'"
        remedy = "nothing to do: the first of equal lines is used"
        reason = Reason.SOURCE_ROWS_LEFT_OUT
        findings.excluded("trial_type", reason, found, "every word once", remedy)
    return kept


@dataclass(frozen=True)
class StoryWords:
    """Words of a story: the table, one event per row, and where each sound file begins on the table's clock."""

    table: pl.DataFrame
    rows: Sequence[WordEvent]
    origins: Mapping[str, float]
    findings: Findings

    def times_s(self, events: RecordingEvents, findings: Findings) -> FloatArray:
        """Return each word's time in a recording, NaN where it has none, [n_words]; note missing words and drift."""
        found = [_same_word(events.words, word) for word in self.rows]
        times = np.array([math.nan if word is None else word.time_s for word in found])
        missing = np.flatnonzero(np.isnan(times))
        if missing.size:
            findings.note(
                "word_onsets_s",
                Reason.WORDS_WITHOUT_TIME,
                f"{missing.size} of {times.size} words of the story are not in these events; first: "
                f"{self.rows[missing[0]]}",
                "every word of the story",
                "nothing to do: those words are left out of this recording",
            )
        # Time since the sound's first word, in the recording and in the table.
        drift = times - self.table["onset_s"].to_numpy()
        sounds = self.table["sound"].to_numpy()
        for sound in self.origins:
            own = np.flatnonzero((sounds == sound) & np.isfinite(times))
            drift[own] -= drift[own[:1]]
        worst = int(np.argmax(np.nan_to_num(np.abs(drift)))) if times.size else 0
        if abs(drift[worst]) > _DRIFT_NOTE_S:
            findings.note(
                "word_onsets_s",
                Reason.CLOCK_DRIFT,
                f"up to {1000 * drift[worst]:+.1f} ms since the sound's first word, at {self.rows[worst]}",
                f"clocks that stay within {1000 * _DRIFT_NOTE_S:g} ms",
                "nothing to do: word times follow this recording's events",
            )
        return times


def story_words(
    story: str, recordings: Mapping[str, RecordingEvents], conditions: Sequence[str], where: str
) -> StoryWords:
    """Put the words of all recordings of a story on one clock; ``conditions`` are those whose words are kept.

    The clock is that of the first recording, with 0 where its first sound begins. A word is at the origin of its
    sound plus its place in the sound. A sound that the first recording lacks is placed by the next recording that has
    it, at its distance from the sound nearest to it that both have.
    """
    findings = Findings(where)
    placed = _place_sounds(story, recordings, findings)
    every: dict[Key, WordEvent] = {}
    for events in recordings.values():
        new = [word for word in events.words.values() if _same_word(every, word) is None]
        every |= {word.key: word for word in new}
    _note_conflicts(every.values(), findings)
    kept = [word for word in every.values() if word.condition in conditions]
    counts = Counter(word.condition for word in every.values() if word.condition not in conditions)
    others = ", ".join(f"{n} word(s) in '{name}'" for name, n in sorted(counts.items()))
    expected = f"words in {', '.join(conditions)}"
    if not kept:
        raise StimulusError(
            f"the story '{story}' has no words in the chosen conditions",
            where=where,
            got=others or "no words at all",
            expected=expected,
            remedy="give other 'conditions' in the options of the dataset",
        )
    if others:
        remedy = "list them in the option 'conditions' to keep them"
        findings.excluded("condition", Reason.SOURCE_ROWS_LEFT_OUT, others, expected, remedy)
    first_s = min(placed.values())
    by_time = sorted(placed.items(), key=lambda item: item[1])
    origins = {sound: origin_s - first_s for sound, origin_s in by_time}
    rank = {sound: number for number, sound in enumerate(origins)}
    kept.sort(key=lambda word: (rank[word.sound], word.start_s, word.sequence_id, word.word_index))
    return StoryWords(_table(story, kept, origins, where), kept, origins, findings)


def _same_word(words: Mapping[Key, WordEvent], word: WordEvent) -> WordEvent | None:
    """The same word of another recording, whose start may differ by `_SAME_START_S`."""
    keys = ((*word.key[:5], round(word.key[5] + step, 3)) for step in (0.0, -0.001, 0.001))
    near = (words[key] for key in keys if key in words)
    return next((w for w in near if abs(w.start_s - word.start_s) <= _SAME_START_S + 1e-9), None)


def _note_conflicts(words: Iterable[WordEvent], findings: Findings) -> None:
    """Note where recordings have two words at one place of a sequence."""
    seen: dict[tuple[Any, ...], WordEvent] = {}
    pairs = [(seen.setdefault(word.key[:4], word), word) for word in words]
    pairs = [(one, two) for one, two in pairs if one is not two]
    if pairs:
        one, two = pairs[0]
        findings.note(
            "word_index",
            Reason.SIDECAR_DISAGREES,
            f"{len(pairs)} place(s) of a sequence with two words; first: {one} and {two}",
            "one word for each word_index of a sequence",
            "check the events; both words are kept",
        )


def _place_sounds(story: str, recordings: Mapping[str, RecordingEvents], findings: Findings) -> dict[str, float]:
    waiting = {name: events.origins for name, events in recordings.items()}
    placed = dict(waiting.pop(next(iter(waiting))))
    while waiting:
        name = next((n for n, origins in waiting.items() if placed.keys() & origins), None)
        if name is None:
            name, origins = next(iter(waiting.items()))
            raise StimulusError(
                f"sounds of the story '{story}' cannot be put in order",
                where=str(recordings[name].path),
                got=f"{', '.join(origins) or 'no sound'}; others have {', '.join(placed)}",
                expected="recordings that have at least one sound in common",
                remedy="leave this recording out with the option 'subjects', or download it again",
            )
        origins = waiting.pop(name)
        shared = [sound for sound in origins if sound in placed]
        new = {sound: at for sound, at in origins.items() if sound not in placed}
        for sound, at in new.items():
            near = min(shared, key=lambda other: abs(origins[other] - at))
            placed[sound] = placed[near] + at - origins[near]
        if new:
            findings.note(
                "sound",
                Reason.TRIGGERS_DROPPED,
                f"{', '.join(new)} not in the recording(s) before {name}",
                "all sounds of the story in its first recording",
                f"nothing to do: {name} says when they were played",
            )
    return placed


def _table(story: str, words: Sequence[WordEvent], origins: Mapping[str, float], where: str) -> pl.DataFrame:
    onset_s = np.array([origins[word.sound] + word.start_s for word in words])
    back = np.flatnonzero(np.diff(onset_s, prepend=0.0) < 0)
    if back.size:
        before, after = words[max(back[0] - 1, 0)], words[back[0]]
        found = f"{before}, and then {after}, at {onset_s[back[0]]:.3f} s of the story"
        expected = f"sounds of the story '{story}' that follow one another"
        raise invalid(where, found, expected, StimulusError)
    sequence = [(word.sound, word.condition, word.sequence_id) for word in words]
    new = [False, *(a != b for a, b in pairwise(sequence))]
    columns: dict[str, Any] = {
        name: [getattr(word, name) for word in words] for name in ("condition", "sound", "sequence_id", "word_index")
    }
    if any(word.pronounced is not None for word in words):
        known = [math.nan if word.pronounced is None else word.pronounced for word in words]
        columns["pronounced"] = known
    texts, durations_s = [word.word for word in words], [word.duration_s for word in words]
    return words_table(texts, onset_s, onset_s + durations_s, np.cumsum(new), story, columns)
