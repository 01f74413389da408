"""Tests of level 2 for one layer: the relational statistic beside its draws, as gate R pools them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.figures.common import LAYER, NUISANCE, SUBJECT_RUN, layer_name
from lpact.analyses.lpact.gates.calibrated.relational import SURROGATE, SWAP, UNIT_ORDER, pool
from lpact.report.figure import DESCRIPTION, Spec, values, with_marks
from lpact.report.theme import colour
from lpact.report.wording import counted, short_forms, signed

FEW_DRAWS = 20
"""Below so many draws they are shown one by one."""

EXTRAPOLATED = "*"
"""Stands behind a p-value that is finer than the rank among so many draws can be."""

_KINDS = {UNIT_ORDER: "shuffled unit orders", SURROGATE: "draws", SWAP: "exchanged units"}


def null_rows(nulls: pl.DataFrame) -> pl.DataFrame:
    """One row a test and rival: observed statistic, range of its draws, advantage and p-value, as gate R pools them.

    ``rank_bound`` is 1 / (1 + draws), the smallest p-value that a rank among the draws can give; a smaller one is
    ``extrapolated``.
    """
    made = []
    ok = nulls.filter(pl.col("reason") == "ok").sort(
        [*LAYER, "test", "against", *SUBJECT_RUN, "alignment", "profile"]
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
                "rank_bound": 1 / (1 + draws.size) if draws.size else None,
            }
        )
    kinds = list(_KINDS)
    # Draws rank no finer than the bound: what lies below it is the tail of a fitted distribution.
    beyond = pl.col("p_value") < pl.col("rank_bound") * (1 - 1e-9)
    frame = pl.DataFrame(made, infer_schema_length=None).with_columns(
        extrapolated=beyond.fill_null(value=False)
    )
    rank = pl.col("test").replace_strict({k: i for i, k in enumerate(kinds)}, default=len(kinds))
    return frame.sort([*LAYER, rank, pl.col("against") != NUISANCE, "against"])


def _labelled(tests: pl.DataFrame) -> pl.DataFrame:
    """The tests with what stands beside them: what is compared, and the p-value."""
    shown = [
        f"p {_p_value(p)}{EXTRAPOLATED if beyond else ''}"
        for p, beyond in tests.select("p_value", "extrapolated").iter_rows()
    ]
    rivals = short_forms(tests["against"], 26)
    rows = tests.with_columns(
        label=pl.concat_str(
            [
                pl.when(pl.col("test") == UNIT_ORDER)
                .then(pl.lit("unit order"))
                .otherwise(pl.col("against").replace_strict(rivals, return_dtype=pl.String)),
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
    return with_marks(rows, _test_text, "observed")


def tests_panel(tests: pl.DataFrame, height: float) -> Spec:
    """Tests down, in about ``height`` pixels: bar or ticks for draws, a point for what is observed, and the p-value."""
    rows = _labelled(tests)
    many = rows.filter(pl.col("n_draws") >= FEW_DRAWS).drop("draws")
    few = rows.filter(pl.col("n_draws") < FEW_DRAWS).explode("draws").drop_nulls("draws")
    x = {
        "field": "observed",
        "type": "quantitative",
        "scale": {"nice": 3},
        "axis": {
            "title": "relational statistic, and its draws",
            "grid": True,
            "tickCount": 3,
            "labelLimit": 0,
        },
    }
    labels = rows["label"].to_list()
    y = {
        "field": "label",
        "type": "nominal",
        "scale": {"domain": labels},
        "axis": {
            "title": None,
            "labelLimit": 0,
            "labelOverlap": False,
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
        "height": {"step": height / max(len(labels), 8)},
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
                "encoding": {"x": {"value": 180}, "text": {"field": "shown"}},
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
        f"{layer_name(row)}: real pattern against {against}: statistic {signed(row['observed'])}; "
        f"{counted(row['n_draws'], 'draw')} ({_KINDS.get(row['test'], row['test'])})"
    )
    if row["low"] is not None:
        text += f", 95 % between {signed(row['low'])} and {signed(row['high'])}"
    text += f"; advantage in similarity {signed(row['advantage'])}; p {_p_value(row['p_value'])}"
    if row["extrapolated"]:
        text += f", extrapolated by Student's distribution; the rank says p ≤ {_p_value(row['rank_bound'])}"
    return text
