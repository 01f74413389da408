"""Numbers behind gate M: drops by method, target, mismatched strip and block."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.claim_story.material import Material, place
from lpact.analyses.lpact.claim_story.model import Distribution, Gives
from lpact.analyses.lpact.claim_story.shapes import over_blocks, several
from lpact.analyses.lpact.gates.calibrated.comparison import Comparison
from lpact.analyses.lpact.gates.calibrated.mechanism import (
    NOTHING,
    NUISANCE,
    RANDOM_DIRECTION,
    ByRun,
    blocks_by_run,
    compare_with,
    contrasts_with,
    rival_targets,
)
from lpact.analyses.lpact.gates.point_rules.mechanism import medians_by_method, usable_rows

DROP = "drop in held-out score"
COLUMNS = {
    "matching_drop": "Drop of the mechanism's own target, by method",
    "margin": "Own drop less the largest of another target, by method",
    "mismatch_margin": "Own drop less that of a mismatched strip, by method",
}


INSTEAD = {
    RANDOM_DIRECTION: "a random direction",
    "nonmatching_mechanism": "another mechanism",
}
"""Mismatched strips in words."""


def methods(material: Material) -> pl.DataFrame:
    """Medians over subject-runs of the three numbers, one row a method."""
    return material.once(
        ("methods", material.mechanism),
        lambda: medians_by_method(usable_rows(material.specificity)),
    )


def by_method(
    material: Material, column: str, reference: str, gives: Gives = "median"
) -> Distribution:
    """One of the three numbers, by method."""
    found = methods(material)
    asked = material.specificity["method"].n_unique()
    return several(
        COLUMNS[column],
        DROP,
        found[column].to_list(),
        found["method"].to_list(),
        kind="methods",
        gives=gives,
        observed=found[column].median(),  # type: ignore[arg-type]
        bound=0.0,
        reference=reference,
        where="median over subject-runs",
        n_missing=asked - found.height,
    )


def agreeing(material: Material) -> tuple[Distribution, ...]:
    """Votes of the methods, and the three numbers that make them."""
    found = methods(material)
    agrees = pl.all_horizontal(pl.col(list(COLUMNS)) > 0).cast(pl.Float64)
    votes = found.select(agrees.alias("agrees"))["agrees"]
    if not found.height:
        return ()
    return (
        several(
            "Methods that show a selective drop (1) or do not (0)",
            "vote",
            votes.to_list(),
            found["method"].to_list(),
            kind="methods",
            gives="mean",
            observed=votes.mean(),  # type: ignore[arg-type]
            bound=material.gates.method_majority,
            where="all methods with finite numbers",
            note="A method agrees if all three numbers below are above 0.",
        ),
        *(by_method(material, column, "", "") for column in COLUMNS),
    )


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


def targets(material: Material, rival: str) -> tuple[Distribution, ...]:
    """Drops of all targets when the mechanism is stripped: its own is the observed one."""
    medians = median_drops(material)
    own = medians.pop(material.mechanism, None)
    if own is None:
        return ()
    return (
        several(
            f"Drop of every other target when {material.mechanism} is stripped; its own is marked",
            DROP,
            list(medians.values()),
            list(medians),
            kind="rivals",
            observed=own,
            bound=0.0,
            reference=rival,
            where="median over subject-runs, then over methods",
        ),
    )


def mismatched(material: Material, kind: str) -> tuple[Distribution, ...]:
    """Drops of the mechanism's own target when something else is stripped, draw by draw."""
    typical = methods(material)["matching_drop"].median()
    found = []
    for name, rows in material.mismatches.group_by("kind", maintain_order=True):
        labels = [
            f"{place(row)}, {row['method']}, {row['instead']}, draw {row['draw']}"
            for row in rows.iter_rows(named=True)
        ]
        found.append(
            several(
                f"Drop of {material.mechanism}'s target when {INSTEAD[str(name[0])]} is stripped instead",
                DROP,
                rows["drop"].to_list(),
                labels,
                kind="draws",
                observed=typical,  # type: ignore[arg-type]
                bound=0.0,
                reference=str(name[0]),
                where="all subject-runs and methods",
                note="The marked number is the median over methods of the matching drop.",
            )
        )
    return tuple(sorted(found, key=lambda d: (d.reference != kind, d.reference)))


def other_targets(material: Material, compared_with: str, beside: str) -> tuple[Distribution, ...]:
    """Tests against every other target and against no drop at all."""
    by_run = blocks_by_run(material.claim, material.block_drops, beside)
    words = "" if beside == NOTHING else ", beside nuisance features"
    return _tests(material, by_run, rival_targets(material.claim, by_run), compared_with, words)


def random_directions(material: Material, compared_with: str) -> tuple[Distribution, ...]:
    """The test against random directions of equal variance."""
    by_run = blocks_by_run(material.claim, material.block_drops, NOTHING)
    present = any(RANDOM_DIRECTION in blocks for _, blocks in by_run.values())
    return _tests(material, by_run, (RANDOM_DIRECTION,) if present else (), compared_with, "")


def beyond_nuisance(material: Material, compared_with: str) -> tuple[Distribution, ...]:
    """The tests against other targets with nuisance beside the features."""
    return other_targets(material, compared_with, NUISANCE)


def _tests(
    material: Material,
    by_run: ByRun,
    rivals: tuple[str, ...],
    compared_with: str,
    words: str,
) -> tuple[Distribution, ...]:
    compared = [(rival, compare_with(material.claim, rival, by_run)) for rival in rivals]
    ranked = sorted(
        compared, key=lambda pair: (pair[1].against != compared_with, -pair[1].p_value, pair[0])
    )
    found: list[Distribution] = []
    for position, (rival, test) in enumerate(ranked):
        contrasts = contrasts_with(material.claim, rival, by_run)
        title = _title(material.mechanism, test, words)
        found.append(
            over_blocks(title, DROP, contrasts, reference=test.against, p_value=test.p_value)
        )
        if position == 0:
            found += [
                over_blocks(
                    title,
                    DROP,
                    {run: values},
                    reference=test.against,
                    p_value=None,
                    where=place(run),
                )
                for run, values in contrasts.items()
            ]
    return tuple(found)


def _title(mechanism: str, test: Comparison, words: str) -> str:
    if test.against == "no drop":
        return f"Drop of {mechanism}'s own target, block by block{words}"
    return f"Drop of {mechanism}'s own target less that of {test.against}, block by block{words}"
