from __future__ import annotations

from statistics import median

import polars as pl
import pytest
from decision_rows import claim, decisions
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of
from level3_rows import DISSOCIATIONS, dissociation_table
from polars.testing import assert_frame_equal

from lpact.analyses.lpact.figures.common import FEW_LAYERS
from lpact.analyses.lpact.figures.dissociations import make, rows_of
from lpact.report.figure import Missing


def of(table: pl.DataFrame):
    return material({DISSOCIATIONS: table})


def by_pair(table: pl.DataFrame) -> dict[tuple[str, str], list[dict]]:
    pairs: dict[tuple[str, str], list[dict]] = {}
    for row in table.iter_rows(named=True):
        pairs.setdefault((row["mechanism_a"], row["mechanism_b"]), []).append(row)
    return pairs


def test_counts_and_medians_are_those_of_the_table():
    table = dissociation_table()
    rows = {
        (r["mechanism_a"], r["mechanism_b"]): r for r in rows_of(of(table)).iter_rows(named=True)
    }
    expected = by_pair(table)
    assert rows.keys() == expected.keys()
    counts = set()
    for pair, tests in expected.items():
        n = sum(min(t["drop_aa"], t["drop_bb"]) > max(0, t["drop_ab"], t["drop_ba"]) for t in tests)
        counts.add(n)
        assert (rows[pair]["n_dissociated"], rows[pair]["n_known"]) == (n, 5)
        crossed = [(t["drop_aa"] - t["drop_ab"] + t["drop_bb"] - t["drop_ba"]) / 2 for t in tests]
        assert rows[pair]["interaction"] == pytest.approx(median(crossed))
    assert counts - {0, 5}  # neither none nor all everywhere, or the test would see little


def test_a_pair_that_is_named_the_other_way_round_is_the_same_pair():
    table = dissociation_table()
    turn = {
        "mechanism_a": "mechanism_b",
        "mechanism_b": "mechanism_a",
        "drop_aa": "drop_bb",
        "drop_bb": "drop_aa",
        "drop_ab": "drop_ba",
        "drop_ba": "drop_ab",
    }
    turned = table.with_columns(pl.col(other).alias(name) for name, other in turn.items())
    assert not turned.equals(table)
    assert_frame_equal(rows_of(of(turned)), rows_of(of(table)))


def test_the_triangle_shows_counts():
    table = dissociation_table()
    made = make(of(table))
    root = checked_svg(made)
    rows = rows_of(of(table))
    cells = [m for m in marks(root) if "double dissociation in" in m.text]
    assert sorted(m.value for m in cells) == sorted(rows["n_dissociated"].to_list())
    assert texts(root).count(f"{rows['n_dissociated'][0]}/5") >= 1
    total = int(table["double_dissociation"].sum())
    assert made.summary.startswith(f"{total} of 15 tests")


def test_missing_drops_are_counted_and_not_taken_for_failures():
    table = dissociation_table().with_columns(
        pl.when(pl.col("subject") == "00").then(None).otherwise("drop_ab").alias("drop_ab"),
        pl.when(pl.col("subject") == "00")
        .then(pl.lit("too_few_units"))
        .otherwise("reason")
        .alias("reason"),
    )
    rows = rows_of(of(table))
    assert rows["n_known"].unique().to_list() == [4]
    made = make(of(table))
    assert "3 tests could not be computed (too_few_units)" in made.caption
    assert "could not be computed" not in make(of(dissociation_table())).caption
    one = (pl.col("mechanism_a") == "surprisal") & (pl.col("mechanism_b") == "context_update")
    gone = dissociation_table().with_columns(
        pl.when(one).then(None).otherwise("drop_aa").alias("drop_aa"),
        pl.when(one).then(pl.lit("constant_unit")).otherwise("reason").alias("reason"),
    )
    root = checked_svg(make(of(gone)))
    lost = [m.text for m in marks(root) if "not computed (constant_unit)" in m.text]
    assert len(lost) == 1
    assert "surprisal and context_update" in lost[0]
    assert texts(root).count("–") == 1


def test_of_many_layers_every_dataset_has_its_best_and_the_caption_counts_the_rest():
    layers = [(d * 30, "a model with a very long name", i) for d in "de" for i in range(FEW_LAYERS)]
    table = dissociation_table(layers, 2)
    made = make(of(table))
    root = checked_svg(made)
    drawn = {(m.dataset, m.layer) for m in marks(root) if "double dissociation in" in m.text}
    shares = table.group_by("dataset", "layer").agg(pl.col("double_dissociation").mean())
    assert {dataset for dataset, _ in drawn} == {"d" * 30, "e" * 30}
    for dataset, layer in drawn:
        own = shares.filter(dataset=dataset)
        found = own.filter(layer=int(layer or 0))["double_dissociation"][0]
        assert found == own["double_dissociation"].max()
    assert "Drawn are 2 of 12 layers" in made.caption
    assert width_of(root) < 1000


def test_layers_that_pass_a_gate_are_drawn_whatever_their_share():
    layers = [("d", "m", i) for i in range(3 * FEW_LAYERS)]
    table = dissociation_table(layers, 2)
    counts = rows_of(of(table)).group_by("layer").agg(pl.col("n_dissociated").sum())
    worst = counts.sort("n_dissociated", "layer")["layer"][0]

    def drawn(more: dict[str, pl.DataFrame]) -> set[str | None]:
        root = checked_svg(make(material({DISSOCIATIONS: table, **more})))
        return {m.layer for m in marks(root) if "double dissociation in" in m.text}

    assert str(worst) not in drawn({})
    for letter in ("P", "M"):
        assert str(worst) in drawn(decisions(claim(letter, layer=worst)))


def test_names_from_data_stay_text():
    root = checked_svg(make(of(dissociation_table([(EVIL, EVIL, 1)], 2, (EVIL, "b")))))
    assert not [e for e in root.iter() if e.tag.endswith(("script", "img"))]
    assert any(f"{EVIL} and b" in m.text for m in marks(root))


def test_without_numbers_the_figure_says_why():
    absent = make(material({}))
    assert isinstance(absent, Missing)
    assert DISSOCIATIONS in absent.reason
    table = dissociation_table()
    assert isinstance(make(of(table.head(0))), Missing)
    gone = make(
        of(table.with_columns(drop_aa=pl.lit(None, pl.Float64), reason=pl.lit("too_few_units")))
    )
    assert isinstance(gone, Missing)
    assert "too_few_units" in gone.reason
