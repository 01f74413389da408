"""Claims of an analysis for the page: one row per claim with all profiles, and the evidence behind each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.analyses.explanation import ClaimTable
from lpact.report.values import number

PROFILE = "gate_profile"


@dataclass(frozen=True)
class Judged:
    """What one profile says of a claim: each gate in the order of the chain, then the label."""

    gates: tuple[bool, ...]
    label: str
    reason: str


@dataclass(frozen=True)
class ClaimRow:
    """One claim: its id, the values of its key columns, its score, and what each profile says of it."""

    id: str
    key: Mapping[str, Any]
    score: str
    judged: Mapping[str, Judged]


def profiles_of(shown: ClaimTable) -> Mapping[str, str]:
    """Profiles with their meaning; one without a name where the analysis has none."""
    return shown.profiles or {"": ""}


def claim_rows(shown: ClaimTable, claims: pl.DataFrame) -> list[ClaimRow]:
    """Claims in the order of their key."""
    rows = []
    for key, own in claims.sort(shown.key).group_by(shown.key, maintain_order=True):
        by_profile = {row.get(PROFILE, ""): row for row in own.iter_rows(named=True)}
        first = next(iter(by_profile.values()))
        rows.append(
            ClaimRow(
                id="/".join(map(str, key)),
                key=dict(zip(shown.key, key, strict=True)),
                score=number(first[shown.score]) if shown.score else "",
                judged={
                    profile: Judged(
                        tuple(bool(row[column]) for column in shown.gates.values()),
                        row["label"],
                        row["reason"],
                    )
                    for profile in profiles_of(shown)
                    if (row := by_profile.get(profile)) is not None
                },
            )
        )
    return rows


def evidence_data(
    shown: ClaimTable, rows: list[ClaimRow], evidence: pl.DataFrame | None
) -> dict[str, Any]:
    """The criteria of every claim, for the page's script.

    Claims share much of their evidence, so criteria are listed once: ``criteria`` holds [gate, passed, sentence], and
    ``claims`` has for each claim, in the order of ``rows``, {profile: indices}.
    """
    known: dict[tuple[str, bool, str], int] = {}
    claims: dict[tuple[Any, ...], dict[str, list[int]]] = {}
    if evidence is not None:
        own = [pl.col(PROFILE) if shown.profiles else pl.lit("").alias(PROFILE)]
        order = [name for name in ("gate_order", "criterion_order") if name in evidence.columns]
        found = evidence.sort(*shown.key, *order, maintain_order=True)
        columns = found.select(*shown.key, *own, "gate", "passed", "sentence")
        for *key, profile, gate, passed, sentence in columns.iter_rows():
            index = known.setdefault((gate, passed, sentence), len(known))
            claims.setdefault(tuple(key), {}).setdefault(profile, []).append(index)
    return {
        "profiles": dict(profiles_of(shown)),
        "criteria": [list(criterion) for criterion in known],
        "claims": [claims.get(tuple(row.key.values()), {}) for row in rows],
    }


def strongest(shown: ClaimTable, claims: pl.DataFrame) -> dict[str, Any] | None:
    """The claim with the strongest label under the first profile; of several, the one with the highest score."""
    if shown.profiles:
        claims = claims.filter(pl.col(PROFILE) == next(iter(shown.profiles)))
    if claims.is_empty():
        return None
    rank = pl.col("label").replace_strict(
        {label: place for place, label in enumerate(shown.labels)},
        default=len(shown.labels),
        return_dtype=pl.Int64,
    )
    score = [-pl.col(shown.score).fill_null(float("-inf"))] if shown.score else []
    return claims.sort(rank, *score, *shown.key).select(shown.key).row(0, named=True)
