"""What evidence each dataset can carry: links of the chain, levels it can support, and what was left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import names
from lpact.analyses.lpact.gates.wording import words
from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    FINDINGS,
    RELIABILITY_MODES,
    UNIT_INVENTORY,
)
from lpact.codes import Reason
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure, with_marks
from lpact.report.panels import CROSS, Look, wedge
from lpact.report.wording import counted

LINKS: dict[str, tuple[str, str, Callable[[dict[str, Any]], str]]] = {
    "has_brain": ("brain", "brain units", lambda row: counted(row["n_brain_units"], "unit")),
    "has_words": ("words", "words", lambda row: counted(row["n_words"], "word")),
    "has_features": ("features", "models", lambda row: counted(row["n_models"], "model")),
    "has_controls": (
        "controls",
        "severe controls",
        lambda row: f"{row['n_controls']} of {row['n_controls_asked']}",
    ),
    "has_reliability": (
        "reliability",
        "reliability modes",
        lambda row: f"{row['n_modes']} of {row['n_modes_asked']} modes",
    ),
    "has_coverage": (
        "coverage",
        "subject-runs",
        lambda row: counted(row["n_subject_runs"], "subject-run"),
    ),
}
"""Flag of the audit: its name, what is counted under it, and the count in words."""

LEVELS = ("predictive", "relational", "stripping", "ceiling")
_NAMES, _LINK, _LEVEL = 236, 78, 66
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
    available, possible, severity = (pl.col(n) for n in ("available", "possible", "severity"))
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
        material.table(FINDINGS.name)
        .group_by("dataset")
        .agg(n_excluded=(severity == "excluded").sum(), n_notes=(severity == "note").sum()),
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
    FINDINGS,
    CONTROL_AVAILABILITY,
    RELIABILITY_MODES,
)
def make(material: Material) -> Drawing | str:
    """Draw the audit."""
    rows = rows_of(material)
    if rows.is_empty():
        return "the audit found no dataset"
    height = {"step": 26 + 13 * max(len(_lines(row)) for row in rows.iter_rows(named=True))}
    y = {**panels.lanes("dataset", rows["dataset"].to_list()), "axis": None}
    band = panels.layer(rows.gather_every(2), "rect", {"fill": "band"}, y=y)
    every = rows.to_dicts()
    size: dict[str, Any] = {"band": band, "y": y, "height": height}
    links, levels = ([cell for row in every for cell in of(row)] for of in (_links, _levels))
    parts = [
        panels.overlay(band, *_names(rows, y), width=_NAMES, height=height),
        _cells(links, "links of the evidence chain", _LINK, **size),
        _cells(levels, "subject-runs for", _LEVEL, **size),
    ]
    key = panels.key(
        ("available, or all", _LOOKS["all"]),
        ("missing: not confirmatory", _LOOKS["none"]),
        ("some subject-runs", Look(wedge(1 / 3), "pass", "pass", 120)),
    )
    chart = panels.stacked(panels.beside(*parts, spacing=6), key)
    return chart, _caption(rows), _summary(rows)


def _names(rows: pl.DataFrame, y: Spec) -> list[alt.Chart]:
    """Name, role, size, and what was left out."""
    top, left = {**y, "bandPosition": 0}, {"value": 8}
    look: Spec = {"limit": _NAMES - 16}
    marked = with_marks(rows, _dataset_tooltip)
    made = [
        panels.text(marked, "dataset", left, top, yOffset=14, fontWeight="bold", **look),
        panels.heading("dataset, role, size", 8, y=-12),
    ]
    lines = [
        {"dataset": row["dataset"], "place": i, "ink": ink, "text": text}
        for row in rows.iter_rows(named=True)
        for i, (ink, text) in enumerate(_lines(row))
    ]
    for own in pl.DataFrame(lines).partition_by("place", "ink", maintain_order=True):
        place, ink = own["place"][0], own["ink"][0]
        made.append(
            panels.text(own, "text", left, top, size=10, ink=ink, yOffset=29 + 13 * place, **look)
        )
    return made


def _lines(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Lines below the name, with their ink; the reason only where the dataset is not confirmatory."""
    role = row["configured_role"]
    if row["role"] != role:
        role = f"{role} → {row['role']}"
    role = f"{role}, {'' if row['confirmatory'] else 'not '}confirmatory"
    why = [] if row["confirmatory"] else [("ink", _reason(row))]
    return [("ink", role), *why, ("muted", _size(row)), ("muted", _left_out(row))]


def _size(row: dict[str, Any]) -> str:
    stimuli = counted(row["n_stimuli"], "stimulus", "stimuli")
    return f"{counted(row['n_subjects'], 'subject')}, {counted(row['n_runs'], 'run')}, {stimuli}"


def _left_out(row: dict[str, Any]) -> str:
    nouns = {"subject_runs": "recording", "units": "unit", "events": "event"}
    found = {noun: row[f"n_{column}_excluded"] for column, noun in nouns.items()}
    left = [counted(n, noun) for noun, n in found.items() if n]
    return f"left out: {', '.join(left)}" if left else "nothing left out"


def _reason(row: dict[str, Any]) -> str:
    known = next((own.explanation for own in Reason if own.value == row["role_reason"]), "")
    return str(row["role_detail"] or known or words(row["role_reason"]))


def _why(row: dict[str, Any]) -> str:
    return "confirmatory" if row["confirmatory"] else f"not confirmatory: {_reason(row)}"


def _dataset_tooltip(row: dict[str, Any]) -> str:
    return (
        f"{row['dataset']}: role {row['configured_role']} in the study file, {row['role']} after the audit, "
        f"{_why(row)}. {_size(row)}; {counted(row['n_subject_runs'], 'usable subject-run')}; {_left_out(row)}; "
        f"{counted(row['n_excluded'], 'finding')} of exclusion, {counted(row['n_notes'], 'note')}"
    )


def _links(row: dict[str, Any]) -> list[dict[str, Any]]:
    """One cell per link of a dataset."""
    return [
        {
            "dataset": row["dataset"],
            "column": name,
            "share": float(row[flag]),
            "value": float(row[flag]),
            "count": count(row),
            "text": f"link {name}: {'available' if row[flag] else 'missing'}; {count(row)} ({noun})",
        }
        for flag, (name, noun, count) in LINKS.items()
    ]


def _levels(row: dict[str, Any]) -> list[dict[str, Any]]:
    """One cell per level: the subject-runs of a dataset that it can use."""
    n = row["n_subject_runs"]
    paired = f" can be paired ({words(row['modes'])})" if row["modes"] else ""
    return [
        {
            "dataset": row["dataset"],
            "column": level,
            "share": min(row[level] / n, 1.0) if n else 0.0,
            "value": float(row[level]),
            "count": f"{row[level]} of {n}",
            "text": f"{level}: {row[level]} of {counted(n, 'subject-run')}"
            + (paired if level == "ceiling" else ""),
        }
        for level in LEVELS
    ]


def _cells(
    cells: list[dict[str, Any]], title: str, step: int, *, band: alt.Chart, y: Spec, height: Spec
) -> alt.LayerChart:
    """Symbols with counts below them: a full disc for all, a part of it for some, a cross for none."""
    share = pl.col("share")
    kind = pl.when(share >= 1).then(pl.lit("all")).when(share > 0).then(pl.lit("some"))
    rows = pl.DataFrame(cells).with_columns(kind=kind.otherwise(pl.lit("none")))
    marked = with_marks(rows, lambda row: f"{row['dataset']}, {row['text']}", "value")
    marked = panels.with_looks(marked, "kind", _LOOKS)
    part = marked.filter(kind="some").drop("mark")
    part = part.with_columns(shape=share.map_elements(wedge, pl.String), fill="stroke")
    columns = names(rows, "column")
    x = panels.lanes("column", columns, orient="top")
    return panels.overlay(
        band,
        panels.points(marked, x, y, thick=1.8, shift=(0, -8)),
        panels.points(part, x, y, thick=0.5, shift=(0, -8)),
        panels.text(rows, "count", x, y, size=10, align="center", yOffset=11, limit=step - 4),
        width=step * len(columns),
        height=height,
        title=panels.title(title, fontSize=11, anchor="middle"),
    )


def _caption(rows: pl.DataFrame) -> str:
    lowered = rows.filter(pl.col("role") != pl.col("configured_role")).height
    changed = (
        f" An arrow shows a role that the audit lowered ({lowered} of {rows.height})."
        if lowered
        else " The audit left every role as the study file has it."
    )
    return (
        f"One row per dataset ({rows.height}), with its role.{changed} Left: links of the evidence chain, with usable "
        "brain units (the largest count of one recording), words of all stimuli, models with features, severe controls "
        "available in at least one layer, possible reliability modes, and usable subject-runs; a dataset that lacks a "
        "link cannot be confirmatory. Right: how many of its usable subject-runs each level can use."
    )


def _summary(rows: pl.DataFrame) -> str:
    able = rows.filter("confirmatory")["dataset"].to_list()
    parts = [
        f"{counted(len(able), 'dataset')} of {rows.height} can carry confirmatory evidence"
        + (f": {', '.join(able)}." if able else ".")
    ]
    rest = rows.filter(~pl.col("confirmatory")).iter_rows(named=True)
    parts += [f"{row['dataset']} is {_why(row)}." for row in rest]
    return " ".join(parts)
