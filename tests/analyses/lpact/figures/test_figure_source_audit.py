"""The source audit: flags as symbols, counts as the audit has them, roles before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.source_audit import LINKS, make, rows_of
from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    FINDINGS,
    RELIABILITY_MODES,
    UNIT_INVENTORY,
)
from lpact.report.figure import Figure, Missing

if TYPE_CHECKING:
    from lpact.study import Run


def feasibility(dataset: str, **changes) -> dict:
    return {
        "dataset": dataset,
        "configured_role": "primary",
        "role": "primary",
        "confirmatory": True,
        "role_reason": "ok",
        "role_detail": "",
        "n_subjects": 2,
        "n_runs": 2,
        "n_stimuli": 2,
        "n_subject_runs": 4,
        "n_subject_runs_excluded": 0,
        "n_brain_units": 9,
        "n_models": 1,
        **dict.fromkeys(LINKS, True),
        "n_relational_runs": 4,
        "n_stripping_runs": 4,
        **changes,
    }


def recording(dataset: str, run: str, stimulus: str, **changes) -> dict:
    return {
        "dataset": dataset,
        "run": run,
        "stimulus": stimulus,
        "used": True,
        "n_units": 10,
        "n_units_used": 9,
        "n_words": 100,
        "n_events": 90,
        "n_events_excluded": 10,
        **changes,
    }


def tables(bad: str = "b") -> dict[str, pl.DataFrame]:
    """Dataset a is complete; the other lost its coverage, a control and most of level 2."""
    lowered = {
        "role": "diagnostic",
        "confirmatory": False,
        "role_reason": "chain_incomplete",
        "role_detail": "coverage is missing",
        "has_coverage": False,
        "n_relational_runs": 1,
        "n_stripping_runs": 0,
        "n_subject_runs_excluded": 1,
    }
    made = {
        EVIDENCE_FEASIBILITY: [feasibility(bad, **lowered), feasibility("a")],
        UNIT_INVENTORY: [
            recording("a", "1", "x"),
            recording("a", "2", "x"),
            recording("a", "3", "y", n_words=50, n_events_excluded=0),
            recording("a", "4", "z", used=False),
        ],
        FINDINGS: [{"dataset": "a", "severity": kind} for kind in ("excluded", "note", "note")],
        CONTROL_AVAILABILITY: [
            {"dataset": name, "layer": layer, "control": control, "available": able}
            for name in ("a", bad)
            for layer, control, able in ((1, "c", False), (2, "c", True), (1, "d", name == "a"))
        ],
        RELIABILITY_MODES: [
            {"dataset": name, "mode": mode, "possible": able, "n_recordings": n}
            for name in ("a", bad)
            for mode, able, n in (("split_half", True, 4), ("run_to_run", True, 2), ("x", False, 0))
        ],
    }
    return {table.name: pl.DataFrame(rows) for table, rows in made.items()}


def test_counts_are_those_worked_out_by_hand():
    first, second = rows_of(material(tables())).iter_rows(named=True)
    assert (first["dataset"], second["dataset"]) == ("a", "b")
    assert first["n_words"] == 150  # two distinct stimuli among the used recordings
    assert (first["n_units_excluded"], first["n_events_excluded"]) == (3, 20)
    assert (first["n_controls"], first["n_controls_asked"]) == (2, 2)
    assert (second["n_controls"], second["n_controls_asked"]) == (1, 2)
    assert (first["n_modes"], first["n_modes_asked"], first["ceiling"]) == (2, 3, 4)
    assert second["n_words"] == 0


def test_symbols_and_roles_are_what_the_audit_says():
    made = make(material(tables()))
    root = checked_svg(made)
    named = {name for name, _ in LINKS.values()}
    links = [own for own in marks(root) if own.text.split(": ")[0].rpartition(", ")[2] in named]
    assert len(links) == 2 * len(LINKS)
    missing = [own for own in links if own.value == 0]
    assert [(own.dataset, own.text) for own in missing] == [("b", "b, coverage: missing; 4 subject-runs")]
    assert missing[0].element.get("d", "").count("M") == 2  # a cross
    assert all("A" in own.element.get("d", "") for own in links if own.value == 1)
    level = {own.text.split(" of ")[0]: own for own in marks(root) if own.text.startswith("b, ")}
    assert level["b, relational: 1"].element.get("fill") == "#ffffff"  # a part of a disc
    assert level["b, stripping: 0"].element.get("d", "").count("M") == 2
    written = texts(root)
    assert "primary → diagnostic, not confirmatory" in written
    assert "primary, confirmatory" in written
    told = " ".join(own.text for own in marks(root))
    assert "coverage is missing" in told
    assert "left out: 0 recordings, 3 units, 20 events" in told
    assert "left out: 1 recording, 0 units, 0 events" in told
    assert isinstance(made, Figure)
    assert "1 dataset of 2 can carry confirmatory evidence: a." in made.summary
    assert "(1 of 2)" in made.caption
    assert width_of(root) <= 1000


def test_names_from_data_stay_text():
    root = checked_svg(make(material(tables(EVIL))))
    assert not [own for own in root.iter() if own.tag.endswith(("script", "img"))]
    assert EVIL in {own.dataset for own in marks(root)}


def test_a_real_run_is_drawn(small_run: Run):
    of_run = {table.name: small_run.table(table.name) for table in small_run.tables()}
    rows = rows_of(Material(of_run, small_run.config))
    audit = of_run[EVIDENCE_FEASIBILITY.name]
    assert set(rows["dataset"]) == {"planted", "empty"}
    used = of_run[UNIT_INVENTORY.name].filter("used")
    for row in rows.iter_rows(named=True):
        own = audit.filter(dataset=row["dataset"]).row(0, named=True)
        assert {flag: row[flag] for flag in LINKS} == {flag: own[flag] for flag in LINKS}
        assert row["predictive"] == used.filter(dataset=row["dataset"]).height
        assert row["n_controls_asked"] == len(small_run.config.controls.include)
    checked_svg(make(Material(of_run, small_run.config)))


@pytest.mark.parametrize("gone", [EVIDENCE_FEASIBILITY.name, RELIABILITY_MODES.name])
def test_a_missing_table_is_named(gone: str):
    rest = {name: table for name, table in tables().items() if name != gone}
    made = make(material(rest))
    assert isinstance(made, Missing)
    assert gone in made.reason
