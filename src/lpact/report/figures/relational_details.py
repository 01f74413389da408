"""One layer at level 2 in full: similarities of all conditions by summary, and the tests beside their draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from lpact.decide.calibrated.relational import SURROGATE, SWAP, UNIT_ORDER, pool
from lpact.math.types import FloatArray
from lpact.report.figure import DESCRIPTION, Material, Spec, values, with_marks
from lpact.report.figures._layers import (
    LAYER,
    NUISANCE,
    REAL,
    RUN,
    counted,
    layer_name,
    number,
    run_name,
    short_layer_name,
)
from lpact.report.figures._profiles import SUMMARY, Similarities, nearest_rivals
from lpact.report.theme import colour

NULLS = "relational/relational_null_draws"
FEW_DRAWS = 20
"""Below so many draws they are shown one by one."""

_STEP = 40
_HEIGHT = 150
_KINDS = {UNIT_ORDER: "shuffled unit orders", SURROGATE: "draws", SWAP: "exchanged units"}


def detail(
    material: Material,
    found: Similarities,
    layer: dict[str, Any],
    order: list[tuple[str, str]],
) -> Spec:
    """Similarities by summary at the left, tests at the right."""
    same = [pl.col(name) == layer[name] for name in LAYER]
    rows, runs = found.rows.filter(same), found.runs.filter(same)
    nulls = material.table(NULLS).filter(same) if material.has(NULLS) else None
    n_runs = runs.select(RUN).n_unique()
    n_units = int(rows["n_units"].max() or 0)  # type: ignore[arg-type]
    title = {
        "text": short_layer_name(layer, 60),
        "subtitle": f"{counted(n_runs, 'subject-run')}, up to {counted(n_units, 'unit')}",
        "fontSize": 12,
        "limit": 420,
        "offset": 6,
    }
    orders = unit_order_rows(nulls) if nulls is not None else _no_orders()
    left = {"title": title, **_similarity_panel(rows, runs, orders, order)}
    if nulls is None or not nulls.filter(pl.col("reason") == "ok").height:
        return left
    return {"hconcat": [left, _tests_panel(null_rows(nulls))], "spacing": 20}


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
    for _, part in own.sort([*LAYER, *SUMMARY, *RUN]).group_by(
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


def null_rows(nulls: pl.DataFrame) -> pl.DataFrame:
    """One row a test and rival: observed statistic, range of its draws, advantage and p-value, as gate R pools them."""
    made = []
    ok = nulls.filter(pl.col("reason") == "ok").sort(
        [*LAYER, "test", "against", *RUN, "alignment", "profile"]
    )
    for _, part in ok.group_by([*LAYER, "test", "against"], maintain_order=True):
        pooled = pool(part)
        draws = pooled.draws[np.isfinite(pooled.draws)]
        ends = np.percentile(draws, [2.5, 97.5]) if draws.size else (None, None)
        made.append(
            {
                **part.select(*LAYER, "test", "against").row(0, named=True),
                "observed": pooled.observed,
                "low": ends[0],
                "high": ends[1],
                "draws": draws.tolist(),
                "n_draws": int(draws.size),
                "advantage": pooled.advantage,
                "p_value": pooled.p_value if draws.size else None,
            }
        )
    kinds = list(_KINDS)
    frame = pl.DataFrame(made, infer_schema_length=None)
    rank = pl.col("test").replace_strict({k: i for i, k in enumerate(kinds)}, default=len(kinds))
    return frame.sort([*LAYER, rank, pl.col("against") != NUISANCE, "against"])


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
        "labelLimit": _STEP + 4,
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
    text = f"{_place_text(row)}: {row['condition']} {number(row['similarity'], sign=False)}"
    if row["condition"] != REAL:
        counts = "counted" if row["counted"] else "not counted"
        text += f"; real ahead by {number(row['advantage'])} ({counts} by point rules)"
    return f"{text}; mean over {counted(row['n_subject_runs'], 'subject-run')}"


def _run_text(row: dict[str, Any]) -> str:
    similarity = number(row["similarity"], sign=False)
    return (
        f"{_place_text(row)}: {row['condition']} {similarity}, {run_name(row)}, "
        f"mean over {counted(row['n_units'], 'unit')}"
    )


def _order_text(row: dict[str, Any]) -> str:
    low, high = number(row["low"], sign=False), number(row["high"], sign=False)
    return (
        f"{_place_text(row)}: real pattern in {counted(row['n_draws'], 'shuffled unit order')}, "
        f"95 % between {low} and {high}"
    )


def _tests_panel(tests: pl.DataFrame) -> Spec:
    """Tests down: bar or ticks for draws, a point for what is observed, and the p-value."""
    shown = [f"p {_p_value(p)}" for p in tests["p_value"]]
    rows = tests.with_columns(
        label=pl.concat_str(
            [
                pl.when(pl.col("test") == UNIT_ORDER)
                .then(pl.lit("unit order"))
                .otherwise(pl.col("against")),
                pl.col("test").replace_strict(
                    {UNIT_ORDER: "shuffled", SURROGATE: "draws", SWAP: "exchanged"},
                    default="",
                    return_dtype=pl.String,
                ),
            ],
            separator=", ",
        ),
        shown=pl.Series(shown, dtype=pl.String),
    )
    rows = with_marks(rows, _test_text, "observed")
    many = rows.filter(pl.col("n_draws") >= FEW_DRAWS).drop("draws")
    few = rows.filter(pl.col("n_draws") < FEW_DRAWS).explode("draws").drop_nulls("draws")
    x = {
        "field": "observed",
        "type": "quantitative",
        "axis": {"title": "relational statistic, and its draws", "grid": True, "tickCount": 5},
    }
    labels = rows["label"].to_list()
    y = {
        "field": "label",
        "type": "nominal",
        "scale": {"domain": labels},
        "axis": {
            "title": None,
            "labelLimit": 190,
            "labelFontSize": 10,
            "ticks": False,
            "domain": False,
        },
    }
    bar = {"type": "bar", "height": 8, "color": colour("missing")}
    span = {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}
    tick = {"type": "tick", "thickness": 1.5, "size": 9, "color": colour("control")}
    return {
        "width": 170,
        "height": {"step": _HEIGHT / max(len(labels), 8)},
        "encoding": {"y": y},
        "layer": [
            {
                "data": {"values": [{"observed": 0}]},
                "mark": {"type": "rule", "color": colour("ink"), "aria": False},
                "encoding": {"x": x, "y": {"value": 0}, "y2": {"value": "height"}},
            },
            {"data": values(many), "mark": bar, "encoding": {**span, "description": DESCRIPTION}},
            {
                "data": values(few),
                "mark": tick,
                "encoding": {
                    "x": {"field": "draws", "type": "quantitative"},
                    "description": DESCRIPTION,
                },
            },
            {
                "data": values(rows.drop("draws")),
                "mark": {"type": "point", "size": 42, "color": colour("real")},
                "encoding": {"x": x, "description": DESCRIPTION},
            },
            {
                "data": values(rows.drop("draws")),
                "mark": {"type": "text", "align": "left", "fontSize": 10, "aria": False},
                "encoding": {"x": {"value": 176}, "text": {"field": "shown"}},
            },
        ],
    }


def _p_value(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _test_text(row: dict[str, Any]) -> str:
    against = "its own units in another order" if row["test"] == UNIT_ORDER else row["against"]
    text = (
        f"{layer_name(row)}: real pattern against {against}: statistic {number(row['observed'])}; "
        f"{counted(row['n_draws'], 'draw')} ({_KINDS.get(row['test'], row['test'])})"
    )
    if row["low"] is not None:
        text += f", 95 % between {number(row['low'])} and {number(row['high'])}"
    return (
        f"{text}; advantage in similarity {number(row['advantage'])}; p {_p_value(row['p_value'])}"
    )
