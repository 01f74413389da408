"""Severe controls: feature matrices built to predict the brain for the wrong reason."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from lpact.features.mechanisms import Missing
from lpact.math.surrogates import autocorrelation_time, segment_slices
from lpact.math.types import FloatArray, IntArray
from lpact.registry import Plugin, Registry


@dataclass(frozen=True)
class ControlInputs:
    """Everything that a control may use; never a neural response."""

    features: FloatArray
    """Real features on the event grid, [n_events, n_columns]."""
    sentence: IntArray
    story: IntArray
    """Sentence and story of each event, [n_events]."""
    layer: int
    """Layer of the real features."""
    offered: dict[tuple[int, str], int]
    """Available draws for each (layer, context): ``offered[(3, "untrained")] == 5``."""
    load: Callable[[int, str, int], FloatArray]
    """``load(layer, context, draw)`` returns other features of the same model on the same grid."""
    draws: int = 1
    """Draws of random controls that the study configures."""

    @cached_property
    def autocorrelation_time(self) -> int:
        """Autocorrelation time of the real features, in events."""
        return autocorrelation_time(self.features)


class SevereControl(Plugin, ABC):
    """A registered severe control."""

    random: ClassVar[bool] = True
    """Whether draws differ; the score of a random control is its mean over draws."""
    counted: ClassVar[bool] = True
    """Whether the ``paper`` gate profile counts it."""
    surrogate: ClassVar[bool] = False
    """Whether its draws carry no information about the stimulus, so that they are a null distribution. Other controls
    are rivals.
    """
    needs: ClassVar[str] = "features only"
    """What it needs, in words, for the reference and the audit."""

    def contexts(self) -> tuple[str, ...]:
        """Return the contexts of features that it loads in addition to the real ones."""
        return ()

    def unavailable(self, inputs: ControlInputs) -> Missing | None:  # noqa: ARG002
        """Return why this control cannot be made from ``inputs``, or None."""
        return None

    def n_draws(self, inputs: ControlInputs, configured: int) -> int:  # noqa: ARG002
        """Return how many draws there are: as configured if random, else one."""
        return configured if self.random else 1

    @abstractmethod
    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> FloatArray:
        """Return the control's features, [n_events, any number of columns]."""


def longest_story(inputs: ControlInputs) -> int:
    """Return the number of events of the longest story."""
    return max(int(rows.stop - rows.start) for rows in segment_slices(inputs.story))


RESERVED = ("real", "nuisance", "nuisance_plus_model")
"""Conditions that are not controls."""

CONTROLS: Registry[SevereControl] = Registry(
    "control", "lpact.controls.base:SevereControl", package="lpact.controls", reserved=RESERVED
)
