"""What positive controls share: measured patterns of a dataset, shuffled unit orders, and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from lpact.analyses.lpact.levels.pairing import HasUnits
from lpact.analyses.lpact.levels.profiles.similarity import ProfileSimilarity
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.datasets.base import RecordingId
from lpact.math.scores import average_ranks
from lpact.math.types import FloatArray, IntArray

PRIMARY = "primary"
ROUNDING = 1e-12
"""A shuffled similarity within this distance of the real one counts as equal."""


@dataclass(frozen=True)
class BrainProfiles:
    """Measured patterns of one recording: [N, N] by alignment measure, and each unit's split-half reliability [N]."""

    id: RecordingId
    comparable: bool
    unit_ids: tuple[str, ...]
    matrices: dict[str, FloatArray]
    reliability: dict[str, FloatArray]

    @cached_property
    def unit_index(self) -> dict[str, int]:
        """Place of every unit."""
        return {unit: i for i, unit in enumerate(self.unit_ids)}


def read_profiles(patterns: pl.DataFrame, recordings: Sequence[HasUnits]) -> list[BrainProfiles]:
    """Patterns of a dataset's recordings, from its rows of ``relational/brain_alignment_patterns``."""
    profiles = []
    for recording in recordings:
        own = recording.id
        rows = patterns.filter(subject=own.subject, session=own.session, run=own.run)
        units: tuple[str, ...] = ()
        matrices, reliability = {}, {}
        for (alignment,), part in rows.sort("unit_index").group_by(
            "alignment", maintain_order=True
        ):
            units = tuple(part["unit"])
            matrices[str(alignment)] = np.array(part["pattern"].to_list(), dtype=np.float64)
            reliability[str(alignment)] = part["split_half_reliability"].to_numpy().astype(float)
        profiles.append(BrainProfiles(own, recording.comparable, units, matrices, reliability))
    return profiles


def unit_orders(n_units: int, n_orders: int, rng: np.random.Generator) -> IntArray:
    """Random orders of the other units of a pattern, [n_orders, n_units − 1]."""
    return np.stack([rng.permutation(n_units - 1) for _ in range(n_orders)])


def shuffled_similarities(
    profile: ProfileSimilarity, target: FloatArray, source: FloatArray, orders: IntArray
) -> FloatArray:
    """Similarity of the target's patterns with the source's in shuffled unit order.

    Parameters
    ----------
    profile
        Similarity of two patterns.
    target, source
        Patterns of the same units, [N, N]; a unit's own entry is ignored.
    orders
        [P, N − 1]: every pattern's other entries are reordered so.

    Returns
    -------
    s
        [P, N]; NaN where the similarity is undefined.
    """
    a, b = _others(target), _others(source)
    if profile.name in _STANDARDISED:
        a, b = (_STANDARDISED[profile.name](x) for x in (a, b))
        if np.isfinite(a).all() and np.isfinite(b).all():
            # A reordered pattern has the same mean and length: one product an order is enough.
            return np.stack([np.einsum("ij,ij->i", a, b[:, order]) for order in orders])
        b = _others(source)
    return np.stack([profile.compare_pairs(target, _whole(b[:, order])) for order in orders])


def reordered_means(
    profile: ProfileSimilarity, target: FloatArray, source: FloatArray, orders: IntArray
) -> FloatArray:
    """Mean similarity over units with the source's whole units, rows and columns, in other orders.

    ``target`` and ``source`` are [N, N], a unit's own entry is ignored; ``orders`` is [P, N]: the target's unit i meets
    the source's unit ``orders[p, i]``. Returns [P]; units without a similarity do not enter.
    """
    if profile.name in _STANDARDISED:
        a, b = (_STANDARDISED[profile.name](_others(x)) for x in (target, source))
        if np.isfinite(a).all() and np.isfinite(b).all():
            a, b = (np.nan_to_num(_whole(x)) for x in (a, b))
            return np.array([np.vdot(a, b[np.ix_(o, o)]) / len(a) for o in orders])
    reordered = (profile.compare_pairs(target, source[np.ix_(o, o)]) for o in orders)
    return np.array([mean_of_finite(similarity) for similarity in reordered], dtype=np.float64)


def _others(matrix: FloatArray) -> FloatArray:
    """Rows without their own entry, [N, N − 1]."""
    n = len(matrix)
    kept: FloatArray = matrix[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    return kept


def _whole(others: FloatArray) -> FloatArray:
    """The inverse of `_others`, NaN at a unit's own entry."""
    n = len(others)
    matrix = np.full((n, n), np.nan)
    matrix[~np.eye(n, dtype=bool)] = others.ravel()
    return matrix


def _unit_length(rows: FloatArray) -> FloatArray:
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    unit: FloatArray = np.divide(rows, length, out=np.full(rows.shape, np.nan), where=length > 0)
    return unit


def _centred(rows: FloatArray) -> FloatArray:
    constant = np.ptp(rows, axis=1, keepdims=True) == 0
    centred = rows - rows.mean(axis=1, keepdims=True)
    return _unit_length(np.where(constant, np.nan, centred))


def _ranked(rows: FloatArray) -> FloatArray:
    return _centred(average_ranks(rows))


_STANDARDISED = {"pearson": _centred, "spearman": _ranked, "cosine": _unit_length}
"""Similarities that are products of standardised patterns."""


def mean_of_finite(values: FloatArray) -> FloatArray:
    """Mean over the first axis of what is finite; NaN where nothing is."""
    finite = np.isfinite(values)
    count = finite.sum(axis=0)
    total = np.where(finite, values, 0.0).sum(axis=0)
    mean: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def roles(feasibility: pl.DataFrame) -> dict[str, str]:
    """Role of every dataset after the audit, from ``audits/lpact_evidence_feasibility``."""
    table = feasibility.select(EVIDENCE_FEASIBILITY.key[0], "role")
    return {str(dataset): str(role) for dataset, role in table.iter_rows()}


def of_role(role: str) -> str:
    """What a sentence on a dataset that is not primary begins with."""
    return "" if role == PRIMARY else f"{role.replace('_', ' ')} dataset: "
