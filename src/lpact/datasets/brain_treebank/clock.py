"""Film time to samples of a Brain Treebank trial, by the triggers of its timings table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np

from lpact.datasets._files.strict import CsvFile
from lpact.datasets._finding import Finding
from lpact.datasets.triggers import TriggerClock
from lpact.errors import RecordingError
from lpact.math.types import BoolArray, FloatArray
from lpact.reasons import Reason

RATE_HZ = 2048.0
"""Sampling rate of every trial of the release; no file says it."""

Clock = Literal["nearest", "next", "linear"]

TRIGGER = "trigger"
KNOWN_TYPES = ("beginning", "pause", "unpause", "end")
"""Types of rows that are part of the layout and are no anchors of the clock."""

_MOST_BACK_S = 0.05
"""Neighbouring words may change places by the jitter of triggers, never by more than this."""


def word_times(
    path: Path, where: str, onset_s: FloatArray, *, rule: Clock, max_gap_s: float
) -> tuple[FloatArray, tuple[Finding, ...]]:
    """Return the time of every word on the recording's clock (sample / 2048), NaN if it is not there.

    Only rows of type ``trigger`` are anchors: ``index`` is the sample, ``movie_time`` the film's time in seconds.
    `TriggerClock` has the rules. Words in a stretch that the player skipped have no time.
    """
    clock, findings = _read_clock(path, where, rule=rule, max_gap_s=max_gap_s)
    times_s = clock.to_recording(onset_s)
    skipped = _in_skipped(clock, onset_s) & np.isfinite(times_s)
    times_s[skipped] = np.nan
    ordered: FloatArray = times_s.copy()
    told = np.isfinite(times_s)
    ordered[told] = np.maximum.accumulate(times_s[told])
    moved = told & (ordered != times_s)
    if moved.any():
        findings.append(_moved(path, where, moved, ordered - times_s))
    without = int((~np.isfinite(ordered)).sum())
    if without:
        findings.append(
            Finding(
                field="words",
                reason=Reason.WORDS_WITHOUT_TIME,
                severity="note",
                where=where,
                found=f"{without} of {onset_s.size} words, {int(skipped.sum())} of them in stretches "
                "that the player skipped",
                expected=f"a trigger within {max_gap_s:g} s of every word",
                remedy="none is needed: their events are left out of this recording",
            )
        )
    return ordered, (*findings, *clock.findings(where))


def _read_clock(
    path: Path, where: str, *, rule: Clock, max_gap_s: float
) -> tuple[TriggerClock, list[Finding]]:
    table = CsvFile(path, RecordingError)
    table.require(("type", "index", "movie_time"))
    types = table.cells("type")
    samples = np.array(table.numbers_or_nan("index"))
    movie_s = np.array(table.numbers_or_nan("movie_time"))
    triggers = np.array([kind == TRIGGER for kind in types], dtype=np.bool_)
    if not triggers.any():
        raise RecordingError(
            "the timings hold no triggers",
            where=f"{path}, column 'type'",
            got=f"{table.n_rows} rows of type " + (", ".join(sorted(set(types))) or "none"),
            expected=f"rows of type '{TRIGGER}'",
            remedy="download the timings again, or leave the trial out with the option 'trials'",
        )
    usable = triggers & np.isfinite(samples) & np.isfinite(movie_s)
    rows = np.flatnonzero(usable)
    for row in rows:
        if samples[row] < 0:
            raise table.wrong("index", int(row), "a sample index, 0 or more")
    clock = TriggerClock(
        movie_s[rows],
        samples[rows] / RATE_HZ,
        rule=rule,
        max_gap_s=max_gap_s,
        where=str(path),
        labels=[f"line {row + 2}" for row in rows],
    )
    return clock, _row_findings(where, types, int((triggers & ~usable).sum()))


def _row_findings(where: str, types: list[str], n_empty: int) -> list[Finding]:
    others = Counter(kind for kind in types if kind != TRIGGER and kind not in KNOWN_TYPES)
    found = [f"{count} of type {kind!r}" for kind, count in sorted(others.items())]
    if n_empty:
        found.append(f"{n_empty} triggers without a sample or a film time")
    if not found:
        return []
    return [
        Finding(
            field="triggers",
            reason=Reason.SOURCE_ROWS_LEFT_OUT,
            severity="note",
            where=where,
            found="rows: " + ", ".join(found),
            expected=f"rows of type '{TRIGGER}' with index and movie_time; also "
            + ", ".join(KNOWN_TYPES),
            remedy="none is needed: word times come from the other triggers",
        )
    ]


def _in_skipped(clock: TriggerClock, onset_s: FloatArray) -> BoolArray:
    """Whether each film time lies between two triggers over which the film moved on more than the recording."""
    film, recording = clock.stimulus_s, clock.recording_s
    skips = clock.jumps & (np.diff(recording) < np.diff(film))
    before = np.searchsorted(film, onset_s, side="right") - 1
    inside = (before >= 0) & (before < skips.size)
    flags: BoolArray = np.zeros(onset_s.size, dtype=np.bool_)
    if skips.size:
        interval = np.clip(before, 0, skips.size - 1)
        flags = inside & skips[interval] & (onset_s > film[interval])
    return flags


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
