"""How often gates pass that should, by the strength of the planted signal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    PROFILE_LOOKS,
    PROFILES,
    RATED_GATES,
    REFERENCE,
    names,
    profile_entries,
    profiles_in,
    rates_of,
)
from lpact.analyses.lpact.gates import PAPER
from lpact.analyses.lpact.tables.calibration import RATES
from lpact.report import panels
from lpact.report.figure import Figure, Missing, with_marks
from lpact.report.wording import span
from lpact.stats import wilson_interval

NAME, TITLE = "power", "Power: how often a gate passes where it should"
COLUMNS, WIDTH, HEIGHT, SHIFT = 4, 155, 120, 3.5
MOST_DESIGNS = 12
"""Designs without a curve that are listed per truth; the caption counts the others."""
DESIGN: dict[str, str] = {
    "model": "model",
    "n_events": "words",
    "n_subjects": "subjects",
    "n_units": "units",
    "noise_autocorrelation": "noise autocorrelation",
}
"""What makes a design, with its name; studies of different designs are never pooled."""
_LANE = pl.format("{}, signal {} (n = {})", "design", "snr", "n_studies")


def make(material: Material) -> Figure | Missing:
    """Power of the gates in the calibration that ships with lpact."""
    if not material.has(RATES.name):
        return Missing(NAME, TITLE, f"the run has no table {RATES.name}")
    return figure(material.table(RATES.name), REFERENCE)


def figure(rates: pl.DataFrame, note: str = "") -> Figure | Missing:
    """One panel per gate and truth: power by signal. ``rates`` has rows of ``calibration/rates``."""
    rows = rows_of(rates)
    if rows.is_empty():
        return Missing(NAME, TITLE, "no truth of the calibration plants what a gate looks for")
    profiles = profiles_in(rows)
    blocks: list[Any] = [panels.key(*profile_entries(profiles))]
    for own in rows.partition_by("truth", maintain_order=True):
        blocks.append(_curves(own.filter("curve"), profiles))
        if not own["curve"].all():
            blocks.append(_table(own.filter(~pl.col("curve")), profiles))
    chart = panels.stacked(*blocks, spacing=16)
    return Figure(NAME, TITLE, note + _caption(rows), _summary(rows), chart)


def rows_of(rates: pl.DataFrame) -> pl.DataFrame:
    """Power of the drawn gates by truth, design and signal, with Wilson intervals.

    ``curve`` marks the design with the most signal strengths of its truth (of several, the one with the most studies,
    then the largest), which is drawn as a curve. ``design`` says how other designs differ from it.
    """
    keys = ["truth", *DESIGN, "snr", "gate", "gate_name", "place", "gate_profile"]
    pooled = (
        rates_of(rates, "power")
        .group_by(keys, maintain_order=True)
        .agg(pl.col("n_passes", "n_studies").sum())
    )
    ends = [wilson_interval(k, n) for k, n in pooled.select("n_passes", "n_studies").iter_rows()]
    pooled = pooled.with_columns(
        rate=pl.col("n_passes") / pl.col("n_studies"),
        low=pl.Series([low for low, _ in ends], dtype=pl.Float64),
        high=pl.Series([high for _, high in ends], dtype=pl.Float64),
        curve=pl.lit(True),
        design=pl.lit(""),
    )
    parts = [_compared(own) for own in pooled.partition_by("truth", maintain_order=True)]
    order = ["truth", "place", "curve", "design", "snr", "gate_profile"]
    rows = pl.concat(parts or [pooled]).sort(
        order, descending=[name in ("curve", "gate_profile") for name in order]
    )
    return with_marks(rows, _tooltip, value="rate")


def _compared(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of one truth with ``curve`` and ``design``."""
    sizes = rows.group_by(list(DESIGN), maintain_order=True).agg(
        pl.col("snr").n_unique(), pl.col("n_studies").sum()
    )
    main = sizes.sort("snr", "n_studies", *DESIGN, descending=True).row(0, named=True)
    differing = [
        pl.when(pl.col(key) != main[key]).then(
            pl.format(f"{name} {{}}", key)
            if key in ("model", "noise_autocorrelation")
            else pl.format(f"{{}} {name}", key)
        )
        for key, name in DESIGN.items()
    ]
    return rows.with_columns(
        curve=pl.all_horizontal(pl.col(key) == main[key] for key in DESIGN),
        design=pl.concat_str(differing, separator=", ", ignore_nulls=True),
    )


def _tooltip(row: dict[str, Any]) -> str:
    return (
        f"truth {row['truth']}, {row['gate_name']}, {PROFILES[row['gate_profile']]}, signal {row['snr']:g} "
        f"({row['n_events']} words, {row['n_subjects']} subjects, {row['n_units']} units): {row['n_passes']:,} of "
        f"{row['n_studies']:,} studies pass, power {row['rate']:.3f} (95 % {row['low']:.3f} to {row['high']:.3f})."
    )


def _curves(rows: pl.DataFrame, profiles: list[str]) -> alt.ConcatChart:
    """Panels of one truth: signal from left to right, share of studies upwards."""
    first = rows.row(0, named=True)
    about = (
        f"{first['n_events']} words, {first['n_subjects']} subjects, {first['n_units']} units; "
        f"n = {span(rows['n_studies'])} studies per point"
    )
    made = [
        _panel(own, profiles, first=i % COLUMNS == 0)
        for i, own in enumerate(rows.partition_by("gate_name", maintain_order=True))
    ]
    title = panels.title(f"truth: {first['truth']}", about)
    return panels.grid(made, COLUMNS, title=title, spacing={"row": 16, "column": 22})


def _panel(rows: pl.DataFrame, profiles: list[str], *, first: bool) -> alt.LayerChart:
    """One gate, with the marks of the profiles side by side."""
    signals = rows["snr"].unique().sort().to_list()
    most = 1.1 * signals[-1] or 1.0
    x = panels.axis("snr", "signal-to-noise ratio", (0, most), ticks=signals, labelFontSize=10)
    y = panels.axis(
        "rate", "share of studies" if first else None, (0, 1), ticks=[0, 0.5, 1], grid=True
    )
    layers = []
    for place, profile in enumerate(profiles):
        own, shift = rows.filter(gate_profile=profile), SHIFT * (2 * place - len(profiles) + 1)
        dash = [3, 3] if profile == PAPER else []
        line = {"color": "ink", "strokeWidth": 1.2, "strokeDash": dash, "xOffset": shift}
        layers += [
            panels.layer(own.drop("mark"), "line", line, x=x, y=y),
            panels.intervals(own, "y", x, y, xOffset=shift),
            panels.symbols(own, PROFILE_LOOKS[profile], x, y, shift=(shift, 0)),
        ]
    title = panels.panel_title(rows["gate_name"][0], WIDTH, fontSize=12, fontWeight="normal")
    return panels.overlay(*layers, width=WIDTH, height=HEIGHT, title=title)


def _lanes(rows: pl.DataFrame) -> list[str]:
    """Designs without a curve, in words."""
    return names(rows.sort("design", "snr").select(lane=_LANE), "lane")


def _table(rows: pl.DataFrame, profiles: list[str]) -> alt.LayerChart:
    """Other designs: one line each, one column per gate, the number of studies that pass by profile."""
    lanes = _lanes(rows)[:MOST_DESIGNS]
    rows = rows.with_columns(lane=_LANE, count=pl.format("{}", "n_passes"))
    rows = rows.filter(pl.col("lane").is_in(lanes))
    gates = [name for name in RATED_GATES.values() if name in rows["gate_name"]]
    x, y = panels.lanes("gate_name", gates, orient="top"), panels.lanes("lane", lanes, limit=300)
    layers = []
    for place, profile in enumerate(profiles):
        own, left = rows.filter(gate_profile=profile), 40 * place - 26
        look = replace(PROFILE_LOOKS[profile], size=30)
        layers += [
            panels.symbols(own.drop("mark"), look, x, y, shift=(left, 0)),
            panels.text(own, "count", x, y, size=10, xOffset=left + 7),
        ]
    title = panels.title(
        "Other designs: studies in which the gate passes",
        fontSize=12,
        fontWeight="normal",
        frame="group",
    )
    return panels.overlay(*layers, width=92 * len(gates), height={"step": 20}, title=title)


def _caption(rows: pl.DataFrame) -> str:
    others = rows.filter(~pl.col("curve")).partition_by("truth", maintain_order=True)
    left_out = sum(max(0, len(_lanes(own)) - MOST_DESIGNS) for own in others)
    n = rows.unique(["truth", *DESIGN, "snr"])["n_studies"].sum()
    parts = [
        f"Shares of simulated studies (n = {n:,} in all) in which a gate passes that has something to find, with 95 % "
        "Wilson intervals, by the signal-to-noise ratio, a factor on everything that is planted; the two profiles are "
        "drawn side by side at the same signal. “All gates” is an integrated claim."
    ]
    if others:
        parts.append(
            "Below: studies that pass in designs that differ from those of the curves as named; designs are never "
            "pooled."
        )
    if left_out:
        parts.append(f"{left_out:,} more designs are not drawn; {RATES.name} has them.")
    return " ".join(parts)


def _summary(rows: pl.DataFrame) -> str:
    """Power of the last gate of the chain under each truth."""
    last = rows.filter("curve").filter(pl.col("place") == pl.col("place").max().over("truth"))
    parts = []
    for own in last.partition_by("truth", "gate_name", "gate_profile", maintain_order=True):
        first = own.row(0, named=True)
        counts = own.select("n_passes", "n_studies", "snr").iter_rows()
        at = ", ".join(f"{k:,} of {n:,} at signal {snr:g}" for k, n, snr in counts)
        parts.append(
            f"{first['gate_name']} under {first['truth']}, {PROFILES[first['gate_profile']]}: {at}"
        )
    return "Studies that pass. " + "; ".join(parts) + "."
