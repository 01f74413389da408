"""Tests of one more brain against brute force, SciPy, closed forms and planted truths."""

from __future__ import annotations

import itertools
import runpy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from lpact.errors import InputError
from lpact.stats import (
    SubjectTest,
    compare_with_pooled,
    compare_with_subjects,
    pair_means,
    subject_test_rates,
    wilson_interval,
)
from lpact.stats.subjects import false_alarms, layout

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "simulate_subject_tests.py"))
RNG = np.random.default_rng


def study(n, *, symmetric, seed=0, sd=0.7, sd_target=0.4, rho=0.0, shift=0.0):
    """Brain–brain and model–brain values of N brains and one more, written out pair by pair."""
    rng = RNG(seed)
    s, t = sd * rng.normal(size=n + 1), sd_target * rng.normal(size=n + 1)
    if symmetric:
        t = s
    d = np.full((n + 1, n + 1), np.nan)
    for i, j in itertools.combinations(range(n + 1), 2):
        there = rng.normal()
        back = there if symmetric else rho * there + np.sqrt(1 - rho**2) * rng.normal()
        d[i, j], d[j, i] = 3 + s[i] + t[j] + there, 3 + s[j] + t[i] + back
    return d[:n, :n], d[n, :n] + shift


def gap_by_hand(d, m):
    n = len(m)
    return m.mean() - np.mean([d[i, j] for i, j in itertools.permutations(range(n), 2)])


def test_exact_equals_a_loop_over_who_is_the_model():
    d, m = study(20, symmetric=True, shift=1.5)
    full = np.full((21, 21), np.nan)
    full[:20, :20], full[20, :20], full[:20, 20] = d, m, m
    gaps = []
    for k in range(21):
        others = [i for i in range(21) if i != k]
        gaps.append(gap_by_hand(full[np.ix_(others, others)], full[k, others]))
    found = compare_with_subjects(d, m, symmetric=True, bound=0.1)
    assert found.test == "exact"
    assert found.gap == pytest.approx(gaps[-1])
    assert found.p_value == pytest.approx(np.mean(np.abs(gaps) >= abs(gaps[-1]) - 1e-12))
    assert found.smallest_p == pytest.approx(1 / 21)
    far = compare_with_subjects(d, m + 100, symmetric=True, bound=0.1)
    assert far.p_value == pytest.approx(far.smallest_p)


@pytest.mark.parametrize("symmetric", [True, False])
def test_approximate_is_students_t_of_one_new_source(symmetric):
    """Source effects by least squares with dummy variables; then an outlier's t from a regression."""
    n = 7
    d, m = study(n, symmetric=symmetric, shift=0.8)
    rows, values = [], []
    for i, j in itertools.permutations(range(n), 2):
        row = np.zeros(2 * (n + 1))
        row[i] += 1
        row[j if symmetric else n + 1 + j] += 1
        rows.append(row)
        values.append(d[i, j])
    if symmetric:
        for j in range(n):  # both directions of the model's pairs, like those of all others
            row = np.zeros(2 * (n + 1))
            row[[n, j]] = 1
            rows += [row, row]
            values += [m[j], m[j]]
    effects = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0][:n]
    spread = np.std(effects, ddof=1) * np.sqrt(1 + 1 / n)
    found = compare_with_subjects(d, m, symmetric=symmetric, bound=0.1, test="approximate")
    p = 2 * stats.t.sf(abs(gap_by_hand(d, m)) / spread, n - 1)
    assert found.test == "approximate"
    assert found.p_value == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize("symmetric", [True, False])
def test_interval_and_equivalence_by_leaving_one_subject_out(symmetric):
    n, bound, alpha = 9, 0.9, 0.1
    d, m = study(n, symmetric=symmetric)
    without = []
    for k in range(n):
        others = [i for i in range(n) if i != k]
        without.append(gap_by_hand(d[np.ix_(others, others)], m[others]))
    error = np.sqrt((n - 1) / n * np.sum((np.array(without) - np.mean(without)) ** 2))
    found = compare_with_subjects(d, m, symmetric=symmetric, bound=bound, alpha=alpha)
    gap = gap_by_hand(d, m)
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.9, n - 1, gap, error))
    sides = stats.t.sf([(gap + bound) / error, (bound - gap) / error], n - 1)
    assert found.equivalence_p == pytest.approx(sides.max())


@pytest.mark.parametrize(("symmetric", "rho"), [(True, 1.0), (False, 0.0), (False, 0.6)])
def test_variance_of_the_gap_of_one_more_brain(symmetric, rho):
    """The closed form of the module's docstring; the estimate is unbiased, or a little large."""
    n, sd = 5, 0.7
    studies = [study(n, symmetric=symmetric, seed=i, sd=sd, rho=rho, sd_target=2.0) for i in range(3000)]
    gaps = [gap_by_hand(d, m) for d, m in studies]
    closed = (1 + 1 / n) * (sd**2 + (n + rho) / ((n + 1) * (n - 1)))
    assert np.var(gaps) == pytest.approx(closed, rel=4 * np.sqrt(2 / 3000))
    d, m = (np.stack(values) for values in zip(*studies, strict=True))
    estimate = layout(d, m, symmetric).null_variance.mean()
    p, q = (1 + rho) / 2, (1 - rho) / 2
    excess = p / ((n - 1) * (n - 2)) + q / (n * (n + 1))
    expected = closed if symmetric else closed + (1 + 1 / n) * excess
    assert estimate == pytest.approx(expected, rel=4 * np.sqrt(2 / (n - 1) / 3000))


@pytest.mark.parametrize("symmetric", [True, False])
def test_pairs_as_in_the_paper(symmetric):
    d, m = study(6, symmetric=symmetric)
    chosen = itertools.combinations if symmetric else itertools.permutations
    pairs = [d[i, j] for i, j in chosen(range(6), 2)]
    found = compare_with_subjects(d, m, symmetric=symmetric, bound=0.1)
    assert found.rank_sum_p == pytest.approx(stats.mannwhitneyu(m, pairs).pvalue)
    assert found.ks_p == pytest.approx(stats.ks_2samp(m, pairs).pvalue)


@pytest.mark.parametrize("n", [6, 21])
@pytest.mark.parametrize("symmetric", [True, False])
def test_order_offset_and_scale_do_not_matter(n, symmetric):
    d, m = study(n, symmetric=symmetric, shift=0.5)
    order = RNG(1).permutation(n)
    first = compare_with_subjects(d, m, symmetric=symmetric, bound=0.4)
    other = compare_with_subjects(7 - 10 * d[np.ix_(order, order)], 7 - 10 * m[order], symmetric=symmetric, bound=4.0)
    scaled = {"gap": -10, "low": -10, "high": -10, "bound": 10, "detectable_gap": 10}
    swapped = {"low": "high", "high": "low"}
    for name, value in vars(first).items():
        if name != "test":
            again = getattr(other, swapped.get(name, name))
            assert again == pytest.approx(scaled.get(name, 1) * value, rel=1e-6), name


def test_targets_do_not_matter_for_the_test_of_asymmetric_measures():
    d, m = study(6, symmetric=False)
    easy = RNG(2).normal(size=6) * 5
    first = compare_with_subjects(d, m, symmetric=False, bound=0.1)
    other = compare_with_subjects(d + easy, m + easy, symmetric=False, bound=0.1)
    assert other.gap == pytest.approx(first.gap)
    assert other.p_value == pytest.approx(first.p_value)


def test_subjects_with_undefined_values_are_left_out_and_counted():
    d, m = study(9, symmetric=False)
    broken, model = d.copy(), m.copy()
    broken[2, [0, 1]] = np.nan  # subject 2 lacks two pairs
    broken[6, 2] = np.inf
    model[4] = np.nan
    kept = [0, 1, 3, 5, 6, 7, 8]
    found = compare_with_subjects(broken, model, symmetric=False, bound=0.1)
    clean = compare_with_subjects(d[np.ix_(kept, kept)], m[kept], symmetric=False, bound=0.1)
    assert (found.n, found.n_left_out) == (7, 2)
    assert {**vars(found), "n_left_out": 0} == vars(clean)
    broken[7, 8] = np.nan  # both lack one: the last of equals
    kept = [0, 1, 3, 5, 6, 7]
    found = compare_with_subjects(broken, model, symmetric=False, bound=0.1)
    assert found.gap == pytest.approx(gap_by_hand(d[np.ix_(kept, kept)], m[kept]))
    assert (found.n, found.n_left_out) == (6, 3)
    nothing = compare_with_subjects(np.full((4, 4), np.nan), m[:4], symmetric=True, bound=0.1)
    assert (nothing.test, nothing.n, nothing.n_left_out) == ("none", 1, 3)
    assert np.isnan(nothing.gap)


def none_of(found: SubjectTest) -> bool:
    return (
        found.test == "none"
        and found.p_value == found.smallest_p == found.equivalence_p == 1.0
        and found.power == 0.0
        and np.isnan([found.low, found.high, found.subject_share]).all()
    )


def test_which_test():
    def chosen(n, symmetric, **options):
        d, m = study(n, symmetric=symmetric)
        return compare_with_subjects(d, m, symmetric=symmetric, bound=0.5, **options)

    assert none_of(chosen(2, True))
    assert none_of(chosen(2, False))
    assert np.isfinite(chosen(2, True).gap)
    assert [chosen(n, True).test for n in (3, 18, 19)] == ["approximate", "approximate", "exact"]
    assert chosen(8, True, alpha=0.12).test == "exact"
    assert chosen(30, False).test == "approximate"
    assert chosen(30, False).smallest_p == 0.0
    too_few = chosen(10, True, test="exact")
    assert (too_few.test, too_few.smallest_p, too_few.power) == ("exact", 1 / 11, 0.0)
    assert too_few.detectable_gap == np.inf


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("n", "smallest"), [(6, 1 / 7), (20, 1 / 21)])
def test_values_that_do_not_vary(symmetric, n, smallest):
    d = np.full((n, n), 0.1) * 3  # with rounding
    same = compare_with_subjects(d, np.full(n, 0.3), symmetric=symmetric, bound=0.05)
    assert (same.p_value, same.smallest_p) == (1.0, smallest)
    assert same.equivalence_p == smallest
    assert (same.low, same.high) == (same.gap, same.gap) == (0.0, 0.0)
    other = compare_with_subjects(d, np.full(n, 0.4), symmetric=symmetric, bound=0.05)
    assert (other.p_value, other.equivalence_p) == (smallest, 1.0)
    assert np.isnan(other.subject_share)


@pytest.mark.parametrize(("symmetric", "sd_target"), [(True, 0.0), (False, 1.0)])
def test_share_of_subjects_is_the_planted_one(symmetric, sd_target):
    d, m = study(150, symmetric=symmetric, sd=0.7, sd_target=sd_target)
    found = compare_with_subjects(d, m, symmetric=symmetric, bound=0.1)
    planted = 2 * 0.49 if symmetric else 0.49 + 1.0
    assert found.subject_share == pytest.approx(planted / (planted + 1), abs=0.06)


# --- power ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "alpha", "level"), [(3, 0.05, 0.05), (8, 1e-4, 1e-4), (50, 0.05, 2 / 51)])
def test_power_is_that_of_the_noncentral_t(n, alpha, level):
    d, m = study(n, symmetric=True)
    found = compare_with_subjects(d, m, symmetric=True, bound=1.3, alpha=alpha)
    spread = np.sqrt(layout(d, m, True).null_variance)
    t = stats.t.isf(level / 2, n - 1)
    two = stats.nct.sf(t, n - 1, 1.3 / spread) + stats.nct.cdf(-t, n - 1, 1.3 / spread)
    assert found.power == pytest.approx(two, abs=1e-5)
    assert stats.nct.sf(t, n - 1, found.detectable_gap / spread) == pytest.approx(0.8, abs=1e-5)


@pytest.mark.parametrize("alpha", [0.05, 1e-12, 0.9])
@pytest.mark.parametrize("bound", [1e-9, 1e9])
def test_power_is_defined_however_far_the_tails_are(alpha, bound):
    d, m = study(4, symmetric=False)
    found = compare_with_subjects(d, m, symmetric=False, bound=bound, alpha=alpha)
    assert found.power == pytest.approx(alpha if bound < 1 else 1.0, rel=0.01, abs=1e-4)
    assert (found.detectable_gap == 0) == (alpha == 0.9)


@pytest.mark.parametrize("test", ["exact", "approximate"])
@pytest.mark.parametrize(("n", "sd"), [(6, 0.5), (20, 0.5), (20, 1.0), (40, 0.0), (40, 1.0)])
def test_simulated_power_is_that_of_the_true_variance(test, n, sd):
    """The shipped rates against the formula, so that both are checked by each other."""
    level = np.floor(0.05 * (n + 1)) / (n + 1) if test == "exact" else 0.05
    spread = np.sqrt((1 + 1 / n) * (sd**2 + 1 / (n - 1)))
    rates = subject_test_rates().filter(pl.col("gap") > 0, test=test, symmetric=True, n_subjects=n, sd_subject=sd)
    assert rates.height == 3
    for gap, rate in rates.select("gap", "rate").rows():
        if not level:
            assert rate == 0.0
            continue
        t = stats.t.isf(level / 2, n - 1)
        far = np.nan_to_num(stats.nct.cdf(-t, n - 1, gap / spread))  # SciPy's is NaN where it is 0
        formula = stats.nct.sf(t, n - 1, gap / spread) + far
        # With few ranks the exact test loses a little to a t-test of its level.
        assert formula - (0.04 if test == "exact" else 0.015) <= rate <= formula + 0.015


# --- pooled ---------------------------------------------------------------------------------------


def test_pooled_sources_are_a_paired_t_test_over_targets():
    rng = RNG(3)
    pool, model = rng.normal(0.5, 0.1, 8), rng.normal(0.55, 0.1, 8)
    oracle = stats.ttest_rel(model, pool)
    found = compare_with_pooled(np.append(pool, [np.nan, 1.0]), np.append(model, [1.0, np.nan]), bound=0.2)
    assert (found.test, found.n, found.n_left_out) == ("paired", 8, 2)
    assert found.p_value == pytest.approx(oracle.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(oracle.confidence_interval()))
    sides = [
        stats.ttest_1samp(model - pool, -0.2, alternative="greater").pvalue,
        stats.ttest_1samp(model - pool, 0.2, alternative="less").pvalue,
    ]
    assert found.equivalence_p == pytest.approx(max(sides))
    assert found.rank_sum_p == pytest.approx(stats.mannwhitneyu(model, pool).pvalue)
    assert np.isnan([found.subject_share, found.rank_sum_false_alarms]).all()
    assert none_of(compare_with_pooled(pool[:2], model[:2], bound=0.2))
    assert np.isnan(compare_with_pooled([np.nan], [1.0], bound=0.2).gap)
    alike = compare_with_pooled(np.arange(5.0) + 0.3, np.arange(5.0), bound=0.2)  # SciPy's rounding takes p above 1
    assert alike.ks_p == pytest.approx(1.0, abs=1e-3)
    flat = compare_with_pooled(pool, pool + 0.1, bound=0.2)
    assert (flat.p_value, flat.smallest_p) == (1 / 9, 1 / 9)


# --- size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "sd", "rank_sum", "ks"),
    [(6, 0.0, 0.059, 0.055), (10, 0.5, 0.138, 0.117), (20, 1.0, 0.266, 0.244)],
)
def test_false_alarms_of_pairs_were_found_before(n, sd, rank_sum, ks):
    """Rates of an earlier simulation of 1,000 nulls, with one-sided tests: is the model further away?"""
    between, model, _ = TOOL["draw"](RNG(n), n, sd, True, "normal", 1000)
    pairs = TOOL["pairs_of"](between, True)
    found = {
        rank_sum: stats.mannwhitneyu(model, pairs, axis=1, alternative="less").pvalue,
        ks: [stats.ks_2samp(*v, alternative="greater").pvalue for v in zip(model, pairs, strict=True)],
    }  # fmt: skip
    for before, p in found.items():
        rate = np.mean(np.asarray(p) <= 0.05)
        assert rate == pytest.approx(before, abs=3 * np.sqrt(2 * before * (1 - before) / 1000))


@pytest.mark.stress
@pytest.mark.parametrize(
    ("n", "sd", "symmetric", "effects"),
    [
        (4, 1.0, True, "normal"),
        (6, 0.5, False, "correlated"),
        (10, 1.0, False, "skewed"),
        (20, 0.5, True, "normal"),
    ],
)
def test_shipped_rates_are_found_again(n, sd, symmetric, effects):
    """Every study through the public function, one by one, with other draws than those of the table."""
    between, model, own = TOOL["draw"](RNG(n), n, sd, symmetric, effects, 400)
    counts = dict.fromkeys(("exact", "approximate", "rank_sum", "ks", "interval", "equivalence"), 0)
    for d, m, s in zip(between, model, own, strict=True):
        for test in ("exact", "approximate")[not symmetric :]:
            found = compare_with_subjects(d, m, symmetric=symmetric, bound=1.0, test=test)
            counts[test] += found.p_value <= 0.05
        counts["rank_sum"] += found.rank_sum_p <= 0.05
        counts["ks"] += found.ks_p <= 0.05
        fixed = compare_with_subjects(d, m - s + 2.0, symmetric=symmetric, bound=2.0)
        counts["interval"] += fixed.low <= 2.0 <= fixed.high
        counts["equivalence"] += fixed.equivalence_p <= 0.05
    rates = subject_test_rates().filter(n_subjects=n, sd_subject=sd, symmetric=symmetric, effects=effects)
    for test, count in counts.items():
        own_rows = rates.filter(pl.col("gap").is_in([0.0, 2.0]), test=test).sort("gap")
        if own_rows.height:
            low, high = wilson_interval(count, 400, confidence=0.999)
            assert low <= own_rows["rate"][0] <= high, test


def test_shipped_sizes_are_close_to_their_level():
    null = subject_test_rates().filter(pl.col("gap") == 0)
    ours = null.filter(pl.col("test").is_in(["exact", "approximate"]))
    skewed = pl.col("effects") == "skewed"
    assert ours.filter(~skewed)["rate"].max() <= 0.057
    assert ours.filter(skewed)["rate"].max() <= 0.07
    assert ours.filter(test="approximate")["rate"].min() >= 0.025
    boundary = subject_test_rates().filter(test="equivalence")
    assert boundary["rate"].max() <= 0.055
    assert subject_test_rates().filter(test="interval")["rate"].min() >= 0.945
    assert subject_test_rates()["n_simulations"].min() >= 10_000
    cells = subject_test_rates().drop("rate", "n_simulations")
    assert cells.is_unique().all()


def test_false_alarms_are_read_from_the_table():
    rows = subject_test_rates().filter(test="rank_sum", effects="normal", gap=0.0, symmetric=True, sd_subject=1.0)
    at = dict(rows.select("n_subjects", "rate").rows())
    assert false_alarms("rank_sum", 20, 2 / 3, True) == pytest.approx(at[20])
    assert false_alarms("rank_sum", 500, 0.9, True) == pytest.approx(at[40])
    assert at[10] < false_alarms("rank_sum", 14, 2 / 3, True) < at[20]
    assert np.isnan(false_alarms("ks", 20, np.nan, True))


def test_the_page_has_the_shipped_numbers():
    text = TOOL["PAGE"].read_text(encoding="utf-8")
    assert TOOL["page"](text, subject_test_rates()) == text, "run tools/simulate_subject_tests.py --page"


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"between": np.zeros((4, 5))}, "one per source and target"),
        ({"between": np.arange(16.0).reshape(4, 4)}, "both directions"),
        ({"model": np.zeros(3)}, "do not fit"),
        ({"bound": 0.0}, "bound of equivalence"),
        ({"bound": np.nan}, "bound of equivalence"),
        ({"alpha": 1.0}, "level"),
        ({"test": "exakt"}, "did you mean 'exact'"),
        ({"test": "exact", "symmetric": False}, "exact test needs the model as a target"),
    ],
)
def test_what_cannot_be_tested_is_refused(change, said):
    given = {"between": np.zeros((4, 4)), "model": np.zeros(4), "symmetric": True, "bound": 1.0}
    with pytest.raises(InputError, match=said):
        compare_with_subjects(**(given | change))
    with pytest.raises(InputError, match="one per target"):
        compare_with_pooled(np.zeros((2, 2)), np.zeros(2), bound=1.0)


def jackknifed(d):
    """Mean over pairs and its error, subject by subject."""
    n = len(d)
    pairs = [(i, j) for i, j in itertools.permutations(range(n), 2) if np.isfinite(d[i, j])]
    mean = np.mean([d[p] for p in pairs])
    here = sorted({i for pair in pairs for i in pair})
    away = [np.mean([d[p] for p in pairs if k not in p]) - mean for k in here]
    return mean, np.sqrt((len(here) - 1) / len(here) * np.sum(np.square(away))), len(here)


def test_means_over_pairs_are_those_of_a_loop_over_subjects():
    tables = np.stack([study(6, symmetric=bool(i % 2), seed=i)[0] for i in range(4)])
    tables[1, 2, 4] = np.nan
    tables[2, 3, :] = tables[2, :, 3] = np.nan
    found = pair_means(tables)
    low, high = found.interval(0.1)
    for i, d in enumerate(tables):
        mean, error, n = jackknifed(d)
        assert (found.mean[i], found.error[i], found.n[i]) == pytest.approx((mean, error, n))
        assert found.p_value[i] == pytest.approx(stats.t.sf(mean / error, n - 1))
        assert (low[i], high[i]) == pytest.approx(stats.t.interval(0.9, n - 1, mean, error))


def test_means_over_pairs_without_spread_or_without_pairs():
    constant = np.full((3, 3), 0.1)
    assert pair_means(constant).error == 0.0
    assert pair_means(constant).p_value == 0.0
    assert pair_means(-constant).p_value == 1.0
    two = pair_means(np.array([[np.nan, 1.0], [2.0, np.nan]]))
    assert (two.mean, two.n) == (1.5, 2)
    assert np.isnan([two.error, two.p_value]).all()
    none = pair_means(np.full((3, 3), np.nan))
    assert np.isnan([none.mean, none.error, none.p_value]).all()
    assert none.n == 0


def test_a_brief_test_is_the_same_test():
    d, m = study(6, symmetric=False, shift=0.4)
    full, brief = (compare_with_subjects(d, m, symmetric=False, bound=0.3, brief=own) for own in (False, True))
    assert np.isnan([brief.power, brief.detectable_gap, brief.rank_sum_p, brief.ks_p]).all()
    for name in ("test", "n", "gap", "low", "high", "p_value", "equivalence_p", "bound"):
        assert getattr(brief, name) == getattr(full, name)
