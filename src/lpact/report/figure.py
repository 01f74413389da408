"""What a figure is: a Vega-Lite specification whose marks know which rows of the tables they stand for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from lpact.config import StudyConfig

Spec = dict[str, Any]

MARK = "mark"
"""Column of a figure's data that says what a mark stands for; give it to the ``description`` channel."""

DESCRIPTION: Mapping[str, Any] = {"field": MARK, "type": "nominal"}
"""The ``description`` channel of every mark that stands for rows."""


@dataclass(frozen=True)
class Figure:
    """One picture.

    Attributes
    ----------
    name
        File name without ending, and anchor in the page.
    title
        What it shows, in a few words.
    caption
        How to read it: what is drawn, in which unit, over how many; what is missing and why.
    spec
        Vega-Lite specification with its data; colours are of `lpact.report.theme` only.
    summary
        What one sees in it, in a sentence or two, for those who cannot.
    """

    name: str
    title: str
    caption: str
    spec: Spec
    summary: str


@dataclass(frozen=True)
class Missing:
    """A picture that cannot be drawn from these tables, and why."""

    name: str
    title: str
    reason: str


@dataclass(frozen=True)
class Material:
    """What figures are made from: tables by full name, the configuration, and what other commands computed.

    ``more`` holds tables that are not the run's own: those of `lpact.analyses.lpact.robustness`, and the shipped rates of the gates.
    """

    tables: Mapping[str, pl.DataFrame]
    config: StudyConfig
    more: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def table(self, name: str) -> pl.DataFrame:
        """A table by full name; one that is not there is a `KeyError`."""
        return self.tables[name] if name in self.tables else self.more[name]

    def has(self, *names: str) -> bool:
        """Whether all of these tables are there."""
        return all(name in self.tables or name in self.more for name in names)

    def lacks(self, *names: str) -> tuple[str, ...]:
        """Those of these tables that are not there."""
        return tuple(name for name in names if not self.has(name))


MakeFigure = Callable[[Material], Figure | Missing]


_UNDRAWABLE = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def drawable(value: Any) -> Any:
    """A value in whose texts every character that no picture can hold (a control character, half a pair) is a box."""
    if isinstance(value, str):
        return _UNDRAWABLE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {drawable(key): drawable(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [drawable(own) for own in value]
    return value


def mark(
    text: str,
    *,
    dataset: str | None = None,
    model: str | None = None,
    layer: int | None = None,
    profile: str | None = None,
    value: float | None = None,
) -> str:
    """What a mark stands for: the text that is shown for it, and what it can be filtered by.

    ``value`` is the number that its place shows, in full, for those who check the picture against the tables.
    """
    known = {
        "dataset": dataset,
        "model": model,
        "layer": layer,
        "profile": profile,
        "value": value if value is not None and math.isfinite(value) else None,
        "text": text,
    }
    told = {key: drawable(own) for key, own in known.items() if own is not None}
    return json.dumps(told, sort_keys=True)


def with_marks(
    rows: pl.DataFrame, text: Callable[[dict[str, Any]], str], value: str = ""
) -> pl.DataFrame:
    """The rows with a column `MARK`; dataset, model, layer and gate profile are taken from columns of those names."""
    made = [
        mark(
            text(row),
            dataset=row.get("dataset"),
            model=row.get("model"),
            layer=row.get("layer"),
            profile=row.get("gate_profile"),
            value=row.get(value) if value else None,
        )
        for row in rows.iter_rows(named=True)
    ]
    return rows.with_columns(pl.Series(MARK, made, dtype=pl.String))


def values(rows: pl.DataFrame) -> dict[str, Any]:
    """Rows as the data of a specification; what is not finite is missing."""
    floats = [name for name, kind in rows.schema.items() if kind.is_float()]
    finite = rows.with_columns(
        pl.when(pl.col(name).is_finite()).then(pl.col(name)) for name in floats
    )
    return {"values": finite.to_dicts()}
