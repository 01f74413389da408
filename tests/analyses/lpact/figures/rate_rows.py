"""Rates of gates, made by hand."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.stats import wilson_interval


def rate(
    n_passes: int,
    n_studies: int,
    *,
    gate: str = "predictive",
    profile: str = "paper",
    role: str = "power",
    **more: Any,
) -> dict[str, Any]:
    """One row of ``calibration/rates``, or, without what a cell has, of ``calibration/truth_rates``."""
    low, high = wilson_interval(n_passes, n_studies)
    own = {
        "cell": "c",
        "truth": "planted",
        "model": "m",
        "snr": 1.0,
        "n_events": 300,
        "n_subjects": 4,
        "n_units": 20,
        "noise_autocorrelation": 0.9,
        "gate_profile": profile,
        "gate": gate,
        "role": role,
        "n_studies": n_studies,
        "n_passes": n_passes,
        "rate": n_passes / n_studies,
        "low": low,
        "high": high,
        "alpha": 0.05 if profile == "calibrated" else None,
        "n_cells": 1,
        "why": "because",
    }
    return own | more


def rates(*rows: dict[str, Any]) -> pl.DataFrame:
    """Rows as a table."""
    return pl.DataFrame(list(rows), schema_overrides={"alpha": pl.Float64, "snr": pl.Float64})
