"""Tables over all claims: summary, explained claims, and the outcome of the study."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lpact.analyses.lpact.gates.claims import Standing
from lpact.analyses.lpact.gates.wording import count
from lpact.analyses.lpact.tables.decisions import CONTROL_EXPLAINED, DECISION_SUMMARY, STUDY_OUTCOME
from lpact.codes import FinalLabel, Outcome
from lpact.store import validate

_STRUCTURAL = (FinalLabel.RELATIONAL_CANDIDATE, FinalLabel.MECHANISM_SPECIFIC_CANDIDATE)


def explained_claims(decisions: pl.DataFrame) -> pl.DataFrame:
    """Claims with a raw positive that nuisance, a control or an unmet gate accounts for."""
    explained = decisions.filter(pl.col("label") == FinalLabel.CONTROL_EXPLAINED.value)
    return validate(explained.select(CONTROL_EXPLAINED.column_names), CONTROL_EXPLAINED)


def summarise_decisions(decisions: pl.DataFrame) -> pl.DataFrame:
    """Count claims and passed gates by dataset and verdict."""
    gates = {
        "n_predictive": "predictive",
        "n_relational": "relational",
        "n_mechanism": "mechanism_specific",
        "n_ceiling": "ceiling",
        "n_severe_control": "severe_control",
        "n_replication": "replication",
    }
    summary = decisions.group_by(DECISION_SUMMARY.key, maintain_order=True).agg(
        n_claims=pl.len().cast(pl.Int64),
        **{name: pl.col(gate).sum().cast(pl.Int64) for name, gate in gates.items()},
    )
    return validate(summary, DECISION_SUMMARY)


def study_outcome(
    decisions: pl.DataFrame, standings: Mapping[str, Standing], gate_profile: str
) -> pl.DataFrame:
    """Outcome A, B, C or D over the claims of confirmatory datasets with a complete chain; I if there is none."""
    trusted = [name for name, s in standings.items() if s.confirmatory and s.chain_complete]
    claims = decisions.filter(pl.col("dataset").is_in(trusted))
    labels = claims["label"].value_counts()
    n_by_label: dict[str, int] = dict(labels.iter_rows())
    n_integrated = n_by_label.get(FinalLabel.INTEGRATED_CANDIDATE.value, 0)
    if not claims.height:
        outcome = Outcome.I
    elif n_integrated:
        outcome = Outcome.A
    elif any(n_by_label.get(label.value) for label in _STRUCTURAL):
        outcome = Outcome.B
    elif n_by_label.get(FinalLabel.PREDICTIVE_ONLY.value):
        outcome = Outcome.C
    else:
        outcome = Outcome.D
    confirmatory = [name for name, s in standings.items() if s.confirmatory]
    row = {
        "gate_profile": gate_profile,
        "outcome": outcome.value,
        "meaning": _meaning(outcome, claims.height, n_by_label),
        "n_claims": decisions.height,
        "n_confirmatory_claims": decisions.filter(pl.col("dataset").is_in(confirmatory)).height,
        "n_integrated": n_integrated,
    }
    return validate(pl.DataFrame([row]), STUDY_OUTCOME)


def _meaning(outcome: Outcome, n_claims: int, n_by_label: Mapping[str, int]) -> str:
    """The outcome in one sentence; lack of coverage is named, since it is no evidence of absence."""
    n_uncovered = n_by_label.get(FinalLabel.INSUFFICIENT_COVERAGE.value, 0)
    if not n_uncovered:
        return outcome.explanation
    return (
        f"{outcome.explanation.rstrip('.')} "
        f"({n_uncovered} of {count(n_claims, 'confirmatory claim')} lack coverage)."
    )
