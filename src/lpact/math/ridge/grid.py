"""What a readout chooses from, and at which level it chooses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, TypeAlias

Level: TypeAlias = Literal["target", "group", "shared"]
Metric: TypeAlias = Literal["r2", "pearson", "spearman"]

LEVELS: tuple[Level, ...] = ("shared", "group", "target")
"""From the coarsest pool of targets to the finest."""

SETTINGS = ("lag", "components", "alpha")
"""Everything that is chosen, in the order in which ties are broken."""


@dataclass(frozen=True)
class Selection:
    """For whom each setting is chosen: every target by itself, groups of targets, or all of them together.

    Settings are chosen from the coarsest level to the finest. The score of a value is pooled, the mean over the
    targets that share the choice. ``jointly``: of the best score that the settings still open can reach, so that the
    result is the best one that the levels allow. ``separately``: of the mean score over the settings still open.

    Attributes
    ----------
    groups
        Group of every target, where a level is ``"group"``.
    """

    lag: Level = "target"
    components: Level = "target"
    alpha: Level = "target"
    groups: tuple[int, ...] | None = None
    how: Literal["jointly", "separately"] = "jointly"

    def __post_init__(self) -> None:
        unknown = [level for level in self.levels if level not in LEVELS]
        if unknown:
            raise ValueError(f"unknown level '{unknown[0]}'; known: {', '.join(LEVELS)}")
        if self.how not in ("jointly", "separately"):
            raise ValueError(f"unknown way to select '{self.how}'; known: jointly, separately")
        if ("group" in self.levels) != (self.groups is not None):
            raise ValueError("groups must be given where a level is 'group', and only there")
        if self.groups is not None:
            object.__setattr__(self, "groups", tuple(self.groups))

    @property
    def levels(self) -> tuple[Level, Level, Level]:
        """Level of lag, components and penalty."""
        return self.lag, self.components, self.alpha

    @property
    def alone(self) -> bool:
        """Whether every target chooses everything by itself."""
        return self.levels == ("target", "target", "target")


def _several(values: Any, name: str) -> list[Any]:
    """A list of one value or more."""
    try:
        listed = list(values)
    except TypeError:
        listed = []
    if not listed:
        raise ValueError(f"{name} must be a list of one value at least, got {values!r}")
    return listed


PER_TARGET = Selection()
SHARED = Selection("shared", "shared", "shared")


@dataclass(frozen=True)
class RidgeGrid:
    """Candidate settings and how they are compared on validation blocks.

    Attributes
    ----------
    alphas
        Ridge penalties, positive, on the sum of squares of standardised features' weights.
    components
        Numbers of principal components, 0 for all features.
    metric
        Validation score by which settings are chosen.
    selection
        For whom they are chosen.
    """

    alphas: tuple[float, ...]
    components: tuple[int, ...] = (0,)
    metric: Metric = "r2"
    selection: Selection = PER_TARGET

    def __post_init__(self) -> None:
        alphas = tuple(float(a) for a in _several(self.alphas, "alphas"))
        if not all(math.isfinite(a) and a > 0 for a in alphas):
            raise ValueError(f"alphas must be positive and finite, got {alphas}")
        components = _several(self.components, "components")
        if not all(isinstance(k, Integral) and int(k) >= 0 for k in components):
            raise ValueError(
                f"components must be whole numbers, 0 for all features, got {tuple(components)}"
            )
        object.__setattr__(self, "alphas", alphas)
        object.__setattr__(self, "components", tuple(int(k) for k in components))
        if not isinstance(self.selection, Selection):
            raise ValueError(f"selection must be a Selection, got {self.selection!r}")
        if self.metric not in ("r2", "pearson", "spearman"):
            raise ValueError(f"unknown metric '{self.metric}'; known: r2, pearson, spearman")
