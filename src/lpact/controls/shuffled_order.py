"""The real features in the wrong order, near their right place."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.controls.base import ControlInputs
from lpact.controls.reordered import ReorderedRows
from lpact.features.availability import Missing
from lpact.math.surrogates import block_permutation, segment_slices, within_group_permutation
from lpact.math.types import IntArray
from lpact.registry import PluginOptions


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
        longest = int(np.bincount(_sentence_of_story(inputs)).max())
        if longest >= 2:
            return None
        return Missing(Reason.NO_SENTENCE_IDS, "no sentence has more than 1 event")

    def row_index(self, inputs: ControlInputs, rng: np.random.Generator) -> IntArray:
        """Return the shuffled order."""
        return within_group_permutation(_sentence_of_story(inputs), rng)


class BlockShuffleOptions(PluginOptions):
    """Options of `within_story_block_shuffle`."""

    block_events: int = Field(20, ge=1, description="Events in a block.")


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
        longest = max(rows.stop - rows.start for rows in segment_slices(inputs.story))
        if longest > block:
            return None
        return Missing(
            Reason.STORY_TOO_SHORT,
            f"the longest story has {longest} event(s); two blocks of {block} need {block + 1}",
        )

    def row_index(self, inputs: ControlInputs, rng: np.random.Generator) -> IntArray:
        """Return the order with blocks permuted."""
        return block_permutation(inputs.story, self.options.block_events, rng)


def _sentence_of_story(inputs: ControlInputs) -> IntArray:
    """Return a running number of the sentence of each event, [n_events].

    A sentence is a run of neighbouring events with the same sentence id in the same story, so that
    ids may start anew.
    """
    begins = (np.diff(inputs.sentence) != 0) | (np.diff(inputs.story) != 0)
    return np.concatenate([[0], np.cumsum(begins)]).astype(np.int64)
