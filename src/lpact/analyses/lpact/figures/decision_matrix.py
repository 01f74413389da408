"""The decision matrix: one row per dataset, model and layer, one column per gate, for both gate profiles."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    GATE_NAMES,
    GATES,
    LABEL_RANK,
    LAYER,
    PROFILES,
    metric_name,
    where,
)
from lpact.analyses.lpact.gates.wording import words
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.codes import FinalLabel
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure, with_marks
from lpact.report.panels import CROSS, DASH, Look, wedge
from lpact.report.wording import counted, number, short, short_forms

MOST_ROWS = 400
"""Layers that are drawn; of larger studies those with the best verdicts."""
_BY_CONTROLS = ("P", "S", "R")
"""Gates whose failures name a control."""
_NAMES, _SCORES, _GATE, _VERDICT = 150, 62, 25, 205
_LOOKS = {
    "all": Look("circle", "pass", "pass", 110),
    "some": Look("circle", "paper", "pass", 110),
    "none": Look(CROSS, None, "fail", 110),
    "not judged": Look(DASH, None, "line", 90),
}


def rows_of(material: Material) -> pl.DataFrame:
    """One row per gate profile, dataset, model and layer, in the order of the table's key.

    Columns of a gate's letter count the mechanisms whose claim passes it, out of ``n_claims``. ``label`` is the
    strongest verdict among the mechanisms and ``n_label`` how many have it; ``first_failed_gate`` and ``beaten_by`` are
    those of the one that passes most gates among these, and ``n_failed`` of all claims failed on the same.
    """
    ranked = (
        material.table(DECISIONS.name)
        .with_columns(
            rank=pl.col("label").replace_strict(LABEL_RANK, return_dtype=pl.Int64),
            n_passed=pl.sum_horizontal(pl.col(list(GATES.values())).cast(pl.Int64)),
            place=pl.col("gate_profile").replace_strict(
                {name: i for i, name in enumerate(PROFILES)}, return_dtype=pl.Int64
            ),
        )
        .sort("place", *LAYER, "rank", -pl.col("n_passed"), "mechanism")
    )
    failure = pl.struct("first_failed_gate", "beaten_by")
    return ranked.group_by("gate_profile", *LAYER, maintain_order=True).agg(
        pl.col("role", "n_subject_runs", "rank", "label", "first_failed_gate", "beaten_by").first(),
        pl.col("reason").first(),
        pl.col("raw_score").fill_nan(None).first(),
        *(pl.col(column).sum().cast(pl.Int64).alias(letter) for letter, column in GATES.items()),
        n_claims=pl.len().cast(pl.Int64),
        n_label=(pl.col("label") == pl.col("label").first()).sum().cast(pl.Int64),
        n_failed=failure.eq(failure.first()).sum().cast(pl.Int64),
        confirmatory=(pl.col("label") != FinalLabel.DIAGNOSTIC_ONLY.value).first(),
    )


def drawn(rows: pl.DataFrame, most: int = MOST_ROWS) -> pl.DataFrame:
    """At most ``most`` layers: the same number per dataset and model, by best verdict and then highest score."""
    layers = rows.group_by(LAYER, maintain_order=True).agg(
        pl.col("rank").min(), pl.col("raw_score").first()
    )
    if layers.height <= most:
        return rows
    groups = layers.select("dataset", "model").n_unique()
    kept = (
        layers.sort("rank", -pl.col("raw_score").fill_null(float("-inf")), *LAYER)
        .group_by("dataset", "model", maintain_order=True)
        .head(max(1, most // groups))
        .select(LAYER)
    )
    return rows.join(kept, on=LAYER, how="semi", maintain_order="left")


def verdict_text(row: dict[str, Any]) -> tuple[str, str]:
    """The verdict, and what it failed on where it is not the strongest: ``control explained``, ``P: nuisance``."""
    label = words(row["label"])
    if row["n_label"] < row["n_claims"]:
        label = f"{label}, {row['n_label']} of {row['n_claims']}"
    if row["beaten_by"] == "none" or row["label"] == FinalLabel.INTEGRATED_CANDIDATE.value:
        return label, ""
    letters = {"mechanism": "M"} | {column: letter for letter, column in GATES.items()}
    gate = letters.get(row["first_failed_gate"])
    beaten = row["beaten_by"] if gate in _BY_CONTROLS else words(row["beaten_by"])
    failed = f"{gate}: {beaten}" if gate else beaten
    if row["n_failed"] < row["n_claims"]:
        failed = f"{failed}, {row['n_failed']} of {row['n_claims']}"
    return label, failed


@figure("decision_matrix", "Decision matrix: claims by gates", DECISIONS)
def make(material: Material) -> Drawing | str:
    """Draw the matrix."""
    rows = rows_of(material)
    if rows.is_empty():
        return "the study makes no claim"
    shown = drawn(rows)
    metric = metric_name(material.config.readout.primary_metric)
    n_layers = shown.select(LAYER).n_unique()
    step = 28 if n_layers <= 40 else 16 if n_layers <= 120 else 13
    blocks = [
        _block(own, metric, panels.domain(shown["raw_score"]), step, first=i == 0)
        for i, own in enumerate(shown.partition_by("dataset", maintain_order=True))
    ]
    letters = " · ".join(f"{letter} {name}" for letter, name in GATE_NAMES.items())
    key = panels.key(
        ("all claims pass", _LOOKS["all"]),
        ("some do, n/m", Look(wedge(1 / 3), "pass", "pass", 110)),
        ("none passes", _LOOKS["none"]),
        ("not confirmatory, no gate can pass", _LOOKS["not judged"]),
        letters,
        width=700,
    )
    chart = panels.stacked(*blocks, key, spacing=12)
    return chart, _caption(rows, shown), _summary(rows)


def _block(
    rows: pl.DataFrame, metric: str, domain: tuple[float, float], step: int, *, first: bool
) -> alt.HConcatChart:
    """The rows of one dataset: names, scores, and for each profile gates and verdicts."""
    name = pl.col("model").replace_strict(short_forms(rows["model"], 18), return_dtype=pl.String)
    rows = rows.with_columns(
        lane=pl.format("{}/{}", "model", "layer"), name=pl.format("{} · {}", name, "layer")
    )
    layers = rows.unique(LAYER, maintain_order=True)
    y = {**panels.lanes("lane", layers["lane"].to_list()), "axis": None}
    head = "model · layer" if first else ""
    size = min(11, step - 3)
    parts: list[Any] = [
        panels.column(layers, "name", y, _NAMES, height={"step": step}, size=size, title=head),
        _scores(layers, f"raw {metric}" if first else "", domain, y, step),
    ]
    for profile in PROFILES:
        own = rows.filter(gate_profile=profile)
        if own.height:
            parts.append(_gates(own, f"{PROFILES[profile]} ({profile})", y, step, first=first))
            head = "best verdict · failed gate: beaten by" if first else ""
            parts.append(_verdicts(own, head, y, step))
    title = f"{short(layers['dataset'][0], 120)} ({layers['role'][0]})"
    return panels.beside(*parts, title=panels.title(title, offset=10 if first else 6), spacing=10)


def _scores(
    layers: pl.DataFrame, head: str, domain: tuple[float, float], y: Spec, step: int
) -> alt.LayerChart:
    """Bars from zero, hollow where negative, with the number beside them."""
    shown = [number(value, 2) for value in layers["raw_score"]]
    marked = with_marks(layers.with_columns(pl.Series("shown", shown)), _score_tooltip, "raw_score")
    x, positive = panels.bare("raw_score", domain), pl.col("raw_score") > 0
    height = 11 if step > 16 else 8
    return panels.overlay(
        panels.bars(marked.filter(positive), x, y, "real", height=height),
        panels.bars(marked.filter(~positive), x, y, "control", hollow=True, height=height),
        panels.text(marked.drop("mark"), "shown", {"value": -6}, y, align="right", size=10),
        panels.reference(0),
        panels.heading(head, -34),
        width=_SCORES,
        height={"step": step},
    )


def _gates(rows: pl.DataFrame, head: str, y: Spec, step: int, *, first: bool) -> alt.LayerChart:
    """One symbol per gate."""
    cells = rows.unpivot(
        list(GATES),
        index=["gate_profile", *LAYER, "lane", "n_claims", "confirmatory"],
        variable_name="gate",
        value_name="n_passed",
    )
    share = pl.col("n_passed") / pl.col("n_claims")
    kind = (
        pl.when(~pl.col("confirmatory"))
        .then(pl.lit("not judged"))
        .otherwise(share.replace_strict({0.0: "none", 1.0: "all"}, default="some"))
    )
    cells = cells.with_columns(kind=kind, share=pl.format("{}/{}", "n_passed", "n_claims"))
    marked = panels.with_looks(with_marks(cells, _gate_tooltip, "n_passed"), "kind", _LOOKS)
    small = step < 20
    if small:
        marked = marked.with_columns(size=pl.lit(70.0))
    part = marked.filter(kind="some").drop("mark")
    wedges = part.with_columns(shape=share.map_elements(wedge, pl.String), fill="stroke")
    x = panels.lanes("gate", list(GATES), labels=first, orient="top")
    x["axis"] |= {"labelFontWeight": "bold", "labelPadding": 3}
    return panels.overlay(
        panels.points(marked, x, y, thick=1.8),
        panels.points(wedges, x, y, thick=0.5),
        panels.text(part.clear() if small else part, "share", x, y, size=8, align="center", dy=11),
        panels.heading(head if first else "", y=-28, ink="ink", fontWeight="bold"),
        width=_GATE * len(GATES),
        height={"step": step},
    )


def _verdicts(rows: pl.DataFrame, head: str, y: Spec, step: int) -> alt.LayerChart:
    """The verdict, bold where it is positive, and what it failed on: below it, or beside it in small rows."""
    texts = [verdict_text(row) for row in rows.iter_rows(named=True)]
    two, room = step > 20, _VERDICT // 5
    rows = rows.with_columns(
        pl.Series("upper", [short(v if two or not f else f"{v} · {f}", room) for v, f in texts]),
        pl.Series("lower", [short(f, room) if two else "" for _, f in texts]),
        strong=pl.col("label").str.ends_with("_candidate") | (pl.col("label") == "predictive_only"),
    )
    marked, below, left = with_marks(rows, _verdict_tooltip), pl.col("lower") != "", {"value": 0}
    upper = [
        panels.text(
            marked.filter(below == two_lines, strong=strong),
            "upper",
            left,
            y,
            size=min(10, step - 4),
            dy=-6 if two_lines else 0,
            fontWeight="bold" if strong else "normal",
        )
        for two_lines in (True, False)
        for strong in (True, False)
    ]
    return panels.overlay(
        *upper,
        panels.text(rows.filter(below), "lower", left, y, size=10, ink="muted", dy=7),
        panels.heading(head),
        width=_VERDICT,
        height={"step": step},
    )


def _score_tooltip(row: dict[str, Any]) -> str:
    over = counted(row["n_subject_runs"], "subject-run")
    return f"{where(row)}: raw score {number(row['raw_score'])}, mean over {over}"


def _gate_tooltip(row: dict[str, Any]) -> str:
    gate = f"{PROFILES[row['gate_profile']]}, gate {row['gate']}, {GATE_NAMES[row['gate']]}"
    if not row["confirmatory"]:
        return f"{where(row)}; {gate}: not confirmatory, no gate can pass"
    return f"{where(row)}; {gate}: {row['n_passed']} of {row['n_claims']} claims pass"


def _verdict_tooltip(row: dict[str, Any]) -> str:
    passed = ", ".join(f"{letter} {row[letter]}" for letter in GATES)
    return (
        f"{where(row)}; {PROFILES[row['gate_profile']]}: {words(row['label'])} for {row['n_label']} of "
        f"{counted(row['n_claims'], 'claim')}. Claims that pass: {passed}. {row['reason']}"
    )


def _caption(rows: pl.DataFrame, shown: pl.DataFrame) -> str:
    n_layers, n_shown = (own.select(LAYER).n_unique() for own in (rows, shown))
    parts = [
        f"One row per dataset, model and layer ({counted(n_shown, 'row')}), with one claim per mechanism (at most "
        f"{max(rows['n_claims'].to_list())}); only gate M and the verdict can differ between the claims of a row.",
        "The verdict is the strongest of the row, with the first gate that its best claim failed and what it was "
        "beaten by (“1 of 6” counts the claims of the row to which this applies).",
        "Bars show what a conventional analysis reports, the mean held-out score of the real features over "
        "subject-runs; hollow bars are below zero.",
    ]
    missing = rows.filter(pl.col("raw_score").is_null()).select(LAYER).n_unique()
    if missing:
        parts.append(f"{counted(missing, 'row')} without a score: a dash.")
    if n_shown < n_layers:
        parts.append(
            f"{n_layers - n_shown} of {n_layers} rows, those with the weaker verdicts of each dataset and model, are "
            f"left out for lack of space; the table {DECISIONS.name} has all of them."
        )
    return " ".join(parts)


def _summary(rows: pl.DataFrame) -> str:
    parts = []
    for (profile,), own in rows.group_by("gate_profile", maintain_order=True):
        counts = own.sort("rank").group_by("label", maintain_order=True).len()
        verdicts = ", ".join(f"{words(label)} {n}" for label, n in counts.iter_rows())
        parts.append(
            f"{PROFILES[str(profile)].capitalize()}, best verdict of each row: {verdicts}."
        )
    best = rows.sort("raw_score", descending=True, nulls_last=True).row(0, named=True)
    if best["raw_score"] is not None:
        parts.append(
            f"The highest raw score is {number(best['raw_score'])} ({best['dataset']}, {best['model']}, "
            f"layer {best['layer']})."
        )
    return " ".join(parts)
