"""Events of a BIDS recording: words that were heard, starts of stimuli, and stretches that are bad."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpact.datasets._files.strict import TsvFile
from lpact.datasets.base import Span
from lpact.errors import RecordingError, did_you_mean
from lpact.math.types import FloatArray, IntArray

SAME_CLOCK_S = 0.5
"""Words of two recordings are the same if, after their clocks are fitted to each other, they are this near."""

_SAME_PLACE_S = 0.02
_FEWEST_SHARED = 0.5
_FITS = 4


@dataclass(frozen=True)
class Events:
    """``events.tsv``: onsets and durations in seconds from the recording's first sample, NaN where it says n/a."""

    path: Path
    table: TsvFile
    onset_s: FloatArray
    duration_s: FloatArray

    def rows(self, columns: Sequence[str], value: str) -> list[int]:
        """Return the rows with ``value`` in one of the columns."""
        here = [self.table.cells(column) for column in columns if column in self.table.columns]
        return [row for row in range(self.table.n_rows) if any(c[row] == value for c in here)]

    def kinds(self, columns: Sequence[str]) -> list[str]:
        """Return the values of the columns, each once."""
        here = [self.table.cells(column) for column in columns if column in self.table.columns]
        return sorted({cell for cells in here for cell in cells})


def read_events(path: Path) -> Events:
    """Read ``events.tsv``."""
    table = TsvFile(path, RecordingError)
    table.require(("onset", "duration"))
    return Events(
        path,
        table,
        np.array(table.numbers_or_nan("onset")),
        np.array(table.numbers_or_nan("duration")),
    )


def bad_events(events: Events) -> list[Span]:
    """Return the stretches of events whose ``trial_type`` begins with ``bad``, as MNE writes them."""
    if "trial_type" not in events.table.columns:
        return []
    spans = []
    for row, label in enumerate(events.table.cells("trial_type")):
        onset, length = events.onset_s[row], events.duration_s[row]
        if label.lower().startswith("bad") and np.isfinite(onset):
            stop = onset + (length if np.isfinite(length) else 0.0)
            spans.append(Span(float(onset), float(stop), label))
    return spans


def start_time(events: Events, name: str, columns: Sequence[str]) -> float:
    """Return the onset of the one event called ``name``."""
    rows = events.rows(columns, name)
    if len(rows) != 1 or not np.isfinite(events.onset_s[rows[0]]):
        known = events.kinds(columns)
        raise RecordingError(
            f"the stimulus' start, event '{name}', cannot be found",
            where=str(events.path),
            got=f"{len(rows)} such event(s)"
            + ("" if len(rows) != 1 else f" with onset {events.onset_s[rows[0]]}"),
            expected=f"one event '{name}' with an onset",
            remedy=f"check the option 'start_event'; {did_you_mean(name, known)}",
        )
    return float(events.onset_s[rows[0]])


@dataclass(frozen=True)
class Heard:
    """Words of one recording's events in order of time; ``rows`` are their rows in ``events.tsv``."""

    events: Events
    words: tuple[str, ...]
    onset_s: FloatArray
    rows: tuple[int, ...]
    n_without_time: int


def heard_words(
    events: Events, *, kind: str, kind_columns: Sequence[str], word_column: str
) -> Heard:
    """Return the rows whose kind is ``kind`` as words; their onsets must rise."""
    events.table.require((word_column,))
    rows = events.rows(kind_columns, kind)
    if not rows:
        raise RecordingError(
            "a recording's events hold no word",
            where=str(events.path),
            got=f"no row with '{kind}' in {' or '.join(kind_columns)}",
            expected=f"rows of kind '{kind}' with a word in column '{word_column}'",
            remedy="check the option 'word_trial_type'; "
            + did_you_mean(kind, events.kinds(kind_columns)),
        )
    cells = events.table.cells(word_column)
    timed = [row for row in rows if np.isfinite(events.onset_s[row])]
    for row in timed:
        if cells[row] in ("", "n/a"):
            raise events.table.wrong(word_column, row, f"the word of an event of kind '{kind}'")
    onset_s = events.onset_s[timed]
    falls = np.flatnonzero(np.diff(onset_s) < 0)
    if falls.size:
        row = timed[int(falls[0]) + 1]
        before = timed[int(falls[0])]
        raise RecordingError(
            "words in events.tsv are not in order of time",
            where=f"{events.path}, line {row + 2}, column 'onset'",
            got=f"{events.onset_s[row]:g} s after {events.onset_s[before]:g} s",
            expected="onsets that never fall",
            remedy="sort the rows by onset, if only their order is wrong",
        )
    words = tuple(cells[row] for row in timed)
    return Heard(events, words, onset_s, tuple(timed), len(rows) - len(timed))


@dataclass(frozen=True)
class SharedWords:
    """Words that recordings of one stimulus heard together, on the clock of the recording with most of them.

    ``origin`` says for each word from which recording (an index) and which of its words it was taken.
    """

    words: tuple[str, ...]
    onset_s: FloatArray
    origin: tuple[tuple[int, int], ...]


def merge_heard(heard: Sequence[Heard]) -> SharedWords:
    """Return the union of what recordings heard: a word whose trigger one of them lost is taken from another.

    The recording with most words sets the clock. Words of others are matched in order; the line through the matched
    onsets maps a word that only they have onto that clock.
    """
    first = max(range(len(heard)), key=lambda i: (len(heard[i].words), -i))
    union = [(float(t), w, (first, k)) for k, (t, w) in enumerate(_pairs(heard[first]))]
    for index, other in enumerate(heard):
        if index == first or other.words == tuple(word for _, word, _ in union):
            continue
        words = [word for _, word, _ in union]
        times = np.array([time for time, _, _ in union])
        left, right, apart = _matched(words, other, heard[first])
        slope, shift = _line(other.onset_s[right], times[left])
        missing = sorted(set(range(len(other.words))) - set(right.tolist()))
        taken = set(left.tolist())
        for k in missing:
            time = float(slope * other.onset_s[k] + shift)
            clash = np.flatnonzero(np.abs(times - time) < _SAME_PLACE_S)
            if any(int(i) not in taken for i in clash):
                raise _other_words(other, heard[first], k, apart)
            union.append((time, other.words[k], (index, k)))
        union.sort(key=lambda entry: entry[0])
    return SharedWords(
        tuple(word for _, word, _ in union),
        np.array([time for time, _, _ in union]),
        tuple(origin for _, _, origin in union),
    )


def place_words(heard: Heard, shared: SharedWords) -> FloatArray:
    """Return the onset of every shared word on the recording's own clock; NaN where it has no event.

    Words are matched in order, and each then goes to the nearest word of the same spelling by the fitted clock, so
    that it is known which of two equal words lost its trigger.
    """
    onset_s = np.full(len(shared.words), np.nan)
    if heard.words == shared.words:
        onset_s[:] = heard.onset_s
        return onset_s
    left, right, _ = _matched(shared.words, heard, None)
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
            raise _other_words(heard, None, k, f"the nearest {word!r} is {found}")
        last = int(options[int(np.argmin(away))])
        onset_s[last] = heard.onset_s[k]
    return onset_s


def _pairs(heard: Heard) -> list[tuple[float, str]]:
    return list(zip(heard.onset_s.tolist(), heard.words, strict=True))


def _matched(
    words: Sequence[str], heard: Heard, reference: Heard | None
) -> tuple[IntArray, IntArray, str]:
    """Return indices of words that are in both, in order."""
    matcher = difflib.SequenceMatcher(None, list(words), list(heard.words), autojunk=False)
    left: list[int] = []
    right: list[int] = []
    for block in matcher.get_matching_blocks():
        left += range(block.a, block.a + block.size)
        right += range(block.b, block.b + block.size)
    apart = f"{len(left)} of {len(heard.words)} words are shared"
    if len(left) < max(1, _FEWEST_SHARED * len(heard.words)):
        unmatched = min(set(range(len(heard.words))) - set(right))
        raise _other_words(heard, reference, unmatched, apart)
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64), apart


def _line(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Slope and shift of the line through most points: it starts at slope 1, and is fitted to the points near it."""
    slope, shift = 1.0, float(np.median(y - x))
    for _ in range(_FITS):
        near = np.abs(slope * x + shift - y) <= SAME_CLOCK_S
        if near.sum() < 2 or np.ptp(x[near]) == 0:
            break
        slope, shift = (float(value) for value in np.polyfit(x[near], y[near], 1))
    return slope, shift


def _other_words(heard: Heard, reference: Heard | None, k: int, found: str) -> RecordingError:
    row = heard.rows[k]
    against = f" as in {reference.events.path.name}" if reference is not None else ""
    return RecordingError(
        "recordings of one stimulus hold different words",
        where=f"{heard.events.path}, line {row + 2}",
        got=f"{heard.words[k]!r} at {heard.onset_s[k]:g} s; {found}",
        expected=f"the same words{against}, apart from lost events",
        remedy="give stimuli of their own another task or run, or give the words as a table (option 'words')",
    )
