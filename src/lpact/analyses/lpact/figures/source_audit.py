"""What evidence each dataset can carry: links of the chain, levels it can support, and what was left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import names
from lpact.analyses.lpact.gates.criteria import words
from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    RELIABILITY_MODES,
    UNIT_INVENTORY,
)
from lpact.codes import Reason
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure, filled, with_marks
from lpact.report.panels import CROSS, Look, wedge
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
_LOOKS = {
    "all": Look("circle", "pass", "pass", 120),
    "some": Look("circle", "paper", "pass", 120),
    "none": Look(CROSS, None, "fail", 120),
}


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
        controls.agg(available.any())
        .group_by("dataset")
        .agg(n_controls=available.sum(), n_controls_asked=pl.len()),
        modes.group_by("dataset", maintain_order=True).agg(
            n_modes=possible.sum(),
            n_modes_asked=pl.len(),
            ceiling=pl.col("n_recordings").filter(possible).max(),
            modes=pl.col("mode").filter(possible).str.join(", "),
        ),
    ]
    rows = material.table(EVIDENCE_FEASIBILITY.name)
    for own in counts:
        numbers = [name for name in own.columns if name not in ("dataset", "modes")]
        rows = rows.join(own, on="dataset", how="left").with_columns(
            pl.col(numbers).cast(pl.Int64).fill_null(0)
        )
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
    every = rows.to_dicts()
    y = panels.lanes("dataset", rows["dataset"], shown=False)
    band = panels.layer(rows.gather_every(2), "rect", {"fill": "band"}, y=y)
    parts = [
        panels.overlay(band, *_names(every, y), width=_NAMES, step=_STEP),
        _cells(every, _links, "links of the evidence chain", _LINK, band, y),
        _cells(every, _levels, "subject-runs for", _LEVEL, band, y),
    ]
    key = panels.key(
        ("available, or all", _LOOKS["all"]),
        ("missing: not confirmatory", _LOOKS["none"]),
        ("some subject-runs", Look(wedge(1 / 3), "pass", "pass", 120)),
    )
    lowered = rows.filter(pl.col("role") != pl.col("configured_role")).height
    caption = {
        f"One row per dataset ({rows.height}), with its role.": True,
        f"An arrow shows a role that the audit lowered ({lowered} of {rows.height}).": lowered,
        "Left: links of the evidence chain, with what was counted for each; a dataset that lacks a link cannot be "
        "confirmatory. Right: how many of its usable subject-runs each level can use.": True,
    }
    able = [row["dataset"] for row in every if row["confirmatory"]]
    summary = [
        f"{counted(len(able), 'dataset')} of {rows.height} can carry confirmatory evidence"
        f"{': ' if able else ''}{', '.join(able)}.",
        *(
            f"{row['dataset']} is not confirmatory: {_reason(row)}."
            for row in every
            if not row["confirmatory"]
        ),
    ]
    return panels.stacked(panels.beside(*parts, spacing=6), key), caption, " ".join(summary)


def _names(rows: list[dict[str, Any]], y: Spec) -> list[alt.Chart]:
    """Name and role; tooltips say the size, why it is not confirmatory, and what was left out."""
    about = [
        {"dataset": row["dataset"], "role": lines[0], "all": "; ".join([row["dataset"], *lines])}
        for row in rows
        for lines in [_lines(row)]
    ]
    left = {"value": 8}
    look: Spec = {"limit": _NAMES - 16}
    marks = with_marks(pl.DataFrame(about), "{all}")
    return [
        panels.heading("dataset, role", 8, y=-12),
        panels.text(marks, "dataset", left, y, dy=-8, fontWeight="bold", **look),
        panels.text(about, "role", left, y, dy=8, size=10, ink="muted", **look),
    ]


def _lines(row: dict[str, Any]) -> list[str]:
    """Role, the reason where the dataset is not confirmatory, size, and what was left out."""
    role = row["configured_role"]
    if row["role"] != role:
        role = f"{role} → {row['role']}"
    nouns = {"subject_runs": "recording", "units": "unit", "events": "event"}
    left = [
        counted(n, noun) for column, noun in nouns.items() if (n := row[f"n_{column}_excluded"])
    ]
    return [
        f"{role}, {'' if row['confirmatory'] else 'not '}confirmatory",
        *([] if row["confirmatory"] else [_reason(row)]),
        filled("{n_subjects:subject}, {n_runs:run}, ", row)
        + counted(row["n_stimuli"], "stimulus", "stimuli"),
        f"left out: {', '.join(left)}" if left else "nothing left out",
    ]


def _reason(row: dict[str, Any]) -> str:
    known = next((own.explanation for own in Reason if own.value == row["role_reason"]), "")
    return str(row["role_detail"] or known or words(row["role_reason"]))


Cell = tuple[str, float, float, str, str]
"""Column, share, value, words below the symbol, and words of the tooltip."""


def _links(row: dict[str, Any]) -> list[Cell]:
    """One cell per link of a dataset."""
    cells = []
    for flag, (name, template) in LINKS.items():
        there, count = float(row[flag]), filled(template, row)
        cells.append((name, there, there, count, f"{'available' if there else 'missing'}; {count}"))
    return cells


def _levels(row: dict[str, Any]) -> list[Cell]:
    """One cell per level: the subject-runs of a dataset that it can use."""
    n, cells = row["n_subject_runs"], []
    for level in LEVELS:
        can, of = row[level], f"{row[level]} of {counted(row['n_subject_runs'], 'subject-run')}"
        if level == "ceiling" and row["modes"]:
            of += f" can be paired ({words(row['modes'])})"
        cells.append((level, min(can / n, 1.0) if n else 0.0, float(can), f"{can} of {n}", of))
    return cells


def _cells(
    rows: list[dict[str, Any]],
    of: Callable[[dict[str, Any]], list[Cell]],
    title: str,
    width: int,
    band: alt.Chart,
    y: Spec,
) -> alt.LayerChart:
    """Symbols with counts below them: a full disc for all, a part of it for some, a cross for none."""
    columns = ["dataset", "column", "share", "value", "count", "text"]
    made = [(row["dataset"], *cell) for row in rows for cell in of(row)]
    share = pl.col("share")
    kind = pl.when(share >= 1).then(pl.lit("all")).when(share > 0).then(pl.lit("some"))
    cells = pl.DataFrame(made, schema=columns, orient="row")
    cells = cells.with_columns(kind=kind.otherwise(pl.lit("none")))
    marked = with_marks(cells, "{dataset}, {column}: {text}", "value")
    part = cells.filter(kind="some")
    wedges = [Look(wedge(own), "pass", "pass", 120) for own in part["share"]]
    x = panels.lanes("column", names(cells, "column"), orient="top")
    return panels.overlay(
        band,
        panels.points(marked, x, y, _LOOKS, "kind", thick=1.8, shift=(0, -8)),
        panels.points(part, x, y, wedges, thick=0.5, shift=(0, -8)),
        panels.text(cells, "count", x, y, size=10, align="center", yOffset=11, limit=width - 4),
        width=width * len(names(cells, "column")),
        step=_STEP,
        title=panels.title(title, fontSize=11, anchor="middle"),
    )
