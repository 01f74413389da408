"""For a claim that passes every gate: which number could lose least before its gate fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lpact.analyses.lpact.claim_story import level1
from lpact.analyses.lpact.claim_story.material import Material
from lpact.analyses.lpact.claim_story.model import CriterionStory, GateStory
from lpact.analyses.lpact.gates.criteria import CriterionName
from lpact.analyses.lpact.gates.wording import number, percent

_COUNTS = {
    CriterionName.CONFIRMATORY,
    CriterionName.N_TARGETS,
    CriterionName.N_SUBJECT_RUNS,
}


@dataclass(frozen=True)
class Margin:
    """How far a criterion is from failing: ``room`` is the share of ``of`` that could be lost."""

    gate: str
    criterion: CriterionStory
    room: float
    of: str


def margins(material: Material, gates: Sequence[GateStory]) -> list[Margin]:
    """Margins of all criteria that hold and are no counts, the smallest first.

    p-value: 1 − p / α. Positive threshold: 1 − threshold / value. Contrast with a rival at level 1: contrast / real
    score; in fractions of the ceiling: contrast / fraction. All are shares of something that could be lost.
    """
    found = [
        Margin(gate.gate, criterion, *room)
        for gate in gates
        for criterion in gate.criteria
        if criterion.decisive
        and criterion.passed
        and criterion.criterion not in _COUNTS
        and (room := _room(material, gate, criterion)) is not None
    ]
    return sorted(found, key=lambda m: m.room)


def _room(
    material: Material, gate: GateStory, criterion: CriterionStory
) -> tuple[float, str] | None:
    value, threshold = criterion.value, criterion.threshold
    if value is None:
        return None
    if criterion.relation == "<=":
        return 1 - value / threshold, "the level"
    if threshold > 0:
        return 1 - threshold / value, "the number"
    whole = _whole(material, gate, criterion)
    if whole is None or not whole[0] > 0:
        return None
    return value / whole[0], whole[1]


def _whole(
    material: Material, gate: GateStory, criterion: CriterionStory
) -> tuple[float, str] | None:
    if criterion.criterion == CriterionName.MEAN_DELTA_FRACTION:
        fraction = next(
            (
                c.value
                for c in gate.criteria
                if c.criterion == CriterionName.MEAN_FRACTION_OF_CEILING
            ),
            None,
        )
        return None if fraction is None else (fraction, "the fraction of the ceiling")
    means = level1.mean_scores(material)
    return None if means is None else (means.real, "the real score")


def nearest_sentence(material: Material, gates: Sequence[GateStory]) -> str:
    """Which gate is nearest to failing, and by which margin."""
    found = margins(material, gates)
    if not found:
        return "Every gate passes."
    nearest = found[0]
    criterion = nearest.criterion
    if criterion.relation == "<=":
        bound = f"{number(criterion.threshold)} or less is needed"
        lost = f"it is {percent(1 - nearest.room)} of the level"
    else:
        to = "above" if criterion.relation == ">" else "at least"
        bound = f"{to} {number(criterion.threshold)} is needed"
        lost = f"{percent(nearest.room)} of {nearest.of} could be lost"
    against = f" against {criterion.compared_with}" if criterion.compared_with else ""
    return (
        f"Every gate passes. Nearest to failing is the {nearest.gate.replace('_', '-')} gate: "
        f"{criterion.criterion}{against} is {number(criterion.value)} ({bound}; {lost})."
    )
