"""What a stripping method is: features with one mechanism taken out, fitted on training rows only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lpact.config import StudyConfig
from lpact.features.availability import Missing
from lpact.math.types import FloatArray, IntArray
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

    def at_delays(self, n_delays: int) -> tuple[StripInputs, ...]:
        """The same at each delay alone, where features at ``n_delays`` stand side by side."""
        if n_delays == 1:
            return (self,)
        return tuple(self._at_delay(j, n_delays) for j in range(n_delays))

    def _at_delay(self, j: int, n_delays: int) -> StripInputs:
        def block(values: FloatArray) -> FloatArray:
            width = values.shape[1] // n_delays
            return values[:, j * width : (j + 1) * width]

        def load(layer: int, context: str, draw: int) -> FloatArray:
            return block(self.load(layer, context, draw))

        return replace(self, features=block(self.features), load=load)


class StrippingMethod(Plugin, ABC):
    """A registered stripping method. It keeps the shape of the features.

    ``uses_mechanism`` is False where the result does not depend on which mechanism is stripped.
    """

    uses_mechanism: ClassVar[bool] = True

    def contexts(self) -> tuple[str, ...]:
        """Return the contexts of features that it loads, beside the real ones."""
        return ()

    def unavailable(self, inputs: StripInputs) -> Missing | None:  # noqa: ARG002
        """Return why this method cannot be used on ``inputs``, or None."""
        return None

    def fitted(self, inputs: StripInputs) -> bool:  # noqa: ARG002
        """Return whether anything is estimated from training rows."""
        return True

    def strip_instead(
        self,
        inputs: StripInputs,
        scalar: FloatArray,
        mechanism: FloatArray,  # noqa: ARG002
        train: IntArray,
    ) -> FloatArray:
        """Strip another ``scalar`` in the mechanism's place, doing as much damage as the mechanism's strip would."""
        return self.strip(inputs, scalar, train)

    @abstractmethod
    def strip(self, inputs: StripInputs, mechanism: FloatArray, train: IntArray) -> FloatArray:
        """Return stripped features [n_events, p]; parameters come from the rows ``train`` alone.

        Raises `DegenerateStrip` where the mechanism has no direction in the training features.
        """


ROUNDING = 1e-10
"""Share of a column's spread below which what a strip leaves is rounding, not signal."""


def without_rounding(stripped: FloatArray, features: FloatArray, train: IntArray) -> FloatArray:
    """Silence columns of which a strip left nothing but rounding on the training rows.

    A readout standardises its columns, so that rounding noise, which can follow the mechanism, would come back at full
    size.
    """
    left, spread = stripped[train].std(axis=0), features[train].std(axis=0)
    empty = left <= ROUNDING * spread
    if not empty.any():
        return stripped
    out = stripped.copy()
    out[:, empty] = features[train][:, empty].mean(axis=0)
    return out


class DegenerateStrip(Exception):
    """The mechanism cannot be located in the features of this training set."""


def strip_delays(
    method: StrippingMethod,
    delays: Sequence[StripInputs],
    scalars: FloatArray,
    train: IntArray,
) -> FloatArray:
    """Return features from which the mechanism is stripped, at every delay the mechanism at that delay.

    ``delays`` are the inputs at each delay, ``scalars`` is [n_events, n_delays]; the result [n_events, n_delays · p].
    """
    return _side_by_side(
        [method.strip(inputs, m, train) for inputs, m in zip(delays, scalars.T, strict=True)]
    )


def strip_instead_delays(
    method: StrippingMethod,
    delays: Sequence[StripInputs],
    directions: Sequence[RandomDirection],
    scalars: FloatArray,
    train: IntArray,
) -> FloatArray:
    """Return features from which a random direction is stripped in the mechanism's place, at every delay.

    As with a mechanism, it is one direction in feature space, that of the first delay.
    """
    first = delays[0].features
    stripped = []
    for inputs, direction, m in zip(delays, directions, scalars.T, strict=True):
        other = direction.scalar(inputs.features, m, train, found_in=first)
        stripped.append(method.strip_instead(inputs, other, m, train))
    return _side_by_side(stripped)


def _side_by_side(blocks: Sequence[FloatArray]) -> FloatArray:
    return blocks[0] if len(blocks) == 1 else np.hstack(blocks)


STRIPPINGS: Registry[StrippingMethod] = Registry(
    "stripping",
    StrippingMethod,  # type: ignore[type-abstract]
    package="lpact.levels.strippings",
)


def build_strippings(config: StudyConfig) -> dict[str, StrippingMethod]:
    """Instances of the study's stripping methods, by name."""
    options = config.stripping.options
    return {
        name: STRIPPINGS.build(name, options.get(name), where="stripping.methods")
        for name in config.stripping.methods
    }


@dataclass(frozen=True)
class RandomDirection:
    """A scalar along a random direction of the features, with the mechanism's share of their variance.

    On training rows the direction is w = Zᵀ g for Gaussian weights g over events, so that it follows the features' own
    covariance. Its scalar s = Zw is diluted with independent noise e, s + τ e, until it accounts for as much feature
    variance there as the mechanism m does:

        ‖Zᵀ(s + τe)‖² / ‖s + τe‖² = ‖Zᵀm‖² / ‖m‖²     (Z, s, e, m centred on training rows)

    a quadratic in τ. A direction that accounts for less than the mechanism is left undiluted; where even noise accounts
    for more, the scalar is noise alone.
    """

    weights: FloatArray
    noise: FloatArray

    @classmethod
    def draw(cls, n_events: int, rng: np.random.Generator) -> RandomDirection:
        """Draw the event weights and the diluting noise."""
        return cls(rng.standard_normal(n_events), rng.standard_normal(n_events))

    @classmethod
    def draw_delays(
        cls, n_events: int, n_delays: int, rng: np.random.Generator
    ) -> tuple[RandomDirection, ...]:
        """Draw one direction for all delays, with noise of its own at each."""
        first = cls.draw(n_events, rng)
        more = (replace(first, noise=rng.standard_normal(n_events)) for _ in range(n_delays - 1))
        return (first, *more)

    def scalar(
        self,
        features: FloatArray,
        mechanism: FloatArray,
        train: IntArray,
        found_in: FloatArray | None = None,
    ) -> FloatArray:
        """The scalar for all events, with every parameter from the rows ``train``.

        The direction w is that of the features ``found_in``; None: of ``features`` themselves.
        """
        z = features - features[train].mean(axis=0)
        source = z[train]
        if found_in is not None and found_in is not features:
            source = found_in[train] - found_in[train].mean(axis=0)
        along = z @ (source.T @ self.weights[train])
        spread = along[train].std()
        if not spread > 0:
            raise DegenerateStrip("the features do not vary on the training rows")
        along = along / spread
        dilution = _dilution(z[train], along[train], self.noise[train], mechanism[train])
        return self.noise if np.isinf(dilution) else along + dilution * self.noise


def _dilution(z: FloatArray, along: FloatArray, noise: FloatArray, mechanism: FloatArray) -> float:
    """The τ ≥ 0 at which ``along + τ noise`` accounts for the mechanism's feature variance."""
    s, e, m = (v - v.mean() for v in (along, noise, mechanism))
    power = float(m @ m)
    if not power > 0:
        raise DegenerateStrip("the mechanism does not vary on the training rows")
    zs, ze, zm = z.T @ s, z.T @ e, z.T @ m
    wanted = float(zm @ zm) / power
    quadratic = float(ze @ ze) - wanted * float(e @ e)
    linear = 2.0 * (float(zs @ ze) - wanted * float(s @ e))
    constant = float(zs @ zs) - wanted * float(s @ s)
    if constant <= 0:
        return 0.0
    roots = np.roots([quadratic, linear, constant])
    usable = [float(r.real) for r in roots if abs(r.imag) < 1e-12 and r.real >= 0]
    return min(usable, default=float("inf"))
