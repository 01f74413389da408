"""The decision table and its evidence: one row a claim, and one row a claim, gate and criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from lpact.config import GatesConfig
from lpact.decide.claims import Claim, Standing
from lpact.decide.criteria import ClaimEvidence, Criterion, CriterionName
from lpact.decide.evidence import Evidence
from lpact.decide.verdict import RawEvidence, judge
from lpact.reasons import Gate
from lpact.store import polars_schema, validate
from lpact.tables import Table
from lpact.tables.decisions import DECISIONS, GATE_EVIDENCE


def claim_tables(
    evidence: Evidence,
    claims: Sequence[Claim],
    standings: Mapping[str, Standing],
    gates: GatesConfig,
    gate_profile: str,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the decision table and the gate evidence of all claims."""
    decisions: list[tuple[Any, ...]] = []
    criteria: list[tuple[Any, ...]] = []
    for claim in claims:
        standing, gathered = standings[claim[0]], evidence.of(claim)
        head = (*claim, gate_profile)
        decisions.append((*head, *_decision_row(gathered, standing, evidence.raw(claim), gates)))
        criteria += [(*head, *row) for row in _criterion_rows(gathered, standing)]
    return _table(decisions, DECISIONS), _table(criteria, GATE_EVIDENCE)


def _table(rows: list[tuple[Any, ...]], table: Table) -> pl.DataFrame:
    return validate(pl.DataFrame(rows, schema=polars_schema(table), orient="row"), table)


def _decision_row(
    evidence: ClaimEvidence, standing: Standing, raw: RawEvidence, gates: GatesConfig
) -> tuple[Any, ...]:
    """The columns after the key, in their declared order. No gate of a diagnostic dataset is passed."""
    verdict = judge(evidence, standing, raw, gates)
    severe = evidence.severe_control
    passed = (
        evidence.predictive.passed,
        evidence.relational.passed,
        evidence.mechanism.passed,
        evidence.ceiling.passed,
        severe.criterion(CriterionName.SMALLEST_CONTROL_DELTA).passed,
        severe.criterion(CriterionName.SUMMARIES_NOT_REACHED).passed,
        severe.passed,
        evidence.replication.passed,
        all(gate.passed for gate in evidence.in_order()),
    )
    return (
        standing.role,
        raw.n_subject_runs,
        raw.score,
        raw.positive(gates),
        *(standing.confirmatory and gate for gate in passed),
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
