"""The chain of gates: counts worked out by hand, bars as long as the counts say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest
from decision_rows import claim, decisions
from figure_checks import checked_svg, marks, material, texts, width_of

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.framework import make, rows_of
from lpact.report.figure import Figure, Missing

if TYPE_CHECKING:
    from lpact.study import Run

ALL = "P S R M T Rep"
CLAIMS = [
    claim(label="diagnostic_only", dataset="e"),
    claim(label="null", raw_positive=False),
    claim("P"),
    claim("P S"),
    claim(ALL, label="integrated_candidate", integrated=True),
    claim("S"),
    claim("P S R", label="relational_candidate"),
    claim(ALL, label="predictive_only", beaten_by="false_discovery_rate"),
]
STEPS = ["claims", "confirmatory", "raw positive", *ALL.split(), "integrated"]
OWN = [8, 7, 7, 5, 5, 3, 2, 2, 2, 1]
STILL_IN = [8, 7, 6, 5, 4, 3, 2, 2, 2, 1]
DROPPED = [0, 1, 1, 1, 1, 1, 1, 0, 0, 1]


@pytest.fixture(scope="module")
def figure() -> Figure:
    tests = [row | {"gate_profile": "calibrated", "integrated": False} for row in CLAIMS]
    made = make(material(decisions(*CLAIMS, *tests)))
    assert isinstance(made, Figure)
    return made


def test_counts_are_those_worked_out_by_hand():
    rows = rows_of(material(decisions(*CLAIMS)))
    assert rows["step"].to_list() == STEPS
    assert rows["own"].to_list() == OWN
    assert rows["still_in"].to_list() == STILL_IN
    assert rows["dropped"].to_list() == DROPPED


def test_layers_are_counted_beside_claims():
    claims = [
        claim(passed, layer=layer, mechanism=mechanism)
        for layer, passed in ((1, "P S R"), (2, "P"), (3, ""))
        for mechanism in ("a", "b", "c")
    ]
    own = material(decisions(*claims))
    at = {row["step"]: row for row in rows_of(own).iter_rows(named=True)}
    found = [(at[step]["still_in"], at[step]["layers_in"]) for step in ("claims", "P", "S", "M")]
    assert found == [(9, 3), (6, 2), (3, 1), (0, 0)]
    made = make(own)
    assert isinstance(made, Figure)
    assert "9 claims in 3 layers" in made.caption
    assert "share every gate but M" in made.caption
    root = checked_svg(made)
    assert "layers" in texts(root)
    assert any("predictive: 6 of 9 claims still in (in 2 layers)" in own.text for own in marks(root))


def test_bars_start_at_zero_and_are_as_long_as_the_counts(figure: Figure):
    found = marks(checked_svg(figure))
    bars = {"paper": {}, "calibrated": {}}
    for own in found:
        shape = re.fullmatch(r"M(-?[\d.]+),[\d.]+h([\d.]+)v[\d.]+h-[\d.]+Z", own.element.get("d", ""))
        if shape and own.element.get("fill") == "#0072b2":
            assert own.profile is not None
            bars[own.profile][own.text] = (float(shape[1]), float(shape[2]), own.value)
    assert [len(own) for own in bars.values()] == [10, 9]  # the last bar of the tests has no length
    for own in bars.values():
        assert len({start for start, _, _ in own.values()}) == 1
        longest = max(length for _, length, _ in own.values())
        for _, length, value in own.values():
            assert length == pytest.approx(longest * value / 8, abs=0.01)
    assert [value for _, _, value in bars["paper"].values()] == STILL_IN


def test_every_count_is_written_and_in_the_tooltips(figure: Figure):
    root = checked_svg(figure)
    assert width_of(root) <= 1000
    shown = [own.text for own in marks(root)]
    assert (
        "point rules, severe controls: 4 of 8 claims still in (in 1 layer); 1 drop out here; "
        "5 pass this step on its own" in shown
    )
    assert "8 claims" in figure.caption
    assert "of 8 claims 7 are confirmatory, 6 of these raw positive, 1 integrated (in 1 layer)" in figure.summary
    written = texts(root)
    assert written.count("point rules") == 1
    assert written.count("statistical tests") == 1


def test_a_real_run_agrees_with_its_outcome(small_run: Run):
    tables = {table.name: small_run.table(table.name) for table in small_run.tables()}
    rows = rows_of(Material(tables, small_run.config))
    outcome = tables["decisions/lpact_study_outcome"]
    for profile, n, confirmatory, integrated in outcome.select(
        "gate_profile", "n_claims", "n_confirmatory_claims", "n_integrated"
    ).iter_rows():
        at = dict(rows.filter(gate_profile=profile).select("step", "still_in").iter_rows())
        assert (at["claims"], at["confirmatory"]) == (n, confirmatory)
        assert at["integrated"] == integrated
    summary = tables["decisions/lpact_decision_summary"].group_by("gate_profile")
    for profile, n in summary.agg(pl.col("n_predictive").sum()).iter_rows():
        assert rows.filter(gate_profile=profile, step="P")["own"].item() == n


def test_without_claims_it_says_so():
    empty = {name: table.clear() for name, table in decisions(claim()).items()}
    for tables, reason in ((empty, "no claim"), ({}, "decisions/lpact_decision_table")):
        made = make(material(tables))
        assert isinstance(made, Missing)
        assert reason in made.reason
