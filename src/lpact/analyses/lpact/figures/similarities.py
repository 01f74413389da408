"""Rows of level 2 that its figures share: profile similarities by condition, nearest rivals, and the layer to look at.

    s(c)         = mean over subject-runs of the mean over units of ρ(b_i, q_c)
    advantage(c) = the same of ρ(b_i, q_real) − ρ(b_i, q_c), over the unit rows that have both

A rival is nuisance or a control; the nearest one has the smallest advantage. Unit rows whose unit orders differ compare
different units and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.common import LAYER, PROFILES, REAL, SUBJECT_RUN, passes, table
from lpact.analyses.lpact.tables.levels import (
    PROFILE_DELTAS,
    PROFILE_SCORES,
    RELATIONAL_SUMMARY,
)

SUMMARY = ["alignment", "profile"]
_UNIT_ROW = [*LAYER, *SUBJECT_RUN, "unit", *SUMMARY]


@dataclass(frozen=True)
class Similarities:
    """Profile similarities of a study.

    ``runs`` has one row per layer, summary, condition and subject-run: ``similarity``, ``advantage``, ``n_units``;
    ``rows`` is the same over subject-runs, with ``n_subject_runs`` and ``counted``. ``n_left_out`` unit rows were left
    out because the unit orders differ.
    """

    runs: pl.DataFrame
    rows: pl.DataFrame
    n_left_out: int


def similarities(material: Material) -> Similarities:
    """Profile similarities by condition, over units and then over subject-runs."""
    scores = material.table(PROFILE_SCORES.name).sort([*_UNIT_ROW, "condition"])
    other = pl.col("model_unit_order_hash") != pl.col("brain_unit_order_hash")
    mixed = table(material, PROFILE_DELTAS).filter(other).select(_UNIT_ROW)
    scores = scores.join(mixed, on=_UNIT_ROW, how="anti", maintain_order="left")
    scores = scores.filter(pl.col("similarity").is_finite())
    real = scores.filter(pl.col("condition") == REAL).select(*_UNIT_ROW, own="similarity")
    paired = scores.join(real, on=_UNIT_ROW, how="left", maintain_order="left").with_columns(
        advantage=pl.col("own") - pl.col("similarity")
    )
    keys = [*LAYER, *SUMMARY, "condition"]
    runs = paired.group_by([*keys, *SUBJECT_RUN], maintain_order=True).agg(
        pl.col("similarity", "advantage").mean(),
        pl.col("counted").first(),
        n_units=pl.len().cast(pl.Int64),
    )
    runs = runs.sort([*keys, *SUBJECT_RUN])
    rows = runs.group_by(keys, maintain_order=True).agg(
        pl.col("similarity", "advantage").mean(),
        pl.col("counted").first(),
        n_subject_runs=pl.len().cast(pl.Int64),
        n_units=pl.col("n_units").max(),
    )
    return Similarities(runs, rows, mixed.height)


def nearest_rivals(rows: pl.DataFrame) -> pl.DataFrame:
    """The rival with the smallest advantage of the real features, one row per layer and summary; ties by name."""
    rivals = rows.filter((pl.col("condition") != REAL) & pl.col("advantage").is_not_null())
    return rivals.sort([*LAYER, *SUMMARY, "advantage", "condition"]).unique(
        [*LAYER, *SUMMARY], keep="first", maintain_order=True
    )


def layers_of(material: Material, nearest: pl.DataFrame) -> pl.DataFrame:
    """One row per layer of level 2.

    ``typical`` is the median over summaries of the advantage over the nearest rival, ``n_ahead`` the summaries in which
    it is positive, ``rival`` the most frequent nearest rival; flags by gate profile say whether the layer passes R.
    """
    found = pl.concat([nearest.select(LAYER), table(material, RELATIONAL_SUMMARY).select(LAYER)])
    counts = nearest.group_by([*LAYER, "condition"], maintain_order=True).len("times")
    frequent = counts.sort(
        [*LAYER, "times", "condition"], descending=[False, False, False, True, False]
    ).unique(LAYER, keep="first", maintain_order=True)
    typical = nearest.group_by(LAYER, maintain_order=True).agg(
        typical=pl.col("advantage").median(),
        n_ahead=(pl.col("advantage") > 0).sum().cast(pl.Int64),
        n_summaries=pl.len().cast(pl.Int64),
    )
    out = found.unique().sort(LAYER)
    for part in (typical, frequent.rename({"condition": "rival"}), passes(material, "relational")):
        out = out.join(part, on=LAYER, how="left", maintain_order="left")
    return out.with_columns(
        pl.col(list(PROFILES)).fill_null(value=False),
        pl.col("n_ahead", "n_summaries", "times").fill_null(0),
    )


def most_telling(layers: pl.DataFrame, n_per_dataset: int = 1) -> pl.DataFrame:
    """Layers of each dataset with a relational contrast: R under most profiles, then the largest typical advantage."""
    passed = pl.sum_horizontal(*PROFILES)
    order = ["dataset", "_passed", "typical", "model", "layer"]
    ranked = layers.filter(pl.col("n_summaries") > 0).with_columns(_passed=passed)
    ranked = ranked.sort(order, descending=[False, True, True, False, False]).drop("_passed")
    return ranked.filter(pl.int_range(pl.len()).over("dataset") < n_per_dataset)


def summary_order(material: Material, found: pl.DataFrame) -> list[tuple[str, str]]:
    """Alignment × profile summaries, in the order of the study file, then others by name."""
    both = {(str(a), str(p)) for a, p in found.select(SUMMARY).unique().iter_rows()}
    config = LPactConfig.of(material.config).relational
    known = [(a, p) for a in config.alignments for p in config.profiles if (a, p) in both]
    return [*known, *sorted(both - set(known))]
