"""Numbers behind gates R and T, and behind S at level 2: similarities of patterns, their draws, and ceilings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.explanation import Distribution
from lpact.analyses.lpact.explain.claim_rows import (
    BEHIND,
    BOOTSTRAP,
    MEAN,
    MEDIAN,
    RANK,
    SHARE_ABOVE,
    SHARE_AT_LEAST,
    SMALLEST,
    ClaimRows,
    Made,
    among_draws,
    by_run,
    distribution,
    place,
    places,
    pooled_over,
)
from lpact.analyses.lpact.gates.calibrated.tests import NUISANCE, SURROGATE, SWAP, UNIT_ORDER, Pooled, pool
from lpact.analyses.lpact.gates.keys import OK, SUBJECT_RUN_KEY, mean_over_subject_runs
from lpact.analyses.lpact.gates.summaries import advantages_by_summary, by_summary
from lpact.analyses.lpact.tables.levels import CONTROL_NULLS, PROFILE_SCORES, RELATIONAL_NULLS
from lpact.wording import counted, number

STATISTIC = "mean similarity × spread of the pattern"
OVER_RUNS = "mean over units, then over subject-runs"
OVER_SUMMARIES = "mean over units and summaries, by subject-run"
DIFFERENCE, FRACTION = "difference in profile similarity", "fraction of the ceiling"


def _names(frame: pl.DataFrame) -> list[str]:
    """The alignment × profile summaries of a frame's rows in words."""
    return [f"{a} × {p}" for a, p in frame.select("alignment", "profile").iter_rows()]


def _by_summary(
    title: str, unit: str, frame: pl.DataFrame, values: pl.Expr | str, gives: str, **more: Any
) -> Distribution:
    """One number per row of a frame, each row a summary."""
    numbers = frame.select(values).to_series()
    return distribution(title, unit, numbers, _names(frame), "summary", gives, **more)


def summaries(claim: ClaimRows) -> pl.DataFrame:
    """One row per summary: ``name``, ``pass_share``, ``delta_rel``, ``real_similarity``."""
    found = by_summary(claim.unit_rows.filter("has_contrast"))
    return found.with_columns(name=pl.Series(_names(found), dtype=pl.String))


def pass_shares(claim: ClaimRows) -> Made:
    """Share of unit rows that pass in every summary."""
    more = {"bound": claim.gates.direction_fraction, "where": "unit rows of all subject-runs"}
    title = "Share of unit rows that pass, by summary"
    found = summaries(claim)
    return (_by_summary(title, "share of unit rows", found, "pass_share", MEDIAN, **more),)


def contrasts(claim: ClaimRows, control: str) -> Made:
    """Mean contrast with the best control in every summary."""
    more = {"bound": 0.0, "compared_with": control, "where": OVER_RUNS}
    title = "Real similarity minus that of the best control of each unit row, by summary"
    return (_by_summary(title, DIFFERENCE, summaries(claim), "delta_rel", MEDIAN, **more),)


def summaries_passing(claim: ClaimRows, control: str) -> Made:
    """What a summary needs to pass, for all summaries."""
    both = (pl.col("pass_share") >= claim.gates.direction_fraction) & (pl.col("delta_rel") > 0)
    votes = _by_summary(
        "Summaries that pass (1) or do not (0)",
        "vote",
        summaries(claim),
        both.fill_null(value=False).cast(pl.Float64),
        MEAN,
        bound=claim.gates.summary_majority,
        where="all summaries",
        note="A summary passes if enough of its unit rows do and its mean contrast is above 0.",
    )
    return (votes, *pass_shares(claim), *contrasts(claim, control))


def votes_by_control(claim: ClaimRows) -> pl.DataFrame:
    """In how many summaries the model is ahead of every control, the worst first.

    Columns ``condition``, ``n``, ``n_ahead``, ``share`` (as the decision computes it) and ``advantage``.
    """
    return (
        advantages_by_summary(claim.rows(PROFILE_SCORES), claim.unit_rows)
        .group_by("condition", maintain_order=True)
        .agg(
            n=pl.len().cast(pl.Int64),
            n_ahead=(pl.col("advantage") > 0).sum().cast(pl.Int64),
            share=1 - (pl.col("advantage") <= 0).sum() / pl.len(),
            advantage=pl.col("advantage").mean(),
        )
        .sort("share", "advantage", "condition")
    )


def not_reached(claim: ClaimRows, control: str) -> Made:
    """Advantage over the strongest control in every summary, and the share of summaries that each control leaves."""
    found = advantages_by_summary(claim.rows(PROFILE_SCORES), claim.unit_rows)
    own = found.filter(condition=control)
    unreached = votes_by_control(claim)
    if not own.height:
        return ()
    title = f"Real similarity minus that of {control}, by summary"
    more = {"bound": 0.0, "compared_with": control, "where": OVER_RUNS}
    return (
        _by_summary(title, DIFFERENCE, own, "advantage", SHARE_ABOVE, **more),
        distribution(
            "Share of summaries in which the model is ahead, by control",
            "share of summaries",
            unreached["share"],
            unreached["condition"],
            "control",
            SMALLEST,
            bound=1 - claim.gates.summary_majority,
            compared_with=control,
            where="every counted control",
        ),
    )


def reliable_units(claim: ClaimRows) -> Made:
    """Split-half reliability of every unit row with a contrast."""
    rows = claim.unit_rows.filter("has_contrast")
    own = rows.filter("same_order")
    wrong = rows.height - own.height
    names = zip(places(own), own["unit"], _names(own), strict=True)
    return (
        distribution(
            "Split-half reliability of the brain's pattern, by unit row",
            "correlation of the two halves' patterns",
            own["split_half_reliability"],
            [f"{where}, unit {unit}, {summary}" for where, unit, summary in names],
            "unit row",
            SHARE_AT_LEAST,
            bound=claim.gates.min_reliability,
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
    claim: ClaimRows,
    kinds: Iterable[str] = (SURROGATE, SWAP, UNIT_ORDER),
    *,
    nuisance: bool = True,
    rival: str = "",
) -> list[DrawTest]:
    """Tests of level 2 of the given kinds; with a ``rival``, its own first and then the hardest."""
    allowed = {*claim.rows(CONTROL_NULLS)["control"], UNIT_ORDER}
    allowed = allowed | {NUISANCE} if nuisance else allowed - {NUISANCE}
    rows = claim.rows(RELATIONAL_NULLS).filter(
        OK & pl.col("against").is_in(sorted(allowed)) & pl.col("test").is_in(sorted(kinds))
    )
    found = [
        DrawTest(str(test), str(against), part, pool(part))
        for (test, against), part in rows.group_by("test", "against", maintain_order=True)
    ]

    def hardest(own: DrawTest) -> tuple[Any, ...]:
        if not rival:
            return own.test, own.against
        return own.against != rival, -own.pooled.p_value, own.pooled.advantage, own.against

    return sorted(found, key=hardest)


def tests(chosen: list[DrawTest]) -> Made:
    """Tests of level 2 in their order: pooled, then by subject-run for the first one alone."""
    found = []
    for position, test in enumerate(chosen):
        n = test.rows.select(SUBJECT_RUN_KEY).n_unique()
        found.append(_of_test(test, test.pooled, pooled_over(n), decides=True))
        if position == 0:
            parts = test.rows.group_by(SUBJECT_RUN_KEY, maintain_order=True)
            found += [_of_test(test, pool(part), place(key), decides=False) for key, part in parts]
    return tuple(found)


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


_CEILING = {
    "reliability": ("Brain–brain reliability that bounds each subject-run", "reliability"),
    "fraction_of_ceiling": ("Real similarity / reliability, by subject-run", FRACTION),
    "delta_fraction": (
        "(Real similarity − best control) / reliability, by subject-run",
        "difference in fractions of the ceiling",
    ),
}
"""Numbers of level 4: title and unit."""


def by_subject_run(claim: ClaimRows, rival: str, column: str) -> Made:
    """Mean of a number of level 4 in every subject-run; subject-runs without one are missing."""
    rows, gates = claim.bounded, claim.gates
    if column == "reliability":
        rows = claim.ceiling_rows.drop_nulls(column)
    found = rows.group_by(SUBJECT_RUN_KEY, maintain_order=True).agg(pl.col(column).mean())
    bounds = {"reliability": gates.min_reliability, "fraction_of_ceiling": gates.min_ceiling_fraction}
    more: dict[str, Any] = {"bound": bounds.get(column, 0.0), "compared_with": rival}
    more |= {"where": OVER_SUMMARIES, "n_missing": _n_runs(claim) - found.height}
    own = by_run(*_CEILING[column], found, column, MEAN, **more)
    return (own,) if found.height else ()


def _n_runs(claim: ClaimRows) -> int:
    return claim.ceiling_rows.select(SUBJECT_RUN_KEY).n_unique()


def median_fraction(claim: ClaimRows, mode: str) -> Made:
    """Mean fraction of the ceiling, by summary."""
    column = "fraction_of_ceiling"
    found = mean_over_subject_runs(claim.bounded, ["alignment", "profile"], [column])
    bound = claim.gates.min_ceiling_fraction
    more = {"bound": bound, "compared_with": mode, "where": OVER_RUNS}
    title = "Real similarity / reliability, by summary"
    own = _by_summary(title, FRACTION, found, column, MEDIAN, **more)
    return (own,) if found.height else ()


def unit_fractions(claim: ClaimRows) -> dict[str, list[float]]:
    """Fractions of the units of each subject-run: the median over summaries of each unit."""
    units = (
        claim.bounded.drop_nulls("fraction_of_ceiling")
        .group_by([*SUBJECT_RUN_KEY, "unit"], maintain_order=True)
        .agg(pl.col("fraction_of_ceiling").median())
    )
    return {
        place(key): part["fraction_of_ceiling"].to_list()
        for key, part in units.group_by(SUBJECT_RUN_KEY, maintain_order=True)
    }


def bootstrapped(claim: ClaimRows, mode: str, p_value: float | None) -> Made:
    """Mean fraction of the ceiling by subject-run, as the bootstrap draws it."""
    groups = unit_fractions(claim)
    if not groups:
        return ()
    means = [float(np.mean(values)) for values in groups.values()]
    return (
        distribution(
            "Real similarity / reliability in the median summary, by subject-run",
            FRACTION,
            means,
            groups,
            "subject-run",
            BOOTSTRAP,
            observed=float(np.mean(means)),
            bound=claim.gates.min_ceiling_fraction,
            compared_with=mode,
            where="mean over units, by subject-run",
            note="Subject-runs and their units are drawn with replacement; that the mean is above the threshold: "
            f"p = {number(p_value)}.",
            p_value=p_value,
            n_missing=_n_runs(claim) - len(groups),
        ),
    )
