"""Tests by randomisation against SciPy, closed forms and their own error rates."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from lpact.stats import (
    block_permutation_p_value,
    bootstrap_p_value,
    draw_p_value,
    equivalence_p_value,
    intersection_union,
    one_sample_p_value,
    partial_conjunction,
    rank_p_values,
    sign_flip_p_value,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_rank_counts_the_observed_value_itself():
    draws = np.array([0.1, 0.2, 0.3, 0.4])
    assert draw_p_value(0.25, draws) == pytest.approx(3 / 5)
    assert draw_p_value(0.4, draws) == pytest.approx(2 / 5)  # a tie goes to the draw
    assert draw_p_value(0.0, draws) == 1.0


def test_beyond_all_draws_the_tail_is_that_of_a_further_normal_draw():
    draws = rng(1).standard_normal(20)
    observed = draws.mean() + 5.0
    t = 5.0 / (draws.std(ddof=1) * np.sqrt(1 + 1 / 20))
    assert draw_p_value(observed, draws) == pytest.approx(stats.t.sf(t, 19))


def test_just_beyond_all_draws_the_p_value_is_the_rank():
    draws = np.arange(20.0)
    assert draw_p_value(19.5, draws) <= 1 / 21
    assert draw_p_value(18.5, draws) == pytest.approx(2 / 21)


@pytest.mark.parametrize(("observed", "draws"), [(1.0, []), (np.nan, [0.0, 1.0, 2.0]), (1.0, [np.nan])])
def test_nothing_to_compare_has_no_p_value(observed, draws):
    assert np.isnan(draw_p_value(observed, np.array(draws)))


def test_two_draws_prove_little():
    assert draw_p_value(100.0, np.array([0.0, 0.1])) == pytest.approx(1 / 3)


def test_draws_that_do_not_vary_give_the_rank():
    assert draw_p_value(1.0, np.zeros(5)) == pytest.approx(1 / 6)


def rate(values: np.ndarray) -> float:
    """How often the first of exchangeable values is called larger than the others."""
    shared = rng(11).standard_normal((len(values), 1))
    return float(np.mean([draw_p_value(row[0], row[1:]) <= 0.05 for row in values + shared]))


@pytest.mark.parametrize("n_draws", [19, 40])
def test_exchangeable_draws_keep_the_level_exactly(n_draws):
    """Skewed scores: from 19 draws on the rank decides at 0.05."""
    found = rate(rng(n_draws).gumbel(size=(4000, n_draws + 1)))
    assert found <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)
    assert found > 0.035


@pytest.mark.parametrize("n_draws", [5, 10])
def test_few_draws_keep_the_level_as_far_as_they_are_normal(n_draws):
    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)
    assert rate(rng(n_draws).standard_normal((4000, n_draws + 1))) <= allowed
    assert rate(rng(n_draws).gumbel(size=(4000, n_draws + 1))) <= 0.09


def test_few_skewed_draws_do_not_keep_the_level():
    """What the docstring says: a p-value below 1 / (1 + m) relies on a normal tail."""
    values = rng(5).exponential(size=(8000, 6)) ** 2
    found = np.mean([draw_p_value(row[0], row[1:]) <= 0.05 for row in values])
    assert found == pytest.approx(0.13, abs=0.02)


def test_sign_flips_match_an_enumeration_by_scipy():
    values = rng(2).standard_normal(9) + 0.4
    expected = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", alternative="greater", n_resamples=np.inf
    ).pvalue
    assert sign_flip_p_value(values, rng()) == pytest.approx(expected)


def test_many_values_are_flipped_at_random():
    values = rng(3).standard_normal(40) + 0.3
    expected = stats.permutation_test(
        (values,),
        np.mean,
        permutation_type="samples",
        alternative="greater",
        n_resamples=20_000,
        rng=rng(5),
    ).pvalue
    assert sign_flip_p_value(values, rng(4)) == pytest.approx(expected, abs=0.01)


def test_a_tie_everywhere_proves_nothing():
    assert sign_flip_p_value(np.zeros(8), rng()) == 1.0
    assert sign_flip_p_value(np.zeros(30), rng()) == 1.0


def test_all_blocks_ahead_reach_the_smallest_p_value():
    assert sign_flip_p_value(np.full(10, 0.1), rng()) == pytest.approx(1 / 2**10)


def test_missing_blocks_are_left_out():
    assert sign_flip_p_value(np.array([1.0, np.nan, 2.0, 3.0]), rng()) == pytest.approx(1 / 8)


def test_few_values_are_tested_by_student():
    values = rng(6).standard_normal(5) + 1.0
    expected = stats.ttest_1samp(values, 0.0, alternative="greater").pvalue
    assert one_sample_p_value(values) == pytest.approx(expected)
    assert one_sample_p_value(np.array([0.3])) == 1.0
    assert one_sample_p_value(np.full(4, -0.1)) == 1.0


@pytest.mark.parametrize("value", [0.1, 0.5, 1 / 3, 1e-9, 1e10 + 0.1])
@pytest.mark.parametrize("n", [3, 4, 7])
def test_equal_values_give_the_same_p_value_whatever_their_rounding(value, n):
    assert one_sample_p_value(np.full(n, value)) == 1 / 2**n
    assert one_sample_p_value(np.full(n, -value)) == 1.0
    assert one_sample_p_value(value + np.arange(n) * 1e-9 * value) < 1 / 2**n


def test_an_intersection_union_is_the_largest():
    assert intersection_union(np.array([0.01, 0.2, 0.03])) == 0.2
    assert np.isnan(intersection_union([]))


def test_partial_conjunction_by_hand():
    p = np.array([0.001, 0.2, 0.01, 0.004])
    assert partial_conjunction(p, 1) == pytest.approx(4 * 0.001)
    assert partial_conjunction(p, 3) == pytest.approx(2 * 0.01)
    assert partial_conjunction(p, 4) == pytest.approx(0.2)
    assert partial_conjunction(p, 5) == 1.0
    assert np.isnan(partial_conjunction([], 1))


def test_partial_conjunction_keeps_its_level_when_one_too_few_holds():
    """Two of five hold for sure, three are asked for."""
    p = rng(7).uniform(size=(20_000, 5))
    p[:, :2] = 1e-9
    found = np.mean([partial_conjunction(row, 3) <= 0.05 for row in p])
    assert found <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 20_000)


def groups(generator: np.random.Generator, n: int, mean: float) -> list[np.ndarray]:
    centres = mean + 0.2 * generator.standard_normal(n)
    return [c + 0.3 * generator.standard_normal(12) for c in centres]


@pytest.mark.parametrize("n", [3, 6])
def test_the_bootstrap_bound_covers_with_few_groups(n):
    """At the threshold itself, 5 % of studies may pass; the plain percentile would let 13 % pass with three."""
    generator = rng(8)
    p = np.array([bootstrap_p_value(groups(generator, n, 0.25), 0.25, rng(i), n_draws=999)[0] for i in range(600)])
    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)
    assert (p <= 0.05).mean() <= allowed
    assert (p <= 0.2).mean() > 0.1  # not by never passing


def test_the_bootstrap_agrees_with_student_for_many_groups():
    generator = rng(9)
    values = [np.array([v]) for v in 0.3 + 0.2 * generator.standard_normal(40)]
    expected = stats.ttest_1samp([v[0] for v in values], 0.25, alternative="greater").pvalue
    p, lower = bootstrap_p_value(values, 0.25, rng(), n_draws=20_000)
    assert p == pytest.approx(expected, rel=0.1)
    flat = np.concatenate(values)
    student = flat.mean() - stats.t.ppf(0.95, 39) * flat.std(ddof=1) / np.sqrt(40)
    assert lower == pytest.approx(student, abs=0.005)


def test_far_from_the_threshold_the_tail_goes_on():
    generator = rng(10)
    near, far = (bootstrap_p_value(groups(generator, 6, m), 0.25, rng())[0] for m in (0.8, 2.0))
    assert 0.0 < far < near < 0.01


def test_one_group_bounds_nothing():
    assert bootstrap_p_value([np.ones(5)], 0.25, rng()) == (1.0, -np.inf)
    assert np.isnan(bootstrap_p_value([], 0.25, rng())).all()


def test_groups_that_do_not_vary():
    assert bootstrap_p_value([np.ones(3)] * 4, 0.25, rng()) == (0.0, 1.0)
    assert bootstrap_p_value([np.zeros(3)] * 4, 0.25, rng())[0] == 1.0


@pytest.mark.parametrize("n", [3, 12, 13, 40])
def test_flips_counted_in_parts_are_those_counted_at_once(n):
    values = rng(n).normal(0.2, 1.0, n)
    if n <= 12:
        signs = np.array(list(product([1.0, -1.0], repeat=n)))
        expected = (signs @ values >= values.sum() - 1e-9).mean()
    else:
        signs = rng(5).integers(0, 2, (9_999, n)) * 2.0 - 1.0
        expected = (1 + (signs @ values >= values.sum() - 1e-9).sum()) / 10_000
    assert sign_flip_p_value(values, rng(5)) == expected
    assert sign_flip_p_value(values, lambda: rng(5)) == expected


def test_a_generator_is_made_only_where_one_is_needed():
    def never() -> np.random.Generator:
        raise AssertionError("all flips can be enumerated")

    assert sign_flip_p_value(np.ones(3), never) == pytest.approx(1 / 8)


def test_rank_p_values_count_finite_draws_only():
    shuffled = np.array([[0.5, 1.0, 2.0], [1.5, np.nan, 2.0], [0.4, 0.9, np.inf]])
    p = rank_p_values(np.array([0.5, 1.0, np.nan]), shuffled)
    np.testing.assert_allclose(p, [3 / 4, 2 / 3, np.nan])
    assert rank_p_values(np.float64(1.0), np.array([1.0 - 1e-14])) == 0.5
    assert rank_p_values(np.float64(1.0), np.array([1.0 - 1e-14]), slack=1e-12) == 1.0


def autocorrelated(generator: np.random.Generator, n: int) -> np.ndarray:
    noise = generator.standard_normal(n)
    for i in range(1, n):
        noise[i] += 0.9 * noise[i - 1]
    return noise


def test_permuted_blocks_keep_the_level_where_permuted_rows_do_not():
    blocks = np.repeat(np.arange(10), 20)
    found = {"blocks": [], "rows": []}
    for i in range(200):
        generator = rng(i)
        x, y = autocorrelated(generator, 200), autocorrelated(generator, 200)

        def statistic(order, x=x, y=y):
            return np.corrcoef(x, y[order])[0, 1]

        found["blocks"].append(block_permutation_p_value(statistic, blocks, generator, 39))
        found["rows"].append(block_permutation_p_value(statistic, np.arange(200), generator, 39))
    rates = {name: np.mean(np.array(p) <= 0.05) for name, p in found.items()}
    assert rates["blocks"] <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert rates["rows"] > 0.2


def test_permuted_blocks_of_one_row_are_the_permutation_test_of_scipy():
    generator = rng(3)
    x = generator.standard_normal(12)
    y = x + generator.standard_normal(12)
    expected = stats.permutation_test(
        (y,),
        lambda v: np.corrcoef(x, v)[0, 1],
        permutation_type="pairings",
        alternative="greater",
        n_resamples=4_999,
        rng=rng(4),
    ).pvalue
    found = block_permutation_p_value(lambda order: np.corrcoef(x, y[order])[0, 1], np.arange(12), rng(5), 4_999)
    assert found == pytest.approx(expected, abs=0.01)


def test_undefined_statistics_prove_nothing():
    blocks = np.repeat([0, 1, 2], 2)
    assert block_permutation_p_value(lambda order: np.nan, blocks, rng(), 9) == 1.0
    observed = np.arange(6)
    undefined = block_permutation_p_value(
        lambda order: 1.0 if np.array_equal(order, observed) else np.nan, blocks, rng(), 9
    )
    assert undefined == 1.0


@pytest.mark.parametrize("blocks", [np.arange(20) % 4, [0, 0, 1, 1, 0], ["a", "b", "a"]])
def test_blocks_of_rows_that_lie_apart_are_an_error(blocks):
    """Interleaved blocks keep no neighbours: 0.77 false positives at 0.05."""
    with pytest.raises(ValueError, match="contiguous stretch"):
        block_permutation_p_value(np.sum, blocks, 0, 9)


def test_undefined_draws_count_as_reaching():
    """(1 + 3 undefined) / (1 + 9): they are neither left out nor taken as below."""
    calls = iter([1.0, *[np.nan] * 3, *[0.0] * 5, -np.inf])
    found = block_permutation_p_value(lambda order: next(calls), [0, 0, 1, 1, 2], 0, 9)
    assert found == pytest.approx(4 / 10)


def test_lists_and_seeds_are_arrays_and_generators():
    values = rng(3).standard_normal(20) + 0.3
    array, several = np.array([0.01, 0.2]), [values[:8], values[8:]]
    assert sign_flip_p_value(values.tolist(), 4) == sign_flip_p_value(values, rng(4))
    assert one_sample_p_value(values.tolist()) == one_sample_p_value(values)
    assert equivalence_p_value(values.tolist(), 1.0) == equivalence_p_value(values, 1.0)
    assert draw_p_value(0.5, values.tolist()) == draw_p_value(0.5, values)
    assert rank_p_values([0.5], values[:, None].tolist()) == rank_p_values(0.5, values)
    assert intersection_union(array.tolist()) == intersection_union(array)
    assert partial_conjunction(array.tolist(), 1) == partial_conjunction(array, 1)
    as_lists = bootstrap_p_value([part.tolist() for part in several], 0.0, 4, n_draws=99)
    assert as_lists == bootstrap_p_value(several, 0.0, rng(4), n_draws=99)
    blocks = np.repeat(np.arange(5), 4)

    def statistic(order):
        return float(values[order] @ values)

    expected = block_permutation_p_value(statistic, blocks, rng(4), 99)
    assert block_permutation_p_value(statistic, blocks.tolist(), 4, 99) == expected


@pytest.mark.parametrize("nothing", [[], [np.nan, np.inf]], ids=["empty", "not finite"])
def test_without_values_there_is_no_p_value(nothing):
    assert np.isnan(sign_flip_p_value(nothing, 0))
    assert np.isnan(one_sample_p_value(nothing))
    assert np.isnan(equivalence_p_value(nothing, 1.0))


def test_equivalence_is_two_one_sided_tests():
    values = rng(8).normal(0.1, 0.3, 15)
    expected = max(
        stats.ttest_1samp(values, -0.4, alternative="greater").pvalue,
        stats.ttest_1samp(values, 0.4, alternative="less").pvalue,
    )
    assert equivalence_p_value(values, 0.4) == pytest.approx(expected)
    with pytest.raises(ValueError, match="positive"):
        equivalence_p_value(values, 0.0)


def test_equivalence_is_wrongly_claimed_at_most_at_its_level():
    """At the bound itself the means differ: 5 % of studies may call them equivalent."""
    found = [equivalence_p_value(rng(i).normal(0.3, 0.2, 20), 0.3) <= 0.05 for i in range(2000)]
    assert 0.035 < np.mean(found) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
