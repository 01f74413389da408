"""Conventional scores against L-PACT: what a weaker rule would have called positive, and what passes."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    LABEL_RANK,
    LAYER,
    PROFILES,
    metric_name,
    primary_deltas,
)
from lpact.analyses.lpact.figures.conventional_bars import analysis_name, bars_spec
from lpact.analyses.lpact.figures.conventional_counts import (
    DISSOCIATION,
    fair_counts,
    judged_claims,
    positive_shares,
)
from lpact.analyses.lpact.figures.conventional_scores import scores_spec
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.predictive import CONTROL_DELTAS
from lpact.analyses.lpact.tables.robustness import CONVENTIONAL_CONTRAST
from lpact.report.figure import Figure, Missing, Spec
from lpact.report.wording import counted, number

NAME = "conventional"
TITLE = "Conventional scores against L-PACT"

_ORDER = (
    "raw_predictive_pearson",
    "nuisance_only_improvement",
    "raw_relational_similarity",
    "raw_stripping_drop",
    "pairwise_double_dissociation",
    "raw_ceiling_fraction",
    "raw_score_above_zero",
    "integrated_decision",
)
"""Analyses in the order of the chain; others follow by name."""


def rows_of(material: Material) -> pl.DataFrame:
    """One row an analysis and gate profile: columns of `CONVENTIONAL_CONTRAST`, in the order of the chain.

    Counts are of what can pass at all (`fair_counts`), not those of the table, which has every row.

    Without that table two analyses are counted from the decisions alone: claims with a score above zero, and claims
    with any raw positive.
    """
    if material.has(CONVENTIONAL_CONTRAST.name):
        table = material.table(CONVENTIONAL_CONTRAST.name)
    else:
        table = _from_decisions(material.table(DECISIONS.name))
    analyses = {name: place for place, name in enumerate(_ORDER)}
    profiles = {name: place for place, name in enumerate(PROFILES)}
    return fair_counts(
        material,
        table.with_columns(
            place=pl.col("analysis").replace_strict(
                analyses, default=len(analyses), return_dtype=pl.Int64
            ),
            turn=pl.col("gate_profile").replace_strict(profiles, return_dtype=pl.Int64),
        )
        .sort("place", "analysis", "turn")
        .drop("place", "turn"),
    )


def _from_decisions(decisions: pl.DataFrame) -> pl.DataFrame:
    made: list[dict[str, Any]] = []
    for profile in PROFILES:
        own = decisions.filter(gate_profile=profile)
        if own.is_empty():
            continue
        rules = (
            ("raw_score_above_zero", "raw_score > 0", own["raw_score"] > 0, "predictive"),
            (
                "integrated_decision",
                "a raw positive at any level",
                own["raw_positive"],
                "integrated",
            ),
        )
        for analysis, rule, positive, gate in rules:
            passed = int(own[gate].sum())
            made.append(
                {
                    "analysis": analysis,
                    "gate_profile": profile,
                    "rule": rule,
                    "counted": "claims",
                    "n_positive": int(positive.fill_null(value=False).sum()),
                    "n_total": own.height,
                    "n_lpact_pass": passed,
                    "n_claims": own.height,
                    "n_claims_pass": passed,
                    "gate": gate,
                    "interpretation": "",
                }
            )
    return pl.DataFrame(made, infer_schema_length=None)


def scores_of(material: Material) -> pl.DataFrame:
    """One row a gate profile, dataset, model and layer: mean score, mean score of the best control, strongest verdict.

    Both means run over the same ``n`` subject-runs, those with both numbers; ``n_left_out`` others are counted.
    """
    decisions = material.table(DECISIONS.name).with_columns(
        rank=pl.col("label").replace_strict(LABEL_RANK, return_dtype=pl.Int64),
        turn=pl.col("gate_profile").replace_strict(
            {name: place for place, name in enumerate(PROFILES)}, return_dtype=pl.Int64
        ),
    )
    verdicts = (
        decisions.sort("turn", *LAYER, "rank", "mechanism")
        .group_by("gate_profile", *LAYER, maintain_order=True)
        .agg(pl.col("label").first())
    )
    both = pl.col("real_score").is_finite() & pl.col("best_control_score").is_finite()
    both = both.fill_null(value=False)
    means = (
        primary_deltas(material)
        .group_by(LAYER, maintain_order=True)
        .agg(
            real=pl.col("real_score").filter(both).mean(),
            control=pl.col("best_control_score").filter(both).mean(),
            n=both.sum().cast(pl.Int64),
            n_left_out=(~both).sum().cast(pl.Int64),
        )
    )
    return verdicts.join(means, on=LAYER, how="left", maintain_order="left")


def make(material: Material) -> Figure | Missing:
    """Draw both panels."""
    if not material.has(DECISIONS.name):
        return Missing(NAME, TITLE, f"the run has no table {DECISIONS.name}")
    rows = rows_of(material)
    if rows.is_empty():
        return Missing(NAME, TITLE, "the study makes no claim")
    panels: list[Spec] = [bars_spec(rows)]
    scores = scores_of(material) if material.has(CONTROL_DELTAS.name) else None
    told = ""
    if scores is not None and scores["real"].count():
        metric = metric_name(material.config.readout.primary_metric)
        panels.append(scores_spec(scores, metric))
        told = _scores_caption(scores)
    spec: Spec = {"vconcat": panels, "spacing": 34}
    return Figure(NAME, TITLE, _caption(material, rows) + told, _summary(rows, scores), spec)


def _caption(material: Material, rows: pl.DataFrame) -> str:
    claims = judged_claims(material)
    n, layers = max(rows["n_claims"].to_list()), claims.select(LAYER).n_unique()
    parts = [
        "Above: for each kind of evidence, what a weaker rule alone would have called positive, and what passes, as "
        "shares of what can pass at all, that without a number included: rows and claims of confirmatory datasets, "
        f"level 1 at the primary metric ({metric_name(material.config.readout.primary_metric)}), level 3 at the "
        "matching target. Rows are judged by the point rule for rows, claims by the gate of this evidence.",
        f"The {counted(n, 'claim')} are of {counted(layers, 'layer')}; claims of a layer share everything but the "
        "mechanism.",
    ]
    if DISSOCIATION in set(rows["analysis"]):
        parts.append("Double dissociations are a diagnostic: no rule for rows, so no bar of rows.")
    shares = positive_shares(material)
    if shares:
        parts.append(
            "Similarities above zero are no achievement where patterns are all positive: of profile cosines "
            f"{shares[0]:.0%} are, of the other similarities {shares[1]:.0%}; fractions of the ceiling and "
            "“a raw positive at any level” inherit this."
        )
    uneven = rows.filter(~pl.col("fair"))["analysis"].unique(maintain_order=True)
    if uneven.len():
        names = ", ".join(analysis_name(name) for name in uneven)
        parts.append(
            f"Of these the run's own table is not at hand, and all rows are counted: {names}."
        )
    return " ".join(parts)


def _scores_caption(scores: pl.DataFrame) -> str:
    drawn = scores.filter(pl.col("real").is_not_null())
    layers = drawn.select(LAYER).n_unique()
    absent = scores.select(LAYER).n_unique() - layers
    missing = f" {counted(absent, 'layer')} without these numbers not drawn." if absent else ""
    return (
        f" Below: {counted(layers, 'layer')}, mean held-out score of the real features against that of the best severe "
        "control of each subject-run, over the same subject-runs; below the line of equality a control scores higher. "
        f"Symbols are the layer's strongest verdict.{missing}"
    )


def _summary(rows: pl.DataFrame, scores: pl.DataFrame | None) -> str:
    told = []
    for (_,), own in rows.group_by("analysis", maintain_order=True):
        row = own.row(0, named=True)
        passes = " and ".join(
            f"{each['n_claims_pass']:,} of {each['n_claims']:,} ({PROFILES[each['gate_profile']]})"
            for each in own.iter_rows(named=True)
        )
        told.append(
            f"{analysis_name(row['analysis'])}: {row['n_positive']:,} of {row['n_total']:,} {row['counted']} positive, "
            f"claims that pass {passes}."
        )
    if scores is not None and scores["real"].count():
        layers = scores.filter(pl.col("real").is_not_null()).unique(LAYER, maintain_order=True)
        above = layers.filter(pl.col("real") > pl.col("control")).height
        best = layers.sort("real", descending=True).row(0, named=True)
        told.append(
            f"{above} of {counted(layers.height, 'layer')} score above their best control; the highest score "
            f"is {number(best['real'])}, "
            f"its best control {number(best['control'])}."
        )
    return " ".join(told)
