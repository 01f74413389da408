"""How often gates pass that should, by the strength of the planted signal."""

from __future__ import annotations

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import PROFILE_LOOKS, PROFILES
from lpact.analyses.lpact.gates import PAPER
from lpact.analyses.lpact.tables.calibration import RATES
from lpact.report import panels
from lpact.report.figure import Drawing, Figure, Missing, figure, finished
from lpact.report.values import span
from lpact.stats import wilson_interval

NAME, TITLE = "power", "Power: how often a gate passes where it should"
COLUMNS, WIDTH, HEIGHT, SHIFT = 4, 155, 120, 3.5
DESIGN = ["model", "n_events", "n_subjects", "n_units", "noise_autocorrelation"]
"""What makes a design; studies of different designs are never pooled."""
_TOOLTIP = (
    "truth {truth}, {gate_name}, {rules}, signal {snr:2} ({n_events} words, {n_subjects} subjects, {n_units} units): "
    "{n_passes} of {n_studies} studies pass, power {rate} (95 % {low} to {high})."
)


@figure(NAME, TITLE, RATES)
def make(material: Material) -> Drawing | str:
    """Power of the gates in the calibration that ships with lpact."""
    return _draw(material.table(RATES.name))


def of_rates(rates: pl.DataFrame) -> Figure | Missing:
    """Power of the gates in any calibration."""
    return finished(NAME, TITLE, _draw(rates))


def _draw(rates: pl.DataFrame) -> Drawing | str:
    """One panel per gate and truth: power by signal."""
    rows = rows_of(rates)
    if rows.is_empty():
        return "no truth of the calibration plants what a gate looks for"
    profiles = common.profiles_in(rows)
    blocks = [_curves(own, profiles) for own in rows.partition_by("truth", maintain_order=True)]
    chart = panels.stacked(panels.key(*common.profile_entries(profiles)), *blocks, spacing=16)
    n_others = common.rates_of(rates, "power").n_unique(["truth", *DESIGN]) - len(blocks)
    caption = [
        common.REFERENCE,
        "Shares of simulated studies in which a gate passes that has something to find, with 95 % Wilson intervals, "
        "by the signal-to-noise ratio, a factor on everything that is planted; the two profiles are drawn side by side "
        "at the same signal. “All gates” is an integrated claim.",
        f"The table {RATES.name} has {n_others:,} more designs." if n_others else "",
    ]
    # Power of the last gate of the chain under each truth.
    last = rows.filter(pl.col("place") == pl.col("place").max().over("truth"))
    parts = []
    for own in last.partition_by("truth", "gate_name", "gate_profile", maintain_order=True):
        first = own.row(0, named=True)
        counts = own.select("n_passes", "n_studies", "snr").iter_rows()
        at = ", ".join(f"{k:,} of {n:,} at signal {snr:g}" for k, n, snr in counts)
        rules = PROFILES[first["gate_profile"]]
        parts.append(f"{first['gate_name']} under {first['truth']}, {rules}: {at}")
    return chart, caption, f"Studies that pass. {'; '.join(parts)}."


def rows_of(rates: pl.DataFrame) -> pl.DataFrame:
    """Power of the drawn gates by truth and signal, with Wilson intervals.

    Of each truth, the design with the most signal strengths is drawn (of several, the one with the most studies, then
    the largest).
    """
    sizes = (
        rates.filter(role="power")
        .group_by("truth", *DESIGN)
        .agg(pl.col("snr").n_unique(), pl.col("n_studies").sum())
    )
    ranked = sizes.sort("truth", "snr", "n_studies", *DESIGN, descending=True)
    main = ranked.unique("truth", keep="first").select("truth", *DESIGN)
    keys = ["truth", *DESIGN, "snr", "gate", "gate_name", "place", "gate_profile"]
    rows = (
        common.rates_of(rates, "power")
        .join(main, on=main.columns, how="semi")
        .group_by(keys)
        .agg(pl.col("n_passes", "n_studies").sum())
        .sort("truth", "place", "snr", "gate_profile", descending=[False, False, False, True])
    )
    ends = [wilson_interval(k, n) for k, n in rows.select("n_passes", "n_studies").iter_rows()]
    rows = rows.with_columns(
        rate=pl.col("n_passes") / pl.col("n_studies"),
        low=pl.Series([low for low, _ in ends], dtype=pl.Float64),
        high=pl.Series([high for _, high in ends], dtype=pl.Float64),
    )
    return common.marked(rows, _TOOLTIP, "rate")


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
    title = "share of studies" if first else None
    y = panels.axis("rate", title, (0, 1), ticks=[0, 0.5, 1], grid=True)
    layers = []
    for place, profile in enumerate(profiles):
        own, shift = rows.filter(gate_profile=profile), SHIFT * (2 * place - len(profiles) + 1)
        dash = [3, 3] if profile == PAPER else []
        line = {"color": "ink", "strokeWidth": 1.2, "strokeDash": dash, "xOffset": shift}
        layers += [
            panels.layer(own.drop("mark"), "line", line, x=x, y=y),
            panels.intervals(own, "y", x, y, xOffset=shift),
            panels.points(own, x, y, PROFILE_LOOKS[profile], shift=(shift, 0)),
        ]
    heading = panels.panel_title(rows["gate_name"][0], WIDTH, fontSize=12, fontWeight="normal")
    return panels.overlay(*layers, width=WIDTH, height=HEIGHT, title=heading)
