"""The claims of a study for the page: a row a claim with both gate profiles, and the evidence behind each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.analyses.lpact.figures.common import GATE_NAMES, GATES, PROFILES
from lpact.analyses.lpact.gates.verdict import FALSE_DISCOVERY_RATE
from lpact.analyses.lpact.gates.wording import number, words
from lpact.analyses.lpact.tables.decisions import DECISIONS, GATE_EVIDENCE
from lpact.codes import FinalLabel, Gate
from lpact.tables import CLAIM_KEY

_EXPLAINED = {label.value: label.explanation for label in FinalLabel}
_GATE_OF_EVIDENCE = {gate.value: gate.explanation for gate in Gate}


@dataclass(frozen=True)
class Judged:
    """What one gate profile says of a claim: gate by gate in the order of the chain, then the verdict."""

    gates: tuple[bool, ...]
    label: str
    explanation: str
    reason: str
    why: str
    q_value: str


@dataclass(frozen=True)
class ClaimRow:
    """One claim: what it is about, its conventional score, and both verdicts."""

    key: str
    dataset: str
    model: str
    layer: int
    mechanism: str
    role: str
    raw_score: float | None
    shown_score: str
    n_subject_runs: int
    judged: Mapping[str, Judged]


def claim_rows(tables: Mapping[str, pl.DataFrame]) -> list[ClaimRow]:
    """Claims in the order of the decision table."""
    decisions = tables[DECISIONS.name].sort(*CLAIM_KEY, "gate_profile")
    rows = []
    for key, both in decisions.group_by(CLAIM_KEY, maintain_order=True):
        judged = {row["gate_profile"]: _judged(row) for row in both.iter_rows(named=True)}
        first = both.row(0, named=True)
        rows.append(
            ClaimRow(
                key="/".join(map(str, key)),
                **{name: first[name] for name in CLAIM_KEY},
                role=first["role"],
                raw_score=first["raw_score"],
                shown_score=number(first["raw_score"]),
                n_subject_runs=first["n_subject_runs"],
                judged={profile: judged[profile] for profile in PROFILES if profile in judged},
            )
        )
    return rows


def _judged(row: Mapping[str, Any]) -> Judged:
    return Judged(
        gates=tuple(bool(row[column]) for column in GATES.values()),
        label=row["label"],
        explanation=_EXPLAINED.get(row["label"], ""),
        reason=row["reason"],
        why=_why(row),
        q_value="" if row["q_value"] is None else number(row["q_value"]),
    )


def _why(row: Mapping[str, Any]) -> str:
    """What a claim failed on, in a few words; empty where it failed on nothing."""
    if row["first_failed_gate"] != "none":
        return f"{words(row['first_failed_gate'])}: {row['beaten_by']}"
    if row["beaten_by"] == FALSE_DISCOVERY_RATE:
        return (
            f"passes every test, but not the correction over claims (q = {number(row['q_value'])})"
        )
    return ""


def evidence_data(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """The chain of evidence of every claim, for the page's script.

    Mechanisms of a layer share most of their evidence, so criteria are listed once: ``criteria`` holds
    [gate, passed, sentence], and ``claims`` has for each claim, in the order of `claim_rows`, {profile: indices}.
    """
    evidence = tables[GATE_EVIDENCE.name].sort(
        *CLAIM_KEY, "gate_profile", "gate_order", "criterion_order"
    )
    columns = [*CLAIM_KEY, "gate_profile", "gate", "passed", "sentence"]
    known: dict[tuple[str, bool, str], int] = {}
    claims: dict[tuple[Any, ...], dict[str, list[int]]] = {}
    for *key, profile, gate, passed, sentence in evidence.select(columns).iter_rows():
        index = known.setdefault((gate, passed, sentence), len(known))
        claims.setdefault(tuple(key), {}).setdefault(profile, []).append(index)
    keys = [(row.dataset, row.model, row.layer, row.mechanism) for row in claim_rows(tables)]
    return {
        "gates": _GATE_OF_EVIDENCE,
        "profiles": PROFILES,
        "criteria": [list(criterion) for criterion in known],
        "claims": [claims.get(key, {}) for key in keys],
    }


def legend() -> list[tuple[str, str]]:
    """Letters of the gates, and what they stand for."""
    return [(letter, GATE_NAMES[letter]) for letter in GATES]
