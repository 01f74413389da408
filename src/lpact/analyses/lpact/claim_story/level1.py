"""Numbers behind gates P and Rep, and behind S at level 1: held-out scores, draws of controls, and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.analyses.lpact.claim_story.material import Material, place
from lpact.analyses.lpact.claim_story.model import Distribution
from lpact.analyses.lpact.claim_story.shapes import against_draws, over_blocks, pooled_over, several
from lpact.analyses.lpact.gates.calibrated.comparison import Comparison
from lpact.analyses.lpact.gates.calibrated.frames import SubjectRun, mean_over_runs, subject_run
from lpact.analyses.lpact.gates.calibrated.predictive import NUISANCE, REAL
from lpact.analyses.lpact.gates.point_rules.severe import means_by_control
from lpact.analyses.lpact.gates.rows import OK
from lpact.analyses.lpact.gates.wording import count
from lpact.math.types import FloatArray


def mean_delta(material: Material, column: str, reference: str) -> tuple[Distribution, ...]:
    """Contrasts of level 1 by subject-run; with the best controls also their draws."""
    rows = material.deltas
    computed = rows.filter("computed")
    what = "nuisance" if reference == NUISANCE else "the best severe control of each"
    found = [
        several(
            f"Real score less that of {what}, by subject-run",
            f"difference in {material.score_unit}",
            computed[column].to_list(),
            [place(row) for row in computed.iter_rows(named=True)],
            kind="subject_runs",
            gives="mean",
            observed=computed[column].mean() if computed.height else None,  # type: ignore[arg-type]
            bound=0.0,
            reference=reference,
            where="all subject-runs",
            n_missing=rows.height - computed.height,
            note=_missing_words(rows),
        )
    ]
    if reference != NUISANCE and computed.height:
        found += _pooled(material, reference)
        for row in computed.iter_rows(named=True):
            found += _in_run(material, subject_run(row), row["best_control"])
    return tuple(found)


def _missing_words(rows: pl.DataFrame) -> str:
    reasons = rows.filter(~pl.col("computed"))["reason"].unique().sort().to_list()
    return f"Not computed elsewhere ({', '.join(reasons)})." if reasons else ""


def smallest_delta(material: Material, control: str) -> tuple[Distribution, ...]:
    """The strongest counted control by subject-run, all counted controls side by side, and its draws."""
    unit = f"difference in {material.score_unit}"
    means = means_by_control(material.nulls, material.metric)
    own = material.nulls.filter(metric=material.metric, control=control)
    used = own.filter(pl.col("counted") & OK).drop_nulls(["delta", "control_score"])
    if not means.height:
        return ()
    return (
        several(
            f"Real score less that of {control}, by subject-run",
            unit,
            used["delta"].to_list(),
            [place(row) for row in used.iter_rows(named=True)],
            kind="subject_runs",
            gives="mean",
            observed=used["delta"].mean(),  # type: ignore[arg-type]
            bound=0.0,
            reference=control,
            where="all subject-runs",
            n_missing=own.height - used.height,
        ),
        several(
            "Real score less that of every counted control",
            unit,
            means["delta"].to_list(),
            means["control"].to_list(),
            kind="rivals",
            gives="smallest",
            observed=means["delta"].min(),  # type: ignore[arg-type]
            bound=0.0,
            reference=control,
            where="mean over subject-runs, control by control",
        ),
        *_pooled(material, control),
        *(
            d
            for row in used.iter_rows(named=True)
            for d in _in_run(material, subject_run(row), control)
        ),
    )


def direction(material: Material) -> tuple[Distribution, ...]:
    """The smaller of the two contrasts of level 1 in every subject-run: the direction is positive where it is."""
    rows = material.deltas
    computed = rows.filter("computed")
    smaller = computed.select(pl.min_horizontal("delta_nuisance", "delta_control")).to_series()
    return (
        several(
            "The smaller of both contrasts (nuisance, best control), by subject-run",
            f"difference in {material.score_unit}",
            smaller.to_list(),
            [place(row) for row in computed.iter_rows(named=True)],
            kind="subject_runs",
            gives="share_above",
            bound=0.0,
            reference="nuisance and the best severe control",
            where="all subject-runs",
            n_missing=rows.height - computed.height,
            note=_missing_words(rows),
        ),
    )


def tests(
    material: Material, comparisons: Sequence[Comparison], compared_with: str
) -> tuple[Distribution, ...]:
    """Tests of level 1, the one that set the criterion first: pooled, then by subject-run for that one alone."""
    ranked = sorted(comparisons, key=lambda t: (t.against != compared_with, -t.p_value, t.against))
    found: list[Distribution] = []
    for place_in_order, test in enumerate(ranked):
        surrogate = test in material.level1.surrogates
        found += _pooled(material, test.against, test) if surrogate else _blocks(material, test)
        if place_in_order == 0:
            found += _first_by_run(material, test, surrogate=surrogate)
    return tuple(found)


def _first_by_run(material: Material, test: Comparison, *, surrogate: bool) -> list[Distribution]:
    if surrogate:
        runs = sorted(_real(material))
        return [d for run in runs for d in _in_run(material, run, test.against)]
    return [
        over_blocks(
            f"Real score less that of {test.against}, block by block",
            f"difference in {material.score_unit}",
            {run: values},
            reference=test.against,
            p_value=None,
            where=place(run),
        )
        for run, values in material.level1.differences(test.against).items()
    ]


def replication(material: Material) -> tuple[Distribution, ...]:
    """P-values of all subject-runs: that the model predicts there, beyond surrogates, nuisance and rivals."""
    runs = sorted(_real(material))
    return (
        several(
            "P-value of each subject-run alone: the largest over surrogates, nuisance and rivals",
            "p-value",
            [material.level1.p_value_in(run) for run in runs],
            [place(run) for run in runs],
            kind="subject_runs",
            gives="partial_conjunction",
            bound=material.gates.alpha,
            where="all subject-runs",
        ),
    )


@dataclass(frozen=True)
class MeanScores:
    """Means over the subject-runs that have both contrasts."""

    real: float
    nuisance: float
    best_control: float


def mean_scores(material: Material) -> MeanScores | None:
    """Mean scores behind the contrasts; None where there are none."""
    rows = material.deltas.filter("computed")
    if not rows.height:
        return None
    means = rows.select(pl.col("real_score", "nuisance_score", "best_control_score").mean()).row(0)
    return MeanScores(*means)


def paired_scores(material: Material, condition: str) -> tuple[float, float] | None:
    """Mean real score and mean score of a condition (over draws first), over the subject-runs that have both."""
    by_run, real = _draws(material, condition), _real(material)
    if not by_run:
        return None
    own = [float(np.nanmean(draws)) for draws in by_run.values()]
    return float(np.mean([real[run] for run in by_run])), float(np.mean(own))


def _real(material: Material) -> dict[SubjectRun, float]:
    return material.once("real scores", lambda: _read_real(material))


def _read_real(material: Material) -> dict[SubjectRun, float]:
    rows = material.scores.filter(metric=material.metric, condition=REAL).drop_nulls("score_median")
    return {subject_run(row): row["score_median"] for row in rows.iter_rows(named=True)}


def _draws(material: Material, condition: str) -> dict[SubjectRun, FloatArray]:
    """Scores of a condition by draw number, NaN where there is none, for every subject-run with a real score."""
    return material.once(("draws", condition), lambda: _read_draws(material, condition))


def _read_draws(material: Material, condition: str) -> dict[SubjectRun, FloatArray]:
    real = _real(material)
    rows = material.scores.filter(metric=material.metric, condition=condition)
    by_run: dict[SubjectRun, dict[int, float]] = {}
    for row in rows.drop_nulls("score_median").iter_rows(named=True):
        if subject_run(row) in real:
            by_run.setdefault(subject_run(row), {})[row["draw"]] = row["score_median"]
    out: dict[SubjectRun, FloatArray] = {}
    for run in sorted(by_run):
        out[run] = np.full(max(by_run[run]) + 1, np.nan)
        for draw, score in by_run[run].items():
            out[run][draw] = score
    return out


def _nuisance_mark(material: Material, runs: Sequence[SubjectRun]) -> tuple[tuple[str, float], ...]:
    scores = _draws(material, NUISANCE)
    there = [float(scores[run][0]) for run in runs if run in scores]
    return ((NUISANCE, float(np.mean(there))),) if len(there) == len(runs) and there else ()


def _pooled(material: Material, control: str, test: Comparison | None = None) -> list[Distribution]:
    """The mean real score beside the same mean in every draw of a control."""
    by_run = _draws(material, control)
    if not by_run:
        return []
    real = _real(material)
    draws = mean_over_runs(by_run)
    left_out = max(len(values) for values in by_run.values()) - draws.size
    return [
        against_draws(
            f"Real score against draws of {control}",
            material.score_unit,
            float(np.mean([real[run] for run in by_run])),
            draws,
            reference=control,
            where=pooled_over(len(by_run)),
            gives="" if test is None else "rank",
            p_value=None if test is None else test.p_value,
            marks=_nuisance_mark(material, list(by_run)),
            note=f"{count(left_out, 'draw')} left out that not every subject-run has."
            if left_out
            else "",
        )
    ]


def _in_run(material: Material, run: SubjectRun, control: str | None) -> list[Distribution]:
    """The real score of one subject-run beside the draws of a control."""
    draws = _draws(material, control).get(run) if control is not None else None
    if draws is None or control is None:
        return []
    return [
        against_draws(
            f"Real score against draws of {control}",
            material.score_unit,
            _real(material)[run],
            draws,
            reference=control,
            where=place(run),
            marks=_nuisance_mark(material, [run]),
        )
    ]


def _blocks(material: Material, test: Comparison) -> list[Distribution]:
    return [
        over_blocks(
            f"Real score less that of {test.against}, block by block",
            f"difference in {material.score_unit}",
            material.level1.differences(test.against),
            reference=test.against,
            p_value=test.p_value,
        )
    ]
