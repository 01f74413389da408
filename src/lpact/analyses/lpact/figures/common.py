"""Names and small pieces that figures share."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.codes import FinalLabel

GATES: dict[str, str] = {
    "P": "predictive",
    "S": "severe_control",
    "R": "relational",
    "M": "mechanism_specific",
    "T": "ceiling",
    "Rep": "replication",
}
"""Column of the decision table behind each gate's letter, in the order of the chain."""

GATE_NAMES: dict[str, str] = {
    "P": "predictive",
    "S": "severe controls",
    "R": "relational",
    "M": "mechanism",
    "T": "brain–brain ceiling",
    "Rep": "replication",
}
"""What the letters stand for."""

PROFILES: dict[str, str] = {PAPER: "point rules", CALIBRATED: "every gate a test"}
"""Gate profiles, and what they are called in pictures."""

LABEL_RANK: dict[str, int] = {label.value: rank for rank, label in enumerate(FinalLabel)}
"""Place of each verdict in the order in which they are tried."""

NOT_CONTROLS = ("real", "nuisance", "nuisance_plus_model")
"""Conditions of level 1 that are not severe controls."""


def names(frame: pl.DataFrame, column: str) -> list[str]:
    """The distinct values of a column, in the order in which they come."""
    return [str(own) for own in frame[column].unique(maintain_order=True)]
