from __future__ import annotations

import polars as pl
from figure_checks import EVIL, checked_svg, marks, material, texts
from level3_rows import DISSOCIATIONS, dissociation_table

from lpact.analyses.lpact.figures.dissociations import make, rows_of
from lpact.analyses.lpact.figures.stripping_matrix import MAX_PANELS
from lpact.report.figure import Missing


def of(table: pl.DataFrame):
    return material({DISSOCIATIONS: table})


def test_every_cell_is_the_count_of_its_pair_in_the_table():
    table = dissociation_table()
    expected: dict[tuple[str, str], list[bool]] = {}
    for row in table.iter_rows(named=True):
        matching = min(row["drop_aa"], row["drop_bb"])
        holds = matching > max(0, row["drop_ab"], row["drop_ba"])
        expected.setdefault((row["mechanism_a"], row["mechanism_b"]), []).append(holds)
    made = make(of(table))
    root = checked_svg(made)
    cells = {m.text: m.value for m in marks(root)}
    assert len(cells) == len(expected) == 3
    for (a, b), held in expected.items():
        n = sum(held)
        assert cells[f"d, m, layer 1: {a} and {b}: double dissociation in {n} of 5 subject-runs"] == n
        assert f"{n} of 5" in texts(root)
    total = sum(map(sum, expected.values()))
    assert 0 < total < 15
    assert made.summary.startswith(f"{total} of 15 tests")
    assert f"{total} of 15 tests" in texts(root)


def test_missing_drops_are_counted_and_not_taken_for_failures():
    lost = (pl.col("subject") == "00") | (pl.col("mechanism_b") == "semantic_transition")
    gone = pl.when(lost).then(pl.lit("undefined_score")).otherwise("reason").alias("reason")
    made = make(of(dissociation_table().with_columns(gone)))
    rows = rows_of(of(dissociation_table().with_columns(gone)))
    assert rows["n"].to_list() == [0, 4, 4]
    assert "7 tests could not be computed (undefined_score)" in made.caption
    root = checked_svg(made)
    absent = [m.text for m in marks(root) if "not computed (undefined_score)" in m.text]
    assert len(absent) == texts(root).count("–") == 1
    assert "could not be computed" not in make(of(dissociation_table())).caption


def test_of_many_layers_the_caption_counts_the_rest_and_names_stay_text():
    layers = [(d, EVIL, i) for d in "de" for i in range(MAX_PANELS)]
    made = make(of(dissociation_table(layers, 2, (EVIL, "b"))))
    drawn = {(m.dataset, m.layer) for m in marks(checked_svg(made))}
    assert len(drawn) == MAX_PANELS
    assert {dataset for dataset, _ in drawn} == {"d", "e"}
    assert f"Drawn are {MAX_PANELS} of {2 * MAX_PANELS} layers" in made.caption
    assert f"{EVIL} and b" in made.summary


def test_without_numbers_the_figure_says_why():
    absent = make(material({}))
    assert isinstance(absent, Missing)
    assert DISSOCIATIONS in absent.reason
    table = dissociation_table()
    assert isinstance(make(of(table.head(0))), Missing)
    gone = make(of(table.with_columns(reason=pl.lit("undefined_score"))))
    assert isinstance(gone, Missing)
    assert "undefined_score" in gone.reason
