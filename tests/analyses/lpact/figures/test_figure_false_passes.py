"""False-pass rates: every rate is drawn where it belongs, with its counts, and named for those who cannot see it."""

from __future__ import annotations

import re
from math import sqrt
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from figure_checks import EVIL, SVG, checked_svg, marks, material, texts, width_of
from rate_rows import rate, rates

from lpact.analyses.lpact.calibration.output import load_reference
from lpact.analyses.lpact.figures.rates import (
    FALSE_PASSES,
    WIDTH,
    false_pass_rows,
    false_passes,
    false_passes_of,
)
from lpact.analyses.lpact.tables.calibration import TRUTH_RATES
from lpact.report.figure import Figure, Missing
from lpact.report.render import picture, to_svg

IMAGES = Path(__file__).parents[4] / "docs" / "images"
FALSE = {"role": "false_pass"}
HAND = rates(
    rate(5, 20, gate="relational", **FALSE),
    rate(0, 20, gate="relational", profile="calibrated", **FALSE),
    rate(20, 20, gate="predictive", **FALSE),
    rate(1, 20, gate="predictive", profile="calibrated", **FALSE),
    rate(9, 20, gate="mechanism_specific"),
    rate(7, 20, gate="severe_control_level1", **FALSE),
    rate(2, 30, gate="other_integrated", truth=EVIL, **FALSE),
)


@pytest.fixture(scope="module")
def root() -> ElementTree.Element:
    return checked_svg(false_passes_of(HAND))


def test_rows_are_false_passes_of_the_drawn_gates_in_order():
    rows = false_pass_rows(HAND)
    shown = rows.select("truth", "gate", "gate_profile", "n_passes").rows()
    assert shown == [
        ("planted", "predictive", "paper", 20),
        ("planted", "predictive", "calibrated", 1),
        ("planted", "relational", "paper", 5),
        ("planted", "relational", "calibrated", 0),
        (EVIL, "other_integrated", "paper", 2),
    ]


def test_marks_stand_where_the_square_root_of_their_rate_is(root):
    points = [own for own in marks(root) if own.element.tag == f"{SVG}path"]
    found = {}
    for own in points:
        (x,) = re.findall(r"^translate\(([-\d.]+),", own.element.get("transform", ""))
        found[own.text.split(":")[0], own.profile] = (own.value, float(x))
    assert len(found) == 5
    for value, x in found.values():
        assert value is not None
        assert x == pytest.approx(WIDTH * sqrt(value), abs=0.6)
    assert ("truth planted, relational, point rules", "paper") in found


def test_counts_nominal_rate_and_names_are_written(root):
    shown = texts(root)
    assert {"nominal error rate 0.05", "predictive", "relational", "all gates, others"} <= set(shown)
    assert {"truth: planted", "n = 20 studies", "point rules", "statistical tests"} <= set(shown)
    counts = [own for own in shown if re.fullmatch(r"\d+", own)]
    # Axis ends are 0 and 1; the rest are the counts of the five rows.
    for panel_ends in ("0", "1") * 2:
        counts.remove(panel_ends)
    assert sorted(counts) == sorted(["20", "1", "5", "0", "2"])
    assert "9" not in counts


def test_a_profile_without_a_nominal_rate_has_no_line():
    alone = false_passes_of(HAND.filter(gate_profile="paper"))
    assert not any(own.startswith("nominal") for own in texts(checked_svg(alone)))
    assert isinstance(alone, Figure)
    assert "nominal" not in alone.caption


def test_words_name_the_worst_gate_of_each_profile():
    made = false_passes_of(HAND)
    assert isinstance(made, Figure)
    assert "point rules: largest false-pass rate 1.000 (predictive under planted, 20 of 20" in made.summary
    assert "statistical tests: largest false-pass rate 0.050 (predictive under planted" in made.summary
    assert "n = 50 in all" in made.caption
    assert "others" in made.caption


def test_names_from_data_stay_text(root):
    assert not list(root.iter(f"{SVG}script"))
    assert any(own.text.startswith("truth </title></svg><script>") for own in marks(root))


def test_the_shipped_rates_are_all_drawn_and_in_the_documentation():
    reference = load_reference().truth_rates
    expected = {
        (row["n_passes"], row["n_studies"], row["rate"])
        for row in reference.filter(role="false_pass").to_dicts()
        if not row["gate"].startswith("severe_control_level")
    }
    given = false_passes(material({}, {TRUTH_RATES.name: reference}))
    assert isinstance(given, Figure)
    root = ElementTree.fromstring(to_svg(given))
    assert {own.value for own in marks(root)} == {rate for *_, rate in expected}
    wanted = {own.text for own in marks(root)}
    n_rows = reference.filter(pl.col("role") == "false_pass", ~pl.col("gate").str.contains("level")).height
    assert len(wanted) == n_rows
    assert width_of(root) < 1000
    shown = ElementTree.parse(IMAGES / "false-passes.svg").getroot()
    assert {own.text for own in marks(shown)} == wanted
    assert shown.find(f"{SVG}style") is not None


@pytest.mark.parametrize("given", [material({}), material({}, {TRUTH_RATES.name: HAND.filter(role="power")})])
def test_without_false_passes_there_is_a_reason(given):
    made = false_passes(given)
    assert isinstance(made, Missing)
    svg = ElementTree.fromstring(picture(made))
    assert any(made.reason in own for own in texts(svg))
    assert FALSE_PASSES[1] in texts(svg)
