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
from lpact.analyses.lpact.gates.calibrated.mechanism import (
    NOTHING,
    RANDOM_DIRECTION,
    ByRun,
    blocks_by_run,
    compare_with,
    contrasts_with,
    rival_targets,
)
from lpact.analyses.lpact.gates.summaries import medians_by_method, usable_rows

DROP = "drop in held-out score"
COLUMNS = {
    "matching_drop": "Drop of the mechanism's own target, by method",
    "margin": "Own drop minus the largest of another target, by method",
    "mismatch_margin": "Own drop minus that of a mismatched strip, by method",
}
INSTEAD = {
    RANDOM_DIRECTION: "a random direction",
    "nonmatching_mechanism": "another mechanism",
}
"""Mismatched strips in words."""


def methods(material: Material) -> pl.DataFrame:
    """Medians over subject-runs of the three numbers, one row per method."""
    return medians_by_method(usable_rows(material.specificity))


def by_method(material: Material, column: str, rival: str, gives: str) -> Distribution:
    """One of the three numbers, by method."""
    found = methods(material)
    return distribution(
        COLUMNS[column],
        DROP,
        found[column].to_list(),
        found["method"].to_list(),
        kind="method",
        gives=gives,
        observed=found[column].median(),  # type: ignore[arg-type]
        bound=0.0,
        compared_with=rival,
        where="median over subject-runs",
        n_missing=material.specificity["method"].n_unique() - found.height,
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
        found.select(agrees).to_series().to_list(),
        found["method"].to_list(),
        kind="method",
        gives=MEAN,
        bound=material.gates.method_majority,
        where="all methods with finite numbers",
        note="A method agrees if all three numbers below are above 0.",
    )
    return (votes, *(by_method(material, column, "", "") for column in COLUMNS))


def typical(material: Material, column: str, rival: str) -> Made:
    """One of the three numbers by method, and the drops that it compares."""
    beside = mismatched if column == "mismatch_margin" else targets
    return (by_method(material, column, rival, MEDIAN), *beside(material, rival))


def median_drops(material: Material) -> dict[str, float]:
    """Drop of every target when the mechanism is stripped: median over subject-runs, then over methods."""
    medians = (
        material.stripping.drop_nulls("drop")
        .group_by("target", "method", maintain_order=True)
        .agg(pl.col("drop").median())
        .group_by("target", maintain_order=True)
        .agg(pl.col("drop").median())
        .sort("target")
    )
    return dict(medians.select("target", "drop").iter_rows())


def targets(material: Material, rival: str) -> Made:
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
            list(medians),
            kind="target",
            observed=own,
            bound=0.0,
            compared_with=rival,
            where="median over subject-runs, then over methods",
        ),
    )


def mismatched(material: Material, kind: str) -> Made:
    """Drops of the mechanism's own target when something else is stripped, draw by draw."""
    own = methods(material)["matching_drop"].median()
    found = []
    for (name,), rows in material.mismatches.group_by("kind", maintain_order=True):
        found.append(
            distribution(
                f"Drop of {material.mechanism}'s target when {INSTEAD[str(name)]} is stripped instead",
                DROP,
                rows["drop"].to_list(),
                [
                    f"{place(row)}, {row['method']}, {row['instead']}, draw {row['draw']}"
                    for row in rows.iter_rows(named=True)
                ],
                kind="draw",
                observed=own,  # type: ignore[arg-type]
                bound=0.0,
                compared_with=str(name),
                where="all subject-runs and methods",
                note="The marked number is the median over methods of the matching drop.",
            )
        )
    return tuple(sorted(found, key=lambda d: (d.compared_with != kind, d.compared_with)))


def other_targets(material: Material, rival: str, beside: str) -> Made:
    """Tests with every other target and with no drop at all; ``beside`` names features beside the stripped ones."""
    by_run = blocks_by_run(material.claim, material.block_drops, beside)
    words = "" if beside == NOTHING else ", beside nuisance features"
    return _tests(material, by_run, rival_targets(material.claim, by_run), rival, words)


def random_directions(material: Material, rival: str) -> Made:
    """The test with random directions of equal variance."""
    by_run = blocks_by_run(material.claim, material.block_drops, NOTHING)
    present = any(RANDOM_DIRECTION in blocks for _, blocks in by_run.values())
    return _tests(material, by_run, (RANDOM_DIRECTION,) if present else (), rival, "")


def _tests(
    material: Material, by_run: ByRun, rivals: tuple[str, ...], first: str, words: str
) -> Made:
    compared = [(rival, compare_with(material.claim, rival, by_run)) for rival in rivals]
    compared.sort(key=lambda pair: (pair[1].against != first, -pair[1].p_value, pair[0]))
    found: list[Distribution] = []
    for position, (rival, test) in enumerate(compared):
        contrasts = contrasts_with(material.claim, rival, by_run)
        minus = "" if test.against == "no drop" else f" minus that of {test.against}"
        title = f"Drop of {material.mechanism}'s own target{minus}, block by block{words}"
        against = test.against
        found.append(
            over_blocks(title, DROP, contrasts, compared_with=against, p_value=test.p_value)
        )
        if position == 0:
            found += [
                over_blocks(title, DROP, {run: own}, compared_with=against, where=place(run))
                for run, own in contrasts.items()
            ]
    return tuple(found)
