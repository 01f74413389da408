"""Multiple comparisons with the best against SciPy, and how often they exclude one of the best."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lpact.stats import best_p_values, paired_t

RNG = np.random.default_rng


def test_p_values_are_those_of_scipys_paired_tests_with_bonferronis_correction():
    x = RNG(1).normal(size=(4, 6)) + RNG(2).normal(size=6) + 0.5 * np.arange(4)[:, None]
    p = [
        min(1.0, 3 * min(stats.ttest_rel(x[k], x[m], alternative="greater").pvalue for k in range(4) if k != m))
        for m in range(4)
    ]  # fmt: skip
    assert best_p_values(x) == pytest.approx(p)
    assert min(p) < 0.2
    t = paired_t(x)
    assert t[2, 1] == pytest.approx(stats.ttest_rel(x[2], x[1]).statistic)
    np.testing.assert_allclose(t, -t.T)


def test_models_that_do_not_differ_or_differ_by_a_constant():
    x = np.tile(RNG(0).normal(size=5), (3, 1))
    assert best_p_values(x).tolist() == [1.0, 1.0, 1.0]
    x[1] += 0.25
    assert best_p_values(x).tolist() == [0.0, 1.0, 0.0]
    assert best_p_values(x[:1]).tolist() == [1.0]
    assert best_p_values(x[:, :1]).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("n_models", [5, 20, 47])
@pytest.mark.parametrize("n_subjects", [5, 10, 20])
def test_one_of_several_best_models_is_seldom_excluded(n_models, n_subjects):
    """The rates are in docs/explanation/alignment-patterns.md."""
    rng = RNG(n_models)
    studies = rng.normal(size=(200, n_models, n_subjects)) + 3 * rng.normal(size=(200, 1, n_subjects))
    excluded = np.mean([best_p_values(x) <= 0.05 for x in studies], axis=1)
    assert 0.0 < excluded.mean() <= 0.05 + 2 * excluded.std() / np.sqrt(200)


@pytest.mark.parametrize("n_models", [6, 47])
def test_worse_models_are_excluded_and_the_best_is_not(n_models):
    rng = RNG(3)
    x = rng.normal(size=(n_models, 10)) + 3 * rng.normal(size=10)
    x[2:] -= 6
    p = best_p_values(x)
    assert (p[2:] <= 0.05).mean() > 0.95
    assert p[x.mean(axis=1).argmax()] > 0.5
