"""What L-PACT asks of the shared tables of a study."""

from __future__ import annotations

from typing import Any

import pytest

import lpact
from lpact.errors import ConfigError

STUDY: dict[str, Any] = {
    "name": "study",
    "datasets": [{"name": "sim", "reader": "simulated"}],
    "models": [{"name": "integrated", "layers": [1]}],
}


@pytest.mark.parametrize(
    ("values", "option"),
    [
        ({"models": []}, "models"),
        ({"mechanisms": {"include": []}}, "mechanisms.include"),
    ],
)
def test_too_few_models_or_mechanisms_are_an_error(values: dict[str, Any], option: str) -> None:
    assert lpact.load_study(STUDY).config.analyses.keys() == {"lpact"}
    with pytest.raises(ConfigError, match=f"L-PACT needs at least . in '{option}'"):
        lpact.load_study(STUDY | values)


@pytest.mark.parametrize("measure", ["cca", "pls", "error_consistency"])
def test_measures_that_cannot_align_single_units_are_an_error(measure: str) -> None:
    table = {"lpact": {"relational": {"alignments": ["linear", measure]}}}
    with pytest.raises(ConfigError, match=f"cannot align units by the measure '{measure}'"):
        lpact.load_study(STUDY | table)
