"""What weaker rules would have called positive, beside what passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.analyses.lpact.robustness.decided import DecidedRun
from lpact.analyses.lpact.tables.levels import (
    CONTROL_DELTAS,
    DISSOCIATIONS,
    NORMALIZED_SCORES,
    PROFILE_DELTAS,
    STRIPPING_DELTAS,
)
from lpact.analyses.lpact.tables.robustness import CONVENTIONAL_CONTRAST
from lpact.store import frame, validate

PEARSON = "pearson"


@dataclass(frozen=True)
class WeakerRule:
    """A rule on rows: which of them it calls positive, which pass, and the gate that asks for more."""

    analysis: str
    rule: str
    positive: pl.Series
    passed: pl.Series
    gate: str
    interpretation: str


def conventional_contrast(run: DecidedRun) -> pl.DataFrame:
    """Seven weaker rules.

    Six count rows of the stored tables, with or without a number and whatever the dataset's role. The last counts
    claims with any raw positive.
    """
    rules = [*_prediction(run), *_structure(run)]
    rows = [
        {
            "analysis": weaker.analysis,
            "gate_profile": profile,
            "rule": weaker.rule,
            "counted": "rows",
            "n_positive": int(weaker.positive.sum()),
            "n_total": len(weaker.positive),
            "n_lpact_pass": int(weaker.passed.sum()),
            **_claims(run.decisions.filter(gate_profile=profile), weaker.gate),
            "interpretation": weaker.interpretation,
        }
        for profile in run.profiles
        for weaker in rules
    ]
    rows += [_integrated(run.decisions, profile) for profile in run.profiles]
    return validate(frame(CONVENTIONAL_CONTRAST, rows), CONVENTIONAL_CONTRAST)


def _prediction(run: DecidedRun) -> list[WeakerRule]:
    level1 = run.base[CONTROL_DELTAS.name]
    pearson = level1.filter(pl.col("metric") == PEARSON)
    return [
        WeakerRule(
            "raw_predictive_pearson",
            "real_score > 0, metric pearson",
            pearson["real_score"] > 0,
            pearson["gate_pass"],
            "predictive",
            "a positive score can be nuisance or autocorrelation",
        ),
        WeakerRule(
            "nuisance_only_improvement",
            "delta_nuisance > 0, all metrics",
            level1["delta_nuisance"] > 0,
            level1["gate_pass"],
            "severe_control_level1",
            "beating nuisance is not beating the severe controls",
        ),
    ]


def _structure(run: DecidedRun) -> list[WeakerRule]:
    """Levels 2 to 4. A double dissociation is a diagnostic that enters no gate, so that none passes."""
    base, minimum = run.base, run.gates.min_ceiling_fraction
    level2, drops = base[PROFILE_DELTAS.name], base[STRIPPING_DELTAS.name]
    pairs, ceiling = base[DISSOCIATIONS.name], base[NORMALIZED_SCORES.name]
    return [
        WeakerRule(
            "raw_relational_similarity",
            "real_similarity > 0",
            level2["real_similarity"] > 0,
            level2["gate_pass"],
            "relational",
            "control patterns resemble the brain's as well",
        ),
        WeakerRule(
            "raw_stripping_drop",
            "drop > 0, all targets",
            drops["drop"] > 0,
            drops["gate_pass"],
            "mechanism_specific",
            "any strip can cost score; it must cost the matching target most",
        ),
        WeakerRule(
            "pairwise_double_dissociation",
            "both matching drops positive and above the crossed ones",
            pairs["double_dissociation"],
            pairs["double_dissociation"] & False,
            "mechanism_specific",
            "diagnostic only; it enters no gate",
        ),
        WeakerRule(
            "raw_ceiling_fraction",
            f"fraction_of_ceiling >= {minimum:g}",
            ceiling["fraction_of_ceiling"] >= minimum,
            ceiling["gate_pass"],
            "ceiling",
            "the fraction must survive the contrast with the best control",
        ),
    ]


def _claims(decisions: pl.DataFrame, gate: str) -> dict[str, Any]:
    return {
        "n_claims": decisions.height,
        "n_claims_pass": int(decisions[gate].sum()),
        "gate": gate,
    }


def _integrated(all_decisions: pl.DataFrame, profile: str) -> dict[str, Any]:
    decisions = all_decisions.filter(gate_profile=profile)
    claims = _claims(decisions, "integrated")
    return {
        "analysis": "integrated_decision",
        "gate_profile": profile,
        "rule": "a raw positive at any level",
        "counted": "claims",
        "n_positive": int(decisions["raw_positive"].sum()),
        "n_total": decisions.height,
        "n_lpact_pass": claims["n_claims_pass"],
        **claims,
        "interpretation": "a claim must pass every gate; nothing compensates",
    }
