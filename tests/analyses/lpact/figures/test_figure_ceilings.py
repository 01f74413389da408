"""Ceilings: reliability of recordings, fractions as gate T takes them, and reasons where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of
from level_tables import table

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.ceilings import (
    DELTA,
    NOISE_FREE,
    PREDICTIVE,
    REAL,
    RELATIONAL,
    TYPICAL,
    best_layers,
    fraction_dots,
    fraction_rows,
    make,
    reliability_rows,
)
from lpact.analyses.lpact.tables.levels import (
    BRAIN_CEILING,
    NORMALIZED_PREDICTIVE,
    NORMALIZED_SCORES,
)
from lpact.report.figure import Missing
from lpact.report.theme import colour

if TYPE_CHECKING:
    from lpact.study import Run


def tables(name: str = "m", layers: tuple[int, ...] = (1,)) -> dict:
    reliability = [
        {
            "subject": subject,
            "mode": mode,
            "kind": kind,
            "alignment": alignment,
            "profile": "pearson",
            "valid": value is not None,
            "reason": "ok" if value is not None else "single_run",
            "reliability": value,
        }
        for subject, high in (("1", 0.8), ("2", 0.6))
        for mode, kind, alignment, value in (
            ("subject_to_subject", "profile", "rsa", high),
            ("subject_to_subject", "profile", "cka", high - 0.2),
            ("run_to_run", "profile", "rsa", None),
            ("subject_to_subject", "response", "response", 0.5),
        )
    ]
    own = {"model": name, "mode": "subject_to_subject"}
    # Subject 2 has a unit whose reliability is below the minimum of 0.1: its fraction does not count.
    scores = [
        {
            **own,
            "layer": layer,
            "subject": subject,
            "unit": unit,
            "alignment": alignment,
            "profile": "pearson",
            "reliability": r,
            "fraction_of_ceiling": fraction * (1 + 0.1 * layer),
            "delta_fraction": fraction - 0.3,
        }
        for layer in layers
        for subject, unit, alignment, r, fraction in (
            ("1", "u1", "rsa", 0.8, 0.2),
            ("1", "u2", "rsa", 0.8, 0.4),
            ("1", "u1", "cka", 0.8, 0.6),
            ("2", "u1", "rsa", 0.6, 0.8),
            ("2", "u2", "rsa", 0.05, 99.0),
        )
    ]
    predictive = [
        {
            **own,
            "layer": layer,
            "subject": subject,
            "mode": mode,
            "reliability": r,
            "fraction_of_ceiling": fraction,
            "delta_fraction": -0.1,
            "reason": "ok" if r else "no_repeated_measure",
        }
        for layer in layers
        for subject, mode, r, fraction in (
            ("1", "run_to_run", 0.9, 0.1),
            ("1", "subject_to_subject", 0.5, 0.4),
            ("1", "split_half", None, None),
            ("2", "run_to_run", 0.5, 0.6),
            ("2", "subject_to_subject", None, None),
        )
    ]
    return (
        table(BRAIN_CEILING, reliability)
        | table(NORMALIZED_SCORES, scores)
        | table(NORMALIZED_PREDICTIVE, predictive)
    )


@pytest.fixture(scope="module")
def of_run(small_run: Run) -> Material:
    named = {declared.name: small_run.table(declared.name) for declared in small_run.tables()}
    return Material(named, small_run.config)


def test_reliability_by_hand():
    rows = reliability_rows(material(tables()))
    found = {
        (r["subject"], r["mode"], r["kind"]): (r["reliability"], r["reason"], r["n_summaries"])
        for r in rows.iter_rows(named=True)
    }
    assert found["1", "subject_to_subject", "profile"] == (pytest.approx(0.7), "ok", 2)
    assert found["2", "subject_to_subject", "profile"] == (pytest.approx(0.5), "ok", 2)
    assert found["2", "run_to_run", "profile"] == (None, "single_run", 0)
    assert found["1", "subject_to_subject", "response"] == (0.5, "ok", 1)


def test_fractions_by_hand():
    rows = fraction_rows(material(tables()))
    found = {(r["level"], r["quantity"]): (r["value"], r["n"]) for r in rows.iter_rows(named=True)}
    # Subject 1: (0.2 + 0.4 + 0.6) / 3 = 0.4; subject 2: 0.8, without the unreliable unit; times 1.1.
    assert found[RELATIONAL, REAL] == (pytest.approx(1.1 * 0.6), 2)
    assert found[RELATIONAL, DELTA] == (pytest.approx(0.3), 2)
    # rsa: (0.3 + 0.8) / 2 = 0.55; cka: 0.6; their median is 0.575.
    assert found[RELATIONAL, TYPICAL] == (pytest.approx(1.1 * 0.575), 2)
    # Subject 1 by subject_to_subject, subject 2 by the strictest mode that it has.
    assert found[PREDICTIVE, REAL] == (pytest.approx((0.4 + 0.6) / 2), 2)


def test_responses_are_beside_what_a_noise_free_model_could_reach():
    own = material(tables())
    rows = fraction_rows(own).filter(quantity=NOISE_FREE)
    # Reliabilities 0.5 and 0.5 (strictest modes): a score of √0.5 is 1/√0.5 of the reliability.
    assert rows["level"].to_list() == [PREDICTIVE]
    assert rows["value"].to_list() == pytest.approx([2**0.5])
    made = make(own)
    root = checked_svg(made)
    reach = [m for m in marks(root) if "noise-free model is 1.414 times" in m.text]
    assert len(reach) == 1
    assert any(
        "responses: real features is 0.500 times the response rel" in m.text for m in marks(root)
    )
    assert "responses: ratio to response reliability (no gate)" in texts(root)
    assert "1/√r" in made.caption  # type: ignore[union-attr]
    assert "Responses: d, m, layer 1 has the largest ratio to the reliability, 0.50" in made.summary


def test_a_perfect_model_of_the_shared_response_lies_on_the_line():
    """Two recordings are signal plus noise; the signal itself is the model."""
    rng = np.random.default_rng(0)
    signal, one, other = (rng.normal(size=200_000) for _ in range(3))
    r = np.corrcoef(signal + one, signal + other)[0, 1]
    score = np.corrcoef(signal, signal + one)[0, 1]
    exact = tables()
    exact[NORMALIZED_PREDICTIVE.name] = exact[NORMALIZED_PREDICTIVE.name].with_columns(
        reliability=pl.lit(r), fraction_of_ceiling=pl.lit(score / r), reason=pl.lit("ok")
    )
    rows = fraction_rows(material(exact)).filter(level=PREDICTIVE)
    found = dict(rows.select("quantity", "value").iter_rows())
    assert found[REAL] > 1.3
    assert found[REAL] == pytest.approx(found[NOISE_FREE], abs=0.01)


def test_the_line_of_gate_t_stands_in_its_own_panel_only():
    def dashes(made: dict) -> int:
        drawn = checked_svg(make(material(made)))
        return sum(
            own.get("stroke-dasharray") == "4,3" and own.get("stroke") == colour("fail")
            for own in drawn.iter()
        )

    both, without = tables(), tables()
    del without[NORMALIZED_PREDICTIVE.name]
    assert dashes(both) == dashes(without)
    relational = tables()
    del relational[NORMALIZED_SCORES.name]
    assert dashes(both) == dashes(relational) + 1
    drawn = texts(checked_svg(make(material(relational))))
    assert not any(
        "gate T" in text or "ceiling" in text for text in drawn if "reliability" not in text
    )
    assert "responses: a noise-free model" in drawn


def test_fractions_of_a_run_are_those_of_gate_t(of_run: Material):
    evidence = of_run.table("decisions/lpact_gate_evidence").filter(
        (pl.col("gate_profile") == "paper") & pl.col("value").is_not_null()
    )
    names = {
        "mean_fraction_of_ceiling": REAL,
        "mean_delta_fraction": DELTA,
        "median_fraction_of_ceiling": TYPICAL,
    }
    expected = {
        (r["dataset"], r["model"], r["layer"], names[r["criterion"]]): r["value"]
        for r in evidence.iter_rows(named=True)
        if r["criterion"] in names
    }
    assert expected
    drawn = {
        (r["dataset"], r["model"], r["layer"], r["quantity"]): r["value"]
        for r in fraction_rows(of_run).filter(pl.col("level") == RELATIONAL).iter_rows(named=True)
        if r["value"] is not None
    }
    assert drawn == pytest.approx(expected, abs=1e-12)


def test_the_picture_holds_every_number(of_run: Material):
    root = checked_svg(make(of_run))
    values = [own.value for own in marks(root) if own.value is not None]
    reliability = reliability_rows(of_run).filter("valid")["reliability"].to_list()
    fractions = fraction_rows(of_run)["value"].drop_nulls().to_list()
    runs = fraction_dots(of_run)["value"].to_list()
    assert reliability
    assert fractions
    for number in (*reliability, *fractions, *runs):
        assert any(value == pytest.approx(number, abs=1e-12) for value in values)
    assert width_of(root) <= 1000


def test_reasons_stand_where_there_is_no_number():
    root = checked_svg(make(material(tables())))
    assert "single run" in texts(root)
    assert any("subject to subject: mean reliability 0.600" in own.text for own in marks(root))
    poor = tables()
    poor[NORMALIZED_SCORES.name] = poor[NORMALIZED_SCORES.name].with_columns(
        reliability=pl.lit(0.05)
    )
    made = make(material(poor))
    assert "reliability below minimum" in texts(checked_svg(made))
    assert "1 row without a number" in made.caption  # type: ignore[union-attr]


def test_thresholds_are_those_of_the_study():
    made = make(material(tables(), gates={"min_reliability": 0.3, "min_ceiling_fraction": 0.45}))
    assert "below 0.3 are left out" in made.caption  # type: ignore[union-attr]
    assert "at least 0.45" in made.caption  # type: ignore[union-attr]
    told = texts(checked_svg(made))
    assert "least reliability of a ceiling, 0.3" in told
    assert "least fraction for gate T, 0.45" in told


def test_of_many_layers_the_best_of_each_model_is_drawn():
    own = material(tables(layers=tuple(range(70))))
    # Contrasts are the same in every layer, so the first one is kept.
    assert best_layers(fraction_rows(own))["layer"].to_list() == [0]
    made = make(own)
    assert "For lack of space, 1 of 70 layers" in made.caption  # type: ignore[union-attr]
    assert {mark.layer for mark in marks(checked_svg(made))} == {"0", None}


def test_names_stay_text():
    root = checked_svg(make(material(tables(EVIL))))
    assert EVIL in {own.model for own in marks(root)}


def test_without_tables_there_is_a_reason():
    assert isinstance(make(material({})), Missing)
    empty = {BRAIN_CEILING.name: tables()[BRAIN_CEILING.name].clear()}
    assert isinstance(make(material(empty)), Missing)
    alone = {BRAIN_CEILING.name: tables()[BRAIN_CEILING.name]}
    assert "reliability: relational patterns" in texts(checked_svg(make(material(alone))))
