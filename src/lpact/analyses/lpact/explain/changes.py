"""What would have to be different for a claim to pass: one sentence per failing criterion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
from scipy import special

from lpact.analyses.base import Rows
from lpact.analyses.explanation import Criterion, Distribution
from lpact.analyses.explanation import Gate as GateRecord
from lpact.analyses.lpact.explain import patterns, scores
from lpact.analyses.lpact.explain.claim_rows import BEHIND, RANK, ClaimRows
from lpact.analyses.lpact.gates.criteria import CriterionName as Name
from lpact.analyses.lpact.gates.criteria import joined
from lpact.analyses.lpact.gates.verdict import FALSE_DISCOVERY_RATE
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.math.types import FloatArray
from lpact.stats import MAX_EXACT
from lpact.wording import counted, number, percent

_WORDS = {
    Name.MEAN_DELTA_NUISANCE: "the mean advantage over nuisance",
    Name.MEAN_DELTA_CONTROL: "the mean advantage over the best severe control of each subject-run (most often {})",
    Name.SMALLEST_CONTROL_DELTA: "the mean advantage over {}",
    Name.SUMMARIES_NOT_REACHED: "the share of relational summaries in which the model is ahead of {}",
    Name.SUMMARIES_PASSING: "the share of relational summaries that pass",
    Name.RELIABLE_UNITS: "the share of unit rows with a reliable brain pattern",
    Name.N_TARGETS: "the number of mechanisms with target units",
    Name.METHODS_AGREEING: "the share of stripping methods with a selective drop",
    Name.MEAN_RELIABILITY: "mean brain–brain reliability",
    Name.MEAN_DELTA_FRACTION: "the mean contrast with the best control (most often {}), in units of the ceiling,",
    Name.MEAN_FRACTION_OF_CEILING: "the mean fraction of the {} ceiling",
    Name.MEDIAN_FRACTION_OF_CEILING: "the median fraction of the {} ceiling",
    Name.N_SUBJECT_RUNS: "the number of subject-runs with a level-1 score",
    Name.POSITIVE_DIRECTION: "the share of subject-runs with both contrasts above 0",
    Name.P_BEYOND_NUISANCE: "the p-value against {}, with nuisance features in addition,",
    Name.P_FRACTION: "the p-value that the fraction of the ceiling is above its minimum",
    Name.P_REPLICATION: "the p-value of replication",
}
"""Numbers of criteria; the others are p-values against a rival."""
_OF_RECORDINGS = (Name.MEAN_RELIABILITY, Name.RELIABLE_UNITS)
FEWEST_FOR_TAIL = 3
"""Draws from which the tail beyond them is taken from their mean and spread."""


def what_would_change(
    claim: ClaimRows, rows: Rows, decision: Mapping[str, Any], gates: Sequence[GateRecord]
) -> tuple[str, ...]:
    """One sentence per failing criterion, in the order of the gates; a shared cause is explained once."""
    first: dict[str, str] = {}
    sentences: list[str] = []
    for gate in gates:
        heading = f"{gate.name.replace('_', '-').capitalize()} gate"
        for criterion in gate.criteria:
            if criterion.passed or not criterion.decisive:
                continue
            if criterion.name == Name.CONFIRMATORY:
                sentences.append(f"The dataset would have to be confirmatory. {criterion.sentence}")
                continue
            body = _body(claim, criterion)
            before = first.setdefault(body, heading)
            if before == heading:
                sentences.append(joined(heading, body))
            else:
                sentences.append(f"{heading}: the same as in the {before[:1].lower()}{before[1:]}.")
    sentences.append(_multiple_testing(claim, rows, decision))
    return tuple(dict.fromkeys(filter(None, sentences))) or (_nearest(claim, gates),)


def _body(claim: ClaimRows, criterion: Criterion) -> str:
    """How far the number is from its threshold; for a p-value, also which score would be enough."""
    if criterion.value is None:
        return f"There would have to be a number first. {criterion.sentence}"
    name = Name(criterion.name)
    against = criterion.compared_with.replace("unit_order", "other unit orders")
    what = _WORDS.get(name, f"the p-value{' against {}' if against else ''}").format(against)
    value, threshold = number(criterion.value), number(criterion.threshold)
    if criterion.relation != "<=":
        to = "above" if criterion.relation == ">" else "at least"
        said = f"{what} would have to rise from {value} to {to} {threshold}."
        if name in _OF_RECORDINGS:
            said += " That takes more, longer or less noisy recordings, not another model."
        return said
    said = f"{what} would have to fall from {value} to {threshold} or less"
    tests = [d for d in criterion.distributions if d.p_value is not None]
    if name is Name.P_FRACTION and len(patterns.unit_fractions(claim)) < 2:
        said += "; that takes at least 2 subject-runs, so no score could pass"
    elif tests and tests[0].gives in (RANK, BEHIND):
        said += _by_draws(claim, criterion, tests[0])
    elif tests:
        n = len(tests[0].values)
        if n <= MAX_EXACT and 0.5**n > (criterion.threshold or 0.0):
            said += _no_score(counted(n, "held-out block"), 0.5**n) + ": more blocks are needed"
    failing = [d for d in tests[1:] if (d.p_value or 0.0) > (criterion.threshold or 0.0)]
    others = ", ".join(f"{d.compared_with} (p = {number(d.p_value)})" for d in failing[:3])
    return f"{said}.{f' Also failing: {others}.' if failing else ''}"


def _no_score(sample: str, least: float) -> str:
    """A test that cannot reject. Of n signs all 2ⁿ flips are equally likely; of m draws the smallest rank is 1."""
    return f"; with {sample} the smallest possible p-value is {number(least)}, so no score could pass"


def _by_draws(claim: ClaimRows, criterion: Criterion, test: Distribution) -> str:
    alpha, m = criterion.threshold or 0.0, len(test.values)
    needed = above_draws(np.array(test.values), alpha)
    if needed is None:
        enough = math.ceil(1 / alpha - 1e-9) - 1
        return (
            f"{_no_score(counted(m, 'draw'), 1 / (1 + m))}: at least {FEWEST_FOR_TAIL} different draws are needed, "
            f"and {enough} for a p-value that is a rank"
        )
    first = ""
    if test.gives == BEHIND:
        behind = -patterns.draw_tests(claim, rival=criterion.compared_with)[0].pooled.advantage
        lead = f"it is {number(behind)} below" if behind > 0 else "they are equal"
        first = f": the mean similarity would first have to be above the rival's ({lead}, and p is 1 until then)"
    now = test.observed if test.observed is not None else math.nan
    if now > needed:
        return first
    level2 = test.unit.startswith(patterns.STATISTIC)
    what = "the relational statistic" if level2 else "the mean real score"
    then = f"{first}, and then" if first else ":"
    same = ", with the same draws" if level2 else ""
    return f"{then} {what} would have to rise from {number(now)} to above {rounded(needed, up=True)}{same}"


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


def rounded(value: float, *, up: bool) -> str:
    """A bound with three digits: rounded up if a number must exceed it, else down (0.000555 for 1/1800)."""
    if not math.isfinite(value) or value == 0.0:
        return f"{value:.3g}"
    # Fifteen digits are what a double holds for certain; beyond them is noise of the arithmetic.
    exact = Decimal(f"{value:.15g}")
    how = ROUND_CEILING if up else ROUND_FLOOR
    return f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), rounding=how)):.3g}"


def _multiple_testing(claim: ClaimRows, rows: Rows, decision: Mapping[str, Any]) -> str:
    """What the multiple-testing correction requires of a claim that passes every gate but not the correction."""
    q, fdr = decision["q_value"], claim.gates.fdr
    if decision["beaten_by"] != FALSE_DISCOVERY_RATE:
        return ""
    p_values = rows(DECISIONS.name, gate_profile=decision["gate_profile"])["p_value"]
    others = sorted(p_values.drop_nulls().to_list())
    others.remove(decision["p_value"])
    return (
        f"Multiple-testing correction over {counted(len(others) + 1, 'claim')}: q would have to fall from {number(q)} "
        f"to {number(fdr)} or less; with the other claims as they are, p would have to fall from "
        f"{number(decision['p_value'])} to {rounded(p_that_is_enough(others, fdr), up=False)} or less."
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


def _nearest(claim: ClaimRows, gates: Sequence[GateRecord]) -> str:
    """Which number could lose least before its gate fails, as a share of what could be lost.

    p-value: 1 − p / α. Positive threshold: 1 − threshold / value. Contrast with a rival at level 1: contrast / real
    score; in fractions of the ceiling: contrast / fraction.
    """
    counts = (Name.CONFIRMATORY, Name.N_TARGETS, Name.N_SUBJECT_RUNS)
    found = [
        (*margin, gate.name, criterion)
        for gate in gates
        for criterion in gate.criteria
        if criterion.decisive and criterion.passed and criterion.name not in counts
        for margin in _margin(claim, gate, criterion)
    ]
    if not found:
        return "Every gate passes."
    margin, of, gate, criterion = min(found, key=lambda own: own[0])
    threshold = number(criterion.threshold)
    if criterion.relation == "<=":
        needed = f"{threshold} or less is needed; it is {percent(1 - margin)} of the level"
    else:
        to = "above" if criterion.relation == ">" else "at least"
        needed = f"{to} {threshold} is needed; {percent(margin)} of {of} could be lost"
    against = f" against {criterion.compared_with}" if criterion.compared_with else ""
    return (
        f"Every gate passes. Nearest to failing is the {gate.replace('_', '-')} gate: "
        f"{criterion.name}{against} is {number(criterion.value)} ({needed})."
    )


def _margin(claim: ClaimRows, gate: GateRecord, criterion: Criterion) -> list[tuple[float, str]]:
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
        means = scores.mean_scores(claim)
        wholes, of = [] if means is None else [means[0]], "the real score"
    return [(value / whole, of) for whole in wholes if whole > 0]
