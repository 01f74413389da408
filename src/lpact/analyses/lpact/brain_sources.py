"""Where a context's brain patterns come from: its own run, other runs, or other subjects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from lpact.analyses.base import Frames
from lpact.analyses.lpact.levels.relational import BrainPatterns
from lpact.analyses.lpact.tables.levels import BRAIN_PATTERNS
from lpact.codes import Reason
from lpact.datasets.base import RecordingId, Units
from lpact.math.types import FloatArray


def brain_patterns(
    source: str,
    own: RecordingId,
    brains: Mapping[RecordingId, Frames],
    *,
    comparable: bool = True,
) -> BrainPatterns | Reason:
    """Brain patterns for one recording, in its own unit order.

    From other recordings the patterns are averaged over all partners that have the pair of units; a pair that no
    partner has is NaN and left out of the comparison. Units that are not ``comparable`` between subjects have no
    partners there.
    """
    if source == "other_subject" and not comparable:
        return Reason.UNITS_NOT_COMPARABLE
    order = _order(brains[own])
    tables = [brains[r][BRAIN_PATTERNS.name] for r in partners(source, own, brains)]
    tables = [t for t in tables if set(order) & set(t["unit"])]
    if not tables:
        return Reason.NO_PARTNER_PATTERN
    matrices, reliability = {}, {}
    for alignment in tables[0]["alignment"].unique(maintain_order=True):
        rows = [t.filter(pl.col("alignment") == alignment) for t in tables]
        matrices[alignment] = _mean([_in_order(t, order) for t in rows])
        reliability[alignment] = _mean([_reliability(t, order) for t in rows])
    return BrainPatterns(matrices, reliability, Units(order, order).order_hash())


def partners(source: str, own: RecordingId, recordings: Iterable[RecordingId]) -> list[RecordingId]:
    """Recordings that give the patterns for one of them."""
    if source == "same_run":
        return [own]
    if source == "other_run":
        return [r for r in recordings if r.subject == own.subject and r != own]
    return [r for r in recordings if r.subject != own.subject]


def _order(frames: Frames) -> tuple[str, ...]:
    rows = frames[BRAIN_PATTERNS.name].sort("unit_index")
    return tuple(rows["unit"].unique(maintain_order=True))


def _in_order(patterns: pl.DataFrame, order: Sequence[str]) -> FloatArray:
    """The recording's [N, N] matrix moved into ``order``, NaN for units it lacks."""
    own = tuple(patterns.sort("unit_index")["unit"])
    (matrix,) = pattern_matrices(patterns, own).values()
    place = {unit: i for i, unit in enumerate(own)}
    shared = [i for i, unit in enumerate(order) if unit in place]
    source = [place[order[i]] for i in shared]
    out = np.full((len(order), len(order)), np.nan)
    out[np.ix_(shared, shared)] = matrix[np.ix_(source, source)]
    return out


def _reliability(patterns: pl.DataFrame, order: Sequence[str]) -> FloatArray:
    by_unit = dict(zip(patterns["unit"], patterns["split_half_reliability"], strict=True))
    return np.array([by_unit.get(unit) for unit in order], dtype=np.float64)


def _mean(arrays: Sequence[FloatArray]) -> FloatArray:
    """Mean over arrays of the entries that are there."""
    stacked = np.stack(arrays)
    finite = np.isfinite(stacked)
    count = finite.sum(axis=0)
    total = np.where(finite, stacked, 0.0).sum(axis=0)
    mean: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def pattern_matrices(patterns: pl.DataFrame, order: tuple[str, ...]) -> dict[str, FloatArray]:
    """Matrices [N, N] by measure from a patterns table, rows in the given unit order."""
    matrices = {}
    for (alignment,), rows in patterns.group_by("alignment", maintain_order=True):
        by_unit = dict(zip(rows["unit"], rows["pattern"], strict=True))
        matrices[str(alignment)] = np.array(
            [by_unit[unit].to_list() for unit in order], dtype=np.float64
        )
    return matrices
