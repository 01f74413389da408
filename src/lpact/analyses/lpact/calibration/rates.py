"""From trials to rates: how often each gate passed, with Wilson intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from lpact.analyses.lpact.calibration.truths import known_truth
from lpact.analyses.lpact.tables.calibration import CELL, RATES, TRIALS, TRUTH_RATES
from lpact.stats import wilson_interval
from lpact.store import frame


def cell_rates(trials: pl.DataFrame) -> pl.DataFrame:
    """Rates of every cell, rows of `RATES`."""
    rows = []
    names = [column.name for column in CELL]
    for _, own in trials.sort(TRIALS.key).group_by("cell", "gate_profile", maintain_order=True):
        cell = own.select(names).row(0, named=True)
        rows += [cell | rate for rate in _rates(cell["truth"], own)]
    return frame(RATES, rows)


def truth_rates(trials: pl.DataFrame) -> pl.DataFrame:
    """Rates of every truth, all of its cells together, rows of `TRUTH_RATES`."""
    rows = []
    for (name, _), own in trials.sort(TRIALS.key).group_by(
        "truth", "gate_profile", maintain_order=True
    ):
        truth = known_truth(str(name))
        more = {"truth": truth.name, "n_cells": own["cell"].n_unique()}
        rows += [more | rate | {"why": truth.why(rate["gate"])} for rate in _rates(truth.name, own)]
    return frame(TRUTH_RATES, rows)


def n_null_studies(trials: pl.DataFrame) -> int:
    """Number of studies in which there was nothing to find."""
    studies = trials.select("truth", "cell", "trial").unique()
    return sum(known_truth(name).is_null for name in studies["truth"])


def _rates(truth_name: str, trials: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """One rate a gate for the trials of one truth and gate profile."""
    truth = known_truth(truth_name)
    alpha = trials["alpha"].max()
    for gate in truth.gates:
        passed = trials[gate]
        n_passes, n_studies = int(passed.sum()), passed.len()
        low, high = wilson_interval(n_passes, n_studies)
        yield {
            "gate_profile": trials["gate_profile"][0],
            "gate": gate,
            "role": truth.role(gate),
            "n_studies": n_studies,
            "n_passes": n_passes,
            "rate": n_passes / n_studies,
            "low": low,
            "high": high,
            "alpha": alpha,
        }
