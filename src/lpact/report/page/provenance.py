"""How a run was made, for the page: options, versions, inputs, outputs, and what could not be had."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from lpact.store import Manifest

_EXPLAINED = {reason.value: reason.explanation for reason in Reason}


@dataclass(frozen=True)
class Unavailable:
    """Something that could not be had: what, where, and why."""

    what: str
    where: str
    why: str


def options(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every option by its dotted path, with its value."""
    return list(_flat(config, ""))


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, own in value.items():
            yield from _flat(own, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value and all(isinstance(own, Mapping) for own in value):
        for place, own in enumerate(value):
            yield from _flat(own, f"{path}[{own.get('name', place)}]")
    else:
        yield path, json.dumps(value, ensure_ascii=False)


def unavailable(tables: Mapping[str, pl.DataFrame]) -> list[Unavailable]:
    """What the audit could not find or had to leave out, each with its reason."""
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
            yield Unavailable("confirmatory role", row["dataset"], why)


def _controls(tables: Mapping[str, pl.DataFrame]) -> Iterator[Unavailable]:
    """A control that is missing in every layer of a model is one line."""
    if CONTROL_AVAILABILITY.name not in tables:
        return
    missing = tables[CONTROL_AVAILABILITY.name].filter(~pl.col("available"))
    keys = ["dataset", "control", "model", "reason", "detail"]
    for (dataset, control, model, reason, detail), own in missing.sort(*keys, "layer").group_by(
        keys, maintain_order=True
    ):
        layers = ", ".join(map(str, own["layer"]))
        where = f"{dataset}, {model}, {'layer' if own.height == 1 else 'layers'} {layers}"
        yield Unavailable(f"control {control}", where, _why(str(reason), str(detail)))


def _ingredients(tables: Mapping[str, pl.DataFrame]) -> Iterator[Unavailable]:
    for row in _rows(tables, INGREDIENT_AVAILABILITY.name):
        if not row["available"]:
            why = _why(row["reason"], row["detail"])
            yield Unavailable(f"{row['kind']} {row['name']}", row["dataset"], why)


def _modes(tables: Mapping[str, pl.DataFrame]) -> Iterator[Unavailable]:
    for row in _rows(tables, RELIABILITY_MODES.name):
        if not row["possible"]:
            what = f"reliability {row['mode'].replace('_', ' ')}"
            yield Unavailable(what, row["dataset"], _why(row["reason"]))


def _findings(tables: Mapping[str, pl.DataFrame]) -> Iterator[Unavailable]:
    for row in _rows(tables, FINDINGS.name):
        place = " ".join(str(row[key]) for key in ("dataset", "subject", "session", "run"))
        what = f"{row['severity']}: {row['field']}"
        why = f"{_why(row['reason'])} Found: {row['found']}. Expected: {row['expected']}."
        yield Unavailable(what, place, why)


def size(n_bytes: int) -> str:
    """A size in a unit that fits."""
    amount = float(n_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.3g} {unit}"
        amount /= 1000
    raise AssertionError("unreachable")


def inputs(manifest: Manifest) -> list[tuple[str, str, str, str]]:
    """Dataset, path, size and checksum of every source file."""
    return [(f.dataset, f.path, size(f.n_bytes), f.sha256) for f in manifest.inputs]


def outputs(manifest: Manifest) -> list[tuple[str, str, str]]:
    """Path, size and checksum of every table file."""
    return [(f.path, size(f.n_bytes), f.sha256) for f in manifest.outputs]
