"""What would have to be otherwise for a claim to pass, criterion by criterion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lpact.analyses.lpact.claim_story.distributions import OF_MECHANISM
from lpact.analyses.lpact.claim_story.material import Material
from lpact.analyses.lpact.claim_story.model import CriterionStory, GateStory
from lpact.analyses.lpact.claim_story.nearest import nearest_sentence
from lpact.analyses.lpact.claim_story.needed import rounded_down
from lpact.analyses.lpact.claim_story.p_changes import p_change
from lpact.analyses.lpact.claim_story.point_changes import point_change
from lpact.analyses.lpact.claim_story.rows import Rows
from lpact.analyses.lpact.gates.criteria import CriterionName
from lpact.analyses.lpact.gates.discoveries import RUNGS
from lpact.analyses.lpact.gates.verdict import FALSE_DISCOVERY_RATE
from lpact.analyses.lpact.gates.wording import count, joined, number
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.codes import FinalLabel, Gate

_LEVEL1_CRITERION = 1
"""Place of severe-control survival at level 1 in its gate, after the dataset's standing."""


def what_would_change(
    material: Material,
    rows: Rows,
    decision: dict[str, Any],
    gates: Sequence[GateStory],
    fdr: float | None,
) -> tuple[str, ...]:
    """One sentence a failing criterion, in the order of the gates; what is the same for several is said once."""
    said: dict[str, str] = {}
    sentences: list[str] = []
    for gate in gates:
        for criterion in gate.criteria:
            if criterion.passed or not criterion.decisive:
                continue
            body = _body(material, criterion)
            if criterion.criterion == CriterionName.CONFIRMATORY:
                if body not in said:
                    sentences.append(body)
                said.setdefault(body, "")
                continue
            heading = f"{gate.gate.replace('_', '-').capitalize()} gate"
            first = said.setdefault(body, heading)
            if first == heading:
                sentences.append(joined(heading, body))
            else:
                sentences.append(f"{heading}: the same as in the {first[:1].lower()}{first[1:]}.")
    sentences = list(dict.fromkeys(sentences))
    corrected = _correction(material, rows, decision, gates, fdr)
    if corrected:
        sentences.append(corrected)
    return tuple(sentences) or (nearest_sentence(material, gates),)


def _body(material: Material, criterion: CriterionStory) -> str:
    if CriterionName(criterion.criterion) in OF_MECHANISM:
        return _make_body(material, criterion)
    key = ("change", criterion.criterion, criterion.compared_with, criterion.value)
    return material.once(key, lambda: _make_body(material, criterion))


def _make_body(material: Material, criterion: CriterionStory) -> str:
    if criterion.criterion == CriterionName.CONFIRMATORY:
        return f"The dataset would have to be confirmatory. {criterion.sentence}"
    if criterion.value is None:
        return f"There would have to be a number first. {criterion.sentence}"
    if criterion.relation == "<=":
        return p_change(material, criterion)
    return point_change(material, criterion)


def _correction(
    material: Material,
    rows: Rows,
    decision: dict[str, Any],
    gates: Sequence[GateStory],
    fdr: float | None,
) -> str:
    """What the correction over claims asks, where it took a label away."""
    q = decision["q_value"]
    if q is None:
        return ""
    if decision["beaten_by"] == FALSE_DISCOVERY_RATE:
        p_values = rows(DECISIONS.name, gate_profile=decision["gate_profile"])["p_value"]
        others = sorted(p_values.drop_nulls().to_list())
        others.remove(decision["p_value"])
        to = "" if fdr is None else f" to {number(fdr)} or less"
        enough = (
            ""
            if fdr is None
            else f": with the other claims as they are, p would have to fall from {number(decision['p_value'])} to "
            f"{rounded_down(p_that_is_enough(others, fdr))} or less"
        )
        return f"Correction over {count(len(others) + 1, 'claim')}: q would have to fall from {number(q)}{to}{enough}."
    earned = _earned(gates, all_levels=material.gates.severe_scope == "all_levels")
    label = decision["label"]
    covered = label not in (FinalLabel.DIAGNOSTIC_ONLY, FinalLabel.INSUFFICIENT_COVERAGE)
    if earned is not None and covered and _rank(label) > _rank(earned.value):
        family = "layers" if earned in RUNGS[:2] else "claims"
        return (
            f"Correction over {family}: the gates that '{earned.value}' asks for pass, but not after correction over "
            f"the study's {family}: their p-values would have to be smaller, or the {family} fewer."
        )
    return ""


def p_that_is_enough(others: Sequence[float], level: float) -> float:
    """Largest p-value that has a q-value of at most ``level`` beside others (Benjamini & Hochberg 1995).

    With n claims in all: the largest level · k / n for which at least k − 1 of the others are no larger.
    """
    n = len(others) + 1
    for k in range(n, 1, -1):
        bound = level * k / n
        if sum(p <= bound for p in others) >= k - 1:
            return bound
    return level / n


def _earned(gates: Sequence[GateStory], *, all_levels: bool) -> FinalLabel | None:
    """The strongest label whose gates pass, before any correction."""
    passed = {gate.gate: gate.passed for gate in gates}
    severe = next((g.criteria for g in gates if g.gate == Gate.SEVERE_CONTROL), ())
    level1 = len(severe) > _LEVEL1_CRITERION and severe[_LEVEL1_CRITERION].passed
    foundation = passed[Gate.PREDICTIVE] and passed[Gate.REPLICATION]
    structural = foundation and passed[Gate.SEVERE_CONTROL] and passed[Gate.RELATIONAL]
    ladder = (
        (
            FinalLabel.INTEGRATED_CANDIDATE,
            structural and passed[Gate.MECHANISM] and passed[Gate.CEILING],
        ),
        (FinalLabel.MECHANISM_SPECIFIC_CANDIDATE, structural and passed[Gate.MECHANISM]),
        (FinalLabel.RELATIONAL_CANDIDATE, structural),
        (
            FinalLabel.PREDICTIVE_ONLY,
            foundation and (passed[Gate.SEVERE_CONTROL] if all_levels else level1),
        ),
    )
    return next((label for label, earned in ladder if earned and label in RUNGS), None)


def _rank(label: str) -> int:
    return [member.value for member in FinalLabel].index(label)
