"""Alignment measures a(φ, u): the same code for a model's features and for another brain unit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from lpact.math.ridge import Compute, RidgeGrid
from lpact.math.splits import BlockedFolds, contiguous_folds
from lpact.math.types import FloatArray, IntArray
from lpact.registry import Plugin, Registry


@dataclass(frozen=True)
class Brain:
    """Responses that a measure relates to: [n_lags, n_events, n_units], with the readout's folds, grid and device."""

    responses: FloatArray
    reference_lag: int
    folds: BlockedFolds
    grid: RidgeGrid
    compute: Compute = field(default_factory=Compute)

    @property
    def reference(self) -> FloatArray:
        """Responses at the reference lag, [n_events, n_units]."""
        reference: FloatArray = self.responses[self.reference_lag]
        return reference

    def take(self, rows: IntArray) -> Brain:
        """The same units over some of the events, with as many contiguous folds."""
        folds = contiguous_folds(len(rows), self.folds.n_blocks, gap=self.folds.gap)
        return replace(self, responses=self.responses[:, rows], folds=folds)


class Measure(Plugin, ABC):
    """A registered alignment measure.

    ``from_readout`` says that its value for a model is the held-out Pearson score of level 1, which is then taken
    from there instead of being fitted again.
    """

    from_readout: ClassVar[bool] = False

    @abstractmethod
    def to_units(self, features: FloatArray, brain: Brain) -> FloatArray:
        """Alignment of ``features`` [n_events, p] with every unit, [n_units]; NaN where undefined."""

    def between_units(self, brain: Brain) -> FloatArray:
        """Alignment of every unit (row) with every unit (column), [n_units, n_units]."""
        reference = brain.reference
        return np.stack(
            [self.to_units(reference[:, [i]], brain) for i in range(reference.shape[1])]
        )


class ProfileSimilarity(Plugin, ABC):
    """A registered similarity ρ between a brain unit's pattern and a model's pattern."""

    @abstractmethod
    def compare(self, brain: FloatArray, patterns: FloatArray) -> FloatArray:
        """Similarity of ``brain`` [N, N] row i with every pattern [..., N], both without entry i: [..., N]."""

    def compare_pairs(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Similarity of the units' patterns in ``a`` and ``b``, both [N, N], unit by unit: [N]."""
        return np.array([self.compare(a, pattern)[i] for i, pattern in enumerate(b)])


MEASURES: Registry[Measure] = Registry(
    "measure",
    "lpact.analyses.lpact.levels.measure:Measure",
    package="lpact.analyses.lpact.levels.measures",
)
PROFILES: Registry[ProfileSimilarity] = Registry(
    "profile",
    "lpact.analyses.lpact.levels.measure:ProfileSimilarity",
    package="lpact.analyses.lpact.levels.profile_similarities",
)
