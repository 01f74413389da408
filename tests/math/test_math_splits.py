from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpact.math.splits import (
    BlockedFolds,
    alternating_halves,
    contiguous_folds,
    segment_folds,
)


@given(st.integers(3, 200), st.integers(2, 12), st.integers(0, 6))
def test_blocks_partition_the_rows_and_the_gap_is_kept(n, k, gap):
    if n < k:
        with pytest.raises(ValueError, match="cannot cut"):
            contiguous_folds(n, k, gap=gap)
        return
    folds = contiguous_folds(n, k, gap=gap)
    covered = np.concatenate([np.arange(*folds.bounds(b)) for b in range(k)])
    np.testing.assert_array_equal(covered, np.arange(n))
    assert folds.test_sizes().max() - folds.test_sizes().min() <= 1
    for block in range(k):
        start, stop = folds.bounds(block)
        train = folds.train_rows(block)
        distance = np.where(train < start, start - train, train - stop + 1)
        assert (distance > gap).all()
        expected = [r for r in range(n) if r < start - gap or r >= stop + gap]
        assert train.tolist() == expected


@given(st.integers(6, 60), st.integers(0, 3))
def test_training_sets_are_symmetric(n, gap):
    folds = contiguous_folds(n, 3, gap=gap)
    np.testing.assert_array_equal(folds.train_rows(0, 2), folds.train_rows(2, 0))


def test_segments_become_blocks():
    folds = segment_folds(np.array([4, 4, 1, 1, 1, 7]))
    assert [folds.bounds(b) for b in range(3)] == [(0, 2), (2, 5), (5, 6)]
    with pytest.raises(ValueError, match="contiguous"):
        segment_folds(np.array([0, 1, 0]))


def test_halves_are_disjoint_blocks():
    first, second = alternating_halves(20, 4)
    assert first.tolist() == [*range(0, 5), *range(10, 15)]
    assert sorted([*first, *second]) == list(range(20))


@pytest.mark.parametrize(
    ("starts", "n", "gap", "text"),
    [((0, 5), 5, 0, "empty"), ((1, 3), 5, 0, "begin at 0"), ((0, 2), 5, -1, "negative")],
)
def test_bad_blocks_are_refused(starts, n, gap, text):
    with pytest.raises(ValueError, match=text):
        BlockedFolds(starts, n, gap)
