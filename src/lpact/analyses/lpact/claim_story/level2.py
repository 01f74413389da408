"""Numbers behind gate R, and behind S and T where they look at level 2: similarities of patterns, and their draws."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

from lpact.analyses.lpact.claim_story.material import Material, place
from lpact.analyses.lpact.claim_story.model import Distribution
from lpact.analyses.lpact.claim_story.shapes import against_draws, pooled_over, several
from lpact.analyses.lpact.gates._frames import SUBJECT_RUN_KEY
from lpact.analyses.lpact.gates.calibrated.relational import (
    NUISANCE,
    SURROGATE,
    SWAP,
    UNIT_ORDER,
    Pooled,
    controls_of,
    pool,
)
from lpact.analyses.lpact.gates.point_rules.relational import by_summary
from lpact.analyses.lpact.gates.point_rules.severe import advantages_by_summary
from lpact.analyses.lpact.gates.rows import OK
from lpact.analyses.lpact.gates.wording import count, number

STATISTIC = "mean similarity × spread of the pattern"


def summary_name(alignment: object, profile: object) -> str:
    """An alignment × profile summary in words."""
    return f"{alignment} × {profile}"


def summaries(material: Material) -> pl.DataFrame:
    """One row a summary: ``name``, ``pass_share``, ``delta_rel``, ``real_similarity``."""
    return material.once("summaries", lambda: _read_summaries(material))


def _read_summaries(material: Material) -> pl.DataFrame:
    rows = material.unit_rows.filter("has_contrast")
    found = by_summary(rows)
    names = [summary_name(a, p) for a, p in found.select("alignment", "profile").iter_rows()]
    return found.with_columns(name=pl.Series(names, dtype=pl.String))


def pass_shares(material: Material) -> tuple[Distribution, ...]:
    """Share of unit rows that pass in every summary."""
    found = summaries(material)
    return (
        several(
            "Share of unit rows that pass, by summary",
            "share of unit rows",
            found["pass_share"].to_list(),
            found["name"].to_list(),
            kind="summaries",
            gives="median",
            observed=found["pass_share"].median(),  # type: ignore[arg-type]
            bound=material.gates.direction_fraction,
            where="unit rows of all subject-runs",
        ),
    )


def contrasts(material: Material, control: str) -> tuple[Distribution, ...]:
    """Mean contrast with the best control in every summary."""
    found = summaries(material)
    return (
        several(
            "Real similarity less that of the best control of each unit row, by summary",
            "difference in profile similarity",
            found["delta_rel"].to_list(),
            found["name"].to_list(),
            kind="summaries",
            gives="median",
            observed=found["delta_rel"].median(),  # type: ignore[arg-type]
            bound=0.0,
            reference=control,
            where="mean over units, then over subject-runs",
        ),
    )


def summaries_passing(material: Material, control: str) -> tuple[Distribution, ...]:
    """What a summary needs to pass, for all summaries; and the draws of level 2, which the point rule does not ask."""
    found = summaries(material)
    both = (pl.col("pass_share") >= material.gates.direction_fraction) & (pl.col("delta_rel") > 0)
    passing = found.select(both.fill_null(value=False).cast(pl.Float64).alias("passes"))
    votes = several(
        "Summaries that pass (1) or do not (0)",
        "vote",
        passing["passes"].to_list(),
        found["name"].to_list(),
        kind="summaries",
        gives="mean",
        observed=passing["passes"].mean(),  # type: ignore[arg-type]
        bound=material.gates.summary_majority,
        where="all summaries",
        note="A summary passes if enough of its unit rows do and its mean contrast is above 0.",
    )
    beside = [_pooled(test, gives=False) for test in draw_tests(material)]
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


def not_reached(material: Material, control: str) -> tuple[Distribution, ...]:
    """Advantage over the strongest control in every summary, and what share of summaries every control leaves."""
    found = advantages_by_summary(material.similarities, material.unit_rows)
    own = found.filter(condition=control)
    unreached = votes_by_control(material)
    if not own.height:
        return ()
    return (
        several(
            f"Real similarity less that of {control}, by summary",
            "difference in profile similarity",
            own["advantage"].to_list(),
            [summary_name(a, p) for a, p in own.select("alignment", "profile").iter_rows()],
            kind="summaries",
            gives="share_above",
            bound=0.0,
            reference=control,
            where="mean over units, then over subject-runs",
        ),
        several(
            "Share of summaries in which the model is ahead, by control",
            "share of summaries",
            unreached["share"].to_list(),
            unreached["condition"].to_list(),
            kind="rivals",
            gives="smallest",
            observed=unreached["share"].min(),  # type: ignore[arg-type]
            bound=1 - material.gates.summary_majority,
            reference=control,
            where="every counted control",
        ),
    )


def reliable_units(material: Material) -> tuple[Distribution, ...]:
    """Split-half reliability of every unit row with a contrast."""
    rows = material.unit_rows.filter("has_contrast")
    wrong = rows.filter(~pl.col("same_order")).height
    own = rows.filter("same_order")
    labels = [
        f"{place(row)}, unit {row['unit']}, {summary_name(row['alignment'], row['profile'])}"
        for row in own.iter_rows(named=True)
    ]
    return (
        several(
            "Split-half reliability of the brain's pattern, by unit row",
            "correlation of the two halves' patterns",
            own["split_half_reliability"].to_list(),
            labels,
            kind="units",
            gives="share_at_least",
            bound=material.gates.min_reliability,
            where="unit rows of all subject-runs",
            n_missing=wrong,
            note=f"{count(wrong, 'row')} in another unit order." if wrong else "",
        ),
    )


@dataclass(frozen=True)
class DrawTest:
    """One test of level 2 with the rows behind it."""

    test: str
    against: str
    rows: pl.DataFrame
    pooled: Pooled


def draw_tests(material: Material) -> list[DrawTest]:
    """All tests of level 2."""
    return material.once("draw tests", lambda: _read_tests(material))


def _read_tests(material: Material) -> list[DrawTest]:
    allowed = {*controls_of(material.nulls), NUISANCE, UNIT_ORDER}
    found = material.relational_nulls.filter(OK)
    parts = found.partition_by("test", "against", as_dict=True, maintain_order=True)
    return [
        DrawTest(str(test), str(against), part, pool(part))
        for (test, against), part in sorted(parts.items(), key=lambda item: str(item[0]))
        if str(against) in allowed
    ]


def chosen_tests(material: Material, kinds: Iterable[str], *, nuisance: bool) -> list[DrawTest]:
    """Tests of the given kinds; rivals with or without nuisance."""
    return [
        t
        for t in draw_tests(material)
        if t.test in kinds and (nuisance or t.test != SWAP or t.against != NUISANCE)
    ]


def tests(chosen: list[DrawTest], compared_with: str) -> tuple[Distribution, ...]:
    """Tests of level 2, the one that set the criterion first: pooled, then by subject-run for that one alone."""
    ranked = sorted(
        chosen,
        key=lambda t: (
            t.against != compared_with,
            -t.pooled.p_value,
            t.pooled.advantage,
            t.against,
        ),
    )
    found: list[Distribution] = []
    for position, test in enumerate(ranked):
        found.append(_pooled(test, gives=True))
        if position == 0:
            found += [
                _distribution(test, pool(part), place(key), gives=False)
                for key, part in test.rows.partition_by(
                    SUBJECT_RUN_KEY, as_dict=True, maintain_order=True
                ).items()
            ]
    return tuple(found)


def _pooled(test: DrawTest, *, gives: bool) -> Distribution:
    n = test.rows.select(SUBJECT_RUN_KEY).n_unique()
    return _distribution(test, test.pooled, pooled_over(n), gives=gives)


def _distribution(test: DrawTest, pooled: Pooled, where: str, *, gives: bool) -> Distribution:
    titles = {
        SURROGATE: f"Relational statistic against draws of {test.against}",
        UNIT_ORDER: "Relational statistic against the same pattern in shuffled unit orders",
        SWAP: f"Advantage over {test.against} against exchanges of the two patterns at random units",
    }
    behind = ", and so p = 1 whatever the draws" if gives and not pooled.advantage > 0 else ""
    found = against_draws(
        titles[test.test],
        STATISTIC if test.test != SWAP else f"{STATISTIC}, real less {test.against}",
        pooled.observed,
        pooled.draws,
        reference="shuffled unit orders" if test.test == UNIT_ORDER else test.against,
        where=f"{where}, median over summaries",
        gives="rank" if gives else "",
        p_value=pooled.p_value if gives else None,
        note=f"Mean advantage in similarity {number(pooled.advantage)}{behind}.",
    )
    return replace(found, advantage=pooled.advantage)
