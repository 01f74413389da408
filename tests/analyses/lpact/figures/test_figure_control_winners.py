"""Which control wins: counts against those of the tables, ties, and what could not be computed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl
import pytest
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of
from level_tables import table

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.control_winners import (
    LEVEL1,
    LEVEL2,
    MAX_ROWS,
    NOT_COMPUTED,
    NUISANCE,
    make,
    rivals_of,
    rows_of,
)
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, CONTROL_NULLS, PROFILE_DELTAS
from lpact.report.figure import Figure, Missing

if TYPE_CHECKING:
    from lpact.study import Run

LEVEL_1_ROWS = [
    # subject, delta to nuisance, best control, delta to it
    ("1", 0.2, "a", 0.1),  # a is the stronger one, and is beaten
    ("2", 0.2, "a", -0.1),  # a wins
    ("3", -0.3, "b", -0.1),  # nuisance wins
    ("4", 0.1, "b", 0.1),  # a tie goes to nuisance, which is beaten
    ("5", 0.4, "b", 0.0),  # a difference of zero is not a victory over b
    ("6", None, None, None),  # nothing to compare
]


def tables(name: str = "m", layers: tuple[int, ...] = (1,)) -> dict:
    deltas = [
        {
            "model": name,
            "layer": layer,
            "subject": subject,
            "delta_nuisance": nuisance,
            "best_control": best,
            "delta_control": control,
            "reason": "ok" if best else "too_few_events",
        }
        for layer in layers
        for subject, nuisance, best, control in LEVEL_1_ROWS
    ]
    units = [
        {
            "model": name,
            "layer": layer,
            "unit": unit,
            "alignment": "rsa",
            "profile": "pearson",
            "best_control": "b",
            "delta_rel": delta,
        }
        for layer in layers
        for unit, delta in (("u1", 0.1), ("u2", -0.1), ("u3", -0.2))
    ]
    nulls = [
        {"model": name, "control": control, "counted": counted}
        for control, counted in (("a", True), ("b", True), ("idle", True), ("loose", False))
    ]
    return table(CONTROL_DELTAS, deltas) | table(PROFILE_DELTAS, units) | table(CONTROL_NULLS, nulls)


@pytest.fixture(scope="module")
def of_run(small_run: Run) -> Material:
    named = {declared.name: small_run.table(declared.name) for declared in small_run.tables()}
    return Material(named, small_run.config)


def counts(rows: pl.DataFrame, level: str) -> dict[str, tuple[int, int, int]]:
    own = rows.filter(pl.col("level") == level)
    return {r["rival"]: (r["n_wins"], r["n_beaten"], r["n_all"]) for r in own.iter_rows(named=True)}


def test_counts_by_hand():
    rows = rows_of(material(tables()))
    assert counts(rows, LEVEL1) == {
        "a": (1, 1, 6),
        "b": (1, 0, 6),
        NUISANCE: (1, 1, 6),
        NOT_COMPUTED: (1, 0, 6),
    }
    assert counts(rows, LEVEL2) == {"b": (2, 1, 3)}


def test_every_counted_control_has_a_column():
    own = material(tables())
    assert rivals_of(own, rows_of(own)) == [NUISANCE, "a", "b", "idle"]


def test_counts_of_a_run_are_those_of_its_rows(of_run: Material):
    """Counted anew, row by row, without Polars' expressions."""
    expected: Counter[tuple] = Counter()
    for row in of_run.table(CONTROL_DELTAS.name).iter_rows(named=True):
        if row["metric"] != "pearson" or row["reason"] != "ok":
            continue
        by_nuisance = row["nuisance_score"] >= row["best_control_score"]
        rival = NUISANCE if by_nuisance else row["best_control"]
        delta = row["real_score"] - max(row["nuisance_score"], row["best_control_score"])
        expected[LEVEL1, row["dataset"], row["model"], row["layer"], rival, delta > 0] += 1
    for row in of_run.table(PROFILE_DELTAS.name).iter_rows(named=True):
        if row["reason"] == "ok" and row["delta_rel"] is not None:
            key = (row["dataset"], row["model"], row["layer"], row["best_control"])
            expected[LEVEL2, *key, row["delta_rel"] > 0] += 1
    drawn: Counter[tuple] = Counter()
    for row in rows_of(of_run).filter(pl.col("rival") != NOT_COMPUTED).iter_rows(named=True):
        key = (row["level"], row["dataset"], row["model"], row["layer"], row["rival"])
        drawn[*key, True] += row["n_beaten"]
        drawn[*key, False] += row["n_wins"]
    assert {k: n for k, n in drawn.items() if n} == dict(expected)
    assert {key[0] for key in expected} == {LEVEL1, LEVEL2}


def test_rows_of_another_unit_order_are_no_evidence():
    mixed = tables()
    order = pl.when(pl.col("unit") == "u2").then(pl.lit("other")).otherwise("model_unit_order_hash")
    mixed[PROFILE_DELTAS.name] = mixed[PROFILE_DELTAS.name].with_columns(model_unit_order_hash=order)
    assert counts(rows_of(material(mixed)), LEVEL2) == {"b": (1, 1, 2)}
    made = make(material(mixed))
    assert isinstance(made, Figure)
    assert "1 level-2 comparison of different unit orders left out" in made.caption
    assert "Level 2 compares 2 combinations" in made.caption
    assert "unit orders" not in make(material(tables())).caption  # type: ignore[union-attr]
    mixed[PROFILE_DELTAS.name] = mixed[PROFILE_DELTAS.name].with_columns(model_unit_order_hash=pl.lit("other"))
    nothing = make(material(mixed))
    assert isinstance(nothing, Figure)
    assert "Level 2 has no comparison to draw. 3 level-2 comparisons" in nothing.caption
    checked_svg(nothing)


def test_nuisance_is_a_rival_of_the_tests_at_level_2(of_run: Material):
    """The calibrated gates R and T of a run compare with nuisance; the caption must not deny it."""
    evidence = of_run.table("decisions/lpact_gate_evidence").filter(
        pl.col("gate").is_in(["relational", "ceiling"]) & pl.col("compared_with").str.contains("nuisance")
    )
    assert set(evidence.select("gate_profile", "gate").iter_rows()) == {
        ("calibrated", "relational"),
        ("calibrated", "ceiling"),
    }
    caption = make(of_run).caption  # type: ignore[union-attr]
    assert "no rival there under the point rules, but it is one in the tests" in caption


def test_cells_show_the_counts():
    made = make(material(tables()))
    root = checked_svg(made)
    shown = {own.text: own.value for own in marks(root)}
    start = "d, m, layer 1, level"
    assert shown == {
        f"{start} 1: a is the strongest rival and is not beaten by the real features in 1 of 6 subject-runs": 1,
        f"{start} 1: a is the strongest rival and is beaten by the real features in 1 of 6 subject-runs": 1,
        f"{start} 1: b is the strongest rival and is not beaten by the real features in 1 of 6 subject-runs": 1,
        f"{start} 1: nuisance is the strongest rival and is not beaten by the real features in 1 of 6 subject-runs": 1,
        f"{start} 1: nuisance is the strongest rival and is beaten by the real features in 1 of 6 subject-runs": 1,
        f"{start} 1: not computed: 1 of 6 subject-runs": 1,
        f"{start} 2: b is the strongest rival and is not beaten by the real features in 2 of "
        "3 unit and summary comparisons": 2,
        f"{start} 2: b is the strongest rival and is beaten by the real features in 1 of "
        "3 unit and summary comparisons": 1,
    }
    assert {"idle", NOT_COMPUTED, "m · layer 1"} <= set(texts(root))
    assert "loose" not in texts(root)
    assert "1 comparison not computed" in made.caption  # type: ignore[union-attr]
    assert "not beaten in 3 of 5 comparisons" in made.summary  # type: ignore[union-attr]


def test_halves_say_who_wins():
    """The left half of a column is the rival's, the right half the real features'."""
    root = checked_svg(make(material(tables())))
    boxes = {}
    for own in marks(root):
        if own.element.tag.endswith("path"):
            boxes[own.text] = float(own.element.get("d", "")[1:].split(",")[0].split("h")[0])
    wins = [x for text, x in boxes.items() if ": a is" in text and "not beaten" in text]
    beaten = [x for text, x in boxes.items() if ": a is" in text and "is beaten" in text]
    assert 0 < beaten[0] - wins[0] < 40


def test_of_many_layers_those_with_the_best_verdicts_are_drawn():
    many = tables(layers=tuple(range(MAX_ROWS + 5)))
    decisions = {"model": "m", "mechanism": "surprisal", "gate_profile": "paper", "raw_score": 0.1}
    labels = {MAX_ROWS + 4: "predictive_only", MAX_ROWS + 3: "mechanism_specific_candidate"}
    many |= table(DECISIONS, [decisions | {"layer": own, "label": label} for own, label in labels.items()])
    made, few = make(material(many)), make(material(tables()))
    assert isinstance(made, Figure)
    assert isinstance(few, Figure)
    drawn = {int(own.layer or -1) for own in marks(checked_svg(made))}
    assert drawn == {*range(MAX_ROWS - 2), *labels}
    assert f"Drawn are {MAX_ROWS} of {MAX_ROWS + 5} layers" in made.caption
    n = 3 * (MAX_ROWS + 5)  # of all layers
    assert f"Level 2 compares {n} combinations" in made.caption
    assert "Drawn are" not in few.caption


def test_a_run_fits_the_page(of_run: Material):
    root = checked_svg(make(of_run))
    assert width_of(root) <= 1000


def test_names_stay_text():
    root = checked_svg(make(material(tables(EVIL))))
    assert {own.model for own in marks(root)} == {EVIL}


def test_without_tables_there_is_a_reason():
    assert isinstance(make(material({})), Missing)
    one = tables()
    del one[PROFILE_DELTAS.name]
    made = make(material(one))
    assert isinstance(made, Figure)
    assert "Level 2 has no comparison" in made.caption
