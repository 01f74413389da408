"""Events of BIDS recordings: words that were heard, starts of stimuli, and stretches that are bad."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpact.datasets._files.strict import TextTable, invalid
from lpact.datasets.base import Span
from lpact.errors import InputError, RecordingError, did_you_mean
from lpact.math.types import FloatArray, IntArray

SAME_CLOCK_S = 0.5
"""Words of two recordings are the same if, after their clocks are fitted to each other, they are this near."""

_SAME_PLACE_S = 0.02
_FEWEST_SHARED = 0.5
_FITS = 4


@dataclass(frozen=True)
class Events:
    """``events.tsv``: onsets and durations in seconds from the recording's first sample, NaN where missing."""

    path: Path
    table: TextTable
    onset_s: FloatArray
    duration_s: FloatArray

    def rows(self, columns: Sequence[str], value: str) -> list[int]:
        """Rows of events that have ``value`` in one of the columns."""
        found = [self.table.cells(column) for column in columns if column in self.table.columns]
        return [row for row in range(self.table.n_rows) if any(c[row] == value for c in found)]

    def kinds(self, columns: Sequence[str]) -> list[str]:
        """Return the distinct values of the columns."""
        found = [self.table.cells(column) for column in columns if column in self.table.columns]
        return sorted({cell for cells in found for cell in cells})

    def bad_spans(self) -> list[Span]:
        """Return the stretches of events whose ``trial_type`` begins with ``bad``, as MNE writes them."""
        labels = self.table.cells("trial_type") if "trial_type" in self.table.columns else []
        stop_s = self.onset_s + np.nan_to_num(self.duration_s)
        return [
            Span(float(self.onset_s[row]), float(stop_s[row]), label)
            for row, label in enumerate(labels)
            if label.lower().startswith("bad") and np.isfinite(self.onset_s[row])
        ]

    def start_s(self, name: str, columns: Sequence[str]) -> float:
        """Return the onset of the one event called ``name``."""
        onsets = self.onset_s[self.rows(columns, name)]
        if onsets.size != 1 or not np.isfinite(onsets[0]):
            found = f"{onsets.size} such event(s)" + (" without onset" if onsets.size == 1 else "")
            remedy = f"check the option 'start_event'; {did_you_mean(name, self.kinds(columns))}"
            raise invalid(self.path, found, f"one event '{name}' with an onset", remedy=remedy)
        return float(onsets[0])


def read_events(path: Path) -> Events:
    """Read ``events.tsv``."""
    table = TextTable(path, RecordingError)
    table.require(("onset", "duration"))
    onset_s, duration_s = (np.array(table.numbers_or_nan(name)) for name in ("onset", "duration"))
    return Events(path, table, onset_s, duration_s)


@dataclass(frozen=True)
class Heard:
    """Words of one recording's events in order of time; ``rows`` are their rows in ``events.tsv``."""

    events: Events
    words: tuple[str, ...]
    onset_s: FloatArray
    rows: tuple[int, ...]


def heard_words(events: Events, *, kind: str, kind_columns: Sequence[str], word_column: str) -> Heard:
    """Return the rows whose kind is ``kind`` as words; their onsets must rise."""
    events.table.require((word_column,))
    rows = events.rows(kind_columns, kind)
    if not rows:
        found = f"no row with '{kind}' in {' or '.join(kind_columns)}"
        remedy = f"check the option 'word_trial_type'; {did_you_mean(kind, events.kinds(kind_columns))}"
        raise invalid(events.path, found, "rows that are words", remedy=remedy)
    cells = events.table.cells(word_column)
    timed = [row for row in rows if np.isfinite(events.onset_s[row])]
    for row in timed:
        if cells[row] in ("", "n/a"):
            raise events.table.wrong(word_column, row, f"the word of an event of kind '{kind}'")
    onset_s = events.onset_s[timed]
    falls = np.flatnonzero(np.diff(onset_s) < 0)
    if falls.size:
        k = int(falls[0])
        where = f"{events.path}, line {timed[k + 1] + 2}, column 'onset'"
        found = f"{onset_s[k + 1]:g} s after {onset_s[k]:g} s"
        raise invalid(where, found, "words in order of time", remedy="sort the rows by onset")
    words = tuple(cells[row] for row in timed)
    return Heard(events, words, onset_s, tuple(timed))


@dataclass(frozen=True)
class SharedWords:
    """Words that recordings of one stimulus heard together, on the clock of the recording with most of them.

    ``origin`` says for each word from which recording (an index) and which of its words it was taken.
    """

    words: tuple[str, ...]
    onset_s: FloatArray
    origin: tuple[tuple[int, int], ...]


def leader(heard: Sequence[Heard]) -> int:
    """Return the recording that sets the clock: the first with most words."""
    return max(range(len(heard)), key=lambda i: (len(heard[i].words), -i))


def merge_heard(heard: Sequence[Heard]) -> SharedWords:
    """Return the union of what recordings heard: a word whose trigger one of them lost is taken from another.

    Words of other recordings than the leader are matched in order; the line through the matched onsets maps a word
    that only they have onto the leader's clock.
    """
    first = leader(heard)
    union = [
        (float(t), word, (first, k))
        for k, (t, word) in enumerate(zip(heard[first].onset_s, heard[first].words, strict=True))
    ]
    for index, other in enumerate(heard):
        words = [word for _, word, _ in union]
        if index == first or list(other.words) == words:
            continue
        times = np.array([time for time, _, _ in union])
        left, right = _matched(words, other)
        slope, shift = _line(other.onset_s[right], times[left])
        for k in sorted(set(range(len(other.words))) - set(right.tolist())):
            time = float(slope * other.onset_s[k] + shift)
            clash = set(np.flatnonzero(np.abs(times - time) < _SAME_PLACE_S).tolist())
            if clash - set(left.tolist()):
                raise _other_words(other, k, f"another word in {heard[first].events.path.name}")
            union.append((time, other.words[k], (index, k)))
        union.sort(key=lambda entry: entry[0])
    return SharedWords(
        tuple(word for _, word, _ in union),
        np.array([time for time, _, _ in union]),
        tuple(origin for _, _, origin in union),
    )


def place_words(heard: Heard, shared: SharedWords) -> FloatArray:
    """Return the onset of every shared word on the recording's own clock; NaN where it has no event.

    Words are matched in order, and each is then assigned to the nearest word of the same spelling by the fitted clock,
    so that it is known which of two equal words lost its trigger.
    """
    onset_s = np.full(len(shared.words), np.nan)
    if heard.words == shared.words:
        onset_s[:] = heard.onset_s
        return onset_s
    left, right = _matched(shared.words, heard)
    slope, shift = _line(shared.onset_s[left], heard.onset_s[right])
    expected = slope * shared.onset_s + shift
    spelled: dict[str, list[int]] = {}
    for i, word in enumerate(shared.words):
        spelled.setdefault(word, []).append(i)
    last = -1
    for k, word in enumerate(heard.words):
        options = np.array(spelled.get(word, []), dtype=np.int64)
        options = options[options > last]
        away = np.abs(expected[options] - heard.onset_s[k])
        if not options.size or away.min() > SAME_CLOCK_S:
            found = f"{away.min():.3f} s from it" if options.size else "nowhere"
            raise _other_words(heard, k, f"the nearest {word!r} is {found}")
        last = int(options[int(np.argmin(away))])
        onset_s[last] = heard.onset_s[k]
    return onset_s


def _matched(words: Sequence[str], heard: Heard) -> tuple[IntArray, IntArray]:
    """Return indices of words that are in both, in order."""
    matcher = difflib.SequenceMatcher(None, list(words), list(heard.words), autojunk=False)
    pairs = [(block.a + i, block.b + i) for block in matcher.get_matching_blocks() for i in range(block.size)]
    left, right = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    if left.size < max(1, _FEWEST_SHARED * len(heard.words)):
        unmatched = min(set(range(len(heard.words))) - set(right.tolist()))
        found = f"{left.size} of {len(heard.words)} words are shared"
        raise _other_words(heard, unmatched, found)
    return left, right


def _line(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Slope and shift of the line through most points: it starts at slope 1, and is fitted to the points near it."""
    slope, shift = 1.0, float(np.median(y - x))
    for _ in range(_FITS):
        near = np.abs(slope * x + shift - y) <= SAME_CLOCK_S
        if near.sum() < 2 or np.ptp(x[near]) == 0:
            break
        slope, shift = (float(value) for value in np.polyfit(x[near], y[near], 1))
    return slope, shift


def _other_words(heard: Heard, k: int, found: str) -> InputError:
    where = f"{heard.events.path}, line {heard.rows[k] + 2}"
    text = f"{heard.words[k]!r} at {heard.onset_s[k]:g} s; {found}"
    remedy = "give different stimuli different tasks or runs, or give the words as a table (option 'words')"
    return invalid(where, text, "the same words in all recordings of a stimulus", remedy=remedy)
