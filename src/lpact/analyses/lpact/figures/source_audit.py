"""What evidence each dataset can carry: links of the chain, levels it can support, and what was left out."""

from __future__ import annotations

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import names
from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    RELIABILITY_MODES,
    UNIT_INVENTORY,
)
from lpact.analyses.lpact.terminal_blocks import explained
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure, filled, with_marks
from lpact.report.panels import PART, SHARES
from lpact.wording import counted

LINKS: dict[str, tuple[str, str]] = {
    "has_brain": ("brain", "{n_brain_units:unit}"),
    "has_words": ("words", "{n_words:word}"),
    "has_features": ("features", "{n_models:model}"),
    "has_controls": ("controls", "{n_controls} of {n_controls_asked}"),
    "has_reliability": ("reliability", "{n_modes} of {n_modes_asked} modes"),
    "has_coverage": ("coverage", "{n_subject_runs:subject-run}"),
}
"""Flag of the audit: its name, and what is counted under it."""

LEVELS = ("predictive", "relational", "stripping", "ceiling")
_NAMES, _LINK, _LEVEL, _STEP = 236, 78, 66, 48
_CELL = ["dataset", "column", "share", "value", "count"]


def rows_of(material: Material) -> pl.DataFrame:
    """One row per dataset: flags and counts of the audit.

    ``n_words`` counts words of distinct stimuli; ``n_controls`` controls available in at least one layer, out of
    ``n_controls_asked``; ``n_modes`` reliability modes that are possible, out of ``n_modes_asked``; ``predictive`` and
    ``ceiling`` are usable subject-runs with features, and the most recordings that any mode can pair.
    """
    used = material.table(UNIT_INVENTORY.name).filter("used")
    stimuli = used.unique(("dataset", "stimulus"), keep="first", maintain_order=True)
    controls = material.table(CONTROL_AVAILABILITY.name).group_by("dataset", "control")
    modes = material.table(RELIABILITY_MODES.name).sort("dataset", "mode")
    available, possible = pl.col("available"), pl.col("possible")
    counts = [
        stimuli.group_by("dataset").agg(pl.col("n_words").sum()),
        used.group_by("dataset").agg(
            pl.col("n_events_excluded").sum(),
            n_units_excluded=(pl.col("n_units") - pl.col("n_units_used")).sum(),
        ),
        controls.agg(available.any()).group_by("dataset").agg(n_controls=available.sum(), n_controls_asked=pl.len()),
        modes.group_by("dataset", maintain_order=True).agg(
            n_modes=possible.sum(),
            n_modes_asked=pl.len(),
            ceiling=pl.col("n_recordings").filter(possible).max(),
        ),
    ]
    rows = material.table(EVIDENCE_FEASIBILITY.name)
    for own in counts:
        numbers = own.columns[1:]
        rows = rows.join(own, on="dataset", how="left").with_columns(pl.col(numbers).cast(pl.Int64).fill_null(0))
    return rows.with_columns(
        predictive=pl.when("has_features").then("n_subject_runs").otherwise(0),
        relational="n_relational_runs",
        stripping="n_stripping_runs",
    ).sort("dataset")


@figure(
    "source_audit",
    "Source audit: what evidence each dataset can carry",
    EVIDENCE_FEASIBILITY,
    UNIT_INVENTORY,
    CONTROL_AVAILABILITY,
    RELIABILITY_MODES,
)
def make(material: Material) -> Drawing | str:
    """Draw the audit."""
    rows = rows_of(material)
    if rows.is_empty():
        return "the audit found no dataset"
    y = panels.lanes("dataset", rows["dataset"], shown=False)
    band = panels.layer(rows.gather_every(2), "rect", {"fill": "band"}, y=y)
    parts = [
        panels.overlay(band, *_names(rows, y), width=_NAMES, step=_STEP),
        _cells(_links(rows), "links of the evidence chain", _LINK, band, y),
        _cells(_levels(rows), "subject-runs for", _LEVEL, band, y),
    ]
    key = panels.key(
        ("available, or all", SHARES["all"]),
        ("missing: not confirmatory", SHARES["none"]),
        ("some subject-runs", PART),
    )
    lowered = rows.filter(pl.col("role") != pl.col("configured_role")).height
    caption = {
        f"One row per dataset ({rows.height}), with its role.": True,
        f"An arrow shows a role that the audit lowered ({lowered} of {rows.height}).": lowered,
        "Left: links of the evidence chain, with what was counted for each; a dataset that lacks a link cannot be "
        "confirmatory. Right: how many of its usable subject-runs each level can use.": True,
    }
    able = names(rows.filter("confirmatory"), "dataset")
    lacking = rows.filter(~pl.col("confirmatory")).select("dataset", "role_reason", "role_detail")
    summary = [
        f"{counted(len(able), 'dataset')} of {rows.height} can carry confirmatory evidence"
        f"{': ' if able else ''}{', '.join(able)}.",
        *(f"{name} is not confirmatory: {explained(*why)}." for name, *why in lacking.iter_rows()),
    ]
    return panels.stacked(panels.side_by_side(*parts, spacing=6), key), caption, " ".join(summary)


def _names(rows: pl.DataFrame, y: Spec) -> list[alt.Chart]:
    """Name and role; tooltips say why a dataset is not confirmatory, and what was left out."""
    role, configured, sure = pl.col("role"), pl.col("configured_role"), pl.col("confirmatory")
    why = [explained(*own) for own in rows.select("role_reason", "role_detail").iter_rows()]
    rows = rows.with_columns(
        about=pl.format(
            "{}{}, {}confirmatory",
            pl.when(role != configured).then(pl.format("{} → ", configured)).otherwise(pl.lit("")),
            role,
            pl.when(sure).then(pl.lit("")).otherwise(pl.lit("not ")),
        ),
        why=pl.when(~sure).then(pl.Series(why, dtype=pl.String)),
    )
    text = (
        "{dataset}: {about}[; {why}]; left out: {n_subject_runs_excluded:recording}, {n_units_excluded:unit}, "
        "{n_events_excluded:event}"
    )
    left, look = {"value": 8}, Spec(limit=_NAMES - 16)
    return [
        panels.heading("dataset, role", 8, y=-12),
        panels.text(with_marks(rows, text), "dataset", left, y, dy=-8, fontWeight="bold", **look),
        panels.text(rows, "about", left, y, dy=8, size=10, ink="muted", **look),
    ]


def _links(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per dataset and link."""
    made = [
        (row["dataset"], name, float(row[flag]), float(row[flag]), filled(template, row))
        for row in rows.iter_rows(named=True)
        for flag, (name, template) in LINKS.items()
    ]
    cells = pl.DataFrame(made, schema=_CELL, orient="row")
    there = pl.when(pl.col("share") > 0).then(pl.lit("available")).otherwise(pl.lit("missing"))
    return cells.with_columns(text=pl.format("{}; {}", there, "count"))


def _levels(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per dataset and level: the subject-runs that it can use."""
    made = [
        (row["dataset"], level, min(row[level] / n, 1.0) if n else 0.0, float(row[level]),
         f"{row[level]} of {n}", f"{row[level]} of {counted(n, 'subject-run')}")
        for row in rows.iter_rows(named=True)
        for n in [row["n_subject_runs"]]
        for level in LEVELS
    ]  # fmt: skip
    return pl.DataFrame(made, schema=[*_CELL, "text"], orient="row")


def _cells(cells: pl.DataFrame, title: str, width: int, band: alt.Chart, y: Spec) -> alt.LayerChart:
    """Symbols with counts below them."""
    columns = names(cells, "column")
    x = panels.lanes("column", columns, orient="top")
    marked = with_marks(cells, "{dataset}, {column}: {text}", "value")
    return panels.overlay(
        band,
        *panels.shares(marked, x, y, shift=(0, -8)),
        panels.text(cells, "count", x, y, size=10, align="center", yOffset=11, limit=width - 4),
        width=width * len(columns),
        step=_STEP,
        title=panels.title(title, fontSize=11, anchor="middle"),
    )
