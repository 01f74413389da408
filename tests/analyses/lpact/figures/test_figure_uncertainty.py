"""Intervals of every level: where they stand, which have none, what one subject-run does, what is missing."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import polars as pl
import pytest
from figure_checks import EVIL, SVG, DrawnMark, checked_svg, marks, material, texts, width_of
from robustness_rows import interval, level, mechanism, one_out, table

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.uncertainty import level_rows, make, mechanism_rows
from lpact.analyses.lpact.tables.robustness import (
    CAUSAL_UNCERTAINTY,
    LEAVE_SUBJECT_RUN_OUT,
    UNCERTAINTY,
)
from lpact.report.figure import Figure, Missing
from lpact.report.theme import colour

P, S, BRAIN = "predictive_delta", "stripping_drop", "brain_as_model_run_to_run"
LEVELS = table(
    UNCERTAINTY,
    level("b", P, 0.4, 0.1, 0.8, 6),
    level("a", P, -0.2, -0.3, -0.1, 7),
    level("a", S, 0.05),
    level("b", S, None),
    level("a", BRAIN, 0.6, 0.5, 0.7, 6, unit="source_target_pair"),
)
ONE_OUT = table(LEAVE_SUBJECT_RUN_OUT, one_out("a", P, -0.4, 0.2), one_out("b", P, 0.3, 0.5))
MECHANISMS = table(
    CAUSAL_UNCERTAINTY,
    mechanism("a", "surprisal", "drop", 0.5, 0.4, 0.6),
    mechanism("a", "surprisal", "matching_drop", 0.3, 0.2, 0.4, 6),
    mechanism("a", "surprisal", "margin", -0.1, -0.2, 0.1, 6),
    mechanism("a", "surprisal", "mismatch_margin", 0.2),
)


@pytest.fixture(scope="module")
def given() -> Material:
    return material({}, LEVELS | ONE_OUT | MECHANISMS)


@pytest.fixture(scope="module")
def made(given) -> Figure:
    figure = make(given)
    assert isinstance(figure, Figure)
    return figure


@pytest.fixture(scope="module")
def root(made) -> ElementTree.Element:
    return checked_svg(made)


def points(root: ElementTree.Element) -> list[DrawnMark]:
    return [own for own in marks(root) if own.element.tag == f"{SVG}path"]


def test_rows_hold_every_level_and_dataset_in_order(given):
    rows = level_rows(given)
    assert rows.select("level", "dataset", "mean").rows() == [
        (P, "a", -0.2),
        (P, "b", 0.4),
        (S, "a", 0.05),
        (S, "b", None),
        (BRAIN, "a", 0.6),
        (BRAIN, "b", None),
    ]
    assert rows["sign_flip"].to_list() == [True, False, False, False, False, False]


def test_points_stand_on_one_scale_with_zero(root):
    found = {own.text.split(":")[0]: own for own in points(root)}
    assert {own.value for own in found.values()} == {-0.2, 0.4, 0.05, 0.6, 0.3, -0.1, 0.2}

    def at(name: str) -> float:
        (x,) = re.findall(r"translate\(([-\d.]+),", found[name].element.get("transform", ""))
        return float(x)

    zero = [
        float(re.findall(r"translate\(([-\d.]+),", own.get("transform", ""))[0])
        for own in root.iter(f"{SVG}line")
        if own.get("stroke") == colour("ink")
    ]
    # In the panel of level 1, means of -0.2 and 0.4 lie on both sides of zero, one twice as far as the other.
    low, high = at("a, predictive delta"), at("b, predictive delta")
    assert any((high - z) == pytest.approx(2 * (z - low), abs=0.1) for z in zero)
    assert low < high


def test_one_unit_is_an_open_point_without_an_interval(root):
    by_text = {own.text: own for own in points(root)}
    (alone,) = [own for text, own in by_text.items() if text.startswith("a, stripping")]
    (sure,) = [own for text, own in by_text.items() if text.startswith("b, predictive")]
    assert alone.element.get("fill") == colour("paper")
    assert sure.element.get("fill") == colour("real")
    assert "too few for an interval; n = 1 " in alone.text
    assert "95 % interval 0.1000 to 0.8000; n = 6 subject-runs" in sure.text
    lines = {own.text for own in marks(root) if own.element.tag == f"{SVG}line"}
    assert sure.text in lines
    mismatch = [text for text in by_text if "mismatch" in text]
    assert mismatch
    assert by_text[mismatch[0]].element.get("fill") == colour("paper")


def test_intervals_are_as_long_as_they_are(root):
    (own,) = [
        mark for mark in marks(root) if mark.text.startswith("b, predictive") and mark.element.tag == f"{SVG}line"
    ]
    (other,) = [
        mark for mark in marks(root) if mark.text.startswith("a, predictive") and mark.element.tag == f"{SVG}line"
    ]
    # 0.1 to 0.8 against -0.3 to -0.1.
    assert abs(float(own.element.get("x2", 0))) == pytest.approx(3.5 * abs(float(other.element.get("x2", 0))), rel=0.01)


def test_the_influence_of_one_subject_run_is_written(root, made):
    assert texts(root).count("sign flips") == 1
    (flip,) = {own.text for own in marks(root) if own.text.startswith("a, predictive")}
    assert "the sign flips without one subject-run" in flip
    assert "(1 of 4)" in made.caption


def test_what_is_missing_is_said(root, made):
    assert texts(root).count("not measured") == 2 * 2  # once as a strip of paper
    shown = {own.text for own in marks(root)}
    assert "b, stripping drop: not measured (nothing measured)." in shown
    assert "b, brain as model run to run: not measured (no row)." in shown
    assert "2 of 6 contrasts were not measured" in made.caption


def test_the_drop_over_all_targets_is_left_to_its_table(given, made):
    assert mechanism_rows(given)["quantity"].to_list() == [
        "matching_drop",
        "margin",
        "mismatch_margin",
    ]
    assert CAUSAL_UNCERTAINTY.name in made.caption


def test_the_summary_counts_intervals_beside_zero(made):
    assert "Level 1, predictive: interval above zero in 1, below zero in 1 of 2" in made.summary
    assert (
        "Level 3, stripping, any target: interval above zero in 0, below zero in 0 of 1 datasets (1 without"
        in made.summary
    )
    brains = "Brain as model, run to run: interval (too narrow, pairs share recordings) above zero in 1"
    assert brains in made.summary


def test_few_units_have_an_open_point_and_no_interval():
    rows = [level(name, own, 0.4, 0.15, 0.75, 4) for name in "ab" for own in (P, S)]
    drops = [mechanism(name, "surprisal", "matching_drop", 0.4, 0.15, 0.75, 3) for name in "ab"]
    few = table(UNCERTAINTY, *rows) | table(CAUSAL_UNCERTAINTY, *drops)
    figure = make(material({}, few))
    assert isinstance(figure, Figure)
    root = checked_svg(figure)
    assert {own.element.get("fill") for own in points(root)} == {colour("paper")}
    assert not [own for own in marks(root) if own.element.tag == f"{SVG}line"]
    assert not [own for own in marks(root) if "95 % interval" in own.text]
    assert "fewer than 5 units cover far less than 95 %: 4 of 4 contrasts" in figure.caption
    assert "interval above zero in 0, below zero in 0 of 2 datasets (2 without" in figure.summary
    assert "share recordings" not in figure.caption  # no brain in a model's place


def test_what_intervals_do_not_prove_is_said(made, root):
    assert "Pairs share recordings and are not independent" in made.caption
    assert "above zero for every model that predicts" in made.caption
    assert "Level 3, stripping, any target" in texts(root)
    shown = [own.text for own in marks(root) if "brain as model" in own.text and "interval" in own.text]
    assert shown
    assert all("this interval is too narrow" in own for own in shown)


def test_axes_name_metric_and_units(root):
    assert "real − best control, held-out Pearson r" in texts(root)
    assert {"n = 7", "n = 6", "n = 1"} <= set(texts(root))


def test_a_large_study_stays_narrow_and_names_stay_text():
    many = [f"{EVIL} number {i}" for i in range(12)]
    rows = [
        level(name, own, 0.1 * i, 0.05 * i, 0.2 * i)
        for i, name in enumerate(many)
        for own in (P, S, BRAIN, "relational_delta", "ceiling_delta")
    ]
    large = make(material({}, table(UNCERTAINTY, *rows)))
    root = checked_svg(large)
    assert width_of(root) < 1000
    assert len(points(root)) == len(rows)
    assert not list(root.iter(f"{SVG}script"))
    labels = {own for own in texts(root) if own.startswith("</title>")}
    assert len(labels) == 12


@pytest.mark.parametrize("more", [{}, table(UNCERTAINTY, level("a", P, None))])
def test_without_numbers_there_is_a_reason(more: dict[str, pl.DataFrame]):
    missing = make(material({}, more))
    assert isinstance(missing, Missing)
    assert missing.reason


def test_an_interval_without_ends_is_not_one():
    assert interval(0.1)["degenerate"]
    assert not interval(0.1, 0.0, 0.2)["degenerate"]
