"""The pages on the decision name every code that it can write."""

from __future__ import annotations

from pathlib import Path

import pytest

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.criteria import CriterionName
from lpact.codes import FinalLabel, Gate, Outcome, RowLabel

PAGES = Path(__file__).parents[4] / "docs/explanation"
TEXT = "".join((PAGES / name).read_text(encoding="utf-8") for name in ("decision.md", "calibrated.md"))


@pytest.mark.parametrize("code", [*FinalLabel, *RowLabel, *Gate])
def test_every_label_and_gate_is_explained(code: str) -> None:
    assert f"`{code}`" in TEXT


@pytest.mark.parametrize("name", CriterionName)
def test_every_criterion_is_explained(name: CriterionName) -> None:
    listed = {part.strip() for chunk in TEXT.split("[")[1:] for part in chunk.split("]")[0].split(",")}
    assert name.value in listed


@pytest.mark.parametrize("option", GatesConfig.model_fields)
def test_every_threshold_is_explained(option: str) -> None:
    assert option in TEXT


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_is_explained(outcome: Outcome) -> None:
    assert f"\n| {outcome.value} | " in TEXT
