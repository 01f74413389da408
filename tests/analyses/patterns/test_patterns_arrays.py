"""References and similarities against the equations of the paper, pair by pair; layers; tables as arrays."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from made_tables import Made, peculiar

from lpact.analyses.patterns import tables
from lpact.analyses.patterns.arrays import cube, places, similarities
from lpact.analyses.patterns.config import PatternsSection

RNG = np.random.default_rng


def correlation(a, b):
    kept = np.isfinite(a) & np.isfinite(b)
    return np.corrcoef(a[kept], b[kept])[0, 1] if kept.sum() >= 3 else np.nan


def mean_pattern(brains, r, left_out):
    """Eq. S1 with p ≠ t: the mean over pairs without some subjects."""
    n = brains.shape[1]
    kept = [brains[r, p, t] for p, t in itertools.permutations(range(n), 2) if not {p, t} & left_out]  # fmt: skip
    return np.nanmean(kept, axis=0)


@pytest.mark.parametrize("missing", [False, True])
def test_similarities_are_those_of_the_equations(missing):
    made = Made(peculiar(5), 5, seed=4)
    brains = made.brains
    models = np.stack([made.like_a_brain() for _ in range(2)])
    if missing:
        brains[0, 1, 2, 3] = brains[2, 0, 3, 1] = models[0, 1, 2, 4] = np.nan
        models[1, 3, 2, 1:4] = np.nan  # two entries are left
    found = similarities(brains, models)
    n, regions = 5, range(5)
    for r in regions:
        for p, t in itertools.permutations(range(n), 2):
            own = brains[r, p, t]
            assert found.brains[r, p, t] == pytest.approx(correlation(own, mean_pattern(brains, r, {t})))
            by_region = [correlation(own, mean_pattern(brains, k, {p, t})) for k in regions]
            assert found.brains_without_source[r, p, t] == pytest.approx(by_region[r])
            others = np.mean([v for k, v in enumerate(by_region) if k != r])
            assert found.brains_other[r, p, t] == pytest.approx(others)
        for m, t in itertools.product(range(2), range(n)):
            own = models[m, r, t]
            if np.isfinite(own).sum() < 3:
                assert np.isnan(
                    [found.models[r, m, t], found.models_without_source[r, m, t], found.models_other[r, m, t]]
                ).all()  # fmt: skip
                continue
            assert found.models[r, m, t] == pytest.approx(correlation(own, mean_pattern(brains, r, {t})))
            by_region = [
                np.mean([correlation(own, mean_pattern(brains, k, {q, t})) for q in range(n) if q != t])
                for k in regions
            ]  # fmt: skip
            assert found.models_without_source[r, m, t] == pytest.approx(by_region[r])
            others = np.mean([v for k, v in enumerate(by_region) if k != r])
            assert found.models_other[r, m, t] == pytest.approx(others)
    assert np.isnan(found.brains[:, range(n), range(n)]).all()


def test_references_of_ten_subjects_are_means_of_72_and_56_pairs():
    """A single pair that is 1 adds one part in that many."""
    brains = np.zeros((3, 10, 10, 3))
    brains[:, 3, 4, 1] = 1.0
    assert mean_pattern(brains, 0, {0})[1] == pytest.approx(1 / 72)
    assert mean_pattern(brains, 0, {0, 1})[1] == pytest.approx(1 / 56)


def place_of(made, *, on_test=False):
    options = PatternsSection(layer_choice="best_on_test" if on_test else "training")
    (place,) = places(made.tables(), options)
    return place


def layered(training, test, n_subjects=4):
    """A model whose layers have these scores [layer, region] in every subject."""
    made = Made(peculiar(3), n_subjects)
    every = [
        dict(enumerate(np.repeat(np.array(v, dtype=float)[:, None], n_subjects, axis=1))) for v in (test, training)
    ]
    return made.add("net", *every)


def test_layers_are_chosen_for_every_region_by_training_scores_and_ties_go_to_the_first():
    training = [[0.1, 0.3, 0.2], [0.2, 0.3, 0.1], [0.1, 0.1, 0.3]]
    test = [[0.9, 0.0, 0.0], [0.0, 0.0, 0.8], [0.0, 0.7, 0.0]]
    place = place_of(layered(training, test))
    assert place.layers.tolist() == [[1.0, 0.0, 2.0]]
    assert not place.optimistic.any()
    by_test = place_of(layered(training, test), on_test=True)
    assert by_test.layers.tolist() == [[0.0, 2.0, 1.0]]
    assert by_test.optimistic.all()
    # Scores and patterns are those of the layer that was chosen for the region.
    assert place.scores()[:, 0, 0].tolist() == [0.0, 0.0, 0.0]
    assert by_test.scores()[:, 0, 0].tolist() == [0.9, 0.7, 0.8]
    assert by_test.of_models()[0, 1, 0].tolist() == test[2]


def test_a_layer_without_scores_in_some_subjects_comes_after_those_with_all():
    made = layered([[0.1] * 3, [0.5] * 3], [[0.0] * 3, [0.0] * 3])
    made.training["net"][1][0, 0] = np.nan
    assert place_of(made).layers.tolist() == [[0.0, 1.0, 1.0]]
    for own in made.training["net"].values():
        own[:, 2] = np.nan
    layers = place_of(made).layers
    assert np.isnan(layers[0, 2])
    assert np.isnan(place_of(made).scores()[2]).all()


def test_a_model_with_one_layer_needs_no_choice():
    made = Made(peculiar(3), 4).add("net", {7: RNG(0).normal(size=(4, 3))})
    place = place_of(made, on_test=True)
    assert place.layers.tolist() == [[7.0, 7.0, 7.0]]
    assert not place.optimistic.any()


def test_a_cube_has_every_value_at_its_labels():
    made = Made(peculiar(3), 4)
    rows = made.tables()[tables.BRAIN_PAIRS.name].sample(fraction=1.0, shuffle=True, seed=1)
    regions, subjects = made.regions, made.subjects
    found = cube(rows, "value", source_region=regions, source=subjects, target=subjects, region=regions)
    np.testing.assert_array_equal(found, made.brains)
