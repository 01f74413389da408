"""Random features with the statistics of the real ones."""

from __future__ import annotations

import numpy as np

from lpact.codes import Reason
from lpact.controls.base import ControlInputs, SevereControl, longest_story
from lpact.features.mechanisms import Missing
from lpact.math.surrogates import matched_gaussian, phase_randomize_segments
from lpact.math.types import FloatArray

MIN_STORY_EVENTS = 4
"""Fewest events whose phases can be randomised: below, there is at most one free phase."""


class RandomMatchedDim(SevereControl):
    """Independent Gaussian features of the same shape.

    x'_ij = mean_j + sd_j z_ij with z standard normal, standardised so that the sample mean and
    standard deviation of every column equal the real ones. Constant columns stay constant.
    """

    name = "random_matched_dim"
    summary = "Gaussian features, same shape, column means and variances matched"
    surrogate = True

    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> FloatArray:  # noqa: ARG002
        """Return one set of Gaussian features."""
        return matched_gaussian(inputs.features, rng)


class RandomMatchedAutocorr(SevereControl):
    """Multivariate phase-randomised surrogate, made within each story.

    The Fourier phases of a story are rotated by random angles, the same for all columns: every auto- and cross-spectrum
    and every mean of the story is kept, its alignment with the words is lost. A story of one event does not change.
    """

    name = "random_matched_autocorr"
    summary = "phase-randomised within each story: auto- and cross-spectra kept, locking lost"
    surrogate = True
    needs = f"a story of at least {MIN_STORY_EVENTS} events"

    def unavailable(self, inputs: ControlInputs) -> Missing | None:
        """Return STORY_TOO_SHORT unless one story has enough events."""
        longest = longest_story(inputs)
        if longest >= MIN_STORY_EVENTS:
            return None
        return Missing(
            Reason.STORY_TOO_SHORT, f"the longest story has {longest} event(s); {MIN_STORY_EVENTS} are needed"
        )

    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> FloatArray:  # noqa: ARG002
        """Return one surrogate."""
        return phase_randomize_segments(inputs.features, inputs.story, rng)
