"""Numbers behind gates R and T, and behind S at level 2: similarities of patterns, their draws, and ceilings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.analyses.explanation import Distribution
from lpact.analyses.lpact.explain.material import (
    BEHIND,
    BOOTSTRAP,
    MEAN,
    MEDIAN,
    RANK,
    SHARE_ABOVE,
    SHARE_AT_LEAST,
    SMALLEST,
    Made,
    Material,
    among_draws,
    distribution,
    place,
    places,
    pooled_over,
)
from lpact.analyses.lpact.gates._frames import SUBJECT_RUN_KEY, mean_over_subject_runs
from lpact.analyses.lpact.gates.calibrated.relational import (
    NUISANCE,
    SURROGATE,
    SWAP,
    UNIT_ORDER,
    Pooled,
    controls_of,
    pool,
)
from lpact.analyses.lpact.gates.rows import OK
from lpact.analyses.lpact.gates.summaries import advantages_by_summary, by_summary
from lpact.wording import counted, number

STATISTIC = "mean similarity × spread of the pattern"
SUMMARY, SUBJECT_RUN = "summary", "subject-run"
OVER_RUNS = "mean over units, then over subject-runs"
OVER_SUMMARIES = "mean over units and summaries, by subject-run"


def summary_names(frame: pl.DataFrame) -> list[str]:
    """The alignment × profile summaries of a frame's rows in words."""
    return [f"{a} × {p}" for a, p in frame.select("alignment", "profile").iter_rows()]


def summaries(material: Material) -> pl.DataFrame:
    """One row per summary: ``name``, ``pass_share``, ``delta_rel``, ``real_similarity``."""
    found = by_summary(material.unit_rows.filter("has_contrast"))
    return found.with_columns(name=pl.Series(summary_names(found), dtype=pl.String))


def pass_shares(material: Material) -> Made:
    """Share of unit rows that pass in every summary."""
    found = summaries(material)
    return (
        distribution(
            "Share of unit rows that pass, by summary",
            "share of unit rows",
            found["pass_share"].to_list(),
            found["name"].to_list(),
            kind=SUMMARY,
            gives=MEDIAN,
            bound=material.gates.direction_fraction,
            where="unit rows of all subject-runs",
        ),
    )


def contrasts(material: Material, control: str) -> Made:
    """Mean contrast with the best control in every summary."""
    found = summaries(material)
    return (
        distribution(
            "Real similarity minus that of the best control of each unit row, by summary",
            "difference in profile similarity",
            found["delta_rel"].to_list(),
            found["name"].to_list(),
            kind=SUMMARY,
            gives=MEDIAN,
            bound=0.0,
            compared_with=control,
            where=OVER_RUNS,
        ),
    )


def summaries_passing(material: Material, control: str) -> Made:
    """What a summary needs to pass, for all summaries; and the draws of level 2, which the point rule does not use."""
    found = summaries(material)
    both = (pl.col("pass_share") >= material.gates.direction_fraction) & (pl.col("delta_rel") > 0)
    votes = distribution(
        "Summaries that pass (1) or do not (0)",
        "vote",
        found.select(both.fill_null(value=False).cast(pl.Float64)).to_series().to_list(),
        found["name"].to_list(),
        kind=SUMMARY,
        gives=MEAN,
        bound=material.gates.summary_majority,
        where="all summaries",
        note="A summary passes if enough of its unit rows do and its mean contrast is above 0.",
    )
    beside = [_pooled(test, decides=False) for test in draw_tests(material)]
    return (votes, *pass_shares(material), *contrasts(material, control), *beside)


def votes_by_control(material: Material) -> pl.DataFrame:
    """In how many summaries the model is ahead of every control, the worst first.

    Columns ``condition``, ``n``, ``n_ahead``, ``share`` (as the decision computes it) and ``advantage``.
    """
    return (
        advantages_by_summary(material.similarities, material.unit_rows)
        .group_by("condition", maintain_order=True)
        .agg(
            n=pl.len().cast(pl.Int64),
            n_ahead=(pl.col("advantage") > 0).sum().cast(pl.Int64),
            share=1 - (pl.col("advantage") <= 0).sum() / pl.len(),
            advantage=pl.col("advantage").mean(),
        )
        .sort("share", "advantage", "condition")
    )


def not_reached(material: Material, control: str) -> Made:
    """Advantage over the strongest control in every summary, and the share of summaries that each control leaves."""
    found = advantages_by_summary(material.similarities, material.unit_rows)
    own = found.filter(condition=control)
    unreached = votes_by_control(material)
    if not own.height:
        return ()
    return (
        distribution(
            f"Real similarity minus that of {control}, by summary",
            "difference in profile similarity",
            own["advantage"].to_list(),
            summary_names(own),
            kind=SUMMARY,
            gives=SHARE_ABOVE,
            bound=0.0,
            compared_with=control,
            where=OVER_RUNS,
        ),
        distribution(
            "Share of summaries in which the model is ahead, by control",
            "share of summaries",
            unreached["share"].to_list(),
            unreached["condition"].to_list(),
            kind="control",
            gives=SMALLEST,
            bound=1 - material.gates.summary_majority,
            compared_with=control,
            where="every counted control",
        ),
    )


def reliable_units(material: Material) -> Made:
    """Split-half reliability of every unit row with a contrast."""
    rows = material.unit_rows.filter("has_contrast")
    own = rows.filter("same_order")
    wrong = rows.height - own.height
    names = zip(places(own), own["unit"], summary_names(own), strict=True)
    return (
        distribution(
            "Split-half reliability of the brain's pattern, by unit row",
            "correlation of the two halves' patterns",
            own["split_half_reliability"].to_list(),
            [f"{where}, unit {unit}, {summary}" for where, unit, summary in names],
            kind="unit row",
            gives=SHARE_AT_LEAST,
            bound=material.gates.min_reliability,
            where="unit rows of all subject-runs",
            n_missing=wrong,
            note=f"{counted(wrong, 'row')} in another unit order." if wrong else "",
        ),
    )


@dataclass(frozen=True)
class DrawTest:
    """One test of level 2 with the rows behind it."""

    test: str
    against: str
    rows: pl.DataFrame
    pooled: Pooled


def draw_tests(
    material: Material,
    kinds: Iterable[str] = (SURROGATE, SWAP, UNIT_ORDER),
    *,
    nuisance: bool = True,
    rival: str = "",
) -> list[DrawTest]:
    """Tests of level 2 of the given kinds; with a ``rival``, its own first and then the hardest."""
    allowed = {*controls_of(material.nulls), NUISANCE, UNIT_ORDER} - (
        set() if nuisance else {NUISANCE}
    )
    parts = material.relational_nulls.filter(OK).partition_by(
        "test", "against", as_dict=True, maintain_order=True
    )
    found = [
        DrawTest(str(test), str(against), part, pool(part))
        for (test, against), part in parts.items()
        if str(against) in allowed and test in kinds
    ]
    if not rival:
        return sorted(found, key=lambda own: (own.test, own.against))

    def hardest(own: DrawTest) -> tuple[bool, float, float, str]:
        return own.against != rival, -own.pooled.p_value, own.pooled.advantage, own.against

    return sorted(found, key=hardest)


def tests(chosen: list[DrawTest]) -> Made:
    """Tests of level 2 in their order: pooled, then by subject-run for the first one alone."""
    found = []
    for position, test in enumerate(chosen):
        found.append(_pooled(test, decides=True))
        if position == 0:
            parts = test.rows.partition_by(SUBJECT_RUN_KEY, as_dict=True, maintain_order=True)
            found += [
                _of_test(test, pool(part), place(key), decides=False) for key, part in parts.items()
            ]
    return tuple(found)


def _pooled(test: DrawTest, *, decides: bool) -> Distribution:
    n = test.rows.select(SUBJECT_RUN_KEY).n_unique()
    return _of_test(test, test.pooled, pooled_over(n), decides=decides)


def _of_test(test: DrawTest, pooled: Pooled, where: str, *, decides: bool) -> Distribution:
    titles = {
        SURROGATE: f"Relational statistic and draws of {test.against}",
        UNIT_ORDER: "Relational statistic and the same pattern in shuffled unit orders",
        SWAP: f"Advantage over {test.against} and exchanges of the two patterns at random units",
    }
    ahead = pooled.advantage > 0
    behind = ", and so p = 1 whatever the draws" if decides and not ahead else ""
    return among_draws(
        titles[test.test],
        STATISTIC if test.test != SWAP else f"{STATISTIC}, real minus {test.against}",
        pooled.observed,
        pooled.draws,
        compared_with="shuffled unit orders" if test.test == UNIT_ORDER else test.against,
        where=f"{where}, median over summaries",
        gives="" if not decides else RANK if ahead else BEHIND,
        p_value=pooled.p_value if decides else None,
        note=f"Mean advantage in similarity {number(pooled.advantage)}{behind}.",
    )


def _means_by_run(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    return frame.group_by(SUBJECT_RUN_KEY, maintain_order=True).agg(pl.col(column).mean())


def _n_runs(material: Material) -> int:
    return material.ceiling_rows.select(SUBJECT_RUN_KEY).n_unique()


def reliability(material: Material, mode: str) -> Made:
    """Reliability that bounds each subject-run, and all reliabilities of the dataset, by mode."""
    found = _means_by_run(material.ceiling_rows.drop_nulls("reliability"), "reliability")
    first = distribution(
        "Brain–brain reliability that bounds each subject-run",
        "reliability",
        found["reliability"].to_list(),
        places(found),
        kind=SUBJECT_RUN,
        gives=MEAN,
        bound=material.gates.min_reliability,
        compared_with=mode,
        where=OVER_SUMMARIES,
        n_missing=_n_runs(material) - found.height,
    )
    by_mode = []
    profiles = material.reliabilities.filter(kind="profile")
    for (name,), rows in profiles.group_by("mode", maintain_order=True):
        why = rows.filter(~pl.col("valid"))["reason"].unique().sort().to_list()
        names = zip(places(rows), summary_names(rows), strict=True)
        valid = pl.when(pl.col("valid")).then(pl.col("reliability"))
        by_mode.append(
            distribution(
                f"Brain–brain reliability of relational patterns, {name}",
                "reliability",
                rows.select(valid).to_series().to_list(),
                [f"{where}, {summary}" for where, summary in names],
                kind="recording",
                bound=material.gates.min_reliability,
                compared_with=str(name),
                where="every recording and summary",
                note=f"Not valid elsewhere ({', '.join(why)})." if why else "",
            )
        )
    by_mode.sort(key=lambda d: (d.compared_with != mode, d.compared_with))
    return ((first,) if found.height else ()) + tuple(by_mode)


def fraction(material: Material, rival: str, *, contrast: bool) -> Made:
    """Mean fraction of the ceiling, or contrast in units of it, by subject-run."""
    column = "delta_fraction" if contrast else "fraction_of_ceiling"
    over = "(Real similarity − best control)" if contrast else "Real similarity"
    unit = "difference in fractions of the ceiling" if contrast else "fraction of the ceiling"
    found = _means_by_run(material.bounded, column)
    if not found.height:
        return ()
    return (
        distribution(
            f"{over} / reliability, by subject-run",
            unit,
            found[column].to_list(),
            places(found),
            kind=SUBJECT_RUN,
            gives=MEAN,
            bound=0.0 if contrast else material.gates.min_ceiling_fraction,
            compared_with=rival,
            where=OVER_SUMMARIES,
            n_missing=_n_runs(material) - found.height,
        ),
    )


def median_fraction(material: Material, mode: str) -> Made:
    """Mean fraction of the ceiling, by summary."""
    column = "fraction_of_ceiling"
    found = mean_over_subject_runs(material.bounded, ["alignment", "profile"], [column])
    if not found.height:
        return ()
    return (
        distribution(
            "Real similarity / reliability, by summary",
            "fraction of the ceiling",
            found[column].to_list(),
            summary_names(found),
            kind=SUMMARY,
            gives=MEDIAN,
            bound=material.gates.min_ceiling_fraction,
            compared_with=mode,
            where=OVER_RUNS,
        ),
    )


def unit_fractions(material: Material) -> dict[str, list[float]]:
    """Fractions of the units of each subject-run: the median over summaries of each unit."""
    units = (
        material.bounded.drop_nulls("fraction_of_ceiling")
        .group_by([*SUBJECT_RUN_KEY, "unit"], maintain_order=True)
        .agg(pl.col("fraction_of_ceiling").median())
    )
    return {
        place(key): part["fraction_of_ceiling"].to_list()
        for key, part in units.group_by(SUBJECT_RUN_KEY, maintain_order=True)
    }


def bootstrapped(material: Material, mode: str, p_value: float | None) -> Made:
    """Mean fraction of the ceiling by subject-run, as the bootstrap draws it."""
    groups = unit_fractions(material)
    if not groups:
        return ()
    means = [float(np.mean(values)) for values in groups.values()]
    return (
        distribution(
            "Real similarity / reliability in the median summary, by subject-run",
            "fraction of the ceiling",
            means,
            list(groups),
            kind=SUBJECT_RUN,
            gives=BOOTSTRAP,
            observed=float(np.mean(means)),
            bound=material.gates.min_ceiling_fraction,
            compared_with=mode,
            where="mean over units, by subject-run",
            note="Subject-runs and their units are drawn with replacement; that the mean is above the threshold: "
            f"p = {number(p_value)}.",
            p_value=p_value,
            n_missing=_n_runs(material) - len(groups),
        ),
    )
