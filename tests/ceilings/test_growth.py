"""Growth of brain–brain consistency: curves that are known, and brains that are simulated."""

import sys

import numpy as np
import pytest
from scipy.optimize import curve_fit

from lpact import ceilings, measures, splits
from lpact.errors import InputError

SIZES = np.array([10, 20, 40, 80])


def curve(limit, k, n=SIZES):
    return limit * np.sqrt(n / (n + k))


@pytest.mark.parametrize(("limit", "k"), [(0.8, 5.0), (0.5, 40.0), (0.9, 0.0)])
def test_the_limit_of_a_curve_without_noise(limit, k):
    found = ceilings.extrapolate(SIZES, np.repeat(curve(limit, k)[:, None], 4, axis=1))
    assert found.at_infinity == pytest.approx(limit, abs=1e-4)
    assert found.low == pytest.approx(limit, abs=1e-3) == found.high
    assert found.levelled_off is bool(curve(limit, k)[-1] >= 0.95 * limit)


def test_the_same_fit_as_scipy():
    rng = np.random.default_rng(0)
    values = curve(0.7, 25.0)[:, None] + 0.01 * rng.standard_normal((4, 6))
    (limit, _), _ = curve_fit(lambda n, limit, k: curve(limit, k, n), SIZES, values.mean(axis=1), p0=(0.6, 10.0))
    assert ceilings.extrapolate(SIZES, values).at_infinity == pytest.approx(limit, abs=1e-6)


def test_the_straight_line_over_doublings():
    values = np.repeat((0.2 + 0.1 * np.log2(SIZES / 10))[:, None], 3, axis=1)
    found = ceilings.extrapolate(SIZES, values)
    assert found.per_doubling == pytest.approx(0.1)
    assert found.reaches_one_at == pytest.approx(10 * 2**8)
    falling = ceilings.extrapolate(SIZES, values[::-1])
    assert falling.per_doubling == pytest.approx(-0.1)
    assert np.isnan(falling.reaches_one_at)


def test_the_interval_covers_the_limit():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(100):
        limits = 0.8 + 0.05 * rng.standard_normal(6)  # targets differ
        values = limits * np.sqrt(SIZES / (SIZES + 8.0))[:, None]
        found = ceilings.extrapolate(SIZES, values + 0.005 * rng.standard_normal(values.shape))
        covered += found.low <= 0.8 <= found.high
    assert 88 <= covered <= 100


def test_the_planted_limit_of_brains_that_share_some_latent_variables():
    """Of more and more units, which are random mixtures, the kernel becomes that of the latent variables."""
    measure, errors, overshoots = measures.DebiasedCKA(), [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        shared = rng.standard_normal((80, 10))
        latent = [np.hstack([shared, 0.8 * rng.standard_normal((80, 10))]) for _ in range(4)]
        pairs = [float(measure.score(a, b)) for a in latent for b in latent if a is not b]
        brains = [(own @ rng.standard_normal((20, 64)))[:, None] for own in latent]
        found = ceilings.growth(brains, measure, over="units", n_draws=3, estimator="none")
        both, one = (
            ceilings.extrapolate(found.sizes, found.values, both_sides=sides).at_infinity for sides in (True, False)
        )
        errors.append(both - np.mean(pairs))
        overshoots.append(np.isnan(one) or one > np.mean(pairs) + 0.1)
    assert abs(np.mean(errors)) < 0.03
    assert all(overshoots)  # the curve of one side is for fitted maps


def test_what_does_not_grow_has_reached_its_limit():
    values = np.repeat(np.array([0.6, 0.57, 0.56, 0.55])[:, None], 4, axis=1)
    found = ceilings.extrapolate(SIZES, values)
    assert found.at_infinity == found.low == found.high == 0.55
    assert found.levelled_off is True
    assert found.per_doubling < 0


def test_values_that_still_fall_say_nothing():
    """As values that are corrected with few repetitions do."""
    found = ceilings.extrapolate(SIZES, np.repeat(np.array([1.0, 0.7, 0.6, 0.55])[:, None], 4, axis=1))
    assert found.levelled_off is None
    assert np.isnan([found.at_infinity, found.low, found.high]).all()


def test_what_cannot_be_said():
    unsure = ceilings.extrapolate(SIZES, np.repeat(curve(0.8, 5.0)[:, None], 2, axis=1))
    assert unsure.levelled_off is None
    assert np.isnan(unsure.low)
    straight = ceilings.extrapolate(SIZES, np.repeat(np.sqrt(SIZES)[:, None] / 20, 3, axis=1))
    assert straight.levelled_off is False
    assert np.isnan(straight.at_infinity)
    assert np.isnan(ceilings.extrapolate(SIZES[:2], np.ones((2, 3))).per_doubling)
    some = np.repeat(curve(0.8, 5.0)[:, None], 4, axis=1)
    some[1, 0] = np.nan
    assert ceilings.extrapolate(SIZES, some).at_infinity == pytest.approx(0.8, abs=1e-4)
    assert ceilings.extrapolate(SIZES, np.full((4, 3), np.nan)).levelled_off is None


def brains(n_units, n=200, r=4, noise=1.5, n_subjects=4, seed=0):
    """Brains that see the same latent variables in full, so that their units and noise alone limit consistency."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 6))
    return [
        (z @ rng.standard_normal((6, n_units)) / np.sqrt(6))[:, None] + noise * rng.standard_normal((n, r, n_units))
        for _ in range(n_subjects)
    ]


def test_more_units_make_better_sources():
    subjects, split = brains(n_units=32, r=2), list(splits.contiguous(200, 4))
    found = ceilings.growth(subjects, measures.LinearPredictivity(), split, over="units", n_draws=2, n_halves=2)
    assert found.sizes.tolist() == [4, 8, 16, 32]
    assert found.values.shape == (4, 4)
    assert found.corrected
    mean = found.values.mean(axis=1)
    assert mean[0] + 0.05 < mean[1] < mean[3] < 1.1
    # With all units it is the brain–brain value itself.
    whole = ceilings.between_subjects(subjects, measures.LinearPredictivity(), split, n_halves=2)
    np.testing.assert_array_equal(found.values[-1], np.nanmean(whole.matrix, axis=0))


def test_more_training_stimuli_make_better_maps_and_test_stimuli_stay():
    subjects, split = brains(n_units=16), list(splits.contiguous(200, 4))
    found = ceilings.growth(subjects, measures.LinearPredictivity(), split, over="stimuli", n_draws=1, estimator="none")
    assert found.sizes.tolist() == [38, 75, 150]
    assert (np.diff(found.values.mean(axis=1)) > 0).all()
    assert not found.corrected
    assert "correction" in found.reason


def test_more_repetitions_raise_what_is_not_corrected_alone():
    subjects = brains(n_units=20, r=8, noise=1.5)
    options = {"over": "repetitions", "n_draws": 3, "n_halves": 6}
    raw = ceilings.growth(subjects, measures.RSA(), estimator="none", **options)
    corrected = ceilings.growth(subjects, measures.RSA(), **options)
    assert raw.sizes.tolist() == corrected.sizes.tolist() == [2, 4, 8]
    raw, corrected = raw.values.mean(axis=1), corrected.values.mean(axis=1)
    assert raw[-1] > 1.3 * raw[0]
    assert abs(corrected[-1] - corrected[0]) < 0.15 * corrected[-1]  # approximate for RDMs


def test_subjects_with_fewer_repetitions_keep_what_they_have(monkeypatch):
    taken: list[list[int]] = []

    def spy(arrays, *rest, **options):
        taken.append([own.shape[1] for own in arrays])
        return ceilings.between_subjects(arrays, *rest, **options)

    monkeypatch.setattr(sys.modules["lpact.ceilings.growth"], "between_subjects", spy)
    unequal = [own[:, :r] for own, r in zip(brains(8, r=8, noise=0.5), (2, 3, 8, 8), strict=True)]
    found = ceilings.growth(unequal, measures.RSA(), over="repetitions", n_draws=3, n_halves=2)
    assert taken == 3 * [[2, 2, 2, 2]] + 3 * [[2, 3, 4, 4]] + [[2, 3, 8, 8]]
    assert found.corrected
    assert np.isfinite(found.values).all()


def test_stimuli_of_measures_without_a_fit():
    found = ceilings.growth(brains(n_units=10), measures.RSA(), over="stimuli", n_draws=1, n_halves=1)
    assert found.sizes.tolist() == [25, 50, 100, 200]


def test_draws_depend_on_the_seed_alone():
    subjects = brains(n_units=12, n=60)
    one, two, other = (
        ceilings.growth(subjects, measures.CKA(), over="units", n_halves=1, seed=seed).values for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one[0], other[0])


def test_bad_input_says_what_is_wrong():
    with pytest.raises(InputError, match="quantity"):
        ceilings.growth(brains(4), measures.RSA(), over="time")
    with pytest.raises(InputError, match="cannot be subsampled"):
        ceilings.growth(brains(4), measures.ResponseCorrelation(), over="units")
    with pytest.raises(InputError, match="no repetitions"):
        ceilings.growth([b[:, 0] for b in brains(4)], measures.RSA(), over="repetitions")
