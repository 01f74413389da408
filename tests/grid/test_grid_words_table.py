"""Stories and sentences of a words table."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpact.grid.words import slices, story_codes

lengths_of_runs = st.lists(st.integers(1, 4), max_size=6)


def table(story_lengths, sentence_lengths):
    """Stories are named backwards, so that alphabetical order is not order of appearance."""
    n = min(sum(story_lengths), sum(sentence_lengths))
    stories = [f"s{-i % 7}" for i, length in enumerate(story_lengths) for _ in range(length)]
    sentences = [i * 3 for i, length in enumerate(sentence_lengths) for _ in range(length)]
    return pl.DataFrame(
        {"story_id": stories[:n], "sentence_id": sentences[:n]},
        schema={"story_id": pl.String, "sentence_id": pl.Int64},
    )


@given(lengths_of_runs, lengths_of_runs)
def test_story_codes_count_stories_in_order_of_appearance(story_lengths, sentence_lengths):
    words = table(story_lengths, sentence_lengths)
    order = list(dict.fromkeys(words["story_id"].to_list()))
    assert story_codes(words).tolist() == [order.index(s) for s in words["story_id"].to_list()]


@pytest.mark.parametrize("column", ["story_id", "sentence_id"])
@given(story_lengths=lengths_of_runs, sentence_lengths=lengths_of_runs)
def test_slices_hold_the_words_of_each_id(column, story_lengths, sentence_lengths):
    words = table(story_lengths, sentence_lengths)
    ids = words[column].to_list()
    first, stop = slices(words, column)
    assert [ids[a:b] for a, b in zip(first, stop, strict=True)] == [[i] * ids.count(i) for i in dict.fromkeys(ids)]
