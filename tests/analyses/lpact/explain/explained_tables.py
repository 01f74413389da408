"""Hand-made studies with decided claims to explain: the tables of the decision's tests."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import polars as pl

sys.path.append(str(Path(__file__).parents[1] / "gates"))

import synthetic_tables as made

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.explain import explain_claim
from lpact.analyses.lpact.gates import decide
from lpact.config import study_config
from lpact.store import empty
from lpact.tables import CLAIM_KEY, find_table

CLAIM = ("demo", "gpt2", 8, "surprisal")
passing_tables = functools.cache(made.passing_tables)


def decided(tables, **gates):
    found = decide(tables, gates=made.GATES.model_copy(update=gates), primary_metric="pearson")
    return {**tables, **found}


def config_of(gates, primary_metric="pearson"):
    """A configuration with these thresholds; nothing else of it is read."""
    study = {
        "name": "demo",
        "datasets": [{"name": "demo", "reader": "simulated"}],
        "models": [{"name": "gpt2", "layers": [8]}],
        "readout": {"primary_metric": primary_metric},
        "lpact": {"gates": gates.model_dump()},
    }
    return LPactConfig.of(study_config(study, where="test"))


def rows_of(tables):
    """Rows of tables by equality; a table that is not there has no rows."""

    def rows(table, /, **equals):
        frame = tables.get(table)
        return empty(find_table(table)) if frame is None else frame.filter(**equals)

    return rows


def explained(tables, claim=CLAIM, profile="paper", gates=made.GATES, primary_metric="pearson"):
    """The explanation of a claim from decided tables."""
    key = dict(zip(CLAIM_KEY, claim, strict=True))
    return explain_claim(config_of(gates, primary_metric), rows_of(tables), key, profile)


def decided_and_explained(tables, profile="paper", *, mechanism="surprisal", **gates):
    options = made.GATES.model_copy(update=gates)
    return explained(decided(tables, **gates), (*CLAIM[:3], mechanism), profile, options)


def fact(explanation, name):
    return dict(explanation.facts).get(name)


def sound():
    """Passes every gate of both profiles."""
    tables = passing_tables()
    static = pl.col("condition") == "static_embedding"
    tables = made.put(tables, made.BLOCKS, static, scores=pl.lit([0.02] * made.N_BLOCKS))
    return made.put(tables, made.RELATIONAL_NULLS, pl.col("against") == "static_embedding", advantage=0.3)


def criterion(explanation, name):
    return next(c for g in explanation.gates for c in g.criteria if c.name == name)


def with_names(tables, **names):
    return {
        table: frame.with_columns(
            [pl.lit(new).alias(column) for column, new in names.items() if column in frame.columns]
        )
        for table, frame in tables.items()
    }
