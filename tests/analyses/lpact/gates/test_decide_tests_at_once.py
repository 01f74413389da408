"""Numbers read for all layers at once equal those of one layer, claim or test alone."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from synthetic_tables import (
    BLOCK_DROPS,
    BLOCKS,
    DECISIONS,
    GATES,
    NULLS,
    OUTCOME,
    RELATIONAL_NULLS,
    SCORES,
    passing_tables,
    stack,
)

from lpact.analyses.lpact.gates import decide
from lpact.analyses.lpact.gates.calibrated.frames import (
    cells,
    read_level1,
    read_null_draws,
    typical,
)
from lpact.analyses.lpact.gates.calibrated.tests import (
    NO_DROP,
    blocks_by_run,
    contrasts_with,
    pool,
    read_drops,
    rival_targets,
)
from lpact.analyses.lpact.gates.keys import LAYER_KEY


@pytest.fixture(scope="module")
def tables():
    """Three layers of two datasets with noise in every draw and block, and holes."""
    rng = np.random.default_rng(3)
    whole = stack(
        passing_tables(dataset="a", layer=2),
        passing_tables(dataset="a", layer=4),
        passing_tables(dataset="b", runs=("1", "2")),
    )

    def noisy(cell):
        noise = rng.normal(0, 0.05, len(cell))
        return [None if hole < 0.1 else v + n for v, n, hole in zip(cell, noise, rng.random(len(cell)), strict=True)]

    for name, column in ((BLOCKS, "scores"), (RELATIONAL_NULLS, "draws"), (BLOCK_DROPS, "drops")):
        values = [noisy(cell) for cell in whole[name][column].to_list()]
        whole[name] = whole[name].with_columns(pl.Series(column, values, pl.List(pl.Float64)))
    kept = pl.Series(rng.random(whole[BLOCK_DROPS].height) > 0.1)
    whole[BLOCK_DROPS] = whole[BLOCK_DROPS].filter(kept)
    return whole


def layers(tables):
    return tables[SCORES].select(LAYER_KEY).unique().sort(LAYER_KEY).rows()


def of(tables, name, layer):
    return tables[name].filter(**dict(zip(LAYER_KEY, layer, strict=True)))


def test_cells_are_the_lists():
    lists = [[1.0, None], [], [3.0]]
    found = cells(pl.Series("x", lists, pl.List(pl.Float64)))
    assert [len(cell) for cell in found] == [2, 0, 1]
    assert np.array_equal(np.concatenate(found), [1.0, np.nan, 3.0], equal_nan=True)
    assert cells(pl.Series("x", [], pl.List(pl.Float64))) == []


@pytest.mark.parametrize("n_rows", [1, 2, 5, 6])
def test_medians_of_what_is_finite(n_rows):
    table = np.random.default_rng(n_rows).normal(size=(n_rows, 30))
    table[np.random.default_rng(1).random(table.shape) < 0.4] = np.nan
    table[:, 0], table[0, 1] = np.nan, np.inf
    expected = [np.median(column[np.isfinite(column)]) if np.isfinite(column).any() else np.nan for column in table.T]
    assert np.array_equal(typical(list(table)), expected, equal_nan=True)


def test_level_1_of_a_layer_is_the_same_alone(tables):
    together = read_level1(tables[SCORES], tables[BLOCKS], tables[NULLS], "pearson")
    assert sorted(together) == layers(tables)
    for layer, level in together.items():
        own = (of(tables, n, layer) for n in (SCORES, BLOCKS, NULLS))
        alone = read_level1(*own, "pearson")[layer]
        assert level.real == alone.real
        assert level.stimulus == alone.stimulus
        for mine, other in ((level.draws, alone.draws), (level.blocks, alone.blocks)):
            assert mine.keys() == other.keys()
            for name in mine:
                assert mine[name].keys() == other[name].keys()
                for run, values in mine[name].items():
                    assert np.array_equal(values, other[name][run], equal_nan=True)
        row = of(tables, SCORES, layer).filter(condition="circular_shift", run="1", draw=7)
        assert level.draws["circular_shift"]["01", "a", "1"][7] == row["score_median"].item()


def test_relational_draws_are_medians_over_summaries_then_means_over_runs(tables):
    for layer, tests in read_null_draws(tables[RELATIONAL_NULLS]).items():
        rows = of(tables, RELATIONAL_NULLS, layer)
        assert set(tests) == set(rows.select("test", "against").unique().rows())
        for (test, against), runs in tests.items():
            part = rows.filter(test=test, against=against)
            for run, held in zip(part["run"].unique().sort(), runs, strict=True):
                drawn = part.filter(run=run)["draws"].to_list()
                columns = [[v for v in column if v is not None] for column in zip(*drawn, strict=True)]
                expected = [np.median(column) if column else np.nan for column in columns]
                assert np.array_equal(held.draws, expected, equal_nan=True)
            pooled = np.mean([held.draws for held in runs], axis=0)
            assert np.array_equal(pool(part).draws, pooled, equal_nan=True)


def test_contrasts_of_a_claim_are_the_same_alone(tables):
    compared = 0
    for layer, drops in read_drops(tables[BLOCK_DROPS]).items():
        for (beside, mechanism), by_run in drops.items():
            claim = (*layer, mechanism)
            alone = blocks_by_run(claim, of(tables, BLOCK_DROPS, layer), beside)
            assert alone.keys() == by_run.keys()
            rivals = rival_targets(claim, by_run)
            assert rivals[:1] == (NO_DROP,)
            for rival in rivals:
                found = contrasts_with(claim, rival, by_run)
                expected = contrasts_with(claim, rival, alone)
                assert found.keys() == expected.keys()
                for run, values in found.items():
                    assert np.array_equal(values, expected[run], equal_nan=True)
                    compared += values.size
    assert compared > 100


def test_drops_of_other_lengths_are_compared_over_the_blocks_of_all(tables):
    first = pl.col("method") == "feature_zeroing"
    short = pl.when(first).then(pl.col("drops").list.head(2)).otherwise("drops")
    drops = read_drops(tables[BLOCK_DROPS].with_columns(drops=short))[layers(tables)[0]]
    by_run = drops["nothing", "surprisal"]
    found = contrasts_with((*layers(tables)[0], "surprisal"), NO_DROP, by_run)
    assert {len(v) for v in found.values()} == {2}


def test_layers_are_decided_alike_in_any_company(tables):
    """Every gate of a layer by itself is that of the layer in the study."""
    whole = decide(tables, gates=GATES, primary_metric="pearson")
    for dataset in ("a", "b"):
        mine = {
            name: t.filter(pl.col("dataset") == dataset) if "dataset" in t.columns else t for name, t in tables.items()
        }
        alone = decide(mine, gates=GATES, primary_metric="pearson")
        corrected = ["q_value", "integrated", "label", "first_failed_gate", "beaten_by", "reason"]
        columns = [c for c in whole[DECISIONS].columns if c not in corrected]
        expected = whole[DECISIONS].filter(dataset=dataset).select(columns)
        assert alone[DECISIONS].select(columns).equals(expected)
        assert alone[OUTCOME].height == 2
