"""The story of one claim: its verdict, gate by gate, each number with what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from lpact.analyses.lpact.claim_story.changes import what_would_change
from lpact.analyses.lpact.claim_story.distributions import distributions_of
from lpact.analyses.lpact.claim_story.material import Material, gates_behind
from lpact.analyses.lpact.claim_story.model import Claim, ClaimStory, CriterionStory, GateStory
from lpact.analyses.lpact.claim_story.rival import rival_of
from lpact.analyses.lpact.claim_story.rows import Rows
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.criteria import ILLUSTRATIVE
from lpact.analyses.lpact.tables.decisions import DECISIONS, GATE_EVIDENCE
from lpact.codes import FinalLabel, Gate
from lpact.errors import LPactError
from lpact.tables import CLAIM_KEY

LETTERS = {
    Gate.PREDICTIVE: "P",
    Gate.SEVERE_CONTROL: "S",
    Gate.RELATIONAL: "R",
    Gate.MECHANISM: "M",
    Gate.CEILING: "T",
    Gate.REPLICATION: "Rep",
}
_EXPLANATIONS = {label.value: label.explanation for label in FinalLabel}


def claim_story(
    rows: Rows,
    claim: Claim,
    gate_profile: str,
    *,
    gates: GatesConfig | None = None,
    primary_metric: str | None = None,
) -> ClaimStory:
    """Return why a claim got its verdict, with the numbers behind every criterion.

    Parameters
    ----------
    rows
        ``rows(table_name, column=value, …)``: rows of the run's tables by equality. Only those of the claim's dataset,
        model and layer are asked for.
    claim
        Dataset, model, layer, mechanism.
    gate_profile
        ``paper`` or ``calibrated``.
    gates
        Thresholds of the decision. Without them they are read from the evidence, which holds all but the false
        discovery rate.
    primary_metric
        Metric of level 1 that the gates look at. Without it, the metric of the block scores, which are kept for it
        alone.
    """
    return next(
        claim_stories(rows, [claim], gate_profile, gates=gates, primary_metric=primary_metric)
    )


def claim_stories(
    rows: Rows,
    claims: Iterable[Claim],
    gate_profile: str,
    *,
    gates: GatesConfig | None = None,
    primary_metric: str | None = None,
) -> Iterator[ClaimStory]:
    """As `claim_story`, for several claims in turn; neighbours of one layer share what they rest on."""
    material: Material | None = None
    for claim in claims:
        own: dict[str, str | int] = dict(zip(CLAIM_KEY, claim, strict=True))
        decision = rows(DECISIONS.name, **own, gate_profile=gate_profile)
        if decision.height != 1:
            raise _unknown(claim, gate_profile, decision.height)
        evidence = rows(GATE_EVIDENCE.name, **own)
        if material is not None and material.layer == claim[:3]:
            material = material.about(claim[3])
        else:
            material = Material(rows, claim, gates or gates_behind(evidence), primary_metric)
        judged = evidence.filter(gate_profile=gate_profile).sort("gate_order", "criterion_order")
        fdr = None if gates is None else gates.fdr
        yield _story(material, rows, decision.row(0, named=True), judged, fdr)


def _story(
    material: Material, rows: Rows, row: dict[str, Any], judged: pl.DataFrame, fdr: float | None
) -> ClaimStory:
    gate_stories = tuple(_gate(material, gate, judged) for gate in Gate)
    return ClaimStory(
        claim=material.claim,
        gate_profile=row["gate_profile"],
        label=row["label"],
        label_explanation=_EXPLANATIONS.get(row["label"], ""),
        reason=row["reason"],
        first_failed_gate=row["first_failed_gate"],
        beaten_by=row["beaten_by"],
        raw_score=row["raw_score"],
        n_subject_runs=row["n_subject_runs"],
        p_value=row["p_value"],
        q_value=row["q_value"],
        gates=gate_stories,
        what_would_change=what_would_change(material, rows, row, gate_stories, fdr),
        role=row["role"],
        rival=rival_of(material, row, gate_stories),
        primary_metric=material.metric,
    )


def _gate(material: Material, gate: Gate, judged: pl.DataFrame) -> GateStory:
    criteria = tuple(
        _criterion(material, row) for row in judged.filter(gate=gate.value).iter_rows(named=True)
    )
    passed = bool(criteria) and all(c.passed for c in criteria if c.decisive)
    return GateStory(gate.value, LETTERS[gate], gate.explanation, passed, criteria)


def _criterion(material: Material, row: dict[str, Any]) -> CriterionStory:
    return CriterionStory(
        criterion=row["criterion"],
        sentence=row["sentence"],
        value=row["value"],
        relation=row["relation"],
        threshold=row["threshold"],
        passed=row["passed"],
        compared_with=row["compared_with"],
        n=row["n"],
        distributions=distributions_of(
            material, row["criterion"], row["compared_with"], row["value"]
        ),
        decisive=row["criterion"] not in ILLUSTRATIVE,
    )


def _unknown(claim: Claim, gate_profile: str, n: int) -> LPactError:
    named = "/".join(str(part) for part in claim)
    return LPactError(
        f"the run has no claim '{named}' under the gate profile '{gate_profile}'",
        where=DECISIONS.name,
        got=f"{n} rows",
        expected="one row of that dataset, model, layer, mechanism and gate profile",
        remedy="choose a claim of the decision table",
    )
