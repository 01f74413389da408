"""Every registered measure: traits it declares, fast ways against plain ones, undefined values with a reason.

A measure that is registered is tested, with its default options; `VARIANTS` has options on which traits depend.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import ortho_group, zscore
from sklearn.model_selection import KFold

from lpact.errors import InputError, SplitError
from lpact.math.ridge import RidgeGrid
from lpact.measures import MEASURES, PLS, RBFCKA, RSA, LinearPredictivity, Measure, MutualKNN
from lpact.measures.base import (
    SOURCE_CONSTANT,
    SOURCE_MISSING,
    TARGET_CONSTANT,
    TARGET_MISSING,
    TOO_FEW,
)
from lpact.splits import contiguous, shuffled

N, P, T = 60, 6, 4
VARIANTS = [
    RSA(dissimilarity="euclidean"),
    *(RSA(comparator=c) for c in ("cosine", "spearman", "tau_a", "rho_a", "pearson_whitened")),
    RSA(dissimilarity="euclidean", comparator="cosine_whitened"),
    MutualKNN(distance="euclidean", k=5),
    PLS(n_components=2, scale=True),
]
# With as many components as features, PLS is least squares, which scales of columns do not change.
DEFAULTS = [PLS(n_components=2) if e.name == "pls" else e.plugin() for e in MEASURES.entries()]


def measures_that(condition=lambda measure: True):
    """Parametrise a test over the measures that meet the condition."""
    found = [measure for measure in DEFAULTS + VARIANTS if condition(measure)]
    return pytest.mark.parametrize("measure", found, ids=lambda m: m.name)


def takes_numbers(measure):
    """All but error consistency, which takes answers of 0 and 1."""
    return measure.name != "error_consistency"


def compares(measure):
    """Whether representations with any numbers of columns are prepared and compared."""
    return measure.scope == "population" and not measure.needs_fit and not measure.behavioural


EVERY, NUMBERS = measures_that(), measures_that(takes_numbers)
COMPARED = measures_that(compares)
CHANGES = {
    "offset": lambda x, rng: x + rng.standard_normal(x.shape[1]),
    "scale": lambda x, rng: 3.7 * x,
    "column_scale": lambda x, rng: x * rng.uniform(0.2, 5.0, x.shape[1]),
    "permutation": lambda x, rng: x[:, ::-1],
    "rotation": lambda x, rng: x @ ortho_group.rvs(x.shape[1], random_state=3),
}


@pytest.fixture
def data(request):
    measure = getattr(request.node, "callspec", None) and request.node.callspec.params.get("measure")
    rng = np.random.default_rng(0)
    if measure and not takes_numbers(measure):
        return tuple((rng.random((2, N, 1)) < rng.random((N, 1))).astype(float))
    p = T if measure and measure.behavioural else P
    x = rng.standard_normal((N, p)) @ rng.standard_normal((p, p)) + rng.standard_normal(p)
    y = x @ rng.standard_normal((p, T)) + 2.0 * rng.standard_normal((N, T))
    return x, y


def scored(measure: Measure, x, y):
    """Fitted on the first 40 stimuli, scored on the others; without a fit, scored on all."""
    if measure.needs_fit:
        return measure.fit(x[:40], y[:40]).score(x[40:], y[40:])
    return measure.fit(x, y).score(x, y)


@EVERY
def test_scope_says_how_many_numbers(measure, data):
    score = scored(measure, *data)
    assert score.value.shape == score.reason.shape == ((T,) if measure.scope == "unit" else ())
    assert np.isfinite(score.value).all()
    assert (score.reason == "").all()
    assert score.n_undefined == 0


@EVERY
def test_symmetric_measures_have_no_direction_and_the_others_do(measure, data):
    x, y = data
    if measure.symmetric:
        there, back = float(scored(measure, x, y)), float(scored(measure, y, x))
        assert there == pytest.approx(back, abs=1e-12)
    else:
        there, back = scored(measure, x, y).value, scored(measure, y, x).value
        assert there.shape != back.shape or np.abs(there - back).max() > 1e-4


@NUMBERS
@pytest.mark.parametrize("change", CHANGES)
def test_declared_invariances_hold_and_no_other(measure, change, data):
    """For a symmetric measure, on either side. Without the declaration, the value changes."""
    x, y = data
    moved = CHANGES[change](x, np.random.default_rng(1))
    expected, found = scored(measure, x, y).value, scored(measure, moved, y).value
    if change in measure.invariances:
        np.testing.assert_allclose(found, expected, atol=1e-8)
        if measure.symmetric:
            other = CHANGES[change](y, np.random.default_rng(2))
            np.testing.assert_allclose(scored(measure, x, other).value, expected, atol=1e-8)
    else:
        assert np.abs(found - expected).max() > 1e-4


@NUMBERS
def test_a_representation_is_aligned_with_itself(measure, data):
    """No other is aligned with it better."""
    x, y = data
    own = scored(measure, x, x).value
    if measure.symmetric:
        assert float(own) == pytest.approx(1.0, abs=1e-10)
    rng = np.random.default_rng(4)
    for other in (y, x + rng.standard_normal(x.shape), rng.standard_normal(x.shape)):
        assert scored(measure, x, other).value.max() <= own.max() + 1e-9
    values = measure.pairwise(x, contiguous(N, 3)) if measure.needs_fit else measure.pairwise(x)
    np.testing.assert_allclose(np.diagonal(values), 1.0, atol=1e-3)


@measures_that(lambda m: not m.needs_fit and not m.behavioural)
def test_units_are_populations_of_one(measure, data):
    """The fast way to many units is the plain score of each, from standardised features."""
    x, y = data
    y[:, 2] = 5.0
    z = zscore(x)
    expected = [measure.score(z, y[:, [j]]).value.item() for j in range(T)]
    np.testing.assert_allclose(measure.to_units(x, y), expected, atol=1e-9)
    np.testing.assert_allclose(Measure.to_units(measure, x, y), expected, atol=1e-9)
    assert np.isnan(expected[2])


@NUMBERS
def test_pairs_of_units_are_plain_scores(measure, data):
    _, y = data
    split, columns = contiguous(N, 4, gap=1), [y[:, [i]] for i in range(y.shape[1])]
    value = measure.score
    if measure.needs_fit:
        value = lambda a, b: measure.cross_validate(a, b, split)  # noqa: E731
    found = measure.pairwise(y, split)
    expected = [[value(a, b).value.item() for b in columns] for a in columns]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    if measure.from_readout or not measure.needs_fit:
        np.testing.assert_allclose(Measure.pairwise(measure, y, split), found, atol=1e-9)


@COMPARED
def test_prepared_representations_give_the_score(measure, data):
    x, y = data
    wide = np.random.default_rng(5).standard_normal((N, 3 * N))
    wide[:, :P] += x
    for a, b in ((x, y), (x, wide), (wide, x), (wide, wide[:, ::2])):
        prepared = measure.compare(measure.prepare(a), measure.prepare(b))
        assert prepared == pytest.approx(float(measure.score(a, b)), abs=1e-12)


@COMPARED
def test_repetitions_are_their_mean(measure, data):
    """That of the trials that are not missing; and all pairs are each of them."""
    trials = [side[:, None] + np.array([-1.0, 0.0, 1.0])[:, None] for side in data]
    for one in trials:
        one[3, 1] = np.nan  # the trial that is the mean
    prepared = [measure.prepare_trials(one) for one in (*trials, trials[0][:, ::2])]
    expected = measure.compare(*(measure.prepare(side) for side in data))
    values = measure.compare_all(prepared)
    np.testing.assert_allclose(values[0, [1, 2]], [expected, 1.0], atol=1e-12)
    each = [[measure.compare(a, b) for b in prepared] for a in prepared]
    np.testing.assert_allclose(values, each, atol=1e-12)


@measures_that(lambda m: m.correctable)
def test_corrected_measures_are_bounded(measure, data):
    assert np.abs(scored(measure, *data).value).max() <= 1.0


@NUMBERS
def test_undefined_values_have_a_reason(measure, data):
    x, y = data
    constant, missing = y.copy(), y.copy()
    constant[:, 1] = missing[:, 1] = 2.0
    missing[3, 1] = missing[45, 1] = np.nan
    if measure.scope == "population":
        measure.fit(x, y)
        assert measure.score(x, np.ones_like(y)).reason == TARGET_CONSTANT
        assert measure.score(x, missing).reason == TARGET_MISSING
    else:
        for target, reason in ((constant, TARGET_CONSTANT), (missing, TARGET_MISSING)):
            score = measure.fit(x, y).score(x, target)
            assert score.reason.tolist() == ["", reason, "", ""]
            np.testing.assert_array_equal(np.isnan(score.value), [False, True, False, False])
            assert score.n_undefined == 1
    holes = x.copy()
    holes[0, 0] = np.nan
    measure.fit(x, y)
    for source, reason in ((holes, SOURCE_MISSING), (np.ones_like(x), SOURCE_CONSTANT)):
        score = measure.score(source, y)
        assert np.isnan(score.value).all()
        assert (score.reason == reason).all()
    few = measure.score(x[:2], y[:2])
    assert np.isnan(few.value).all()
    assert (few.reason == TOO_FEW).all()


@EVERY
def test_bad_shapes_are_errors(measure, data):
    x, y = data
    with pytest.raises(InputError, match="different numbers of stimuli"):
        measure.score(x, y[:-1])
    with pytest.raises(InputError, match="not a matrix"):
        measure.fit(x[None], y)
    with pytest.raises(InputError, match="another number of stimuli"):
        measure.cross_validate(x, y, contiguous(N + 1, 3))
    with pytest.raises(InputError, match=r"not a Split[\s\S]*KFold"):
        measure.cross_validate(x, y, KFold(3))


@EVERY
def test_a_split_without_training_rows_is_the_error_of_its_check(measure, data):
    split = contiguous(N, 2, gap=N)
    with pytest.raises(SplitError, match="no training row is left") as expected:
        split.check()
    with pytest.raises(SplitError) as found:
        measure.cross_validate(*data, split)
    assert str(found.value) == str(expected.value)


@NUMBERS
def test_cross_validation_is_the_mean_over_folds(measure, data):
    x, y = data
    split = contiguous(N, 4, gap=1)
    score = measure.cross_validate(x, y, split)
    assert score.by_fold.shape == (4, *score.value.shape)
    assert score.combined == ("pooled" if measure.from_readout else "mean of folds")
    assert f"4 folds, {score.combined}" in repr(score)
    assert len(repr(score)) < 100
    if not measure.needs_fit:
        folds = [measure.score(x[test], y[test]).value for _, test in split]
        np.testing.assert_allclose(score.by_fold, folds)
        np.testing.assert_allclose(score.value, np.mean(folds, axis=0))
        y[split.rows(0)[1]] = 1.0  # one fold without a value
        left = measure.cross_validate(x, y, split)
        np.testing.assert_allclose(left.value, np.mean(folds[1:], axis=0))
        assert np.isnan(left.by_fold[0]).all()


@NUMBERS
def test_independent_representations_are_zero_at_chance_or_not(measure):
    """A measure says which; the mean is over 40 draws. A held-out R² is below zero, others above."""
    rng, values = np.random.default_rng(3), []
    for _ in range(40):
        x, y = rng.standard_normal((2, N, T))
        values.append(np.mean(scored(measure, x, y).value))
    z = np.mean(values) / (np.std(values, ddof=1) / np.sqrt(len(values)))
    if measure.name == "linear_r2":
        assert z < -4
    else:
        assert abs(z) < 4 if measure.zero_at_chance else z > 10


@pytest.mark.parametrize("name", ["cka_debiased", "cka_rbf_debiased"])
def test_debiased_measures_average_zero_where_nothing_is_shared(name):
    """|mean| < 3 standard errors over 200 draws of independent data; the biased twin is far above."""
    rng = np.random.default_rng(0)
    draws = [(rng.standard_normal((100, 500)), rng.standard_normal((100, 300))) for _ in range(200)]
    values = np.array([float(MEASURES.build(name).score(x, y)) for x, y in draws])
    assert abs(values.mean()) < 3 * values.std(ddof=1) / np.sqrt(200)
    biased = MEASURES.build(name.removesuffix("_debiased"))
    assert min(float(biased.score(x, y)) for x, y in draws[:10]) > 0.5


def test_measures_without_an_override_say_so(data):
    class Nothing(Measure):
        name, summary, scope, symmetric = "nothing", "overrides nothing", "unit", False

    with pytest.raises(NotImplementedError, match="'nothing' overrides neither"):
        Nothing().score(*data)


def test_fitted_measures_need_a_split_for_pairs(data):
    with pytest.raises(InputError, match="must be fitted"):
        LinearPredictivity().pairwise(data[1])


def test_options_are_keywords():
    assert RBFCKA(median_fraction=0.5).options.median_fraction == 0.5
    with pytest.raises(Exception, match="did you mean 'median_fraction'"):
        RBFCKA(median_fractoin=0.5)


def test_rsa_is_that_of_full_matrices(data):
    x, y = data
    first, second = (1 - np.corrcoef(side) for side in (x, y))
    upper = np.triu_indices(N, 1)
    expected = np.corrcoef(first[upper], second[upper])[0, 1]
    assert float(RSA().score(x, y)) == pytest.approx(expected, abs=1e-12)


def test_shuffled_splits_flatter_autocorrelated_data():
    """No signal at all, but neighbours that resemble each other."""
    rng = np.random.default_rng(2)
    x, y = (lfilter([1.0], [1.0, -0.9], rng.standard_normal((400, k)), axis=0) for k in (100, 20))
    measure = LinearPredictivity(grid=RidgeGrid((1.0, 100.0, 1e4)))
    split = contiguous(400, 8, gap=10)
    assert abs(np.median(measure.cross_validate(x, y, split).value)) < 0.15
    assert np.median(measure.cross_validate(x, y, shuffled(split, seed=0)).value) > 0.7
