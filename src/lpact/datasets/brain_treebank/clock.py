"""Film time to samples of a Brain Treebank trial, by the triggers of its timings table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np

from lpact.codes import Reason
from lpact.datasets._files.strict import CsvFile
from lpact.datasets._finding import Finding
from lpact.datasets.triggers import Mark, TriggerClock
from lpact.errors import RecordingError
from lpact.math.types import BoolArray, FloatArray, IntArray

RATE_HZ = 2048.0
"""Sampling rate of the release, unless a study says otherwise for a subject; no file says it."""

Clock = Literal["nearest", "next", "linear"]

TRIGGER = "trigger"
ANCHORS = {TRIGGER: Mark.TRIGGER, "pause": Mark.PAUSE, "unpause": Mark.UNPAUSE}
"""Types of rows that tie a sample to a time of the film."""

NO_ANCHORS = ("beginning", "end")
"""Types of rows that are part of the layout and are no anchors of the clock."""

_MOST_BACK_S = 0.05
"""Neighbouring words may change places by the jitter of triggers, never by more than this."""


def word_times(
    path: Path,
    where: str,
    onset_s: FloatArray,
    *,
    rule: Clock,
    max_gap_s: float,
    n_samples: int | None,
    rate_hz: float = RATE_HZ,
) -> tuple[FloatArray, tuple[Finding, ...]]:
    """Return the time of every word on the recording's clock (sample / rate), NaN if it is not there.

    Rows of type ``trigger``, ``pause`` and ``unpause`` are anchors: ``index`` is the sample, of ``n_samples``,
    ``movie_time`` the film's time in seconds. `TriggerClock` has the rules. Words between two anchors have no time if
    the film stood still or was skipped somewhere between them, and no row says where.
    """
    clock, findings = _read_clock(
        path, where, rule=rule, max_gap_s=max_gap_s, n_samples=n_samples, rate_hz=rate_hz
    )
    times_s = clock.to_recording(onset_s)
    ordered: FloatArray = times_s.copy()
    told = np.isfinite(times_s)
    ordered[told] = np.maximum.accumulate(times_s[told])
    moved = told & (ordered != times_s)
    if moved.any():
        findings.append(_moved(path, where, moved, ordered - times_s))
    if not told.all():
        lost = int(clock.in_break(onset_s).sum())
        findings.append(
            Finding(
                field="words",
                reason=Reason.WORDS_WITHOUT_TIME,
                severity="note",
                where=where,
                found=f"{int((~told).sum())} of {onset_s.size} words, {lost} of them in stretches "
                "that the player skipped, or in which it stood still at a place that no row tells",
                expected=f"a trigger within {max_gap_s:g} s of every word",
                remedy="none is needed: their events are left out of this recording",
            )
        )
    return ordered, (*findings, *clock.findings(where))


def _read_clock(
    path: Path,
    where: str,
    *,
    rule: Clock,
    max_gap_s: float,
    n_samples: int | None,
    rate_hz: float,
) -> tuple[TriggerClock, list[Finding]]:
    table = CsvFile(path, RecordingError)
    table.require(("type", "index", "movie_time"))
    types = table.cells("type")
    samples = np.array(table.numbers_or_nan("index"))
    movie_s = np.array(table.numbers_or_nan("movie_time"))
    if TRIGGER not in types:
        raise RecordingError(
            "the timings hold no triggers",
            where=f"{path}, column 'type'",
            got=f"{table.n_rows} rows of type " + (", ".join(sorted(set(types))) or "none"),
            expected=f"rows of type '{TRIGGER}'",
            remedy="download the timings again, or leave the trial out with the option 'trials'",
        )
    anchors = np.array([kind in ANCHORS for kind in types], dtype=np.bool_)
    full = anchors & np.isfinite(samples) & np.isfinite(movie_s)
    outside = full & ((samples < 0) | (samples >= (np.inf if n_samples is None else n_samples)))
    if outside.any():
        row = int(np.argmax(outside))
        raise _outside(path, types[row], row, float(samples[row]), n_samples)
    rows, astray = _in_order(types, np.flatnonzero(full), samples, movie_s)
    kept = np.array(list(rows), dtype=np.int64)
    clock = TriggerClock(
        movie_s[kept],
        samples[kept] / rate_hz,
        rule=rule,
        max_gap_s=max_gap_s,
        marks=list(rows.values()),
        where=str(path),
        labels=[f"line {row + 2}" for row in rows],
    )
    return clock, _row_findings(where, types, anchors & ~full, astray)


def _outside(
    path: Path, kind: str, row: int, sample: float, n_samples: int | None
) -> RecordingError:
    return RecordingError(
        f"a row of type '{kind}' lies outside the recording",
        where=f"{path}, line {row + 2}, column 'index'",
        got=f"sample {sample:.15g}",
        expected="a sample index, 0 or more"
        if n_samples is None
        else f"a sample of the recording, which has {n_samples}: 0 to {n_samples - 1}",
        remedy="check that timings and neural file are of the same trial, and that both are complete",
    )


def _in_order(
    types: list[str], rows: IntArray, samples: FloatArray, movie_s: FloatArray
) -> tuple[dict[int, Mark], list[int]]:
    """Return anchors with their marks, and pauses and unpauses that contradict the rows around them.

    A pause or unpause must lie between the last anchor above it and the next trigger below it, by sample and by film
    time. Rows at one sample and film time are one anchor with several marks. A trigger that is out of order stays:
    `TriggerClock` names it.
    """
    following: dict[int, int] = {}
    trigger: int | None = None
    for row in reversed(rows.tolist()):
        if trigger is not None:
            following[row] = trigger
        trigger = row if types[row] == TRIGGER else trigger
    kept: dict[int, Mark] = {}
    astray: list[int] = []
    last: int | None = None
    for row in rows.tolist():
        mark = ANCHORS[types[row]]
        if last is not None and samples[last] == samples[row] and movie_s[last] == movie_s[row]:
            if mark is Mark.TRIGGER and Mark.TRIGGER in kept[last]:
                kept[row] = mark
                last = row
                continue
            # A pause that ends at the very sample at which it began was none.
            ended = Mark.PAUSE if mark is Mark.UNPAUSE else Mark(0)
            kept[last] = (kept[last] & ~ended) | mark
            continue
        below = following.get(row)
        fits = (last is None or _rises(last, row, samples, movie_s)) and (
            below is None or _rises(row, below, samples, movie_s, same=True)
        )
        if mark is Mark.TRIGGER or fits:
            kept[row] = mark
            last = row
        else:
            astray.append(row)
    return kept, astray


def _rises(
    first: int, second: int, samples: FloatArray, movie_s: FloatArray, *, same: bool = False
) -> bool:
    """Whether the second row is later in the recording and not earlier in the film (or the same in both)."""
    if same and samples[first] == samples[second]:
        return bool(movie_s[first] == movie_s[second])
    return bool(samples[first] < samples[second] and movie_s[first] <= movie_s[second])


def _row_findings(
    where: str, types: list[str], empty: BoolArray, astray: list[int]
) -> list[Finding]:
    known = (*ANCHORS, *NO_ANCHORS)
    others = Counter(kind for kind in types if kind not in known)
    found = [f"{count} of type {kind!r}" for kind, count in sorted(others.items())]
    lacking = Counter(types[row] for row in np.flatnonzero(empty))
    found += [f"{n} of type {kind!r} without index or movie_time" for kind, n in lacking.items()]
    if astray:
        found.append(
            f"{len(astray)} of pauses and unpauses that contradict the triggers around them, the first in line "
            f"{astray[0] + 2}"
        )
    if not found:
        return []
    return [
        Finding(
            field="triggers",
            reason=Reason.SOURCE_ROWS_LEFT_OUT,
            severity="note",
            where=where,
            found="rows: " + ", ".join(found),
            expected="rows of type " + ", ".join(known) + ", in order, with index and movie_time",
            remedy="none is needed: word times come from the other rows; words between two triggers with a pause "
            "at an unknown place between them have none",
        )
    ]


def _moved(path: Path, where: str, moved: BoolArray, by_s: FloatArray) -> Finding:
    most_s = float(by_s[moved].max())
    if most_s > _MOST_BACK_S:
        row = int(np.flatnonzero(moved)[int(np.argmax(by_s[moved]))])
        raise RecordingError(
            "word times run backwards",
            where=str(path),
            got=f"word {row + 1} is {1000 * most_s:.1f} ms before an earlier one",
            expected=f"jitter of triggers of at most {1000 * _MOST_BACK_S:g} ms",
            remedy="check the triggers, or use the option clock = 'linear'",
        )
    return Finding(
        field="words",
        reason=Reason.SOURCE_ROWS_MENDED,
        severity="note",
        where=where,
        found=f"{int(moved.sum())} words before the previous one by jitter of the triggers, "
        f"by {1000 * most_s:.2f} ms at most",
        expected="words in the order of the film",
        remedy="none is needed: they begin with the previous word; clock = 'linear' avoids it",
    )
