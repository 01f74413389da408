"""Which labels survive a correction over all claims.

A label requires several gates: its p-value is the largest of theirs (intersection–union). Labels that depend on gates
of a layer are corrected over the confirmatory layers, those that name a mechanism over the confirmatory claims
(Benjamini & Hochberg 1995).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import Claim
from lpact.analyses.lpact.gates.claims import Standing
from lpact.analyses.lpact.gates.criteria import ClaimEvidence
from lpact.codes import FinalLabel, Gate
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
    """Labels of a claim after correction.

    ``p_value`` and ``q_value`` are those of the integrated label; None for claims of datasets that are not
    confirmatory, which are not tested. ``allowed`` holds the labels whose q-value is at most ``level``; ``n`` counts
    the claims of the correction. The defaults correct nothing.
    """

    p_value: float | None = None
    q_value: float | None = None
    allowed: frozenset[FinalLabel] = frozenset(RUNGS)
    n: int = 0
    level: float = 1.0


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
        q = benjamini_hochberg(list(family.values()))
        by_place = dict(zip(family, q.tolist(), strict=True))
        for claim in tested:
            q_values[claim][rung] = by_place[places[claim]]
    out = dict.fromkeys(claims, Discoveries(n=len(tested), level=gates.fdr))
    last = RUNGS[-1]
    for claim, own in q_values.items():
        allowed = frozenset(rung for rung in RUNGS if own[rung] <= gates.fdr)
        out[claim] = Discoveries(p_values[claim][last], own[last], allowed, len(tested), gates.fdr)
    return out


def rung_p_values(evidence: ClaimEvidence, gates: GatesConfig) -> dict[FinalLabel, float]:
    """P-values of one claim by label, before correction: the largest of the gates that a label requires."""
    severe = evidence.severe_level1.p_value
    both = max(severe, evidence[Gate.SEVERE_CONTROL].p_value)
    foundation = max(evidence[Gate.PREDICTIVE].p_value, evidence[Gate.REPLICATION].p_value)
    predictive = max(foundation, both if gates.severe_scope == "all_levels" else severe)
    relational = max(foundation, both, evidence[Gate.RELATIONAL].p_value)
    mechanism = max(relational, evidence[Gate.MECHANISM].p_value)
    integrated = max(mechanism, evidence[Gate.CEILING].p_value)
    return dict(zip(RUNGS, (predictive, relational, mechanism, integrated), strict=True))
