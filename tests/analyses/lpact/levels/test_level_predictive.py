from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import false_discovery_control

from lpact.analyses.lpact.best_control import best_control
from lpact.analyses.lpact.levels import predictive
from lpact.analyses.lpact.levels.readouts import LayerInputs, conditions, fit_layer, fit_nuisance
from lpact.codes import Reason
from lpact.inputs.prepare import ridge_grid
from lpact.math.ridge import nested_ridge
from lpact.measures import LinearPredictivity
from lpact.splits import contiguous


def level1(config, prepared, model, layer=2):
    inputs = LayerInputs(config, prepared, model, layer, confirmatory=True)
    return predictive.measure_predictive(inputs, fit_layer(inputs, fit_nuisance(config, prepared)))


@pytest.fixture(scope="module")
def tables(bench):
    return level1(bench.config, bench.prepared, bench.model())


def test_scores_summarise_the_readout_of_every_condition(bench, tables):
    scores = tables["predictive/predictive_scores"]
    units = tables["predictive/predictive_unit_scores"]
    grid = ridge_grid(bench.config.readout)
    seen = set()
    for condition in conditions(bench.layer()):
        if condition.name in seen:
            continue
        seen.add(condition.name)
        responses = bench.prepared.grid.responses
        features = condition.features
        if condition.on_responses:
            # Row a of the control is row order[a] of the features: the same pairs, in the features' order.
            features, responses = condition.source, responses[:, np.argsort(condition.order)]
        fit = nested_ridge(features, responses, bench.prepared.folds, grid)
        row = scores.filter(condition=condition.name, draw=condition.draw, metric="spearman").row(0, named=True)
        expected = fit.scores("spearman")
        assert row["score_median"] == pytest.approx(np.median(expected), abs=1e-12)
        assert row["score_mean"] == pytest.approx(expected.mean(), abs=1e-12)
        stored = units.filter(condition=condition.name, draw=condition.draw, metric="spearman")
        np.testing.assert_allclose(stored["scores"][0].to_numpy(), expected, atol=1e-12)
    assert {"real", "circular_shift", "within_story_block_shuffle"} <= seen


@pytest.mark.parametrize("metric", ["pearson", "spearman", "r2"])
def test_the_score_is_the_measure_of_the_core_to_the_last_bit(make_bench, metric):
    bench = make_bench(grid={"lags_ms": [100.0]})
    readout, grid = bench.config.readout, bench.prepared.grid
    tables = level1(bench.config, bench.prepared, bench.model())
    units = tables["predictive/predictive_unit_scores"].filter(condition="real", metric=metric)
    measure = LinearPredictivity(grid=ridge_grid(readout), metric=metric, gap=readout.gap_events)
    split = contiguous(grid.responses.shape[1], readout.folds, gap=readout.gap_events)
    core = measure.cross_validate(bench.layer().features, grid.responses[0], split)
    np.testing.assert_array_equal(units["scores"][0].to_numpy(), core.value)


def test_only_orders_that_ask_the_same_of_a_readout_move_the_responses(bench):
    """A shuffle over long distances mixes early and late responses in every block, which is easier under drift."""
    found = {c.name: c.on_responses for c in conditions(bench.layer()) if c.order is not None}
    assert found == {
        "circular_shift": True,
        "token_order_shuffle": True,
        "within_story_block_shuffle": False,
    }


def test_shuffling_inside_stories_is_the_same_on_either_side(make_bench):
    """With whole stories held out, reordered responses meet the same rows as reordered features."""
    bench = make_bench(readout={"split": "stories", "gap_events": 0}, options={"n_stories": 4})
    grid, folds = ridge_grid(bench.config.readout), bench.prepared.folds
    responses = bench.prepared.grid.responses
    checked = 0
    for condition in conditions(bench.layer()):
        if condition.order is None or condition.name == "circular_shift" or condition.draw:
            continue
        assert condition.on_responses
        features = nested_ridge(condition.features, responses, folds, grid)
        reindexed = nested_ridge(condition.source, responses[:, np.argsort(condition.order)], folds, grid)
        np.testing.assert_allclose(reindexed.scores("pearson"), features.scores("pearson"), atol=1e-10)
        checked += 1
    assert checked


def test_contrasts_follow_their_definitions(tables):
    scores = tables["predictive/predictive_scores"]
    nulls = tables["predictive/predictive_control_nulls"]
    for row in tables["predictive/predictive_control_deltas"].iter_rows(named=True):
        median = {
            (r["condition"], r["draw"]): r["score_median"]
            for r in scores.filter(metric=row["metric"]).iter_rows(named=True)
        }
        real = median["real", 0]
        assert row["delta_nuisance"] == pytest.approx(real - median["nuisance", 0])
        assert row["delta_incremental"] == pytest.approx(median["nuisance_plus_model", 0] - median["nuisance", 0])
        own = nulls.filter(metric=row["metric"])
        for null in own.iter_rows(named=True):
            draws = [v for (c, _), v in median.items() if c == null["control"]]
            assert null["control_score"] == pytest.approx(np.mean(draws))
            if null["random"]:
                beaten = sum(d >= real for d in draws)
                assert null["p_value"] == pytest.approx((1 + beaten) / (1 + len(draws)))
            else:
                assert null["p_value"] is None
        counted = own.filter("counted").sort("control_score", descending=True)
        assert row["best_control"] == counted["control"][0]
        assert row["delta_control"] == pytest.approx(real - counted["control_score"][0])
        assert row["n_controls"] == 8


def test_untrained_and_static_are_shown_but_not_counted(tables):
    nulls = tables["predictive/predictive_control_nulls"].filter(metric="pearson")
    shown = dict(zip(nulls["control"], nulls["counted"], strict=True))
    assert shown.pop("untrained_model_fresh") is False
    assert shown.pop("static_embedding") is False
    assert len(shown) == 8
    assert all(shown.values())


def test_planted_model_beats_everything(tables):
    row = tables["predictive/predictive_control_deltas"].filter(metric="pearson").row(0, named=True)
    assert row["delta_nuisance"] > 0.2
    assert row["delta_control"] > 0.2


def test_false_discovery_rate_is_over_the_study_and_per_metric():
    rng = np.random.default_rng(0)
    p = rng.random(40)
    p[3] = np.nan
    nulls = pl.DataFrame(
        {
            "metric": ["pearson", "r2"] * 20,
            "p_value": pl.Series(p).fill_nan(None),
            "q_value": pl.Series([None] * 40, dtype=pl.Float64),
        }
    )
    corrected = predictive.with_q_values(nulls)
    for metric in ("pearson", "r2"):
        rows = corrected.filter(metric=metric)
        known = rows.drop_nulls("p_value")
        expected = false_discovery_control(known["p_value"].to_numpy())
        np.testing.assert_allclose(known["q_value"].to_numpy(), expected)
        assert rows.filter(pl.col("p_value").is_null())["q_value"].is_null().all()


def test_no_nuisance_is_no_baseline(make_bench):
    """Features of zero columns are not a baseline that can be beaten."""
    bench = make_bench(nuisance={"include": ["log_frequency"]})
    from dataclasses import replace

    prepared = replace(bench.prepared, nuisance=np.empty((bench.prepared.n_events, 0)))
    tables = level1(bench.config, prepared, bench.model())
    deltas = tables["predictive/predictive_control_deltas"]
    assert deltas["delta_nuisance"].is_null().all()
    assert set(deltas["reason"]) == {Reason.NUISANCE_NOT_OFFERED}
    scores = tables["predictive/predictive_scores"].filter(condition="nuisance")
    assert set(scores["reason"]) == {Reason.NUISANCE_NOT_OFFERED}


def test_best_control_rules():
    scores = np.array([[1.0, np.nan, 5.0], [4.0, np.nan, np.nan], [2.0, np.nan, 3.0], [3.0, np.nan, 5.0]])
    index, best = best_control(scores, "max")
    assert index.tolist() == [1, -1, 0]
    np.testing.assert_array_equal(best, [4.0, np.nan, 5.0])
    _, best = best_control(scores, "mean_top_3")
    np.testing.assert_allclose(best, [3.0, np.nan, 13 / 3])
    index, best = best_control(np.empty((0, 2)), "max")
    assert index.tolist() == [-1, -1]
    assert np.isnan(best).all()


def test_units_can_be_permuted(make_bench):
    """Permuting units permutes unit scores and changes no summary."""
    bench = make_bench()
    order = np.random.default_rng(0).permutation(10)
    grid = ridge_grid(bench.config.readout)
    features = bench.model().load(2)
    responses, folds = bench.prepared.grid.responses, bench.prepared.folds
    before = nested_ridge(features, responses, folds, grid).scores("pearson")
    after = nested_ridge(features, responses[:, :, order], folds, grid).scores("pearson")
    np.testing.assert_allclose(after, before[order], atol=1e-12)


def test_a_feature_that_leaks_the_test_block_gains_nothing(bench):
    """Columns that hold the held-out responses, block by block, and nothing elsewhere.

    A readout that fits, scales or chooses on any held-out row would profit from them; the twin below does.
    """
    responses, folds = bench.prepared.grid.responses, bench.prepared.folds
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((bench.prepared.n_events, 3))
    leaks = []
    for block in range(folds.n_blocks):
        column = np.zeros((bench.prepared.n_events, responses.shape[2]))
        column[folds.rows(block)] = responses[1, folds.rows(block)]
        leaks.append(column)
    leaky = np.hstack([noise, *leaks])
    grid = ridge_grid(bench.config.readout)
    clean = nested_ridge(noise, responses[[1]], folds, grid).scores("pearson")
    score = nested_ridge(leaky, responses[[1]], folds, grid).scores("pearson")
    assert np.median(score) < max(np.median(clean), 0.0) + 0.1

    from sklearn.linear_model import Ridge

    y = responses[1]
    spoiled = Ridge(alpha=1.0).fit(leaky, y).predict(leaky)
    leaked = [np.corrcoef(spoiled[:, t], y[:, t])[0, 1] for t in range(y.shape[1])]
    assert np.median(leaked) > 0.9
