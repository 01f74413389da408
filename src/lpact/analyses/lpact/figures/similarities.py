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
from lpact.analyses.lpact.figures.common import LAYER, REAL, SUBJECT_RUN, passes
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
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

    Attributes
    ----------
    runs
        One row per layer, summary, condition and subject-run: ``similarity``, ``advantage``, ``n_units``.
    rows
        The same over subject-runs, with ``n_subject_runs`` and ``counted``.
    n_left_out
        Unit rows that were left out because the unit orders differ.
    """

    runs: pl.DataFrame
    rows: pl.DataFrame
    n_left_out: int


def similarities(material: Material) -> Similarities:
    """Profile similarities by condition, over units and then over subject-runs."""
    scores = material.table(PROFILE_SCORES.name).sort([*_UNIT_ROW, "condition"])
    left_out = 0
    if material.has(PROFILE_DELTAS.name):
        other = pl.col("model_unit_order_hash") != pl.col("brain_unit_order_hash")
        mixed = material.table(PROFILE_DELTAS.name).filter(other).select(_UNIT_ROW)
        left_out = mixed.height
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
    return Similarities(runs, rows, left_out)


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
    found = nearest.select(LAYER).unique(maintain_order=True)
    if material.has(RELATIONAL_SUMMARY.name):
        found = pl.concat([found, material.table(RELATIONAL_SUMMARY.name).select(LAYER)])
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
        pl.col(PAPER, CALIBRATED).fill_null(value=False),
        pl.col("n_ahead", "n_summaries", "times").fill_null(0),
    )


def by_promise(layers: pl.DataFrame) -> pl.DataFrame:
    """Layers of each dataset, the most telling first: R under more profiles, then a larger typical advantage."""
    passed = pl.col(PAPER).cast(pl.Int64) + pl.col(CALIBRATED).cast(pl.Int64)
    return (
        layers.with_columns(_passed=passed, _typical=pl.col("typical").fill_null(-float("inf")))
        .sort(
            ["dataset", "_passed", "_typical", "model", "layer"],
            descending=[False, True, True, False, False],
        )
        .drop("_passed", "_typical")
    )


def telling_layers(layers: pl.DataFrame) -> pl.DataFrame:
    """The most telling layer of each dataset that has a relational contrast."""
    known = by_promise(layers).filter(pl.col("n_summaries") > 0)
    return known.unique("dataset", keep="first", maintain_order=True)


def summary_order(material: Material, found: pl.DataFrame) -> list[tuple[str, str]]:
    """Alignment × profile summaries, in the order of the study file, then others by name."""
    both = {(str(a), str(p)) for a, p in found.select(SUMMARY).unique().iter_rows()}
    config = LPactConfig.of(material.config).relational
    asked = [(a, p) for a in config.alignments for p in config.profiles if (a, p) in both]
    return [*asked, *sorted(both - set(asked))]
