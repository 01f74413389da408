"""Matching of units against loops, brute force, POT and linear programming."""

from __future__ import annotations

import sys
from itertools import permutations

import numpy as np
import ot
import pytest
from scipy.optimize import linprog
from scipy.stats import pearsonr

from lpact.errors import ConfigError
from lpact.measures import OneToOne, PairwiseMatching, SoftMatching
from lpact.measures.matching import MATCHED_CONSTANT, NO_PARTNER

TRAIN, TEST = slice(60), slice(60, None)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, 5))
    y = x @ rng.standard_normal((5, 4)) + rng.standard_normal((100, 4))
    return x, y


def r(x, y):
    return np.array([[pearsonr(a, b).statistic for b in y.T] for a in x.T])


def held_out(measure, x, y):
    return measure.fit(x[TRAIN], y[TRAIN]).score(x[TEST], y[TEST])


def test_pairwise_matching_takes_the_best_unit_of_training(data):
    x, y = data
    x[:, 4] = -3.0 * y[:, 0]  # tuned like unit 0, but the other way: no partner
    found = held_out(PairwiseMatching(), x, y)
    for j in range(4):
        best = max(range(5), key=lambda i: pearsonr(x[TRAIN, i], y[TRAIN, j]).statistic)
        assert found.value[j] == pytest.approx(pearsonr(x[TEST, best], y[TEST, j]).statistic)
        predicted = PairwiseMatching().fit(x[TRAIN], y[TRAIN]).predict(x[TEST])[:, j]
        moved = x[TEST, best] - x[TRAIN, best].mean() + y[TRAIN, j].mean()
        np.testing.assert_allclose(predicted, moved)


def test_one_to_one_is_the_best_of_all_assignments(data):
    x, y = data
    training, scored = r(x[TRAIN], y[TRAIN]), r(x[TEST], y[TEST])
    best = max(permutations(range(5), 4), key=lambda p: sum(training[p, range(4)]))
    np.testing.assert_allclose(held_out(OneToOne(), x, y).value, scored[best, range(4)])
    shared = np.argmax(training, axis=0)
    assert len({*shared}) < 4  # pairwise matching gives a source unit twice


def test_targets_without_a_partner_are_undefined(data):
    x, y = data
    x, y = x[:, :3], y.copy()
    y[TRAIN, 2] = 7.0  # a constant unit takes nobody's partner
    found = held_out(OneToOne(), x[:, :2], y)
    assert sorted(found.reason) == ["", "", "the target is constant in training", NO_PARTNER]
    training = r(x[TRAIN, :2], y[TRAIN][:, [0, 1, 3]])
    best = max(permutations(range(3), 2), key=lambda p: sum(training[range(2), p]))
    scored = r(x[TEST, :2], y[TEST][:, [0, 1, 3]])
    np.testing.assert_allclose(found.value[np.array([0, 1, 3])[list(best)]], scored[range(2), best])
    assert not held_out(OneToOne(), x, y).reason[[0, 1, 3]].any()


def test_soft_matching_is_a_linear_programme(data):
    x, y = data
    training = r(x[TRAIN], y[TRAIN])
    p, t = training.shape
    rows = np.kron(np.eye(p), np.ones(t))
    columns = np.kron(np.ones(p), np.eye(t))
    marginals = np.r_[np.full(p, 1 / p), np.full(t, 1 / t)]
    solved = linprog(-training.ravel(), A_eq=np.vstack([rows, columns]), b_eq=marginals)
    measure = SoftMatching().fit(x[TRAIN], y[TRAIN])
    assert float(measure.score(x[TRAIN], y[TRAIN])) == pytest.approx(-solved.fun, abs=1e-10)
    expected = solved.x @ r(x[TEST], y[TEST]).ravel()
    assert float(measure.score(x[TEST], y[TEST])) == pytest.approx(expected, abs=1e-10)
    swapped = SoftMatching().fit(y[TRAIN], x[TRAIN]).score(y[TEST], x[TEST])
    assert float(swapped) == pytest.approx(expected, abs=1e-10)


def test_soft_matching_of_as_many_units_is_that_of_pot(data):
    x, y = data[0][:, :4], data[1]
    weights = np.full(4, 0.25)
    plan = ot.emd(weights, weights, 1.0 - r(x[TRAIN], y[TRAIN]))
    expected = (plan * r(x[TEST], y[TEST])).sum()
    assert float(held_out(SoftMatching(), x, y)) == pytest.approx(expected, abs=1e-10)


def test_units_in_another_order_and_twice_are_matched_wholly(data):
    x, _ = data
    shuffled = 2.0 * x[:, [3, 1, 4, 0, 2]] + 1.0
    for measure in (PairwiseMatching(), OneToOne(), SoftMatching()):
        np.testing.assert_allclose(held_out(measure, x, shuffled).value, 1.0)
    assert float(held_out(SoftMatching(), np.hstack([x, x]), shuffled)) == pytest.approx(1.0)


def test_a_matched_unit_that_stays_silent_leaves_no_value(data):
    x, y = data
    y[TEST, 1] = 0.0
    found = held_out(SoftMatching(), x, y)
    assert (np.isnan(found.value), str(found.reason)) == (True, MATCHED_CONSTANT)
    y[TRAIN, 1] = 0.0  # silent in training too: never matched
    kept = held_out(SoftMatching(), x, y[:, [0, 2, 3]])
    assert float(held_out(SoftMatching(), x, y)) == pytest.approx(float(kept), abs=1e-12)


def test_without_pot_the_error_says_how_to_install_it(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    x, y = data
    assert np.isfinite(held_out(SoftMatching(), x[:, :4], y).value)
    with pytest.raises(ConfigError, match=r"pip install 'lpact\[transport\]'"):
        SoftMatching().fit(x, y)
