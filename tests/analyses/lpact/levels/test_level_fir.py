"""Finite impulse responses: what a delayed response does to every level, beside the same study at its one true lag."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels import stripping
from lpact.analyses.lpact.levels.readouts import LayerInputs, conditions, fit_layer, fit_nuisance
from lpact.analyses.lpact.levels.stripped_design import RandomDirection, StrippedDesign
from lpact.analyses.lpact.levels.stripping import localise
from lpact.analyses.lpact.levels.stripping_methods import (
    STRIPPINGS,
    StripInputs,
)
from lpact.codes import Reason
from lpact.datasets.base import (
    Dataset,
    DatasetInfo,
    FeatureKey,
    Recording,
    RecordingId,
    Stimulus,
    TimeSeries,
    Units,
)
from lpact.features.models import ModelSource
from lpact.grid import build_grid
from lpact.inputs.prepare import ModelOnGrid, inspect, ridge_grid
from lpact.math.ridge import nested_ridge, nested_ridge_draws
from lpact.math.scores import partial_correlations
from lpact.measures import MEASURES
from lpact.validation import validate_model

N_TRS, N_WORDS, TR_S, DELAY = 300, 1200, 2.0, 3
PLANTED = ("surprisal", "context_update")
CARRIERS = {"surprisal": 0, "context_update": 1}
BOTH = 2
"""Unit that answers to surprisal at two delays, with opposite signs."""
ID = RecordingId("1", "1", "1", "s")
CONTEXTS = ("full", "sentence_reset", "reversed")

GRIDS = {
    "fir": {"lags_ms": [0.0], "fir_ms": [2000.0, 4000.0, 6000.0, 8000.0]},
    "lag": {"lags_ms": [6000.0]},
    "undelayed": {"lags_ms": [0.0]},
}


def study(grid: str, **readout) -> LPactConfig:
    values = {
        "name": "fir",
        "seed": 1,
        "datasets": [
            {
                "name": "d",
                "reader": "simulated",
                "grid": {"events": "trs", "tr_features": "lanczos", **GRIDS[grid]},
            }
        ],
        "models": [{"name": "m", "layers": [1]}],
        "readout": {"alphas": [1.0, 100.0], "folds": 4, "gap_events": 8, **readout},
        "controls": {"draws": 1, "include": ["token_order_shuffle", "circular_shift"]},
        "nuisance": {"include": ["word_rate"]},
        "stripping": {
            "methods": ["feature_residualization", "mechanism_projection_removal"],
            "mismatch_draws": 2,
            "target_fraction": 1 / 6,
        },
        "mechanisms": {"include": list(PLANTED)},
    }
    return validate_model(LPactConfig, values, where="test study")


class Listener(Dataset):
    """One listener: units that follow a mechanism three TRs later, and units of noise."""

    info = DatasetInfo("test", "1", "none")

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        onset = np.sort(rng.uniform(0, TR_S * (N_TRS - 10), N_WORDS))
        words = pl.DataFrame(
            {
                "word": ["w"] * N_WORDS,
                "onset_s": onset,
                "offset_s": onset + 0.2,
                "sentence_id": np.arange(N_WORDS) // 12,
                "story_id": ["a"] * N_WORDS,
            }
        )
        self.values = rng.standard_normal((N_WORDS, 2))
        mechanisms = dict(zip(PLANTED, self.values.T, strict=True))
        self._stimulus = Stimulus("s", words, "words.tsv", mechanisms=mechanisms)
        self._signal = rng.standard_normal((N_TRS, 6)) * 0.3
        undelayed = study("undelayed").datasets[0].grid
        rows = build_grid(self.recording(ID), self._stimulus, undelayed)
        filtered = np.zeros((N_TRS, 2))
        filtered[np.rint(rows.onset_s / TR_S).astype(int)] = rows.pool(self.values)
        self._signal[DELAY:, :2] += filtered[:-DELAY]
        self._signal[DELAY:, BOTH] += (filtered[:-DELAY] - filtered[1 : 1 - DELAY])[:, 0]

    def recording_ids(self):
        return [ID]

    def recording(self, recording_id):
        units = Units(tuple("abcdef"), tuple("abcdef"))
        return Recording(recording_id, TimeSeries(self._signal, 1 / TR_S), units, "bold")

    def stimulus(self, stimulus_id):
        assert stimulus_id == "s"
        return self._stimulus

    def source_files(self):
        return []


class Knows(ModelSource):
    """Features that hold both mechanisms, and noise."""

    name = "knows"
    summary = "mechanisms and noise"

    def __init__(self, values) -> None:
        rng = np.random.default_rng(4)
        known = values @ rng.standard_normal((2, 4))
        self._rows = {
            (layer, context): np.hstack([known * (layer + 1), rng.standard_normal((N_WORDS, 3))])
            for layer in (0, 1)
            for context in CONTEXTS
        }

    def offers(self, model, stimulus):
        return [FeatureKey(model, layer, context) for layer, context in self._rows]

    def load(self, key, stimulus):
        return self._rows[key.layer, key.context]


@dataclass
class Bench:
    config: LPactConfig

    def __post_init__(self) -> None:
        dataset = Listener()
        found = inspect(dataset, ID, name="d", config=self.config)
        assert found.reason is Reason.OK
        self.prepared = found.prepared
        self.model = ModelOnGrid("m", Knows(dataset.values), self.prepared)
        self.ridge = ridge_grid(self.config.readout)

    def fit(self, features, prepared=None):
        prepared = prepared or self.prepared
        return nested_ridge(features, prepared.grid.responses, prepared.folds, self.ridge)

    @property
    def real(self):
        return self.fit(self.model.load(1))


@pytest.fixture(scope="module")
def benches():
    return {name: Bench(study(name)) for name in GRIDS}


@pytest.fixture(scope="module")
def fir(benches):
    return benches["fir"]


def layer_of(bench):
    return LayerInputs(bench.config, bench.prepared, bench.model, 1, confirmatory=True)


@pytest.fixture(scope="module")
def contexts(benches):
    return {name: fit_layer(layer_of(b), fit_nuisance(b.config, b.prepared)) for name, b in benches.items()}


def test_shapes_and_the_first_delay(fir, benches):
    prepared = fir.prepared
    assert prepared.grid.n_delays == 4
    assert fir.model.load(1).shape == (prepared.n_events, 4 * 7)
    assert fir.model.width(1) == 28
    assert prepared.nuisance.shape[1] == 4 * benches["lag"].prepared.nuisance.shape[1]
    for name in PLANTED:
        assert prepared.scalars(name).shape == (prepared.n_events, 4)
        np.testing.assert_array_equal(prepared.mechanisms[name], prepared.scalars(name)[:, 0])
    plain = benches["lag"].prepared
    assert dict(plain.delayed) == {}
    np.testing.assert_array_equal(plain.scalars("surprisal")[:, 0], plain.mechanisms["surprisal"])


def test_mechanisms_at_a_delay_are_those_of_an_earlier_tr(fir, benches):
    undelayed = benches["undelayed"].prepared
    at = dict(zip(undelayed.grid.onset_s, undelayed.mechanisms["surprisal"], strict=True))
    for onset, row in zip(fir.prepared.grid.onset_s, fir.prepared.scalars("surprisal"), strict=True):
        for shift, value in zip((2.0, 4.0, 6.0, 8.0), row, strict=True):
            if onset - shift in at:
                assert value == at[onset - shift]


def test_readouts_see_a_delayed_response_as_at_its_one_lag(contexts):
    score = {n: c.pearson["real", 0] for n, c in contexts.items()}
    assert (score["lag"][:2] > 0.8).all()
    assert (score["fir"][:2] > score["lag"][:2] - 0.05).all()
    assert (np.abs(score["undelayed"][:2]) < 0.3).all()
    assert (score["fir"][3:] < 0.3).all()


def test_only_delays_side_by_side_see_a_response_of_two_delays(contexts):
    assert contexts["fir"].pearson["real", 0][BOTH] > 0.85
    assert contexts["lag"].pearson["real", 0][BOTH] < 0.8


def test_controls_lose_what_the_real_features_have(contexts):
    scores = contexts["fir"].pearson
    for control in ("token_order_shuffle", "circular_shift"):
        lost = scores["real", 0] - scores[control, 0]
        assert (lost[:2] > 0.4).all(), control


def test_the_localiser_finds_the_carriers(benches):
    fraction = 1 / 6
    for name in ("fir", "lag"):
        bench = benches[name]
        targets = localise(bench.prepared, bench.real, fraction)
        assert dict(targets.missing) == {}
        for mechanism, unit in CARRIERS.items():
            allowed = {unit, BOTH} if mechanism == "surprisal" else {unit}
            assert set(targets.units[mechanism].ravel().tolist()) <= allowed
            assert (np.abs(targets.partial[mechanism]) > 0.6).all()


def test_the_localiser_takes_the_strongest_delay_of_training_rows(fir):
    prepared, real = fir.prepared, fir.real
    targets = localise(prepared, real, 1.0)
    for fold in range(real.folds.n_blocks):
        train = real.folds.train_rows(fold)
        y = prepared.grid.responses[0][train]
        for k, mechanism in enumerate(PLANTED):
            expected = np.zeros(6)
            for delay in range(4):
                m = np.column_stack([prepared.scalars(name)[train, delay] for name in PLANTED])
                r = partial_correlations(y, m)[k]
                expected = np.where(np.abs(r) > np.abs(expected), r, expected)
            units = targets.units[mechanism][fold]
            np.testing.assert_array_equal(targets.partial[mechanism][fold], expected[units])
            assert (np.diff(np.abs(expected[units])) <= 0).all()


def test_held_out_responses_move_no_target_of_their_fold(fir):
    prepared, real = fir.prepared, fir.real
    before = localise(prepared, real, 1 / 3)
    for block in (0, 2):
        rows = prepared.folds.rows(block)
        spoiled = prepared.grid.responses.copy()
        spoiled[:, rows] = 100 * np.random.default_rng(1).standard_normal(spoiled[:, rows].shape)
        other = replace(prepared, grid=replace(prepared.grid, responses=spoiled))
        after = localise(other, fir.fit(fir.model.load(1), other), 1 / 3)
        for name in PLANTED:
            np.testing.assert_array_equal(after.units[name][block], before.units[name][block])
            np.testing.assert_array_equal(after.partial[name][block], before.partial[name][block])


def test_a_mechanism_that_never_varies_in_training_is_missing(fir):
    scalars = np.zeros((fir.prepared.n_events, 4))
    scalars[fir.prepared.folds.rows(1)] = 1.0
    delayed = {**fir.prepared.delayed, "surprisal": scalars}
    mechanisms = {**fir.prepared.mechanisms, "surprisal": scalars[:, 0]}
    other = replace(fir.prepared, delayed=delayed, mechanisms=mechanisms)
    targets = localise(other, fir.real, 1 / 6)
    assert targets.missing == {"surprisal": Reason.MECHANISM_CONSTANT}


@pytest.mark.parametrize("measure", ["cka", "rsa"])
def test_unfitted_measures_see_a_delayed_response(benches, measure):
    values = {}
    for name, bench in benches.items():
        features, reference = bench.model.load(1), bench.prepared.reference
        values[name] = MEASURES.build(measure).to_units(features, reference)
    for name in ("fir", "lag"):
        assert values[name][:2].min() > 2 * np.abs(values[name][3:]).max(), name
    assert values["undelayed"][:2].max() < values["fir"][:2].min()


def test_a_strip_costs_what_it_costs_at_the_one_lag(benches):
    drops = {}
    for name in ("fir", "lag"):
        b = benches[name]
        tables = stripping.measure_stripping(layer_of(b), b.real)
        rows = tables["causal/mechanism_specificity_summary"]
        assert rows["reason"].to_list() == [Reason.OK.value] * 4
        assert (rows["margin"] > 0.3).all(), name
        assert (rows["mismatch_margin"] > 0.1).all(), name
        drops[name] = rows["matching_drop"].to_numpy()
        features = tables["causal/causal_stripping_features"]
        assert features["n_features"].to_list() == [b.model.load(1).shape[1]] * 4
        assert ((features["variance_removed"] > 0) & (features["variance_removed"] < 1)).all()
    np.testing.assert_allclose(drops["fir"], drops["lag"], atol=0.15)


def block(values, j):
    width = values.shape[1] // 4
    return values[:, j * width : (j + 1) * width]


@pytest.mark.parametrize("entry", STRIPPINGS.entries(), ids=lambda entry: entry.name)
def test_every_method_strips_each_delay_alone(fir, entry):
    method = entry.plugin()
    train = fir.prepared.folds.train_rows(1)
    scalars = fir.prepared.scalars("surprisal")
    given = StripInputs(fir.model.load(1), 1, fir.model.offered, fir.model.load)
    assert method.unavailable(given) is None
    delays = given.at_delays(4)
    stripped = StrippedDesign(method, delays, scalars)(train)
    assert stripped.shape == given.features.shape
    for j in range(4):
        alone = StripInputs(
            block(given.features, j),
            1,
            given.offered,
            lambda layer, context, draw, j=j: block(fir.model.load(layer, context, draw), j),
        )
        np.testing.assert_array_equal(block(stripped, j), method.strip(alone, scalars[:, j], train))
    spoiled = scalars.copy()
    spoiled[fir.prepared.folds.rows(1)] += 50.0
    again = StrippedDesign(method, delays, spoiled)(train)
    np.testing.assert_array_equal(again[train], stripped[train])


def test_a_random_direction_is_one_direction_at_every_delay(fir):
    """At each delay it takes the share of feature variance that the mechanism has there."""
    train = fir.prepared.folds.train_rows(0)
    scalars = fir.prepared.scalars("surprisal")
    z = fir.model.load(1)
    drawn = RandomDirection.draw(len(z), 4, np.random.default_rng(0))
    undiluted = [replace(d, noise=np.zeros(len(z))) for d in drawn]
    direction = None

    def share(features, scalar):
        centred, s = features[train] - features[train].mean(0), scalar[train] - scalar[train].mean()
        return ((centred.T @ s) ** 2).sum() / (s @ s)

    for j in range(4):
        along = undiluted[j].scalar(block(z, j), scalars[:, j], train, found_in=block(z, 0))
        weights = np.linalg.lstsq(block(z, j) - block(z, j)[train].mean(0), along, rcond=None)[0]
        weights /= np.linalg.norm(weights)
        direction = weights if direction is None else direction
        np.testing.assert_allclose(weights, direction, atol=1e-8)
        other = drawn[j].scalar(block(z, j), scalars[:, j], train, found_in=block(z, 0))
        wanted = share(block(z, j), scalars[:, j])
        assert share(block(z, j), other) <= wanted * (1 + 1e-6)
    assert not np.array_equal(drawn[0].noise, drawn[1].noise)
    method = STRIPPINGS.build("feature_residualization")
    given = StripInputs(z, 1, fir.model.offered, fir.model.load)
    stripped = StrippedDesign(method, given.at_delays(4), scalars, drawn)(train)
    other = drawn[2].scalar(block(z, 2), scalars[:, 2], train, found_in=block(z, 0))
    alone = replace(given, features=block(z, 2))
    np.testing.assert_array_equal(block(stripped, 2), method.strip(alone, other, train))


def test_one_delay_is_no_delay(benches):
    """Without delays a strip is the method's own result, of the very same inputs."""
    bench = benches["lag"]
    given = StripInputs(bench.model.load(1), 1, bench.model.offered, bench.model.load)
    assert given.at_delays(1) == (given,)
    rngs = (np.random.default_rng(5), np.random.default_rng(5))
    (drawn,) = RandomDirection.draw(50, 1, rngs[0])
    plain = RandomDirection(*rngs[1].standard_normal((2, 50)))
    np.testing.assert_array_equal(drawn.weights, plain.weights)
    np.testing.assert_array_equal(drawn.noise, plain.noise)


def test_controls_reorder_rows_of_all_delays_together(fir):
    z = fir.model.load(1)
    orders = [c for c in conditions(layer_of(fir)) if c.order is not None]
    assert {c.name for c in orders} == {"token_order_shuffle", "circular_shift"}
    for condition in orders:
        np.testing.assert_array_equal(condition.features, z[condition.order])


def test_reordered_responses_ask_the_same_as_reordered_rows():
    bench = Bench(study("fir", gap_events=0))
    prepared, z = bench.prepared, bench.model.load(1)
    rng = np.random.default_rng(8)
    sizes = prepared.folds.test_sizes()
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    order = np.concatenate([s + rng.permutation(n) for s, n in zip(starts, sizes, strict=True)])
    (on_responses,) = nested_ridge_draws(z, prepared.grid.responses, prepared.folds, bench.ridge, [np.argsort(order)])
    reordered = bench.fit(z[order])
    np.testing.assert_allclose(on_responses.scores("pearson"), reordered.scores("pearson"), atol=1e-9)
