"""How often gates pass that should not, and that should, by known truth, gate and gate profile."""

from __future__ import annotations

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import GATE_NAMES, GATE_PROFILES, GATES
from lpact.analyses.lpact.gates import PAPER
from lpact.analyses.lpact.tables.calibration import RATES, TRUTH_RATES
from lpact.report import panels
from lpact.report.figure import Drawing, Figure, Missing, figure, finished
from lpact.report.panels import BROKEN, Look
from lpact.stats import wilson_interval
from lpact.wording import span

FALSE_PASSES = "false_passes", "False passes: how often a gate passes in error"
POWER = "power", "Power: how often a gate passes where it should"
WIDTH, TICKS = 230, (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)
POWER_WIDTH, POWER_HEIGHT, POWER_COLUMNS = 155, 120, 4
DESIGN = ["model", "n_events", "n_subjects", "n_units", "noise_autocorrelation"]
"""What makes a design; studies of different designs are never pooled."""
_FALSE = (
    "truth {truth}, {gate_name}, {rules}: {n_passes} of {n_studies} studies pass in error, rate {rate} "
    "(95 % {low} to {high}). {why}"
)
_TRUE = (
    "truth {truth}, {gate_name}, {rules}, signal {snr:2} ({n_events} words, {n_subjects} subjects, {n_units} units): "
    "{n_passes} of {n_studies} studies pass, power {rate} (95 % {low} to {high})."
)

RATED_GATES: dict[str, str] = {
    **{column: GATE_NAMES[letter] for letter, column in GATES.items()},
    "integrated": "all gates",
    "other_mechanism_specific": "mechanism, others",
    "other_integrated": "all gates, others",
}
"""Gates whose error rates and power are drawn; "others" are mechanisms that were not planted."""

REFERENCE = "From reference studies that lpact simulated, not from this study or its design."
"""How captions of the calibration begin."""


def rates_of(rates: pl.DataFrame, role: str) -> pl.DataFrame:
    """Rates of one role ("false_pass" or "power") of the drawn gates, with ``gate_name`` and ``place`` in the chain."""
    place = {gate: i for i, gate in enumerate(RATED_GATES)}
    own = rates.filter(pl.col("role") == role, pl.col("gate").is_in(list(RATED_GATES)))
    return own.with_columns(
        gate_name=pl.col("gate").replace_strict(RATED_GATES, return_dtype=pl.String),
        place=pl.col("gate").replace_strict(place, return_dtype=pl.Int64),
    )


@figure(*FALSE_PASSES, TRUTH_RATES)
def false_passes(material: Material) -> Drawing | str:
    """False-pass rates of the calibration that ships with lpact."""
    return _false_passes(material.table(TRUTH_RATES.name))


@figure(*POWER, RATES)
def power(material: Material) -> Drawing | str:
    """Power of the gates in the calibration that ships with lpact."""
    return _power(material.table(RATES.name))


def false_passes_of(truth_rates: pl.DataFrame) -> Figure | Missing:
    """False-pass rates of any calibration."""
    return finished(*FALSE_PASSES, _false_passes(truth_rates))


def power_of(rates: pl.DataFrame) -> Figure | Missing:
    """Power of the gates in any calibration."""
    return finished(*POWER, _power(rates))


def _false_passes(truth_rates: pl.DataFrame) -> Drawing | str:
    """One panel per truth, one lane per gate."""
    rows = false_pass_rows(truth_rates)
    if rows.is_empty():
        return "no truth of the calibration has a gate that passes in error"
    profiles, truths = common.profiles_in(rows), rows.partition_by("truth", maintain_order=True)
    made = [_lanes(own, profiles, last=i >= len(truths) - 2) for i, own in enumerate(truths)]
    nominal = ", ".join(f"{own:g}" for own in sorted(set(rows["alpha"].drop_nulls())))
    line = [(f"nominal error rate {nominal}", Look(BROKEN, None, "ink", 120))] if nominal else []
    key = panels.key(*common.profile_entries(profiles), *line)
    chart = panels.stacked(key, panels.grid(made, 2, spacing={"row": 18, "column": 20}))
    others = rows["gate"].str.starts_with("other_").any()
    n_studies = rows.unique("truth")["n_studies"].sum()
    caption = {
        REFERENCE: True,
        f"Each panel is a known truth that studies were simulated from (n = {n_studies:,} in all). Each lane is a gate "
        "that has nothing to find there, so that every pass is an error. Marks are shares of studies with 95 % Wilson "
        "intervals; the numbers on the right count the studies in which the gate passed.": True,
        f"The dashed line is the nominal error rate of the tests ({nominal}); point rules have none.": nominal,
        "Lanes with “others” are about mechanisms that were not planted.": others,
        "“All gates” is an integrated claim.": True,
    }
    worst = rows.sort("rate", "truth", "place", descending=[True, False, False])
    tops = worst.unique("gate_profile", keep="first").sort("gate_profile", descending=True)
    summary = "; ".join(
        f"{GATE_PROFILES[top['gate_profile']]}: largest false-pass rate {top['rate']:.3f} ({top['gate_name']} under "
        f"{top['truth']}, {top['n_passes']:,} of {top['n_studies']:,} studies)"
        for top in tops.iter_rows(named=True)
    )
    return chart, caption, f"{summary}."


def false_pass_rows(truth_rates: pl.DataFrame) -> pl.DataFrame:
    """False-pass rates of the drawn gates; truths with the most of them first, gates in the order of the chain."""
    n_gates = pl.col("gate").n_unique().over("truth")
    rows = rates_of(truth_rates, "false_pass").with_columns(n_gates=n_gates)
    order = ["n_gates", "truth", "place", "gate_profile"]
    return common.marked(rows.sort(order, descending=[True, False, False, True]), _FALSE, "rate")


def _lanes(rows: pl.DataFrame, profiles: list[str], *, last: bool) -> alt.LayerChart:
    """One truth, with the number of studies that pass on the right."""
    gates = [name for gate, name in RATED_GATES.items() if gate in rows["gate"]]
    title = "share of studies, square-root scale" if last else None
    x = panels.axis("rate", title, (0, 1), ticks=TICKS, grid=True, labelFlush=False)
    x["scale"]["type"] = "sqrt"
    y = panels.lanes("gate_name", gates)
    layers = [panels.reference(own, dash=(4, 3), role="ink") for own in rows["alpha"].drop_nulls().unique().sort()]
    layers += common.profile_marks(rows, profiles, "x", x, y)
    counts = rows.with_columns(count=pl.format("{}", "n_passes"), changed=pl.lit(False))
    layers += common.count_columns(counts, "count", y, profiles, WIDTH + 28, head=True)
    layers.append(panels.heading("studies that pass", WIDTH + 50, y=-24, align="center"))
    about = f"n = {span(rows['n_studies'])} studies"
    heading = panels.title(f"truth: {rows['truth'][0]}", about, fontSize=12, frame="group", offset=4)
    return panels.overlay(*layers, width=WIDTH, step=24, title=heading)


def _power(rates: pl.DataFrame) -> Drawing | str:
    """One panel per gate and truth: power by signal."""
    rows = power_rows(rates)
    if rows.is_empty():
        return "no truth of the calibration plants what a gate looks for"
    profiles = common.profiles_in(rows)
    blocks = [_curves(own, profiles) for own in rows.partition_by("truth", maintain_order=True)]
    chart = panels.stacked(panels.key(*common.profile_entries(profiles)), *blocks, spacing=16)
    n_others = rates_of(rates, "power").n_unique(["truth", *DESIGN]) - len(blocks)
    caption = {
        REFERENCE: True,
        "Shares of simulated studies in which a gate passes that has something to find, with 95 % Wilson intervals, "
        "by the signal-to-noise ratio, a factor on everything that is planted; the two profiles are drawn side by side "
        "at the same signal. “All gates” is an integrated claim.": True,
        f"The table {RATES.name} has {n_others:,} more designs.": n_others,
    }
    # Power of the last gate of the chain under each truth.
    last = rows.filter(pl.col("place") == pl.col("place").max().over("truth"))
    parts = []
    for own in last.partition_by("truth", "gate_name", "gate_profile", maintain_order=True):
        first = own.row(0, named=True)
        counts = own.select("n_passes", "n_studies", "snr").iter_rows()
        at = ", ".join(f"{k:,} of {n:,} at signal {snr:g}" for k, n, snr in counts)
        rules = GATE_PROFILES[first["gate_profile"]]
        parts.append(f"{first['gate_name']} under {first['truth']}, {rules}: {at}")
    return chart, caption, f"Studies that pass. {'; '.join(parts)}."


def power_rows(rates: pl.DataFrame) -> pl.DataFrame:
    """Power of the drawn gates by truth and signal, with Wilson intervals.

    Of each truth, the design with the most signal strengths is drawn (of several, the one with the most studies, then
    the largest).
    """
    sizes = (
        rates.filter(role="power").group_by("truth", *DESIGN).agg(pl.col("snr").n_unique(), pl.col("n_studies").sum())
    )
    ranked = sizes.sort("truth", "snr", "n_studies", *DESIGN, descending=True)
    main = ranked.unique("truth", keep="first").select("truth", *DESIGN)
    keys = ["truth", *DESIGN, "snr", "gate", "gate_name", "place", "gate_profile"]
    rows = (
        rates_of(rates, "power")
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
    return common.marked(rows, _TRUE, "rate")


def _curves(rows: pl.DataFrame, profiles: list[str]) -> alt.ConcatChart:
    """Panels of one truth: signal from left to right, share of studies upwards."""
    first = rows.row(0, named=True)
    about = (
        f"{first['n_events']} words, {first['n_subjects']} subjects, {first['n_units']} units; "
        f"n = {span(rows['n_studies'])} studies per point"
    )
    made = [
        _panel(own, profiles, first=i % POWER_COLUMNS == 0)
        for i, own in enumerate(rows.partition_by("gate_name", maintain_order=True))
    ]
    title = panels.title(f"truth: {first['truth']}", about)
    return panels.grid(made, POWER_COLUMNS, title=title, spacing={"row": 16, "column": 22})


def _panel(rows: pl.DataFrame, profiles: list[str], *, first: bool) -> alt.LayerChart:
    """One gate, with the marks of the profiles side by side."""
    signals = rows["snr"].unique().sort().to_list()
    most = 1.1 * signals[-1] or 1.0
    x = panels.axis("snr", "signal-to-noise ratio", (0, most), ticks=signals, labelFontSize=10)
    title = "share of studies" if first else None
    y = panels.axis("rate", title, (0, 1), ticks=[0, 0.5, 1], grid=True)
    dashes = {PAPER: [3, 3]}
    lines = [
        panels.layer(
            rows.filter(gate_profile=profile).drop("mark"),
            "line",
            {
                "color": "ink",
                "strokeWidth": 1.2,
                "strokeDash": dashes.get(profile, []),
                "xOffset": common.side(place, profiles),
            },
            x=x,
            y=y,
        )
        for place, profile in enumerate(profiles)
    ]
    marks = common.profile_marks(rows, profiles, "y", y, x)
    heading = panels.panel_title(rows["gate_name"][0], POWER_WIDTH, fontSize=12, fontWeight="normal")
    return panels.overlay(*lines, *marks, width=POWER_WIDTH, height=POWER_HEIGHT, title=heading)
