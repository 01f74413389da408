"""Decision tables made by hand."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.lpact.figures.common import GATES
from lpact.analyses.lpact.tables.decisions import DECISIONS


def claim(passed: str = "", **changes: Any) -> dict[str, Any]:
    """One claim; ``passed`` names the letters of the gates that it passes."""
    letters = passed.split()
    return {
        "dataset": "d",
        "model": "m",
        "layer": 1,
        "mechanism": "surprisal",
        "gate_profile": "paper",
        "role": "primary",
        "n_subject_runs": 3,
        "raw_score": 0.5,
        "raw_positive": True,
        **{column: letter in letters for letter, column in GATES.items()},
        "integrated": False,
        "label": "control_explained",
        "first_failed_gate": "predictive",
        "beaten_by": "nuisance",
        "reason": "because",
        **changes,
    }


def decisions(*claims: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """The table of these claims, by name."""
    return {DECISIONS.name: pl.DataFrame(claims, infer_schema_length=None)}
