"""Rows that a weaker rule and L-PACT can both judge, counted from the run's own tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.common import metric_name
from lpact.analyses.lpact.tables.causal import DISSOCIATIONS, STRIPPING_DELTAS
from lpact.analyses.lpact.tables.ceilings import NORMALIZED_SCORES
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.predictive import CONTROL_DELTAS
from lpact.analyses.lpact.tables.relational import PROFILE_DELTAS
from lpact.codes import FinalLabel

DISSOCIATION = "pairwise_double_dissociation"
"""A diagnostic without a rule for rows: nothing of it can pass or fail."""

COSINE = "cosine"


class _Count(NamedTuple):
    """Where an analysis has its rows: which of them are eligible, and which the weaker rule calls positive."""

    table: str
    eligible: pl.Expr
    positive: pl.Expr
    rule: str


def _analyses(material: Material) -> dict[str, _Count]:
    metric = material.config.readout.primary_metric
    least = LPactConfig.of(material.config).gates.min_ceiling_fraction
    judged, primary = pl.col("confirmatory"), pl.col("metric") == metric
    level1, named = CONTROL_DELTAS.name, metric_name(metric)
    datasets = judged_claims(material)["dataset"].unique().to_list()
    return {
        "raw_predictive_pearson": _Count(
            level1, judged & primary, pl.col("real_score") > 0, f"held-out {named} > 0"
        ),
        "nuisance_only_improvement": _Count(
            level1,
            judged & primary,
            pl.col("delta_nuisance") > 0,
            f"{named} above that of nuisance",
        ),
        "raw_relational_similarity": _Count(
            PROFILE_DELTAS.name, judged, pl.col("real_similarity") > 0, "profile similarity > 0"
        ),
        "raw_stripping_drop": _Count(
            STRIPPING_DELTAS.name,
            judged & pl.col("matching"),
            pl.col("drop") > 0,
            "drop of the matching target > 0",
        ),
        DISSOCIATION: _Count(
            DISSOCIATIONS.name,
            pl.col("dataset").is_in(datasets),
            pl.col("double_dissociation"),
            "matching drops > 0 and above the crossed ones",
        ),
        "raw_ceiling_fraction": _Count(
            NORMALIZED_SCORES.name,
            judged,
            pl.col("fraction_of_ceiling") >= least,
            f"fraction of the ceiling ≥ {least:g}",
        ),
    }


def fair_counts(material: Material, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the contrast table, counted anew over what can pass at all.

    Rows are those of confirmatory datasets, level 1 at the primary metric and level 3 at matching targets; claims are
    those of confirmatory datasets. ``fair`` says whether a row could be counted so; ``n_lpact_pass`` is null where rows
    have no rule.
    """
    analyses = _analyses(material)
    made = []
    for row in rows.iter_rows(named=True):
        found, own = analyses.get(row["analysis"]), dict(row)
        fair = row["counted"] == "claims"
        if found and row["counted"] == "rows" and material.has(found.table):
            own |= _counted(material.table(found.table), found)
            fair = True
        if row["analysis"] == DISSOCIATION:
            own["n_lpact_pass"] = None
        made.append(own | _claims(material, own) | {"fair": fair})
    return pl.DataFrame(made, schema={**rows.schema, "fair": pl.Boolean})


def _counted(table: pl.DataFrame, count: _Count) -> dict[str, Any]:
    eligible = table.filter(count.eligible)
    passed = eligible["gate_pass"].sum() if "gate_pass" in eligible.columns else None
    return {
        "rule": count.rule,
        "n_positive": eligible.filter(count.positive).height,
        "n_total": eligible.height,
        "n_lpact_pass": passed,
    }


def judged_claims(material: Material) -> pl.DataFrame:
    """Claims that can pass: those of confirmatory datasets."""
    label = pl.col("label")
    return material.table(DECISIONS.name).filter(label != FinalLabel.DIAGNOSTIC_ONLY.value)


def _claims(material: Material, row: dict[str, Any]) -> dict[str, Any]:
    claims = judged_claims(material).filter(gate_profile=row["gate_profile"])
    passed = int(claims[row["gate"]].sum()) if row["gate"] in claims.columns else None
    if passed is None:
        return {}
    own: dict[str, Any] = {"n_claims": claims.height, "n_claims_pass": passed}
    if row["counted"] != "claims":
        return own
    raw = pl.col("raw_score") > 0 if row["analysis"] == "raw_score_above_zero" else "raw_positive"
    return own | {
        "n_positive": claims.filter(raw).height,
        "n_total": claims.height,
        "n_lpact_pass": passed,
    }


def positive_shares(material: Material) -> tuple[float, float] | None:
    """Share of positive similarities among confirmatory rows: of profile cosine, and of the other profiles."""
    if not material.has(PROFILE_DELTAS.name):
        return None
    rows = material.table(PROFILE_DELTAS.name).filter("confirmatory")
    cosine = pl.col("profile") == COSINE
    shares = [
        part.filter(pl.col("real_similarity") > 0).height / part.height
        for part in (rows.filter(cosine), rows.filter(~cosine))
        if part.height
    ]
    return (shares[0], shares[1]) if len(shares) == 2 else None
