"""What would have to be otherwise for a criterion that is no test: means, shares, votes and counts."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from lpact.analyses.lpact.claim_story import level1, level2, level3
from lpact.analyses.lpact.claim_story.material import Material
from lpact.analyses.lpact.claim_story.model import CriterionStory, Distribution
from lpact.analyses.lpact.gates.calibrated.predictive import NUISANCE
from lpact.analyses.lpact.gates.criteria import CriterionName
from lpact.analyses.lpact.gates.point_rules.severe import means_by_control
from lpact.analyses.lpact.gates.wording import count, number, percent

_ONLY_RECORDINGS = (
    "No other model would change that: it takes more, longer or less noisy recordings."
)
_NAMES = {
    "matching_drop": "its drop",
    "margin": "its margin over other targets",
    "mismatch_margin": "its margin over a mismatched strip",
}


def rise(what: str, criterion: CriterionStory) -> str:
    """'… would have to rise from a to at least b', without a full stop."""
    to = "above" if criterion.relation == ">" else "at least"
    return (
        f"{what} would have to rise from {number(criterion.value)} to {to} "
        f"{number(criterion.threshold)}"
    )


def fewest(n: int, enough: Callable[[float], bool]) -> int | None:
    """The fewest of ``n`` whose share is enough; None where not even all are."""
    return next((k for k in range(n + 1) if enough(k / n)), None) if n else None


def point_change(material: Material, criterion: CriterionStory) -> str:
    """The sentence of one failing criterion; its value is there."""
    name = CriterionName(criterion.criterion)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(material, criterion)
    return f"{rise(name.value.replace('_', ' ').capitalize(), criterion)}."


def _mean_delta(material: Material, criterion: CriterionStory) -> str:
    means = level1.mean_scores(material)
    nuisance = criterion.criterion == CriterionName.MEAN_DELTA_NUISANCE
    rival = (
        NUISANCE
        if nuisance
        else f"the best severe control of each subject-run (most often {criterion.compared_with})"
    )
    said = rise(f"The mean advantage over {rival}", criterion)
    if means is None:
        return f"{said}."
    return f"{said}: {_two_ways(means.real, means.nuisance if nuisance else means.best_control)}."


def _two_ways(real: float, rival: float) -> str:
    if real == rival:
        return f"both score {number(real)}, so that any rise of the real score or fall of the rival's would do"
    return (
        f"the real score by more than {number(rival - real)} (from {number(real)} to above {number(rival)}), "
        f"or that of the rival would have to fall to below {number(real)}"
    )


def _smallest(material: Material, criterion: CriterionStory) -> str:
    means = means_by_control(material.nulls, material.metric)
    said = rise(f"The mean advantage over {criterion.compared_with}", criterion)
    own = means.filter(control=criterion.compared_with)
    if own.height:
        score = own["control_score"].item()
        said += f": {_two_ways(score + own['delta'].item(), score)}"
    others = means.filter((pl.col("delta") <= 0) & (pl.col("control") != criterion.compared_with))
    return f"{said}.{_also(others['control'].to_list(), 'at least as well')}"


def _also(names: list[str], how: str) -> str:
    if not names:
        return ""
    do = "does" if len(names) == 1 else "do"
    return f" {_listed(names)} {do} {how} too."


def _listed(names: list[str], most: int = 3) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _not_reached(material: Material, criterion: CriterionStory) -> str:
    """Every control that reaches the model too often must lose that: one that still does is enough to fail."""
    control, threshold = criterion.compared_with, criterion.threshold
    found = next((d for d in criterion.distributions if d.kind == "summaries"), None)
    if found is None:
        return f"{rise('The share of summaries in which no control is ahead', criterion)}."
    n, ahead = len(found.draws), sum(v > 0 for v in found.draws)
    said = (
        f"The model would have to be ahead of {control} in at least {_fewest_ahead(n, threshold)} of "
        f"{n} relational {'summary' if n == 1 else 'summaries'}, and is in {ahead}"
    )
    behind = sorted(
        ((v, name) for v, name in zip(found.draws, found.labels, strict=True) if v <= 0),
        reverse=True,
    )
    nearest = f"; it is nearest in {behind[0][1]} ({number(behind[0][0])})" if behind else ""
    others = level2.votes_by_control(material).filter(
        pl.col("share") < threshold, pl.col("condition") != control
    )
    return f"{said}{nearest}.{_ahead_of_others(others, threshold)}"


def _fewest_ahead(n: int, threshold: float) -> int | None:
    """Fewest summaries that are enough, by the decision's own arithmetic."""
    return next((k for k in range(n + 1) if 1 - (n - k) / n >= threshold), None)


def _ahead_of_others(others: pl.DataFrame, threshold: float) -> str:
    if not others.height:
        return ""
    each = [
        f"{row['condition']} (ahead in {row['n_ahead']} of {row['n']}, {_fewest_ahead(row['n'], threshold)} needed)"
        for row in others.iter_rows(named=True)
    ]
    return f" The same is needed against {', '.join(each)}."


def _summaries_passing(material: Material, criterion: CriterionStory) -> str:
    found = level2.summaries(material).with_columns(pl.col("delta_rel").fill_null(float("-inf")))
    share = material.gates.direction_fraction
    passes = (pl.col("pass_share") >= share) & (pl.col("delta_rel") > 0)
    n_passing = found.filter(passes).height
    needed = fewest(found.height, lambda value: value > criterion.threshold)
    said = (
        f"At least {needed} of {found.height} relational summaries would have to pass, and {n_passing} "
        f"{'does' if n_passing == 1 else 'do'}"
        if needed is not None
        else "No number of relational summaries is more than all of them"
    )
    failing = found.filter(~passes).sort(
        "pass_share", "delta_rel", "name", descending=[True, True, False]
    )
    if not failing.height:
        return f"{said}."
    nearest = failing.row(0, named=True)
    contrast = number(nearest["delta_rel"]) if nearest["delta_rel"] > float("-inf") else "missing"
    return (
        f"{said}; the nearest is {nearest['name']}, in which {percent(nearest['pass_share'])} of unit rows pass "
        f"({percent(share)} are needed) and the mean contrast is {contrast} (it must be above 0)."
    )


def _methods(material: Material, criterion: CriterionStory) -> str:
    found = level3.methods(material)
    needed = fewest(found.height, lambda share: share >= criterion.threshold)
    agrees = pl.all_horizontal(pl.col(list(level3.COLUMNS)) > 0)
    n_agreeing = found.filter(agrees).height
    said = (
        f"At least {needed} of {count(found.height, 'stripping method')} would have to show a selective drop, "
        f"and {n_agreeing} {'does' if n_agreeing == 1 else 'do'}"
    )
    failing = found.filter(~agrees).with_columns(
        worst=pl.min_horizontal(list(level3.COLUMNS)),
        n_held=pl.sum_horizontal([(pl.col(c) > 0).cast(pl.Int64) for c in level3.COLUMNS]),
    )
    if not failing.height:
        return f"{said}."
    nearest = failing.sort("n_held", "worst", "method", descending=[True, True, False]).row(
        0, named=True
    )
    short = [
        f"{words} is {number(nearest[column])}"
        for column, words in _NAMES.items()
        if not nearest[column] > 0
    ]
    must = "it must" if len(short) == 1 else "each must"
    return f"{said}; the nearest is {nearest['method']}: {' and '.join(short)} ({must} be above 0)."


def _targets(_: Material, criterion: CriterionStory) -> str:
    return f"{rise('The number of mechanisms with target units', criterion)}."


def _reliability(_: Material, criterion: CriterionStory) -> str:
    return f"{rise('Mean brain–brain reliability', criterion)}. {_ONLY_RECORDINGS}"


def _delta_fraction(_: Material, criterion: CriterionStory) -> str:
    rival = criterion.compared_with or "the best control"
    what = f"The mean contrast with the best control (most often {rival}), in units of the ceiling,"
    return f"{rise(what, criterion)}."


def _fraction(_: Material, criterion: CriterionStory) -> str:
    median = criterion.criterion == CriterionName.MEDIAN_FRACTION_OF_CEILING
    said = rise(
        f"The {'median' if median else 'mean'} fraction of the {criterion.compared_with} ceiling",
        criterion,
    )
    value = criterion.value or 0.0
    if value <= 0.0:
        return f"{said}; the similarity is not even positive."
    return f"{said}: the similarity would have to be {number(criterion.threshold / value)} times as large."


def _subject_runs(_: Material, criterion: CriterionStory) -> str:
    have, need = int(criterion.value or 0), int(criterion.threshold)
    return f"{count(need - have, 'more subject-run')} with a level-1 score would be needed ({have} of {need})."


def _direction(_: Material, criterion: CriterionStory) -> str:
    found = criterion.distributions[0] if criterion.distributions else None
    if found is None or not found.draws:
        return f"{rise('The share of subject-runs with both contrasts above 0', criterion)}."
    n, n_above = len(found.draws), sum(v > 0 for v in found.draws)
    needed = fewest(n, lambda share: share >= criterion.threshold)
    said = (
        f"Both contrasts would have to be above 0 in at least {needed} of {count(n, 'subject-run')}, "
        f"and are in {n_above}"
    )
    return f"{said}; {_nearest_below(found)}."


def _nearest_below(found: Distribution) -> str:
    value, name = max(
        (v, name) for v, name in zip(found.draws, found.labels, strict=True) if not v > 0
    )
    return f"the nearest is {name}, where the smaller one is {number(value)}"


def _reliable(material: Material, criterion: CriterionStory) -> str:
    found = criterion.distributions[0] if criterion.distributions else None
    said = rise("The share of unit rows with a reliable brain pattern", criterion)
    if found is None:
        return f"{said}."
    n = len(found.draws) + found.n_missing
    have = sum(v >= material.gates.min_reliability for v in found.draws)
    needed = fewest(n, lambda share: share >= criterion.threshold)
    more = "" if needed is None else f": {count(needed - have, 'more row')} of {n}"
    return (
        f"{said}{more}, with a split-half reliability of at least {number(material.gates.min_reliability)}. "
        f"{_ONLY_RECORDINGS}"
    )


_SPECIAL: dict[CriterionName, Callable[[Material, CriterionStory], str]] = {
    CriterionName.MEAN_DELTA_NUISANCE: _mean_delta,
    CriterionName.MEAN_DELTA_CONTROL: _mean_delta,
    CriterionName.SMALLEST_CONTROL_DELTA: _smallest,
    CriterionName.SUMMARIES_NOT_REACHED: _not_reached,
    CriterionName.SUMMARIES_PASSING: _summaries_passing,
    CriterionName.N_TARGETS: _targets,
    CriterionName.METHODS_AGREEING: _methods,
    CriterionName.MEAN_RELIABILITY: _reliability,
    CriterionName.MEAN_DELTA_FRACTION: _delta_fraction,
    CriterionName.MEAN_FRACTION_OF_CEILING: _fraction,
    CriterionName.MEDIAN_FRACTION_OF_CEILING: _fraction,
    CriterionName.N_SUBJECT_RUNS: _subject_runs,
    CriterionName.POSITIVE_DIRECTION: _direction,
    CriterionName.RELIABLE_UNITS: _reliable,
}
