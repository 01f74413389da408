from __future__ import annotations

from statistics import fmean, median

import polars as pl
import pytest
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of
from level2_rows import (
    ALIGNMENTS,
    DELTAS,
    LEVELS,
    PROFILES,
    SCORES,
    SUMMARIES,
    similarity_tables,
)

from lpact.analyses.lpact.figures.relational_profiles import (
    MAX_ROWS,
    layers_of,
    make,
    nearest_rivals,
    similarities,
)
from lpact.report.figure import Missing

SUMMARY = ("alignment", "profile")


def summary_of(row: dict) -> tuple[str, str]:
    return row["alignment"], row["profile"]


def over_runs(scores: pl.DataFrame, condition: str, *, ahead: bool) -> dict[tuple[str, str], float]:
    """Mean over subject-runs of means over units, of a condition or of what the real one is ahead of it."""
    real = {
        (*summary_of(r), r["subject"], r["unit"]): r["similarity"]
        for r in scores.filter(condition="real").iter_rows(named=True)
    }
    runs: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in scores.filter(condition=condition).drop_nulls("similarity").iter_rows(named=True):
        own = real[*summary_of(row), row["subject"], row["unit"]] if ahead else 0.0
        value = own - row["similarity"] if ahead else row["similarity"]
        runs.setdefault(summary_of(row), {}).setdefault(row["subject"], []).append(value)
    return {key: fmean(fmean(units) for units in subjects.values()) for key, subjects in runs.items()}


def test_similarities_are_means_over_units_then_over_subject_runs():
    tables = similarity_tables()
    # One rival could not be computed for one unit: it is compared with the real similarity of the others alone.
    gone = (pl.col("condition") == "circular_shift") & (pl.col("subject") == "00") & (pl.col("unit") == "u1")
    tables[SCORES] = tables[SCORES].with_columns(pl.when(gone).then(None).otherwise("similarity").alias("similarity"))
    rows = similarities(material(tables))[0]
    assert rows.height == len(LEVELS) * len(ALIGNMENTS) * len(PROFILES)
    for condition in LEVELS:
        found = rows.filter(condition=condition)
        for column, ahead in (("similarity", False), ("advantage", True)):
            expected = over_runs(tables[SCORES], condition, ahead=ahead)
            assert {summary_of(r): r[column] for r in found.iter_rows(named=True)} == pytest.approx(expected)
    assert rows["n_subject_runs"].unique().to_list() == [3]
    plain = over_runs(tables[SCORES], "real", ahead=False)["linear", "pearson"]
    other = over_runs(tables[SCORES], "circular_shift", ahead=False)["linear", "pearson"]
    paired = rows.filter(condition="circular_shift", alignment="linear", profile="pearson")
    assert paired["advantage"].item() != pytest.approx(plain - other)


def test_the_nearest_rival_is_the_one_the_real_features_are_least_ahead_of():
    tables = similarity_tables([("d", "m", 1), ("d", "m", 2), ("e", "m", 1)])
    own = material(tables)
    nearest = nearest_rivals(similarities(own)[0])
    assert nearest.height == 3 * 4
    assert set(nearest["condition"]) == {"token_order_shuffle"}
    layers = layers_of(own, nearest)
    assert layers["rival"].to_list() == ["token_order_shuffle"] * 3
    assert layers["n_ahead"].to_list() == [4, 4, 4]
    first = nearest.filter(dataset="d", layer=1)["advantage"].to_list()
    assert layers["typical"][0] == pytest.approx(median(first))


def test_unit_rows_of_another_order_are_left_out_and_counted():
    tables = similarity_tables()
    wrong = pl.col("unit") == "u0"
    tables[DELTAS] = tables[DELTAS].with_columns(
        pl.when(wrong).then(pl.lit("other")).otherwise("brain_unit_order_hash").alias("brain_unit_order_hash")
    )
    rows = similarities(material(tables))[0]
    expected = over_runs(tables[SCORES].filter(~wrong), "real", ahead=False)
    found = {summary_of(r): r["similarity"] for r in rows.filter(condition="real").iter_rows(named=True)}
    assert found == pytest.approx(expected)
    assert "12 unit rows left out" in make(material(tables)).caption
    assert "left out" not in make(material(similarity_tables())).caption


def test_the_picture_shows_advantages():
    tables = similarity_tables()
    made = make(material(tables))
    root = checked_svg(made)
    found = marks(root)
    cells = [m for m in found if "real − nearest rival" in m.text]
    expected = over_runs(tables[SCORES], "token_order_shuffle", ahead=True)
    assert sorted(m.value for m in cells) == pytest.approx(sorted(expected.values()))
    assert all("token_order_shuffle" in m.text for m in cells)
    assert "token_order_shuffle (4 of 4)" in texts(root)
    assert "In 1 of 1 layer the real pattern is above every rival" in made.summary


def test_a_layer_without_numbers_is_shown_with_its_reason():
    tables = similarity_tables([("d", "m", 1), ("d", "m", 2)])
    tables[SCORES] = tables[SCORES].filter(pl.col("layer") == 1)
    tables[SUMMARIES] = tables[SUMMARIES].with_columns(
        reason=pl.when(pl.col("layer") == 2).then(pl.lit("too_few_units")).otherwise("reason")
    )
    root = checked_svg(make(material(tables)))
    lost = [m for m in marks(root) if "not computed (too_few_units)" in m.text]
    assert [m.layer for m in lost] == ["2"] * 4
    assert len([m for m in marks(root) if "real − nearest rival" in m.text]) == 4
    assert "not computed" in texts(root)


def test_of_many_layers_the_best_are_drawn_and_the_rest_counted():
    layers = [(f"dataset {d}", "a model with a name that is far too long", i) for d in range(6) for i in range(10)]
    made = make(material(similarity_tables(layers, n_runs=1, n_units=2)))
    root = checked_svg(made)
    cells = [m for m in marks(root) if "real − nearest rival" in m.text]
    kept = {(m.dataset, m.layer) for m in cells}
    assert len(kept) == MAX_ROWS
    assert f"Drawn are {len(kept)} of 60 layers" in made.caption
    assert width_of(root) < 1000


def test_names_from_data_stay_text():
    tables = similarity_tables([(EVIL, EVIL, 1)], n_runs=1)
    tables[SCORES] = tables[SCORES].with_columns(pl.col("condition").replace({"token_order_shuffle": EVIL}))
    root = checked_svg(make(material(tables)))
    assert not [e for e in root.iter() if e.tag.endswith(("script", "img"))]
    assert any(f"({EVIL}" in m.text for m in marks(root))


def test_without_numbers_the_figure_says_why():
    absent = make(material({}))
    assert isinstance(absent, Missing)
    assert SCORES in absent.reason
    tables = similarity_tables()
    tables[SCORES] = tables[SCORES].head(0)
    tables[SUMMARIES] = tables[SUMMARIES].with_columns(reason=pl.lit("too_few_units"))
    empty = make(material(tables))
    assert isinstance(empty, Missing)
    assert "too_few_units" in empty.reason
