"""Out-of-sample R², sub-models and tests of subsets of feature spaces, by loops over units, folds and scikit-learn."""

from __future__ import annotations

import itertools
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from lpact.analyses.deconstruct.fits import (
    BEST_OF_NETWORK,
    BEST_OF_UNIT,
    NONE,
    SUB_MODELS,
    VALIDATION,
    compare,
    correlated,
    fit,
    nonempty_subsets,
    paired_p_values,
    q_values,
    sign_p_values,
)
from lpact.analyses.deconstruct.rows import Rows
from lpact.analyses.deconstruct.summaries import omega
from lpact.math.columns import mean_of_finite
from lpact.math.ridge import BandedGrid, Compute
from lpact.splits import grouped, shuffled
from lpact.stats import random_signs

ALPHAS = (0.3, 5.0, 80.0, 2000.0)
N_BLOCKS, PER_BLOCK = 12, 4
N = N_BLOCKS * PER_BLOCK
UNITS = (3, 4)
"""Units of two recordings of the same events."""
REGIONS = (["lang", "MD", "lang"], ["MD", "lang", "lang", "MD"])
VARIANTS = (1, 0, 1, 1)
"""Layer of the model in every outer fold."""
SUBSETS = nonempty_subsets(3)


class Study:
    """A small study: two simple spaces and two layers of a model; the last unit of the first recording is constant."""

    def __init__(self, metric):
        rng = np.random.default_rng(5)
        self.simple = [rng.standard_normal((N, 3)) * 4.0 + 1.0, rng.standard_normal((N, 1))]
        self.layers = [rng.standard_normal((N, 20)) for _ in range(2)]
        z = np.hstack([*self.simple, self.layers[1][:, :4]])
        weights = rng.standard_normal((8, 7)) * np.array([0.3, 0, 0, 0.3, 1.0, 0.0, 0.6])
        y = z @ weights + 1.5 * rng.standard_normal((N, 7)) + 10.0
        y[:, 2] = 0.1
        self.blocks = np.repeat(np.arange(N_BLOCKS), PER_BLOCK)
        split = shuffled(grouped(self.blocks, 4), seed=3)
        order, folds = split.blocks()
        prepared = [
            SimpleNamespace(
                reference=values,
                grid=SimpleNamespace(units=SimpleNamespace(regions=tuple(regions))),
            )
            for values, regions in zip(np.split(y, [3], axis=1), REGIONS, strict=True)
        ]
        names = tuple(f"passage {i}" for i in range(N_BLOCKS))
        self.split, self.y, self.metric = split, y, metric
        self.rows = Rows(prepared, split, order, folds, y[order], self.blocks[order], names, "lang")
        grid = BandedGrid(ALPHAS, draws=0, metric=metric)
        bands = lambda layer: [*self.simple, self.layers[layer]]  # noqa: E731
        self.fit = fit(self.rows, bands, VARIANTS, SUBSETS, grid, Compute())
        self.own = [0, 2, 4, 5]  # units of the network
        self.recordings = [[0, 2], [4, 5]]

    # --- loops, rows in the order of the recording ---

    def features(self, outer, spaces):
        every = [*self.simple, self.layers[VARIANTS[outer]]]
        return np.hstack([every[g] for g in spaces])

    @cache  # noqa: B019
    def guess(self, outer, held, spaces, alpha, unit):
        """Predictions of all rows and training mean, trained on all folds but ``held``.

        Equal weights 1/m of m spaces are a penalty m times as large.
        """
        train = ~np.isin(self.split.fold, held)
        x, y = self.features(outer, spaces), self.y[:, unit]
        scale = StandardScaler().fit(x[train])
        ridge = Ridge(alpha=alpha * len(spaces)).fit(scale.transform(x[train]), y[train])
        return ridge.predict(scale.transform(x)), y[train].mean()

    def validation(self, outer, spaces, alpha, unit):
        error = spread = 0.0
        by_block = []
        for inner in {*range(4)} - {outer}:
            rows = self.split.fold == inner
            guess, mean = self.guess(outer, (outer, inner), spaces, alpha, unit)
            y = self.y[rows, unit]
            sse = ((y - guess[rows]) ** 2).sum()
            error, spread = error + sse, spread + ((y - mean) ** 2).sum()
            by_block.append(1.0 - sse / ((y - y.mean()) ** 2).sum())
        return 1.0 - error / spread if self.metric == "pooled_r2" else np.mean(by_block)

    @cache  # noqa: B019
    def best(self, outer, subset, unit):
        """Validation score, spaces and penalty of a subset: all ways of dropping spaces, the smallest first."""
        found = (-np.inf, (), 0.0)
        for size in range(1, len(subset) + 1):
            for spaces in itertools.combinations(subset, size):
                for alpha in ALPHAS:
                    score = self.validation(outer, spaces, alpha, unit)
                    if score > found[0] + 1e-9:
                        found = score, spaces, alpha
        return found

    @cache  # noqa: B019
    def errors(self, subset, unit):
        """Squared errors of a subset, and around the training mean, in the order of the recording."""
        own, around = np.empty(N), np.empty(N)
        for outer in range(4):
            rows = self.split.fold == outer
            _, spaces, alpha = self.best(outer, subset, unit)
            guess, mean = self.guess(outer, (outer,), spaces, alpha, unit)
            own[rows] = (self.y[rows, unit] - guess[rows]) ** 2
            around[rows] = (self.y[rows, unit] - mean) ** 2
        return own, around

    def score(self, subset, unit):
        own, around = self.errors(subset, unit)
        return 1.0 - own.mean() / around.mean()

    def chosen(self, pool, sub_model):
        """The subset that stands for a pool, by unit and outer fold."""
        found = {}
        units = [u for u in range(7) if u != 2]
        if sub_model == BEST_OF_NETWORK:
            means = []
            for subset in pool:
                recordings = [
                    np.mean([max(self.score(subset, u), 0.0) for u in own if u != 2]) for own in self.recordings
                ]
                means.append(np.mean(recordings))
            best = pool[int(np.argmax(means))]
        for unit, outer in itertools.product(units, range(4)):
            if sub_model == NONE:
                found[unit, outer] = max(pool, key=len)
            elif sub_model == VALIDATION:
                scores = [self.best(outer, subset, unit)[0] for subset in pool]
                found[unit, outer] = pool[int(np.argmax(scores))]
            elif sub_model == BEST_OF_UNIT:
                scores = [self.score(subset, unit) for subset in pool]
                found[unit, outer] = pool[int(np.argmax(scores))]
            else:
                found[unit, outer] = best
        return found


@pytest.fixture(scope="module", params=["pooled_r2", "r2"])
def study(request):
    return Study(request.param)


VARYING = [0, 1, 3, 4, 5, 6]


def test_out_of_sample_r2_of_every_subset(study):
    for i, subset in enumerate(SUBSETS):
        expected = [study.score(subset, unit) for unit in VARYING]
        np.testing.assert_allclose(study.fit.scores[i, VARYING], expected, atol=1e-8)
        for outer, unit in itertools.product(range(4), VARYING):
            best = study.best(outer, subset, unit)[0]
            np.testing.assert_allclose(study.fit.validation[i, outer, unit], best, atol=1e-8)
    assert np.isnan(study.fit.scores[:, 2]).all()
    assert np.isnan(study.fit.validation[:, :, 2]).all()
    assert (study.fit.scores[:, VARYING] < 0.0).any()  # not clipped


def test_errors_are_those_of_the_rows(study):
    order = study.rows.order
    for units, around, errors in study.fit.errors():
        for unit in set(VARYING) & set(range(*units.indices(7))):
            for i, subset in enumerate(SUBSETS):
                own, mean = study.errors(subset, unit)
                np.testing.assert_allclose(errors[i, :, unit - units.start], own[order], atol=1e-8)
                np.testing.assert_allclose(around[:, unit - units.start], mean[order], atol=1e-8)


POOLS = {
    "simple": [(0,), (1,), (0, 1)],
    "with the model": [(2,), (0, 2), (1, 2), (0, 1, 2)],
    "one": [(1, 2)],
}


@pytest.mark.parametrize("sub_model", SUB_MODELS)
@pytest.mark.parametrize("pool", POOLS)
def test_sub_models(study, sub_model, pool):
    subsets = POOLS[pool]
    got = study.fit.choice([SUBSETS.index(own) for own in subsets], sub_model)
    assert got.shape == (4, 7)
    expected = study.chosen(subsets, sub_model)
    for (unit, outer), subset in expected.items():
        chosen = SUBSETS[got[outer, unit]]
        if sub_model == VALIDATION:  # larger subsets may drop spaces: several can be equally good
            scores = [study.best(outer, own, unit)[0] for own in (chosen, subset)]
            assert abs(scores[0] - scores[1]) < 1e-9
        else:
            assert chosen == subset
    scores = study.fit.chosen_scores(got)
    for unit in VARYING:
        own, around = np.empty(N), np.empty(N)
        for outer in range(4):
            rows = study.split.fold == outer
            errors = study.errors(expected[unit, outer], unit)
            own[rows], around[rows] = errors[0][rows], errors[1][rows]
        np.testing.assert_allclose(scores[unit], 1.0 - own.sum() / around.sum(), atol=1e-8)
    assert np.isnan(scores[2])
    best = max(study.rows.mean(study.fit.scores[[SUBSETS.index(s) for s in subsets]]))
    if sub_model == BEST_OF_NETWORK:
        np.testing.assert_allclose(study.rows.mean(scores), best)
    if sub_model == BEST_OF_UNIT:
        assert study.rows.mean(scores) >= best - 1e-12


def test_means_over_a_network(study):
    """Clipped in every unit, then over the units of a recording, then over recordings."""
    scores = study.fit.scores[3]
    expected = np.mean([max(scores[0], 0.0), np.mean(np.maximum(scores[[4, 5]], 0.0))])
    np.testing.assert_allclose(study.rows.mean(scores), expected)
    raw = np.mean([scores[0], np.mean(scores[[4, 5]])])
    np.testing.assert_allclose(study.rows.mean(scores, clipped=False), raw)
    np.testing.assert_array_equal(mean_of_finite(np.array([[1.0, np.nan, 3.0], [np.nan] * 3]), -1), [2.0, np.nan])


def test_comparisons(study):
    """Paired t-tests on events and on blocks, and signs of all blocks by enumeration."""
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=N_BLOCKS)))
    simple = study.fit.choice([SUBSETS.index(s) for s in POOLS["simple"]], BEST_OF_UNIT)
    both = study.fit.choice([SUBSETS.index(s) for s in POOLS["with the model"]], VALIDATION)
    found = compare(study.fit, {"mean": (None, both), "simple": (simple, both)}, signs)
    for name, got in found.items():
        gains = np.full((N_BLOCKS, 7), np.nan)
        for unit in VARYING:
            with_, without, around = np.empty(N), np.empty(N), study.errors((0,), unit)[1]
            for outer in range(4):
                rows = study.split.fold == outer
                with_[rows] = study.errors(SUBSETS[both[outer, unit]], unit)[0][rows]
                without[rows] = study.errors(SUBSETS[simple[outer, unit]], unit)[0][rows]
            first = around if name == "mean" else without
            if np.abs(first - with_).max() < 1e-9:  # the same fit
                assert [*(own[unit] for own in got.p.values())] == [1.0] * 3
                gains[:, unit] = 0.0
                continue
            expected = stats.ttest_rel(first, with_, alternative="greater").pvalue
            np.testing.assert_allclose(got.p["events"][unit], expected, rtol=1e-6)
            one, two = (e.reshape(N_BLOCKS, PER_BLOCK).mean(axis=1) for e in (first, with_))
            expected = stats.ttest_rel(one, two, alternative="greater").pvalue
            np.testing.assert_allclose(got.p["blocks"][unit], expected, rtol=1e-6)
            reaching = (signs @ (one - two) >= (one - two).sum() - 1e-12).sum()
            assert got.p["signs"][unit] == (1 + reaching) / (1 + 2**N_BLOCKS)
            gains[:, unit] = (one - two) / around.mean()
        for test in ("events", "blocks", "signs"):  # a unit that does not vary gains nothing
            assert got.p[test][2] == 1.0
        np.testing.assert_allclose(got.gain[0], gains[:, 0], atol=1e-8)
        np.testing.assert_allclose(got.gain[1], gains[:, [4, 5]].mean(axis=1), atol=1e-8)


def test_fits_that_are_the_same_but_for_rounding_do_not_differ():
    """301 units whose model is dropped: sums in another order differ in the last digit, and are no gain."""
    rng = np.random.default_rng(1)
    n, n_units = 192, 301
    spaces = [rng.standard_normal((n, p)) for p in (4, 60, 300)]
    y = spaces[0] @ rng.standard_normal((4, n_units)) + 2.0 * rng.standard_normal((n, n_units))
    blocks = np.repeat(np.arange(24), 8)
    order, folds = grouped(blocks, 8).blocks()
    units = SimpleNamespace(regions=("",) * n_units)
    prepared = [SimpleNamespace(reference=y, grid=SimpleNamespace(units=units))]
    names = tuple(str(i) for i in range(24))
    rows = Rows(prepared, grouped(blocks, 8), order, folds, y, blocks, names, "")
    grid = BandedGrid((1.0, 10.0, 100.0, 1000.0), draws=5, patience=5, metric="pooled_r2")
    fitted = fit(rows, lambda _: spaces, [None] * 8, [(0,), (0, 1), (0, 2)], grid, Compute())
    one, two, three = (np.full((8, n_units), i) for i in range(3))
    signs = random_signs(np.random.default_rng(0), (99, 24))
    found = compare(fitted, {"second": (one, two), "third": (one, three)}, signs)
    ((_, _, errors),) = fitted.errors()
    for place, got in enumerate(found.values(), 1):
        same = np.abs(errors[place] - errors[0]).max(axis=0) < 1e-9
        assert same.sum() > 200
        for p in got.p.values():
            np.testing.assert_array_equal(p[same], 1.0)
        assert (got.p["events"][~same] < 1.0).all()


# --- p-values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 20, 400])
def test_paired_p_values_are_those_of_scipy(n):
    rng = np.random.default_rng(n)
    first, second = rng.gamma(1.0, size=(n, 30)), rng.gamma(1.0, size=(n, 30))
    expected = stats.ttest_rel(first, second, axis=0, alternative="greater").pvalue
    np.testing.assert_allclose(paired_p_values(first - second), expected, rtol=1e-10)


def test_paired_p_values_of_differences_that_do_not_vary():
    gain = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    assert paired_p_values(gain)[0] == 1.0
    assert 0.0 < paired_p_values(gain)[1] < 0.5
    np.testing.assert_array_equal(paired_p_values(gain[:1]), 1.0)


def test_sign_p_values_by_enumeration():
    rng = np.random.default_rng(0)
    gain = rng.standard_normal((8, 20)) + 0.4
    gain[:, 0] = 0.1  # every block gains as much: only all signs positive reach it
    gain[:, 1] = 0.0
    gain[:, 2] = -0.3
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=8)))
    got = sign_p_values(gain, signs)
    for unit in range(20):
        sums = [sum(s * g for s, g in zip(row, gain[:, unit], strict=True)) for row in signs]
        reaching = sum(total >= gain[:, unit].sum() - 1e-9 for total in sums)
        assert got[unit] == (1 + reaching) / 257
    assert got[0] == 2 / 257
    assert got[1] == got[2] == 1.0
    exact = stats.permutation_test(
        (gain[:, 5],), np.sum, permutation_type="samples", alternative="greater", n_resamples=np.inf
    ).pvalue
    np.testing.assert_allclose((got[5] * 257 - 1) / 256, exact)


def test_signs_are_repeatable_and_even():
    one, two = (random_signs(np.random.default_rng(3), (4000, 5)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert {*one.ravel()} == {-1.0, 1.0}
    assert np.abs(one.mean(axis=0)).max() < 0.06


def test_q_values_within_every_region():
    rng = np.random.default_rng(1)
    p = rng.uniform(size=40) ** 3
    p[7] = np.nan
    regions = ["lang", "MD", "visual", "lang"] * 10
    got = q_values(p, regions)
    for region in ("lang", "MD", "visual"):
        own = np.array([r == region for r in regions]) & np.isfinite(p)
        np.testing.assert_allclose(got[own], stats.false_discovery_control(p[own]), rtol=1e-12)
    assert np.isnan(got).tolist() == np.isnan(p).tolist()
    assert not np.allclose(got[own], stats.false_discovery_control(p[np.isfinite(p)])[:10])


def test_correlations_of_finite_pairs():
    one, two = np.array([1.0, 2.0, np.nan, 4.0, 0.0]), np.array([2.0, 1.0, 5.0, 3.0, np.nan])
    expected = stats.pearsonr([1.0, 2.0, 4.0], [2.0, 1.0, 3.0]).statistic
    np.testing.assert_allclose(correlated(one, two), expected)
    assert correlated(one[:3], two[:3]) is None
    assert correlated(np.zeros(4), np.arange(4.0)) is None


# --- Ω ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "simple", "both", "expected"),
    [
        (0.10, 0.04, 0.12, 20.0),  # adds 0.08 of 0.10
        (0.10, 0.09, 0.12, 70.0),
        (0.10, 0.10, 0.10, 100.0),
        (0.10, 0.00, 0.10, 0.0),
        (0.10, 0.00, 0.25, 0.0),  # more than all of it: cut off
        (0.10, 0.30, 0.20, 100.0),  # the model only hurts
        (0.10, 0.04, 0.07, 40.0),  # both below the model: raised to 0.10
        (0.10, 0.20, 0.05, 100.0),
        (0.0, 0.10, 0.10, 100.0),
        (0.0, 0.0, 0.0, 100.0),
        (-0.2, 0.10, 0.15, 100.0),  # a model that predicts nothing
        (0.10, -0.05, 0.08, 0.0),
    ],
)
def test_omega(model, simple, both, expected):
    np.testing.assert_allclose(omega(model, simple, both), expected, atol=1e-9)


def test_omega_without_scores_is_undefined():
    assert np.isnan(omega(np.nan, 0.1, 0.2))
    assert np.isnan(omega(0.1, np.nan, 0.2))
