"""One test per summary of a brain in a model's place: do the units of two recordings belong together in this order?

Patterns of units are far from independent: where one factor moves all units, they are nearly one vector, and whether
most of them resemble their namesakes is one toss of a coin. So units are not counted here. The statistic is

    T = mean over pairs of recordings of the mean over units of ρ(b_i in the target, b_i in the source)

and its null is T with whole units in shuffled order, rows and columns of the patterns together (Mantel 1967):

    T_π = mean over pairs (s, t) of the mean over units i of ρ(b_{π_t(i)} in t over π_t, b_{π_s(i)} in s over π_s)

There is one order for each value of what a comparison varies (run, session or subject) and each set of shared units:
all pairs that meet it, and all measures and similarities, are shuffled alike. What pairs have in common stays in the
null, and the test is exact if the unit orders of different runs (sessions, subjects) are unrelated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lpact.analyses.lpact.assays.base import (
    ROUNDING,
    BrainProfiles,
    mean_of_finite,
    reordered_means,
)
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.datasets.base import RecordingId
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray, IntArray
from lpact.stats import draw_p_value

Place = tuple[str, str, str]
"""Comparison, alignment measure, profile similarity."""


@dataclass(frozen=True)
class OrderTest:
    """The statistic in the right order, and in shuffled ones, [P]."""

    statistic: float
    shuffled: FloatArray

    @property
    def n_orders(self) -> int:
        """Shuffled orders with a statistic."""
        return int(np.isfinite(self.shuffled).sum())

    @property
    def p_value(self) -> float | None:
        """P-value of the right order; a shuffled one that is equal but for rounding counts as reaching it."""
        p = draw_p_value(self.statistic - ROUNDING, self.shuffled)
        return p if np.isfinite(p) else None


def order_tests(
    config: LPactConfig,
    dataset: str,
    brains: Sequence[BrainProfiles],
    pairs: Mapping[str, Sequence[tuple[int, int]]],
) -> dict[Place, OrderTest]:
    """Tests of one dataset; ``pairs`` are places in ``brains`` by comparison, source first.

    A summary whose pairs share too few units, or have no similarity, has no test.
    """
    found: dict[Place, list[FloatArray]] = {}
    for comparison, chosen in pairs.items():
        for i, j in chosen:
            own = _pair(config, dataset, comparison, brains[i], brains[j])
            for (alignment, profile), means in own.items():
                found.setdefault((comparison, alignment, profile), []).append(means)
    over_pairs = {place: mean_of_finite(np.stack(means)) for place, means in found.items()}
    return {
        place: OrderTest(float(means[0]), means[1:])
        for place, means in over_pairs.items()
        if np.isfinite(means[0])
    }


def _pair(
    config: LPactConfig, dataset: str, comparison: str, source: BrainProfiles, target: BrainProfiles
) -> dict[tuple[str, str], FloatArray]:
    """Mean similarity over the units of one pair, by measure and similarity: in the right order, then shuffled."""
    shared = sorted(set(source.unit_ids) & set(target.unit_ids))
    if not shared or len(shared) < config.relational.min_units:
        return {}
    n_orders = config.assay.unit_permutations
    of_source, of_target = (
        whole_orders(config.seed, dataset, comparison, brain.id, shared, n_orders)
        for brain in (source, target)
    )
    # Only their relative order matters: the target's unit i meets the source's unit π_s(π_t⁻¹(i)).
    relative = np.take_along_axis(of_source, np.argsort(of_target, axis=1), axis=1)
    orders = np.concatenate([np.arange(len(shared))[None], relative])
    rows, source_rows = (np.array([b.unit_index[u] for u in shared]) for b in (target, source))
    means = {}
    for alignment in config.relational.alignments:
        a = target.matrices[alignment][np.ix_(rows, rows)]
        b = source.matrices[alignment][np.ix_(source_rows, source_rows)]
        for name in config.relational.profiles:
            means[alignment, name] = reordered_means(PROFILES.build(name), a, b, orders)
    return means


def whole_orders(
    seed: int,
    dataset: str,
    comparison: str,
    recording: RecordingId,
    units: Sequence[str],
    n_orders: int,
) -> IntArray:
    """Shuffled orders of units, [n_orders, N]: the same for all recordings that a comparison does not tell apart."""
    varied = {
        "run_to_run": recording.run,
        "session_to_session": recording.session,
        "subject_to_subject": recording.subject,
    }[comparison]
    rng = keyed_rng(seed, "brain as model, whole units", dataset, comparison, varied, *units)
    return np.stack([rng.permutation(len(units)) for _ in range(n_orders)])
