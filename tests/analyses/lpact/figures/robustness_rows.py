"""Robustness tables, made by hand."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.store import frame, validate
from lpact.tables import Table


def table(of: Table, *rows: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """A table that is what its declaration says, by its full name."""
    return {of.name: validate(frame(of, list(rows)), of)}


def interval(mean: float | None, low: float | None = None, high: float | None = None, n: int = 4) -> dict[str, Any]:
    """Columns of an interval; without ends it stands on one unit, without a mean on none."""
    alone = mean is not None and low is None
    return {
        "n_rows": 0 if mean is None else 10 * n,
        "n_rows_missing": 40 if mean is None else 0,
        "n_units": 0 if mean is None else (1 if alone else n),
        "mean": mean,
        "ci_low": mean if alone else low,
        "ci_high": mean if alone else high,
        "n_draws": 2000,
        "degenerate": alone,
        "positive_rate": None if mean is None else (1.0 if mean > 0 else 0.0),
        "n_gate_rows": 3,
        "reason": "nothing_measured" if mean is None else "single_aggregation_unit" if alone else "ok",
    }


def level(dataset: str, name: str, *numbers: Any, **more: Any) -> dict[str, Any]:
    """A row of the table of levels."""
    own = {"unit": "subject_run", "best_control": "circular_shift"}
    return {"dataset": dataset, "level": name, **own, **interval(*numbers), **more}


def one_out(dataset: str, name: str, low: float, high: float) -> dict[str, Any]:
    """How far leaving one subject-run out moves a mean."""
    return {
        "dataset": dataset,
        "level": name,
        "n_units": 4,
        "full_mean": (low + high) / 2,
        "leave_one_min": low,
        "leave_one_max": high,
        "sign_flip": low < 0 < high,
        "positive_rate": 0.5,
        "most_influential": "01/02/03",
        "reason": "ok",
    }


def mechanism(dataset: str, name: str, quantity: str, *numbers: Any) -> dict[str, Any]:
    """A row of the table of mechanisms."""
    return {"dataset": dataset, "mechanism": name, "quantity": quantity, **interval(*numbers)}


def threshold(family: str, rule: str, n: int, of: int, profile: str = "all", *, used: bool = False) -> dict[str, Any]:
    """A value that was tried."""
    return {
        "family": family,
        "rule": rule,
        "gate_profile": profile,
        "configured": used,
        "n_pass": n,
        "n_eligible": of,
        "interpretation": "what is counted",
    }


def ablation(scenario: str, stage: str, profile: str, n: int, passed: int) -> dict[str, Any]:
    """A choice of controls, of 50 claims and 200 rows."""
    return {
        "scenario": scenario,
        "stage": stage,
        "gate_profile": profile,
        "rule": "max",
        "n_controls": 3,
        "n_rows": 200,
        "n_positive": passed + 1,
        "n_stage_pass": passed,
        "median_delta": 0.1,
        "n_claims": 50,
        "n_integrated": n,
        "n_gained": 0,
        "n_lost": 0,
        "reason": "ok",
    }


def without(dataset: str, profile: str, n: int, outcome: str, of_run: str) -> dict[str, Any]:
    """A dataset left out, of 40 claims."""
    gates = ("predictive", "relational", "mechanism", "ceiling", "severe_control", "replication")
    return {
        "omitted": dataset,
        "gate_profile": profile,
        "remaining": ["x"],
        "n_claims": 40,
        **{f"n_{gate}": 5 for gate in gates},
        "n_integrated": n,
        "n_control_explained": 1,
        "outcome": outcome,
        "outcome_of_run": of_run,
    }


def subject_run(dataset: str, run: str, profile: str, n: int, lost: int = 0) -> dict[str, Any]:
    """A subject-run left out, of 50 claims."""
    return {
        "dataset": dataset,
        "subject": "01",
        "session": "01",
        "run": run,
        "gate_profile": profile,
        "n_claims": 50,
        "n_integrated": n,
        "n_gained": 0,
        "n_lost": lost,
        "n_lost_coverage": 0,
    }
