"""What the verdicts depend on: counts after each change, marked where they differ from the run."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import polars as pl
import pytest
from figure_checks import EVIL, SVG, checked_svg, marks, material, texts, width_of
from robustness_rows import ablation, subject_run, table, threshold, without

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.sensitivity import (
    CLAIMS_WIDTH,
    make,
    rows_of,
    run_counts,
)
from lpact.analyses.lpact.tables.robustness import (
    CONTROL_ABLATION,
    LEAVE_DATASET_OUT,
    SUBJECT_RUN_DECISIONS,
    THRESHOLD_SENSITIVITY,
)
from lpact.report.figure import Figure, Missing
from lpact.report.theme import colour

BOTH = ("paper", "calibrated")
THRESHOLDS = table(
    THRESHOLD_SENSITIVITY,
    *(
        threshold("integrated_direction", rule, n, 50, profile, used=rule == "0.6")
        for profile, counts in (("paper", (8, 5, 5)), ("calibrated", (2, 2, 1)))
        for rule, n in zip(("0.5", "0.6", "0.7"), counts, strict=True)
    ),
    *(
        threshold("integrated_best_control_rule", rule, n, 50, profile, used=rule == "max")
        for profile, n in (("paper", 5), ("calibrated", 2))
        for rule in ("max", "mean_top_3")
    ),
    threshold("direction_only", "0.5", 12, 16),
    threshold("direction_gate_qualified", "0.5", 4, 16),
    threshold("predictive_best_control_rule", "max", 30, 200, used=True),
    threshold("brain_as_model_pass_fraction", "0.5", 0, 0),
)
CONTROLS = table(
    CONTROL_ABLATION,
    *(
        ablation(scenario, stage, profile, n, passed)
        for scenario, n, passed in (
            ("all_controls", 5, 30),
            (f"without_{EVIL}", 9, 60),
            ("without_a", 5, 31),
        )
        for stage in ("predictive", "relational")
        for profile in BOTH
    ),
    ablation("only_nuisance", "predictive", "paper", 10, 100),
)
DATASETS = table(LEAVE_DATASET_OUT, without("d", "paper", 0, "C", "A"), without("d", "calibrated", 2, "C", "C"))
RUNS = table(
    SUBJECT_RUN_DECISIONS,
    subject_run("d", "01", "paper", 5),
    subject_run("d", "02", "paper", 3, lost=2),
    subject_run("d", "03", "paper", 5),
    subject_run("d", "01", "calibrated", 2),
)


@pytest.fixture(scope="module")
def given() -> Material:
    return material({}, THRESHOLDS | CONTROLS | DATASETS | RUNS)


def by_change(given) -> dict[str, pl.DataFrame]:
    return {own["change"][0]: own for own in rows_of(given).partition_by("change")}


def lanes(block: pl.DataFrame) -> list[str]:
    return block["lane"].unique(maintain_order=True).to_list()


@pytest.fixture(scope="module")
def blocks(given) -> dict[str, pl.DataFrame]:
    return by_change(given)


@pytest.fixture(scope="module")
def made(given) -> Figure:
    figure = make(given)
    assert isinstance(figure, Figure)
    return figure


@pytest.fixture(scope="module")
def root(made) -> ElementTree.Element:
    return checked_svg(made)


def counts(block: pl.DataFrame, profile: str) -> list[tuple[str, int, int, bool]]:
    own = block.filter(gate_profile=profile)
    return own.select("lane", "n", "n_high", "changed").rows()


def test_the_runs_own_counts_are_those_of_what_it_used(given):
    assert run_counts(given) == {"paper": (5, 50), "calibrated": (2, 50)}


def test_thresholds_have_one_lane_per_value(blocks):
    own = blocks["Thresholds and rules"]
    assert lanes(own) == [
        "positive subject-runs ≥ 0.5",
        "positive subject-runs ≥ 0.6 (this run)",
        "positive subject-runs ≥ 0.7",
        "best control: the largest (this run)",
        "best control: mean of the largest three",
    ]
    first, used = lanes(own)[:2]
    assert counts(own, "paper")[:2] == [(first, 8, 8, True), (used, 5, 5, False)]
    assert counts(own, "calibrated")[2] == (lanes(own)[2], 1, 1, True)


def test_controls_start_with_the_runs_own_choice(blocks):
    own = blocks["Choice of controls"]
    assert lanes(own) == [
        "all controls (this run)",
        f"without {EVIL}",
        "without a",
        "nuisance features only",
    ]
    assert [row[1:] for row in counts(own, "paper")] == [
        (5, 5, False),
        (9, 9, True),
        (5, 5, False),
        (10, 10, True),
    ]
    assert len(counts(own, "calibrated")) == 3


def test_subject_runs_share_a_lane_with_the_range_of_their_counts(blocks):
    own = blocks["One subject-run left out"]
    assert counts(own, "paper") == [("one of d", 3, 5, True)]
    assert counts(own, "calibrated") == [("one of d", 2, 2, False)]
    assert own["words"].to_list() == [
        "none of 1 change a claim (at most 0 gained, 0 lost)",
        "1 of 3 change a claim (at most 0 gained, 2 lost)",
    ]


def test_outcomes_name_what_changes(blocks):
    outcomes = blocks["One dataset left out"]
    assert dict(outcomes.select("gate_profile", "words").iter_rows()) == {
        "paper": "outcome C instead of A",
        "calibrated": "outcome C",
    }


def test_marks_stand_at_their_counts(root):
    found = []
    for own in marks(root):
        at = re.match(r"translate\(([-\d.]+),", own.element.get("transform", ""))
        if own.element.tag == f"{SVG}path" and own.profile and at and own.value is not None:
            # Both ends of a range carry the smaller count.
            found.append((own.text, own.value, float(at[1])))
    single = [(value, x) for text, value, x in found if " to " not in text]
    assert len(single) > 15
    # 8 pixels are left free on both sides of 0 to 10, the largest count.
    for value, x in single:
        assert x == pytest.approx(8 + value / 10 * (CLAIMS_WIDTH - 16), abs=0.1)


def test_numbers_that_differ_are_bold(root):
    bold = [
        own.text
        for own in root.iter(f"{SVG}text")
        if own.get("fill") == colour("fail") and own.get("font-weight") == "bold"
    ]
    # Point rules: 8, 9, 10, 0 and 3–5; tests: 1, and 5, 9, 5 claims in place of 2.
    assert sorted(bold) == sorted(["8", "9", "10", "0", "3–5", "1", "5", "9", "5"])


def test_words_hold_the_counts(made):
    assert "point rules: 5 of 50; statistical tests: 2 of 50" in made.caption
    assert "not decided under that profile" in made.caption
    assert (
        "point rules: 5 of 50 claims pass every gate; changes that alter which claims do: "
        "thresholds and rules: 1 of 3, choice of controls: 2 of 3, one dataset left out: 1 of 1, "
        "one subject-run left out: 1 of 1" in made.summary
    )


def test_one_gained_for_one_lost_is_a_change_and_the_run_itself_is_none():
    swapped = {"n_gained": 1, "n_lost": 1}
    ablated = table(
        CONTROL_ABLATION,
        ablation("all_controls", "predictive", "paper", 5, 30),
        ablation("without_a", "predictive", "paper", 5, 30) | swapped,
        ablation("without_b", "predictive", "paper", 5, 30),
    )
    runs = table(
        SUBJECT_RUN_DECISIONS,
        subject_run("d", "01", "paper", 5, lost=1) | {"n_gained": 1},
        subject_run("e", "01", "paper", 5),
    )
    own = material({}, THRESHOLDS | ablated | runs)
    found = {name: counts(block, "paper") for name, block in by_change(own).items()}
    assert [row[3] for row in found["Choice of controls"]] == [False, True, False]
    assert [row[3] for row in found["One subject-run left out"]] == [True, False]
    summary = make(own).summary
    assert "choice of controls: 1 of 2, one subject-run left out: 1 of 2" in summary


def test_names_from_data_stay_text_and_the_picture_narrow(root):
    assert not list(root.iter(f"{SVG}script"))
    assert any(EVIL.split("\n")[0] in own.text for own in marks(root))
    assert width_of(root) < 1000


def test_thresholds_alone_are_enough():
    alone = make(material({}, THRESHOLDS))
    shown = texts(checked_svg(alone))
    assert "Thresholds and rules" in shown
    assert "Choice of controls" not in shown


@pytest.mark.parametrize("more", [{}, table(THRESHOLD_SENSITIVITY, threshold("direction_only", "0.5", 1, 2))])
def test_without_claims_there_is_a_reason(more: dict[str, pl.DataFrame]):
    missing = make(material({}, more))
    assert isinstance(missing, Missing)
    assert missing.reason
