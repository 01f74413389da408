"""What a figure is: an Altair chart whose marks know which rows of the tables they stand for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from lpact.analyses.base import Material
from lpact.report.theme import vega_config
from lpact.tables import Table

if TYPE_CHECKING:
    import altair as alt

    Chart: TypeAlias = (
        alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart | alt.ConcatChart
    )

Spec = dict[str, Any]

VEGA_LITE = "6.4"
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

MARK = "mark"
"""Column that says what a mark stands for (`mark`); panels give it to the ``description`` channel."""


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
    summary
        What one sees in it, in a sentence or two, for those who cannot.
    chart
        Altair chart with its data; colours are those of `lpact.report.theme` only.
    """

    name: str
    title: str
    caption: str
    summary: str
    chart: Chart

    @property
    def spec(self) -> Spec:
        """The complete Vega-Lite specification, with schema and the shared configuration.

        It depends on the chart alone: themes and settings that a session has given Altair are left out.
        """
        # Validating inline rows takes seconds; the tests validate every figure without its rows.
        own = self.chart.to_dict(validate=False, context={"top_level": False})
        head = {"$schema": _SCHEMA, "description": self.summary, "config": vega_config()}
        made: Spec = drawable(head | own)
        return made

    def themed(self) -> Chart:
        """The chart with the shared configuration, to be displayed or changed with Altair."""
        chart = self.chart.copy(deep=False)
        chart.config, chart.description = vega_config(), self.summary
        return chart


@dataclass(frozen=True)
class Missing:
    """A picture that cannot be drawn from these tables, and why."""

    name: str
    title: str
    reason: str


MakeFigure = Callable[[Material], Figure | Missing]
Drawing: TypeAlias = "tuple[Chart, str, str]"
"""Chart, caption and summary."""


def figure(
    name: str, title: str, *needs: Table
) -> Callable[[Callable[[Material], Drawing | str]], MakeFigure]:
    """Decorator for a function that draws one figure, or says in a few words why it cannot be drawn.

    Without the tables that it ``needs`` the function is not called.
    """

    def decorate(draw: Callable[[Material], Drawing | str]) -> MakeFigure:
        @wraps(draw)
        def make(material: Material) -> Figure | Missing:
            from altair.utils.schemapi import debug_mode

            lacking = material.lacks(*(table.name for table in needs))
            if lacking:
                return Missing(name, title, f"the run has no table {', '.join(lacking)}")
            # Altair would validate each channel when it is made; the tests validate whole figures.
            with debug_mode(False):
                made = draw(material)
            if isinstance(made, str):
                return Missing(name, title, made)
            chart, caption, summary = made
            return Figure(name, title, caption, summary, chart)

        return make

    return decorate


_UNDRAWABLE = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def drawable(value: Any) -> Any:
    """A value whose texts show a box for characters that no picture can hold: control characters, lone surrogates."""
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

    ``value`` is the number that its position shows, in full, so that the picture can be checked against the tables.
    """
    known = {
        "dataset": dataset,
        "model": model,
        "layer": layer,
        "profile": profile,
        "value": value if value is not None and math.isfinite(value) else None,
        "text": text,
    }
    given = {key: drawable(own) for key, own in known.items() if own is not None}
    return json.dumps(given, sort_keys=True)


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
