"""What a stripping method is: features with one mechanism taken out, fitted on training rows only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lpact.controls.base import Unavailable
from lpact.math._types import FloatArray, IntArray
from lpact.registry import Plugin, Registry


@dataclass(frozen=True)
class StripInputs:
    """What a method may use: the context's features [n_events, p] and other features of the same model.

    ``offered`` and ``load`` are those of the model on the event grid: ``load(layer, context, draw)``.
    """

    features: FloatArray
    layer: int
    offered: dict[tuple[int, str], int]
    load: Callable[[int, str, int], FloatArray]


class StrippingMethod(Plugin, ABC):
    """A registered stripping method. It keeps the shape of the features.

    ``uses_mechanism`` is False where the result does not depend on which mechanism is stripped. ``fitted`` is False
    where nothing is estimated from training rows.
    """

    uses_mechanism: ClassVar[bool] = True
    fitted: ClassVar[bool] = True

    def unavailable(self, inputs: StripInputs) -> Unavailable | None:  # noqa: ARG002
        """Return why this method cannot be used on ``inputs``, or None."""
        return None

    @abstractmethod
    def strip(self, inputs: StripInputs, mechanism: FloatArray, train: IntArray) -> FloatArray:
        """Return stripped features [n_events, p]; parameters come from the rows ``train`` alone.

        Raises `DegenerateStrip` where the mechanism has no direction in the training features.
        """


class DegenerateStrip(Exception):
    """The mechanism cannot be located in the features of this training set."""


STRIPPINGS: Registry[StrippingMethod] = Registry(
    "stripping",
    StrippingMethod,  # type: ignore[type-abstract]
    package="lpact.levels.strippings",
)


@dataclass(frozen=True)
class RandomDirection:
    """A scalar along a random direction of the features, with the mechanism's share of their variance.

    In training rows, the direction is w = Zᵀ g for Gaussian weights g over events, so that it follows the features'
    own covariance; its scalar Zw is diluted with independent noise until it accounts for the same share of feature
    variance, Σ_j cov(z_j, ·)² / var(·), as the mechanism does. Where no random direction accounts for that much, it is
    left undiluted.
    """

    weights: FloatArray
    noise: FloatArray

    @classmethod
    def draw(cls, n_events: int, rng: np.random.Generator) -> RandomDirection:
        """Draw the event weights and the diluting noise."""
        return cls(rng.standard_normal(n_events), rng.standard_normal(n_events))

    def scalar(self, features: FloatArray, mechanism: FloatArray, train: IntArray) -> FloatArray:
        """The scalar for all events, with every parameter from the rows ``train``."""
        centre = features[train].mean(axis=0)
        z = features - centre
        direction = z[train].T @ self.weights[train]
        along = z @ direction
        spread = along[train].std()
        if not spread > 0:
            raise DegenerateStrip("the features do not vary on the training rows")
        along = along / spread
        wanted = _variance_share(z[train], mechanism[train])
        reached = _variance_share(z[train], along[train])
        dilution = np.sqrt(max(0.0, reached / wanted - 1.0)) if wanted > 0 else 0.0
        return along + dilution * self.noise


def _variance_share(z: FloatArray, scalar: FloatArray) -> float:
    """Feature variance that regressing every column on ``scalar`` accounts for; ``z`` is centred."""
    centred = scalar - scalar.mean()
    power = float(centred @ centred)
    if not power > 0:
        return 0.0
    covariances = z.T @ centred
    return float(covariances @ covariances) / power
