"""Double dissociations by layer and pair of mechanisms, and the four drops of a pair.

For a pair (a, b) and a subject-run, with drops that are medians over stripping methods,

    dissociated ⇔ min(drop_aa, drop_bb) > 0 and min(drop_aa, drop_bb) > max(drop_ab, drop_ba),
    interaction = (drop_aa − drop_ab + drop_bb − drop_ba) / 2.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import LAYER, SUBJECT_RUN, mechanism_order, passes
from lpact.analyses.lpact.gates import CALIBRATED, PAPER

TABLE = "causal/double_dissociation_tests"
MAX_PANELS = 8
FEW = 6
"""So many layers are all drawn."""
STRONGEST = 4
"""Pairs whose crossed drops are drawn."""

_DROPS = ("drop_aa", "drop_ab", "drop_ba", "drop_bb")


def pair_tests(material: Material) -> pl.DataFrame:
    """The tests, sorted; every pair in the order of the study file, with ``known`` and ``interaction``."""
    table = material.table(TABLE).sort([*LAYER, *SUBJECT_RUN, "mechanism_a", "mechanism_b"])
    order = mechanism_order(material, pl.concat([table["mechanism_a"], table["mechanism_b"]]))
    place = {name: i for i, name in enumerate(order)}
    place_of = {
        side: pl.col(f"mechanism_{side}").replace_strict(place, return_dtype=pl.Int64)
        for side in "ab"
    }
    turned = place_of["a"] > place_of["b"]
    swap = {
        "mechanism_a": "mechanism_b",
        "mechanism_b": "mechanism_a",
        "drop_aa": "drop_bb",
        "drop_ab": "drop_ba",
        "drop_ba": "drop_ab",
        "drop_bb": "drop_aa",
    }
    table = table.with_columns(
        pl.when(turned).then(pl.col(other)).otherwise(pl.col(own)).alias(own)
        for own, other in swap.items()
    ).with_columns(pl.col(name).fill_nan(None) for name in _DROPS)
    return table.with_columns(
        a=place_of["a"],
        b=place_of["b"],
        known=pl.all_horizontal(pl.col(name).is_not_null() for name in _DROPS)
        & (pl.col("reason") == "ok"),
        interaction=(pl.col("drop_aa") - pl.col("drop_ab") + pl.col("drop_bb") - pl.col("drop_ba"))
        / 2,
    )


def rows_of(material: Material) -> pl.DataFrame:
    """One row a layer and pair: in how many subject-runs of how many the pair dissociates, and median drops."""
    tests = pair_tests(material)
    keys = [*LAYER, "a", "b", "mechanism_a", "mechanism_b"]
    return (
        tests.group_by(keys, maintain_order=True)
        .agg(
            n_dissociated=(pl.col("double_dissociation") & pl.col("known")).sum().cast(pl.Int64),
            n_known=pl.col("known").sum().cast(pl.Int64),
            n_subject_runs=pl.len().cast(pl.Int64),
            interaction=pl.col("interaction").filter("known").median(),
            why=pl.col("reason").filter(pl.col("reason") != "ok").mode().sort().first(),
            **{name: pl.col(name).filter("known").median() for name in _DROPS},
        )
        .with_columns(
            share=pl.when(pl.col("n_known") > 0).then(pl.col("n_dissociated") / pl.col("n_known"))
        )
        .sort([*LAYER, "a", "b"])
    )


def chosen_layers(material: Material, rows: pl.DataFrame) -> pl.DataFrame:
    """Layers to draw: all if they are few; else those that pass P or M, then those with most dissociations.

    Of the latter the best one of each dataset comes first.
    """
    counts = rows.group_by(LAYER, maintain_order=True).agg(
        total=pl.col("n_dissociated").sum(),
        of=pl.col("n_known").sum(),
        n_runs=pl.col("n_known").max(),
        strength=pl.col("interaction").max().fill_null(-float("inf")),
    )
    if counts.height <= FEW:
        return counts.sort(LAYER)
    ranked = counts.with_columns(part=(pl.col("total") / pl.col("of")).fill_nan(0.0)).sort(
        ["dataset", "part", "strength", "model", "layer"],
        descending=[False, True, True, False, False],
    )
    passing = pl.concat(
        passes(material, gate).filter(pl.col(PAPER) | pl.col(CALIBRATED)).select(LAYER)
        for gate in ("predictive", "mechanism_specific")
    ).unique()
    ranked = ranked.with_columns(place=pl.int_range(pl.len()).over("dataset")).join(
        passing.with_columns(held=pl.lit(value=True)), on=LAYER, how="left", maintain_order="left"
    )
    best = ranked.with_columns(pl.col("held").fill_null(value=False), first=pl.col("place") == 0)
    best = best.sort(
        ["held", "first", "part", "strength", *LAYER],
        descending=[True, True, True, True, False, False, False],
    )
    return best.head(MAX_PANELS).drop("part", "place", "first", "held").sort(LAYER)


def strongest_pairs(rows: pl.DataFrame, enough: int) -> pl.DataFrame:
    """Pairs that dissociate in the largest share of subject-runs; ties go to the larger interaction.

    Pairs with fewer than ``enough`` subject-runs come last.
    """
    known = rows.filter(pl.col("n_known") > 0).with_columns(few=pl.col("n_known") < enough)
    return known.sort(
        ["few", "share", "interaction", *LAYER, "a", "b"],
        descending=[False, True, True, False, False, False, False, False],
    ).head(STRONGEST)


def crossed_rows(pair: dict[str, Any], tests: pl.DataFrame) -> pl.DataFrame:
    """The four drops of a pair: one row a subject-run (``level`` run) and strip × target, and their medians."""
    same = [pl.col(name) == pair[name] for name in (*LAYER, "a", "b")]
    own = tests.filter(*same, pl.col("known"))
    long = pl.concat(
        own.select(
            *LAYER,
            *SUBJECT_RUN,
            stripped=f"mechanism_{strip}",
            target=f"mechanism_{target}",
            strip=pl.lit(strip),
            at=pl.lit(target),
            drop=f"drop_{strip}{target}",
        )
        for strip in "ab"
        for target in "ab"
    )
    keys = [*LAYER, "stripped", "target", "strip", "at"]
    typical = long.group_by(keys, maintain_order=True).agg(
        pl.col("drop").median(), n=pl.len().cast(pl.Int64)
    )
    runs = long.with_columns(n=pl.lit(1, dtype=pl.Int64), level=pl.lit("run"))
    both = pl.concat([typical.with_columns(level=pl.lit("median")), runs], how="diagonal")
    return both.sort(["level", *SUBJECT_RUN, "strip", "at"], nulls_last=True)
