"""The decision matrix: one row a dataset, model and layer, one column a gate, for both gate profiles."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.lpact.figures.common import GATES, LABEL_RANK, PROFILES
from lpact.analyses.lpact.figures.decision_matrix_drawing import draw
from lpact.analyses.lpact.figures.layers import LAYER
from lpact.analyses.lpact.figures.wording import counted, number
from lpact.analyses.lpact.gates.wording import words
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.codes import FinalLabel
from lpact.report.figure import Figure, Material, Missing

NAME = "decision_matrix"
TITLE = "Decision matrix: claims by gates"
_BY_CONTROLS = ("P", "S", "R")
"""Gates whose failures name a control, by the code that all pictures use."""
MOST_ROWS = 400
"""Layers that are drawn; of larger studies those with the best verdicts."""


def rows_of(material: Material) -> pl.DataFrame:
    """One row a gate profile, dataset, model and layer, in the order of the table's key.

    Columns of a gate's letter count the mechanisms whose claim passes it, out of ``n_claims``. ``label`` is the
    strongest verdict among the mechanisms and ``n_label`` how many have it; ``first_failed_gate`` and ``beaten_by`` are
    those of the one that passes most gates among these, and ``n_failed`` of all claims failed on the same.
    """
    decisions = material.table(DECISIONS.name)
    gates = list(GATES.values())
    ranked = decisions.with_columns(
        rank=pl.col("label").replace_strict(LABEL_RANK, return_dtype=pl.Int64),
        n_passed=pl.sum_horizontal(pl.col(gates).cast(pl.Int64)),
        place=pl.col("gate_profile").replace_strict(
            {name: i for i, name in enumerate(PROFILES)}, return_dtype=pl.Int64
        ),
    ).sort("place", *LAYER, "rank", -pl.col("n_passed"), "mechanism")
    return ranked.group_by("gate_profile", *LAYER, maintain_order=True).agg(
        pl.col("role").first(),
        pl.col("raw_score").fill_nan(None).first(),
        pl.col("n_subject_runs").first(),
        pl.len().cast(pl.Int64).alias("n_claims"),
        *(pl.col(column).sum().cast(pl.Int64).alias(letter) for letter, column in GATES.items()),
        pl.col("rank").first(),
        pl.col("label").first(),
        (pl.col("label") == pl.col("label").first()).sum().cast(pl.Int64).alias("n_label"),
        pl.col("first_failed_gate").first(),
        pl.col("beaten_by").first(),
        pl.struct("first_failed_gate", "beaten_by")
        .eq(pl.struct("first_failed_gate", "beaten_by").first())
        .sum()
        .cast(pl.Int64)
        .alias("n_failed"),
        pl.col("reason").first(),
        (pl.col("label") != FinalLabel.DIAGNOSTIC_ONLY.value).first().alias("confirmatory"),
    )


def drawn(rows: pl.DataFrame, most: int = MOST_ROWS) -> pl.DataFrame:
    """At most ``most`` layers: of every dataset and model alike those with the best verdict, then the highest score."""
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
    said = f"{gate}: {beaten}" if gate else beaten
    if row["n_failed"] < row["n_claims"]:
        said = f"{said}, {row['n_failed']} of {row['n_claims']}"
    return label, said


def told(row: dict[str, Any]) -> str:
    """What one reads on hovering over a row's verdict."""
    own = f"{row['dataset']}, {row['model']}, layer {row['layer']}; {PROFILES[row['gate_profile']]}"
    passed = ", ".join(f"{letter} {row[letter]}" for letter in GATES)
    return (
        f"{own}: {words(row['label'])} for {row['n_label']} of {counted(row['n_claims'], 'claim')}. "
        f"Claims that pass: {passed}. {row['reason']}"
    )


def make(material: Material) -> Figure | Missing:
    """Draw the matrix."""
    if not material.has(DECISIONS.name):
        return Missing(NAME, TITLE, f"the run has no table {DECISIONS.name}")
    rows = rows_of(material)
    if rows.is_empty():
        return Missing(NAME, TITLE, "the study makes no claim")
    shown = drawn(rows)
    texts = [(*verdict_text(row), told(row)) for row in shown.iter_rows(named=True)]
    added = pl.DataFrame(texts, schema=["verdict", "failed", "told"], orient="row")
    spec = draw(pl.concat([shown, added], how="horizontal"), material.config.readout.primary_metric)
    return Figure(NAME, TITLE, _caption(rows, shown), spec, _summary(rows))


def _caption(rows: pl.DataFrame, shown: pl.DataFrame) -> str:
    n_layers, n_shown = (own.select(LAYER).n_unique() for own in (rows, shown))
    said = [
        f"One row a layer of a model in a dataset ({counted(n_shown, 'row')}); its claims, one a mechanism, "
        "are at most "
        f"{max(rows['n_claims'].to_list())}, and only gate M and the verdict can differ between them.",
        "The verdict is the strongest of the row, with the first gate that its best claim failed and what it was "
        "beaten by (“1 of 6”: so many of the row's claims; the others failed on something else).",
        "Bars: mean held-out score of the real features over subject-runs, what a conventional analysis reports; "
        "hollow where it is below zero.",
    ]
    missing = rows.filter(pl.col("raw_score").is_null()).select(LAYER).n_unique()
    if missing:
        said.append(f"{counted(missing, 'row')} without a score: a dash.")
    if n_shown < n_layers:
        said.append(
            f"{n_layers - n_shown} of {n_layers} rows are left out for room, those with weaker verdicts of each "
            f"dataset and model; the table {DECISIONS.name} has all."
        )
    return " ".join(said)


def _summary(rows: pl.DataFrame) -> str:
    parts = []
    for (profile,), own in rows.group_by("gate_profile", maintain_order=True):
        counts = own.sort("rank").group_by("label", maintain_order=True).len()
        verdicts = ", ".join(f"{words(label)} {n}" for label, n in counts.iter_rows())
        parts.append(f"{PROFILES[str(profile)]}, best verdict of each row: {verdicts}.")
    best = rows.sort("raw_score", descending=True, nulls_last=True).row(0, named=True)
    if best["raw_score"] is not None:
        parts.append(
            f"The highest raw score is {number(best['raw_score'])} ({best['dataset']}, {best['model']}, "
            f"layer {best['layer']})."
        )
    return " ".join(parts)
