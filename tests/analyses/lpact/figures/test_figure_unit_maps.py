"""Unit maps: contrasts of units against the tables, places in the picture, and what cannot be drawn."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of
from level_tables import table

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import unit_maps
from lpact.analyses.lpact.figures.unit_maps import (
    best_layers,
    make,
    rows_of,
)
from lpact.analyses.lpact.tables.levels import BRAIN_UNIT_INDEX, CONTROL_DELTAS, UNIT_SCORES
from lpact.report import layout, maps
from lpact.report.figure import Missing

if TYPE_CHECKING:
    from lpact.study import Run

PLACES = {"u1": (0.0, 90.0, 0.0), "u2": (90.0, 0.0, 0.0), "u3": (None, None, None)}
# subject, run: real scores; best control and its draws. Layer 2 is the better one.
RUNS: list[tuple[str, str, list, str, list[list]]] = [
    ("1", "1", [0.5, 0.1, 0.3], "a", [[0.1, 0.3, 0.0], [0.3, 0.5, 0.0]]),
    ("1", "2", [0.7, 0.3, 0.3], "b", [[0.1, 0.0, 0.0]]),
    ("2", "1", [0.2, None, 0.3], "a", [[0.1, 0.3, 0.0]]),
]


def tables(frame: str = "head", model: str = "m", shift: float = 0.0, unit: str = "u") -> dict:
    own = {"model": model, "layer": 2}
    deltas: list[dict[str, Any]] = [
        {**own, "subject": s, "run": r, "best_control": control, "delta_control": 0.2} for s, r, _, control, _ in RUNS
    ]
    deltas += [{**d, "layer": 1, "delta_control": 0.1} for d in deltas]
    scores = []
    for s, r, real, control, draws in RUNS:
        at = {**own, "subject": s, "run": r, "unit_order_hash": "h"}
        scores.append({**at, "condition": "real", "scores": real})
        scores.append({**at, "condition": "other", "scores": [9.0, 9.0, 9.0]})
        scores.append({**at, "condition": "real", "metric": "r2", "scores": [7.0, 7.0, 7.0]})
        scores += [{**at, "condition": control, "draw": i, "scores": draw} for i, draw in enumerate(draws)]
    index = [
        {
            "subject": s,
            "run": r,
            "unit": name.replace("u", unit),
            "unit_index": i,
            "x_mm": None if x is None else x + shift * int(s),
            "y_mm": y,
            "z_mm": z,
            "coordinate_frame": frame,
            "unit_order_hash": "h",
        }
        for s, r, *_ in RUNS
        for i, (name, (x, y, z)) in enumerate(PLACES.items())
    ]
    return table(CONTROL_DELTAS, deltas) | table(UNIT_SCORES, scores) | table(BRAIN_UNIT_INDEX, index)


@pytest.fixture(scope="module")
def of_run(small_run: Run) -> Material:
    named = {declared.name: small_run.table(declared.name) for declared in small_run.tables()}
    return Material(named, small_run.config)


def test_contrasts_by_hand():
    own = rows_of(material(tables()))
    sites = {row["unit"]: row for row in own.iter_rows(named=True)}
    # u1: subject 1 is (0.5 − 0.2 + 0.7 − 0.1) / 2 = 0.45, subject 2 is 0.1.
    assert sites["u1"]["value"] == pytest.approx((0.45 + 0.1) / 2)
    assert (sites["u1"]["n_subjects"], sites["u1"]["n_recordings"]) == (2, 3)
    # u2: subject 1 is (0.1 − 0.4 + 0.3 − 0.0) / 2 = 0, subject 2 has no score.
    assert sites["u2"]["value"] == pytest.approx(0.0, abs=1e-12)
    assert (sites["u2"]["n_subjects"], sites["u2"]["n_recordings"]) == (1, 2)
    assert set(sites) == {"u1", "u2"}
    assert set(own["layer"]) == {2}


def test_units_of_a_run_against_numpy(of_run: Material):
    """The same contrasts, gathered unit by unit in dictionaries."""
    layers = {(d, m): layer for d, m, layer in best_layers(of_run).iter_rows()}
    deltas = of_run.table(CONTROL_DELTAS.name).filter(pl.col("metric") == "pearson")
    index = of_run.table(BRAIN_UNIT_INDEX.name)
    scores = of_run.table(UNIT_SCORES.name).filter(pl.col("metric") == "pearson")
    context = ("dataset", "subject", "session", "run", "model", "layer")
    found: dict[tuple, list] = {}
    for row in scores.iter_rows(named=True):
        key = (*(row[name] for name in context), row["condition"])
        found.setdefault(key, []).append(np.array(row["scores"], dtype=float))
    expected: dict[tuple, dict[str, list[float]]] = {}
    for row in deltas.iter_rows(named=True):
        if layers[row["dataset"], row["model"]] != row["layer"]:
            continue
        key = tuple(row[name] for name in context)
        contrast = found[*key, "real"][0] - np.mean(found[*key, row["best_control"]], axis=0)
        same = dict(zip(context[:4], key[:4], strict=True))
        for unit in index.filter(**same).iter_rows(named=True):
            site = (row["dataset"], row["model"], unit["unit"], unit["x_mm"])
            by_subject = expected.setdefault(site, {})
            by_subject.setdefault(row["subject"], []).append(contrast[unit["unit_index"]])
    means = {
        site: float(np.mean([np.mean(own) for own in by_subject.values()])) for site, by_subject in expected.items()
    }
    drawn = {
        (row["dataset"], row["model"], row["unit"], row["x_mm"]): row["value"]
        for row in rows_of(of_run).iter_rows(named=True)
    }
    assert means
    assert drawn == pytest.approx(means, abs=1e-12)
    root = checked_svg(make(of_run))
    assert sorted(own.value for own in marks(root)) == pytest.approx(sorted(means.values()))  # type: ignore[type-var]


def test_the_best_layer_has_the_largest_mean_difference(of_run: Material):
    deltas = of_run.table(CONTROL_DELTAS.name).filter(pl.col("metric") == "pearson")
    means: dict[tuple, dict[int, list[float]]] = {}
    for row in deltas.iter_rows(named=True):
        own = means.setdefault((row["dataset"], row["model"]), {})
        own.setdefault(row["layer"], []).append(row["delta_control"])
    expected = {
        key: max(own, key=lambda layer, own=own: (np.mean(own[layer]), -layer))  # type: ignore[misc]
        for key, own in means.items()
    }
    assert {(d, m): layer for d, m, layer in best_layers(of_run).iter_rows()} == expected


def test_another_unit_order_is_not_drawn():
    wrong = tables()
    changed = pl.when(pl.col("subject") == "2").then(pl.lit("x")).otherwise("unit_order_hash")
    wrong[BRAIN_UNIT_INDEX.name] = wrong[BRAIN_UNIT_INDEX.name].with_columns(unit_order_hash=changed)
    own = rows_of(material(wrong))
    assert own.filter(unit="u1")["value"].to_list() == pytest.approx([0.45])
    wrong[BRAIN_UNIT_INDEX.name] = wrong[BRAIN_UNIT_INDEX.name].with_columns(unit_order_hash=pl.lit("x"))
    assert isinstance(make(material(wrong)), Missing)


def test_the_real_score_is_that_of_the_recordings_with_a_contrast():
    lacking = tables()
    scores = lacking[UNIT_SCORES.name]
    gone = (pl.col("subject") == "2") & (pl.col("condition") == "a")
    lacking[UNIT_SCORES.name] = scores.filter(~gone)
    site = rows_of(material(lacking)).filter(unit="u1").row(0, named=True)
    # Subject 2 (0.2) has no control, so only subject 1 is left: (0.5 + 0.7) / 2, and 0.45 ahead.
    assert (site["real"], site["value"]) == pytest.approx((0.6, 0.45))
    assert (site["n_subjects"], site["n_recordings"]) == (1, 2)
    whole = rows_of(material(tables())).filter(unit="u1").row(0, named=True)
    assert whole["real"] == pytest.approx((0.6 + 0.2) / 2)


def test_places_agree_to_a_tenth_of_a_millimetre():
    near = rows_of(material(tables(shift=0.01)))
    assert near["unit"].to_list() == ["u1", "u2"]
    assert near.filter(unit="u1")["value"].to_list() == pytest.approx([0.275])
    assert near.filter(unit="u1")["n_subjects"].to_list() == [2]
    # In a space that may be a subject's own, so near is still the same place.
    assert set(rows_of(material(tables("", shift=0.01)))["panel"]) == {""}
    far = rows_of(material(tables(shift=0.2)))
    assert far.filter(unit="u1")["n_subjects"].to_list() == [1, 1]


def place(element: Any) -> tuple[float, float]:
    x, y = re.findall(r"translate\(([-\d.]+),([-\d.]+)\)", element.get("transform"))[0]
    return float(x), float(y)


def test_units_lie_where_they_are_on_the_head():
    made = make(material(tables()))
    root = checked_svg(made)
    by_unit = {re.findall(r"unit (\w+)", own.text)[0]: own for own in marks(root)}
    front, right = place(by_unit["u1"].element), place(by_unit["u2"].element)
    assert front[0] < right[0]  # right is right
    assert front[1] < right[1]  # front is on top
    # Both are level with the origin, so they are equally far from the middle of the head.
    assert right[0] - front[0] == pytest.approx(right[1] - front[1], abs=0.02)
    assert made.caption.count("3 of 9 units") == 1  # type: ignore[union-attr]
    assert any("real 0.400, real minus best control 0.275" in own.text for own in marks(root))


def test_a_brain_is_drawn_with_and_without_outlines(monkeypatch: pytest.MonkeyPatch):
    own = material(tables("MNI152NLin2009cAsym"))
    made = make(own)
    root = checked_svg(made)
    assert {"left", "right", "from behind", "from above"} <= set(texts(root))
    assert len(marks(root)) == 3 * 2 + 1  # u2 is on the right only, u1 in the middle is on both sides
    assert "pip install" not in made.caption  # type: ignore[union-attr]
    layout.glass_brain.cache_clear()
    monkeypatch.setattr(layout, "find_spec", lambda _: None)
    try:
        bare = make(own)
    finally:
        monkeypatch.undo()
        layout.glass_brain.cache_clear()
    assert "pip install 'lpact[fmri]'" in bare.caption  # type: ignore[union-attr]
    assert len(marks(checked_svg(bare))) == 7


def test_a_side_without_units_is_still_drawn():
    right = tables("MNI152NLin2009cAsym")
    index = right[BRAIN_UNIT_INDEX.name]
    right[BRAIN_UNIT_INDEX.name] = index.with_columns(x_mm=pl.col("x_mm") + 20.0)
    root = checked_svg(make(material(right)))
    assert {"left", "right"} <= set(texts(root))
    assert len(marks(root)) == 3 * 2


def test_subjects_of_an_unknown_space_have_their_own_panels():
    shared = rows_of(material(tables("")))
    assert set(shared["panel"]) == {""}
    apart = rows_of(material(tables("", shift=5.0)))
    assert set(apart["panel"]) == {"1", "2"}
    root = checked_svg(make(material(tables("", shift=5.0))))
    assert {"m · layer 2 · subject 1", "m · layer 2 · subject 2", "x (mm)", "y (mm)"} <= set(texts(root))
    assert len(marks(root)) == 2 * 2 * 3
    assert any("no finite difference" in own.text for own in marks(root))


def test_electrodes_in_a_shared_space_keep_their_own_place():
    own = rows_of(material(tables("MNI", shift=5.0)))
    assert set(own["panel"]) == {""}
    assert own.filter(unit="u1")["value"].to_list() == pytest.approx([0.45, 0.1])


def test_of_many_units_evenly_spaced_ones_are_drawn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(unit_maps, "MOST_MARKS", 0)
    monkeypatch.setattr(maps, "FEWEST_MARKS", 1)
    made = make(material(tables()))
    assert [own.value for own in marks(checked_svg(made))] == pytest.approx([0.275])
    assert "evenly spaced ones are drawn" in made.caption  # type: ignore[union-attr]


def test_panels_beyond_the_room_are_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(unit_maps, "MOST_VIEWS", 1)
    parts = [tables(model=name) for name in ("m", "n", "o")]
    joined = {key: pl.concat([part[key] for part in parts]).unique() for key in parts[0]}
    made = make(material(joined))
    assert {own.model for own in marks(checked_svg(made))} == {"m"}
    assert "2 panels are left out" in made.caption  # type: ignore[union-attr]


def test_a_run_fits_the_page_and_names_stay_text(of_run: Material):
    assert width_of(checked_svg(make(of_run))) <= 1000
    root = checked_svg(make(material(tables(frame=EVIL, model=EVIL, unit=EVIL))))
    assert {own.model for own in marks(root)} == {EVIL}


def test_without_places_there_is_a_reason():
    assert isinstance(make(material({})), Missing)
    bare = tables()
    bare[BRAIN_UNIT_INDEX.name] = bare[BRAIN_UNIT_INDEX.name].with_columns(x_mm=pl.lit(None, pl.Float64))
    made = make(material(bare))
    assert isinstance(made, Missing)
    assert made.reason == "none of 9 units has coordinates"
