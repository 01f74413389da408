"""Hand-made studies whose claims have stories: the tables of the decision's tests, decided."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import polars as pl

sys.path.append(str(Path(__file__).parents[1] / "decide"))

import synthetic_tables as made

from lpact.analyses.lpact.claim_story import claim_story, rows_of
from lpact.analyses.lpact.gates import decide

CLAIM = ("demo", "gpt2", 8, "surprisal")
passing_tables = functools.cache(made.passing_tables)


def decided(tables, **gates):
    found = decide(tables, gates=made.GATES.model_copy(update=gates), primary_metric="pearson")
    return {**tables, **found}


def story_of(tables, profile="paper", *, mechanism="surprisal", **gates):
    options = made.GATES.model_copy(update=gates)
    claim = (*CLAIM[:3], mechanism)
    return claim_story(rows_of(decided(tables, **gates)), claim, profile, gates=options)


def sound():
    """Passes every gate of both profiles."""
    tables = passing_tables()
    static = pl.col("condition") == "static_embedding"
    tables = made.put(tables, made.BLOCKS, static, scores=pl.lit([0.02] * made.N_BLOCKS))
    return made.put(
        tables, made.RELATIONAL_NULLS, pl.col("against") == "static_embedding", advantage=0.3
    )


def criterion(story, name):
    return next(c for g in story.gates for c in g.criteria if c.criterion == name)


def with_names(tables, **names):
    return {
        table: frame.with_columns(
            [pl.lit(new).alias(column) for column, new in names.items() if column in frame.columns]
        )
        for table, frame in tables.items()
    }
