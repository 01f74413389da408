"""From gates to the verdict on one claim: label, first failed gate, what beat it, and one sentence.

integrated = P · R · M · T · S · Rep          (all binary; no compensation)
"""

from __future__ import annotations

from dataclasses import dataclass

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.claims import Standing
from lpact.analyses.lpact.gates.criteria import NOBODY, ClaimEvidence, CriterionName
from lpact.analyses.lpact.gates.discoveries import RUNGS, Discoveries
from lpact.analyses.lpact.gates.wording import joined
from lpact.codes import FinalLabel, Gate
from lpact.wording import counted, number

FALSE_DISCOVERY_RATE = "false_discovery_rate"
"""``beaten_by`` of a claim that passes every gate, but not after correction over all claims."""

HEADINGS = {
    FinalLabel.DIAGNOSTIC_ONLY: "Diagnostic only",
    FinalLabel.INSUFFICIENT_COVERAGE: "Insufficient coverage",
    FinalLabel.INTEGRATED_CANDIDATE: "Integrated candidate",
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE: "Mechanism-specific candidate",
    FinalLabel.RELATIONAL_CANDIDATE: "Relational candidate",
    FinalLabel.PREDICTIVE_ONLY: "Predictive only",
    FinalLabel.INSUFFICIENT_BRAIN_CEILING: "Insufficient brain ceiling",
    FinalLabel.CONTROL_EXPLAINED: "Control-explained",
    FinalLabel.NULL: "Null",
}


@dataclass(frozen=True)
class RawEvidence:
    """What a claim shows without any control.

    Attributes
    ----------
    n_subject_runs
        Subject-runs with a finite level-1 contrast.
    score, delta_nuisance
        Mean real score, and mean of real − nuisance.
    similarity
        Largest mean real profile similarity of an alignment × profile summary.
    drop
        Largest median matching drop of a stripping method.
    fraction_of_ceiling
        Mean fraction of the ceiling.
    lacks_units
        Level 2 is impossible because recordings have too few units.
    """

    n_subject_runs: int
    score: float | None
    delta_nuisance: float | None
    similarity: float | None
    drop: float | None
    fraction_of_ceiling: float | None
    lacks_units: bool

    def positive(self, gates: GatesConfig) -> bool:
        """Whether any level shows a raw positive."""
        above_zero = (self.score, self.delta_nuisance, self.similarity, self.drop)
        if any(value is not None and value > 0 for value in above_zero):
            return True
        fraction = self.fraction_of_ceiling
        return fraction is not None and fraction >= gates.min_ceiling_fraction


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim."""

    label: FinalLabel
    first_failed_gate: str
    beaten_by: str
    reason: str


def judge(
    evidence: ClaimEvidence,
    standing: Standing,
    raw: RawEvidence,
    gates: GatesConfig,
    discoveries: Discoveries,
) -> Verdict:
    """Return the verdict on one claim."""
    label = final_label(evidence, standing, raw, gates, discoveries.allowed)
    failed = evidence.first_failed
    if failed is not None and failed.failure is not None:
        gate, beaten_by = str(failed.gate), failed.failure.beaten_by
    elif not standing.confirmatory:
        # The evidence suffices; the role of the dataset keeps the first gate shut.
        gate, beaten_by = str(next(iter(Gate))), standing.why_not
    elif label is not FinalLabel.INTEGRATED_CANDIDATE and _covered(label):
        reason = joined(HEADINGS[label], _not_discovered(discoveries))
        return Verdict(label, NOBODY, FALSE_DISCOVERY_RATE, reason)
    else:
        gate, beaten_by = NOBODY, NOBODY
    sentence = _sentence(label, evidence, standing, raw, gates)
    return Verdict(label, gate, beaten_by, joined(HEADINGS[label], sentence))


def _covered(label: FinalLabel) -> bool:
    return label not in (FinalLabel.DIAGNOSTIC_ONLY, FinalLabel.INSUFFICIENT_COVERAGE)


def _not_discovered(discoveries: Discoveries) -> str:
    return (
        f"Every gate passes, but not after correction over {counted(discoveries.n, 'claim')} "
        f"(q = {number(discoveries.q_value)}; at most {number(discoveries.level)} is needed)."
    )


def final_label(
    evidence: ClaimEvidence,
    standing: Standing,
    raw: RawEvidence,
    gates: GatesConfig,
    allowed: frozenset[FinalLabel],
) -> FinalLabel:
    """Return the first label that fits, in the order of `FinalLabel`; ``allowed`` are those that survive correction."""
    severe = evidence[Gate.SEVERE_CONTROL]
    every_level = gates.severe_scope == "all_levels"
    severe_predictive = severe.passed if every_level else evidence.severe_level1.passed
    foundation = evidence[Gate.PREDICTIVE].passed and evidence[Gate.REPLICATION].passed
    structural = foundation and severe.passed and evidence[Gate.RELATIONAL].passed
    mechanistic = structural and evidence[Gate.MECHANISM].passed
    ceiling = evidence[Gate.CEILING]
    reliability = ceiling.criterion(CriterionName.MEAN_RELIABILITY)
    tried = (
        (FinalLabel.DIAGNOSTIC_ONLY, not standing.confirmatory),
        (FinalLabel.INSUFFICIENT_COVERAGE, _lacks_subject_runs(raw, gates) or raw.lacks_units),
        (FinalLabel.INTEGRATED_CANDIDATE, mechanistic and ceiling.passed),
        (FinalLabel.MECHANISM_SPECIFIC_CANDIDATE, mechanistic),
        (FinalLabel.RELATIONAL_CANDIDATE, structural),
        (FinalLabel.PREDICTIVE_ONLY, foundation and severe_predictive),
        (FinalLabel.INSUFFICIENT_BRAIN_CEILING, not reliability.passed),
        (FinalLabel.CONTROL_EXPLAINED, raw.positive(gates)),
    )
    return next(
        (label for label, fits in tried if fits and (label not in RUNGS or label in allowed)),
        FinalLabel.NULL,
    )


def _lacks_subject_runs(raw: RawEvidence, gates: GatesConfig) -> bool:
    return raw.n_subject_runs < gates.min_subject_runs


def _sentence(
    label: FinalLabel,
    evidence: ClaimEvidence,
    standing: Standing,
    raw: RawEvidence,
    gates: GatesConfig,
) -> str:
    failed = evidence.first_failed
    failure = failed.failure.sentence if failed is not None and failed.failure is not None else None
    match label:
        case FinalLabel.DIAGNOSTIC_ONLY:
            shown = failure or "Every gate would pass."
            return f"{standing.sentence.rstrip('.')}; {joined('on the evidence', shown)}"
        case FinalLabel.INSUFFICIENT_COVERAGE:
            if _lacks_subject_runs(raw, gates):
                return evidence[Gate.REPLICATION].criterion(CriterionName.N_SUBJECT_RUNS).sentence
            return evidence[Gate.RELATIONAL].criteria[0].sentence
        case FinalLabel.INSUFFICIENT_BRAIN_CEILING:
            return evidence[Gate.CEILING].criterion(CriterionName.MEAN_RELIABILITY).sentence
        case FinalLabel.INTEGRATED_CANDIDATE:
            return _integrated_sentence(evidence, raw)
        case FinalLabel.NULL:
            if raw.score is None:
                return "No raw positive at any level; no score could be computed."
            return f"No raw positive at any level; the model scores {number(raw.score)} on average."
    return failure or label.explanation


def _integrated_sentence(evidence: ClaimEvidence, raw: RawEvidence) -> str:
    if evidence[Gate.PREDICTIVE].criteria[0].relation == "<=":
        return f"Every gate passes its test ({counted(raw.n_subject_runs, 'subject-run')})."
    contrast = evidence[Gate.PREDICTIVE].criterion(CriterionName.MEAN_DELTA_CONTROL)
    fraction = evidence[Gate.CEILING].criterion(CriterionName.MEAN_FRACTION_OF_CEILING)
    beats, reaches = contrast.value or 0.0, fraction.value or 0.0
    return (
        f"Every gate passes; the model beats its best severe control by {number(beats)} and reaches "
        f"{number(reaches)} of the brain–brain ceiling ({counted(raw.n_subject_runs, 'subject-run')})."
    )
