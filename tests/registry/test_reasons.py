"""Codes: each has one spelling and one explanation."""

from __future__ import annotations

import json
import re

import pytest

from lpact.codes import ALL_CODES, FinalLabel, Gate, Outcome, Reason, RowLabel


@pytest.mark.parametrize("family", ALL_CODES)
def test_codes_are_explained_in_a_sentence(family: type[Reason]) -> None:
    for member in family:
        assert re.fullmatch(r"[A-Z].*[.]", member.explanation), member
        assert member.value == member.name or member.value == member.name.lower()


@pytest.mark.parametrize("family", ALL_CODES)
def test_codes_are_plain_text(family: type[Reason]) -> None:
    for member in family:
        assert isinstance(member, str)
        assert f"{member}" == member.value
        assert json.loads(json.dumps(member)) == member.value
        assert family(member.value) is member


@pytest.mark.parametrize("family", ALL_CODES)
def test_no_code_or_explanation_is_given_twice(family: type[Reason]) -> None:
    # An enum silently makes an alias of a second member with the same value.
    assert len(family.__members__) == len(list(family))
    assert len({member.explanation for member in family}) == len(list(family))


def test_every_family_is_listed() -> None:
    assert set(ALL_CODES) == {FinalLabel, Gate, RowLabel, Reason, Outcome}


def test_the_order_of_labels_and_gates_is_the_order_of_the_decision() -> None:
    assert [label.value for label in FinalLabel] == [
        "diagnostic_only",
        "insufficient_coverage",
        "integrated_candidate",
        "mechanism_specific_candidate",
        "relational_candidate",
        "predictive_only",
        "insufficient_brain_ceiling",
        "control_explained",
        "null",
    ]
    assert [outcome.value for outcome in Outcome] == ["A", "B", "C", "D", "I"]
    assert {gate.value for gate in Gate} == {
        "predictive",
        "relational",
        "mechanism",
        "ceiling",
        "severe_control",
        "replication",
    }
