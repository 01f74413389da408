"""Noise-corrected consistency against a plain implementation, planted truths and the table of biases."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lpact import ceilings
from lpact.ceilings import consistency as consistency_of
from lpact.errors import InputError
from lpact.math.ridge import RidgeGrid, Selection
from lpact.measures import CKA, RSA, EventResponse, LinearPredictivity, Measure, ResponseCorrelation
from lpact.splits import contiguous, shuffled

ALPHA = 30.0
RIDGE = LinearPredictivity(alphas=[ALPHA])
ESTIMATORS = ("full_trials", "half_trials", "as_printed")


class PLS(Measure):
    """Two components for all units together, which are therefore not independent."""

    name = "pls_for_tests"
    scope = "unit"
    symmetric = False
    needs_fit = True
    correctable = True

    def fit(self, X, Y):
        self.map = PLSRegression(2, scale=False).fit(X, Y)
        return self

    def predict(self, X):
        return self.map.predict(X).reshape(len(X), -1)


MAPS = {
    "ridge": (RIDGE, lambda: make_pipeline(StandardScaler(), Ridge(ALPHA))),
    "pls": (PLS(), lambda: PLSRegression(2, scale=False)),
}


def brains(n=60, r=6, units=(7, 4, 5), noise=1.0, private=0.3, seed=0, n_latent=4):
    """Trials of subjects that share latents; each unit has a private part too."""
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, n_latent))
    true = [latent @ rng.standard_normal((n_latent, p)) + private * rng.standard_normal((n, p)) for p in units]
    return true, [t[:, None] + noise * rng.standard_normal((n, r, t.shape[1])) for t in true]


def public_halves(n, n_draws, start=1234):
    """The halves of the published code: a shuffled list, its first n // 2 numbers, and the rest."""
    drawn = []
    for seed in range(start, start + n_draws):
        order = list(range(n))
        np.random.RandomState(seed).shuffle(order)
        drawn.append((order[: n // 2], order[n // 2 :]))
    return drawn


def public_splits(n, n_splits=5):
    orders = [np.random.RandomState(s).permutation(n) for s in range(n_splits)]
    n_train = int(np.ceil(0.8 * n))
    return [(order[:n_train], order[n_train:]) for order in orders]


def corr(a, b):
    return np.array([np.corrcoef(x, y)[0, 1] for x, y in zip(a.T, b.T, strict=True)])


def plain(source, target, make_map, halves, splits):
    """Values by estimator, [draws, splits, t], written out from the equations; the published code's is full_trials."""

    def sb(r):
        return 2 * r / (1 + r)

    def predicted(x, y, train, test):
        return make_map().fit(x[train], y[train]).predict(x[test])

    found = {name: [] for name in ESTIMATORS}
    for one, two in halves:
        for train, test in splits:
            x, x1, x2 = [
                source if source.ndim == 2 else source[:, rows].mean(axis=1) for rows in (slice(None), one, two)
            ]
            y, y1, y2 = [target[:, rows].mean(axis=1) for rows in (slice(None), one, two)]
            p1, p2 = predicted(x1, y1, train, test), predicted(x2, y2, train, test)
            full = corr(predicted(x, y, train, test), y[test])
            half, r_xx, r_yy = corr(p1, y2[test]), corr(p1, p2), corr(y1[test], y2[test])
            found["full_trials"].append(full / np.sqrt(sb(r_xx) * sb(r_yy)))
            found["half_trials"].append(half / np.sqrt(r_xx * r_yy))
            found["as_printed"].append(half / np.sqrt(sb(r_xx) * sb(r_yy)))
    shape = (len(halves), len(splits), -1)
    return {name: np.reshape(values, shape) for name, values in found.items()}


@pytest.mark.parametrize("source_is", ["model", "brain"])
@pytest.mark.parametrize("map_name", MAPS)
def test_the_same_numbers_as_the_published_code(source_is, map_name):
    true, trials = brains()
    source = true[0] if source_is == "model" else trials[0]
    halves, splits = public_halves(6, 4), public_splits(60)
    measure, make_map = MAPS[map_name]
    expected = plain(source, trials[1], make_map, halves, splits)
    for name in ESTIMATORS:
        found = consistency_of(source, trials[1], measure, iter(splits), estimator=name, halves=halves)
        np.testing.assert_allclose(found.value, expected[name].mean(axis=(0, 1)), atol=1e-6)
        np.testing.assert_allclose(found.by_fold, expected[name].mean(axis=0), atol=1e-6)
        assert found.corrected
        assert found.n_values == 20
        assert not found.n_undefined.any()
    means = [one.mean(axis=1) if one.ndim == 3 else one for one in (source, trials[1])]
    r = [corr(make_map().fit(means[0][a], means[1][a]).predict(means[0][b]), means[1][b]) for a, b in splits]
    np.testing.assert_allclose(found.uncorrected, np.mean(r, axis=0), atol=1e-6)
    none = consistency_of(source, trials[1], measure, splits, estimator="none")
    np.testing.assert_allclose(none.value, found.uncorrected, atol=1e-12)
    assert (none.corrected, none.reason) == (False, "no noise correction was requested")


def plain_rdm(x):
    return (1 - np.corrcoef(x))[np.triu_indices(len(x), 1)]


@pytest.mark.parametrize("source_is", ["model", "brain"])
def test_dissimilarities_follow_equation_9(source_is):
    true, trials = brains(n=30)
    source, target = (true[0] if source_is == "model" else trials[0]), trials[1]
    halves = public_halves(6, 3)

    def rsa(a, b):
        return np.corrcoef(plain_rdm(a), plain_rdm(b))[0, 1]

    for rows in (None, [(np.arange(20), np.arange(20, 30)), (np.arange(10, 30), np.arange(10))]):
        expected = {name: [] for name in ESTIMATORS}
        for one, two in halves:
            for test in [np.arange(30)] if rows is None else [fold[1] for fold in rows]:
                y, y1, y2 = [target[test][:, h].mean(axis=1) for h in (slice(None), one, two)]
                x = x1 = x2 = source[test]
                if source.ndim == 3:
                    x, x1, x2 = [source[test][:, h].mean(axis=1) for h in (slice(None), one, two)]
                r_xx, r_yy = (rsa(x1, x2) if source.ndim == 3 else 1.0), rsa(y1, y2)
                corrected = np.sqrt(2 * r_xx / (1 + r_xx) * 2 * r_yy / (1 + r_yy))
                expected["full_trials"].append(rsa(x, y) / corrected)
                expected["half_trials"].append(rsa(x1, y2) / np.sqrt(r_xx * r_yy))
                expected["as_printed"].append(rsa(x1, y2) / corrected)
        for name in ESTIMATORS:
            found = consistency_of(source, target, RSA(), rows, estimator=name, halves=halves)
            assert found.value.shape == ()
            assert float(found.value) == pytest.approx(np.mean(expected[name]), abs=1e-6)


def test_pieces_of_several_targets_are_those_of_one(monkeypatch):
    """Targets share decompositions; a fit of a few targets, of many and of one give the same predictions."""
    true, trials = brains()
    trials[2][3:5] = np.nan  # other stimuli count for this target
    trials[1][7, 2:, 1] = np.nan
    split, grid = contiguous(60, 4), LinearPredictivity(n_blocks=3)
    shared = LinearPredictivity(grid=RidgeGrid((1.0, 100.0), selection=Selection(alpha="shared")), n_blocks=3)
    for measure in (grid, shared, PLS(), RSA(), CKA()):
        for source in (true[0], trials[0]):
            targets = [trials[1], trials[2], trials[1][:, :4]]
            options = {"n_halves": 3, "seed": 5}
            together = ceilings.consistencies(source, targets, measure, split, **options)
            monkeypatch.setattr("lpact.ceilings.terms._MOST_VALUES", 1)
            for target, found in zip(targets, together, strict=True):
                alone = consistency_of(source, target, measure, split, **options)
                for name in ("value", "by_fold", "source_reliability", "target_reliability"):
                    np.testing.assert_allclose(getattr(found, name), getattr(alone, name), atol=1e-12, rtol=0)
            monkeypatch.undo()


def simulated(n_trials, noise, seed, *, n=400, n_units=150, n_source=None):
    """A model of ten features, and units of variance 12 of which it could explain .9² at best.

    The source is the model, or trials of a brain of the same features; with the true responses of both sides.
    """
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, 10))
    weights = rng.standard_normal((10, n_units))
    weights *= np.sqrt(12 * 0.81) / np.linalg.norm(weights, axis=0)
    true = features @ weights + np.sqrt(12 * 0.19) * rng.standard_normal((n, n_units))
    target = true[:, None] + noise * rng.standard_normal((n, n_trials, n_units))
    if n_source is None:
        return features, target, features, true
    source = features @ rng.standard_normal((10, n_source))
    trials = source[:, None] + noise * rng.standard_normal((n, n_trials, n_source))
    return trials, target, source, true


@pytest.mark.parametrize(
    ("n_trials", "noise", "r_yy", "printed"),
    [(4, 2, 0.84, 0.863), (4, 4, 0.62, 0.796), (8, 4, 0.75, 0.839)],
)
def test_the_bias_of_every_estimator(n_trials, noise, r_yy, printed):
    """Known from an independent simulation: the values of a true .9; 150 units are as many simulations."""
    features, target, _, true = simulated(n_trials, noise, seed=n_trials + noise)
    split, measure = contiguous(400, 4), LinearPredictivity(alphas=[1.0])
    truth = consistency_of(features, true, measure, split, estimator="none").value
    assert truth.mean() == pytest.approx(0.895, abs=0.01)
    found = {name: consistency_of(features, target, measure, split, estimator=name, n_halves=8) for name in ESTIMATORS}
    assert found["half_trials"].target_reliability.mean() == pytest.approx(r_yy, abs=0.025)
    for name in ("full_trials", "half_trials"):
        assert (found[name].value - truth).mean() == pytest.approx(0, abs=0.01)
        assert found[name].uncorrected.mean() < truth.mean() - 0.02
    assert found["as_printed"].value.mean() == pytest.approx(printed, abs=0.01)


def test_noise_of_both_sides_at_a_reliability_of_six_tenths():
    """The printed equation is low by √((1 + r_m)(1 + r_y)) / 2, with r_m and r_y the reliabilities of halves."""
    source, target, true_source, true = simulated(4, 4.0, seed=3, n_source=60)
    split, measure = contiguous(400, 4), LinearPredictivity(alphas=[1.0])
    truth = consistency_of(true_source, true, measure, split, estimator="none").value
    found = {name: consistency_of(source, target, measure, split, estimator=name, n_halves=4) for name in ESTIMATORS}
    r_m, r_y = (getattr(found["half_trials"], f"{side}_reliability").mean() for side in ("source", "target"))
    assert r_y == pytest.approx(0.6, abs=0.03)
    assert truth.mean() == pytest.approx(0.895, abs=0.01)
    for name in ("full_trials", "half_trials"):
        assert (found[name].value - truth).mean() == pytest.approx(0, abs=0.02)
    factor = np.sqrt((1 + r_m) * (1 + r_y)) / 2
    assert factor < 0.9
    assert found["as_printed"].value.mean() == pytest.approx(factor * truth.mean(), abs=0.02)


@pytest.mark.parametrize("n_repetitions", [3, 5])
def test_odd_numbers_of_trials_are_corrected_as_all_of_them(n_repetitions):
    rng = np.random.default_rng(8)
    features = rng.standard_normal((2000, 3))
    true = features @ rng.standard_normal((3, 40))
    true /= true.std(axis=0)
    target = true[:, None] + rng.standard_normal((2000, n_repetitions, 40))
    found = consistency_of(features, target, RIDGE, contiguous(2000, 2), n_halves=5)
    assert found.value.mean() == pytest.approx(1.0, abs=0.005)
    reliability = n_repetitions / (n_repetitions + 1)
    assert found.target_reliability.mean() == pytest.approx(reliability, abs=0.005)


def test_missing_trials_are_counted_and_the_rest_is_used():
    """As if the stimuli and units that do not count had never been there."""
    _, trials = brains(n=50, r=4, units=(6, 5))
    source, target = (one.copy() for one in trials)
    target[:2] = np.nan  # no trial at all
    source[2, :, :] = np.nan
    target[3, 1:] = np.nan  # one trial: counts, but not in halves
    target[10, :, 1] = np.nan  # a unit with a missing response
    source[11, :, 2] = np.nan
    rows, columns, units = np.arange(3, 50), [0, 1, 3, 4, 5], [0, 2, 3, 4]
    halved = rows[1:]
    test = np.arange(5, 20)
    train = np.setdiff1d(np.arange(50), test)
    halves = [([0, 1], [2, 3]), ([0, 2], [1, 3])]
    found = consistency_of(source, target, RIDGE, [(train, test)], halves=halves)
    assert (found.n_stimuli, found.n_stimuli_left_out, found.n_without_halves) == (47, 3, 1)
    assert (found.n_source_left_out, found.n_target_left_out) == (1, 1)
    assert np.isnan(found.value).tolist() == [False, True, False, False, False]
    assert np.isnan(found.uncorrected).tolist() == [False, True, False, False, False]
    assert found.n_undefined.tolist() == [0, 2, 0, 0, 0]
    x, y = (np.nanmean(one[3:][:, :, kept], axis=1) for one, kept in ((source, columns), (target, units)))
    fit = np.isin(rows, train)
    full = corr(MAPS["ridge"][1]().fit(x[fit], y[fit]).predict(x[~fit]), y[~fit])
    np.testing.assert_allclose(found.uncorrected[units], full, atol=1e-9)
    parts = plain(
        source[np.ix_(halved, range(4), columns)],
        target[np.ix_(halved, range(4), units)],
        MAPS["ridge"][1],
        halves,
        [(np.flatnonzero(np.isin(halved, train)), np.flatnonzero(np.isin(halved, test)))],
    )
    half = consistency_of(source, target, RIDGE, [(train, test)], halves=halves, estimator="half_trials")
    np.testing.assert_allclose(half.value[units], parts["half_trials"].mean(axis=(0, 1)), atol=1e-9)
    # For populations, units that are not complete are no part of either side.
    rsa = consistency_of(source, target, RSA(), halves=halves, estimator="half_trials")
    clean = [source[4:][:, :, columns], target[4:][:, :, units]]
    expected = consistency_of(*clean, RSA(), halves=halves, estimator="half_trials")
    assert float(rsa.value) == pytest.approx(float(expected.value), abs=1e-12)
    assert (rsa.n_source_left_out, rsa.n_target_left_out) == (1, 1)


def test_unbalanced_trials_are_corrected_by_their_numbers():
    """Stimuli have 2 to 8 trials; the value is that of responses without noise."""
    rng = np.random.default_rng(5)
    features = rng.standard_normal((3000, 3))
    true = features @ rng.standard_normal((3, 40)) + rng.standard_normal((3000, 40))
    target = true[:, None] + 2 * rng.standard_normal((3000, 8, 40))
    for i, count in enumerate((2, 3, 5)):
        target[i::4, count:] = np.nan
    split = contiguous(3000, 2)
    truth = consistency_of(features, true, RIDGE, split, estimator="none").value
    found = consistency_of(features, target, RIDGE, split, n_halves=4)
    assert (found.value - truth).mean() == pytest.approx(0, abs=0.01)
    assert truth.mean() - found.uncorrected.mean() > 0.1


def test_nothing_left_is_nan_and_counted():
    true, trials = brains(r=4)
    source = true[0].copy()
    source[np.arange(7), np.arange(7)] = np.nan  # every column has a gap
    for measure, split in ((RIDGE, contiguous(60, 4)), (RSA(), None)):
        found = consistency_of(source, trials[1], measure, split, n_halves=2)
        assert np.isnan(found.value).all()
        assert (found.n_undefined == found.n_values).all()
        assert (found.n_source_left_out, found.n_target_left_out) == (7, 0)


def test_reliabilities_that_are_not_positive_leave_values_undefined():
    rng = np.random.default_rng(0)
    target = rng.standard_normal((40, 4, 30))
    found = consistency_of(rng.standard_normal((40, 2)), target, RIDGE, contiguous(40, 4), n_halves=6)
    assert found.n_undefined.min() > 0
    assert found.n_values == 24
    defined = np.isfinite(found.by_fold)
    assert (found.n_undefined[~defined.any(axis=0)] == 24).all()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("metric", "the measure is not a correlation"),
        ("unfitted units", "the measure is not a correlation"),
        ("target", "no unit of the target has two trials"),
        ("matrix", "no unit of the target has two trials"),
        ("source", "no unit of the source has two trials"),
    ],
)
def test_what_cannot_be_corrected_says_why(change, reason):
    _, trials = brains()
    source, target, measure = trials[0], trials[1], LinearPredictivity(alphas=[1.0])
    split = contiguous(60, 4)
    if change == "metric":
        measure = LinearPredictivity(alphas=[1.0], metric="r2")
    elif change == "unfitted units":
        measure = EventResponse()
    elif change == "target":
        target = target[:, :1]
    elif change == "matrix":
        target = target.mean(axis=1)
    else:
        source = source[:, :1]
    found = consistency_of(source, target, measure, split)
    assert not found.corrected
    assert found.reason.startswith(reason)
    assert found.reason in repr(found)
    np.testing.assert_array_equal(found.value, found.uncorrected)
    assert np.isnan(found.target_reliability).all()
    x, y = source.mean(axis=1), target if target.ndim == 2 else target.mean(axis=1)
    scores = [(measure.fit(x[a], y[a]) if measure.needs_fit else measure).score(x[b], y[b]).value for a, b in split]
    np.testing.assert_allclose(found.by_fold, scores, atol=1e-12)


def test_a_measure_can_decline_the_correction():
    class Declined(RSA):
        name = "declined"
        correctable = False

    _, trials = brains(n=20)
    found = consistency_of(trials[0], trials[1], Declined())
    assert not found.corrected
    assert float(found.value) == pytest.approx(float(RSA().score(*(one.mean(axis=1) for one in trials[:2]))))


def test_trials_are_prepared_by_the_measure_that_can():
    class Median(RSA):
        name = "median_of_trials"

        def prepare_trials(self, X):
            return self.prepare(np.nanmedian(X, axis=1))

    _, trials = brains(n=20)
    found = consistency_of(trials[0], trials[1], Median(), n_halves=2)
    expected = RSA().score(*(np.median(one, axis=1) for one in trials[:2]))
    assert float(found.uncorrected) == pytest.approx(float(expected))


def test_draws_depend_on_the_seed_alone():
    _, trials = brains()
    values = [consistency_of(*trials[:2], RSA(), n_halves=n, seed=seed).value for n, seed in ((5, 0), (5, 0), (5, 1))]
    assert values[0] == values[1] != values[2]
    # The same order for both sides: noise that they share stays on one side of every half.
    noise = np.random.default_rng(1).standard_normal((300, 4, 6))
    shared = consistency_of(noise, noise, CKA(), estimator="as_printed", n_halves=3)
    assert shared.source_reliability == shared.target_reliability


def test_source_units_are_subsampled_without_replacement():
    _, trials = brains(units=(12, 4))
    options = {"n_halves": 2, "seed": 3}
    found = consistency_of(*trials, RSA(), source_units=5, source_draws=3, **options)
    assert found.n_values == 6
    fewer = consistency_of(*trials, RSA(), source_units=5, source_draws=1, **options)
    assert found.uncorrected != fewer.uncorrected
    everything = consistency_of(*trials, RSA(), source_units=12, **options)
    assert everything.value == consistency_of(*trials, RSA(), **options).value
    with pytest.raises(InputError, match=r"13 of 12 units"):
        consistency_of(*trials, RSA(), source_units=13)


def test_pooled_subjects_keep_their_trials():
    _, trials = brains()
    trials[1] = trials[1][:, :4]
    pooled = ceilings.pool(trials[:2])
    assert pooled.shape == (60, 6, 11)
    np.testing.assert_array_equal(pooled[..., :7], trials[0])
    np.testing.assert_array_equal(pooled[:, :4, 7:], trials[1])
    assert np.isnan(pooled[:, 4:, 7:]).all()
    found = consistency_of(pooled, trials[2], RIDGE, contiguous(60, 4), n_halves=2)
    assert found.n_source_left_out == 0
    assert np.isfinite(found.value).all()
    with pytest.raises(InputError, match="cannot be pooled"):
        ceilings.pool([trials[0], trials[1][:-1]])


def test_every_pair_of_subjects_and_the_aggregates():
    _, trials = brains(noise=0.5)
    trials[2][0, :, 1] = np.nan
    split = contiguous(60, 4)
    found = ceilings.between_subjects(trials, RIDGE, iter(list(split)), n_halves=2)
    values = {
        pair: consistency_of(trials[pair[0]], trials[pair[1]], RIDGE, split, n_halves=2).value for pair in found.pairs
    }
    assert len(values) == 6
    for pair, value in values.items():
        np.testing.assert_allclose(found.pairs[pair].value, value, atol=1e-12)
        assert found.matrix[pair] == pytest.approx(np.nanmedian(value))
    by_unit = np.concatenate(
        [
            (values[1, 0] + values[2, 0]) / 2,
            (values[0, 1] + values[2, 1]) / 2,
            (values[0, 2] + values[1, 2]) / 2,
        ]
    )
    total = found.aggregate()
    np.testing.assert_allclose(total.values, by_unit, atol=1e-12)
    defined = by_unit[np.isfinite(by_unit)]
    assert (total.n_undefined, defined.size) == (1, 15)
    assert found.n_undefined == 2 * 2 * 4
    assert total.median == pytest.approx(np.median(defined))
    assert total.sem == pytest.approx(defined.std(ddof=1) / np.sqrt(15))


def test_symmetric_measures_take_each_pair_once(monkeypatch):
    _, trials = brains(n=20)
    compared = []
    compare = RSA.compare
    monkeypatch.setattr(RSA, "compare", lambda *pair: compared.append(1) or compare(*pair))
    found = ceilings.between_subjects(trials, RSA(), estimator="none")
    assert len(compared) == 3
    np.testing.assert_array_equal(found.matrix, found.matrix.T)
    monkeypatch.undo()
    full = ceilings.between_subjects(trials, RSA(), n_halves=2)
    assert full.pairs[0, 1].source_reliability == full.pairs[1, 0].target_reliability
    per_subject = [np.mean([float(full.pairs[i, j].value) for i in range(3) if i != j]) for j in range(3)]
    np.testing.assert_allclose(full.aggregate().values, per_subject)
    with pytest.raises(InputError, match="too few subjects"):
        ceilings.between_subjects(trials[:1], RSA())


def test_a_gap_of_the_split_holds_within_training_too():
    true, trials = brains()
    gapped = LinearPredictivity(gap=3)
    split = contiguous(60, 3, gap=3)
    options = {"estimator": "none"}
    found = consistency_of(true[0], trials[1], LinearPredictivity(), split, **options)
    expected = consistency_of(true[0], trials[1], gapped, list(split), **options)
    without = consistency_of(true[0], trials[1], LinearPredictivity(), list(split), **options)
    np.testing.assert_array_equal(found.value, expected.value)
    assert (found.value != without.value).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": "published"}, "there is no estimator 'published'"),
        ({"split": None}, "must be fitted"),
        ({"split": contiguous(59, 3)}, "another number of stimuli"),
        ({"split": []}, "no folds"),
        ({"split": [(np.arange(30), np.arange(29, 60))]}, "training and test"),
        ({"n_halves": 0}, "no halves"),
        ({"halves": []}, "no halves"),
        ({"halves": [([0, 1], [2, 6])]}, "has no repetition 6"),
        ({"target": np.zeros((59, 4, 2))}, r"different numbers of stimuli[\s\S]*60, 59"),
        ({"target": np.zeros(60)}, "not an array of responses"),
    ],
)
def test_bad_input_says_what_is_wrong(change, message):
    _, trials = brains()
    given = {"source": trials[0], "target": trials[1], "split": contiguous(60, 3)} | change
    with pytest.raises(InputError, match=message):
        consistency_of(measure=RIDGE, **given)
    with pytest.raises(InputError, match="cannot be subsampled"):
        consistency_of(trials[0], trials[0], ResponseCorrelation(), source_units=2)


def test_shuffled_splits_are_folds_too():
    true, trials = brains()
    split = shuffled(60, 4, seed=1)
    found = consistency_of(true[0], trials[1], RIDGE, split, n_halves=2)
    pairs = consistency_of(true[0], trials[1], RIDGE, list(split), n_halves=2)
    np.testing.assert_array_equal(found.value, pairs.value)
    assert repr(found).endswith("4 units, 0 undefined; corrected)")


def test_every_subject_is_prepared_once_per_half(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    subjects = [rng.standard_normal((30, 4, 6)) for _ in range(5)]
    subjects[1][:, :, 2] = np.nan  # a unit that is left out
    expected = [[ceilings.consistency(x, y, RSA(), n_halves=3).median for y in subjects] for x in subjects]
    prepare, counted = RSA.prepare_trials, []

    def watched(self: RSA, trials: np.ndarray) -> object:
        counted.append(trials.shape)
        return prepare(self, trials)

    monkeypatch.setattr(RSA, "prepare_trials", watched)
    found = ceilings.between_subjects(subjects, RSA(), n_halves=3).matrix
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_array_equal(found[off], np.array(expected)[off])
    # All trials, and both halves of three draws; one subject is left out of a source and of a target.
    assert len(counted) <= 7 * 6
