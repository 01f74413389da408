"""How often gates pass that should not, by known truth, gate and gate profile."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import names
from lpact.analyses.lpact.figures.profile_marks import PROFILE, looks, profile_names, with_profile
from lpact.analyses.lpact.figures.rates import DRAWN_GATES, drawn, of_reference
from lpact.analyses.lpact.tables.calibration import TRUTH_RATES
from lpact.report.figure import DESCRIPTION, Figure, Missing, Spec, values, with_marks
from lpact.report.theme import colour
from lpact.report.wording import span

NAME, TITLE = "false_passes", "False passes: how often a gate passes in error"
COLUMNS, WIDTH, LANE = 2, 230, 22
TICKS = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)
COUNT_AT, COUNT_GAP = 24, 44
"""Pixels from the panel to the first column of counts, and from one column to the next."""


def make(material: Material) -> Figure | Missing:
    """The shipped calibration's false-pass rates."""
    if not material.has(TRUTH_RATES.name):
        return Missing(NAME, TITLE, "the rates of the gates were not given")
    return of_reference(figure(material.table(TRUTH_RATES.name)))


def figure(truth_rates: pl.DataFrame) -> Figure | Missing:
    """A panel a truth, a lane a gate, both profiles in it. ``truth_rates`` are rows of ``calibration/truth_rates``."""
    rows = rows_of(truth_rates)
    if rows.is_empty():
        return Missing(NAME, TITLE, "no truth of the calibration has a gate that passes in error")
    return Figure(NAME, TITLE, _caption(rows), _summary(rows), _spec(rows))


def rows_of(truth_rates: pl.DataFrame) -> pl.DataFrame:
    """False-pass rates of the drawn gates; truths with the most of them first, gates in the order of the chain."""
    rows = with_profile(drawn(truth_rates, "false_pass"))
    n_gates = pl.col("gate").n_unique().over("truth")
    rows = rows.with_columns(n_gates=n_gates).sort(
        "n_gates", "truth", "place", "gate_profile", descending=[True, False, False, True]
    )
    return with_marks(rows, _text, value="rate")


def _text(row: dict[str, Any]) -> str:
    why = f" {row['why']}" if row.get("why") else ""
    return (
        f"truth {row['truth']}, {row['gate_name']}, {row[PROFILE]}: {row['n_passes']:,} of {row['n_studies']:,} "
        f"studies pass in error, rate {row['rate']:.3f} (95 % {row['low']:.3f} to {row['high']:.3f}).{why}"
    )


def _spec(rows: pl.DataFrame) -> Spec:
    profiles = profile_names(rows["gate_profile"].unique().to_list())
    truths = names(rows, "truth")
    panels = [
        _panel(rows.filter(truth=truth), truth, profiles, is_last=i >= len(truths) - COLUMNS)
        for i, truth in enumerate(truths)
    ]
    return {"columns": COLUMNS, "concat": panels, "spacing": {"row": 18, "column": 20}}


def _panel(rows: pl.DataFrame, truth: str, profiles: list[str], *, is_last: bool) -> Spec:
    """One truth: lanes of gates; counts stand right of the panel, a column a profile."""
    gates = [name for gate, name in DRAWN_GATES.items() if gate in rows["gate"]]
    title = "share of studies, square-root scale" if is_last else None
    lane = {"field": "gate_name", "type": "nominal", "sort": gates, "title": None}
    axis_y = {"grid": False, "domain": False, "ticks": False, "labelPadding": 9}
    axis_x = {"values": list(TICKS), "grid": True, "title": title, "format": "~g"}
    axis_x |= {"labelFlush": False, "tickSize": 3}
    scale = {"type": "sqrt", "domain": [0, 1]}
    offset = {"field": PROFILE, "type": "nominal", "sort": profiles, "scale": {"paddingInner": 0.2}}
    encode = {
        "y": {**lane, "axis": axis_y},
        "yOffset": offset,
        "description": DESCRIPTION,
        **looks(profiles),
    }
    across = {"field": "low", "type": "quantitative", "scale": scale, "axis": axis_x}
    layers: list[Spec] = [
        *_nominal(rows),
        {
            "mark": {"type": "rule", "strokeWidth": 1.5},
            "encoding": {
                **{key: own for key, own in encode.items() if key not in ("shape", "fill")},
                "x": across,
                "x2": {"field": "high"},
            },
        },
        {
            "mark": {"type": "point", "size": 42, "strokeWidth": 1.4},
            "encoding": {**encode, "x": {**across, "field": "rate"}},
        },
        *_heads(profiles),
        *(_counts(place, name, lane) for place, name in enumerate(profiles)),
    ]
    return {
        "title": {
            "text": f"truth: {truth}",
            "subtitle": f"n = {span(rows['n_studies'])} studies",
            "offset": 4,
            "fontSize": 12,
            "frame": "group",
        },
        "data": values(rows),
        "width": WIDTH,
        "height": {"step": LANE, "for": "position"},
        "layer": layers,
    }


def _nominal(rows: pl.DataFrame) -> list[Spec]:
    """The nominal rate, where the profile has one."""
    nominal = sorted(set(rows["alpha"].drop_nulls()))
    if not nominal:
        return []
    data = {"values": [{"rate": own, "told": f"nominal {own:g}"} for own in nominal]}
    x = {"field": "rate", "type": "quantitative"}
    dashed = {"type": "rule", "strokeDash": [4, 3], "color": colour("ink")}
    above = {"type": "text", "baseline": "bottom", "fontSize": 10, "y": -3}
    return [
        {"data": data, "mark": dashed, "encoding": {"x": x}},
        {"data": data, "mark": above, "encoding": {"x": x, "text": {"field": "told"}}},
    ]


def _heads(profiles: list[str]) -> list[Spec]:
    """Heads of the columns of counts: the profiles' marks, and a word."""
    at = [WIDTH + COUNT_AT + i * COUNT_GAP - 4 for i in range(len(profiles))]
    marks: list[Spec] = [
        {
            "data": {"values": [{PROFILE: name}]},
            "mark": {"type": "point", "size": 42, "strokeWidth": 1.4, "x": x, "y": -8},
            "encoding": looks(profiles),
        }
        for x, name in zip(at, profiles, strict=True)
    ]
    middle = sum(at) / len(at)
    word = {"type": "text", "text": "passed", "fontSize": 10, "x": middle, "y": -22}
    return [*marks, {"data": {"values": [{}]}, "mark": word, "encoding": {}}]


def _counts(place: int, name: str, lane: Spec) -> Spec:
    """Studies that pass, in a column right of the panel."""
    mark = {
        "type": "text",
        "align": "right",
        "fontSize": 10,
        "x": WIDTH + COUNT_AT + place * COUNT_GAP,
    }
    return {
        "transform": [{"filter": {"field": PROFILE, "equal": name}}],
        "mark": mark,
        "encoding": {"y": lane, "text": {"field": "n_passes", "type": "quantitative"}},
    }


def _caption(rows: pl.DataFrame) -> str:
    nominal = sorted(set(rows["alpha"].drop_nulls()))
    line = (
        f" The dashed line is the nominal error rate of the tests ({', '.join(f'{own:g}' for own in nominal)}); "
        "point rules have none."
        if nominal
        else ""
    )
    n = rows.unique("truth")["n_studies"].sum()
    others = rows["gate"].str.starts_with("other_").any()
    other = " Lanes with “others” are about mechanisms that were not planted." if others else ""
    return (
        f"A panel is a known truth that studies were simulated from (n = {n:,} in all); a lane is a gate that has "
        "nothing to find there, so that every pass is an error. Marks are shares of studies with 95 % Wilson "
        "intervals; "
        f"the numbers on the right are the studies in which the gate passed.{line}{other} “All gates” is an integrated "
        "claim."
    )


def _summary(rows: pl.DataFrame) -> str:
    told = []
    for (profile,), own in rows.group_by(PROFILE, maintain_order=True):
        top = own.sort("rate", "truth", "place", descending=[True, False, False]).row(0, named=True)
        told.append(
            f"{profile}: largest false-pass rate {top['rate']:.3f} ({top['gate_name']} under {top['truth']}, "
            f"{top['n_passes']:,} of {top['n_studies']:,} studies)"
        )
    return "; ".join(told) + "."
