"""Columns of a checked words table as arrays.

`lpact.datasets.validate.check_stimulus` guarantees what these take for granted: no gaps, words in
order of onset, stories and sentences in consecutive rows.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from lpact.math.types import FloatArray, IntArray


def times_s(words: pl.DataFrame) -> tuple[FloatArray, FloatArray]:
    """Return word onsets and offsets in seconds, [n_words] each."""
    return words["onset_s"].to_numpy(), words["offset_s"].to_numpy()


def story_codes(words: pl.DataFrame) -> IntArray:
    """Return the story of each word as 0, 1, … in order of appearance."""
    return words["story_id"].rle_id().cast(pl.Int64).to_numpy()


def slices(words: pl.DataFrame, column: str) -> tuple[IntArray, IntArray]:
    """Return first word and stop (one past the last word) of every story or sentence.

    ``column`` is ``story_id`` or ``sentence_id``.
    """
    lengths = words[column].rle().struct.field("len").cast(pl.Int64).to_numpy()
    stop = np.cumsum(lengths)
    return stop - lengths, stop
