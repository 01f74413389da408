"""Features of simulated models: what each model, layer and context knows, and what it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from lpact.datasets.base import DATASETS, FeatureKey
from lpact.datasets.simulated.dataset import Simulated
from lpact.datasets.simulated.features import column_groups
from lpact.datasets.simulated.options import MECHANISMS

MODELS = ("integrated", "predictive", "lexical", "drift", "null")
FRESH = ("sentence_reset", "reversed", "shuffled")


def study(**options: Any) -> Simulated:
    dataset = DATASETS.build("simulated", options).open(name="sim", path=None, seed=3)
    assert isinstance(dataset, Simulated)
    return dataset


DATASET = study()
STIMULUS = DATASET.stimulus("stimulus01")
LATENTS = DATASET.latents("stimulus01")


def load(model: str, layer: int = 2, context: str = "full", draw: int = 0) -> np.ndarray:
    return STIMULUS.features[FeatureKey(model, layer, context, draw)].load()


def recovered(features: np.ndarray, latent: np.ndarray) -> float:
    """Mean over latent columns of the adjusted R² of a least-squares fit."""
    latent = latent.reshape(len(latent), -1)
    design = np.column_stack([features, np.ones(len(features))])
    rest = latent - design @ np.linalg.lstsq(design, latent, rcond=None)[0]
    r2 = 1.0 - rest.var(axis=0) / latent.var(axis=0)
    n, k = features.shape
    return float(np.mean(1.0 - (1.0 - r2) * (n - 1) / (n - k - 1)))


DRIFT = LATENTS.drifts.at(STIMULUS.words["onset_s"].to_numpy())
KNOWN = {
    "context": LATENTS.contextual.context,
    "private": LATENTS.contextual.private,
    "mechanisms": LATENTS.contextual.mechanisms,
    "lexical": LATENTS.lexical,
    "drift": DRIFT,
}
KNOWN_BY = {
    "integrated": {"context", "mechanisms", "lexical"},
    "predictive": {"private", "lexical"},
    "lexical": {"lexical"},
    "drift": {"drift"},
    "null": set[str](),
}


def test_everything_on_offer_is_finite_and_equally_wide() -> None:
    keys = STIMULUS.features
    assert len(set(keys)) == len(keys) == 6 * 4 * (1 + 1 + 1 + 1 + 3 + 1)
    n_columns = column_groups(DATASET.options)["noise"].stop
    for key in keys:
        values = STIMULUS.features[key].load()
        assert values.shape == (STIMULUS.words.height, n_columns)
        assert np.isfinite(values).all()
        assert (values.std(axis=0) > 0.1).all()


def check_knowledge(features: np.ndarray, model: str, known: set[str]) -> None:
    for name, latent in KNOWN.items():
        if (model, name) == ("null", "drift"):
            continue  # slow noise fits a slow drift by chance
        share = recovered(features, latent)
        assert share > 0.7 if name in known else share < 0.15, name


@pytest.mark.parametrize("model", MODELS)
def test_best_layer_knows_what_its_model_knows_and_no_more(model: str) -> None:
    check_knowledge(load(model), model, KNOWN_BY[model])


@pytest.mark.parametrize("context", FRESH)
@pytest.mark.parametrize("model", MODELS)
def test_without_context_only_lexical_and_drift_are_left(model: str, context: str) -> None:
    kept = KNOWN_BY[model] & {"lexical", "drift"}
    check_knowledge(load(model, context=context), model, kept)


@pytest.mark.parametrize(("model", "latent"), [("integrated", "context"), ("predictive", "private")])
@pytest.mark.parametrize("layer", [1, 3])
def test_other_layers_keep_a_faint_trace(model: str, latent: str, layer: int) -> None:
    """A trace of 0.15 is an R² of 0.02: seen in the mean over many stimuli only."""
    dataset = study(n_runs=12, repeat_stimulus=False)
    shares = []
    for run in range(1, 13):
        features = dataset.stimulus(f"stimulus{run:02d}").features
        truth = getattr(dataset.latents(f"stimulus{run:02d}").contextual, latent)
        shares.append(recovered(features[FeatureKey(model, layer, "full")].load(), truth))
    assert 0.005 < np.mean(shares) < 0.05
    assert recovered(load(model, layer), LATENTS.lexical) > 0.7


def test_layer_zero_and_static_are_functions_of_the_word_type() -> None:
    words = STIMULUS.words["word"].to_numpy()
    for features in (load("integrated", 0), load("null", 2, "static"), load("drift", 1, "static")):
        for word in np.unique(words):
            assert len(np.unique(features[words == word], axis=0)) == 1
        assert recovered(features, LATENTS.lexical) > 0.9
    for context in ("full", "static", *FRESH):
        np.testing.assert_array_equal(load("integrated", 0, context), load("integrated", 2, "static"))


@pytest.mark.parametrize("model", ["lexical", "drift"])
@pytest.mark.parametrize("context", ["sentence_reset", "reversed", "shuffled"])
def test_context_free_models_lose_nothing_without_context(model: str, context: str) -> None:
    np.testing.assert_array_equal(load(model), load(model, context=context))
    integrated = load("integrated")
    assert not np.isclose(integrated, load("integrated", context=context)).all()


def test_untrained_features_come_from_form_and_position_only() -> None:
    words = STIMULUS.words.with_columns(
        position=pl.int_range(pl.len()).over("sentence_id"),
    )
    same_form_and_place = words.select(pl.format("{} {}", "word", "position")).to_series().to_numpy()
    one = load("integrated", 2, "untrained", 0)
    for label in np.unique(same_form_and_place):
        rows = one[same_form_and_place == label]
        np.testing.assert_allclose(rows, np.broadcast_to(rows[:1], rows.shape))
    others = [load("integrated", 2, "untrained", draw) for draw in (1, 2)]
    assert all(not np.allclose(one, other) for other in others)
    assert recovered(one, LATENTS.contextual.context) < 0.15


def test_null_features_are_autocorrelated() -> None:
    features = load("null")
    lag_one = [np.corrcoef(column[1:], column[:-1])[0, 1] for column in features.T]
    assert np.mean(lag_one) == pytest.approx(0.8, abs=0.08)


def test_each_mechanism_lives_in_its_own_columns() -> None:
    features = load("integrated")
    groups = column_groups(DATASET.options)
    for index, name in enumerate(MECHANISMS):
        mechanism = LATENTS.contextual.mechanisms[:, index]
        np.testing.assert_array_equal(STIMULUS.mechanisms[name], mechanism)
        correlation = np.abs([np.corrcoef(mechanism, column)[0, 1] for column in features.T])
        assert correlation[groups[name]].min() > 0.93
        assert np.delete(correlation, np.r_[groups[name]]).max() < 0.35
        zeroed = features.copy()
        zeroed[:, groups[name]] = 0.0
        kept = np.delete(zeroed, np.r_[groups[name]], axis=1)
        assert recovered(kept, mechanism) < 0.15


@pytest.mark.parametrize("size", [{"n_stories": 1, "sentences_per_story": 4}, {}])
def test_mechanisms_hardly_correlate(size: dict[str, int]) -> None:
    values = np.column_stack(list(study(**size).stimulus("stimulus01").mechanisms.values()))
    off_diagonal = np.corrcoef(values.T)[np.triu_indices(6, 1)]
    assert np.abs(off_diagonal).max() < 0.3
    np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(values.std(axis=0), 1.0)


def test_mechanisms_look_like_their_namesakes() -> None:
    dataset = study(n_stories=12)
    stimulus = dataset.stimulus("stimulus01")
    mechanisms, words = stimulus.mechanisms, stimulus.words
    rarity = -words["log_frequency"].to_numpy()
    assert stats.skew(mechanisms["surprisal"]) > 0.8
    assert np.corrcoef(mechanisms["surprisal"], rarity)[0, 1] == pytest.approx(0.2, abs=0.1)
    sentence = words["sentence_id"].to_numpy()
    ends, starts = np.diff(sentence, append=-1) != 0, np.diff(sentence, prepend=-1) != 0
    assert mechanisms["syntactic_boundary"][ends].mean() > 0.5
    assert mechanisms["discourse_boundary"][starts].mean() > 0.5
    assert abs(mechanisms["discourse_boundary"][ends].mean()) < 0.5


def test_context_is_nearly_white_and_knows_nothing_of_the_type() -> None:
    context = LATENTS.contextual.context
    lag_one = [np.corrcoef(column[1:], column[:-1])[0, 1] for column in context.T]
    assert np.mean(lag_one) == pytest.approx(0.2, abs=0.1)
    assert recovered(LATENTS.lexical, context) < 0.05
