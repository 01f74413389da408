"""One simulated study: measured by the real stages, judged by the real rules, summarised in one row a gate profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl
from threadpoolctl import threadpool_limits

from lpact.calibrate.cells import EFFORT, Cell, Effort, cell_config
from lpact.calibrate.truths import GATES, PLANTED_MECHANISM, known_truth
from lpact.decide import decide
from lpact.reasons import FinalLabel
from lpact.run.measure import measure_in_memory
from lpact.store import frame
from lpact.tables.calibration import TRIALS
from lpact.tables.decisions import DECISIONS, GATE_EVIDENCE

_EVIDENCE_GATES = {"mechanism_specific": "mechanism"}
"""Names that a gate has in the evidence, where they differ from its column in the decision table."""

_P_VALUE_RELATIONS = ("<", "<=")
"""Only p-values must be small: point rules ask for more than a threshold."""

_STRONGEST_FIRST = (
    FinalLabel.INTEGRATED_CANDIDATE,
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
    FinalLabel.RELATIONAL_CANDIDATE,
    FinalLabel.PREDICTIVE_ONLY,
    FinalLabel.CONTROL_EXPLAINED,
    FinalLabel.NULL,
    FinalLabel.INSUFFICIENT_BRAIN_CEILING,
    FinalLabel.INSUFFICIENT_COVERAGE,
    FinalLabel.DIAGNOSTIC_ONLY,
)


def run_trial(cell: Cell, seed: int, effort: Effort = EFFORT) -> pl.DataFrame:
    """Simulate, measure and judge the study ``seed`` of a cell.

    Returns
    -------
    pl.DataFrame
        Rows of `TRIALS`, one a gate profile. Where a mechanism is planted, its claim is under test; elsewhere all
        claims are, and a gate counts as passed if any of them passes it.
    """
    config = cell_config(cell, seed, effort)
    with threadpool_limits(1):
        measured = measure_in_memory(config)
        decided = decide(measured, gates=config.gates, primary_metric=config.readout.primary_metric)
    return summarise(cell, seed, decided)


def summarise(cell: Cell, seed: int, decided: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Rows of `TRIALS` for a study's decided tables."""
    decisions, evidence = decided[DECISIONS.name], decided[GATE_EVIDENCE.name]
    rows = [
        {"cell": cell.key, **asdict(cell), "trial": seed, "gate_profile": profile}
        | _profile_row(
            cell,
            decisions.filter(gate_profile=profile),
            evidence.filter(gate_profile=profile),
        )
        for profile in decisions["gate_profile"].unique().sort()
    ]
    return frame(TRIALS, rows)


def _profile_row(cell: Cell, decisions: pl.DataFrame, evidence: pl.DataFrame) -> dict[str, Any]:
    planted = pl.col("mechanism") == PLANTED_MECHANISM
    more: dict[str, bool | None]
    if known_truth(cell.truth).plants_mechanism:
        tested, scope = decisions.filter(planted), "planted"
        evidence = evidence.filter(planted)
        others = decisions.filter(~planted)
        more = {
            f"other_{gate}": bool(others[gate].any())
            for gate in ("mechanism_specific", "integrated")
        }
    else:
        tested, scope = decisions, "any"
        more = {"other_mechanism_specific": None, "other_integrated": None}
    tests = evidence.filter(pl.col("relation").is_in(_P_VALUE_RELATIONS))
    p_values = {
        column.name: _p_value(tests, column.name.removeprefix("p_"))
        for column in TRIALS.columns
        if column.name.startswith("p_")
    }
    return {
        "claims": scope,
        "n_claims": decisions.height,
        **{gate: bool(tested[gate].any()) for gate in GATES},
        **more,
        "n_mechanism_specific": int(tested["mechanism_specific"].sum()),
        "label": min(tested["label"], key=_STRONGEST_FIRST.index),
        "alpha": tests["threshold"].max(),
        **p_values,
    }


def _p_value(tests: pl.DataFrame, gate: str) -> float | None:
    """Smallest p-value over claims; that of a claim is its largest, since all of a gate's tests must reject."""
    own = tests.filter(gate=_EVIDENCE_GATES.get(gate, gate)).drop_nulls("value")
    by_claim = own.group_by("dataset", "model", "layer", "mechanism").agg(pl.col("value").max())
    smallest = by_claim["value"].min()
    return None if smallest is None else float(smallest)  # type: ignore[arg-type]
