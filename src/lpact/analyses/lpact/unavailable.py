"""What the source audit could not find or had to leave out: what, where and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    FINDINGS,
    INGREDIENT_AVAILABILITY,
    RELIABILITY_MODES,
)
from lpact.codes import Reason

Unavailable = tuple[str, str, str]
_EXPLAINED = {reason.value: reason.explanation for reason in Reason}


def unavailable(tables: Mapping[str, pl.DataFrame]) -> list[Unavailable]:
    """Everything that is missing, each with its reason."""
    return [
        *_roles(tables),
        *_controls(tables),
        *_ingredients(tables),
        *_modes(tables),
        *_findings(tables),
    ]


def _why(reason: str, detail: str = "") -> str:
    return detail or _EXPLAINED.get(reason, reason)


def _rows(tables: Mapping[str, pl.DataFrame], name: str) -> Iterator[dict[str, Any]]:
    if name in tables:
        yield from tables[name].iter_rows(named=True)


def _roles(tables: Mapping[str, pl.DataFrame]) -> Iterator[Unavailable]:
    for row in _rows(tables, EVIDENCE_FEASIBILITY.name):
        if not row["confirmatory"]:
            why = _why(row["role_reason"], row["role_detail"])
            yield ("confirmatory role", row["dataset"], why)


def _controls(tables: Mapping[str, pl.DataFrame]) -> Iterator[Unavailable]:
    """One line per control that is missing in layers of a model."""
    if CONTROL_AVAILABILITY.name not in tables:
        return
    missing = tables[CONTROL_AVAILABILITY.name].filter(~pl.col("available"))
    keys = ["dataset", "control", "model", "reason", "detail"]
    for (dataset, control, model, reason, detail), own in missing.sort(*keys, "layer").group_by(
        keys, maintain_order=True
    ):
        layers = ", ".join(map(str, own["layer"]))
        where = f"{dataset}, {model}, {'layer' if own.height == 1 else 'layers'} {layers}"
        yield (f"control {control}", where, _why(str(reason), str(detail)))


def _ingredients(tables: Mapping[str, pl.DataFrame]) -> Iterator[Unavailable]:
    for row in _rows(tables, INGREDIENT_AVAILABILITY.name):
        if not row["available"]:
            why = _why(row["reason"], row["detail"])
            yield (f"{row['kind']} {row['name']}", row["dataset"], why)


def _modes(tables: Mapping[str, pl.DataFrame]) -> Iterator[Unavailable]:
    for row in _rows(tables, RELIABILITY_MODES.name):
        if not row["possible"]:
            what = f"reliability {row['mode'].replace('_', ' ')}"
            yield (what, row["dataset"], _why(row["reason"]))


def _findings(tables: Mapping[str, pl.DataFrame]) -> Iterator[Unavailable]:
    for row in _rows(tables, FINDINGS.name):
        place = " ".join(str(row[key]) for key in ("dataset", "subject", "session", "run"))
        what = f"{row['severity']}: {row['field']}"
        why = f"{_why(row['reason'])} Found: {row['found']}. Expected: {row['expected']}."
        yield (what, place, why)
