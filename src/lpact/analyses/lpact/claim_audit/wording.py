"""Whole sentences that a verdict supports."""

from __future__ import annotations

from lpact.analyses.lpact.claim_audit.statement import SILENT, Statement
from lpact.analyses.lpact.claim_audit.verdicts import Verdict
from lpact.codes import FinalLabel, Gate

NONE = "none"
_GATE_WORDS = {
    str(Gate.PREDICTIVE): "predictive",
    "severe_control_level1": "severe-control",
    str(Gate.SEVERE_CONTROL): "severe-control",
    str(Gate.RELATIONAL): "relational",
    str(Gate.MECHANISM): "mechanism",
    str(Gate.CEILING): "ceiling",
    str(Gate.REPLICATION): "replication",
}
_SENTENCES = {
    FinalLabel.DIAGNOSTIC_ONLY: (
        "{place} the data are diagnostic only and support neither a positive nor a negative statement about {subject}."
    ),
    FinalLabel.INSUFFICIENT_COVERAGE: (
        "{place} coverage was too small to say whether {subject} is aligned with the recorded responses or not."
    ),
    FinalLabel.NULL: "{place} we found no raw association between {subject} and the recorded responses.",
    FinalLabel.INSUFFICIENT_BRAIN_CEILING: (
        "{place} {subject} did not pass the predictive gates, and brain–brain reliability was too low or not available "
        "to bound a stronger statement."
    ),
    FinalLabel.CONTROL_EXPLAINED: (
        "{place} we found no robust evidence that {subject} is aligned with the recorded responses: the apparent "
        "effect is accounted for by {explained}."
    ),
    FinalLabel.PREDICTIVE_ONLY: (
        "{place} {subject} predicts the recorded responses beyond nuisance and severe controls; stronger forms of "
        "alignment are not shown."
    ),
    FinalLabel.RELATIONAL_CANDIDATE: (
        "{place} {subject} is a relational candidate: it predicts the recorded responses beyond controls and "
        "reproduces the pattern over units better than any control; specificity to a mechanism is not shown."
    ),
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE: (
        "{place} {subject} is a mechanism-specific candidate: within the predictor, the evidence depends on "
        "{mechanism}; it does not pass the ceiling gate, and nothing was done to a brain."
    ),
    FinalLabel.INTEGRATED_CANDIDATE: (
        "{place} {subject} passes every gate and is an integrated candidate; this shows neither a shared mechanism nor "
        "causation in the brain."
    ),
}
_NOTHING = "This study has no confirmatory claim with a complete chain of evidence, and supports no statement."


def claim_name(verdict: Verdict) -> str:
    """A claim in words, or ``this study`` for a verdict without one."""
    if verdict.claim is None:
        return "this study"
    dataset, model, layer, mechanism = verdict.claim
    about = "" if mechanism == NONE else f", mechanism {mechanism}"
    return f"layer {layer} of {model} in {dataset}{about}"


def supported_sentence(verdict: Verdict | None) -> str:
    """One sentence that the verdict supports."""
    if verdict is None:
        return _NOTHING
    if verdict.claim is None:
        place, subject, mechanism = "In this study,", "the tested model", "the stripped mechanism"
    else:
        dataset, model, layer, mechanism = verdict.claim
        place, subject = f"In {dataset},", f"layer {layer} of {model}"
        if mechanism == NONE:
            mechanism = "the stripped mechanism"
    return _SENTENCES[verdict.label].format(
        place=place, subject=subject, mechanism=mechanism, explained=_explained(verdict)
    )


def _explained(verdict: Verdict) -> str:
    gate = _GATE_WORDS.get(verdict.first_failed_gate, "first")
    if verdict.beaten_by in (NONE, "") or " " in verdict.beaten_by:
        return f"nuisance, controls or an unmet gate (the {gate} gate fails first)"
    return f"what the {gate} gate names ({verdict.beaten_by})"


def grounds(statement: Statement, verdict: Verdict | None) -> str:
    """Why a statement is or is not supported."""
    if verdict is None:
        return "No confirmatory claim has a complete chain of evidence, so nothing is supported."
    where = claim_name(verdict)
    if verdict.supports(statement):
        return f"The verdict {verdict.label} ({where}) supports it."
    if statement.never:
        return (
            f"No gate licenses it, whatever the verdict; the best one is {verdict.label} ({where})."
        )
    if verdict.label in SILENT:
        return f"The best verdict is {verdict.label} ({where}), which supports neither a positive nor a negative."
    if statement is Statement.CORRESPONDENCE:
        return f"The best verdict is {verdict.label} ({where}): there is no raw positive."
    if statement is Statement.NOT_SHOWN:
        return f"The best verdict is {verdict.label} ({where}): every gate passes."
    gate = verdict.missing_gate(statement)
    beaten = "" if verdict.beaten_by == NONE else f" ({verdict.beaten_by})"
    first = verdict.first_failed_gate
    needed = f"it needs the {_GATE_WORDS.get(gate, gate)} gate, which does not pass"
    if first not in (gate, NONE) and not (
        gate == "severe_control_level1" and first == "severe_control"
    ):
        return f"The best verdict is {verdict.label} ({where}); {needed}; the first failed gate is {first}{beaten}."
    return f"The best verdict is {verdict.label} ({where}); {needed}{beaten}."
