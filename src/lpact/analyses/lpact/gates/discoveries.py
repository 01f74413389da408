"""Which labels survive a correction over all claims.

A label asks for several gates at once: its p-value is the largest of theirs (intersection–union). Labels that rest on
gates of a layer are corrected over the confirmatory layers, those that name a mechanism over the confirmatory claims
(Benjamini & Hochberg 1995).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.claims import Claim, Standing
from lpact.analyses.lpact.gates.criteria import ClaimEvidence, Criterion, GateEvidence
from lpact.codes import FinalLabel
from lpact.stats import benjamini_hochberg

RUNGS = (
    FinalLabel.PREDICTIVE_ONLY,
    FinalLabel.RELATIONAL_CANDIDATE,
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
    FinalLabel.INTEGRATED_CANDIDATE,
)
_OF_LAYERS = RUNGS[:2]


@dataclass(frozen=True)
class Discoveries:
    """What a claim may be called after correction.

    ``p_value`` and ``q_value`` are those of the integrated label: null for claims of datasets that are not
    confirmatory, which nothing is tested for. ``allowed`` holds the labels whose q-value is at most ``level``;
    ``n`` counts the claims that were corrected over.
    """

    p_value: float | None
    q_value: float | None
    allowed: frozenset[FinalLabel]
    n: int
    level: float


def everything_allowed() -> Discoveries:
    """Point rules correct nothing."""
    return Discoveries(None, None, frozenset(RUNGS), 0, 1.0)


def gate_p_value(gate: GateEvidence) -> float:
    """The largest p-value of a gate's tests; 1 where a criterion that is no test does not hold."""
    p_values = [_p_value(c) for c in gate.criteria if c.decisive]
    return max(p_values, default=1.0)


def _p_value(criterion: Criterion) -> float:
    if criterion.value is None:
        return 1.0
    if criterion.relation == "<=":
        return criterion.value
    return 0.0 if criterion.passed else 1.0


def discover(
    evidence: Mapping[Claim, ClaimEvidence],
    standings: Mapping[str, Standing],
    claims: Sequence[Claim],
    gates: GatesConfig,
) -> dict[Claim, Discoveries]:
    """Correct every label over the confirmatory claims."""
    tested = [claim for claim in claims if standings[claim[0]].confirmatory]
    p_values = {claim: rung_p_values(evidence[claim], gates) for claim in tested}
    q_values: dict[Claim, dict[FinalLabel, float]] = {claim: {} for claim in tested}
    for rung in RUNGS:
        # One entry per layer where the label does not depend on the mechanism.
        places = {claim: claim[:3] if rung in _OF_LAYERS else claim for claim in tested}
        family = {places[claim]: p_values[claim][rung] for claim in tested}
        q = benjamini_hochberg(np.array(list(family.values()), dtype=np.float64))
        by_place = dict(zip(family, q.tolist(), strict=True))
        for claim in tested:
            q_values[claim][rung] = by_place[places[claim]]
    out = {}
    for claim in claims:
        if claim not in q_values:
            out[claim] = Discoveries(None, None, frozenset(RUNGS), len(tested), gates.fdr)
            continue
        allowed = frozenset(rung for rung in RUNGS if q_values[claim][rung] <= gates.fdr)
        last = RUNGS[-1]
        out[claim] = Discoveries(
            p_values[claim][last], q_values[claim][last], allowed, len(tested), gates.fdr
        )
    return out


def rung_p_values(evidence: ClaimEvidence, gates: GatesConfig) -> dict[FinalLabel, float]:
    """P-values of one claim by label, before correction: the largest of the gates that a label asks for."""
    severe = _p_value(evidence.severe_level1)
    both = max(severe, gate_p_value(evidence.severe_control))
    foundation = max(gate_p_value(evidence.predictive), gate_p_value(evidence.replication))
    relational = max(foundation, both, gate_p_value(evidence.relational))
    mechanism = max(relational, gate_p_value(evidence.mechanism))
    integrated = max(mechanism, gate_p_value(evidence.ceiling))
    predictive = max(foundation, both if gates.severe_scope == "all_levels" else severe)
    return dict(zip(RUNGS, (predictive, relational, mechanism, integrated), strict=True))
