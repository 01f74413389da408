"""Numbers behind gates P and Rep, and behind S at level 1: held-out scores, draws of controls, and blocks."""

from __future__ import annotations

from collections.abc import Sequence

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
    distribution,
    over_blocks,
    place,
    places,
    pooled_over,
)
from lpact.analyses.lpact.gates.calibrated.comparison import Comparison
from lpact.analyses.lpact.gates.calibrated.frames import SubjectRun, mean_over_runs, subject_run
from lpact.analyses.lpact.gates.calibrated.predictive import NUISANCE
from lpact.analyses.lpact.gates.rows import OK
from lpact.analyses.lpact.gates.summaries import means_by_control
from lpact.wording import counted

SUBJECT_RUN = "subject-run"


def mean_delta(material: Material, column: str, rival: str) -> Made:
    """Contrasts of level 1 by subject-run; with the best controls also their draws."""
    what = "nuisance" if rival == NUISANCE else "the best severe control of each"
    title = f"Real score minus that of {what}, by subject-run"
    found = [_by_run(material, title, pl.col(column), MEAN, rival)]
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
    return (_by_run(material, title, smaller, SHARE_ABOVE, rival),)


def _by_run(
    material: Material, title: str, values: pl.Expr, gives: str, rival: str
) -> Distribution:
    rows = material.deltas
    computed = rows.filter("computed")
    reasons = rows.filter(~pl.col("computed"))["reason"].unique().sort().to_list()
    return distribution(
        title,
        f"difference in {material.score_unit}",
        computed.select(values).to_series().to_list(),
        places(computed),
        kind=SUBJECT_RUN,
        gives=gives,
        bound=0.0,
        compared_with=rival,
        where="all subject-runs",
        n_missing=rows.height - computed.height,
        note=f"Not computed elsewhere ({', '.join(reasons)})." if reasons else "",
    )


def smallest_delta(material: Material, control: str) -> Made:
    """The strongest counted control by subject-run, all counted controls side by side, and its draws."""
    unit = f"difference in {material.score_unit}"
    means = means_by_control(material.nulls, material.metric)
    own = material.nulls.filter(metric=material.metric, control=control)
    used = own.filter(pl.col("counted") & OK).drop_nulls(["delta", "control_score"])
    if not means.height:
        return ()
    found = [
        distribution(
            f"Real score minus that of {control}, by subject-run",
            unit,
            used["delta"].to_list(),
            places(used),
            kind=SUBJECT_RUN,
            gives=MEAN,
            bound=0.0,
            compared_with=control,
            where="all subject-runs",
            n_missing=own.height - used.height,
        ),
        distribution(
            "Real score minus that of every counted control",
            unit,
            means["delta"].to_list(),
            means["control"].to_list(),
            kind="control",
            gives=SMALLEST,
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
    found: list[Distribution] = []
    for position, test in enumerate(ranked):
        if test in material.level1.surrogates:
            found += _pooled(material, test.against, test.p_value)
            runs = sorted(material.real_scores) if position == 0 else []
            found += [d for run in runs for d in _in_run(material, run, test.against)]
            continue
        contrasts = material.level1.differences(test.against)
        title = f"Real score minus that of {test.against}, block by block"
        unit = f"difference in {material.score_unit}"
        found.append(
            over_blocks(title, unit, contrasts, compared_with=test.against, p_value=test.p_value)
        )
        if position == 0:
            found += [
                over_blocks(title, unit, {run: own}, compared_with=test.against, where=place(run))
                for run, own in contrasts.items()
            ]
    return tuple(found)


def replication(material: Material) -> Made:
    """P-values of all subject-runs: that the model predicts there, beyond surrogates, nuisance and rivals."""
    runs = sorted(material.real_scores)
    return (
        distribution(
            "P-value of each subject-run alone: the largest over surrogates, nuisance and rivals",
            "p-value",
            [material.level1.p_value_in(run) for run in runs],
            [place(run) for run in runs],
            kind=SUBJECT_RUN,
            gives=CONJUNCTION,
            bound=material.gates.alpha,
            where="all subject-runs",
        ),
    )


def mean_scores(material: Material) -> tuple[float, float, float] | None:
    """Mean scores of the model, of nuisance and of the best controls, over the subject-runs with both contrasts."""
    rows = material.deltas.filter("computed")
    if not rows.height:
        return None
    real, nuisance, control = rows.select(
        pl.col("real_score", "nuisance_score", "best_control_score").mean()
    ).row(0)
    return real, nuisance, control


def paired_scores(material: Material, condition: str) -> tuple[float, float] | None:
    """Mean real score and mean score of a condition (over draws first), over the subject-runs that have both."""
    by_run, real = material.draws_of(condition), material.real_scores
    if not by_run:
        return None
    own = [float(np.nanmean(draws)) for draws in by_run.values()]
    return float(np.mean([real[run] for run in by_run])), float(np.mean(own))


def _nuisance_mark(material: Material, runs: Sequence[SubjectRun]) -> tuple[tuple[str, float], ...]:
    scores = material.draws_of(NUISANCE)
    if not runs or any(run not in scores for run in runs):
        return ()
    return ((NUISANCE, float(np.mean([scores[run][0] for run in runs]))),)


def _pooled(material: Material, control: str, p_value: float | None = None) -> list[Distribution]:
    """The mean real score beside the same mean in every draw of a control."""
    by_run = material.draws_of(control)
    if not by_run:
        return []
    real = material.real_scores
    draws = mean_over_runs(by_run)
    left_out = max(len(values) for values in by_run.values()) - draws.size
    return [
        among_draws(
            f"Real score and draws of {control}",
            material.score_unit,
            float(np.mean([real[run] for run in by_run])),
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
    if draws is None or control is None:
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
