"""The verdicts in words: one short page of Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import polars as pl

from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.tables.decisions import DECISIONS, STUDY_OUTCOME
from lpact.codes import FinalLabel
from lpact.report.folder import VERDICTS


def verdicts_markdown(
    decisions: pl.DataFrame, outcome: pl.DataFrame, tested: pl.DataFrame | None = None
) -> str:
    """The study's outcome, then every verdict with its reason; mechanisms that share a sentence share a line.

    ``decisions`` are those of the point rules, ``tested`` those in which every gate is a test.
    """
    lines = ["# Verdicts", ""]
    for row in outcome.sort("gate_profile", descending=True).iter_rows(named=True):
        lines += [
            f"**Outcome {row['outcome']}** ({row['gate_profile']} gates). {row['meaning']}",
            "",
        ]
    lines += ["# Under the point rules of the paper", ""]
    lines += _by_dataset(decisions)
    if tested is not None and tested.height:
        lines += ["# With every gate a test", ""]
        lines += _by_dataset(tested)
    lines += [
        "A negative verdict is worth something only if the assay could have said yes: `lpact assay RUN` "
        "tells which positive controls pass.",
        "",
    ]
    lines += ["## What the labels mean", ""]
    used = set(decisions["label"]) | set([] if tested is None else tested["label"])
    lines += [f"- `{label}`: {label.explanation}" for label in FinalLabel if label in used]
    return "\n".join(lines) + "\n"


def verdict_pages(tables: Mapping[str, pl.DataFrame]) -> dict[str, str]:
    """Pages that come with a run itself, by their name in its report folder."""
    decisions = tables[DECISIONS.name]
    page = verdicts_markdown(
        decisions.filter(gate_profile=PAPER),
        tables[STUDY_OUTCOME.name],
        decisions.filter(gate_profile=CALIBRATED),
    )
    return {VERDICTS: page}


def _by_dataset(decisions: pl.DataFrame) -> list[str]:
    lines = []
    for (dataset, role), claims in decisions.group_by("dataset", "role", maintain_order=True):
        lines += [f"## {_safe(dataset)} ({role})", ""]
        shared = claims.group_by("model", "layer", "label", "reason", maintain_order=True).agg(
            "mechanism"
        )
        for row in shared.iter_rows(named=True):
            mechanisms = ", ".join(_safe(m) for m in row["mechanism"])
            claim = f"{_safe(row['model'])}, layer {row['layer']}"
            lines.append(f"- **{claim}** ({mechanisms}): `{row['label']}`. {_safe(row['reason'])}")
        lines.append("")
    return lines


def _safe(text: object) -> str:
    """A string from data as it is, never as markup."""
    escaped = escape(str(text), quote=False)
    for mark in "\\`*[]|":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped
