"""The decision table and its evidence: one row per claim, and one row per claim, gate and criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.claims import Claim, Standing
from lpact.analyses.lpact.gates.criteria import ClaimEvidence, Criterion, CriterionName
from lpact.analyses.lpact.gates.discoveries import (
    RUNGS,
    Discoveries,
    discover,
    everything_allowed,
    rung_p_values,
)
from lpact.analyses.lpact.gates.verdict import RawEvidence, final_label, judge
from lpact.analyses.lpact.tables.decisions import DECISIONS, GATE_EVIDENCE
from lpact.codes import FinalLabel, Gate
from lpact.store import polars_schema, validate


class ProfileEvidence(Protocol):
    """Gates and raw evidence of claims under one gate profile."""

    def of(self, claim: Claim) -> ClaimEvidence:
        """Return the gates of one claim."""
        ...

    def raw(self, claim: Claim) -> RawEvidence:
        """Return what one claim shows before any control is asked."""
        ...


def claim_tables(
    evidence: ProfileEvidence,
    claims: Sequence[Claim],
    standings: Mapping[str, Standing],
    gates: GatesConfig,
    gate_profile: str,
    *,
    corrected: bool,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the decision table and the gate evidence of all claims; ``corrected``: labels over all claims."""
    decisions = decision_table(
        evidence, claims, standings, gates, gate_profile, corrected=corrected
    )
    criteria = [
        (*claim, gate_profile, *row)
        for claim in claims
        for row in _criterion_rows(evidence.of(claim), standings[claim[0]])
    ]
    found = pl.DataFrame(criteria, schema=polars_schema(GATE_EVIDENCE), orient="row")
    return validate(decisions, DECISIONS), validate(found, GATE_EVIDENCE)


def decision_table(
    evidence: ProfileEvidence,
    claims: Sequence[Claim],
    standings: Mapping[str, Standing],
    gates: GatesConfig,
    gate_profile: str,
    *,
    corrected: bool,
) -> pl.DataFrame:
    """Return the decision table alone, in the order of ``claims``."""
    by_claim = {claim: evidence.of(claim) for claim in claims}
    found = discover(by_claim, standings, claims, gates) if corrected else {}
    rows = [
        (
            *claim,
            gate_profile,
            *_decision_row(
                gathered,
                standings[claim[0]],
                evidence.raw(claim),
                gates,
                found.get(claim, everything_allowed()),
            ),
        )
        for claim, gathered in by_claim.items()
    ]
    return pl.DataFrame(rows, schema=polars_schema(DECISIONS), orient="row")


def integrated_table(
    evidence: ProfileEvidence,
    claims: Sequence[Claim],
    standings: Mapping[str, Standing],
    gates: GatesConfig,
    gate_profile: str,
    *,
    tested: bool,
) -> pl.DataFrame:
    """What the decision table says about integrated claims, without its words and before any correction.

    ``passed``: every gate is. ``uncovered``: the label is `insufficient_coverage`. ``p_value`` as in the decision
    table, where the profile has tests.
    """
    rows = []
    for claim in claims:
        gathered, standing = evidence.of(claim), standings[claim[0]]
        every = standing.confirmatory and all(gate.passed for gate in gathered.in_order())
        label = final_label(gathered, standing, evidence.raw(claim), gates, frozenset(RUNGS))
        p = None
        if tested and standing.confirmatory:
            p = rung_p_values(gathered, gates)[FinalLabel.INTEGRATED_CANDIDATE]
        uncovered = label is FinalLabel.INSUFFICIENT_COVERAGE
        rows.append((*claim, gate_profile, every, uncovered, p))
    declared = polars_schema(DECISIONS)
    schema = {name: declared[name] for name in DECISIONS.key}
    schema |= {"passed": pl.Boolean(), "uncovered": pl.Boolean(), "p_value": pl.Float64()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _decision_row(
    evidence: ClaimEvidence,
    standing: Standing,
    raw: RawEvidence,
    gates: GatesConfig,
    discoveries: Discoveries,
) -> tuple[Any, ...]:
    """The columns after the key, in their declared order. No gate of a diagnostic dataset is passed."""
    verdict = judge(evidence, standing, raw, gates, discoveries)
    every = all(gate.passed for gate in evidence.in_order())
    passed = (
        evidence.predictive.passed,
        evidence.relational.passed,
        evidence.mechanism.passed,
        evidence.ceiling.passed,
        evidence.severe_level1.passed,
        evidence.severe_level2.passed,
        evidence.severe_control.passed,
        evidence.replication.passed,
        every and FinalLabel.INTEGRATED_CANDIDATE in discoveries.allowed,
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


def _criterion_rows(evidence: ClaimEvidence, standing: Standing) -> list[tuple[Any, ...]]:
    """Every gate opens with the dataset's standing, so that a gate is passed exactly if all decisive rows are."""
    confirmatory = Criterion(
        CriterionName.CONFIRMATORY,
        float(standing.confirmatory),
        ">=",
        1.0,
        1,
        standing.role,
        standing.sentence,
        standing.why_not,
    )
    order = {gate: place for place, gate in enumerate(Gate)}
    return [
        (
            gate.gate.value,
            order[gate.gate],
            criterion.name.value,
            place,
            criterion.value,
            criterion.relation,
            criterion.threshold,
            criterion.passed,
            criterion.n,
            criterion.compared_with,
            criterion.sentence,
        )
        for gate in evidence.in_order()
        for place, criterion in enumerate((confirmatory, *gate.criteria))
    ]
