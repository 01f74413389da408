"""Numbers behind gate M: drops by method, target, mismatched strip and block."""

from __future__ import annotations

import polars as pl

from lpact.analyses.explanation import Distribution
from lpact.analyses.lpact.explain.material import (
    MEAN,
    MEDIAN,
    Made,
    Material,
    distribution,
    over_blocks,
    place,
)
from lpact.analyses.lpact.gates._frames import SUBJECT_RUN_KEY
from lpact.analyses.lpact.gates.calibrated.mechanism import (
    NOTHING,
    RANDOM_DIRECTION,
    blocks_by_run,
    compare_with,
    contrasts_with,
    rival_targets,
)
from lpact.analyses.lpact.gates.summaries import medians_by_method, usable_rows
from lpact.analyses.lpact.tables.levels import (
    BLOCK_DROPS,
    MISMATCH_CONTROLS,
    SPECIFICITY,
    STRIPPING_DELTAS,
)

DROP = "drop in held-out score"
COLUMNS = {
    "matching_drop": "Drop of the mechanism's own target, by method",
    "margin": "Own drop minus the largest of another target, by method",
    "mismatch_margin": "Own drop minus that of a mismatched strip, by method",
}
INSTEAD = {RANDOM_DIRECTION: "a random direction", "nonmatching_mechanism": "another mechanism"}
"""Mismatched strips in words."""


def methods(material: Material) -> pl.DataFrame:
    """Medians over subject-runs of the three numbers, one row per method."""
    return medians_by_method(usable_rows(material.stripped(SPECIFICITY)))


def _by_method(material: Material, column: str, rival: str, gives: str) -> Distribution:
    """One of the three numbers, by method."""
    found = methods(material)
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
        n_missing=material.stripped(SPECIFICITY)["method"].n_unique() - found.height,
    )


def agreeing(material: Material) -> Made:
    """Votes of the methods, and the three numbers that make them."""
    found = methods(material)
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
        bound=material.gates.method_majority,
        where="all methods with finite numbers",
        note="A method agrees if all three numbers below are above 0.",
    )
    return (votes, *(_by_method(material, column, "", "") for column in COLUMNS))


def typical(material: Material, column: str, rival: str) -> Made:
    """One of the three numbers by method, and the drops that it compares."""
    beside = _mismatched if column == "mismatch_margin" else _targets
    return (_by_method(material, column, rival, MEDIAN), *beside(material, rival))


def median_drops(material: Material) -> dict[str, float]:
    """Drop of every target when the mechanism is stripped: median over subject-runs, then over methods."""
    drops = material.stripped(STRIPPING_DELTAS).drop_nulls("drop")
    by_method = drops.group_by("target", "method").agg(pl.col("drop").median())
    medians = by_method.group_by("target").agg(pl.col("drop").median()).sort("target")
    return dict(medians.select("target", "drop").iter_rows())


def _targets(material: Material, rival: str) -> Made:
    """Drops of all targets when the mechanism is stripped; the one of its own target is marked."""
    medians = median_drops(material)
    own = medians.pop(material.mechanism, None)
    if own is None:
        return ()
    return (
        distribution(
            f"Drop of every other target when {material.mechanism} is stripped; its own is marked",
            DROP,
            medians.values(),
            medians,
            "target",
            observed=own,
            bound=0.0,
            compared_with=rival,
            where="median over subject-runs, then over methods",
        ),
    )


def _mismatched(material: Material, kind: str) -> Made:
    """Drops of the mechanism's own target when something else is stripped, draw by draw."""
    own = methods(material)["matching_drop"].median()
    found = []
    by_kind = material.stripped(MISMATCH_CONTROLS).group_by("kind", maintain_order=True)
    for (name,), rows in by_kind:
        labels = [
            f"{place(run)}, {method}, {instead}, draw {draw}"
            for *run, method, instead, draw in rows.select(
                *SUBJECT_RUN_KEY, "method", "instead", "draw"
            ).iter_rows()
        ]
        found.append(
            distribution(
                f"Drop of {material.mechanism}'s target when {INSTEAD[str(name)]} is stripped instead",
                DROP,
                rows["drop"],
                labels,
                "draw",
                observed=own,
                bound=0.0,
                compared_with=str(name),
                where="all subject-runs and methods",
                note="The marked number is the median over methods of the matching drop.",
            )
        )
    return tuple(sorted(found, key=lambda d: (d.compared_with != kind, d.compared_with)))


def block_tests(
    material: Material, first: str, *, beside: str = NOTHING, random: bool = False
) -> Made:
    """Tests by block: with other targets and no drop at all, or with ``random`` directions of equal variance.

    ``beside`` names features beside the stripped ones.
    """
    by_run = blocks_by_run(material.claim, material.rows(BLOCK_DROPS), beside)
    rivals: tuple[str, ...] = rival_targets(material.claim, by_run)
    if random:
        measured = any(RANDOM_DIRECTION in blocks for _, blocks in by_run.values())
        rivals = (RANDOM_DIRECTION,) if measured else ()
    compared = [(rival, compare_with(material.claim, rival, by_run)) for rival in rivals]
    compared.sort(key=lambda pair: (pair[1].against != first, -pair[1].p_value, pair[0]))
    words = "" if beside == NOTHING else ", beside nuisance features"
    found: list[Distribution] = []
    for rival, test in compared:
        minus = "" if test.against == "no drop" else f" minus that of {test.against}"
        title = f"Drop of {material.mechanism}'s own target{minus}, block by block{words}"
        contrasts = contrasts_with(material.claim, rival, by_run)
        each_run = rival == compared[0][0]
        found += over_blocks(title, DROP, contrasts, test.against, test.p_value, each_run=each_run)
    return tuple(found)
