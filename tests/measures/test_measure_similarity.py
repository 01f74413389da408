"""RSA and nearest neighbours beside rsatoolbox, scikit-learn, plain loops and planted distances."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from rsatoolbox.data import Dataset
from rsatoolbox.data.noise import prec_from_unbalanced
from rsatoolbox.rdm import calc_rdm, compare
from rsatoolbox.util.matrix import get_v
from scipy.spatial.distance import squareform
from scipy.stats import ortho_group
from sklearn.neighbors import NearestNeighbors

from lpact import ceilings
from lpact.errors import LPactError
from lpact.math.similarity.rsa import comparison_pattern, crossnobis_rdm, noise_whitened
from lpact.measures import RSA, MutualKNN
from lpact.measures.base import TOO_FEW, UNDEFINED

# rsatoolbox casts missing values of descriptors.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
COMPARATORS = {
    "pearson": "corr",
    "cosine": "cosine",
    "spearman": "spearman",
    "tau_a": "tau-a",
    "rho_a": "rho-a",
    "pearson_whitened": "corr_cov",
    "cosine_whitened": "cosine_cov",
}
NOISE = {"diagonal": "diag", "shrinkage": "shrinkage_diag"}
RDMS = [
    ("correlation", "none"),
    *itertools.product(("euclidean", "crossnobis"), ("none", "diagonal", "shrinkage")),
]
N, R, P = 15, 4, 8


@pytest.fixture
def trials():
    """Two sides that share a signal, with noise of unequal size that units share."""
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((N, 1, P))
    sizes = rng.uniform(0.5, 2.0, P) * np.eye(P) + 0.2
    return [signal + rng.standard_normal((N, R, P)) @ sizes for _ in range(2)]


def dataset(trials):
    named = {"s": np.repeat(np.arange(len(trials)), R), "r": np.tile(np.arange(R), len(trials))}
    return Dataset(trials.reshape(-1, trials.shape[2]), obs_descriptors=named)


def peer_rdm(trials, dissimilarity, noise):
    data = dataset(trials)
    options = {"descriptor": "s"}
    if noise != "none":
        options["noise"] = prec_from_unbalanced(data, "s", method=NOISE[noise])
    if dissimilarity == "crossnobis":
        options["cv_descriptor"] = "r"
    method = "mahalanobis" if dissimilarity == "euclidean" and noise != "none" else dissimilarity
    return calc_rdm(data, method=method, **options)


@pytest.mark.parametrize("comparator", COMPARATORS)
@pytest.mark.parametrize(("dissimilarity", "noise"), RDMS)
def test_rsa_is_that_of_rsatoolbox(trials, dissimilarity, noise, comparator):
    measure = RSA(dissimilarity=dissimilarity, comparator=comparator, noise=noise)
    rdms = [peer_rdm(one, dissimilarity, noise) for one in trials]
    for one, rdm in zip(trials, rdms, strict=True):
        found = measure.dissimilarities(one)
        np.testing.assert_allclose(found, rdm.dissimilarities[0], rtol=1e-10, atol=1e-12)
    value = measure.compare(*(measure.prepare_trials(one) for one in trials))
    assert value == pytest.approx(compare(*rdms, method=COMPARATORS[comparator])[0, 0], abs=1e-10)
    if dissimilarity != "crossnobis" and noise == "none":
        mean = [one.mean(axis=1) for one in trials]
        assert float(measure.score(*mean)) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("comparator", COMPARATORS)
def test_ties_are_those_of_rsatoolbox(comparator):
    """Categories have many, also where distances are differences of lengths and products."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2, (N, 40)) for _ in range(2))
    found = RSA(dissimilarity="euclidean", comparator=comparator).score(x, y)
    rdms = [calc_rdm(Dataset(side.astype(float)), method="euclidean") for side in (x, y)]
    expected = compare(*rdms, method=COMPARATORS[comparator])[0, 0]
    assert float(found) == pytest.approx(expected, abs=1e-10)


def test_whitened_cosine_is_that_of_the_covariance_of_all_pairs():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((N, P)), rng.standard_normal((N, P))
    measure = RSA(dissimilarity="euclidean", comparator="cosine_whitened")
    v = get_v(N, None).toarray()
    a, b = measure.dissimilarities(x), measure.dissimilarities(y)
    (aa, ab), (_, bb) = np.stack([a, b]) @ np.linalg.solve(v, np.stack([a, b]).T)
    assert float(measure.score(x, y)) == pytest.approx(ab / np.sqrt(aa * bb), abs=1e-12)


def plain_crossnobis(x):
    """Means of products of different trials, by loops."""

    def product(a, b, unit):
        found = [a[i, unit] * b[j, unit] for i, j in itertools.permutations(range(len(a)), 2)]
        return np.nanmean(found)

    def distance(a, b):
        parts = (product(a, a, u) + product(b, b, u) - 2 * product(a, b, u) for u in range(P))
        return sum(parts) / P

    x = x - np.nanmean(np.nanmean(x, axis=1), axis=0)
    return np.array([distance(x[a], x[b]) for a, b in itertools.combinations(range(len(x)), 2)])


def test_crossnobis_without_some_trials(trials):
    x, _ = trials
    x[2, 1], x[3, [0, 3]], x[5, 2, 4] = np.nan, np.nan, np.nan
    found = crossnobis_rdm(x)
    np.testing.assert_allclose(found, plain_crossnobis(x), atol=1e-12)
    np.testing.assert_allclose(crossnobis_rdm(x + 100.0), found, atol=1e-9)
    x[7, 1:, 0] = np.nan  # one trial is left of a unit
    undefined = squareform(np.isnan(crossnobis_rdm(x)))
    np.testing.assert_array_equal(undefined.sum(axis=1), np.where(np.arange(N) == 7, N - 1, 1))
    for comparator in COMPARATORS:
        measure = RSA(dissimilarity="crossnobis", comparator=comparator)
        assert np.isnan(measure.compare(*(measure.prepare_trials(one) for one in trials)))


@pytest.mark.parametrize("comparator", COMPARATORS)
def test_all_prepared_at_once_are_each_of_them(trials, comparator):
    measure = RSA(dissimilarity="euclidean", comparator=comparator)
    each = [measure.prepare_trials(one) for one in trials]
    np.testing.assert_array_equal(measure.prepare_all(trials), each)


@pytest.mark.parametrize("comparator", ["spearman", "rho_a"])
def test_dissimilarities_equal_up_to_rounding_have_no_ranks(comparator):
    distances = 1.0 + 1e-15 * np.arange(10)
    assert distances[0] < distances[-1]
    assert np.isnan(comparison_pattern(distances, comparator)).all()


@pytest.mark.parametrize("missing", [False, True])
def test_crossnobis_is_unbiased_where_euclidean_distances_are_not(missing):
    """Over draws of noise around planted patterns, also with noise that all stimuli of a repetition share."""
    rng = np.random.default_rng(1)
    signal = rng.standard_normal((6, 1, 20))
    true = RSA(dissimilarity="euclidean").dissimilarities(signal[:, 0])
    draws = []
    for _ in range(400):
        x = signal + 2 * rng.standard_normal((6, 3, 20)) + rng.standard_normal((1, 3, 20))
        if missing:
            x[0, 1] = x[2, 0, :5] = np.nan
        draws.append([RSA(dissimilarity=d).dissimilarities(x) for d in ("crossnobis", "euclidean")])
    error = np.array(draws) - true
    z = error.mean(axis=0) / (error.std(axis=0, ddof=1) / 20)
    assert np.abs(z[0]).max() < 4  # of 15 pairs
    assert z[1].min() > 20


def test_cosine_of_crossnobis_distances_is_zero_without_a_signal():
    """|mean| < 3 standard errors over 200 draws; with Euclidean distances it is nearly 1."""
    rng = np.random.default_rng(2)
    values = {"crossnobis": [], "euclidean": []}
    for _ in range(200):
        sides = rng.standard_normal((30, 4, 50)), rng.standard_normal((30, 4, 40))
        for kind, found in values.items():
            measure = RSA(dissimilarity=kind, comparator="cosine")
            found.append(measure.compare(*(measure.prepare_trials(side) for side in sides)))
    unbiased = np.array(values["crossnobis"])
    assert abs(unbiased.mean()) < 3 * unbiased.std(ddof=1) / np.sqrt(200)
    assert min(values["euclidean"]) > 0.9


def test_noise_is_that_of_trials_without_a_missing_unit(trials):
    x, _ = trials
    x[2, 1], x[3, 0, 5], x[4, :3] = np.nan, np.nan, np.nan
    complete = np.isfinite(x).all(axis=2)
    data = Dataset(x[complete], obs_descriptors={"s": np.nonzero(complete)[0]})
    for noise, method in NOISE.items():
        precision = prec_from_unbalanced(data, "s", method=method)
        found = noise_whitened(x, shrinkage=noise == "shrinkage")
        products = x[complete] @ precision @ x[complete].T
        np.testing.assert_allclose(found[complete] @ found[complete].T, products, atol=1e-10)
        assert np.isnan(found[3, 0]).all() == (noise == "shrinkage")
    for none in (np.ones((5, 3, 2)), x[:, :1]):  # no noise; no repetitions
        assert np.isnan(noise_whitened(none, shrinkage=True)).all()


@pytest.mark.parametrize("noise", ["none", "diagonal", "shrinkage"])
def test_crossnobis_has_the_invariances_it_declares(trials, noise):
    x, y = trials
    measure = RSA(dissimilarity="crossnobis", noise=noise)
    changes = {
        "offset": x + np.arange(P),
        "scale": 3.7 * x,
        "column_scale": x * np.linspace(0.2, 5.0, P),
        "permutation": x[:, :, ::-1],
        "rotation": x @ ortho_group.rvs(P, random_state=0),
    }
    target = measure.prepare_trials(y)
    expected = measure.compare(measure.prepare_trials(x), target)
    for change, moved in changes.items():
        same = abs(measure.compare(measure.prepare_trials(moved), target) - expected) < 1e-9
        assert same == (change in measure.invariances), change


def test_what_needs_repetitions_says_so(trials):
    x = trials[0][:, 0]
    for options in (
        {"dissimilarity": "crossnobis"},
        {"dissimilarity": "euclidean", "noise": "diagonal"},
    ):
        measure = RSA(**options)
        for call in (measure.score, measure.to_units):
            with pytest.raises(LPactError, match=r"needs repetitions[\s\S]*consistency"):
                call(x, x)
        with pytest.raises(LPactError, match="needs repetitions"):
            measure.pairwise(x)
    with pytest.raises(LPactError, match="no effect on correlation distances"):
        RSA(noise="shrinkage")


def test_noise_correction_of_crossnobis_recovers_the_planted_value():
    """Features are without noise; responses have much, and Euclidean distances would hide the signal."""
    rng = np.random.default_rng(3)
    features = rng.standard_normal((40, 10))
    signal = features @ rng.standard_normal((10, 60)) + 2 * rng.standard_normal((40, 60))
    responses = signal[:, None] + 10 * rng.standard_normal((40, 8, 60))
    measure = RSA(dissimilarity="crossnobis")
    true = float(RSA(dissimilarity="euclidean").score(features, signal))
    found = ceilings.consistency(features, responses, measure, n_halves=10)
    assert found.corrected
    assert abs(float(found.value) - true) < 0.1 < true - float(found.uncorrected)
    ranks = ceilings.consistency(features, responses, RSA(comparator="tau_a"), n_halves=2)
    assert not ranks.corrected


def plain_neighbours(x, k, metric):
    found = NearestNeighbors(n_neighbors=k, metric=metric).fit(x).kneighbors(return_distance=False)
    return [set(row) for row in found]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("k", [1, 10, 29])
def test_shared_neighbours_are_those_of_scikit_learn(metric, k):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 50)) + 1.0
    y = x[:, :7] + rng.standard_normal((30, 7))
    pairs = zip(*(plain_neighbours(side, k, metric) for side in (x, y)), strict=True)
    expected = np.mean([len(a & b) / k for a, b in pairs])
    assert float(MutualKNN(k=k, distance=metric).score(x, y)) == pytest.approx(expected)


def test_first_of_equally_near_neighbours_are_taken():
    measure = MutualKNN(k=2, distance="euclidean")
    corners = np.array(list(itertools.product([0.1, 0.3], repeat=3)))  # three at the same distance
    wide = np.hstack([corners] * 20) @ ortho_group.rvs(60, random_state=0)
    for x in (corners, wide):  # rounding errors order nothing
        neighbours = measure.prepare(x).reshape(8, 2) - 8 * np.arange(8)[:, None]
        assert neighbours[0].tolist() == [1, 2]
        assert neighbours[7].tolist() == [3, 5]


def test_independent_representations_share_neighbours_by_chance():
    rng = np.random.default_rng(0)
    values = [
        float(MutualKNN(k=5).score(rng.standard_normal((41, 9)), rng.standard_normal((41, 9)))) for _ in range(200)
    ]
    assert abs(np.mean(values) - 5 / 40) < 3 * np.std(values, ddof=1) / np.sqrt(200)


def test_neighbours_that_are_undefined_have_a_reason():
    x = np.random.default_rng(0).standard_normal((11, 3))
    assert float(MutualKNN().score(x, x[::-1])) == 1.0  # all others are neighbours
    assert MutualKNN(k=11).score(x, x).reason == TOO_FEW
    x[4] = 0.0
    assert MutualKNN().score(x, x).reason == UNDEFINED
    assert float(MutualKNN(distance="euclidean").score(x, x)) == 1.0


def test_traits_depend_on_options():
    assert Counter(RSA(comparator=c).correctable for c in COMPARATORS) == {True: 6, False: 1}
    assert MutualKNN.local
    assert not MutualKNN.correctable
    assert "rotation" in RSA(dissimilarity="euclidean").invariances
    assert "rotation" not in RSA.invariances
