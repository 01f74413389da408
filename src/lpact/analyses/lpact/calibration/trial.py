"""One simulated study, measured by the real stages and judged by the real rules: one row per gate profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl
from threadpoolctl import threadpool_limits

from lpact.analyses.lpact.calibration.cells import EFFORT, Cell, Effort, cell_config
from lpact.analyses.lpact.calibration.truths import GATES, PLANTED_MECHANISM, known_truth
from lpact.analyses.lpact.config import GatesConfig, RelationalConfig
from lpact.analyses.lpact.gates import PAPER, decide
from lpact.analyses.lpact.stages import measure_levels
from lpact.analyses.lpact.tables.calibration import TRIALS
from lpact.analyses.lpact.tables.decisions import DECISIONS, GATE_EVIDENCE
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS
from lpact.codes import FinalLabel
from lpact.config import ReadoutConfig
from lpact.store import frame

_EVIDENCE_GATES = {"mechanism_specific": "mechanism"}
"""Names of gates in the evidence that differ from their column in the decision table."""

_P_VALUE_RELATIONS = ("<", "<=")
"""Only p-values must be small; point rules require more than a threshold."""

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


Rules = tuple[GatesConfig, RelationalConfig]
"""Gates and relational options of a user's study."""


def decide_trial(
    cell: Cell, seed: int, effort: Effort = EFFORT, rules: Rules | None = None
) -> dict[str, pl.DataFrame]:
    """Simulate, measure and judge the study ``seed`` of a cell; decided tables by name."""
    config = cell_config(cell, seed, effort)
    if rules is not None:
        config = config.model_copy(update=dict(zip(("gates", "relational"), rules, strict=True)))
    with threadpool_limits(1):
        measured = measure_levels(config)
        return decide(measured, gates=config.gates, primary_metric=config.readout.primary_metric)


def run_trial(cell: Cell, seed: int, effort: Effort = EFFORT) -> pl.DataFrame:
    """Simulate, measure and judge the study ``seed`` of a cell.

    Returns
    -------
    pl.DataFrame
        Rows of `TRIALS`, one per gate profile. Gates are those of one claim, so that a rate is that of one test: the
        claim of the mechanism that is planted, or would be. Where none is planted, ``integrated`` counts any claim.
    """
    return summarise(cell, seed, decide_trial(cell, seed, effort))


def observed_effect(decided: Mapping[str, pl.DataFrame]) -> dict[str, float | None]:
    """Score, contrast with the best rival, and fraction of the ceiling, as the user of a study sees them."""
    rows = decided[CONTROL_DELTAS.name].filter(metric=ReadoutConfig().primary_metric)
    evidence = decided[GATE_EVIDENCE.name].filter(
        gate_profile=PAPER, criterion="mean_fraction_of_ceiling", mechanism=PLANTED_MECHANISM
    )
    contrasts = [_mean(rows["delta_nuisance"]), _mean(rows["delta_control"])]
    known = [c for c in contrasts if c is not None]
    return {
        "score": _mean(rows["real_score"]),
        "delta": min(known) if len(known) == len(contrasts) else None,
        "fraction_of_ceiling": _mean(evidence["value"]),
    }


def _mean(values: pl.Series) -> float | None:
    mean: Any = values.cast(pl.Float64).mean()
    return None if mean is None else float(mean)


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
        integrated, scope = decisions.filter(planted), "planted"
        others = decisions.filter(~planted)
        more = {
            f"other_{gate}": bool(others[gate].any())
            for gate in ("mechanism_specific", "integrated")
        }
    else:
        integrated, scope = decisions, "any"
        more = {"other_mechanism_specific": None, "other_integrated": None}
    tested = decisions.filter(planted)
    tests = evidence.filter(planted & pl.col("relation").is_in(_P_VALUE_RELATIONS))
    p_values = {
        column.name: _p_value(tests, column.name.removeprefix("p_"))
        for column in TRIALS.columns
        if column.name.startswith("p_")
    }
    return {
        "claims": scope,
        "n_claims": decisions.height,
        **{gate: bool(tested[gate].any()) for gate in GATES},
        "integrated": bool(integrated["integrated"].any()),
        **more,
        "n_mechanism_specific": int(decisions["mechanism_specific"].sum()),
        "label": min(integrated["label"], key=_STRONGEST_FIRST.index),
        "alpha": tests["threshold"].max(),
        **p_values,
    }


def _p_value(tests: pl.DataFrame, gate: str) -> float | None:
    """Largest p-value of a gate's tests, since all of them must reject."""
    own = tests.filter(gate=_EVIDENCE_GATES.get(gate, gate)).drop_nulls("value")
    largest = own["value"].max()
    return None if largest is None else float(largest)  # type: ignore[arg-type]
