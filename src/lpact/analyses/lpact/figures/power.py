"""How often gates pass that should, against the strength of what is planted."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import names
from lpact.analyses.lpact.figures.profile_marks import PROFILE, looks, profile_names, with_profile
from lpact.analyses.lpact.figures.rates import DRAWN_GATES, drawn, of_reference
from lpact.analyses.lpact.tables.calibration import RATES
from lpact.math.intervals import wilson_interval
from lpact.report.figure import DESCRIPTION, Figure, Missing, Spec, values, with_marks
from lpact.report.wording import span

NAME, TITLE = "power", "Power: how often a gate passes where it should"
COLUMNS, WIDTH, HEIGHT, SHIFT = 4, 155, 120, 3.5
CELL_WIDTH, CELL_HEIGHT, MOST_DESIGNS = 92, 20, 12
DESIGN: dict[str, str] = {
    "model": "model",
    "n_events": "words",
    "n_subjects": "subjects",
    "n_units": "units",
    "noise_autocorrelation": "noise autocorrelation",
}
"""What makes a design, with its name; studies of different designs are never taken together."""


def make(material: Material) -> Figure | Missing:
    """The shipped calibration's power."""
    if not material.has(RATES.name):
        return Missing(NAME, TITLE, "the rates of the gates were not given")
    return of_reference(figure(material.table(RATES.name)))


def figure(rates: pl.DataFrame) -> Figure | Missing:
    """A panel a gate under each truth: power against the signal. ``rates`` are rows of ``calibration/rates``."""
    rows = rows_of(rates)
    if rows.is_empty():
        return Missing(NAME, TITLE, "no truth of the calibration plants what a gate looks for")
    return Figure(NAME, TITLE, _caption(rows), _summary(rows), _spec(rows))


def rows_of(rates: pl.DataFrame) -> pl.DataFrame:
    """Power of the drawn gates by truth, design and signal, with Wilson intervals.

    ``curve`` says whether the row is of the design with the most signal strengths under its truth (the one with the
    most studies, then the largest, of several), which is drawn as a curve. ``design`` says in which settings the others
    differ from it.
    """
    keys = ["truth", *DESIGN, "snr", "gate", "gate_name", "place", "gate_profile"]
    power = drawn(rates, "power").group_by(keys, maintain_order=True)
    pooled = power.agg(pl.col("n_passes").sum(), pl.col("n_studies").sum())
    ends = [wilson_interval(k, n) for k, n in pooled.select("n_passes", "n_studies").iter_rows()]
    low, high = [pair[0] for pair in ends], [pair[1] for pair in ends]
    rows = pooled.with_columns(
        rate=pl.col("n_passes") / pl.col("n_studies"),
        low=pl.Series(low, dtype=pl.Float64),
        high=pl.Series(high, dtype=pl.Float64),
    )
    rows = _told_apart(with_profile(rows)).sort(
        "truth",
        "place",
        "curve",
        "design",
        "snr",
        "gate_profile",
        descending=[False, False, True, False, False, True],
    )
    return with_marks(rows, _text, value="rate")


def _told_apart(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with ``curve`` and ``design``."""
    parts = []
    for _, own in rows.group_by("truth", maintain_order=True):
        sizes = own.group_by(list(DESIGN), maintain_order=True).agg(
            pl.col("snr").n_unique(), pl.col("n_studies").sum()
        )
        main = sizes.sort("snr", "n_studies", *DESIGN, descending=True).row(0, named=True)
        same = pl.all_horizontal(pl.col(key) == main[key] for key in DESIGN)
        differing = pl.concat_str(
            [
                pl.when(pl.col(key) != main[key]).then(
                    pl.lit(f"{name} ") + pl.col(key).cast(pl.String)
                    if key in ("model", "noise_autocorrelation")
                    else pl.col(key).cast(pl.String) + pl.lit(f" {name}")
                )
                for key, name in DESIGN.items()
            ],
            separator=", ",
            ignore_nulls=True,
        )
        parts.append(own.with_columns(curve=same, design=differing))
    return pl.concat(parts) if parts else rows.with_columns(curve=pl.lit(True), design=pl.lit(""))


def _text(row: dict[str, Any]) -> str:
    return (
        f"truth {row['truth']}, {row['gate_name']}, {row[PROFILE]}, signal {row['snr']:g} "
        f"({row['n_events']} words, {row['n_subjects']} subjects, {row['n_units']} units): {row['n_passes']:,} of "
        f"{row['n_studies']:,} studies pass, power {row['rate']:.3f} (95 % {row['low']:.3f} to {row['high']:.3f})."
    )


def _spec(rows: pl.DataFrame) -> Spec:
    profiles = profile_names(rows["gate_profile"].unique().to_list())
    blocks: list[Spec] = []
    for truth in names(rows, "truth"):
        own = rows.filter(truth=truth)
        blocks.append(_curves(own.filter("curve"), truth, profiles))
        if not own["curve"].all():
            blocks.append(_table(own.filter(~pl.col("curve")), profiles))
    return {"vconcat": blocks, "spacing": 16}


def _curves(rows: pl.DataFrame, truth: str, profiles: list[str]) -> Spec:
    """Panels of one truth: signal across, share of studies upwards."""
    gates = names(rows, "gate_name")
    panels = [
        _panel(rows.filter(gate_name=gate), gate, profiles, is_first=i % COLUMNS == 0)
        for i, gate in enumerate(gates)
    ]
    first = rows.row(0, named=True)
    design = f"{first['n_events']} words, {first['n_subjects']} subjects, {first['n_units']} units"
    title = f"truth: {truth}"
    subtitle = f"{design}; n = {span(rows['n_studies'])} studies a point"
    return {
        "title": {"text": title, "subtitle": subtitle, "offset": 12},
        "columns": COLUMNS,
        "concat": panels,
        "spacing": {"row": 16, "column": 22},
    }


def _panel(rows: pl.DataFrame, gate: str, profiles: list[str], *, is_first: bool) -> Spec:
    """One gate. The profiles' marks stand a little beside each other."""
    strengths = sorted(set(rows["snr"]))
    most = 1.1 * max(strengths) or 1.0
    shifts = {name: SHIFT * (2 * i - len(profiles) + 1) for i, name in enumerate(profiles)}
    shift = pl.col(PROFILE).replace_strict(shifts, return_dtype=pl.Float64) * most / WIDTH
    data = values(rows.with_columns(x=pl.col("snr") + shift))
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "scale": {"domain": [0, most], "nice": False},
        "axis": {
            "values": strengths,
            "format": "~g",
            "title": "signal-to-noise ratio",
            "labelFontSize": 10,
            "labelSeparation": 2,
        },
    }
    y: Spec = {
        "field": "rate",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {
            "values": [0, 0.5, 1],
            "format": "~g",
            "title": "share of studies" if is_first else None,
        },
    }
    look = looks(profiles)
    return {
        "title": {
            "text": gate,
            "fontSize": 12,
            "fontWeight": "normal",
            "frame": "group",
            "offset": 5,
        },
        "data": data,
        "width": WIDTH,
        "height": HEIGHT,
        "encoding": {"x": x},
        "layer": [
            *(_line(i, name, y, look) for i, name in enumerate(profiles)),
            {
                "mark": {"type": "rule", "strokeWidth": 1.5},
                "encoding": {
                    "y": {**y, "field": "low"},
                    "y2": {"field": "high"},
                    "stroke": look["stroke"],
                    "description": DESCRIPTION,
                },
            },
            {
                "mark": {"type": "point", "size": 42, "strokeWidth": 1.4},
                "encoding": {"y": y, "description": DESCRIPTION, **look},
            },
        ],
    }


def _line(place: int, name: str, y: Spec, look: Spec) -> Spec:
    """The curve of one profile: broken for the first, whole for the second."""
    mark = {"type": "line", "strokeWidth": 1.2, "strokeDash": [3, 3] if place % 2 == 0 else [1, 0]}
    return {
        "transform": [{"filter": {"field": PROFILE, "equal": name}}],
        "mark": mark,
        "encoding": {"y": y, "stroke": look["stroke"]},
    }


_LANE = pl.format("{}, signal {} (n = {})", "design", "snr", "n_studies")


def _lanes(rows: pl.DataFrame) -> list[str]:
    """Designs that are no curve, in words."""
    return names(rows.sort("design", "snr").select(lane=_LANE), "lane")


def _table(rows: pl.DataFrame, profiles: list[str]) -> Spec:
    """Other designs, a line each, a column a gate: studies that pass by each profile."""
    lanes = _lanes(rows)[:MOST_DESIGNS]
    gates = [name for name in DRAWN_GATES.values() if name in set(rows["gate_name"])]
    rows = rows.with_columns(lane=_LANE).filter(pl.col("lane").is_in(lanes))
    x = {"field": "gate_name", "type": "nominal", "sort": gates, "title": None}
    axis_x = {"orient": "top", "labelAngle": 0, "domain": False, "ticks": False}
    axis_y = {"domain": False, "ticks": False, "labelLimit": 300}
    y = {"field": "lane", "type": "nominal", "sort": lanes, "title": None, "axis": axis_y}
    offset = {"field": PROFILE, "type": "nominal", "sort": profiles}
    return {
        "title": {
            "text": "Other designs: studies in which the gate passes",
            "fontSize": 12,
            "fontWeight": "normal",
            "frame": "group",
            "offset": 6,
        },
        "data": values(rows),
        "width": {"step": CELL_WIDTH, "for": "position"},
        "height": {"step": CELL_HEIGHT},
        "encoding": {"x": {**x, "axis": axis_x}, "y": y, "xOffset": offset},
        "layer": [
            {"mark": {"type": "point", "size": 30}, "encoding": {**looks(profiles, legend=False)}},
            {
                "mark": {"type": "text", "fontSize": 10, "align": "left", "dx": 7},
                "encoding": {
                    "text": {"field": "n_passes", "type": "quantitative"},
                    "description": DESCRIPTION,
                },
            },
        ],
    }


def _caption(rows: pl.DataFrame) -> str:
    others = rows.filter(~pl.col("curve"))
    left_out = sum(
        max(0, len(_lanes(own)) - MOST_DESIGNS)
        for _, own in others.group_by("truth", maintain_order=True)
    )
    below = (
        " Below: studies that pass in designs that differ from the curves' in what they name; designs are never taken "
        "together."
        if not others.is_empty()
        else ""
    )
    more = (
        f" {left_out:,} more designs are not drawn; they stand in calibration/rates."
        if left_out
        else ""
    )
    n = rows.unique(["truth", *DESIGN, "snr"])["n_studies"].sum()
    return (
        f"Shares of simulated studies (n = {n:,} in all) in which a gate passes that has something to find, with 95 % "
        "Wilson intervals, by the signal-to-noise ratio, a factor on everything that is planted; the two "
        "profiles stand "
        f"side by side at the same signal. “All gates” is an integrated claim.{below}{more}"
    )


def _summary(rows: pl.DataFrame) -> str:
    """Power of the last gate of the chain under each truth."""
    last = rows.filter("curve").filter(pl.col("place") == pl.col("place").max().over("truth"))
    told = []
    for (truth, gate, profile), own in last.group_by(
        "truth", "gate_name", PROFILE, maintain_order=True
    ):
        counts = own.select("n_passes", "n_studies", "snr").iter_rows()
        at = ", ".join(f"{k:,} of {n:,} at signal {snr:g}" for k, n, snr in counts)
        told.append(f"{gate} under {truth}, {profile}: {at}")
    return "Studies that pass. " + "; ".join(told) + "."
