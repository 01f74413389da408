"""Numbers behind gates P, Rep, M and S at level 1: held-out scores, draws of controls, blocks and drops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.explanation import Distribution
from lpact.analyses.lpact.explain.claim_rows import (
    CONJUNCTION,
    MEAN,
    MEDIAN,
    RANK,
    SHARE_ABOVE,
    SMALLEST,
    ClaimRows,
    Made,
    among_draws,
    by_run,
    distribution,
    over_blocks,
    place,
    pooled_over,
)
from lpact.analyses.lpact.gates.calibrated.frames import SubjectRun, mean_over_runs, subject_run
from lpact.analyses.lpact.gates.calibrated.tests import (
    NOTHING,
    NUISANCE,
    RANDOM_DIRECTION,
    blocks_by_run,
    compare_with,
    contrasts_with,
    rival_targets,
)
from lpact.analyses.lpact.gates.criteria import Comparison
from lpact.analyses.lpact.gates.keys import OK
from lpact.analyses.lpact.gates.summaries import means_by_control, medians_by_method, usable_rows
from lpact.analyses.lpact.tables.levels import BLOCK_DROPS, CONTROL_NULLS, SPECIFICITY
from lpact.wording import counted


def mean_delta(claim: ClaimRows, rival: str) -> Made:
    """Contrasts of level 1 by subject-run; with the best controls also their draws."""
    what = "nuisance" if rival == NUISANCE else "the best severe control of each"
    title = f"Real score minus that of {what}, by subject-run"
    column = "delta_nuisance" if rival == NUISANCE else "delta_control"
    found = [_contrasts(claim, title, pl.col(column), MEAN, rival)]
    if rival != NUISANCE:
        found += _draws(claim, rival)
        for row in claim.deltas.filter("computed").iter_rows(named=True):
            found += _draws(claim, row["best_control"], subject_run(row))
    return tuple(found)


def direction(claim: ClaimRows) -> Made:
    """The smaller of the two contrasts of level 1 in every subject-run: the direction is positive where it is."""
    title = "The smaller of both contrasts (nuisance, best control), by subject-run"
    smaller = pl.min_horizontal("delta_nuisance", "delta_control")
    rival = "nuisance and the best severe control"
    return (_contrasts(claim, title, smaller, SHARE_ABOVE, rival),)


def _contrasts(claim: ClaimRows, title: str, values: pl.Expr, gives: str, rival: str) -> Distribution:
    rows = claim.deltas
    reasons = rows.filter(~pl.col("computed"))["reason"].unique().sort().to_list()
    return by_run(
        title,
        f"difference in {claim.score_unit}",
        rows,
        pl.when("computed").then(values),
        gives,
        bound=0.0,
        compared_with=rival,
        where="all subject-runs",
        note=f"Not computed elsewhere ({', '.join(reasons)})." if reasons else "",
    )


def smallest_delta(claim: ClaimRows, control: str) -> Made:
    """The strongest counted control by subject-run, all counted controls side by side, and its draws."""
    unit = f"difference in {claim.score_unit}"
    nulls = claim.rows(CONTROL_NULLS)
    means = means_by_control(nulls, claim.metric)
    own = nulls.filter(metric=claim.metric, control=control)
    used = own.filter(pl.col("counted") & OK).drop_nulls(["delta", "control_score"])
    if not means.height:
        return ()
    found = [
        by_run(
            f"Real score minus that of {control}, by subject-run",
            unit,
            used,
            "delta",
            MEAN,
            bound=0.0,
            compared_with=control,
            where="all subject-runs",
            n_missing=own.height - used.height,
        ),
        distribution(
            "Real score minus that of every counted control",
            unit,
            means["delta"],
            means["control"],
            "control",
            SMALLEST,
            bound=0.0,
            compared_with=control,
            where="mean over subject-runs, control by control",
        ),
        *_draws(claim, control),
    ]
    for row in used.iter_rows(named=True):
        found += _draws(claim, control, subject_run(row))
    return tuple(found)


def tests(claim: ClaimRows, comparisons: Sequence[Comparison], rival: str) -> Made:
    """Tests of level 1, the one that set the criterion first: pooled, then by subject-run for that one alone."""
    ranked = sorted(comparisons, key=lambda t: (t.against != rival, -t.p_value, t.against))
    unit = f"difference in {claim.score_unit}"
    found: list[Distribution] = []
    for position, test in enumerate(ranked):
        against, first = test.against, position == 0
        if test in claim.level1.surrogates:
            found += _draws(claim, against, p_value=test.p_value)
            for run in sorted(claim.real_scores) if first else []:
                found += _draws(claim, against, run)
        else:
            title = f"Real score minus that of {against}, block by block"
            contrasts = claim.level1.differences[against]
            found += over_blocks(title, unit, contrasts, against, test.p_value, each_run=first)
    return tuple(found)


def replication(claim: ClaimRows) -> Made:
    """P-values of all subject-runs: that the model predicts there, beyond surrogates, nuisance and rivals."""
    runs = sorted(claim.real_scores)
    title = "P-value of each subject-run alone: the largest over surrogates, nuisance and rivals"
    p_values = [claim.level1.p_value_in(run) for run in runs]
    more: dict[str, Any] = {"bound": claim.gates.alpha, "where": "all subject-runs"}
    labels = map(place, runs)
    return (distribution(title, "p-value", p_values, labels, "subject-run", CONJUNCTION, **more),)


def mean_scores(claim: ClaimRows) -> tuple[float, float, float] | None:
    """Mean scores of the model, of nuisance and of the best controls, over the subject-runs with both contrasts."""
    rows = claim.deltas.filter("computed")
    columns = ("real_score", "nuisance_score", "best_control_score")
    real, nuisance, control = rows.select(pl.col(columns).mean()).row(0)
    return (real, nuisance, control) if rows.height else None


def _draws(
    claim: ClaimRows,
    control: str | None,
    run: SubjectRun | None = None,
    p_value: float | None = None,
) -> list[Distribution]:
    """The real score among the draws of a control: the mean over subject-runs, or one of them."""
    by_run = claim.draws_of(control) if control is not None else {}
    if run is not None:
        by_run = {own: scores for own, scores in by_run.items() if own == run}
    if not by_run:
        return []
    draws = mean_over_runs(by_run)
    left_out = max(len(values) for values in by_run.values()) - draws.size
    nuisance = claim.draws_of(NUISANCE)
    known = all(own in nuisance for own in by_run)
    mark = (NUISANCE, float(np.mean([nuisance[own][0] for own in by_run]))) if known else ()
    return [
        among_draws(
            f"Real score and draws of {control}",
            claim.score_unit,
            float(np.mean([claim.real_scores[own] for own in by_run])),
            draws,
            compared_with=control,
            where=pooled_over(len(by_run)) if run is None else place(run),
            gives="" if p_value is None else RANK,
            p_value=p_value,
            marks=(mark,) if mark else (),
            note=f"{counted(left_out, 'draw')} left out that not every subject-run has." if left_out else "",
        )
    ]


DROP = "drop in held-out score"
COLUMNS = {
    "matching_drop": "Drop of the mechanism's own target, by method",
    "margin": "Own drop minus the largest of another target, by method",
    "mismatch_margin": "Own drop minus that of a mismatched strip, by method",
}


def _methods(claim: ClaimRows) -> pl.DataFrame:
    """Medians over subject-runs of the three numbers, one row per method."""
    return medians_by_method(usable_rows(claim.stripped(SPECIFICITY)))


def _by_method(claim: ClaimRows, column: str, rival: str, gives: str) -> Distribution:
    found = _methods(claim)
    return distribution(
        COLUMNS[column],
        DROP,
        found[column],
        found["method"],
        "method",
        gives,
        observed=found[column].median(),
        bound=0.0,
        compared_with=rival,
        where="median over subject-runs",
        n_missing=claim.stripped(SPECIFICITY)["method"].n_unique() - found.height,
    )


def agreeing(claim: ClaimRows) -> Made:
    """Votes of the methods, and the three numbers that make them."""
    found = _methods(claim)
    if not found.height:
        return ()
    agrees = pl.all_horizontal(pl.col(list(COLUMNS)) > 0).cast(pl.Float64)
    votes = distribution(
        "Methods that show a selective drop (1) or do not (0)",
        "vote",
        found.select(agrees).to_series(),
        found["method"],
        "method",
        MEAN,
        bound=claim.gates.method_majority,
        where="all methods with finite numbers",
        note="A method agrees if all three numbers below are above 0.",
    )
    return (votes, *(_by_method(claim, column, "", "") for column in COLUMNS))


def typical(claim: ClaimRows, rival: str, column: str) -> Made:
    """One of the three numbers, by method."""
    return (_by_method(claim, column, rival, MEDIAN),)


def block_tests(claim: ClaimRows, first: str, *, beside: str = NOTHING, random: bool = False) -> Made:
    """Tests by block: with other targets and no drop at all, or with ``random`` directions of equal variance.

    ``beside`` names features that are fitted with the stripped ones.
    """
    by_run = blocks_by_run(claim.key, claim.rows(BLOCK_DROPS), beside)
    rivals: tuple[str, ...] = rival_targets(claim.key, by_run)
    if random:
        measured = any(RANDOM_DIRECTION in blocks for _, blocks in by_run.values())
        rivals = (RANDOM_DIRECTION,) if measured else ()
    compared = [(rival, compare_with(claim.key, rival, by_run)) for rival in rivals]
    compared.sort(key=lambda pair: (pair[1].against != first, -pair[1].p_value, pair[0]))
    words = "" if beside == NOTHING else ", with nuisance features"
    found: list[Distribution] = []
    for rival, test in compared:
        minus = "" if test.against == "no drop" else f" minus that of {test.against}"
        title = f"Drop of {claim.mechanism}'s own target{minus}, block by block{words}"
        contrasts = contrasts_with(claim.key, rival, by_run)
        each_run = rival == compared[0][0]
        found += over_blocks(title, DROP, contrasts, test.against, test.p_value, each_run=each_run)
    return tuple(found)
