"""Sums over slices of samples against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpact.math.windows import mean_slices, nearest_sample, sum_slices, touches, window_samples


def loop_sums(values, starts, lengths):
    out = np.zeros((len(starts), values.shape[1]))
    for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        for j in range(start, start + length):
            out[i] += values[j]
    return out


@st.composite
def slices(draw):
    n_rows = draw(st.integers(1, 30))
    pairs = draw(
        st.lists(
            st.integers(0, n_rows - 1).flatmap(lambda start: st.tuples(st.just(start), st.integers(1, n_rows - start))),
            max_size=12,
        )
    )
    starts = np.array([start for start, _ in pairs], dtype=np.int64)
    lengths = np.array([length for _, length in pairs], dtype=np.int64)
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).standard_normal((n_rows, 3)), starts, lengths


@given(slices())
def test_sums_equal_the_loop_bit_for_bit(case):
    values, starts, lengths = case
    np.testing.assert_array_equal(sum_slices(values, starts, lengths), loop_sums(*case))


@given(case=slices())
def test_columns_do_not_depend_on_their_neighbours(case):
    values, starts, lengths = case
    whole = sum_slices(values, starts, lengths)
    for column in range(values.shape[1]):
        alone = sum_slices(values[:, [column]], starts, lengths)
        np.testing.assert_array_equal(alone[:, 0], whole[:, column])


def test_single_precision_is_added_up_in_double():
    values = np.full((1000, 1), 0.1, dtype=np.float32)
    total = sum_slices(values, np.array([0]), np.array([1000]))
    assert total[0, 0] == pytest.approx(1000 * float(np.float32(0.1)), rel=1e-14)


@given(case=slices(), seed=st.integers(0, 99))
def test_touching_equals_looking_at_every_slice(case, seed):
    values, starts, lengths = case
    flags = np.random.default_rng(seed).random(len(values)) < 0.3
    found = touches(flags, starts, lengths)
    looked = [bool(flags[s : s + n].any()) for s, n in zip(starts, lengths, strict=True)]
    assert found.tolist() == looked


def test_a_large_artefact_costs_no_precision_elsewhere():
    values = np.full((100, 1), 0.1)
    values[10] = 1e17
    means = mean_slices(values, np.array([20, 9]), np.array([5, 3]))
    assert means[0, 0] == pytest.approx(0.1, rel=1e-15)
    assert means[1, 0] == pytest.approx(1e17 / 3)


def test_a_nan_stays_within_its_own_slices():
    values = np.ones((10, 2))
    values[4, 1] = np.nan
    means = mean_slices(values, np.array([0, 2, 5]), np.array([4, 4, 5]))
    np.testing.assert_array_equal(means, [[1, 1], [1, np.nan], [1, 1]])


def test_fortran_order_and_overlap():
    values = np.asfortranarray(np.arange(12.0).reshape(6, 2))
    sums = sum_slices(values, np.array([0, 1]), np.array([2, 5]))
    np.testing.assert_array_equal(sums, [[2, 4], [30, 35]])
    assert sums.flags.c_contiguous


def test_nearest_sample_and_window_length():
    times_s = np.array([-0.0101, 1.0, 1.0049, 1.0051])
    samples = nearest_sample(times_s, start_s=1.0, sampling_rate_hz=100.0)
    assert samples.tolist() == [-101, 0, 0, 1]
    lengths_s = np.array([0.0, 0.004, 0.016, 1.0])
    assert window_samples(lengths_s, sampling_rate_hz=100.0).tolist() == [1, 1, 2, 100]
