"""What would have to be different for a claim to pass: one sentence per failing criterion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from lpact.analyses.base import Rows
from lpact.analyses.explanation import Criterion, Distribution
from lpact.analyses.explanation import Gate as GateRecord
from lpact.analyses.lpact.explain import patterns, scores
from lpact.analyses.lpact.explain.material import BEHIND, RANK, Material
from lpact.analyses.lpact.gates.calibrated.tests import NUISANCE
from lpact.analyses.lpact.gates.criteria import CriterionName as Name
from lpact.analyses.lpact.gates.criteria import joined
from lpact.analyses.lpact.gates.rows import means_by_control
from lpact.analyses.lpact.gates.verdict import FALSE_DISCOVERY_RATE
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import CONTROL_NULLS
from lpact.math.types import FloatArray
from lpact.stats import MAX_EXACT
from lpact.wording import counted, number, percent

_ONLY_RECORDINGS = (
    "No other model would change that: it takes more, longer or less noisy recordings."
)
_NUMBERS = {
    Name.N_TARGETS: "The number of mechanisms with target units",
    Name.MEAN_RELIABILITY: "Mean brain–brain reliability",
    Name.MEAN_DELTA_FRACTION: "The mean contrast with the best control (most often {}), in units of the ceiling,",
}
FEWEST_FOR_TAIL = 3
"""Draws from which the tail beyond them is taken from their mean and spread."""


def what_would_change(
    material: Material, rows: Rows, decision: Mapping[str, Any], gates: Sequence[GateRecord]
) -> tuple[str, ...]:
    """One sentence per failing criterion, in the order of the gates; what several share is said once."""
    first: dict[str, str] = {}
    sentences: list[str] = []
    for gate in gates:
        heading = f"{gate.name.replace('_', '-').capitalize()} gate"
        for criterion in gate.criteria:
            if criterion.passed or not criterion.decisive:
                continue
            body = _body(material, criterion)
            before = first.setdefault(body, heading)
            if criterion.name == Name.CONFIRMATORY:
                sentences.append(body)
            elif before == heading:
                sentences.append(joined(heading, body))
            else:
                sentences.append(f"{heading}: the same as in the {before[:1].lower()}{before[1:]}.")
    sentences.append(_correction(material, rows, decision))
    return tuple(dict.fromkeys(filter(None, sentences))) or (_nearest(material, gates),)


def _body(material: Material, criterion: Criterion) -> str:
    if criterion.name == Name.CONFIRMATORY:
        return f"The dataset would have to be confirmatory. {criterion.sentence}"
    if criterion.value is None:
        return f"There would have to be a number first. {criterion.sentence}"
    name = Name(criterion.name)
    if name in _SPECIAL:
        return _SPECIAL[name](material, criterion)
    if criterion.relation == "<=":
        return _p_value(material, criterion)
    what = _NUMBERS.get(name, name.value.replace("_", " ").capitalize())
    more = f" {_ONLY_RECORDINGS}" if name is Name.MEAN_RELIABILITY else ""
    return f"{_rise(what.format(criterion.compared_with or 'the best control'), criterion)}.{more}"


def _rise(what: str, criterion: Criterion) -> str:
    """'… would have to rise from a to at least b', without a full stop."""
    to = "above" if criterion.relation == ">" else "at least"
    return f"{what} would have to rise from {number(criterion.value)} to {to} {number(criterion.threshold)}"


def _fall(what: str, criterion: Criterion) -> str:
    return f"{what} would have to fall from {number(criterion.value)} to {number(criterion.threshold)} or less"


def rounded_down(value: float) -> str:
    """A bound that a number must not exceed, with three digits and never above it: 0.000555 for 1/1800."""
    return _rounded(value, ROUND_FLOOR)


def rounded_up(value: float) -> str:
    """A bound that a number must exceed, with three digits and never below it."""
    return _rounded(value, ROUND_CEILING)


def _rounded(value: float, how: str) -> str:
    if not math.isfinite(value) or value == 0.0:
        return f"{value:.3g}"
    # Fifteen digits are what a double holds for certain; beyond them is noise of the arithmetic.
    exact = Decimal(f"{value:.15g}")
    return f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), rounding=how)):.3g}"


def _does(n: int) -> str:
    return "does" if n == 1 else "do"


def fewest(n: int, enough: Callable[[float], bool]) -> int | None:
    """The fewest of ``n`` whose share is enough; None where not even all are."""
    return next((k for k in range(n + 1) if enough(k / n)), None) if n else None


# --- means, shares, votes and counts ---------------------------------------------------------------


def _mean_delta(material: Material, criterion: Criterion) -> str:
    means = scores.mean_scores(material)
    nuisance = criterion.name == Name.MEAN_DELTA_NUISANCE
    control = f"the best severe control of each subject-run (most often {criterion.compared_with})"
    said = _rise(f"The mean advantage over {NUISANCE if nuisance else control}", criterion)
    if means is None:
        return f"{said}."
    return f"{said}: {_two_ways(means[0], means[1 if nuisance else 2])}."


def _two_ways(real: float, rival: float) -> str:
    if real == rival:
        return f"both score {number(real)}, so that any rise of the real score or fall of the rival's would do"
    return (
        f"the real score by more than {number(rival - real)} (from {number(real)} to above {number(rival)}), "
        f"or that of the rival would have to fall to below {number(real)}"
    )


def _smallest(material: Material, criterion: Criterion) -> str:
    means = means_by_control(material.rows(CONTROL_NULLS), material.metric)
    said = _rise(f"The mean advantage over {criterion.compared_with}", criterion)
    own = means.filter(control=criterion.compared_with)
    if own.height:
        score = own["control_score"].item()
        said += f": {_two_ways(score + own['delta'].item(), score)}"
    behind = (pl.col("delta") <= 0) & (pl.col("control") != criterion.compared_with)
    others = means.filter(behind)["control"].to_list()
    return f"{said}.{_also(others, f'{_does(len(others))} at least as well')}"


def _also(names: list[str], verb: str, most: int = 3) -> str:
    if not names:
        return ""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f" {', '.join(names[:most])}{more} {verb} too."


def _not_reached(material: Material, criterion: Criterion) -> str:
    """Every control that reaches the model too often must lose that: one that still does is enough to fail."""
    control, threshold = criterion.compared_with, criterion.threshold or 0.0
    votes = patterns.votes_by_control(material)
    own = votes.filter(condition=control)
    if not own.height:
        return f"{_rise('The share of summaries in which no control is ahead', criterion)}."

    def needed(n: int) -> int | None:
        # The decision's own arithmetic: 1 − share reached, which rounds differently from the share left.
        return next((k for k in range(n + 1) if 1 - (n - k) / n >= threshold), None)

    n, ahead = own.select("n", "n_ahead").row(0)
    said = (
        f"The model would have to be ahead of {control} in at least {needed(n)} of "
        f"{n} relational {'summary' if n == 1 else 'summaries'}, and is in {ahead}"
    )
    others = [
        f"{row['condition']} (ahead in {row['n_ahead']} of {row['n']}, {needed(row['n'])} needed)"
        for row in votes.filter(
            pl.col("share") < threshold, pl.col("condition") != control
        ).iter_rows(named=True)
    ]
    also = f" The same is needed against {', '.join(others)}." if others else ""
    return f"{said}.{also}"


def _summaries_passing(material: Material, criterion: Criterion) -> str:
    threshold, share = criterion.threshold or 0.0, material.gates.direction_fraction
    found = patterns.summaries(material)
    passes = (pl.col("pass_share") >= share) & (pl.col("delta_rel") > 0)
    n_passing = found.filter(passes).height
    needed = fewest(found.height, lambda value: value > threshold)
    said = "No number of relational summaries is more than all of them"
    if needed is not None:
        said = f"At least {needed} of {found.height} relational summaries would have to pass"
        said += f", and {n_passing} {_does(n_passing)}"
    return f"{said}."


def _methods(material: Material, criterion: Criterion) -> str:
    threshold, found = criterion.threshold or 0.0, scores.methods(material)
    needed = fewest(found.height, lambda share: share >= threshold)
    n_agreeing = found.filter(pl.all_horizontal(pl.col(list(scores.COLUMNS)) > 0)).height
    return (
        f"At least {needed} of {counted(found.height, 'stripping method')} would have to show a selective drop, "
        f"and {n_agreeing} {_does(n_agreeing)}."
    )


def _fraction_of_ceiling(_: Material, criterion: Criterion) -> str:
    centre = "median" if criterion.name == Name.MEDIAN_FRACTION_OF_CEILING else "mean"
    said = _rise(f"The {centre} fraction of the {criterion.compared_with} ceiling", criterion)
    value = criterion.value or 0.0
    if value <= 0.0:
        return f"{said}; the similarity is not even positive."
    times = number((criterion.threshold or 0.0) / value)
    return f"{said}: the similarity would have to be {times} times as large."


def _subject_runs(_: Material, criterion: Criterion) -> str:
    have, need = int(criterion.value or 0), int(criterion.threshold or 0)
    return f"{counted(need - have, 'more subject-run')} with a level-1 score would be needed ({have} of {need})."


def _direction(_: Material, criterion: Criterion) -> str:
    found = criterion.distributions[0] if criterion.distributions else None
    if found is None or not found.values:
        return f"{_rise('The share of subject-runs with both contrasts above 0', criterion)}."
    threshold, n = criterion.threshold or 0.0, len(found.values)
    needed = fewest(n, lambda share: share >= threshold)
    return (
        f"Both contrasts would have to be above 0 in at least {needed} of {counted(n, 'subject-run')}, "
        f"and are in {sum(v > 0 for v in found.values)}."
    )


def _reliable(material: Material, criterion: Criterion) -> str:
    enough, threshold = material.gates.min_reliability, criterion.threshold or 0.0
    said, more = _rise("The share of unit rows with a reliable brain pattern", criterion), ""
    for found in criterion.distributions[:1]:
        n = len(found.values) + found.n_missing
        needed = fewest(n, lambda share: share >= threshold)
        if needed is not None:
            short = needed - sum(v >= enough for v in found.values)
            more = f": {counted(short, 'more row')} of {n}"
    return f"{said}{more}, with a split-half reliability of at least {number(enough)}. {_ONLY_RECORDINGS}"


# --- tests -------------------------------------------------------------------------------------------


def _p_value(material: Material, criterion: Criterion) -> str:
    """How far the p-value is from its level, and which number would be enough."""
    against = criterion.compared_with.replace("unit_order", "other unit orders")
    of = f" against {against}" if against else ""
    if criterion.name == Name.P_BEYOND_NUISANCE:
        of += ", with nuisance beside the features,"
    said = _fall(f"The p-value{of}", criterion)
    tests = [d for d in criterion.distributions if d.p_value is not None]
    if not tests:
        return f"{said}."
    alpha = criterion.threshold or 0.0
    by_draws = tests[0].gives in (RANK, BEHIND)
    middle = (
        _by_draws(material, criterion, tests[0]) if by_draws else _by_blocks(criterion, tests[0])
    )
    others = [d for d in tests[1:] if (d.p_value or 0) > alpha]
    failing = [f"{d.compared_with} (p = {number(d.p_value)})" for d in others]
    return f"{said}{middle}.{_also(failing, 'fails' if len(failing) == 1 else 'fail')}"


def _by_draws(material: Material, criterion: Criterion, test: Distribution) -> str:
    alpha, m = criterion.threshold or 0.0, len(test.values)
    needed = above_draws(np.array(test.values), alpha)
    if needed is None:
        return (
            f"; with {counted(m, 'draw')} the smallest p-value that this test can give is {number(1 / (1 + m))}, "
            f"so that no score could pass: at least {FEWEST_FOR_TAIL} different draws are needed, and "
            f"{math.ceil(1 / alpha - 1e-9) - 1} for a p-value that rests on ranks alone"
        )
    level2_test = test.unit.startswith(patterns.STATISTIC)
    first = ""
    if test.gives == BEHIND:
        behind = -patterns.draw_tests(material, rival=criterion.compared_with)[0].pooled.advantage
        lead = f"it is {number(behind)} below" if behind > 0 else "they are equal"
        first = f": the mean similarity would first have to be above the rival's ({lead}, and p is 1 until then)"
    now = test.observed if test.observed is not None else math.nan
    if now > needed:
        return first
    what = "the relational statistic" if level2_test else "the mean real score"
    stay = ", if the draws stayed as they are" if level2_test else ""
    finer = (
        f"; {counted(m, 'draw')} rank no finer than {number(1 / (1 + m))}, so that their mean and spread count"
        if 1 / (1 + m) > alpha
        else ""
    )
    then = f"{first}, and then" if first else ":"
    return f"{then} {what} would have to rise from {number(now)} to above {rounded_up(needed)}{stay}{finer}"


def above_draws(draws: FloatArray, alpha: float) -> float | None:
    """Statistic above which `lpact.stats.draw_p_value` is at most ``alpha``; None where no statistic is enough.

    By rank: above all but ⌊α (1 + m)⌋ − 1 of the m draws. By the tail beyond all of them, for m ≥ 3: above
    mean + t_{m−1}(1 − α) sd √(1 + 1/m). The smaller of the two.
    """
    draws = np.sort(draws[np.isfinite(draws)])[::-1]
    m = draws.size
    may_reach = math.floor(alpha * (1 + m) + 1e-9) - 1
    candidates = [float(draws[may_reach])] if m and may_reach >= 0 else []
    spread = float(draws.std(ddof=1)) * math.sqrt(1 + 1 / m) if m >= FEWEST_FOR_TAIL else 0.0
    if spread > 0.0:
        beyond = float(draws.mean()) - float(special.stdtrit(m - 1, alpha)) * spread
        candidates.append(max(beyond, float(draws[0])))
    return min(candidates, default=None)


def _by_blocks(criterion: Criterion, test: Distribution) -> str:
    """Whether there are enough blocks: of n signs, all 2ⁿ flips are equally likely."""
    n = len(test.values)
    if n > MAX_EXACT or 0.5**n <= (criterion.threshold or 0.0):
        return ""
    return (
        f"; with {counted(n, 'held-out block')} the smallest p-value that this test can give is {number(0.5**n)}, so "
        "that no score could pass: more blocks are needed"
    )


def _replication(material: Material, criterion: Criterion) -> str:
    said = _fall("The p-value of replication", criterion)
    p_values = criterion.distributions[0].values if criterion.distributions else ()
    if not p_values:
        return f"{said}."
    n = len(p_values)
    needed = max(1, math.ceil(material.gates.direction_fraction * n - 1e-9))
    each = (criterion.threshold or 0.0) / (n - needed + 1)
    reach = sum(p <= each for p in p_values)
    return (
        f"{said}: at least {needed} of {counted(n, 'subject-run')} would have to reach p = {rounded_down(each)} on "
        f"their own, and {reach} {_does(reach)}."
    )


def _p_fraction(material: Material, criterion: Criterion) -> str:
    threshold = material.gates.min_ceiling_fraction
    said = _fall(
        f"The p-value that the fraction of the ceiling is above {number(threshold)}", criterion
    )
    groups = [np.array(values) for values in patterns.unit_fractions(material).values()]
    if len(groups) < 2:
        return (
            f"{said}; with {counted(len(groups), 'subject-run')} there is no bound, so that no score could pass: "
            "at least 2 are needed."
        )
    mean = sum(float(g.mean()) for g in groups) / len(groups)
    return f"{said}: the mean is {number(mean)} now."


_SPECIAL: dict[Name, Callable[[Material, Criterion], str]] = {
    Name.MEAN_DELTA_NUISANCE: _mean_delta,
    Name.MEAN_DELTA_CONTROL: _mean_delta,
    Name.SMALLEST_CONTROL_DELTA: _smallest,
    Name.SUMMARIES_NOT_REACHED: _not_reached,
    Name.SUMMARIES_PASSING: _summaries_passing,
    Name.METHODS_AGREEING: _methods,
    Name.MEAN_FRACTION_OF_CEILING: _fraction_of_ceiling,
    Name.MEDIAN_FRACTION_OF_CEILING: _fraction_of_ceiling,
    Name.N_SUBJECT_RUNS: _subject_runs,
    Name.POSITIVE_DIRECTION: _direction,
    Name.RELIABLE_UNITS: _reliable,
    Name.P_REPLICATION: _replication,
    Name.P_FRACTION: _p_fraction,
}


# --- the correction over claims ----------------------------------------------------------------------


def _correction(material: Material, rows: Rows, decision: Mapping[str, Any]) -> str:
    """What the correction over claims requires of a claim that passes every gate but not the correction."""
    q, fdr = decision["q_value"], material.gates.fdr
    if decision["beaten_by"] != FALSE_DISCOVERY_RATE:
        return ""
    p_values = rows(DECISIONS.name, gate_profile=decision["gate_profile"])["p_value"]
    others = sorted(p_values.drop_nulls().to_list())
    others.remove(decision["p_value"])
    return (
        f"Correction over {counted(len(others) + 1, 'claim')}: q would have to fall from {number(q)} to "
        f"{number(fdr)} or less: with the other claims as they are, p would have to fall from "
        f"{number(decision['p_value'])} to {rounded_down(p_that_is_enough(others, fdr))} or less."
    )


def p_that_is_enough(others: Sequence[float], level: float) -> float:
    """Largest p-value that has a q-value of at most ``level`` among others (Benjamini & Hochberg 1995).

    With n claims in all: the largest level · k / n for which at least k − 1 of the others are no larger.
    """
    n = len(others) + 1
    for k in range(n, 1, -1):
        bound = level * k / n
        if sum(p <= bound for p in others) >= k - 1:
            return bound
    return level / n


# --- a claim that passes every gate ------------------------------------------------------------------


def _nearest(material: Material, gates: Sequence[GateRecord]) -> str:
    """Which number could lose least before its gate fails, as a share of what could be lost.

    p-value: 1 − p / α. Positive threshold: 1 − threshold / value. Contrast with a rival at level 1: contrast / real
    score; in fractions of the ceiling: contrast / fraction.
    """
    counts = (Name.CONFIRMATORY, Name.N_TARGETS, Name.N_SUBJECT_RUNS)
    found = [
        (*room, gate.name, criterion)
        for gate in gates
        for criterion in gate.criteria
        if criterion.decisive and criterion.passed and criterion.name not in counts
        for room in _room(material, gate, criterion)
    ]
    if not found:
        return "Every gate passes."
    room, of, gate, criterion = min(found, key=lambda own: own[0])
    threshold = number(criterion.threshold)
    if criterion.relation == "<=":
        needed = f"{threshold} or less is needed; it is {percent(1 - room)} of the level"
    else:
        to = "above" if criterion.relation == ">" else "at least"
        needed = f"{to} {threshold} is needed; {percent(room)} of {of} could be lost"
    against = f" against {criterion.compared_with}" if criterion.compared_with else ""
    return (
        f"Every gate passes. Nearest to failing is the {gate.replace('_', '-')} gate: "
        f"{criterion.name}{against} is {number(criterion.value)} ({needed})."
    )


def _room(material: Material, gate: GateRecord, criterion: Criterion) -> list[tuple[float, str]]:
    value, threshold = criterion.value, criterion.threshold
    if value is None or threshold is None:
        return []
    if criterion.relation == "<=":
        return [(1 - value / threshold, "the level")]
    if threshold > 0:
        return [(1 - threshold / value, "the number")]
    if criterion.name == Name.MEAN_DELTA_FRACTION:
        wholes = [c.value or 0.0 for c in gate.criteria if c.name == Name.MEAN_FRACTION_OF_CEILING]
        of = "the fraction of the ceiling"
    else:
        means = scores.mean_scores(material)
        wholes, of = [] if means is None else [means[0]], "the real score"
    return [(value / whole, of) for whole in wholes if whole > 0]
