"""What a figure is: an Altair chart whose marks know which rows of the tables they represent."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from string import Formatter
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from lpact.analyses.base import Material
from lpact.report.theme import vega_config
from lpact.tables import Table
from lpact.wording import counted, fixed, whole

if TYPE_CHECKING:
    import altair as alt

    Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart | alt.ConcatChart

Spec = dict[str, Any]

VEGA_LITE = "6.4"
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

MARK = "mark"
"""Column that says what a mark represents (`mark`); panels give it to the ``description`` channel."""


@dataclass(frozen=True)
class Figure:
    """One picture.

    ``name`` is the file name without ending; ``caption`` says how to read the picture, and what is missing and why;
    ``summary`` says in a sentence or two what it shows; ``chart`` uses colours of `lpact.report.theme` only.
    """

    name: str
    title: str
    caption: str
    summary: str
    chart: Chart

    @property
    def spec(self) -> Spec:
        """The complete Vega-Lite specification; Altair themes of the session do not change it."""
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
Caption = Sequence[str] | Mapping[str, object]
"""Sentences (empty ones are left out), or sentences with whether they hold."""
Drawing: TypeAlias = "tuple[Chart, Caption, str]"
"""Chart, caption and summary."""


def figure(name: str, title: str, *needs: Table) -> Callable[[Callable[[Material], Drawing | str]], MakeFigure]:
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
                return finished(name, title, draw(material))

        return make

    return decorate


def finished(name: str, title: str, drawn: Drawing | str) -> Figure | Missing:
    """The figure of a drawing; words alone say why there is none."""
    if isinstance(drawn, str):
        return Missing(name, title, drawn)
    chart, caption, summary = drawn
    if isinstance(caption, Mapping):
        caption = [sentence for sentence, holds in caption.items() if holds]
    return Figure(name, title, " ".join(filter(None, caption)), summary, chart)


_UNDRAWABLE = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def drawable(value: Any) -> Any:
    """A value whose texts show a box for characters that XML cannot hold: control characters, lone surrogates."""
    if isinstance(value, str):
        return _UNDRAWABLE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {drawable(key): drawable(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [drawable(own) for own in value]
    return value


def mark(text: str, **about: Any) -> str:
    """The rows behind a mark: the text that is shown for it, and what it can be filtered by (dataset, model …).

    ``value`` is the number that its position shows, in full, so that the picture can be checked against the tables.
    """
    value = about.get("value")
    if value is not None and not math.isfinite(value):
        about["value"] = None
    given = {"text": text} | {key: own for key, own in about.items() if own is not None}
    return json.dumps(drawable(given), sort_keys=True)


def with_marks(rows: pl.DataFrame, text: str | Callable[[dict[str, Any]], str], value: str = "") -> pl.DataFrame:
    """The rows with a column `MARK`; dataset, model, layer and gate profile are taken from columns of those names.

    ``text`` is a template with names of columns (`filled`), or a function of the row.
    """
    made = [
        mark(
            filled(text, row) if isinstance(text, str) else text(row),
            dataset=row.get("dataset"),
            model=row.get("model"),
            layer=row.get("layer"),
            profile=row.get("gate_profile"),
            value=row.get(value) if value else None,
        )
        for row in rows.iter_rows(named=True)
    ]
    return rows.with_columns(pl.Series(MARK, made, dtype=pl.String))


class _Filler(Formatter):
    def format_field(self, value: Any, spec: str) -> str:
        if isinstance(value, bool):
            return ""
        if isinstance(value, int):
            return counted(value, spec) if spec else whole(value)
        if value is None or isinstance(value, float):
            decimals = int(spec.strip("+") or 3)
            return fixed(value, decimals, sign=spec.startswith("+"))
        return str(value)


_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")


def filled(template: str, row: Mapping[str, Any]) -> str:
    """A template with the values of a row.

    ``{score}`` has three decimals, ``{score:+}`` a sign, ``{score:+4}`` four decimals and a sign, ``{n:unit}`` is
    ``1 unit`` or ``2 units``. A part in square brackets is left out where one of its values is missing, empty or false;
    true values write nothing.
    """

    def part(found: re.Match[str]) -> str:
        values = [row[name] for _, name, _, _ in Formatter().parse(found[1]) if name]
        return "" if any(own is None or own is False or own == "" for own in values) else found[1]

    return _Filler().vformat(_OPTIONAL.sub(part, template), (), row)
