"""Controls that are the real features in another order: rotated in time, or shuffled near their place."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, final

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.controls.base import ControlInputs, SevereControl, longest_story
from lpact.features.mechanisms import Missing
from lpact.math.surrogates import block_permutation, circular_shift_order, within_group_permutation
from lpact.math.types import FloatArray, IntArray
from lpact.registry import PluginOptions


class ReorderedRows(SevereControl):
    """A control whose row a is row ``row_index[a]`` of the real features.

    ``contiguous`` says that responses in the inverse order stay in contiguous stretches, except for moves within a
    sentence. A held-out block is then as difficult to predict as for the real features; shuffles over longer distances
    mix early and late responses in every block, which is easier under drift. The inverse order is then applied to the
    responses instead, and everything computed from the features is reused.
    """

    contiguous: ClassVar[bool] = False

    @abstractmethod
    def row_index(self, inputs: ControlInputs, rng: np.random.Generator) -> IntArray:
        """Return the order of rows, a permutation [n_events]."""

    @final
    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> FloatArray:  # noqa: ARG002
        """Return the real features in the order of `row_index`."""
        return inputs.features[self.row_index(inputs, rng)]


class CircularShiftOptions(PluginOptions):
    """Options of `circular_shift`."""

    min_autocorrelation_times: float = Field(2.0, ge=1.0)
    """Smallest rotation in either direction, in autocorrelation times of the features."""


class CircularShift(ReorderedRows):
    """The whole run rotated by a random number of events.

    x'_i = x_{(i − s) mod n} with s uniform on [s_min, n − s_min], where s_min is
    ``min_autocorrelation_times`` × the lag at which the features' autocorrelation falls below 1/e.
    """

    name = "circular_shift"
    summary = "features rotated in time within the run, by more than their autocorrelation time"
    surrogate = True
    needs = "a run of several autocorrelation times"
    contiguous = True
    Options: ClassVar[type[PluginOptions]] = CircularShiftOptions
    options: CircularShiftOptions

    def unavailable(self, inputs: ControlInputs) -> Missing | None:
        """Return SHIFT_NOT_POSSIBLE if the run is too short to rotate it far enough."""
        n_events, needed = len(inputs.features), 2 * self._min_shift(inputs)
        if n_events >= needed:
            return None
        return Missing(
            Reason.SHIFT_NOT_POSSIBLE,
            f"a rotation by at least {needed // 2} events in either direction needs {needed} events; "
            f"the run has {n_events}",
        )

    def row_index(self, inputs: ControlInputs, rng: np.random.Generator) -> IntArray:
        """Return the rotated order."""
        return circular_shift_order(len(inputs.features), self._min_shift(inputs), rng)

    def _min_shift(self, inputs: ControlInputs) -> int:
        times = self.options.min_autocorrelation_times
        return math.ceil(times * inputs.autocorrelation_time)


class TokenOrderShuffle(ReorderedRows):
    """Rows shuffled within each sentence.

    In every sentence of at least two events the order is uniform over all but the real one.
    """

    name = "token_order_shuffle"
    summary = "rows shuffled within each sentence"
    needs = "sentence ids, and a sentence of at least 2 events"
    contiguous = True

    def unavailable(self, inputs: ControlInputs) -> Missing | None:
        """Return NO_SENTENCE_IDS unless one sentence has two events."""
        if np.bincount(_sentence_numbers(inputs)).max() >= 2:
            return None
        return Missing(Reason.NO_SENTENCE_IDS, "no sentence has more than 1 event")

    def row_index(self, inputs: ControlInputs, rng: np.random.Generator) -> IntArray:
        """Return the shuffled order."""
        return within_group_permutation(_sentence_numbers(inputs), rng)


class BlockShuffleOptions(PluginOptions):
    """Options of `within_story_block_shuffle`."""

    block_events: int = Field(20, ge=1)
    """Events in a block."""


class WithinStoryBlockShuffle(ReorderedRows):
    """Blocks of consecutive events permuted within each story.

    A story is cut from its start into blocks of ``block_events`` (the last may be shorter); in every
    story of at least two blocks their order is uniform over all but the real one.
    """

    name = "within_story_block_shuffle"
    summary = "each story cut into blocks of events, blocks permuted"
    surrogate = True
    needs = "a story of at least 2 blocks"
    Options: ClassVar[type[PluginOptions]] = BlockShuffleOptions
    options: BlockShuffleOptions

    def unavailable(self, inputs: ControlInputs) -> Missing | None:
        """Return STORY_TOO_SHORT unless one story has two blocks."""
        block = self.options.block_events
        longest = longest_story(inputs)
        if longest > block:
            return None
        return Missing(
            Reason.STORY_TOO_SHORT, f"the longest story has {longest} event(s); two blocks of {block} need {block + 1}"
        )

    def row_index(self, inputs: ControlInputs, rng: np.random.Generator) -> IntArray:
        """Return the order with blocks permuted."""
        return block_permutation(inputs.story, self.options.block_events, rng)


def _sentence_numbers(inputs: ControlInputs) -> IntArray:
    """Return the running number of the sentence of each event, [n_events].

    A sentence is a run of events with the same sentence id in the same story: ids may repeat.
    """
    begins = (np.diff(inputs.sentence) != 0) | (np.diff(inputs.story) != 0)
    return np.concatenate([[0], np.cumsum(begins)]).astype(np.int64)
