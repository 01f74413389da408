from __future__ import annotations

from statistics import median

import polars as pl
import pytest
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of
from level3_rows import DECISIONS, DELTAS, MECHANISMS, SPECIFICITY, decisions, stripping_tables

from lpact.analyses.lpact.figures.stripping_matrix import MAX_PANELS, make, rows_of
from lpact.analyses.lpact.gates.summaries import summarise_mechanisms
from lpact.report.figure import Missing

LAYER = ("d", "m", 1)
INK = "#1a1a1a"


def drop_of(rows: pl.DataFrame, stripped: str, target: str) -> float | None:
    return rows.filter(stripped=stripped, target=target)["drop"].item()


def unusable(tables: dict[str, pl.DataFrame], where: pl.Expr, **changes) -> dict[str, pl.DataFrame]:
    """The tables with other numbers in some specificity rows."""
    table = tables[SPECIFICITY]
    changed = table.with_columns(
        pl.when(where).then(pl.lit(value)).otherwise(pl.col(name)).alias(name) for name, value in changes.items()
    )
    return {**tables, SPECIFICITY: changed}


def test_a_cell_is_the_median_over_methods_of_medians_over_subject_runs():
    tables = stripping_tables()
    rows = rows_of(material(tables))
    assert rows.height == len(MECHANISMS) ** 2
    by_method: dict[tuple, dict[str, list[float]]] = {}
    for row in tables[DELTAS].iter_rows(named=True):
        cell = by_method.setdefault((row["stripped"], row["target"]), {})
        cell.setdefault(row["method"], []).append(row["drop"])
    for (stripped, target), methods in by_method.items():
        expected = median(median(drops) for drops in methods.values())
        assert drop_of(rows, stripped, target) == pytest.approx(expected, rel=1e-12)
    assert rows["n_methods"].unique().to_list() == [2]
    assert rows["n_subject_runs"].unique().to_list() == [3]


@pytest.mark.parametrize("incomplete", [False, True])
def test_matching_drops_are_those_of_gate_m(incomplete):
    tables = stripping_tables()
    if incomplete:  # a method of one subject-run cannot be used by the gate, and then not here either
        where = (pl.col("subject") == "01") & (pl.col("method") == "feature_zeroing")
        tables = unusable(tables, where, mismatch_margin=None)
    rows = rows_of(material(tables))
    gate = summarise_mechanisms(tables[SPECIFICITY])
    shown = {name: drop_of(rows, name, name) for name in MECHANISMS}
    assert shown == {name: pytest.approx(gate[*LAYER, name]["median_drop"]) for name in MECHANISMS}
    plain = rows_of(material(stripping_tables()))
    assert (shown == {name: drop_of(plain, name, name) for name in MECHANISMS}) is not incomplete


def test_the_picture_shows_every_drop_and_outlines_the_diagonal():
    tables = stripping_tables()
    made = make(material(tables))
    root = checked_svg(made)
    rows = rows_of(material(tables))
    drawn = {m.text.split(":")[1].split("(")[0].strip(): m.value for m in marks(root)}
    expected = {f"strip {row['stripped']}, target {row['target']}": row["drop"] for row in rows.iter_rows(named=True)}
    assert drawn == {name: pytest.approx(value) for name, value in expected.items()}
    outlined = [e for e in root.iter() if e.get("stroke") == INK and e.get("stroke-width") == "2"]
    assert len(outlined) == len(MECHANISMS)
    numbers = {f"{value:+.3f}".replace("-", "−") for value in expected.values()}
    assert numbers <= set(texts(root))
    assert {"1 surprisal", "2 semantic_transition", "3 context_update"} <= set(texts(root))
    assert "not computed" not in made.caption


def test_a_cell_that_could_not_be_computed_is_a_dash_with_its_reason():
    tables = unusable(stripping_tables(), pl.col("stripped") == "surprisal", reason="too_few_units")
    tables[DELTAS] = tables[DELTAS].with_columns(
        pl.when(pl.col("stripped") == "surprisal").then(None).otherwise("drop").alias("drop"),
        pl.when(pl.col("stripped") == "surprisal").then(pl.lit("too_few_units")).otherwise("reason").alias("reason"),
    )
    made = make(material(tables))
    root = checked_svg(made)
    lost = [m for m in marks(root) if "not computed (too_few_units)" in m.text]
    assert len(lost) == len(MECHANISMS)
    assert all("strip surprisal" in m.text and m.value is None for m in lost)
    assert texts(root).count("–") == len(MECHANISMS)
    assert f"{len(MECHANISMS)} cells" in made.caption
    assert "too_few_units" in made.caption


def test_passed_gates_are_marked_by_profile():
    specific = [
        (*LAYER, "surprisal", "paper"),
        (*LAYER, "surprisal", "calibrated"),
        (*LAYER, "context_update", "paper"),
    ]
    tables = {**stripping_tables(), DECISIONS: decisions([LAYER], [LAYER], specific)}
    made = make(material(tables))
    root = checked_svg(made)
    found = sorted((m.profile, m.text.split(" passes for ")[1].split(",")[0]) for m in marks(root) if m.profile)
    assert found == [
        ("calibrated", "surprisal"),
        ("paper", "context_update"),
        ("paper", "surprisal"),
    ]
    assert "2 under point rules and 1 under statistical tests" in made.summary


def test_of_many_layers_those_with_the_best_verdicts_of_every_dataset_are_drawn():
    layers = [(d, "m", i) for d in ("d", "e") for i in range(MAX_PANELS)]
    tables = stripping_tables(layers, n_runs=1)
    passing = [("d", "m", 2), ("d", "m", 4)]
    tables[DECISIONS] = decisions(layers, passing[:1], [(*passing[1], "surprisal", "calibrated")])
    best = MAX_PANELS - 1  # scores rise with the layer
    made = make(material(tables))
    root = checked_svg(made)
    assert f"Drawn are {MAX_PANELS} of {2 * MAX_PANELS} layers" in made.caption
    assert DELTAS in made.caption
    drawn = {(m.dataset, m.model, m.layer) for m in marks(root)}
    assert {(d, m, str(n)) for d, m, n in [*passing, ("e", "m", best)]} <= drawn
    assert len(drawn) == MAX_PANELS


def test_there_are_never_too_many_panels_nor_too_wide_ones():
    layers = [("d" * 60, f"a long name of a model {i} that goes on and on", i) for i in range(MAX_PANELS + 3)]
    tables = stripping_tables(layers, n_runs=1)
    tables[DECISIONS] = decisions(layers, layers)
    root = checked_svg(make(material(tables)))
    assert len({m.layer for m in marks(root)}) == MAX_PANELS
    assert width_of(root) < 1000


def test_names_from_data_stay_text():
    names = (EVIL, "b")
    tables = stripping_tables([(EVIL, EVIL, 1)], n_runs=1, mechanisms=names)
    root = checked_svg(make(material(tables)))
    assert not [e for e in root.iter() if e.tag.endswith(("script", "img"))]
    assert any(f"strip {EVIL}" in m.text for m in marks(root))


def test_without_tables_or_numbers_the_figure_says_why():
    absent = make(material({}))
    assert isinstance(absent, Missing)
    assert DELTAS in absent.reason
    tables = stripping_tables()
    empty = make(material({name: table.head(0) for name, table in tables.items()}))
    assert isinstance(empty, Missing)
    tables[SPECIFICITY] = tables[SPECIFICITY].with_columns(n_targets=pl.lit(1))
    tables[DELTAS] = tables[DELTAS].with_columns(label=pl.lit("insufficient_targets"))
    alone = make(material(tables))
    assert isinstance(alone, Missing)
    assert "insufficient_targets" in alone.reason
