"""Ceilings: reliability of recordings, fractions as gate T takes them, and reasons where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of
from level_tables import table

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.ceilings import (
    DELTA,
    REAL,
    TYPICAL,
    fraction_dots,
    fraction_rows,
    make,
    reliability_rows,
)
from lpact.analyses.lpact.tables.levels import (
    BRAIN_CEILING,
    NORMALIZED_SCORES,
)
from lpact.report.figure import Missing

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
    return table(BRAIN_CEILING, reliability) | table(NORMALIZED_SCORES, scores)


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
    found = {r["quantity"]: (r["value"], r["n"]) for r in rows.iter_rows(named=True)}
    # Subject 1: (0.2 + 0.4 + 0.6) / 3 = 0.4; subject 2: 0.8, without the unreliable unit; times 1.1.
    assert found[REAL] == (pytest.approx(1.1 * 0.6), 2)
    assert found[DELTA] == (pytest.approx(0.3), 2)
    # rsa: (0.3 + 0.8) / 2 = 0.55; cka: 0.6; their median is 0.575.
    assert found[TYPICAL] == (pytest.approx(1.1 * 0.575), 2)


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
        for r in fraction_rows(of_run).iter_rows(named=True)
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
    poor[NORMALIZED_SCORES.name] = poor[NORMALIZED_SCORES.name].with_columns(reliability=pl.lit(0.05))
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


def test_of_many_layers_the_best_are_drawn():
    own = material(tables(layers=tuple(range(70))))
    made = make(own)
    assert "Drawn are 60 of 70 layers" in made.caption  # type: ignore[union-attr]
    # None has a verdict, so the first ones are kept.
    drawn = {mark.layer for mark in marks(checked_svg(made))}
    assert drawn == {None, *map(str, range(60))}


def test_names_stay_text():
    root = checked_svg(make(material(tables(EVIL))))
    assert EVIL in {own.model for own in marks(root)}


def test_without_tables_there_is_a_reason():
    assert isinstance(make(material({})), Missing)
    empty = {BRAIN_CEILING.name: tables()[BRAIN_CEILING.name].clear()}
    assert isinstance(make(material(empty)), Missing)
    alone = {BRAIN_CEILING.name: tables()[BRAIN_CEILING.name]}
    assert "reliability: relational patterns" in texts(checked_svg(make(material(alone))))
