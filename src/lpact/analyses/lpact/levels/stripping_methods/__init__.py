"""Stripping methods remove one mechanism from features, fitted on training rows alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from lpact.analyses.lpact.config import LPactConfig
from lpact.features.mechanisms import Missing
from lpact.math.types import FloatArray, IntArray
from lpact.registry import Plugin, Registry

BUILT_IN = {
    "context_reset": "replacing:ContextReset",
    "feature_residualization": "linear:FeatureResidualization",
    "feature_zeroing": "linear:FeatureZeroing",
    "layer_ablation": "replacing:LayerAblation",
    "mechanism_projection_removal": "linear:MechanismProjectionRemoval",
    "reversed_context": "replacing:ReversedContext",
}


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
        """The inputs at each delay, where features at ``n_delays`` are side by side."""
        if n_delays == 1:
            return (self,)

        def at(j: int) -> StripInputs:
            def block(values: FloatArray) -> FloatArray:
                width = values.shape[1] // n_delays
                return values[:, j * width : (j + 1) * width]

            load = self.load
            return replace(self, features=block(self.features), load=lambda *of: block(load(*of)))

        return tuple(map(at, range(n_delays)))


class StrippingMethod(Plugin, ABC):
    """A registered stripping method. It keeps the shape of the features.

    ``uses_mechanism`` is False where the result does not depend on which mechanism is stripped.
    """

    uses_mechanism: ClassVar[bool] = True
    linear: ClassVar[bool] = False
    """Whether `map_from_products` says the same as `strip`, and `strip_instead` is `strip`."""

    def contexts(self) -> tuple[str, ...]:
        """Return the contexts of features that it loads in addition to the real ones."""
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
        """Strip another ``scalar`` in the mechanism's place, doing as much damage."""
        return self.strip(inputs, scalar, train)

    @abstractmethod
    def strip(self, inputs: StripInputs, mechanism: FloatArray, train: IntArray) -> FloatArray:
        """Return stripped features [n_events, p]; parameters come from the rows ``train`` alone.

        Raises `DegenerateStrip` where the mechanism has no direction in the training features.
        """

    def map_from_products(self, gram: FloatArray, cross: FloatArray, power: FloatArray) -> FloatArray:
        """The strip of a scalar s as a map [S, p + 1, p] of the columns [Z, s], without constants.

        It is fitted on products around the training mean: ZᵀZ [S, p, p], Zᵀs [S, p] and ‖s‖² [S].
        """
        raise NotImplementedError(f"'{self.name}' is not linear")


ROUNDING = 1e-10
"""Share of a column's spread below which what a strip leaves is rounding, not signal."""


def without_rounding(stripped: FloatArray, features: FloatArray, train: IntArray) -> FloatArray:
    """Silence columns of which a strip left only rounding on the training rows.

    A readout standardises its columns, so rounding noise, which can follow the mechanism, would come back at full size.
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


STRIPPINGS: Registry[StrippingMethod] = Registry(
    "stripping",
    "lpact.analyses.lpact.levels.stripping_methods:StrippingMethod",
    package="lpact.analyses.lpact.levels.stripping_methods",
)


def build_strippings(config: LPactConfig) -> dict[str, StrippingMethod]:
    """Instances of the study's stripping methods, by name."""
    options = config.stripping.options
    return {
        name: STRIPPINGS.build(name, options.get(name), where="stripping.methods") for name in config.stripping.methods
    }
