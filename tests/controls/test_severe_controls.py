"""Every severe control keeps to its definition and says why it cannot be made."""

import inspect

import numpy as np
import pytest
from scipy.linalg import svdvals

from lpact.codes import Reason
from lpact.config import ControlsConfig
from lpact.controls.base import CONTROLS, ControlInputs
from lpact.errors import ConfigError
from lpact.math.seeding import keyed_rng
from lpact.math.surrogates import autocorrelation_time

RANDOM = {
    "random_matched_dim": True,
    "random_matched_autocorr": True,
    "circular_shift": True,
    "sentence_reset_fresh": False,
    "reversed_context_fresh": False,
    "layer_label_permutation": True,
    "token_order_shuffle": True,
    "token_order_shuffle_fresh": True,
    "within_story_block_shuffle": True,
    "untrained_model_fresh": True,
    "static_embedding": False,
}
NOT_COUNTED = {"token_order_shuffle_fresh", "untrained_model_fresh", "static_embedding"}
REORDERED = ("circular_shift", "token_order_shuffle", "within_story_block_shuffle")
N_EVENTS, N_COLUMNS, LAYER = 240, 6, 3
CONTEXT_OF = {
    "sentence_reset_fresh": "sentence_reset",
    "reversed_context_fresh": "reversed",
    "token_order_shuffle_fresh": "shuffled",
    "untrained_model_fresh": "untrained",
    "static_embedding": "static",
}
OFFERED = {
    **{(layer, "full"): 1 for layer in (0, 3, 5, 8)},
    (LAYER, "sentence_reset"): 1,
    (LAYER, "reversed"): 1,
    (LAYER, "shuffled"): 2,
    (LAYER, "untrained"): 5,
    (0, "static"): 1,
}


def marked(layer, context, draw):
    """Features that say where they came from."""
    return np.array([[float(layer), float(sum(map(ord, context))), float(draw)]])


def make_inputs(**changes):
    rng = np.random.default_rng(0)
    features = np.cumsum(rng.standard_normal((N_EVENTS, N_COLUMNS)), axis=0)
    features = features[:, :] - 0.9 * np.vstack([np.zeros(N_COLUMNS), features[:-1]])
    values = {
        "features": features,
        "sentence": np.arange(N_EVENTS) % 120 // 8,  # ids start anew in the second story
        "story": np.arange(N_EVENTS) // 120,
        "layer": LAYER,
        "offered": OFFERED,
        "load": marked,
    }
    return ControlInputs(**{**values, **changes})


def drawn(name, inputs=None, *, draw=0, seed=0, options=None):
    inputs = make_inputs() if inputs is None else inputs
    return CONTROLS.build(name, options).draw(inputs, keyed_rng(seed, name, draw), draw)


def row_order(control_features, features):
    """Return which real row each control row is."""
    order = [int(np.flatnonzero((features == row).all(axis=1))[0]) for row in control_features]
    return np.array(order)


def test_registry_holds_exactly_these():
    assert set(CONTROLS.names()) == set(RANDOM)
    assert set(ControlsConfig().include) <= set(RANDOM)
    for entry in CONTROLS.entries():
        assert entry.plugin.random is RANDOM[entry.name]
        assert entry.plugin.counted is (entry.name not in NOT_COUNTED)
        assert entry.plugin.needs
        assert inspect.getdoc(entry.plugin)


@pytest.mark.parametrize("name", RANDOM)
def test_available_and_repeatable_where_everything_is_offered(name):
    inputs = make_inputs()
    before = inputs.features.copy()
    control = CONTROLS.build(name)
    assert control.unavailable(inputs) is None
    np.testing.assert_array_equal(drawn(name, inputs), drawn(name, inputs))
    np.testing.assert_array_equal(inputs.features, before)


@pytest.mark.parametrize("name", RANDOM)
def test_number_of_draws(name):
    offered = {
        "token_order_shuffle_fresh": 2,
        "untrained_model_fresh": 5,
        "layer_label_permutation": 3,
    }
    expected = min(4, offered.get(name, 4)) if RANDOM[name] else 1
    assert CONTROLS.build(name).n_draws(make_inputs(), 4) == expected


@pytest.mark.parametrize("name", [n for n in RANDOM if RANDOM[n] and n not in CONTEXT_OF])
def test_draws_differ(name):
    draws = [drawn(name, draw=k) for k in range(12)]
    assert any(not np.array_equal(draws[0], other) for other in draws[1:])


@pytest.mark.parametrize("name", ["random_matched_dim", "random_matched_autocorr", *REORDERED])
def test_shape_means_and_deviations_are_kept(name):
    inputs = make_inputs()
    features = drawn(name, inputs)
    assert features.shape == inputs.features.shape
    np.testing.assert_allclose(features.mean(axis=0), inputs.features.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(features.std(axis=0), inputs.features.std(axis=0), atol=1e-12)
    assert not np.allclose(features, inputs.features)


def test_random_matched_dim_has_neither_correlation_nor_autocorrelation():
    rng = np.random.default_rng(1)
    shared = np.repeat(rng.standard_normal((N_EVENTS // 8, 1)), 8, axis=0)
    inputs = make_inputs(features=shared + 0.1 * rng.standard_normal((N_EVENTS, 3)))
    features = drawn("random_matched_dim", inputs)
    assert autocorrelation_time(inputs.features) > autocorrelation_time(features) == 1
    assert np.abs(np.corrcoef(features, rowvar=False) - np.eye(3)).max() < 0.3


def test_random_matched_autocorr_keeps_the_cross_spectra_of_each_story():
    inputs = make_inputs()
    features = drawn("random_matched_autocorr", inputs)
    for story in (0, 1):
        rows = inputs.story == story
        real, surrogate = (np.fft.rfft(x[rows], axis=0) for x in (inputs.features, features))
        for i, j in ((0, 0), (0, 1), (2, 5)):
            np.testing.assert_allclose(
                surrogate[:, i] * surrogate[:, j].conj(), real[:, i] * real[:, j].conj(), atol=1e-9
            )


def test_random_matched_autocorr_keeps_the_dimension_of_the_features():
    rng = np.random.default_rng(2)
    low_rank = rng.standard_normal((N_EVENTS, 2)) @ rng.standard_normal((2, N_COLUMNS))
    values = svdvals(drawn("random_matched_autocorr", make_inputs(features=low_rank)))
    assert values[1] > 1.0 > 1e-9 > values[2]


def test_circular_shift_rotates_the_run_by_more_than_its_autocorrelation_time():
    inputs = make_inputs()
    least = 2 * autocorrelation_time(inputs.features)
    shifts = set()
    for draw in range(60):
        order = row_order(drawn("circular_shift", inputs, draw=draw), inputs.features)
        shift = int(-order[0] % N_EVENTS)
        np.testing.assert_array_equal(order, (np.arange(N_EVENTS) - shift) % N_EVENTS)
        shifts.add(shift)
    assert least <= min(shifts) < N_EVENTS / 2 < max(shifts) <= N_EVENTS - least


def test_circular_shift_needs_a_run_long_enough():
    inputs = make_inputs(features=np.sin(np.arange(N_EVENTS) / N_EVENTS * 4)[:, None])
    time = autocorrelation_time(inputs.features)
    assert 4 * time <= N_EVENTS < 6 * time
    assert CONTROLS.build("circular_shift").unavailable(inputs) is None
    farther = CONTROLS.build("circular_shift", {"min_autocorrelation_times": 3})
    found = farther.unavailable(inputs)
    assert found.reason is Reason.SHIFT_NOT_POSSIBLE
    assert f"{6 * time} events" in found.detail
    with pytest.raises(ValueError, match="in either direction needs"):
        farther.draw(inputs, keyed_rng(0), 0)


def test_circular_shift_is_never_within_the_autocorrelation_time():
    with pytest.raises(ConfigError):
        CONTROLS.build("circular_shift", {"min_autocorrelation_times": 0.5})


def test_token_order_shuffle_stays_within_the_sentence_of_the_story():
    inputs = make_inputs()
    order = row_order(drawn("token_order_shuffle", inputs), inputs.features)
    assert sorted(order) == list(range(N_EVENTS))
    np.testing.assert_array_equal(inputs.sentence[order], inputs.sentence)
    np.testing.assert_array_equal(inputs.story[order], inputs.story)
    changed = (order != np.arange(N_EVENTS)).reshape(-1, 8).any(axis=1)
    assert changed.all()


@pytest.mark.parametrize(
    ("sentence", "story"),
    [
        (np.arange(N_EVENTS), np.zeros(N_EVENTS, dtype=np.int64)),
        (np.zeros(N_EVENTS, dtype=np.int64), np.arange(N_EVENTS)),
        (np.arange(N_EVENTS) % 2, np.zeros(N_EVENTS, dtype=np.int64)),
    ],
    ids=["own ids", "own stories", "ids that come back"],
)
def test_token_order_shuffle_needs_a_sentence_of_two_events(sentence, story):
    control = CONTROLS.build("token_order_shuffle")
    found = control.unavailable(make_inputs(sentence=sentence, story=story))
    assert found.reason is Reason.NO_SENTENCE_IDS
    sentence = sentence.copy()
    sentence[1], story = sentence[0], np.concatenate([story[:1], story[:1], story[2:]])
    assert control.unavailable(make_inputs(sentence=sentence, story=story)) is None


@pytest.mark.parametrize("block", [20, 7])
def test_block_shuffle_moves_whole_blocks_within_the_story(block):
    inputs = make_inputs()
    options = {"block_events": block}
    order = row_order(drawn("within_story_block_shuffle", inputs, options=options), inputs.features)
    assert sorted(order) == list(range(N_EVENTS))
    np.testing.assert_array_equal(inputs.story[order], inputs.story)
    # Inside a block neighbours stay neighbours: only block borders break.
    n_blocks = 2 * -(-120 // block)
    assert 2 <= np.count_nonzero(np.diff(order) != 1) < n_blocks


@pytest.mark.parametrize(
    ("name", "short", "enough"),
    [("random_matched_autocorr", 3, 4), ("within_story_block_shuffle", 20, 21)],
)
def test_stories_can_be_too_short(name, short, enough):
    control = CONTROLS.build(name)
    found = control.unavailable(make_inputs(story=np.arange(N_EVENTS) // short))
    assert found.reason is Reason.STORY_TOO_SHORT
    assert f"longest story has {short} event(s)" in found.detail
    assert control.unavailable(make_inputs(story=np.arange(N_EVENTS) // enough)) is None


def test_layer_label_permutation_draws_every_other_layer_alike():
    """Fewer draws than other layers: random derangements."""
    inputs = make_inputs(draws=2)
    layers = [int(drawn("layer_label_permutation", inputs, draw=k)[0, 0]) for k in range(300)]
    counts = {layer: layers.count(layer) for layer in set(layers)}
    assert set(counts) == {0, 5, 8}
    assert all(70 <= count <= 130 for count in counts.values())


def test_layer_label_permutation_takes_every_other_layer_once_where_draws_suffice():
    inputs = make_inputs(draws=20)
    control = CONTROLS.build("layer_label_permutation")
    n_draws = control.n_draws(inputs, 20)
    layers = [int(drawn("layer_label_permutation", inputs, draw=k)[0, 0]) for k in range(n_draws)]
    assert layers == [0, 5, 8]
    np.testing.assert_array_equal(drawn("layer_label_permutation", inputs)[0, 1:], marked(0, "full", 0)[0, 1:])


def test_layer_label_permutation_needs_another_layer():
    offered = {(LAYER, "full"): 1, (5, "static"): 1, (7, "full"): 0}
    found = CONTROLS.build("layer_label_permutation").unavailable(make_inputs(offered=offered))
    assert found.reason is Reason.NO_OTHER_LAYER


@pytest.mark.parametrize(("name", "context"), CONTEXT_OF.items())
def test_fresh_controls_load_their_context(name, context):
    draw = 1 if RANDOM[name] else 0
    layer = 0 if name == "static_embedding" else LAYER
    np.testing.assert_array_equal(drawn(name, draw=draw), marked(layer, context, draw))


@pytest.mark.parametrize(("name", "context"), CONTEXT_OF.items())
def test_fresh_controls_need_their_context(name, context):
    offered = {key: n for key, n in OFFERED.items() if key[1] != context}
    found = CONTROLS.build(name).unavailable(make_inputs(offered=offered))
    assert found.reason is Reason.CONTEXT_NOT_OFFERED
    assert f"'{context}'" in found.detail


def test_static_embedding_prefers_its_own_layer():
    inputs = make_inputs(offered={**OFFERED, (LAYER, "static"): 1})
    np.testing.assert_array_equal(drawn("static_embedding", inputs), marked(LAYER, "static", 0))


@pytest.mark.parametrize("name", REORDERED)
def test_row_index_gives_the_same_features_as_the_draw(name):
    inputs = make_inputs()
    control = CONTROLS.build(name)
    index = control.row_index(inputs, keyed_rng(4))
    np.testing.assert_array_equal(inputs.features[index], control.draw(inputs, keyed_rng(4), 0))
