"""Measured patterns of a dataset, compared in the right and in shuffled unit order.

`profile_order` tests whether a profile similarity is sensitive to the order of units at all: a unit's pattern is
compared with itself, in the right and in shuffled unit order. Correlations fall to about zero. The cosine of two
positive patterns hardly falls, whatever their order: a model can then come near the ceiling without any resemblance. So
a similarity passes if a shuffled pattern stays below ``min_ceiling_fraction`` of the right one, as the ceiling gate
requires of a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.pairing import HasUnits
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES, ProfileSimilarity
from lpact.analyses.lpact.tables.assay import PROFILE_ORDER
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.codes import Reason
from lpact.datasets.base import RecordingId
from lpact.math.scores import average_ranks
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray, IntArray
from lpact.store import frame, validate
from lpact.wording import number

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
        """Index of every unit."""
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
    """Similarity of the target's patterns with the source's in shuffled unit order, [P, N]; NaN if undefined.

    ``target`` and ``source`` are patterns of the same units, [N, N]; a unit's own entry is ignored. ``orders`` is
    [P, N − 1]: the new order of every pattern's other entries.
    """
    a, b = _others(target), _others(source)
    if profile.name in _STANDARDISED:
        a, b = (_STANDARDISED[profile.name](x) for x in (a, b))
        if np.isfinite(a).all() and np.isfinite(b).all():
            # A reordered pattern has the same mean and length: one product per order is enough.
            return np.stack([np.einsum("ij,ij->i", a, b[:, order]) for order in orders])
        b = _others(source)
    return np.stack([profile.compare_pairs(target, _whole(b[:, order])) for order in orders])


def reordered_means(
    profile: ProfileSimilarity, target: FloatArray, source: FloatArray, orders: IntArray
) -> FloatArray:
    """Mean similarity over units with the source's whole units, rows and columns, in other orders.

    ``target`` and ``source`` are [N, N], a unit's own entry is ignored; ``orders`` is [P, N]: the target's unit i is
    compared with the source's unit ``orders[p, i]``. Returns [P]; units without a similarity are left out.
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
    """Mean over the first axis of the finite values; NaN if there are none."""
    finite = np.isfinite(values)
    count = finite.sum(axis=0)
    total = np.where(finite, values, 0.0).sum(axis=0)
    mean: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def roles(feasibility: pl.DataFrame) -> dict[str, str]:
    """Role of every dataset after the audit, from ``audits/lpact_evidence_feasibility``."""
    return dict(feasibility.select(EVIDENCE_FEASIBILITY.key[0], "role").iter_rows())


def of_role(role: str) -> str:
    """Prefix of a sentence about a dataset that is not primary."""
    return "" if role == "primary" else f"{role.replace('_', ' ')} dataset: "


def most_frequent_reason(reasons: Iterable[str]) -> Reason:
    """The reason of most rows; for a dataset without rows, that it has no recording."""
    given = list(reasons)
    if not given:
        return Reason.DATASET_HAS_NO_RECORDING
    return min(Reason, key=lambda reason: (-given.count(reason.value), reason.value))


# --- Sensitivity to unit order ---------------------------------------------------------------------


def profile_order(
    config: LPactConfig, dataset: str, role: str, brains: Sequence[BrainProfiles]
) -> pl.DataFrame:
    """One row per measure and profile similarity, over the units of all recordings."""
    usable = [b for b in brains if len(b.unit_ids) >= config.relational.min_units]
    why_none = Reason.UNDEFINED_SCORE if usable else Reason.TOO_FEW_UNITS
    rows = []
    for alignment in config.relational.alignments:
        for profile in config.relational.profiles:
            found = [_compare(config, dataset, brain, alignment, profile) for brain in usable]
            pooled = np.concatenate([np.empty((2, 0)), *found], axis=1)
            right, shuffled = pooled[:, np.isfinite(pooled).all(axis=0)]
            reason = Reason.OK if right.size else why_none
            if not brains:
                reason = Reason.DATASET_HAS_NO_RECORDING
            rows.append(
                {
                    "dataset": dataset,
                    "role": role,
                    "alignment": alignment,
                    "profile": profile,
                    "n_recordings": len(usable),
                    **_order_summary(config, role, profile, right, shuffled, reason),
                }
            )
    return validate(frame(PROFILE_ORDER, rows), PROFILE_ORDER)


def _compare(
    config: LPactConfig, dataset: str, brain: BrainProfiles, alignment: str, name: str
) -> FloatArray:
    """Similarity of every unit's pattern with itself: right order, and mean over shuffled orders; [2, N]."""
    rng = keyed_rng(config.seed, "profile order", dataset, str(brain.id))
    orders = unit_orders(len(brain.unit_ids), config.assay.unit_permutations, rng)
    profile, matrix = PROFILES.build(name), brain.matrices[alignment]
    shuffled = shuffled_similarities(profile, matrix, matrix, orders)
    return np.stack([profile.compare_pairs(matrix, matrix), mean_of_finite(shuffled)])


def _order_summary(
    config: LPactConfig,
    role: str,
    profile: str,
    right: FloatArray,
    shuffled: FloatArray,
    reason: Reason,
) -> dict[str, object]:
    numbers: dict[str, float | None] = dict.fromkeys(
        ("median_similarity", "median_shuffled", "median_delta", "min_delta")
    )
    passed = False
    sentence = f"the order of units cannot be tested with {profile}: {reason.explanation}"
    if right.size:
        delta, fraction = right - shuffled, config.gates.min_ceiling_fraction
        typical, typical_shuffled = float(np.median(right)), float(np.median(shuffled))
        passed = typical_shuffled < fraction * typical
        numbers = {
            "median_similarity": typical,
            "median_shuffled": typical_shuffled,
            "median_delta": float(np.median(delta)),
            "min_delta": float(delta.min()),
        }
        similar = (
            f"a shuffled pattern has a similarity of {number(typical_shuffled)} with the right one"
        )
        sentence = f"{profile} is sensitive to the order of units: {similar}."
        if not passed:
            sentence = (
                f"{profile} is hardly sensitive to the order of units: {similar}, at least "
                f"{number(fraction)} of the ceiling that the ceiling gate requires."
            )
    return {
        "n_rows": right.size,
        **numbers,
        "gate_pass": passed,
        "interpretation": of_role(role) + sentence,
        "reason": reason.value,
    }
