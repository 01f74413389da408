"""How often gates pass that should not, by known truth, gate and gate profile."""

from __future__ import annotations

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import PROFILE_LOOKS, PROFILES, RATED_GATES
from lpact.analyses.lpact.tables.calibration import TRUTH_RATES
from lpact.report import panels
from lpact.report.figure import Drawing, Figure, Missing, figure, finished
from lpact.report.panels import BROKEN, Look
from lpact.report.values import span

NAME, TITLE = "false_passes", "False passes: how often a gate passes in error"
COLUMNS, WIDTH = 2, 230
TICKS = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)
_SHIFT = 5.0
"""Pixels from the middle of a lane to the marks of a profile."""
_TOOLTIP = (
    "truth {truth}, {gate_name}, {rules}: {n_passes} of {n_studies} studies pass in error, rate {rate} "
    "(95 % {low} to {high}). {why}"
)


@figure(NAME, TITLE, TRUTH_RATES)
def make(material: Material) -> Drawing | str:
    """False-pass rates of the calibration that ships with lpact."""
    return _draw(material.table(TRUTH_RATES.name))


def of_rates(truth_rates: pl.DataFrame) -> Figure | Missing:
    """False-pass rates of any calibration."""
    return finished(NAME, TITLE, _draw(truth_rates))


def _draw(truth_rates: pl.DataFrame) -> Drawing | str:
    """One panel per truth, one lane per gate."""
    rows = rows_of(truth_rates)
    if rows.is_empty():
        return "no truth of the calibration has a gate that passes in error"
    profiles, truths = common.profiles_in(rows), rows.partition_by("truth", maintain_order=True)
    made = [_panel(own, profiles, last=i >= len(truths) - COLUMNS) for i, own in enumerate(truths)]
    nominal = ", ".join(f"{own:g}" for own in sorted(set(rows["alpha"].drop_nulls())))
    line = [(f"nominal error rate {nominal}", Look(BROKEN, None, "ink", 120))] if nominal else []
    key = panels.key(*common.profile_entries(profiles), *line)
    chart = panels.stacked(key, panels.grid(made, COLUMNS, spacing={"row": 18, "column": 20}))
    others = rows["gate"].str.starts_with("other_").any()
    n_studies = rows.unique("truth")["n_studies"].sum()
    caption = [
        common.REFERENCE,
        f"Each panel is a known truth that studies were simulated from (n = {n_studies:,} in all). Each lane is a gate "
        "that has nothing to find there, so that every pass is an error. Marks are shares of studies with 95 % Wilson "
        "intervals; the numbers on the right count the studies in which the gate passed.",
        f"The dashed line is the nominal error rate of the tests ({nominal}); point rules have none."
        if nominal
        else "",
        "Lanes with “others” are about mechanisms that were not planted." if others else "",
        "“All gates” is an integrated claim.",
    ]
    worst = rows.sort("rate", "truth", "place", descending=[True, False, False])
    tops = worst.unique("gate_profile", keep="first").sort("gate_profile", descending=True)
    summary = "; ".join(
        f"{PROFILES[top['gate_profile']]}: largest false-pass rate {top['rate']:.3f} ({top['gate_name']} under "
        f"{top['truth']}, {top['n_passes']:,} of {top['n_studies']:,} studies)"
        for top in tops.iter_rows(named=True)
    )
    return chart, caption, f"{summary}."


def rows_of(truth_rates: pl.DataFrame) -> pl.DataFrame:
    """False-pass rates of the drawn gates; truths with the most of them first, gates in the order of the chain."""
    n_gates = pl.col("gate").n_unique().over("truth")
    rows = common.rates_of(truth_rates, "false_pass").with_columns(n_gates=n_gates)
    order = ["n_gates", "truth", "place", "gate_profile"]
    return common.marked(rows.sort(order, descending=[True, False, False, True]), _TOOLTIP, "rate")


def _panel(rows: pl.DataFrame, profiles: list[str], *, last: bool) -> alt.LayerChart:
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
            panels.points(own, x, y, PROFILE_LOOKS[profile], shift=(0, shift)),
        ]
    counts = rows.with_columns(count=pl.format("{}", "n_passes"), changed=pl.lit(False))
    layers += common.count_columns(counts, "count", y, profiles, WIDTH + 28, head=True)
    layers.append(panels.heading("studies that pass", WIDTH + 50, y=-24, align="center"))
    about = f"n = {span(rows['n_studies'])} studies"
    heading = panels.title(
        f"truth: {rows['truth'][0]}", about, fontSize=12, frame="group", offset=4
    )
    return panels.overlay(*layers, width=WIDTH, step=24, title=heading)
