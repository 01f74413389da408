"""Words of a MEG-MASC story on one clock, from the events of all its recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._finding import Finding
from lpact.datasets.meg_masc.events import SAME_START_S, RecordingEvents, WordEvent
from lpact.errors import StimulusError
from lpact.math.types import FloatArray

_DRIFT_NOTE_S = 0.0015
_MISFIT_S = 0.05
_MISFIT = 0.01


@dataclass(frozen=True)
class StoryWords:
    """Words of a story: the table, one event per row, and where each sound file begins on the table's clock."""

    table: pl.DataFrame
    rows: tuple[WordEvent, ...]
    origins: Mapping[str, float]
    findings: tuple[Finding, ...]

    def times_s(self, events: RecordingEvents) -> tuple[FloatArray, FloatArray]:
        """Return each word's time in a recording (NaN where it has none), and the part of it that the clocks differ by.

        The second, [n_words], is the recording's time less the table's, less the same of the sound's first word.
        """
        places = _Places(self.rows)
        times = np.full(len(self.rows), np.nan)
        for word in events.words:
            row = places.find(word)
            if row is not None:
                times[row] = word.time_s
        apart = times - self.table["onset_s"].to_numpy()
        sounds = self.table["sound"].to_numpy()
        for sound in dict.fromkeys(sounds):
            here = np.flatnonzero((sounds == sound) & np.isfinite(times))
            if here.size:
                apart[sounds == sound] -= apart[here[0]]
        return times, apart


class _Places:
    """Rows of words by what names them and where they are in their sound."""

    def __init__(self, words: Sequence[WordEvent] = ()) -> None:
        self._rows: dict[tuple[str, str, int, int, str], list[tuple[float, int]]] = {}
        for row, word in enumerate(words):
            self.add(word, row)

    def add(self, word: WordEvent, row: int) -> None:
        self._rows.setdefault(word.key, []).append((word.start_s, row))

    def find(self, word: WordEvent) -> int | None:
        for start_s, row in self._rows.get(word.key, ()):
            if abs(start_s - word.start_s) <= SAME_START_S:
                return row
        return None


def story_words(
    story: str,
    recordings: Mapping[str, RecordingEvents],
    conditions: Sequence[str],
    where: str,
) -> StoryWords:
    """Put the words of all recordings of a story on one clock.

    The clock is that of the first recording, with 0 where its first sound begins. A word is at the origin of its
    sound plus its place in the sound. A sound that the first recording lacks is placed by the next recording that has
    it, at its distance from the sound nearest to it that both have.

    Parameters
    ----------
    story, where
        Name of the story, and of its first events, for messages and tables.
    recordings
        Events by the recording's name; the first is the reference.
    conditions
        Conditions whose words are kept.
    """
    placed, notes = _place_sounds(story, recordings, where)
    known = _Places()
    kept: list[WordEvent] = []
    others: Counter[str] = Counter()
    other_places = _Places()
    for events in recordings.values():
        for word in events.words:
            if word.condition not in conditions:
                if other_places.find(word) is None:
                    other_places.add(word, 0)
                    others[word.condition] += 1
            elif known.find(word) is None:
                known.add(word, len(kept))
                kept.append(word)
    if not kept:
        raise StimulusError(
            f"the story '{story}' has no words in the conditions that are asked for",
            where=where,
            got=_counted(others) or "no words at all",
            expected=f"words in {', '.join(conditions)}",
            remedy="give other 'conditions' in the options of the dataset",
        )
    first_s = min(placed.values())
    origins = {
        sound: origin_s - first_s
        for sound, origin_s in sorted(placed.items(), key=lambda item: item[1])
    }
    rank = {sound: number for number, sound in enumerate(origins)}
    kept.sort(key=lambda word: (rank[word.sound], word.start_s, word.sequence_id, word.word_index))
    _check_sounds_apart(story, kept, origins, where)
    notes += _differing(kept, where)
    if others:
        notes.append(_left_out(others, conditions, where))
    return StoryWords(_table(story, kept, origins), tuple(kept), origins, tuple(notes))


def _place_sounds(
    story: str, recordings: Mapping[str, RecordingEvents], where: str
) -> tuple[dict[str, float], list[Finding]]:
    placed: dict[str, float] = {}
    notes: list[Finding] = []
    waiting = dict(recordings)
    while waiting:
        name = next(
            (n for n, e in waiting.items() if not placed or placed.keys() & e.origins()), None
        )
        if name is None:
            name = next(iter(waiting))
            raise StimulusError(
                f"sounds of the story '{story}' cannot be put in order",
                where=str(waiting[name].path),
                got=f"{', '.join(waiting[name].origins()) or 'no sound'}; others have {', '.join(placed)}",
                expected="recordings that have at least one sound in common",
                remedy="leave this recording out with the option 'subjects', or copy or download it again",
            )
        origins = waiting.pop(name).origins()
        fresh = {sound: at for sound, at in origins.items() if sound not in placed}
        if not placed:
            placed = dict(fresh)
            continue
        shared = [sound for sound in origins if sound in placed]
        for sound, at in fresh.items():
            near = min(shared, key=lambda other: abs(origins[other] - at))
            placed[sound] = placed[near] + at - origins[near]
        if fresh:
            notes.append(
                Finding(
                    field="sound",
                    reason=Reason.TRIGGERS_DROPPED,
                    severity="note",
                    where=where,
                    found=f"{', '.join(fresh)} not in the recording(s) before {name}",
                    expected="all sounds of the story in its first recording",
                    remedy=f"none is needed: {name} tells when they were played",
                )
            )
    return placed, notes


def _check_sounds_apart(
    story: str, words: Sequence[WordEvent], origins: Mapping[str, float], where: str
) -> None:
    for before, after in pairwise(words):
        end_s = origins[before.sound] + before.start_s
        next_s = origins[after.sound] + after.start_s
        if next_s < end_s or next_s < 0.0:
            raise StimulusError(
                f"words of the story '{story}' would go backwards",
                where=where,
                got=f"'{before.word}' of '{before.sound}' at {end_s:.3f} s, then '{after.word}' of "
                f"'{after.sound}' at {next_s:.3f} s",
                expected="sounds that follow one another",
                remedy="check the events of the sounds in the first recording of the story",
            )


def _table(story: str, words: Sequence[WordEvent], origins: Mapping[str, float]) -> pl.DataFrame:
    onset_s = np.array([origins[word.sound] + word.start_s for word in words])
    sequence = [(word.sound, word.condition, word.sequence_id) for word in words]
    new = [i == 0 or sequence[i] != sequence[i - 1] for i in range(len(words))]
    columns = {
        "word": pl.Series([word.word for word in words], dtype=pl.String),
        "onset_s": pl.Series(onset_s),
        "offset_s": pl.Series(onset_s + [word.duration_s for word in words]),
        "sentence_id": pl.Series(np.cumsum(new) - 1, dtype=pl.Int64),
        "story_id": pl.Series([story] * len(words), dtype=pl.String),
        "condition": pl.Series([word.condition for word in words], dtype=pl.String),
        "sound": pl.Series([word.sound for word in words], dtype=pl.String),
        "sequence_id": pl.Series([word.sequence_id for word in words], dtype=pl.Int64),
        "word_index": pl.Series([word.word_index for word in words], dtype=pl.Int64),
    }
    pronounced = np.array([word.pronounced for word in words])
    if np.isfinite(pronounced).any():
        columns["pronounced"] = pl.Series(pronounced)
    return pl.DataFrame(columns)


def _differing(words: Sequence[WordEvent], where: str) -> list[Finding]:
    """Return a note where two words stand at one place of a sequence: recordings disagree about it."""
    seen: dict[tuple[str, str, int, int], WordEvent] = {}
    pairs = []
    for word in words:
        other = seen.setdefault(word.key[:4], word)
        if other is not word:
            pairs.append((other, word))
    if not pairs:
        return []
    one, two = pairs[0]
    return [
        Finding(
            field="word_index",
            reason=Reason.SIDECAR_DISAGREES,
            severity="note",
            where=where,
            found=f"{len(pairs)} place(s) of a sequence with two words; first: '{one.word}' at {one.start_s:g} s and "
            f"'{two.word}' at {two.start_s:g} s of '{one.sound}'",
            expected="one word for each word_index of a sequence",
            remedy="check the events; both words are kept",
        )
    ]


def _left_out(others: Counter[str], conditions: Sequence[str], where: str) -> Finding:
    return Finding(
        field="condition",
        reason=Reason.SOURCE_ROWS_LEFT_OUT,
        severity="excluded",
        where=where,
        found=_counted(others),
        expected=f"words in {', '.join(conditions)}",
        remedy="give them in the option 'conditions' to keep them",
    )


def _counted(others: Counter[str]) -> str:
    return ", ".join(f"{n} word(s) in '{name}'" for name, n in sorted(others.items()))


def timing_findings(
    words: StoryWords,
    events: RecordingEvents,
    times_s: FloatArray,
    apart_s: FloatArray,
    where: str,
) -> list[Finding]:
    """Return notes on words that a recording lacks, on drift, and on sounds that do not fit their words."""
    notes = []
    missing = np.flatnonzero(np.isnan(times_s))
    if missing.size:
        first = words.rows[missing[0]]
        notes.append(
            Finding(
                field="word_onsets_s",
                reason=Reason.WORDS_WITHOUT_TIME,
                severity="note",
                where=where,
                found=f"{missing.size} of {times_s.size} words of the story are not in these events; first: "
                f"'{first.word}', {first.start_s:g} s into '{first.sound}'",
                expected="every word of the story",
                remedy="none is needed: those words are left out of this recording",
            )
        )
    known = np.flatnonzero(np.isfinite(times_s))
    if known.size and np.abs(apart_s[known]).max() > _DRIFT_NOTE_S:
        row = int(known[np.argmax(np.abs(apart_s[known]))])
        notes.append(
            Finding(
                field="word_onsets_s",
                reason=Reason.CLOCK_DRIFT,
                severity="note",
                where=where,
                found=f"up to {1000 * apart_s[row]:+.1f} ms since the sound's first word, at '{words.rows[row].word}', "
                f"{words.rows[row].start_s:g} s into '{words.rows[row].sound}'",
                expected=f"clocks that stay within {1000 * _DRIFT_NOTE_S:g} ms",
                remedy="none is needed: word times follow this recording's events",
            )
        )
    return notes + _misfits(events, where)


def _misfits(events: RecordingEvents, where: str) -> list[Finding]:
    """Return a note where words are not where the sound's own event puts them, beyond any drift."""
    sounds = {event.sound: event for event in reversed(events.sounds)}
    off = [
        (word, by)
        for word in events.words
        if (sound := sounds.get(word.sound)) is not None
        and abs(by := word.time_s - word.start_s - sound.time_s + sound.start_s)
        > _MISFIT_S + _MISFIT * word.start_s
    ]
    if not off:
        return []
    word, by = off[0]
    return [
        Finding(
            field="sound",
            reason=Reason.SIDECAR_DISAGREES,
            severity="note",
            where=where,
            found=f"{len(off)} word(s) away from where their sound puts them; first: line {word.line}, "
            f"'{word.word}', by {1000 * by:+.0f} ms",
            expected=f"time of the sound + start, within {1000 * _MISFIT_S:g} ms and {100 * _MISFIT:g} %",
            remedy="the words' own times count; check the event of the sound",
        )
    ]
