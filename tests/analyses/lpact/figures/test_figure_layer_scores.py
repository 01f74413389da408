"""Scores by layer: means over the subject-runs of the tables, the strongest control, and what is drawn of them."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
import pytest
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of
from level_tables import table

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import primary_deltas
from lpact.analyses.lpact.figures.layer_scores import (
    BEST,
    BOTH,
    COUNTED,
    NOT_COUNTED,
    NUISANCE,
    REAL,
    ceilings_of,
    make,
    rows_of,
    ticks_of,
)
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, CONTROL_NULLS, NORMALIZED_PREDICTIVE
from lpact.report.figure import Figure, Missing

if TYPE_CHECKING:
    from lpact.study import Run

# Three subject-runs; controls: score per subject-run. The counted `b` is nearest to the real features on average.
REALS = {"1": 0.3, "2": 0.5, "3": 0.1}
CONTROLS = {
    "a": (True, (0.1, 0.1, 0.1)),
    "b": (True, (0.2, 0.2, 0.2)),
    "loose": (False, (0.9, 0.9, 0.9)),
}


def tables(layers: tuple[int, ...] = (1,), name: str = "m", dataset: str = "d") -> dict:
    where = {"dataset": dataset, "model": name}
    deltas = [
        {
            **where,
            "layer": layer,
            "subject": subject,
            "real_score": real + 0.01 * layer,
            "nuisance_score": 0.05,
            "nuisance_plus_model_score": None if subject == "3" else 0.4,
        }
        for layer in layers
        for subject, real in REALS.items()
    ]
    deltas.append({**where, "metric": "r2", "real_score": 77.0})
    nulls = [
        {
            **where,
            "layer": layer,
            "subject": subject,
            "control": control,
            "counted": counted,
            "control_score": scores[i],
            "delta": real + 0.01 * layer - scores[i],
        }
        for layer in layers
        for control, (counted, scores) in CONTROLS.items()
        for i, (subject, real) in enumerate(REALS.items())
    ]
    nulls += [
        {
            **where,
            "layer": layers[0],
            "control": "never",
            "counted": True,
            "reason": "too_few_events",
        }
    ]
    reliable = [
        {**where, "layer": layer, "subject": subject, "mode": mode, "reliability": value}
        for layer in layers
        for subject in REALS
        for mode, value in (("run_to_run", 0.9), ("subject_to_subject", 0.6), ("split_half", None))
    ]
    return table(CONTROL_DELTAS, deltas) | table(CONTROL_NULLS, nulls) | table(NORMALIZED_PREDICTIVE, reliable)


@pytest.fixture(scope="module")
def of_run(small_run: Run) -> Material:
    named = {declared.name: small_run.table(declared.name) for declared in small_run.tables()}
    return Material(named, small_run.config)


def test_means_and_kinds_by_hand():
    rows = {row["condition"]: row for row in rows_of(material(tables())).iter_rows(named=True)}
    assert rows[REAL]["mean"] == pytest.approx(0.31)
    assert rows[BOTH]["mean"] == pytest.approx(0.4)
    assert (rows[BOTH]["n"], rows[BOTH]["n_all"]) == (2, 3)
    kinds = {condition: row["kind"] for condition, row in rows.items()}
    assert kinds == {
        REAL: REAL,
        NUISANCE: NUISANCE,
        BOTH: BOTH,
        "a": COUNTED,
        "b": BEST,
        "loose": NOT_COUNTED,
        "never": COUNTED,
    }
    assert rows["b"]["delta"] == pytest.approx(0.11)
    assert (rows["never"]["mean"], rows["never"]["reason"]) == (None, "too_few_events")
    # Three subject-runs give no more than their range, and only the real features have an interval.
    assert (rows[REAL]["low"], rows[REAL]["high"]) == pytest.approx((0.11, 0.51))
    assert rows["b"]["low"] is None


def test_one_subject_run_has_no_interval():
    alone = {name: frame.filter(pl.col("subject") == "1") for name, frame in tables().items()}
    row = rows_of(material(alone)).filter(condition=REAL).row(0, named=True)
    assert (row["n"], row["low"], row["high"]) == (1, None, None)
    found = [m.text for m in marks(checked_svg(make(material(alone)))) if f": {REAL}, mean" in m.text]
    assert found == ["d, m, layer 1: real features, mean Pearson r 0.310 over 1 subject-run"]


def test_controls_that_the_point_rules_leave_out_enter_the_tests(of_run: Material):
    nulls = of_run.table(CONTROL_NULLS.name)
    loose = set(nulls.filter(~pl.col("counted"))["control"])
    evidence = of_run.table("decisions/lpact_gate_evidence")
    named = {
        profile: set(evidence.filter(gate_profile=profile)["compared_with"].drop_nulls())
        for profile in ("paper", "calibrated")
    }
    assert loose
    assert not loose & named["paper"]
    assert loose & named["calibrated"]
    caption = make(of_run).caption  # type: ignore[union-attr]
    assert "point rules do not count are counted by the statistical tests" in caption
    assert "enter no gate" not in caption


def test_the_ceiling_is_the_strictest_valid_mode_and_of_pearson_only():
    assert ceilings_of(material(tables()))["reliability"].to_list() == pytest.approx([0.6])
    other = material(tables(), readout={"primary_metric": "r2"})
    assert ceilings_of(other).is_empty()


def test_the_real_score_is_that_of_the_decision(of_run: Material):
    rows = rows_of(of_run).filter(pl.col("condition") == REAL)
    decided = of_run.table("decisions/lpact_decision_table")
    raw = {(row["dataset"], row["model"], row["layer"]): row["raw_score"] for row in decided.iter_rows(named=True)}
    assert raw
    drawn = {(row["dataset"], row["model"], row["layer"]): row["mean"] for row in rows.iter_rows(named=True)}
    assert drawn == pytest.approx(raw, abs=1e-12)


def test_the_strongest_control_is_that_of_the_severe_control_gate(of_run: Material):
    best = rows_of(of_run).filter(pl.col("kind") == BEST)
    evidence = of_run.table("decisions/lpact_gate_evidence").filter(
        (pl.col("criterion") == "smallest_control_delta") & (pl.col("gate_profile") == "paper")
    )
    named = {
        (row["dataset"], row["model"], row["layer"]): (row["compared_with"], row["value"])
        for row in evidence.iter_rows(named=True)
    }
    assert named
    for row in best.iter_rows(named=True):
        control, delta = named.pop((row["dataset"], row["model"], row["layer"]))
        assert row["condition"] == control
        assert row["delta"] == pytest.approx(delta, abs=1e-12)
    assert not named


def test_a_run_is_drawn_as_the_tables_say(of_run: Material):
    root = checked_svg(make(of_run))
    scores = of_run.table("predictive/predictive_scores").filter(pl.col("metric") == "pearson")
    per_run = scores.group_by("dataset", "subject", "session", "run", "model", "layer", "condition")
    means = per_run.agg(pl.col("score_median").mean())
    expected = {
        (str(d), str(m), str(layer), str(c)): v
        for d, m, layer, c, v in means.group_by("dataset", "model", "layer", "condition")
        .agg(pl.col("score_median").mean())
        .iter_rows()
    }
    expected = {key: value for key, value in expected.items() if value is not None}
    words = {"real": REAL, "nuisance_plus_model": BOTH}
    found = {}
    for own in marks(root):
        for key in expected:
            told = f": {words.get(key[3], key[3])}, mean Pearson r "
            if (own.dataset, own.model, own.layer) == key[:3] and told in own.text:
                found[key] = own.value
    assert found == pytest.approx(expected, abs=1e-12)
    n_runs = primary_deltas(of_run).drop_nulls("real_score").height
    assert sum(" of the real features " in own.text for own in marks(root)) == n_runs
    assert width_of(root) <= 1000


def test_few_layers_are_strips_sorted_by_score():
    root = checked_svg(make(material(tables())))
    order = [text for text in texts(root) if text in {REAL, NUISANCE, BOTH, *CONTROLS, "never"}]
    labels = order[-7:]
    assert labels == ["loose", BOTH, REAL, "b", "a", NUISANCE, "never"]
    assert "not computed" in texts(root)
    assert any("never was not computed (too_few_events)" in own.text for own in marks(root))


def test_many_layers_are_lines():
    layers = (0, 3, 6, 9)
    made = make(material(tables(layers)))
    root = checked_svg(made)
    controls = {own.text.split(": ")[1].split(",")[0] for own in marks(root) if "minus control" in own.text}
    assert controls == {"a", "b", "loose"}
    drawn = {own.layer: own.value for own in marks(root) if f": {REAL}, mean" in own.text and own.value is not None}
    assert drawn == pytest.approx({str(layer): 0.3 + 0.01 * layer for layer in layers})
    assert "layer" in texts(root)
    assert "layer" not in texts(checked_svg(make(material(tables(layers[:2])))))


def with_a_gap() -> dict:
    made = tables((1, 2, 3, 4, 5))
    gap = (pl.col("control") == "a") & pl.col("layer").is_in([3, 4])
    made[CONTROL_NULLS.name] = made[CONTROL_NULLS.name].filter(~gap)
    return made


def longest_step(made: dict) -> float:
    """The longest step of any line, in steps of one layer; the line of the real features has all layers."""
    root = checked_svg(make(material(made)))
    lines = []
    for group in root.iter():
        if "mark-line" in (group.get("class") or ""):
            for path in group:
                lines += [
                    [float(at.split(",")[0]) for at in part.strip("Z").split("L")]
                    for part in path.get("d", "").split("M")[1:]
                ]
    (whole,) = {tuple(xs) for xs in lines if len(xs) == 5}
    step = (whole[-1] - whole[0]) / 4
    return max(b - a for xs in lines for a, b in pairwise(xs)) / step


def test_a_line_ends_where_a_layer_is_missing():
    made = with_a_gap()
    assert longest_step(made) == pytest.approx(1, abs=0.01)
    # A positive twin: what is no gap but a layer that the model does not have is a longer step of all lines.
    renamed = {name: frame.with_columns(pl.col("layer").replace({5: 7})) for name, frame in made.items()}
    assert longest_step(renamed) == pytest.approx(3 / 1.5, abs=0.01)


def test_layers_on_the_axis_are_whole_and_named_once():
    parts = [tables((1, 2, 3, 4)), tables((1, 2), "n")]
    joined = {key: pl.concat([part[key] for part in parts]) for key in parts[0]}
    root = checked_svg(make(material(joined)))
    axes = [
        [t.text for t in group if (t.text or "").isdigit()]
        for group in root.iter()
        if "role-axis-label" in (group.get("class") or "")
    ]
    assert [own for own in axes if len(own) > 1] == [["1", "2", "3", "4"], ["1", "2"]]
    assert ticks_of(list(range(24))) == [0, 4, 8, 12, 16, 20]
    assert ticks_of([3]) == [3]


def test_a_large_study_keeps_its_width():
    name = "a model with a name as long as some people give to their models, of 700 million parameters"
    parts = [tables((0, 4, 8), f"{name} {i}") for i in range(6)]
    joined = {key: pl.concat([part[key] for part in parts]) for key in parts[0]}
    root = checked_svg(make(material(joined)))
    assert width_of(root) <= 1000
    assert len({own.model for own in marks(root)} - {None}) == 6


def test_names_stay_text():
    root = checked_svg(make(material(tables(name=EVIL, dataset=EVIL))))
    assert {own.model for own in marks(root)} - {None} == {EVIL}
    assert not [own for own in root.iter() if own.tag.endswith("script")]


def test_without_numbers_there_is_a_reason():
    assert isinstance(make(material({})), Missing)
    bare = tables()
    bare[CONTROL_DELTAS.name] = bare[CONTROL_DELTAS.name].with_columns(real_score=pl.lit(None, pl.Float64))
    made = make(material(bare))
    assert isinstance(made, Missing)
    assert "Pearson" in made.reason
    assert isinstance(make(material(tables())), Figure)


def test_the_same_tables_give_the_same_picture(of_run: Material):
    shuffled = Material(
        {
            name: frame.sample(fraction=1.0, shuffle=True, seed=3) if frame.height else frame
            for name, frame in of_run.tables.items()
        },
        of_run.config,
    )
    first, second = rows_of(of_run), rows_of(shuffled)
    assert first.equals(second)
    assert not math.isnan(first["mean"].drop_nulls().sum())
    assert make(of_run) == make(shuffled)
