from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from lpact.analyses.lpact.levels import stripping
from lpact.analyses.lpact.levels.readouts import LayerInputs
from lpact.analyses.lpact.levels.stripped_design import RandomDirection
from lpact.analyses.lpact.levels.stripping import localise
from lpact.analyses.lpact.levels.stripping_methods import (
    STRIPPINGS,
    DegenerateStrip,
    StripInputs,
)
from lpact.codes import Reason
from lpact.inputs.prepare import ridge_grid
from lpact.math.ridge import nested_ridge


def level3(config, prepared, model, layer=2):
    real = nested_ridge(model.load(layer), prepared.grid.responses, prepared.folds, ridge_grid(config.readout))
    return stripping.measure_stripping(LayerInputs(config, prepared, model, layer, confirmatory=True), real)


@pytest.fixture(scope="module")
def tables(bench):
    return level3(bench.config, bench.prepared, bench.model())


def test_row_arithmetic_of_one_context(tables):
    expected = {
        "causal/causal_stripping_features": 36,
        "causal/causal_stripping_deltas": 216,
        "causal/causal_stripping_scores": 432,
        "causal/double_dissociation_tests": 15,
        "causal/mechanism_specificity_summary": 36,
    }
    assert {name: tables[name].height for name in expected} == expected


def test_what_is_fitted_is_said(bench, tables):
    rows = tables["causal/causal_stripping_features"]
    n_sets = bench.prepared.folds.n_blocks * (bench.prepared.folds.n_blocks + 1) // 2
    for row in rows.iter_rows(named=True):
        expected = ("nothing", 0) if row["method"] == "layer_ablation" else ("training_rows", n_sets)
        assert (row["fitted_on"], row["n_fits"]) == expected


def test_drops_are_differences_of_scores(tables):
    scores = tables["causal/causal_stripping_scores"]
    for row in tables["causal/causal_stripping_deltas"].iter_rows(named=True):
        own = scores.filter(method=row["method"], stripped=row["stripped"], target=row["target"])
        by_state = dict(zip(own["state"], own["score"], strict=True))
        assert row["drop"] == pytest.approx(by_state["real"] - by_state["stripped"])
        assert row["matching"] == (row["stripped"] == row["target"])


def test_specificity_follows_its_definition(tables):
    deltas = tables["causal/causal_stripping_deltas"]
    mismatch = tables["causal/causal_mismatch_controls"]
    for row in tables["causal/mechanism_specificity_summary"].iter_rows(named=True):
        own = deltas.filter(method=row["method"], stripped=row["stripped"])
        others = own.filter(~pl.col("matching"))
        assert row["margin"] == pytest.approx(own.filter("matching")["drop"][0] - others["drop"].max())
        rivals = mismatch.filter(method=row["method"], stripped=row["stripped"])
        bars = [rivals.filter(kind="nonmatching_mechanism")["drop"].max()]
        if row["method"] != "layer_ablation":
            bars.append(rivals.filter(kind="random_direction")["drop"].mean())
        assert row["mismatch_drop"] == pytest.approx(max(bars))


def test_planted_mechanism_is_selective_and_others_are_not(tables):
    rows = tables["causal/mechanism_specificity_summary"]
    planted = rows.filter(stripped="surprisal", method="feature_residualization").row(0, named=True)
    assert planted["matching_drop"] > 0.1
    assert planted["margin"] > 0
    assert planted["mismatch_margin"] > 0
    other = rows.filter(stripped="semantic_transition", method="feature_residualization")
    assert other["matching_drop"][0] < planted["matching_drop"] / 2


def test_localiser_finds_the_planted_units(bench, tables):
    gains = {
        unit
        for row in tables["causal/causal_targets"].filter(target="surprisal").iter_rows(named=True)
        for unit in row["units"]
    }
    responses = bench.prepared.reference
    correlations = [
        abs(np.corrcoef(responses[:, u], bench.prepared.mechanisms["surprisal"])[0, 1])
        for u in range(responses.shape[1])
    ]
    strongest = {bench.prepared.grid.units.ids[i] for i in np.argsort(correlations)[-3:]}
    assert gains <= strongest


def test_localiser_and_strips_never_see_the_held_out_block(bench):
    """Nonsense in a held-out block moves neither its targets nor any strip's training rows."""
    prepared, grid = bench.prepared, ridge_grid(bench.config.readout)
    features = bench.model().load(2)
    real = nested_ridge(features, prepared.grid.responses, prepared.folds, grid)
    before = localise(prepared, real, 0.2)
    from dataclasses import replace

    for block in (0, 2):
        rows = prepared.folds.rows(block)
        spoiled = prepared.grid.responses.copy()
        spoiled[:, rows] = 100 * np.random.default_rng(1).standard_normal(spoiled[:, rows].shape)
        other = replace(prepared, grid=replace(prepared.grid, responses=spoiled))
        refit = nested_ridge(features, spoiled, prepared.folds, grid)
        after = localise(other, refit, 0.2)
        for name in before.units:
            np.testing.assert_array_equal(after.units[name][block], before.units[name][block])

    train = prepared.folds.train_rows(1)
    held = prepared.folds.rows(1)
    spoiled_features, mechanism = features.copy(), prepared.mechanisms["surprisal"].copy()
    spoiled_features[held] += 50
    mechanism[held] -= 50
    model = bench.model()
    for entry in STRIPPINGS.entries():
        clean = StripInputs(features, 2, model.offered, model.load)
        dirty = StripInputs(spoiled_features, 2, model.offered, model.load)
        a = entry.plugin().strip(clean, prepared.mechanisms["surprisal"], train)
        b = entry.plugin().strip(dirty, mechanism, train)
        np.testing.assert_allclose(a[train], b[train], atol=1e-10, err_msg=entry.name)


def inputs(features, **other):
    offered = {(2, "full"): 1} | dict.fromkeys(other, 1)
    return StripInputs(features, 2, offered, lambda layer, context, draw: other[layer, context])


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    m = rng.standard_normal(80)
    z = rng.standard_normal((80, 6))
    z[:, 1] += 2 * m
    z[:, 4] -= m
    return z, m, np.arange(60)


def test_residualization_is_a_regression_per_column(data):
    z, m, train = data
    out = STRIPPINGS.build("feature_residualization").strip(inputs(z), m, train)
    for j in range(6):
        slope, intercept = np.polyfit(m[train], z[train, j], 1)
        assert intercept is not None
        np.testing.assert_allclose(out[:, j], z[:, j] - slope * (m - m[train].mean()), atol=1e-10)
    assert abs(np.corrcoef(out[train, 1], m[train])[0, 1]) < 1e-10


@pytest.mark.parametrize("name", ["feature_residualization", "mechanism_projection_removal"])
def test_a_column_that_is_the_mechanism_is_gone_for_good(data, name):
    """Rounding noise of sd 1e-16 that follows the mechanism would be standardised back to full size."""
    z, m, train = data
    copies = np.column_stack([3.7 * m + 1.3, -0.2 * m])
    out = STRIPPINGS.build(name).strip(inputs(copies), m, train)
    if name == "feature_residualization":
        assert (out[train] == out[train][0]).all()
    assert np.linalg.matrix_rank(out[train] - out[train].mean(axis=0), tol=1e-8) == 0
    mixed = STRIPPINGS.build(name).strip(inputs(np.column_stack([z, m])), m, train)
    assert not np.array_equal(mixed[:, 0], np.full(80, mixed[0, 0]))


def test_projection_removes_the_direction_on_training_rows(data):
    z, m, train = data
    out = STRIPPINGS.build("mechanism_projection_removal").strip(inputs(z), m, train)
    centred = z[train] - z[train].mean(axis=0)
    direction = centred.T @ (m[train] - m[train].mean())
    direction /= np.linalg.norm(direction)
    np.testing.assert_allclose((out[train] - out[train].mean(axis=0)) @ direction, 0, atol=1e-10)
    assert np.linalg.matrix_rank(out[train] - out[train].mean(axis=0)) == 5


def test_zeroing_silences_the_most_correlated_columns(data):
    z, m, train = data
    out = STRIPPINGS.build("feature_zeroing", {"fraction": 0.34}).strip(inputs(z), m, train)
    changed = [j for j in range(6) if not np.array_equal(out[:, j], z[:, j])]
    assert changed == [1, 4]
    np.testing.assert_allclose(out[:, 1], z[train, 1].mean())


def test_layer_ablation_takes_the_previous_layer(data):
    z, m, train = data
    previous = z + 1
    method = STRIPPINGS.build("layer_ablation")
    given = StripInputs(z, 2, {(1, "full"): 1}, lambda *_: previous)
    np.testing.assert_array_equal(method.strip(given, m, train), previous)
    first = StripInputs(z, 0, {}, lambda *_: previous)
    np.testing.assert_allclose(method.strip(first, m, train), np.tile(z[train].mean(axis=0), (80, 1)))
    missing = method.unavailable(StripInputs(z, 2, {}, lambda *_: previous))
    assert missing is not None
    assert missing.reason is Reason.NO_PREVIOUS_LAYER_FEATURES


def test_context_swap_replaces_engaged_events_only(data):
    z, m, train = data
    other = np.full_like(z, 9.0)
    given = StripInputs(z, 2, {(2, "sentence_reset"): 1}, lambda *_: other)
    out = STRIPPINGS.build("context_reset").strip(given, m, train)
    engaged = m > np.quantile(m[train], 2 / 3)
    np.testing.assert_array_equal(out[engaged], other[engaged])
    np.testing.assert_array_equal(out[~engaged], z[~engaged])
    flag = (m > 1).astype(float)
    out = STRIPPINGS.build("context_reset").strip(given, flag, train)
    np.testing.assert_array_equal((out == 9.0).all(axis=1), flag == 1)
    # A mismatched strip swaps as many events as the mechanism's own.
    instead = STRIPPINGS.build("context_reset").strip_instead(given, z[:, 0], flag, train)
    swapped = (instead == 9.0).all(axis=1)[train].mean()
    assert swapped == pytest.approx(flag[train].mean(), abs=0.02)


@pytest.mark.parametrize(
    "name",
    ["feature_residualization", "mechanism_projection_removal", "feature_zeroing", "context_reset"],
)
def test_a_mechanism_that_does_not_vary_has_no_direction(data, name):
    z, _, train = data
    given = StripInputs(z, 2, {(2, "sentence_reset"): 1}, lambda *_: z)
    with pytest.raises(DegenerateStrip):
        STRIPPINGS.build(name).strip(given, np.ones(80), train)


def test_every_strip_keeps_the_shape(bench):
    model = bench.model()
    given = StripInputs(model.load(2), 2, model.offered, model.load)
    train = bench.prepared.folds.train_rows(0)
    for entry in STRIPPINGS.entries():
        out = entry.plugin().strip(given, bench.prepared.mechanisms["surprisal"], train)
        assert out.shape == given.features.shape


def test_random_direction_accounts_for_the_mechanisms_variance(data):
    z, m, train = data

    def share(scalar):
        centred = z[train] - z[train].mean(axis=0)
        s = scalar[train] - scalar[train].mean()
        return ((centred.T @ s) ** 2).sum() / (s @ s)

    weak = m + 0.5 * np.random.default_rng(9).standard_normal(80)
    for seed in range(50):
        scalar = RandomDirection.draw(80, 1, np.random.default_rng(seed))[0].scalar(z, weak, train)
        assert share(scalar) == pytest.approx(share(weak), rel=1e-6) or share(scalar) < share(weak)
    exact = [
        share(RandomDirection.draw(80, 1, np.random.default_rng(seed))[0].scalar(z, weak, train)) for seed in range(50)
    ]
    assert np.isclose(exact, share(weak), rtol=1e-6).mean() > 0.3


def test_where_noise_accounts_for_more_the_scalar_is_noise(data):
    z, _, train = data
    unrelated = np.random.default_rng(1).standard_normal(80)
    centred = z[train] - z[train].mean(axis=0)
    design = np.column_stack([np.ones(len(train)), centred])
    unrelated[train] -= design @ np.linalg.lstsq(design, unrelated[train], rcond=None)[0]
    (direction,) = RandomDirection.draw(80, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(direction.scalar(z, unrelated, train), direction.noise)


def test_missing_mechanisms_are_rows_with_a_reason(bench):
    from dataclasses import replace

    kept = {k: v for k, v in bench.prepared.mechanisms.items() if k != "context_update"}
    prepared = replace(bench.prepared, mechanisms=kept)
    tables = level3(bench.config, prepared, bench.model())
    assert tables["causal/causal_stripping_deltas"].height == 216
    gone = tables["causal/causal_stripping_deltas"].filter(
        (pl.col("stripped") == "context_update") | (pl.col("target") == "context_update")
    )
    assert set(gone["reason"]) == {Reason.MECHANISM_NOT_OFFERED}
    assert gone["drop"].is_null().all()


def test_layer_ablation_survives_a_missing_first_mechanism(bench):
    from dataclasses import replace

    kept = {k: v for k, v in bench.prepared.mechanisms.items() if k != "surprisal"}
    tables = level3(bench.config, replace(bench.prepared, mechanisms=kept), bench.model())
    rows = tables["causal/causal_stripping_features"].filter(method="layer_ablation")
    reasons = dict(zip(rows["stripped"], rows["reason"], strict=True))
    assert reasons.pop("surprisal") == Reason.MECHANISM_NOT_OFFERED
    assert set(reasons.values()) == {Reason.OK}


def test_features_that_do_not_vary_are_rows_with_a_reason(bench):
    class Dead:
        model = "integrated"
        offered = bench.model().offered

        def load(self, layer, context="full", draw=0):
            return np.full((bench.prepared.n_events, 5), 3.0)

    tables = level3(bench.config, bench.prepared, Dead())
    deltas = tables["causal/causal_stripping_deltas"]
    assert deltas.height == 216
    assert deltas["drop"].is_null().all()
    assert Reason.OK not in set(deltas["reason"])


def test_a_mechanism_that_is_constant_in_a_fold_has_no_target(bench):
    from dataclasses import replace

    rare = np.zeros(bench.prepared.n_events)
    rare[3:7] = 1.0
    mechanisms = {**bench.prepared.mechanisms, "discourse_boundary": rare}
    prepared = replace(bench.prepared, mechanisms=mechanisms)
    tables = level3(bench.config, prepared, bench.model())
    assert "discourse_boundary" not in set(tables["causal/causal_targets"]["target"])
    rows = tables["causal/causal_stripping_deltas"].filter(target="discourse_boundary")
    assert rows["drop"].is_null().all()
    assert Reason.MECHANISM_CONSTANT in set(rows["reason"])
    assert set(tables["causal/mechanism_specificity_summary"]["n_targets"]) == {5}


def test_a_mechanism_that_another_one_accounts_for_has_no_target(bench):
    from dataclasses import replace

    copy = 2 * bench.prepared.mechanisms["surprisal"] + 1
    prepared = replace(bench.prepared, mechanisms={**bench.prepared.mechanisms, "context_update": copy})
    tables = level3(bench.config, prepared, bench.model())
    rows = tables["causal/causal_stripping_deltas"].filter(target="context_update")
    assert set(rows["reason"]) == {Reason.COLLINEAR_MECHANISMS}


def test_dissociations_are_medians_over_methods(tables):
    deltas = tables["causal/causal_stripping_deltas"]
    pairs = tables["causal/double_dissociation_tests"]
    names = sorted(deltas["stripped"].unique())
    assert {frozenset(p) for p in zip(pairs["mechanism_a"], pairs["mechanism_b"], strict=True)} == {
        frozenset(p) for p in combinations(names, 2)
    }
    row = pairs.row(0, named=True)
    expected = deltas.filter(stripped=row["mechanism_a"], target=row["mechanism_b"])["drop"].median()
    assert row["drop_ab"] == pytest.approx(expected)
