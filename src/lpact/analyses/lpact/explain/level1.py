"""Numbers behind gates P and Rep, and behind S at level 1: held-out scores, draws of controls, and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.explanation import Distribution
from lpact.analyses.lpact.explain.material import (
    CONJUNCTION,
    MEAN,
    RANK,
    SHARE_ABOVE,
    SMALLEST,
    Made,
    Material,
    among_draws,
    by_run,
    distribution,
    over_blocks,
    place,
    pooled_over,
)
from lpact.analyses.lpact.gates.calibrated.comparison import Comparison
from lpact.analyses.lpact.gates.calibrated.frames import SubjectRun, mean_over_runs, subject_run
from lpact.analyses.lpact.gates.calibrated.predictive import NUISANCE
from lpact.analyses.lpact.gates.rows import OK
from lpact.analyses.lpact.gates.summaries import means_by_control
from lpact.analyses.lpact.tables.levels import CONTROL_NULLS
from lpact.wording import counted


def mean_delta(material: Material, column: str, rival: str) -> Made:
    """Contrasts of level 1 by subject-run; with the best controls also their draws."""
    what = "nuisance" if rival == NUISANCE else "the best severe control of each"
    title = f"Real score minus that of {what}, by subject-run"
    found = [_contrasts(material, title, pl.col(column), MEAN, rival)]
    if rival != NUISANCE:
        found += _pooled(material, rival)
        for row in material.deltas.filter("computed").iter_rows(named=True):
            found += _in_run(material, subject_run(row), row["best_control"])
    return tuple(found)


def direction(material: Material) -> Made:
    """The smaller of the two contrasts of level 1 in every subject-run: the direction is positive where it is."""
    title = "The smaller of both contrasts (nuisance, best control), by subject-run"
    smaller = pl.min_horizontal("delta_nuisance", "delta_control")
    rival = "nuisance and the best severe control"
    return (_contrasts(material, title, smaller, SHARE_ABOVE, rival),)


def _contrasts(
    material: Material, title: str, values: pl.Expr, gives: str, rival: str
) -> Distribution:
    rows = material.deltas
    reasons = rows.filter(~pl.col("computed"))["reason"].unique().sort().to_list()
    return by_run(
        title,
        f"difference in {material.score_unit}",
        rows,
        pl.when("computed").then(values),
        gives,
        bound=0.0,
        compared_with=rival,
        where="all subject-runs",
        note=f"Not computed elsewhere ({', '.join(reasons)})." if reasons else "",
    )


def smallest_delta(material: Material, control: str) -> Made:
    """The strongest counted control by subject-run, all counted controls side by side, and its draws."""
    unit = f"difference in {material.score_unit}"
    nulls = material.rows(CONTROL_NULLS)
    means = means_by_control(nulls, material.metric)
    own = nulls.filter(metric=material.metric, control=control)
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
        *_pooled(material, control),
    ]
    for row in used.iter_rows(named=True):
        found += _in_run(material, subject_run(row), control)
    return tuple(found)


def tests(material: Material, comparisons: Sequence[Comparison], rival: str) -> Made:
    """Tests of level 1, the one that set the criterion first: pooled, then by subject-run for that one alone."""
    ranked = sorted(comparisons, key=lambda t: (t.against != rival, -t.p_value, t.against))
    unit = f"difference in {material.score_unit}"
    found: list[Distribution] = []
    for position, test in enumerate(ranked):
        against, first = test.against, position == 0
        if test in material.level1.surrogates:
            found += _pooled(material, against, test.p_value)
            for run in sorted(material.real_scores) if first else []:
                found += _in_run(material, run, against)
        else:
            title = f"Real score minus that of {against}, block by block"
            contrasts = material.level1.differences(against)
            found += over_blocks(title, unit, contrasts, against, test.p_value, each_run=first)
    return tuple(found)


def replication(material: Material) -> Made:
    """P-values of all subject-runs: that the model predicts there, beyond surrogates, nuisance and rivals."""
    runs = sorted(material.real_scores)
    title = "P-value of each subject-run alone: the largest over surrogates, nuisance and rivals"
    p_values = [material.level1.p_value_in(run) for run in runs]
    more: dict[str, Any] = {"bound": material.gates.alpha, "where": "all subject-runs"}
    labels = map(place, runs)
    return (distribution(title, "p-value", p_values, labels, "subject-run", CONJUNCTION, **more),)


def mean_scores(material: Material) -> tuple[float, float, float] | None:
    """Mean scores of the model, of nuisance and of the best controls, over the subject-runs with both contrasts."""
    rows = material.deltas.filter("computed")
    columns = ("real_score", "nuisance_score", "best_control_score")
    real, nuisance, control = rows.select(pl.col(columns).mean()).row(0)
    return (real, nuisance, control) if rows.height else None


def paired_scores(material: Material, condition: str) -> tuple[float, float] | None:
    """Mean real score and mean score of a condition (over draws first), over the subject-runs that have both."""
    by_run, real = material.draws_of(condition), material.real_scores
    if not by_run:
        return None
    own = [float(np.nanmean(draws)) for draws in by_run.values()]
    return float(np.mean([real[run] for run in by_run])), float(np.mean(own))


def _nuisance_mark(material: Material, runs: Sequence[SubjectRun]) -> tuple[tuple[str, float], ...]:
    scores = material.draws_of(NUISANCE)
    if any(run not in scores for run in runs):
        return ()
    return ((NUISANCE, float(np.mean([scores[run][0] for run in runs]))),)


def _pooled(material: Material, control: str, p_value: float | None = None) -> list[Distribution]:
    """The mean real score beside the same mean in every draw of a control."""
    by_run = material.draws_of(control)
    if not by_run:
        return []
    draws = mean_over_runs(by_run)
    left_out = max(len(values) for values in by_run.values()) - draws.size
    return [
        among_draws(
            f"Real score and draws of {control}",
            material.score_unit,
            float(np.mean([material.real_scores[run] for run in by_run])),
            draws,
            compared_with=control,
            where=pooled_over(len(by_run)),
            gives="" if p_value is None else RANK,
            p_value=p_value,
            marks=_nuisance_mark(material, list(by_run)),
            note=f"{counted(left_out, 'draw')} left out that not every subject-run has."
            if left_out
            else "",
        )
    ]


def _in_run(material: Material, run: SubjectRun, control: str | None) -> list[Distribution]:
    """The real score of one subject-run beside the draws of a control."""
    draws = material.draws_of(control).get(run) if control is not None else None
    if draws is None:
        return []
    return [
        among_draws(
            f"Real score and draws of {control}",
            material.score_unit,
            material.real_scores[run],
            draws,
            compared_with=control,
            where=place(run),
            marks=_nuisance_mark(material, [run]),
        )
    ]
