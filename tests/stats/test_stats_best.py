"""Multiple comparisons with the best against a plain loop, and how often they exclude one of the best."""

from __future__ import annotations

import numpy as np
import pytest

from lpact.stats import best_p_values

RNG = np.random.default_rng


def by_hand(x, rng, n_draws):
    """p-values, model by model and draw by draw."""
    n_models, n = x.shape
    counts = rng.multinomial(n, np.full(n, 1 / n), size=n_draws)
    p = []
    for m in range(n_models):

        def largest(rows, centre, m=m):
            t = []
            for k in range(n_models):
                if k != m:
                    d = x[k, rows] - x[m, rows]
                    gap = d.mean() - (x[k] - x[m]).mean() * centre
                    error = d.std(ddof=1) / np.sqrt(n)
                    t.append(gap / error if error > 1e-12 else np.copysign(np.inf, gap))
            return max(t)

        observed = largest(np.arange(n), 0.0)
        null = [largest(np.repeat(np.arange(n), c), 1.0) for c in counts]
        p.append((1 + sum(t >= observed for t in null)) / (1 + n_draws))
    return p


def test_p_values_are_those_of_a_loop_over_models_and_draws():
    x = RNG(1).normal(size=(4, 6)) + RNG(2).normal(size=6) + 0.5 * np.arange(4)[:, None]
    assert best_p_values(x, RNG(7), n_draws=60) == pytest.approx(by_hand(x, RNG(7), 60))


def test_what_all_models_share_in_a_subject_does_not_matter():
    x, shared = RNG(0).normal(size=(5, 8)), 100 * RNG(1).normal(size=8)
    assert best_p_values(x + shared, 3).tolist() == best_p_values(x, 3).tolist()


def test_models_that_do_not_differ_or_differ_by_a_constant():
    x = np.tile(RNG(0).normal(size=5), (3, 1))
    assert best_p_values(x, 0, n_draws=99).tolist() == [1.0, 1.0, 1.0]
    x[1] += 0.25
    assert best_p_values(x, 0, n_draws=99).tolist() == [0.01, 1.0, 0.01]
    assert best_p_values(x[:1], 0).tolist() == [1.0]
    assert best_p_values(x[:, :1], 0).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("n_models", "n_subjects"), [(5, 5), (5, 20), (20, 10)])
def test_one_of_several_best_models_is_seldom_excluded(n_models, n_subjects):
    """The rates are in docs/explanation/alignment-patterns.md."""
    rng = RNG(n_models)
    studies = rng.normal(size=(60, n_models, n_subjects)) + 3 * rng.normal(size=(60, 1, n_subjects))
    excluded = np.mean([best_p_values(x, rng, n_draws=299) <= 0.05 for x in studies], axis=1)
    assert excluded.mean() <= 0.05 + 2 * excluded.std() / np.sqrt(60)


def test_worse_models_are_excluded_and_the_best_is_not():
    rng = RNG(3)
    x = rng.normal(size=(6, 10)) + 3 * rng.normal(size=10) - 4 * (np.arange(6) > 1)[:, None]
    p = best_p_values(x, 0)
    assert (p[2:] < 0.01).all()
    assert p[x.mean(axis=1).argmax()] > 0.5
