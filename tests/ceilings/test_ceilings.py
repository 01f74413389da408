"""Ceilings against closed forms, plain loops and planted reliabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr, zscore

from lpact import ceilings
from lpact.errors import InputError
from lpact.math.ridge import RidgeGrid
from lpact.math.scores import pearson_columns
from lpact.measures import CKA, RSA, EventResponse, LinearPredictivity, Measure
from lpact.measures.base import TOO_FEW
from lpact.responses import Responses
from lpact.splits import contiguous


def test_spearman_brown_by_hand():
    found = ceilings.spearman_brown([0.5, 0.0, -0.2, -1.0, 1.0])
    np.testing.assert_allclose(found, [2 / 3, 0.0, -0.5, np.nan, 1.0])
    assert ceilings.spearman_brown(0.5, factor=4) == pytest.approx(0.8)
    r = np.array([0.3, 0.7])
    np.testing.assert_allclose(ceilings.spearman_brown(ceilings.spearman_brown(r), 0.5), r)


def test_noise_correction_by_hand():
    assert ceilings.noise_corrected(0.3, 0.36) == pytest.approx(0.5)
    assert ceilings.noise_corrected(0.3, 0.36, 0.25) == pytest.approx(1.0)
    found = ceilings.noise_corrected([0.1, 0.2, 0.3], [0.5, 0.0, -0.1], 0.9)
    assert np.isnan(found).tolist() == [False, True, True]
    for reliabilities in ([[0.5, 0.5, 0.5]], []):
        with pytest.raises(InputError, match=r"do not correspond[\s\S]*shapes \(2,\)"):
            ceilings.noise_corrected([0.1, 0.2], *reliabilities)


def planted(n=20_000, r=6, noise=2.0, seed=0):
    """Signal of variance 1, noise of variance 4 in every trial."""
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((n, 1, 2))
    return signal, signal + noise * rng.standard_normal((n, r, 2))


def test_split_half_recovers_a_planted_reliability():
    """Three trials: 1 / (1 + 4/3) = 3/7; six: 1 / (1 + 4/6) = 3/5. The noise-corrected score of the truth is 1."""
    signal, responses = planted()
    found = ceilings.split_half(responses, n_draws=10)
    np.testing.assert_allclose(found.value, 3 / 7, atol=0.02)
    np.testing.assert_allclose(found.corrected, 3 / 5, atol=0.02)
    mean = responses.mean(axis=1)
    r = [pearsonr(signal[:, 0, u], mean[:, u]).statistic for u in range(2)]
    np.testing.assert_allclose(ceilings.noise_corrected(r, found.corrected), 1.0, atol=0.02)


def test_split_half_is_the_correlation_of_the_given_halves():
    _, responses = planted(n=30)
    halves = [(np.array([0, 1, 2]), np.array([3, 4, 5])), (np.array([0, 5]), np.array([2, 3]))]
    found = ceilings.split_half(responses, halves=halves)
    expected = [
        [pearsonr(*(responses[:, half, u].mean(axis=1) for half in pair)).statistic for u in (0, 1)] for pair in halves
    ]
    np.testing.assert_allclose(found.values, expected, atol=1e-12)
    np.testing.assert_allclose(found.value, np.mean(expected, axis=0), atol=1e-12)


@pytest.mark.parametrize(("n_repetitions", "truth"), [(2, 2 / 3), (3, 0.75), (5, 5 / 6), (6, 6 / 7)])
def test_the_corrected_reliability_is_that_of_all_repetitions(n_repetitions, truth):
    """Signal and noise of variance 1: k / (k + 1), also for odd k; averaged over units as simulations."""
    rng = np.random.default_rng(1)
    responses = rng.standard_normal((2000, 1, 40)) + rng.standard_normal((2000, n_repetitions, 40))
    found = ceilings.split_half(responses, n_draws=10)
    assert found.corrected.mean() == pytest.approx(truth, abs=0.005)
    np.testing.assert_allclose(found.factor, n_repetitions / (n_repetitions // 2))
    assert not found.n_left_out.any()
    responses = Responses.from_numpy(responses)
    a, b = responses.split_halves(np.random.default_rng(0))
    r = pearson_columns(a, b)
    assert ceilings.spearman_brown(r, found.factor).mean() == pytest.approx(truth, abs=0.005)


@pytest.mark.parametrize("counts", [(2, 8), (3, 8), (2, 5, 7), (1, 2, 8)])
def test_unbalanced_trials_are_corrected_by_their_numbers(counts):
    """The truth is the correlation with an independent copy of the experiment, over stimuli with two trials."""
    rng = np.random.default_rng(3)
    signal = rng.standard_normal((3000, 1, 30))
    first, second = (signal + rng.standard_normal((3000, 8, 30)) for _ in range(2))
    for i, count in enumerate(counts):
        first[i :: len(counts), count:] = second[i :: len(counts), count:] = np.nan
    usable = np.isfinite(first[:, 1, 0])
    truth = pearson_columns(*(np.nanmean(one[usable], axis=1) for one in (first, second))).mean()
    found = ceilings.split_half(first, n_draws=10)
    assert found.corrected.mean() == pytest.approx(truth, abs=0.006)
    assert (found.n_left_out == (~usable).sum()).all()
    assert found.n_left_out.shape == (10, 30)


def test_given_halves_of_different_sizes_are_corrected_closely():
    rng = np.random.default_rng(4)
    responses = rng.standard_normal((3000, 1, 30)) + rng.standard_normal((3000, 3, 30))
    halves = [(np.array([0, 2]), np.array([1])), (np.array([0]), np.array([1, -1]))]
    found = ceilings.split_half(responses, halves=halves)
    assert found.corrected.mean() == pytest.approx(3 / 4, abs=0.01)
    responses[:, 0, 0] = np.nan  # leaves the first unit without the second draw
    found = ceilings.split_half(responses, halves=halves)
    assert found.n_undefined[:2].tolist() == [1, 0]
    assert np.isfinite(found.corrected).all()
    with pytest.raises(IndexError):
        ceilings.split_half(responses, halves=[(np.array([1, 2]), np.array([3]))])


def test_halves_are_disjoint_equal_and_seeded():
    present = np.ones((4, 7, 2), dtype=bool)
    present[1, 2] = present[2, 1:] = present[3, :4, 1] = False
    rng, again = np.random.default_rng(4), np.random.default_rng(4)
    chosen = set()
    for _ in range(20):
        first, second = ceilings.random_halves(present, rng)
        assert not (first & second).any()
        assert not ((first | second) & ~present).any()
        for half in (first, second):
            np.testing.assert_array_equal(half.sum(axis=1), [[3, 3], [3, 3], [0, 0], [3, 1]])
        assert np.array_equal(first, ceilings.random_halves(present, again)[0])
        chosen.add(tuple(first[0, :, 0]))
    assert len(chosen) > 10
    with pytest.raises(InputError, match="without repetitions"):
        ceilings.split_half(np.zeros((5, 1, 2)))
    for options in ({"n_draws": 0}, {"halves": []}):
        with pytest.raises(InputError, match="no halves"):
            ceilings.split_half(np.zeros((5, 4, 2)), **options)


def test_the_display_is_short():
    _, responses = planted(n=30)
    responses[:, :, 1] = np.nan
    found = ceilings.split_half(responses, n_draws=5)
    assert repr(found) == "Ceiling(2 units, 5 values each, 5 undefined)"


def test_missing_trials_are_left_out_and_undefined_draws_counted():
    _, responses = planted(n=40, r=4)
    responses[:, :, 1] = np.nan
    responses[:3, 0, 0] = np.nan
    responses[5, :, 0] = np.nan
    halves = [(np.array([0, 1]), np.array([2, 3])), (np.array([0]), np.array([3]))]
    found = ceilings.split_half(responses, halves=halves)
    rows = np.setdiff1d(np.arange(40), [5])
    first = np.nanmean(responses[rows][:, [0, 1], 0], axis=1)
    expected = pearsonr(first, responses[rows][:, [2, 3], 0].mean(axis=1)).statistic
    assert found.values[0, 0] == pytest.approx(expected)
    rows = np.setdiff1d(np.arange(40), [0, 1, 2, 5])
    expected = pearsonr(responses[rows, 0, 0], responses[rows, 3, 0]).statistic
    assert found.values[1, 0] == pytest.approx(expected)
    assert np.isnan(found.value).tolist() == [False, True]
    assert found.n_undefined.tolist() == [0, 2]
    assert found.n_left_out.tolist() == [[1, 40], [4, 40]]
    assert np.isnan(found.corrected).tolist() == [False, True]


@pytest.fixture
def subjects():
    rng = np.random.default_rng(1)
    return rng.standard_normal((1, 50, 3)) + rng.standard_normal((4, 50, 3)) * 1.5


def test_group_mean_is_the_correlation_with_the_mean_of_the_others(subjects):
    found = ceilings.group_mean(subjects)
    z = zscore(subjects, axis=1)
    for include_self in (False, True):
        found = ceilings.group_mean(subjects, include_self=include_self)
        for s in range(4):
            rest = [i for i in range(4) if include_self or i != s]
            for u in range(3):
                expected = pearsonr(subjects[s, :, u], z[rest][:, :, u].mean(axis=0)).statistic
                assert found.values[s, u] == pytest.approx(expected)
    lower, upper = (ceilings.group_mean(subjects, include_self=own).value for own in (False, True))
    assert (upper > lower).all()


def subjects_mean(values):
    """Mean over the stimuli that each subject has."""
    return np.nansum(values, axis=1, keepdims=True) / np.isfinite(values).sum(axis=1, keepdims=True)


def test_group_mean_over_the_stimuli_that_two_others_have(subjects):
    subjects[1:, :10, 0] = np.nan
    subjects[1:3, 10:20, 0] = np.nan
    subjects[2, :, 1] = np.nan
    subjects[3, :, 2] = 7.0
    found = ceilings.group_mean(subjects, min_stimuli=10)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = subjects - subjects_mean(subjects)
        z /= np.sqrt(subjects_mean(z**2))
    rows = np.arange(20, 50)
    expected = pearsonr(subjects[0, rows, 0], z[1:, rows, 0].mean(axis=0)).statistic
    assert found.values[0, 0] == pytest.approx(expected)
    expected = pearsonr(subjects[0, :, 1], z[[1, 3], :, 1].mean(axis=0)).statistic
    assert found.values[0, 1] == pytest.approx(expected)
    expected = pearsonr(subjects[0, :, 2], z[[1, 2], :, 2].mean(axis=0)).statistic
    assert found.values[0, 2] == pytest.approx(expected)  # a constant unit tells nothing
    assert np.isnan(found.values[2, 1])
    assert np.isnan(found.values[3, 2])
    assert found.n_undefined.tolist() == [0, 1, 1]
    assert found.n_left_out[0].tolist() == [20, 0, 0]
    assert np.isnan(ceilings.group_mean(subjects, min_stimuli=31).values[0, 0])


def test_group_mean_needs_enough_others(subjects):
    with pytest.raises(InputError, match=r"too few subjects[\s\S]*2 subjects[\s\S]*min_others"):
        ceilings.group_mean(subjects[:2])
    for options in ({"min_others": 1}, {"include_self": True}):
        assert np.isfinite(ceilings.group_mean(subjects[:2], **options).values).all()


def test_a_ceiling_between_subjects_has_no_spearman_brown_correction(subjects):
    others = [(subjects[1], np.ones((50, 3), dtype=bool))]
    for found in (ceilings.group_mean(subjects), ceilings.agreement(subjects[0], others)):
        with pytest.raises(InputError, match=r"halves of repetitions[\s\S]*between subjects"):
            _ = found.corrected


def test_a_present_value_that_is_undefined_leaves_its_unit_undefined(subjects):
    z = subjects[1:].copy()
    z[0, 4, 1] = np.nan
    others = [(one, np.ones((50, 3), dtype=bool)) for one in z]
    r, n_stimuli = ceilings.correlation_with_mean(subjects[0], others)
    assert np.isnan(r).tolist() == [False, True, False]
    assert n_stimuli.tolist() == [50, 50, 50]


def test_agreement_is_over_shared_stimuli_and_units(subjects):
    own, other, third = subjects[:3]
    present = np.ones((50, 3), dtype=bool)
    present[:10] = present[:, 1] = False
    found = ceilings.agreement(own, [(other, present), (third, np.ones_like(present))])
    first = [pearsonr(own[10:, u], other[10:, u]).statistic for u in (0, 2)]
    second = [pearsonr(own[:, u], third[:, u]).statistic for u in range(3)]
    np.testing.assert_allclose(found.values, [[first[0], np.nan, first[1]], second], atol=1e-12)
    assert found.typical == pytest.approx((np.median(first) + np.median(second)) / 2)
    slopes = ceilings.agreement(own, [(other, present)], lambda a, b: (a * b).sum(axis=0))
    assert slopes.values[0, 2] == pytest.approx(own[10:, 2] @ other[10:, 2])
    nothing = ceilings.agreement(own, [(other, np.zeros_like(present))], lambda a, b: a.sum(axis=0))
    assert np.isnan(nothing.typical)


@pytest.fixture
def brains():
    rng = np.random.default_rng(2)
    shared = rng.standard_normal((60, 4))
    return [shared @ rng.standard_normal((4, k)) + 0.5 * rng.standard_normal((60, k)) for k in (5, 70, 4)]


@pytest.mark.parametrize("measure", [RSA(), CKA()], ids=lambda m: m.name)
def test_pairs_of_a_symmetric_measure(brains, measure):
    found = ceilings.subject_pairs(brains, measure)
    matrix = found.matrix
    for i in range(3):
        for j in range(3):
            expected = np.nan if i == j else float(measure.score(brains[i], brains[j]))
            np.testing.assert_allclose(matrix[i, j], expected, atol=1e-12)
    assert found.n_undefined == 0


def test_a_population_measure_may_override_values_alone(brains):
    class MeanResponse(Measure):
        name = "mean_response"
        summary = "Correlation of mean responses."
        scope = "population"
        symmetric = True

        def values(self, X, Y):
            return float(np.corrcoef(X.mean(axis=1), Y.mean(axis=1))[0, 1])

    measure, (x, y, _) = MeanResponse(), brains
    found = ceilings.subject_pairs(brains, measure)
    assert found.matrix[0, 1] == found.matrix[1, 0] == float(measure.score(x, y))
    z = zscore(x)
    expected = [float(measure.score(z, y[:, [j]])) for j in range(y.shape[1])]
    np.testing.assert_allclose(measure.to_units(x, y), expected, atol=1e-12)
    assert measure.pairwise(x).shape == (5, 5)


def test_a_measure_overrides_values_or_compare(brains):
    class Nothing(Measure):
        name = "nothing"
        summary = "Nothing."
        scope = "population"
        symmetric = True

    with pytest.raises(NotImplementedError, match="neither values nor compare"):
        Nothing().score(brains[0], brains[1])


def test_each_subject_is_prepared_once(brains):
    class Counted(RSA):
        n_prepared = 0

        def prepare(self, X):
            Counted.n_prepared += 1
            return super().prepare(X)

    ceilings.subject_pairs(brains, Counted())
    assert Counted.n_prepared == 3


def test_pairs_of_a_fitted_measure_are_ordered(brains):
    measure, split = LinearPredictivity(grid=RidgeGrid((1.0, 100.0))), contiguous(60, 4)
    found = ceilings.subject_pairs(brains, measure, split)
    assert set(found.scores) == {(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)}
    for (i, j), score in found.scores.items():
        expected = measure.cross_validate(brains[i], brains[j], split).value
        np.testing.assert_array_equal(score.value, expected)
        assert found.matrix[i, j] == np.median(expected)
    assert found.matrix[0, 1] != found.matrix[1, 0]
    with pytest.raises(InputError, match="must be fitted"):
        ceilings.subject_pairs(brains, measure)


def test_pairs_by_unit_without_a_fit(brains):
    found = ceilings.subject_pairs(brains, EventResponse())
    np.testing.assert_array_equal(found.scores[0, 2].value, EventResponse().score(brains[0], brains[2]).value)


def test_undefined_pairs_are_counted_with_the_reason(brains):
    brains[1] = brains[1].copy()
    brains[1][0, 0] = np.nan
    found = ceilings.subject_pairs(brains, RSA())
    assert found.n_undefined == 4
    assert found.scores[0, 1].reason == "the target has missing values"
    assert np.isfinite(found.matrix[0, 2])
    units = ceilings.subject_pairs(brains, EventResponse())
    assert units.n_undefined == 2 + 5 + 4  # one unit of subject 1 as target, twice; all where it is the source
    assert np.isfinite(units.matrix[0, 1])


@pytest.mark.parametrize("function", [ceilings.subject_pairs, ceilings.pooled_source])
@pytest.mark.parametrize("measure", [RSA(), CKA(), EventResponse()], ids=lambda m: m.name)
def test_subjects_are_checked_as_scores_are(brains, measure, function):
    found = function([brain[:2] for brain in brains], measure)
    for score in found.scores.values() if isinstance(found, ceilings.PairScores) else found:
        assert np.isnan(score.value).all()
        assert (score.reason == TOO_FEW).all()
    with pytest.raises(InputError, match=r"different numbers of stimuli[\s\S]*60, 59, 60 rows"):
        function([brains[0], brains[1][:-1], brains[2]], measure)
    with pytest.raises(InputError, match="too few subjects"):
        function(brains[:1], measure)
    with pytest.raises(InputError, match="not a matrix"):
        function([brain[None] for brain in brains], measure)


def test_the_pooled_source_is_all_other_units_side_by_side(brains):
    measure, split = LinearPredictivity(grid=RidgeGrid((1.0, 100.0))), contiguous(60, 4)
    found = ceilings.pooled_source(brains, measure, split)
    expected = measure.cross_validate(np.hstack([brains[0], brains[2]]), brains[1], split).value
    np.testing.assert_array_equal(found[1].value, expected)
    rsa = ceilings.pooled_source(brains, RSA())
    assert float(rsa[2]) == float(RSA().score(np.hstack(brains[:2]), brains[2]))
    with pytest.raises(InputError, match="must be fitted"):
        ceilings.pooled_source(brains, measure)


@pytest.mark.parametrize("shape", [(3, 4), (3, 0, 4)])
def test_responses_have_three_axes(shape):
    for function in (ceilings.split_half, ceilings.group_mean):
        with pytest.raises(InputError, match="three axes"):
            function(np.zeros(shape))
