"""Tables over claims: decisions and their evidence, summaries, and the outcome of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import Claim
from lpact.analyses.lpact.gates.claims import Standing
from lpact.analyses.lpact.gates.criteria import ClaimEvidence, Criterion, CriterionName, Profile
from lpact.analyses.lpact.gates.discoveries import RUNGS, Discoveries, discover, rung_p_values
from lpact.analyses.lpact.gates.verdict import RawEvidence, final_label, judge
from lpact.analyses.lpact.tables.decisions import (
    CONTROL_EXPLAINED,
    DECISION_SUMMARY,
    DECISIONS,
    GATE_EVIDENCE,
    STUDY_OUTCOME,
)
from lpact.codes import FinalLabel, Gate, Outcome
from lpact.store import polars_schema, validate
from lpact.wording import counted


@dataclass(frozen=True)
class Claims:
    """The claims of a study: what they show without controls, and the standing of their datasets."""

    gates: GatesConfig
    names: Sequence[Claim]
    raw: Mapping[Claim, RawEvidence]
    standings: Mapping[str, Standing]


def decision_table(profile: Profile, claims: Claims) -> pl.DataFrame:
    """One row per claim, in the order of the claims."""
    evidence = {claim: profile.of(claim) for claim in claims.names}
    found: Mapping[Claim, Discoveries] = {}
    if profile.corrected:
        found = discover(evidence, claims.standings, claims.names, claims.gates)
    rows = [
        (*claim, profile.name, *_decision_row(claim, own, claims, found.get(claim, Discoveries())))
        for claim, own in evidence.items()
    ]
    return pl.DataFrame(rows, schema=polars_schema(DECISIONS), orient="row")


def _decision_row(
    claim: Claim, evidence: ClaimEvidence, claims: Claims, discoveries: Discoveries
) -> tuple[Any, ...]:
    """The columns after the key, in their declared order. No gate of a diagnostic dataset is passed."""
    standing, raw, gates = claims.standings[claim[0]], claims.raw[claim], claims.gates
    verdict = judge(evidence, standing, raw, gates, discoveries)
    passed = (
        evidence[Gate.PREDICTIVE].passed,
        evidence[Gate.RELATIONAL].passed,
        evidence[Gate.MECHANISM].passed,
        evidence[Gate.CEILING].passed,
        evidence.severe_level1.passed,
        evidence.severe_level2.passed,
        evidence[Gate.SEVERE_CONTROL].passed,
        evidence[Gate.REPLICATION].passed,
        evidence.passed and FinalLabel.INTEGRATED_CANDIDATE in discoveries.allowed,
    )
    return (
        standing.role,
        raw.n_subject_runs,
        raw.score,
        raw.positive(gates),
        *(standing.confirmatory and gate for gate in passed),
        discoveries.p_value,
        discoveries.q_value,
        verdict.label.value,
        verdict.first_failed_gate,
        verdict.beaten_by,
        verdict.reason,
    )


def evidence_table(profile: Profile, claims: Claims) -> pl.DataFrame:
    """One row per claim, gate and criterion.

    The first criterion of every gate is the dataset's standing, so that a gate passes exactly if all decisive rows do.
    """
    order = {gate: place for place, gate in enumerate(Gate)}
    rows = []
    for claim in claims.names:
        standing = claims.standings[claim[0]]
        name, value = CriterionName.CONFIRMATORY, float(standing.confirmatory)
        said = (standing.role, standing.sentence, standing.why_not)
        confirmatory = Criterion(name, ">=", 1.0, value, 1, *said)
        for gate in profile.of(claim).in_order():
            for place, c in enumerate((confirmatory, *gate.criteria)):
                key = (*claim, profile.name, gate.gate.value, order[gate.gate], c.name.value, place)
                numbers = (c.value, c.relation, c.threshold, c.passed, c.n)
                rows.append((*key, *numbers, c.compared_with, c.sentence))
    found = pl.DataFrame(rows, schema=polars_schema(GATE_EVIDENCE), orient="row")
    return validate(found, GATE_EVIDENCE)


def integrated_table(profile: Profile, claims: Claims) -> pl.DataFrame:
    """Which claims pass every gate before any correction, without the words of the decision table.

    ``uncovered``: the label is `insufficient_coverage`. ``p_value`` as in the decision table, where the profile has
    tests.
    """
    rows = []
    for claim in claims.names:
        evidence, standing = profile.of(claim), claims.standings[claim[0]]
        label = final_label(evidence, standing, claims.raw[claim], claims.gates, frozenset(RUNGS))
        p = None
        if profile.corrected and standing.confirmatory:
            p = rung_p_values(evidence, claims.gates)[FinalLabel.INTEGRATED_CANDIDATE]
        passed = standing.confirmatory and evidence.passed
        rows.append((*claim, profile.name, passed, label is FinalLabel.INSUFFICIENT_COVERAGE, p))
    declared = polars_schema(DECISIONS)
    schema = {name: declared[name] for name in DECISIONS.key}
    schema |= {"passed": pl.Boolean(), "uncovered": pl.Boolean(), "p_value": pl.Float64()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def explained_claims(decisions: pl.DataFrame) -> pl.DataFrame:
    """Claims with a raw positive that nuisance, a control or an unmet gate accounts for."""
    explained = decisions.filter(pl.col("label") == FinalLabel.CONTROL_EXPLAINED.value)
    return validate(explained.select(CONTROL_EXPLAINED.column_names), CONTROL_EXPLAINED)


def summarise_decisions(decisions: pl.DataFrame) -> pl.DataFrame:
    """Count claims and passed gates by dataset and verdict."""
    gates = ("predictive", "relational", "ceiling", "severe_control", "replication")
    columns = {"mechanism": "mechanism_specific", **{gate: gate for gate in gates}}
    summary = decisions.group_by(DECISION_SUMMARY.key, maintain_order=True).agg(
        n_claims=pl.len().cast(pl.Int64),
        **{f"n_{name}": pl.col(gate).sum().cast(pl.Int64) for name, gate in columns.items()},
    )
    return validate(summary, DECISION_SUMMARY)


def study_outcome(
    decisions: pl.DataFrame, standings: Mapping[str, Standing], gate_profile: str
) -> pl.DataFrame:
    """Outcome A, B, C or D over the claims of confirmatory datasets with a complete chain; I if there is none."""
    trusted = [name for name, s in standings.items() if s.confirmatory and s.chain_complete]
    claims = decisions.filter(pl.col("dataset").is_in(trusted))
    n_by_label: dict[str, int] = dict(claims["label"].value_counts().iter_rows())
    steps = (
        (Outcome.A, (FinalLabel.INTEGRATED_CANDIDATE,)),
        (Outcome.B, (FinalLabel.RELATIONAL_CANDIDATE, FinalLabel.MECHANISM_SPECIFIC_CANDIDATE)),
        (Outcome.C, (FinalLabel.PREDICTIVE_ONLY,)),
    )
    outcome = Outcome.I
    if claims.height:
        reached = (o for o, labels in steps if any(n_by_label.get(v.value) for v in labels))
        outcome = next(reached, Outcome.D)
    meaning = outcome.explanation
    # Lack of coverage is no evidence of absence.
    if n_uncovered := n_by_label.get(FinalLabel.INSUFFICIENT_COVERAGE.value, 0):
        of = counted(claims.height, "confirmatory claim")
        meaning = f"{meaning.rstrip('.')} ({n_uncovered} of {of} lack coverage)."
    confirmatory = [name for name, s in standings.items() if s.confirmatory]
    row = {
        "gate_profile": gate_profile,
        "outcome": outcome.value,
        "meaning": meaning,
        "n_claims": decisions.height,
        "n_confirmatory_claims": decisions.filter(pl.col("dataset").is_in(confirmatory)).height,
        "n_integrated": n_by_label.get(FinalLabel.INTEGRATED_CANDIDATE.value, 0),
    }
    return validate(pl.DataFrame([row]), STUDY_OUTCOME)
