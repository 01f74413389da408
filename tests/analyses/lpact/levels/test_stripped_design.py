"""Stripped features as a design: for one training set, for all at once, and as a linear map."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from lpact.analyses.lpact.levels.stripped_design import RandomDirection, StrippedDesign
from lpact.analyses.lpact.levels.stripping_methods import (
    STRIPPINGS,
    DegenerateStrip,
    StripInputs,
)
from lpact.math.ridge import METRICS, NestedRidge, RidgeGrid, nested_ridge_draws
from lpact.math.splits import contiguous_folds

N, P = 120, 8
FOLDS = contiguous_folds(N, 4, gap=2)
LINEAR = ("feature_residualization", "mechanism_projection_removal", "feature_zeroing")
SWAPS = ("context_reset", "reversed_context")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    z = rng.standard_normal((N, P)) @ rng.standard_normal((P, P)) + rng.uniform(-2, 2, P)
    other = z + rng.standard_normal((N, P))
    offered = {(2, context): P for context in ("sentence_reset", "reversed", "full")}
    inputs = StripInputs(z, 2, MappingProxyType(offered), lambda *_: other)
    mechanism = z[:, 0] - z[:, 1] + 2.0 * rng.standard_normal(N)
    responses = (z @ rng.standard_normal((P, 4)) + 3.0 * rng.standard_normal((N, 4)))[None]
    return inputs, mechanism[:, None], responses


def method(name):
    return STRIPPINGS.build(name, None, where="here")


def trains():
    return [FOLDS.train_rows(*held) for held in ((0, 1), (1, 3), (2,), (3,))]


@pytest.mark.parametrize("random", [False, True], ids=["mechanism", "random"])
@pytest.mark.parametrize("name", [*LINEAR, *SWAPS, "layer_ablation"])
def test_a_readout_is_that_of_strips_made_one_by_one(data, name, random):
    inputs, scalars, responses = data
    drawn = RandomDirection.draw(N, 1, np.random.default_rng(1)) if random else None
    design = StrippedDesign(method(name), (inputs,), scalars, drawn)
    grid = RidgeGrid((1.0, 100.0))
    (expected,) = nested_ridge_draws(design.__call__, responses, FOLDS, grid, [None])
    found = NestedRidge(responses, FOLDS, grid).fit(design)
    np.testing.assert_array_equal(found.alpha, expected.alpha)
    for metric in METRICS:
        np.testing.assert_allclose(found.fold_scores(metric), expected.fold_scores(metric), rtol=0, atol=1e-10)
    assert (design.mapped() is not None) == (name in LINEAR)


@pytest.mark.parametrize("random", [False, True], ids=["mechanism", "random"])
@pytest.mark.parametrize("name", [*LINEAR, *SWAPS])
def test_all_ways_give_the_same_features(data, name, random):
    inputs, scalars, _ = data
    drawn = RandomDirection.draw(N, 1, np.random.default_rng(2)) if random else None
    design = StrippedDesign(method(name), (inputs,), scalars, drawn)
    one_by_one = np.stack([design(train) for train in trains()])
    assert np.abs(one_by_one - inputs.features).max() > 0.1
    if name in LINEAR:
        columns = design.mapped().columns
        gram = np.stack([np.cov(columns[t].T, bias=True) * len(t) for t in trains()])
        maps = design.mapped().maps(np.array([float(len(t)) for t in trains()]), gram)
        difference = columns @ maps - one_by_one
        np.testing.assert_allclose(difference, np.broadcast_to(difference[:, :1], difference.shape), rtol=0, atol=1e-11)


def test_several_delays_are_stripped_one_by_one(data):
    inputs, scalars, _ = data
    drawn = RandomDirection.draw(N, 2, np.random.default_rng(3))
    both = np.hstack([scalars, np.roll(scalars, 1)])
    design = StrippedDesign(method("feature_residualization"), (inputs, inputs), both, drawn)
    assert design.mapped() is None
    assert design.n_features == 2 * P
    assert design(trains()[0]).shape == (N, 2 * P)


@pytest.mark.parametrize("name", [*LINEAR, *SWAPS])
def test_a_mechanism_that_stands_still_on_a_training_set_has_no_direction(data, name):
    inputs, scalars, responses = data
    still = np.where(np.arange(N)[:, None] < 30, scalars, 0.25)
    readouts = NestedRidge(responses, FOLDS, RidgeGrid((1.0, 100.0)))
    with pytest.raises(DegenerateStrip):
        readouts.fit(StrippedDesign(method(name), (inputs,), still))
    readouts.fit(StrippedDesign(method(name), (inputs,), scalars))


def test_dilution_is_the_smallest_root_or_noise_alone(data):
    """Whatever the direction: the scalar accounts for the mechanism's variance, is undiluted, or is noise."""
    inputs, _, _ = data
    kinds = set()
    for seed in range(40):
        (direction,) = RandomDirection.draw(N, 1, np.random.default_rng(seed))
        for share in (0.0, 1.0, 3.0):
            noise = np.random.default_rng(seed + 1000).standard_normal(N)
            m = inputs.features @ np.ones(P) * share + 5.0 * noise
            for train in trains():
                found = direction.scalar(inputs.features, m, train)
                z = inputs.features[train] - inputs.features[train].mean(axis=0)
                shares = [_share(z, s[train]) for s in (found, m)]
                if np.isclose(*shares, rtol=1e-6):
                    kinds.add("diluted")
                elif np.array_equal(found, direction.noise):
                    kinds.add("noise")
                    assert shares[0] > shares[1]
                else:
                    kinds.add("as it is")
                    assert shares[0] < shares[1]
    assert kinds == {"diluted", "noise", "as it is"}


def _share(z, scalar):
    s = scalar - scalar.mean()
    return float(np.sum((z.T @ s) ** 2) / (s @ s))
