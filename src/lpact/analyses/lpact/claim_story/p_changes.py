"""What would have to be otherwise for a test: how far its p-value is from the level, and which number would do."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from lpact.analyses.lpact.claim_story import level4
from lpact.analyses.lpact.claim_story.material import Material
from lpact.analyses.lpact.claim_story.model import CriterionStory, Distribution
from lpact.analyses.lpact.claim_story.needed import (
    FEWEST_FOR_TAIL,
    Needed,
    above_blocks,
    above_draws,
    fewest_draws,
    rounded_down,
    rounded_up,
)
from lpact.analyses.lpact.gates.calibrated.frames import SubjectRun
from lpact.analyses.lpact.gates.calibrated.mechanism import (
    NOTHING,
    NUISANCE,
    RANDOM_DIRECTION,
    blocks_by_run,
    contrasts_with,
)
from lpact.analyses.lpact.gates.criteria import CriterionName
from lpact.analyses.lpact.gates.wording import count, number
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.stats import bootstrap_p_value

_BOUND_LEVEL = 0.05
"""Level of the bound that the bootstrap gives beside its p-value."""


def p_change(material: Material, criterion: CriterionStory) -> str:
    """The sentence of one test that does not pass; its p-value is there."""
    name = CriterionName(criterion.criterion)
    if name == CriterionName.P_REPLICATION:
        return _replication(material, criterion)
    if name == CriterionName.P_FRACTION:
        return _fraction(material, criterion)
    tests = [d for d in criterion.distributions if d.p_value is not None]
    said = _fall(criterion)
    if not tests:
        return f"{said}."
    first = tests[0]
    by_rank = first.gives == "rank"
    middle = _by_draws(criterion, first) if by_rank else _by_blocks(material, criterion, first)
    return f"{said}{middle}.{_others(tests[1:], criterion.threshold)}"


def _fall(criterion: CriterionStory) -> str:
    against = criterion.compared_with.replace("unit_order", "other unit orders")
    of = f" against {against}" if against else ""
    if criterion.criterion == CriterionName.P_BEYOND_NUISANCE:
        of += ", with nuisance beside the features,"
    return (
        f"The p-value{of} would have to fall from {number(criterion.value)} to "
        f"{number(criterion.threshold)} or less"
    )


def _others(tests: list[Distribution], alpha: float, most: int = 3) -> str:
    failing = [d for d in tests if d.p_value is not None and d.p_value > alpha]
    if not failing:
        return ""
    named = ", ".join(f"{d.reference} (p = {number(d.p_value)})" for d in failing[:most])
    more = f" and {len(failing) - most} more" if len(failing) > most else ""
    verb = "fails" if len(failing) == 1 else "fail"
    return f" {named}{more} {verb} too."


def _by_draws(criterion: CriterionStory, test: Distribution) -> str:
    alpha, m = criterion.threshold, len(test.draws)
    needed = above_draws(np.array(test.draws), alpha)
    if needed.value is None:
        return _too_few_draws(needed, m, alpha)
    what = "the relational statistic" if test.advantage is not None else "the mean real score"
    now = test.observed if test.observed is not None else math.nan
    first = ""
    if test.advantage is not None and not test.advantage > 0:
        lead = f"it is {number(-test.advantage)} below" if test.advantage < 0 else "they are equal"
        first = f": the mean similarity would first have to be above the rival's ({lead}, and p is 1 until then)"
    if now > needed.value:
        return first
    finer = (
        f"; {count(m, 'draw')} rank no finer than {number(1 / (1 + m))}, so that their mean and spread count"
        if 1 / (1 + m) > alpha
        else ""
    )
    joined = f"{first}, and then" if first else ":"
    stay = ", if the draws stayed as they are" if test.advantage is not None else ""
    return f"{joined} {what} would have to rise from {number(now)} to above {rounded_up(needed.value)}{stay}{finer}"


def _too_few_draws(needed: Needed, m: int, alpha: float) -> str:
    if needed.why:
        return f"; {count(m, 'draw')} cannot show that, since {needed.why}"
    return (
        f"; with {count(m, 'draw')} the smallest p-value that this test can give is {number(needed.smallest_p)}, "
        f"so that no score could pass: at least {FEWEST_FOR_TAIL} draws are needed, and "
        f"{fewest_draws(alpha)} for a p-value that rests on ranks alone"
    )


def _by_blocks(material: Material, criterion: CriterionStory, test: Distribution) -> str:
    contrasts, stimulus, key = _contrasts(material, criterion)
    n = len(test.draws)
    needed = above_blocks(
        contrasts, stimulus, lambda: keyed_rng(0, "sign flips", *key), criterion.threshold
    )
    if needed.value is None:
        if needed.why:
            return f"; {count(n, 'held-out block')} cannot show that, since {needed.why}"
        return (
            f"; with {count(n, 'held-out block')} the smallest p-value that this test can give is "
            f"{number(needed.smallest_p)}, so that no score could pass: more blocks are needed"
        )
    if number(test.observed) == number(needed.value):
        to = number(needed.value)
        return f": any rise of the mean advantage over {count(n, 'held-out block')} above {to} would do"
    return (
        f": the mean advantage over {count(n, 'held-out block')} would have to rise from {number(test.observed)} to "
        f"about {number(needed.value)}, if the blocks keep their spread"
    )


def _contrasts(
    material: Material, criterion: CriterionStory
) -> tuple[Mapping[SubjectRun, FloatArray], Mapping[SubjectRun, str], tuple[str | int, ...]]:
    """Contrasts by block behind a test, what was presented, and the key of its random signs."""
    name, rival = criterion.criterion, criterion.compared_with
    level3 = {CriterionName.P_OTHER_TARGETS, CriterionName.P_RANDOM_DIRECTIONS}
    if name in level3 or name == CriterionName.P_BEYOND_NUISANCE:
        beside = NUISANCE if name == CriterionName.P_BEYOND_NUISANCE else NOTHING
        rival = RANDOM_DIRECTION if name == CriterionName.P_RANDOM_DIRECTIONS else rival
        by_run = blocks_by_run(material.claim, material.block_drops, beside)
        presented = {run: stimulus for run, (stimulus, _) in by_run.items()}
        return contrasts_with(material.claim, rival, by_run), presented, (*material.claim, rival)
    stimuli = {
        (subject, session, run): stimulus
        for subject, session, run, stimulus in material.blocks.select(
            "subject", "session", "run", "stimulus"
        ).iter_rows()
    }
    return material.level1.differences(rival), stimuli, (*material.layer, rival)


def _replication(material: Material, criterion: CriterionStory) -> str:
    found = criterion.distributions[0] if criterion.distributions else None
    said = (
        f"The p-value of replication would have to fall from {number(criterion.value)} to "
        f"{number(criterion.threshold)} or less"
    )
    if found is None or not found.draws:
        return f"{said}."
    n = len(found.draws)
    needed = max(1, math.ceil(material.gates.direction_fraction * n - 1e-9))
    each = criterion.threshold / (n - needed + 1)
    reach = sum(p <= each for p in found.draws)
    return (
        f"{said}: at least {needed} of {count(n, 'subject-run')} would have to reach p = {rounded_down(each)} on their "
        f"own, and {reach} {'does' if reach == 1 else 'do'}."
    )


def _fraction(material: Material, criterion: CriterionStory) -> str:
    threshold = material.gates.min_ceiling_fraction
    said = (
        f"The p-value that the fraction of the ceiling is above {number(threshold)} would have to fall from "
        f"{number(criterion.value)} to {number(criterion.threshold)} or less"
    )
    groups = [np.array(values) for _, values in level4.unit_fractions(material)]
    if len(groups) < 2:
        return (
            f"{said}; with {count(len(groups), 'subject-run')} there is no bound, so that no score could pass: "
            "at least 2 are needed."
        )
    mean = sum(float(g.mean()) for g in groups) / len(groups)
    if criterion.threshold != _BOUND_LEVEL:
        return f"{said}: the mean is {number(mean)} now."
    _, lower = bootstrap_p_value(groups, threshold, keyed_rng(0, "bootstrap", *material.layer))
    return (
        f"{said}: the mean fraction would have to rise from {number(mean)} to about "
        f"{number(mean + threshold - lower)}, if subject-runs and units keep their spread."
    )
