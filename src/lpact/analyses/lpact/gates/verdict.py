"""From gates to the verdict on one claim: label, first failed gate, what beat it, and one sentence.

integrated = P · R · M · T · S · Rep          (all binary; no compensation)

A label requires several gates: its p-value is the largest of theirs (intersection–union). Labels that depend on gates
of a layer are corrected over the confirmatory layers, those that name a mechanism over the confirmatory claims
(Benjamini & Hochberg 1995).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.criteria import NOBODY, ClaimEvidence, CriterionName, joined
from lpact.analyses.lpact.gates.keys import LAYER_KEY, Claim, Layer
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.codes import FinalLabel, Gate, Reason
from lpact.errors import TableError, require_known
from lpact.stats import benjamini_hochberg
from lpact.wording import counted, number, spoken

NO_MECHANISM = "none"
"""Mechanism of the claims of a study in which nothing was stripped."""

_EXPLANATIONS = {reason.value: reason.explanation for reason in Reason}


@dataclass(frozen=True)
class Standing:
    """What the source audit says about a dataset."""

    role: str
    confirmatory: bool
    chain_complete: bool
    why_not: str
    """Code of the reason why the dataset is not confirmatory."""
    sentence: str


def list_layers(control_deltas: pl.DataFrame) -> list[Layer]:
    """Every (dataset, model, layer) with a level-1 row, sorted."""
    return control_deltas.select(LAYER_KEY).unique().sort(LAYER_KEY).rows()


def list_claims(layers: list[Layer], specificity: pl.DataFrame) -> list[Claim]:
    """Every layer with every mechanism that the study strips anywhere, sorted."""
    mechanisms = specificity["stripped"].unique().sort().to_list() or [NO_MECHANISM]
    return [(*layer, mechanism) for layer in layers for mechanism in mechanisms]


def read_standings(feasibility: pl.DataFrame, layers: list[Layer]) -> dict[str, Standing]:
    """Return the standing of every dataset; a claim about a dataset that was not audited is an error."""
    standings = {row["dataset"]: _standing(row) for row in feasibility.iter_rows(named=True)}
    for dataset, _, _ in layers:
        where = f"table '{EVIDENCE_FEASIBILITY.name}'"
        require_known(dataset, standings, "audited dataset", where=where, error=TableError)
    return standings


def _standing(row: dict[str, object]) -> Standing:
    role, why_not = str(row["role"]), str(row["role_reason"])
    confirmatory = bool(row["confirmatory"])
    if confirmatory:
        sentence = f"The dataset is confirmatory (role {role})."
    else:
        explanation = _EXPLANATIONS.get(why_not, why_not)
        lowered = f"{explanation[:1].lower()}{explanation[1:]}"
        detail = str(row["role_detail"] or lowered).rstrip(".")
        sentence = f"The dataset is not confirmatory (role {role}: {detail})."
    return Standing(role, confirmatory, bool(row["chain_complete"]), why_not, sentence)


RUNGS = (
    FinalLabel.PREDICTIVE_ONLY,
    FinalLabel.RELATIONAL_CANDIDATE,
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
    FinalLabel.INTEGRATED_CANDIDATE,
)
_OF_LAYERS = RUNGS[:2]


@dataclass(frozen=True)
class Discoveries:
    """Labels of a claim after multiple-testing correction.

    ``p_value`` and ``q_value`` are those of the integrated label; None for claims of datasets that are not
    confirmatory, which are not tested. ``allowed`` holds the labels whose q-value is at most ``level``; ``n`` counts
    the claims that are corrected together. The defaults correct nothing.
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
    """P-values of one claim by label, before multiple-testing correction: the largest of the gates that it requires."""
    severe = evidence.severe_level1.p_value
    both = max(severe, evidence[Gate.SEVERE_CONTROL].p_value)
    foundation = max(evidence[Gate.PREDICTIVE].p_value, evidence[Gate.REPLICATION].p_value)
    predictive = max(foundation, both if gates.severe_scope == "all_levels" else severe)
    relational = max(foundation, both, evidence[Gate.RELATIONAL].p_value)
    mechanism = max(relational, evidence[Gate.MECHANISM].p_value)
    integrated = max(mechanism, evidence[Gate.CEILING].p_value)
    return dict(zip(RUNGS, (predictive, relational, mechanism, integrated), strict=True))


FALSE_DISCOVERY_RATE = "false_discovery_rate"
"""``beaten_by`` of a claim that passes every gate, but not after multiple-testing correction over all claims."""

HYPHENATED = {
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE: "Mechanism-specific candidate",
    FinalLabel.CONTROL_EXPLAINED: "Control-explained",
}
"""Labels that are not written as their code without underscores."""


@dataclass(frozen=True)
class RawEvidence:
    """What a claim shows without any control.

    ``n_subject_runs`` have a finite level-1 contrast; ``score`` and ``delta_nuisance`` are the means of the real score
    and of real − nuisance, ``similarity`` the median over summaries of the real profile similarity, ``drop`` the
    largest median matching drop of a stripping method. ``lacks_units``: level 2 is impossible with so few units.
    """

    n_subject_runs: int
    score: float | None
    delta_nuisance: float | None
    similarity: float | None
    drop: float | None
    fraction_of_ceiling: float | None
    lacks_units: bool


@dataclass(frozen=True)
class Case:
    """One claim to be judged: its gates, the standing of its dataset, and what it shows without controls."""

    evidence: ClaimEvidence
    standing: Standing
    raw: RawEvidence
    gates: GatesConfig

    @property
    def raw_positive(self) -> bool:
        """Whether any level shows a positive result without controls."""
        raw, fraction = self.raw, self.raw.fraction_of_ceiling
        above_zero = (raw.score, raw.delta_nuisance, raw.similarity, raw.drop)
        if any(value is not None and value > 0 for value in above_zero):
            return True
        return fraction is not None and fraction >= self.gates.min_ceiling_fraction

    @property
    def _lacks_subject_runs(self) -> bool:
        return self.raw.n_subject_runs < self.gates.min_subject_runs

    def label(self, allowed: frozenset[FinalLabel]) -> FinalLabel:
        """The first label that fits, in the order of `FinalLabel`; ``allowed`` survive multiple-testing correction."""
        evidence, severe = self.evidence, self.evidence[Gate.SEVERE_CONTROL].passed
        every_level = self.gates.severe_scope == "all_levels"
        severe_predictive = severe if every_level else evidence.severe_level1.passed
        foundation = evidence[Gate.PREDICTIVE].passed and evidence[Gate.REPLICATION].passed
        structural = foundation and severe and evidence[Gate.RELATIONAL].passed
        mechanistic = structural and evidence[Gate.MECHANISM].passed
        ceiling = evidence[Gate.CEILING]
        reliability = ceiling.criterion(CriterionName.MEAN_RELIABILITY)
        uncovered = self._lacks_subject_runs or self.raw.lacks_units
        tried = (
            (FinalLabel.DIAGNOSTIC_ONLY, not self.standing.confirmatory),
            (FinalLabel.INSUFFICIENT_COVERAGE, uncovered),
            (FinalLabel.INTEGRATED_CANDIDATE, mechanistic and ceiling.passed),
            (FinalLabel.MECHANISM_SPECIFIC_CANDIDATE, mechanistic),
            (FinalLabel.RELATIONAL_CANDIDATE, structural),
            (FinalLabel.PREDICTIVE_ONLY, foundation and severe_predictive),
            (FinalLabel.INSUFFICIENT_BRAIN_CEILING, not reliability.passed),
            (FinalLabel.CONTROL_EXPLAINED, self.raw_positive),
        )
        return next(
            (label for label, fits in tried if fits and (label not in RUNGS or label in allowed)),
            FinalLabel.NULL,
        )

    def verdict(self, discoveries: Discoveries) -> tuple[str, str, str, str]:
        """Label, first failed gate, what beat the claim, and why in one sentence."""
        label, failed = self.label(discoveries.allowed), self.evidence.first_failed
        gate, beaten_by, sentence = NOBODY, NOBODY, self._sentence(label)
        covered = label not in (FinalLabel.DIAGNOSTIC_ONLY, FinalLabel.INSUFFICIENT_COVERAGE)
        if failed is not None and failed.failure is not None:
            gate, beaten_by = str(failed.gate), failed.failure.beaten_by
        elif not self.standing.confirmatory:
            # The evidence suffices; the role of the dataset keeps the first gate shut.
            gate, beaten_by = str(next(iter(Gate))), self.standing.why_not
        elif label is not FinalLabel.INTEGRATED_CANDIDATE and covered:
            beaten_by = FALSE_DISCOVERY_RATE
            sentence = (
                f"Every gate passes, but not after multiple-testing correction over {counted(discoveries.n, 'claim')} "
                f"(q = {number(discoveries.q_value)}; at most {number(discoveries.level)} is needed)."
            )
        heading = HYPHENATED.get(label, spoken(label.value).capitalize())
        return label.value, gate, beaten_by, joined(heading, sentence)

    def _sentence(self, label: FinalLabel) -> str:
        evidence, raw, failed = self.evidence, self.raw, self.evidence.first_failed
        failure = None if failed is None or failed.failure is None else failed.failure.sentence
        match label:
            case FinalLabel.DIAGNOSTIC_ONLY:
                shown = joined("on the evidence", failure or "Every gate would pass.")
                return f"{self.standing.sentence.rstrip('.')}; {shown}"
            case FinalLabel.INSUFFICIENT_COVERAGE:
                if self._lacks_subject_runs:
                    name = CriterionName.N_SUBJECT_RUNS
                    return evidence[Gate.REPLICATION].criterion(name).sentence
                return evidence[Gate.RELATIONAL].criteria[0].sentence
            case FinalLabel.INSUFFICIENT_BRAIN_CEILING:
                return evidence[Gate.CEILING].criterion(CriterionName.MEAN_RELIABILITY).sentence
            case FinalLabel.INTEGRATED_CANDIDATE:
                return self._integrated_sentence()
            case FinalLabel.NULL if raw.score is None:
                return "No raw positive at any level; no score could be computed."
            case FinalLabel.NULL:
                score = number(raw.score)
                return f"No raw positive at any level; the model scores {score} on average."
        return failure or label.explanation

    def _integrated_sentence(self) -> str:
        evidence, of = self.evidence, counted(self.raw.n_subject_runs, "subject-run")
        if evidence[Gate.PREDICTIVE].criteria[0].relation == "<=":
            return f"Every gate passes its test ({of})."
        contrast = evidence[Gate.PREDICTIVE].criterion(CriterionName.MEAN_DELTA_CONTROL)
        fraction = evidence[Gate.CEILING].criterion(CriterionName.MEAN_FRACTION_OF_CEILING)
        return (
            f"Every gate passes; the model beats its best severe control by {number(contrast.value or 0.0)} "
            f"and reaches {number(fraction.value or 0.0)} of the brain–brain ceiling ({of})."
        )
