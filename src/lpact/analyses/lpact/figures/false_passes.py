"""How often gates pass that should not, by known truth, gate and gate profile."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    PROFILE_LOOKS,
    PROFILES,
    RATED_GATES,
    REFERENCE,
    count_columns,
    names,
    profile_entries,
    profiles_in,
    rates_of,
)
from lpact.analyses.lpact.tables.calibration import TRUTH_RATES
from lpact.report import panels
from lpact.report.figure import Figure, Missing, with_marks
from lpact.report.panels import BROKEN, Look
from lpact.report.wording import span

NAME, TITLE = "false_passes", "False passes: how often a gate passes in error"
COLUMNS, WIDTH, LANE = 2, 230, 24
TICKS = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)
_SHIFT = 5.0
"""Pixels from the middle of a lane to the marks of a profile."""


def make(material: Material) -> Figure | Missing:
    """False-pass rates of the calibration that ships with lpact."""
    if not material.has(TRUTH_RATES.name):
        return Missing(NAME, TITLE, f"the run has no table {TRUTH_RATES.name}")
    return figure(material.table(TRUTH_RATES.name), REFERENCE)


def figure(truth_rates: pl.DataFrame, note: str = "") -> Figure | Missing:
    """One panel per truth, one lane per gate. ``truth_rates`` has rows of ``calibration/truth_rates``."""
    rows = rows_of(truth_rates)
    if rows.is_empty():
        return Missing(NAME, TITLE, "no truth of the calibration has a gate that passes in error")
    truths, profiles = names(rows, "truth"), profiles_in(rows)
    made = [
        _panel(rows.filter(truth=truth), truth, profiles, last=i >= len(truths) - COLUMNS)
        for i, truth in enumerate(truths)
    ]
    nominal = _nominal(rows)
    line = [(f"nominal error rate {nominal}", Look(BROKEN, None, "ink", 120))] if nominal else []
    key = panels.key(*profile_entries(profiles), *line)
    chart = panels.stacked(key, panels.grid(made, COLUMNS, spacing={"row": 18, "column": 20}))
    return Figure(NAME, TITLE, note + _caption(rows), _summary(rows), chart)


def rows_of(truth_rates: pl.DataFrame) -> pl.DataFrame:
    """False-pass rates of the drawn gates; truths with the most of them first, gates in the order of the chain."""
    n_gates = pl.col("gate").n_unique().over("truth")
    rows = rates_of(truth_rates, "false_pass").with_columns(n_gates=n_gates)
    order = ["n_gates", "truth", "place", "gate_profile"]
    rows = rows.sort(order, descending=[True, False, False, True])
    return with_marks(rows, _tooltip, value="rate")


def _tooltip(row: dict[str, Any]) -> str:
    why = f" {row['why']}" if row.get("why") else ""
    return (
        f"truth {row['truth']}, {row['gate_name']}, {PROFILES[row['gate_profile']]}: {row['n_passes']:,} of "
        f"{row['n_studies']:,} studies pass in error, rate {row['rate']:.3f} "
        f"(95 % {row['low']:.3f} to {row['high']:.3f}).{why}"
    )


def _panel(rows: pl.DataFrame, truth: str, profiles: list[str], *, last: bool) -> alt.LayerChart:
    """One truth, with the number of studies that pass on the right."""
    gates = [name for gate, name in RATED_GATES.items() if gate in rows["gate"]]
    title = "share of studies, square-root scale" if last else None
    x = panels.axis("rate", title, (0, 1), ticks=TICKS, grid=True, labelFlush=False)
    x["scale"]["type"] = "sqrt"
    y = panels.lanes("gate_name", gates)
    layers = [
        panels.reference(own, dash=(4, 3), role="ink")
        for own in rows["alpha"].drop_nulls().unique().sort()
    ]
    for place, profile in enumerate(profiles):
        own, shift = rows.filter(gate_profile=profile), _SHIFT * (2 * place - len(profiles) + 1)
        layers += [
            panels.intervals(own, "x", y, x, yOffset=shift),
            panels.symbols(own, PROFILE_LOOKS[profile], x, y, shift=(0, shift)),
        ]
    counts = rows.with_columns(count=pl.format("{}", "n_passes"), changed=pl.lit(False))
    layers += count_columns(counts, "count", y, profiles, WIDTH + 28, head=True)
    layers.append(panels.heading("studies that pass", WIDTH + 50, y=-24, align="center"))
    about = f"n = {span(rows['n_studies'])} studies"
    return panels.overlay(
        *layers,
        width=WIDTH,
        height={"step": LANE},
        title=panels.title(f"truth: {truth}", about, fontSize=12, frame="group", offset=4),
    )


def _nominal(rows: pl.DataFrame) -> str:
    return ", ".join(f"{own:g}" for own in sorted(set(rows["alpha"].drop_nulls())))


def _caption(rows: pl.DataFrame) -> str:
    parts = [
        f"Each panel is a known truth that studies were simulated from (n = "
        f"{rows.unique('truth')['n_studies'].sum():,} in all). Each lane is a gate that has nothing to find there, so "
        "that every pass is an error. Marks are shares of studies with 95 % Wilson intervals; the numbers on the right "
        "count the studies in which the gate passed.",
    ]
    if nominal := _nominal(rows):
        parts.append(
            f"The dashed line is the nominal error rate of the tests ({nominal}); point rules have none."
        )
    if rows["gate"].str.starts_with("other_").any():
        parts.append("Lanes with “others” are about mechanisms that were not planted.")
    parts.append("“All gates” is an integrated claim.")
    return " ".join(parts)


def _summary(rows: pl.DataFrame) -> str:
    parts = []
    for (profile,), own in rows.group_by("gate_profile", maintain_order=True):
        top = own.sort("rate", "truth", "place", descending=[True, False, False]).row(0, named=True)
        parts.append(
            f"{PROFILES[str(profile)]}: largest false-pass rate {top['rate']:.3f} ({top['gate_name']} under "
            f"{top['truth']}, {top['n_passes']:,} of {top['n_studies']:,} studies)"
        )
    return "; ".join(parts) + "."
