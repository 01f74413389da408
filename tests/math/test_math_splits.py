from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpact.math.splits import BlockedFolds, contiguous_folds


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


@given(st.integers(12, 80), st.integers(0, 6))
def test_training_sets_keep_the_gap_of_both_blocks_and_are_symmetric(n, gap):
    folds = contiguous_folds(n, 4, gap=gap)
    for a, b in ((0, 2), (1, 2), (0, 3)):
        near = {r for start, stop in (folds.bounds(a), folds.bounds(b)) for r in range(start - gap, stop + gap)}
        expected = [r for r in range(n) if r not in near]
        assert folds.train_rows(a, b).tolist() == expected
        assert folds.train_rows(b, a).tolist() == expected


@given(st.integers(12, 80), st.integers(0, 30))
def test_validation_rows_are_those_that_the_outer_embargo_leaves(n, gap):
    folds = contiguous_folds(n, 4, gap=gap)
    for outer in range(4):
        for block in set(range(4)) - {outer}:
            rows = folds.validation_rows(block, outer)
            own = np.arange(*folds.bounds(block))
            left = np.intersect1d(own, folds.train_rows(outer)).tolist()
            expected = left if 2 * len(left) >= len(own) else []
            assert list(range(rows.start, rows.stop)) == expected


def test_many_large_training_sets_are_not_all_kept():
    folds = contiguous_folds(400_000, 10)
    for a in range(10):
        for b in range(a):
            assert len(folds.train_rows(a, b)) == 320_000
    assert len(folds._train_rows) <= 2


def test_training_rows_cannot_be_written_to():
    rows = contiguous_folds(20, 4).train_rows(1)
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 5


@pytest.mark.parametrize(
    ("starts", "n", "gap", "text"),
    [((0, 5), 5, 0, "empty"), ((1, 3), 5, 0, "begin at 0"), ((0, 2), 5, -1, "negative")],
)
def test_bad_blocks_are_refused(starts, n, gap, text):
    with pytest.raises(ValueError, match=text):
        BlockedFolds(starts, n, gap)
