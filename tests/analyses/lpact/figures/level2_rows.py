"""Small tables of level 2: similarities and null draws over a few units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

SCORES = "relational/profile_similarity_scores"
DELTAS = "relational/profile_similarity_deltas"
SUMMARIES = "relational/relational_subject_run_summary"
NULLS = "relational/relational_null_draws"
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
