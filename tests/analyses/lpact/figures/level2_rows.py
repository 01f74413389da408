"""Small tables of level 2: similarities, null draws and patterns over a few units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

SCORES = "relational/profile_similarity_scores"
DELTAS = "relational/profile_similarity_deltas"
SUMMARIES = "relational/relational_subject_run_summary"
NULLS = "relational/relational_null_draws"
BRAIN = "relational/brain_alignment_patterns"
MODEL = "relational/model_alignment_patterns"
INDEX = "relational/brain_unit_index"

Layer = tuple[str, str, int]
ALIGNMENTS, PROFILES = ("linear", "cka"), ("pearson", "cosine")
LEVELS = {"real": 0.6, "nuisance": 0.1, "circular_shift": 0.0, "token_order_shuffle": 0.4}
"""Similarity of each condition, before a little noise."""
ORDER = "order-1"


def place(layer: Layer, subject: int) -> dict[str, Any]:
    dataset, model, number = layer
    run = {"subject": f"{subject:02d}", "session": "01", "run": "01"}
    return {"dataset": dataset, **run, "model": model, "layer": number}


def similarity_tables(
    layers: Sequence[Layer] = (("d", "m", 1),), n_runs: int = 3, n_units: int = 4
) -> dict[str, pl.DataFrame]:
    """Scores of every condition and unit, deltas with unit orders that agree, and summaries."""
    rng = np.random.default_rng(3)
    scores, deltas, summaries = [], [], []
    for layer in layers:
        for subject in range(n_runs):
            for alignment in ALIGNMENTS:
                for profile in PROFILES:
                    summary = {**place(layer, subject), "alignment": alignment, "profile": profile}
                    summaries.append({**summary, "reason": "ok"})
                    for unit in range(n_units):
                        key = {**summary, "unit": f"u{unit}"}
                        deltas.append(
                            {
                                **key,
                                "model_unit_order_hash": ORDER,
                                "brain_unit_order_hash": ORDER,
                            }
                        )
                        scores += [
                            {
                                **key,
                                "condition": condition,
                                "counted": condition != "nuisance",
                                "similarity": level + float(rng.normal(0, 0.05)),
                            }
                            for condition, level in LEVELS.items()
                        ]
    frames = {SCORES: scores, DELTAS: deltas, SUMMARIES: summaries}
    return {name: pl.DataFrame(rows) for name, rows in frames.items()}


def pattern_tables(
    layer: Layer = ("d", "m", 1),
    regions: Sequence[str] = ("left", "right", "left"),
    orders: Sequence[str] = (ORDER, ORDER),
) -> dict[str, pl.DataFrame]:
    """Patterns of brain and model, one unit order a subject-run; numbers are random, the diagonal is undefined."""
    rng = np.random.default_rng(4)
    n = len(regions)
    brain, model, index = [], [], []
    for subject, order in enumerate(orders):
        where = place(layer, subject)
        run = {name: where[name] for name in ("dataset", "subject", "session", "run")}
        for unit, region in enumerate(regions):
            key = {**run, "unit": f"u{unit:03d}", "unit_index": unit, "unit_order_hash": order}
            index.append({**key, "region": region})
            pattern: list[float | None] = rng.normal(0.2, 0.1, n).tolist()
            pattern[unit] = None
            brain.append({**key, "alignment": "linear", "pattern": pattern, "reason": "ok"})
        for condition, n_draws in (
            ("real", 1),
            ("nuisance", 1),
            ("circular_shift", 2),
            ("token_order_shuffle", 2),
        ):
            model += [
                {
                    **where,
                    "alignment": "linear",
                    "condition": condition,
                    "draw": draw,
                    "unit_order_hash": order,
                    "pattern": rng.normal(0.1, 0.1, n).tolist(),
                }
                for draw in range(n_draws)
            ]
    return {BRAIN: pl.DataFrame(brain), MODEL: pl.DataFrame(model), INDEX: pl.DataFrame(index)}
