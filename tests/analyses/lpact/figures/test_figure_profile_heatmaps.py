from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from figure_checks import EVIL, checked_svg, marks, material, texts
from level2_rows import BRAIN, INDEX, MODEL, ORDER, SCORES, pattern_tables, similarity_tables

from lpact.analyses.lpact.figures.profile_heatmaps import MAX_UNITS, Panel, make, panels_of
from lpact.report.figure import Missing
from lpact.report.theme import RAMP, colour

GROUPED = [0, 2, 1]
"""Units by region: left (u000, u002), then right (u001)."""


def tables_of(**changes) -> dict[str, pl.DataFrame]:
    return {**similarity_tables(n_runs=2), **pattern_tables(**changes)}


def panel(tables: dict[str, pl.DataFrame]) -> Panel:
    (made,) = panels_of(material(tables))
    assert isinstance(made, Panel), made
    return made


def brain_square(table: pl.DataFrame, n: int) -> np.ndarray:
    """Mean over subject-runs of the patterns, worked out run by run."""
    squares = []
    for subject in sorted(set(table["subject"])):
        own = table.filter(subject=subject).sort("unit_index")
        squares.append(np.array(own["pattern"].to_list(), dtype=float))
    assert squares[0].shape == (n, n)
    return np.mean(squares, axis=0)


def test_blocks_are_mean_patterns_in_one_order_grouped_by_region():
    tables = tables_of()
    made = panel(tables)
    assert made.units == ["u000", "u002", "u001"]
    assert made.regions == ["left", "left", "right"]
    assert (made.alignment, made.profile, made.n_subject_runs) == ("linear", "pearson", 2)
    square, *strips = made.blocks
    expected = brain_square(tables[BRAIN], 3)
    np.testing.assert_allclose(square.numbers, expected[np.ix_(GROUPED, GROUPED)])
    assert np.isnan(np.diag(square.numbers)).all()
    names = [strip.name for strip in strips]
    assert names == [
        "mean brain unit",
        "real features",
        "nuisance",
        "best control, token_order_shuffle",
    ]
    np.testing.assert_allclose(strips[0].numbers[0], np.nanmean(expected, axis=0)[GROUPED])
    for strip, condition in zip(strips[1:], ("real", "nuisance", "token_order_shuffle"), strict=True):
        own = tables[MODEL].filter(condition=condition)
        by_run = [np.mean(own.filter(subject=s)["pattern"].to_list(), axis=0) for s in ("00", "01")]
        np.testing.assert_allclose(strip.numbers[0], np.mean(by_run, axis=0)[GROUPED])


def test_similarities_are_those_of_the_tables():
    tables = tables_of()
    scores = tables[SCORES].filter(alignment="linear", profile="pearson")
    for strip, condition in zip(panel(tables).blocks[2:], ("real", "nuisance", "token_order_shuffle"), strict=True):
        own = scores.filter(condition=condition)
        expected = np.mean([own.filter(subject=s)["similarity"].mean() for s in ("00", "01")])
        assert strip.similarity == pytest.approx(expected)


def test_the_picture_has_a_mark_a_number_and_its_own_scale_a_block():
    tables = tables_of()
    made = make(material(tables))
    root = checked_svg(made)
    blocks = panel(tables).blocks
    found = marks(root)
    for block in blocks:
        name = "brain, u" if block is blocks[0] else block.name
        own = [m for m in found if m.text.split(": ", 1)[1].startswith(name)]
        assert len(own) == block.numbers.size
        known = sorted(m.value for m in own if m.value is not None)
        assert known == pytest.approx(sorted(block.numbers[np.isfinite(block.numbers)].tolist()))
        ends = {m.value: m.element.get("fill") for m in own if m.value is not None}
        assert ends[min(ends)] == colour(RAMP[0])
        assert ends[max(ends)] == colour(RAMP[-1])
    undefined = [m for m in found if m.value is None]
    assert len(undefined) == 3
    assert {m.element.get("fill") for m in undefined} == {colour("missing")}
    low, high = blocks[2].ends
    heading = f"real features: {blocks[2].similarity:.2f} ({low:.2f} to {high:.2f})"
    assert heading.replace("-", "−") in texts(root)
    assert texts(root).count("left") == 2
    assert "linear alignment; mean over 2 subject-runs, 3 units" in texts(root)


def test_subject_runs_of_another_unit_order_are_left_out_and_named():
    tables = tables_of(orders=(ORDER, "other", ORDER))
    made = panel(tables)
    assert made.n_subject_runs == 2
    kept = tables[BRAIN].filter(pl.col("subject") != "01")
    expected = brain_square(kept, 3)[np.ix_(GROUPED, GROUPED)]
    np.testing.assert_allclose(made.blocks[0].numbers, expected)
    caption = make(material(tables)).caption
    assert "mean over 2 of 3 subject-runs; the others have another unit order" in caption
    assert "another unit order" not in make(material(tables_of())).caption


def test_similarities_are_over_the_subject_runs_that_are_drawn():
    tables = {**similarity_tables(n_runs=3), **pattern_tables(orders=(ORDER, "other", ORDER))}
    scores = tables[SCORES].filter(alignment="linear", profile="pearson", condition="real")
    means = {s: scores.filter(subject=s)["similarity"].mean() for s in ("00", "01", "02")}
    real = panel(tables).blocks[2]
    assert real.similarity == pytest.approx((means["00"] + means["02"]) / 2)
    assert real.n == 2
    assert not any(" of 2 subject-runs (" in text for text in texts(checked_svg(make(material(tables)))))
    tables[SCORES] = tables[SCORES].filter((pl.col("subject") != "02") | (pl.col("condition") != "nuisance"))
    nuisance = panel(tables).blocks[3]
    assert (nuisance.name, nuisance.n) == ("nuisance", 1)
    low, high = nuisance.ends
    shown = f"nuisance: {nuisance.similarity:.2f} in 1 of 2 subject-runs ({low:.2f} to {high:.2f})"
    assert shown.replace("-0", "−0") in texts(checked_svg(make(material(tables))))


def test_brain_and_model_without_a_common_order_are_not_drawn():
    tables = tables_of()
    tables[MODEL] = tables[MODEL].with_columns(unit_order_hash=pl.lit("other"))
    made = make(material(tables))
    assert isinstance(made, Missing)
    assert "no unit order in common" in made.reason


def test_of_too_many_units_evenly_spaced_ones_are_drawn():
    n = MAX_UNITS + 6
    tables = tables_of(regions=["one"] * n, orders=(ORDER,))
    made = panel(tables)
    assert len(made.units) == MAX_UNITS
    assert (made.units[0], made.units[-1]) == ("u000", f"u{n - 1:03d}")
    kept = [int(unit[1:]) for unit in made.units]
    square = brain_square(tables[BRAIN], n)
    np.testing.assert_allclose(made.blocks[0].numbers, square[np.ix_(kept, kept)])
    assert f"{MAX_UNITS} of {n} units, evenly spaced" in made.note


def test_names_from_data_stay_text():
    layer = (EVIL, EVIL, 1)
    tables = {
        **similarity_tables([layer], n_runs=1),
        **pattern_tables(layer, (EVIL, "b", "c"), (ORDER,)),
    }
    tables[INDEX] = tables[INDEX].with_columns(pl.col("unit").replace({"u001": EVIL}))
    root = checked_svg(make(material(tables)))
    assert not [e for e in root.iter() if e.tag.endswith(("script", "img"))]
    assert any(f"with {EVIL} (b)" in m.text for m in marks(root))


def test_without_tables_the_figure_says_which():
    made = make(material(similarity_tables()))
    assert isinstance(made, Missing)
    assert BRAIN in made.reason
    assert INDEX in made.reason
