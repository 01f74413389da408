"""Banded ridges on subsets of feature spaces, their squared errors, and what follows from them for every unit.

Out-of-sample R² of a unit is 1 − Σ(y − ŷ)² / Σ(y − ȳ)², over the test rows of all outer folds, ȳ the mean of the rows
that the fold trains on. Adding features can lower it. A *pool* is a set of subsets that may stand for one model; one of
them is chosen as the *sub-model*: all features (``none``), the subset with the best validation score for the unit and
outer fold (``validation``), or the one with the best test score, over the deciding units (``best_of_network``) or for
the unit (``best_of_unit``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeVar

import numpy as np
from scipy import special

from lpact.analyses.deconstruct.rows import Rows
from lpact.math.columns import mean_of_finite
from lpact.math.ridge import BandedGrid, BandedSubsets, Compute
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.stats import benjamini_hochberg

NONE, VALIDATION, BEST_OF_NETWORK, BEST_OF_UNIT = SUB_MODELS = (
    "none",
    "validation",
    "best_of_network",
    "best_of_unit",
)
OPTIMISTIC = frozenset({BEST_OF_NETWORK, BEST_OF_UNIT})
"""Sub-models that are chosen by test scores."""

K = TypeVar("K", bound=Hashable)
Subset = tuple[int, ...]
Bands = Callable[[Hashable], Sequence[FloatArray]]
"""Feature spaces, rows in the order of the recording, for one choice of what varies between outer folds."""


def nonempty_subsets(n: int) -> list[Subset]:
    """All subsets of n elements but the empty one, the smallest first."""
    return [own for size in range(1, n + 1) for own in combinations(range(n), size)]


@dataclass(frozen=True, eq=False)
class Fit:
    """Subsets fitted on the same rows.

    ``parts`` are fits that each predict some outer folds: choices such as the layer may differ between outer folds.
    """

    rows: Rows
    subsets: tuple[Subset, ...]
    parts: tuple[BandedSubsets, ...]

    @cached_property
    def validation(self) -> FloatArray:
        """Best validation score of every subset, outer fold and unit, [S, F, t]."""
        out = np.full_like(self.parts[0].validation, np.nan)
        for part in self.parts:
            out[:, part.outer] = part.validation[:, part.outer]
        return out

    def errors(self) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield units, squared errors around the training mean [n, t] and those of every subset [S, n, t]."""
        for chunks in zip(*(part.predictions() for part in self.parts), strict=True):
            units, observed, baseline, predicted = chunks[0]
            for part, (_, own, mean, values) in zip(self.parts[1:], chunks[1:], strict=True):
                for fold in np.flatnonzero(part.outer).tolist():
                    rows = self.rows.folds.rows(fold)
                    observed[rows], baseline[rows] = own[rows], mean[rows]
                    predicted[:, rows] = values[:, rows]
            yield units, (observed - baseline) ** 2, (observed - predicted) ** 2

    @cached_property
    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Sums of the errors over every outer fold: around the mean [F, t], and of every subset [S, F, t]."""
        n_folds, n_units = self.rows.folds.n_blocks, self.rows.responses.shape[1]
        spread = np.empty((n_folds, n_units))
        errors = np.empty((len(self.subsets), n_folds, n_units))
        starts = self.rows.folds.starts
        for units, around, own in self.errors():
            spread[:, units] = np.add.reduceat(around, starts, axis=0)
            errors[:, :, units] = np.add.reduceat(own, starts, axis=1)
        return spread, errors

    def r2(self, errors: FloatArray) -> FloatArray:
        """Out-of-sample R² from sums over folds [..., F, t] → [..., t]; NaN for units that do not vary."""
        total = self.sums[0].sum(axis=0)
        r2: FloatArray = 1.0 - errors.sum(axis=-2) / np.where(total > 0.0, total, np.nan)
        return r2

    @cached_property
    def scores(self) -> FloatArray:
        """R² of every subset and unit, [S, t]."""
        return self.r2(self.sums[1])

    def choice(self, subsets: Sequence[int], sub_model: str) -> IntArray:
        """Index of the subset that represents a pool in every outer fold and unit, [F, t]."""
        spread, errors = self.sums
        pool = np.asarray(subsets)
        if sub_model == NONE:
            largest = max(subsets, key=lambda i: len(self.subsets[i]))
            return np.full(spread.shape, largest)
        if sub_model == VALIDATION:
            found = np.nan_to_num(self.validation[pool], nan=-np.inf)
            return np.asarray(pool[found.argmax(axis=0)])
        if sub_model == BEST_OF_UNIT:
            best = errors[pool].sum(axis=1).argmin(axis=0)
            return np.broadcast_to(pool[best], spread.shape)
        means = np.nan_to_num(self.rows.mean(self.scores[pool]), nan=-np.inf)
        return np.full(spread.shape, pool[means.argmax()])

    def chosen_scores(self, choice: IntArray) -> FloatArray:
        """R² of every unit with the chosen subsets, [t]."""
        return self.r2(_taken(self.sums[1], choice))


def fit(
    rows: Rows,
    bands: Bands,
    variants: Sequence[Hashable],
    subsets: Sequence[Subset],
    grid: BandedGrid,
    compute: Compute,
) -> Fit:
    """Fit subsets of feature spaces; ``variants`` names the choice for each outer fold."""
    parts = []
    for variant in dict.fromkeys(variants):
        spaces = [values[rows.order] for values in bands(variant)]
        outer = np.array([own == variant for own in variants])
        responses = rows.responses[None]
        parts.append(BandedSubsets(spaces, responses, rows.folds, grid, subsets, outer=outer, compute=compute))
    return Fit(rows, tuple(subsets), tuple(parts))


# --- tests ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """P-values of every unit by test, and the gain of every recording in each block, [recordings, blocks]."""

    p: Mapping[str, FloatArray]
    gain: FloatArray


EVENTS, BLOCKS, SIGNS = TESTS = ("events", "blocks", "signs")


def compare(
    fitted: Fit, choices: Mapping[K, tuple[IntArray | None, IntArray]], signs: FloatArray
) -> dict[K, Comparison]:
    """Test whether the second choice of each pair has smaller errors than the first; None is the training mean.

    ``signs`` are those of the blocks, [draws, blocks]. Where both choices make the same fit (the larger one drops what
    it adds), rounding is no difference.
    """
    tolerance = fitted.parts[0].engine.compute.tie_tolerance
    rows, n_units = fitted.rows, fitted.rows.responses.shape[1]
    n_blocks = len(rows.block_names)
    sizes = np.bincount(rows.blocks, minlength=n_blocks)
    fold = np.repeat(np.arange(rows.folds.n_blocks), rows.folds.test_sizes())
    p = {key: {test: np.empty(n_units) for test in TESTS} for key in choices}
    gains = {key: np.empty((n_blocks, n_units)) for key in choices}
    for units, around, errors in fitted.errors():
        scale = around.mean(axis=0)
        scale = np.where(scale > 0.0, scale, np.nan)
        for key, (without, with_) in choices.items():
            first = around if without is None else _taken(errors, without[fold][:, units])
            gain = first - _taken(errors, with_[fold][:, units])
            gain[np.abs(gain) <= tolerance * scale] = 0.0
            by_block = np.zeros((n_blocks, gain.shape[1]))
            np.add.at(by_block, rows.blocks, gain)
            by_block /= sizes[:, None]
            p[key][EVENTS][units] = paired_p_values(gain)
            p[key][BLOCKS][units] = paired_p_values(by_block)
            p[key][SIGNS][units] = sign_p_values(by_block, signs)
            gains[key][:, units] = by_block / scale
    own = [np.flatnonzero(rows.deciding[u]) + u.start for u in rows.units]
    return {key: Comparison(p[key], np.stack([mean_of_finite(gains[key][:, u], -1) for u in own])) for key in choices}


def _taken(errors: FloatArray, choice: IntArray) -> FloatArray:
    taken: FloatArray = np.take_along_axis(errors, choice[None], axis=0)[0]
    return taken


def paired_p_values(gain: FloatArray) -> FloatArray:
    """One-sided paired t-tests of differences [n, t] above 0; 1 where they do not vary."""
    n = len(gain)
    spread = gain.std(axis=0, ddof=1) if n > 1 else np.zeros(gain.shape[1])
    t = gain.mean(axis=0) * np.sqrt(n) / np.where(spread > 0.0, spread, np.nan)
    return np.where(np.isfinite(t), special.stdtr(max(n - 1, 1), -t), 1.0)


def sign_p_values(gain: FloatArray, signs: FloatArray) -> FloatArray:
    """P-values of sums of differences [blocks, t] above 0 under random signs [draws, blocks]."""
    observed = gain.sum(axis=0)
    slack = 1e-12 * np.abs(gain).sum(axis=0)
    reaching = (signs @ gain >= observed - slack).sum(axis=0)
    p: FloatArray = (1.0 + reaching) / (1.0 + len(signs))
    return p


def q_values(p: FloatArray, regions: Sequence[str]) -> FloatArray:
    """Benjamini–Hochberg among the units of each region (network) of one recording."""
    names = np.array(regions)
    q = np.full(p.shape, np.nan)
    for region in dict.fromkeys(regions):
        q[names == region] = benjamini_hochberg(p[names == region])
    return q


def correlated(first: FloatArray, second: FloatArray) -> float | None:
    """Pearson correlation of finite pairs; None for fewer than 3, or where one does not vary."""
    kept: BoolArray = np.isfinite(first) & np.isfinite(second)
    if kept.sum() < 3 or min(np.ptp(first[kept]), np.ptp(second[kept])) == 0.0:
        return None
    return float(np.corrcoef(first[kept], second[kept])[0, 1])
