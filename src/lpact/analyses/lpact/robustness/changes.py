"""The study decided again with one threshold changed, without one dataset, or without one subject-run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from lpact.analyses.lpact.gates.rows import label_ceiling
from lpact.analyses.lpact.robustness.controls import Ablation
from lpact.analyses.lpact.robustness.deciding import GATES, Counts, Decider, Tables
from lpact.analyses.lpact.robustness.uncertainty import BrainAsModel
from lpact.analyses.lpact.tables.decisions import STUDY_OUTCOME
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, CONTROL_DELTAS, NORMALIZED_SCORES
from lpact.analyses.lpact.tables.robustness import (
    LEAVE_DATASET_OUT,
    SUBJECT_RUN_DECISIONS,
    THRESHOLD_SENSITIVITY,
)
from lpact.codes import FinalLabel
from lpact.store import frame, validate
from lpact.tables import RECORDING_KEY

Row = dict[str, Any]

RELIABILITIES = (0.05, 0.1, 0.2)
FRACTIONS = (0.1, 0.25, 0.5, 0.75)
DIRECTIONS = (0.5, 0.6, 0.7)
PASS_FRACTIONS = (0.5, 0.6, 0.7)
INTEGRATED = "integrated_"
"""Families that count claims begin with this."""

_MEANINGS = {
    "brain_reliability_minimum": "valid brain–brain profile reliabilities at or above the value",
    "integrated_reliability_minimum": "claims that pass every gate if only min_reliability is changed",
    "raw_fraction_of_ceiling": "rows at or above the value, before controls are considered",
    "control_surviving_fraction_of_ceiling": "rows at or above the value that also beat the best control on a valid "
    "reliability",
    "integrated_fraction_of_ceiling": "claims that pass every gate if only min_ceiling_fraction is changed",
    "direction_only": "dataset and level summaries whose share of positive subject-runs reaches the value",
    "direction_gate_qualified": "those that also have rows which pass their row rule",
    "integrated_direction": "claims that pass every gate if only direction_fraction is changed",
    "predictive_best_control_rule": "level-1 rows above nuisance and above the best control by this rule",
    "relational_best_control_rule": "level-2 rows above the best control by this rule, on reliable patterns",
    "integrated_best_control_rule": "claims that pass every gate if only best_control_rule is changed",
    "brain_as_model_pass_fraction": "brain-as-model summaries whose share of passing rows reaches the value",
}


def threshold_sensitivity(
    decider: Decider,
    ablation: Ablation,
    uncertainty: pl.DataFrame,
    brain_as_model: BrainAsModel | None,
) -> pl.DataFrame:
    """Counts if one threshold had another value; the run's own value is always among those tried."""
    gates = decider.gates
    ceilings = decider.tables[BRAIN_CEILING.name].filter(pl.col("valid"), kind="profile")
    measured = decider.base[NORMALIZED_SCORES.name].drop("label", "gate_pass")
    summaries = uncertainty.filter(unit="subject_run").drop_nulls("positive_rate")
    rows: list[Row] = []
    own = gates.min_reliability
    for value in sorted({*RELIABILITIES, own}):
        counts = _counts(decider, ("relational", "ceiling"), min_reliability=value)
        passed = ceilings["reliability"] >= value
        rows += [_row("brain_reliability_minimum", value, own, passed)]
        rows += _claims("reliability_minimum", value, own, counts)
    own = gates.min_ceiling_fraction
    for value in sorted({*FRACTIONS, own}):
        counts = _counts(decider, ("ceiling",), min_ceiling_fraction=value)
        scores = label_ceiling(measured, gates.model_copy(update={"min_ceiling_fraction": value}))
        surviving = "control_surviving_fraction_of_ceiling"
        raw = scores["fraction_of_ceiling"] >= value
        rows += [_row("raw_fraction_of_ceiling", value, own, raw)]
        rows += [_row(surviving, value, own, scores["gate_pass"])]
        rows += _claims("fraction_of_ceiling", value, own, counts)
    own = gates.direction_fraction
    for value in sorted({*DIRECTIONS, own}):
        counts = _counts(decider, ("relational", "replication"), direction_fraction=value)
        positive = summaries["positive_rate"] >= value
        qualified = positive & (summaries["n_gate_rows"] > 0)
        rows += [_row("direction_only", value, own, positive)]
        rows += [_row("direction_gate_qualified", value, own, qualified)]
        rows += _claims("direction", value, own, counts)
    for rule, scenario in ablation.by_rule.items():
        for stage, labelled in scenario.rows.items():
            rows += [_row(f"{stage}_best_control_rule", rule, ablation.rule, labelled["gate_pass"])]
        rows += _claims("best_control_rule", rule, ablation.rule, scenario.counts)
    if brain_as_model is not None:
        for value in PASS_FRACTIONS:
            n_pass = brain_as_model.passing(value)
            rows += [_row("brain_as_model_pass_fraction", value, None, n_pass)]
    return validate(frame(THRESHOLD_SENSITIVITY, rows), THRESHOLD_SENSITIVITY)


def _counts(decider: Decider, touched: tuple[str, ...], **changed: float) -> Counts:
    return decider.counts(touched, gates=decider.gates.model_copy(update=changed))


def _row(
    family: str,
    value: float | str,
    configured: float | str | None,
    passed: pl.Series | tuple[int, int],
    gate_profile: str = "all",
) -> Row:
    """One value of a threshold; ``passed`` are flags, or the number of passes and of all."""
    if isinstance(passed, pl.Series):
        passed = (int(passed.sum()), len(passed))
    return {
        "family": family,
        "rule": value if isinstance(value, str) else f"{value:g}",
        "gate_profile": gate_profile,
        "configured": value == configured,
        "n_pass": passed[0],
        "n_eligible": passed[1],
        "interpretation": _MEANINGS[family],
    }


def _claims(family: str, value: float | str, configured: float | str, counts: Counts) -> list[Row]:
    return [
        _row(
            f"{INTEGRATED}{family}", value, configured, (c["n_integrated"], c["n_claims"]), profile
        )
        for profile, c in counts.items()
    ]


def leave_one_dataset_out(decider: Decider) -> pl.DataFrame:
    """Gates passed and outcome of the study without each dataset that has claims.

    All rows of the dataset are removed and the rest is decided anew, so that corrections over the claims of a study, if
    a gate profile has them, cover those that are left.
    """
    whole = _outcomes(decider.base[STUDY_OUTCOME.name])
    counted = {f"n_{gate.removesuffix('_specific')}": gate for gate in (*GATES, "integrated")}
    rows = []
    for omitted in decider.datasets:
        decider.tell(f"deciding without {omitted}")
        decided, outcome = decider.without_dataset(omitted)
        outcomes = _outcomes(outcome)
        for profile in decider.profiles:
            claims = decided.filter(gate_profile=profile)
            explained = claims["label"] == FinalLabel.CONTROL_EXPLAINED.value
            rows.append(
                {
                    "omitted": omitted,
                    "gate_profile": profile,
                    "remaining": [name for name in decider.datasets if name != omitted],
                    "n_claims": claims.height,
                    **{name: int(claims[gate].sum()) for name, gate in counted.items()},
                    "n_control_explained": int(explained.sum()),
                    "outcome": outcomes[profile],
                    "outcome_of_run": whole[profile],
                }
            )
    return validate(frame(LEAVE_DATASET_OUT, rows), LEAVE_DATASET_OUT)


def _outcomes(table: pl.DataFrame) -> dict[str, str]:
    return dict(table.select("gate_profile", "outcome").iter_rows())


def leave_one_subject_run_out_decisions(decider: Decider) -> pl.DataFrame:
    """Integrated claims without each subject-run.

    Reliabilities of the subject-runs that stay were measured with the removed one among their partners; they are used
    as stored.
    """
    runs = decider.tables[CONTROL_DELTAS.name].select(RECORDING_KEY).unique().sort(RECORDING_KEY)
    rows = []
    for number, recording in enumerate(runs.iter_rows(), start=1):
        decider.tell(f"deciding without subject-run {number} of {runs.height}")
        place = dict(zip(RECORDING_KEY, recording, strict=True))
        counts = counts_without(decider, recording)
        rows += [{**place, "gate_profile": p, **counted} for p, counted in counts.items()]
    return validate(frame(SUBJECT_RUN_DECISIONS, rows), SUBJECT_RUN_DECISIONS)


def counts_without(decider: Decider, recording: Sequence[str]) -> Counts:
    """Counts without one subject-run (values of `RECORDING_KEY`); all gates of its dataset may change."""
    return decider.counts(GATES, change=partial(_without, recording), dataset=recording[0])


def _without(recording: Sequence[str], tables: Tables) -> dict[str, pl.DataFrame]:
    """The tables without the rows of one subject-run."""
    same = pl.all_horizontal(
        *(pl.col(name) == value for name, value in zip(RECORDING_KEY, recording, strict=True))
    )
    return {
        name: table.filter(~same)
        for name, table in tables.items()
        if set(RECORDING_KEY) <= set(table.columns)
    }
