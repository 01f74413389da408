"""What evidence each dataset can carry: links of the chain, levels it can support, and what was left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.canvas import CROSS, Canvas, wedge
from lpact.analyses.lpact.figures.source_audit_rows import rows_of
from lpact.analyses.lpact.gates.wording import words
from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    FINDINGS,
    RELIABILITY_MODES,
    UNIT_INVENTORY,
)
from lpact.codes import Reason
from lpact.report.figure import MARK, Figure, Missing, mark
from lpact.report.wording import counted

NAME = "source_audit"
TITLE = "Source audit: what evidence each dataset can carry"

LINKS: dict[str, tuple[str, str]] = {
    "has_brain": ("brain", "brain units"),
    "has_words": ("words", "words"),
    "has_features": ("features", "models"),
    "has_controls": ("controls", "severe controls"),
    "has_reliability": ("reliability", "reliability modes"),
    "has_coverage": ("coverage", "subject-runs"),
}
"""Flag of the audit, its name, and what is counted under it."""

LEVELS = ("predictive", "relational", "stripping", "ceiling")
_LEFT, _LINK, _LEVEL, _TOP, _GAP = 236, 78, 62, 56, 14
_SPLIT = _LEFT + len(LINKS) * _LINK + _GAP


def make(material: Material) -> Figure | Missing:
    """Draw the audit."""
    needed = (
        EVIDENCE_FEASIBILITY,
        UNIT_INVENTORY,
        FINDINGS,
        CONTROL_AVAILABILITY,
        RELIABILITY_MODES,
    )
    lacking = material.lacks(*(table.name for table in needed))
    if lacking:
        return Missing(NAME, TITLE, f"the run has no table {', '.join(lacking)}")
    rows = rows_of(material)
    if rows.is_empty():
        return Missing(NAME, TITLE, "the audit knows no dataset")
    return Figure(NAME, TITLE, _caption(rows), _summary(rows), _draw(rows))


_COUNTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "has_brain": lambda row: counted(row["n_brain_units"], "unit"),
    "has_words": lambda row: counted(row["n_words"], "word"),
    "has_features": lambda row: counted(row["n_models"], "model"),
    "has_controls": lambda row: f"{row['n_controls']} of {row['n_controls_asked']}",
    "has_reliability": lambda row: f"{row['n_modes']} of {row['n_modes_asked']} modes",
    "has_coverage": lambda row: counted(row["n_subject_runs"], "subject-run"),
}


def _draw(rows: pl.DataFrame) -> dict[str, Any]:
    width = _SPLIT + len(LEVELS) * _LEVEL
    placed, bottom = _placed(rows)
    canvas = Canvas(width, bottom + 26)
    _heads(canvas, width)
    bands = [{"x": 0, "x2": width, "y": y, "y2": y + _height(row)} for row, y in placed[::2]]
    canvas.boxes(bands, fill="band")
    _names(canvas, placed)
    _links(canvas, placed)
    _levels(canvas, placed)
    _legend(canvas, bottom + 16)
    return canvas.spec()


def _height(row: dict[str, Any]) -> float:
    """A row is as high as what is said of its dataset."""
    return 24.0 + 13 * len(_lines(row))


def _placed(rows: pl.DataFrame) -> tuple[list[tuple[dict[str, Any], float]], float]:
    """The rows with their upper edges, and the bottom."""
    placed, y = [], float(_TOP)
    for row in rows.iter_rows(named=True):
        placed.append((row, y))
        y += _height(row)
    return placed, y


def _legend(canvas: Canvas, y: float) -> None:
    """What the symbols mean, below the rows."""
    at = [{"x": x, "y": y} for x in (_LEFT + 20, _LEFT + 110, _LEFT + 290)]
    canvas.symbols(at[:1], "circle", radius=5, fill="pass")
    canvas.symbols(at[1:2], CROSS, radius=5, edge="fail")
    canvas.symbols(at[2:], "circle", radius=5, fill="paper", edge="pass", thick=1.2)
    canvas.symbols(at[2:], wedge(1 / 3), radius=5, fill="pass")
    told = ("there, or all", "missing: not confirmatory", "some subject-runs")
    words_at = zip(at, told, strict=True)
    canvas.words([{**own, "x": own["x"] + 11, "text": text} for own, text in words_at], size=10)


def _heads(canvas: Canvas, width: float) -> None:
    canvas.words([{"x": 8, "y": _TOP - 16, "text": "dataset, role, size"}], size=10, ink="muted")
    over = [
        (_LEFT, _SPLIT - _GAP, "links of the evidence chain"),
        (_SPLIT, width, "subject-runs for"),
    ]
    canvas.words(
        [{"x": (a + b) / 2, "y": 10, "text": text} for a, b, text in over],
        align="center",
        bold=True,
    )
    canvas.lines([{"x": a + 4, "x2": b - 4, "y": 24, "y2": 24} for a, b, _ in over])
    heads = [
        {"x": _LEFT + (i + 0.5) * _LINK, "y": _TOP - 16, "text": name}
        for i, (name, _) in enumerate(LINKS.values())
    ]
    heads += [
        {"x": _SPLIT + (i + 0.5) * _LEVEL, "y": _TOP - 16, "text": name}
        for i, name in enumerate(LEVELS)
    ]
    canvas.words(heads, align="center")


def _names(canvas: Canvas, placed: list[tuple[dict[str, Any], float]]) -> None:
    """Name and role, what there is, and what was left out."""
    names = [
        {"x": 8, "y": y + 12, "text": row["dataset"], MARK: _dataset_mark(row)} for row, y in placed
    ]
    canvas.words(names, bold=True, limit=_LEFT - 16)
    for ink in ("ink", "muted"):
        shown = [
            {"x": 8, "y": y + 27 + 13 * i, "text": text}
            for row, y in placed
            for i, (own, text) in enumerate(_lines(row))
            if own == ink
        ]
        canvas.words(shown, size=10, ink=ink, limit=_LEFT - 16)


def _lines(row: dict[str, Any]) -> list[tuple[str, str]]:
    """What stands below the name, with its ink; the reason only where the dataset is not confirmatory."""
    role = row["configured_role"]
    if row["role"] != role:
        role = f"{role} → {row['role']}"
    role = f"{role}, {'' if row['confirmatory'] else 'not '}confirmatory"
    why = [] if row["confirmatory"] else [("ink", _reason(row))]
    return [("ink", role), *why, ("muted", _there_is(row)), ("muted", _left_out(row))]


def _there_is(row: dict[str, Any]) -> str:
    return f"{counted(row['n_subjects'], 'subject')}, {counted(row['n_runs'], 'run')}, " + (
        f"{row['n_stimuli']} stimulus" if row["n_stimuli"] == 1 else f"{row['n_stimuli']} stimuli"
    )


def _left_out(row: dict[str, Any]) -> str:
    left = [
        counted(row[column], noun)
        for column, noun in (
            ("n_subject_runs_excluded", "recording"),
            ("n_units_excluded", "unit"),
            ("n_events_excluded", "event"),
        )
        if row[column]
    ]
    return f"left out: {', '.join(left)}" if left else "nothing left out"


def _reason(row: dict[str, Any]) -> str:
    known = next((own.explanation for own in Reason if own.value == row["role_reason"]), "")
    return str(row["role_detail"] or known or words(row["role_reason"]))


def _why(row: dict[str, Any]) -> str:
    return "confirmatory" if row["confirmatory"] else f"not confirmatory: {_reason(row)}"


def _dataset_mark(row: dict[str, Any]) -> str:
    return mark(
        f"{row['dataset']}: role {row['configured_role']} in the study file, {row['role']} after the "
        f"audit, {_why(row)}. "
        f"{_there_is(row)}; {counted(row['n_subject_runs'], 'usable subject-run')}; {_left_out(row)}; "
        f"{counted(row['n_excluded'], 'finding')} of exclusion, {counted(row['n_notes'], 'note')}",
        dataset=row["dataset"],
    )


def _links(canvas: Canvas, placed: list[tuple[dict[str, Any], float]]) -> None:
    cells = [
        {
            "x": _LEFT + (i + 0.5) * _LINK,
            "y": y + 26,
            "there": row[flag],
            "text": _COUNTS[flag](row),
            MARK: mark(
                f"{row['dataset']}, link {name}: {'there' if row[flag] else 'missing'}; {_COUNTS[flag](row)} "
                f"({noun})",
                dataset=row["dataset"],
                value=float(row[flag]),
            ),
        }
        for row, y in placed
        for i, (flag, (name, noun)) in enumerate(LINKS.items())
    ]
    frame = pl.DataFrame(cells, infer_schema_length=None)
    canvas.symbols(frame.filter("there"), "circle", radius=6, fill="pass")
    canvas.symbols(frame.filter(~pl.col("there")), CROSS, radius=6, edge="fail")
    canvas.words(
        frame.drop(MARK).with_columns(y=pl.col("y") + 19), size=10, align="center", limit=_LINK - 4
    )


def _levels(canvas: Canvas, placed: list[tuple[dict[str, Any], float]]) -> None:
    """Subject-runs that a level can use: a full disc for all of them, a part of it for some."""
    cells = [
        {
            "x": _SPLIT + (i + 0.5) * _LEVEL,
            "y": y + 26,
            "share": min(row[level] / row["n_subject_runs"], 1.0) if row["n_subject_runs"] else 0.0,
            "text": f"{row[level]} of {row['n_subject_runs']}",
            MARK: mark(
                f"{row['dataset']}, {level}: {row[level]} of {counted(row['n_subject_runs'], 'subject-run')}"
                + (
                    f" can be paired ({words(row['modes'])})"
                    if level == "ceiling" and row["modes"]
                    else ""
                ),
                dataset=row["dataset"],
                value=float(row[level]),
            ),
        }
        for row, y in placed
        for i, level in enumerate(LEVELS)
    ]
    frame = pl.DataFrame(cells, infer_schema_length=None)
    part = frame.filter((pl.col("share") > 0) & (pl.col("share") < 1))
    canvas.symbols(frame.filter(pl.col("share") >= 1), "circle", radius=6, fill="pass")
    canvas.symbols(frame.filter(pl.col("share") <= 0), CROSS, radius=6, edge="fail")
    canvas.symbols(part, "circle", radius=6, fill="paper", edge="pass", thick=1.2)
    for (share,), own in part.group_by("share", maintain_order=True):
        canvas.symbols(own.drop(MARK), wedge(float(str(share))), radius=6, fill="pass")
    canvas.words(frame.drop(MARK).with_columns(y=pl.col("y") + 19), size=10, align="center")


def _caption(rows: pl.DataFrame) -> str:
    lowered = rows.filter(pl.col("role") != pl.col("configured_role")).height
    changed = (
        f" An arrow shows a role that the audit lowered ({lowered} of {rows.height})."
        if lowered
        else " The audit left every role as the study file has it."
    )
    return (
        f"One row a dataset ({rows.height}), with its role.{changed} Left: links of the evidence chain, with "
        "usable brain "
        "units (the largest count of one recording), words of all stimuli, models with features, severe controls "
        "available in at least one layer, possible reliability modes, and usable subject-runs; a dataset that lacks a "
        "link cannot be confirmatory. Right: how many of its usable subject-runs each level can use."
    )


def _summary(rows: pl.DataFrame) -> str:
    able = rows.filter("confirmatory")["dataset"].to_list()
    told = [
        f"{counted(len(able), 'dataset')} of {rows.height} can carry confirmatory evidence"
        + (f": {', '.join(able)}." if able else ".")
    ]
    rest = rows.filter(~pl.col("confirmatory")).iter_rows(named=True)
    told += [f"{row['dataset']} is {_why(row)}." for row in rest]
    return " ".join(told)
