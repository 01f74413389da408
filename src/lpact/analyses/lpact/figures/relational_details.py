"""One layer at level 2 in full: similarities of all conditions by summary, and the tests beside their draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    LAYER,
    NUISANCE,
    REAL,
    SUBJECT_RUN,
    layer_name,
    run_name,
)
from lpact.analyses.lpact.figures.relational_tests import null_rows, tests_panel
from lpact.analyses.lpact.figures.similarities import SUMMARY, Similarities, nearest_rivals
from lpact.analyses.lpact.gates.calibrated.relational import UNIT_ORDER
from lpact.math.types import FloatArray
from lpact.report.figure import DESCRIPTION, Spec, values, with_marks
from lpact.report.theme import colour
from lpact.report.wording import counted, number, signed

NULLS = "relational/relational_null_draws"
_STEP = 40
_HEIGHT = 150


def detail(
    material: Material,
    found: Similarities,
    named: tuple[dict[str, Any], str],
    order: list[tuple[str, str]],
) -> Spec:
    """Similarities by summary at the left, tests at the right; ``named`` is a layer with its short name."""
    layer, title_text = named
    same = [pl.col(name) == layer[name] for name in LAYER]
    rows, runs = found.rows.filter(same), found.runs.filter(same)
    nulls = material.table(NULLS).filter(same) if material.has(NULLS) else None
    n_runs = runs.select(SUBJECT_RUN).n_unique()
    n_units = int(rows["n_units"].max() or 0)  # type: ignore[arg-type]
    title = {
        "text": title_text,
        "subtitle": f"{counted(n_runs, 'subject-run')}, up to {counted(n_units, 'unit')}",
        "fontSize": 12,
        "limit": 420,
        "offset": 6,
    }
    orders = unit_order_rows(nulls) if nulls is not None else _no_orders()
    left = {"title": title, **_similarity_panel(rows, runs, orders, order)}
    if nulls is None or not nulls.filter(pl.col("reason") == "ok").height:
        return left
    return {"hconcat": [left, tests_panel(null_rows(nulls), _HEIGHT)], "spacing": 20}


def _no_orders() -> pl.DataFrame:
    text, real = pl.String, pl.Float64
    return pl.DataFrame(
        schema={
            "dataset": text,
            "model": text,
            "layer": pl.Int64,
            "alignment": text,
            "profile": text,
            "low": real,
            "high": real,
            "n_draws": pl.Int64,
        }
    )


def unit_order_rows(nulls: pl.DataFrame) -> pl.DataFrame:
    """Range of the real similarity in shuffled unit orders, one row a summary.

    Draw by draw the mean over subject-runs (orders are shared by recordings of the same units), then the 2.5th and
    97.5th percentile over draws.
    """
    own = nulls.filter((pl.col("test") == UNIT_ORDER) & (pl.col("reason") == "ok"))
    made = []
    for _, part in own.sort([*LAYER, *SUMMARY, *SUBJECT_RUN]).group_by(
        [*LAYER, *SUMMARY], maintain_order=True
    ):
        draws = _mean_draws(part["draws"].to_list())
        if draws.size:
            low, high = np.percentile(draws, [2.5, 97.5])
            first = part.select(*LAYER, *SUMMARY).row(0, named=True)
            made.append({**first, "low": float(low), "high": float(high), "n_draws": draws.size})
    return pl.DataFrame(made, schema=_no_orders().schema)


def _mean_draws(lists: list[list[float | None]]) -> FloatArray:
    """Mean over subject-runs of every draw that all of them have."""
    length = min((len(cell) for cell in lists), default=0)
    stacked = np.array([cell[:length] for cell in lists], dtype=float).reshape(len(lists), length)
    mean = stacked.mean(axis=0)
    finite: FloatArray = mean[np.isfinite(mean)]
    return finite


def _similarity_panel(
    rows: pl.DataFrame, runs: pl.DataFrame, orders: pl.DataFrame, order: list[tuple[str, str]]
) -> Spec:
    """Summaries across, similarity upwards."""
    named = pl.concat_str([pl.col("alignment"), pl.col("profile")], separator="\n").alias("summary")
    rows, runs, orders = (
        with_marks(rows.with_columns(named), _condition_text, "similarity"),
        with_marks(runs.with_columns(named), _run_text, "similarity"),
        with_marks(orders.with_columns(named), _order_text, "high"),
    )
    controls = ~pl.col("condition").is_in([REAL, NUISANCE])
    nearest = nearest_rivals(rows)
    axis = {
        "title": None,
        "labelAngle": 0,
        "labelFontSize": 9,
        "labelExpr": "split(datum.label, '\\n')",
        "ticks": False,
        "domain": False,
        "labelLimit": 0,
        "labelOverlap": False,
    }
    x = {
        "field": "summary",
        "type": "nominal",
        "scale": {"domain": [f"{a}\n{p}" for a, p in order], "padding": 0.1},
        "axis": axis,
    }
    y = {"field": "similarity", "type": "quantitative", "axis": {"title": "profile similarity"}}
    tick = {"type": "tick", "thickness": 2, "size": 16, "color": colour("control")}
    triangle = {"type": "point", "shape": "triangle-left", "xOffset": 14, "aria": False}
    return {
        "width": {"step": _STEP},
        "height": _HEIGHT,
        "encoding": {"x": x, "y": y},
        "layer": [
            _zero(),
            {
                "data": values(orders),
                "mark": {"type": "bar", "size": 26, "color": colour("missing"), "opacity": 0.6},
                "encoding": {
                    "y": {"field": "low", "type": "quantitative"},
                    "y2": {"field": "high"},
                    "description": DESCRIPTION,
                },
            },
            _marks(rows.filter(controls), tick),
            _marks(
                rows.filter(pl.col("condition") == NUISANCE),
                {"type": "point", "shape": "diamond", "size": 50, "color": colour("nuisance")},
            ),
            _marks(
                runs.filter(pl.col("condition") == REAL),
                {
                    "type": "point",
                    "size": 18,
                    "xOffset": -14,
                    "opacity": 0.5,
                    "color": colour("real"),
                },
            ),
            _marks(
                rows.filter(pl.col("condition") == REAL),
                {"type": "point", "size": 70, "color": colour("real")},
            ),
            {
                "data": values(nearest),
                "mark": {**triangle, "size": 40, "color": colour("winner")},
            },
        ],
    }


def _zero() -> Spec:
    return {
        "data": {"values": [{"similarity": 0}]},
        "mark": {"type": "rule", "color": colour("ink"), "aria": False},
        "encoding": {"x": {"value": 0}, "x2": {"value": "width"}},
    }


def _marks(rows: pl.DataFrame, mark: Spec) -> Spec:
    return {"data": values(rows), "mark": mark, "encoding": {"description": DESCRIPTION}}


def _place_text(row: dict[str, Any]) -> str:
    return f"{layer_name(row)}, {row['alignment']} alignment, {row['profile']} profile similarity"


def _condition_text(row: dict[str, Any]) -> str:
    text = f"{_place_text(row)}: {row['condition']} {number(row['similarity'])}"
    if row["condition"] != REAL:
        counts = "counted" if row["counted"] else "not counted"
        text += f"; real ahead by {signed(row['advantage'])} ({counts} by point rules)"
    return f"{text}; mean over {counted(row['n_subject_runs'], 'subject-run')}"


def _run_text(row: dict[str, Any]) -> str:
    similarity = number(row["similarity"])
    return (
        f"{_place_text(row)}: {row['condition']} {similarity}, {run_name(row)}, "
        f"mean over {counted(row['n_units'], 'unit')}"
    )


def _order_text(row: dict[str, Any]) -> str:
    low, high = number(row["low"]), number(row["high"])
    return (
        f"{_place_text(row)}: real pattern in {counted(row['n_draws'], 'shuffled unit order')}, "
        f"95 % between {low} and {high}"
    )
