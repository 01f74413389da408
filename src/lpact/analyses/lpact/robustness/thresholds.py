"""What each threshold is worth: counts if it alone had another value."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.lpact.gates.rows import label_ceiling
from lpact.analyses.lpact.robustness.ablation import Ablation
from lpact.analyses.lpact.robustness.brain_as_model import PASS_FRACTIONS, BrainAsModel
from lpact.analyses.lpact.robustness.counting import Counts
from lpact.analyses.lpact.robustness.deciding import Decider
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, NORMALIZED_SCORES
from lpact.analyses.lpact.tables.robustness import THRESHOLD_SENSITIVITY
from lpact.store import frame, validate

RELIABILITIES = (0.05, 0.1, 0.2)
FRACTIONS = (0.1, 0.25, 0.5, 0.75)
DIRECTIONS = (0.5, 0.6, 0.7)
ALL = "all"
INTEGRATED = "integrated_"
"""Families that count claims begin with this."""

_MEANINGS = {
    "brain_reliability_minimum": "valid brain–brain profile reliabilities at or above the value",
    "integrated_reliability_minimum": "claims that pass every gate if only min_reliability is changed",
    "raw_fraction_of_ceiling": "rows at or above the value, before any control is asked",
    "control_surviving_fraction_of_ceiling": "rows at or above the value that also beat the best control on a valid "
    "reliability",
    "integrated_fraction_of_ceiling": "claims that pass every gate if only min_ceiling_fraction is changed",
    "direction_only": "dataset and level summaries whose share of positive subject-runs reaches the value",
    "direction_gate_qualified": "those that also hold rows which pass their row rule",
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
    """Every family; the run's own value is always among the values tried."""
    rows = [
        *_reliability(decider),
        *_fraction(decider),
        *_direction(decider, uncertainty),
        *_best_control(ablation),
    ]
    if brain_as_model is not None:
        rows += [
            _row("brain_as_model_pass_fraction", fraction, None, passing, eligible)
            for fraction in PASS_FRACTIONS
            for passing, eligible in [brain_as_model.passing(fraction)]
        ]
    return validate(frame(THRESHOLD_SENSITIVITY, rows), THRESHOLD_SENSITIVITY)


def _row(
    family: str,
    value: float | str,
    configured: float | str | None,
    n_pass: int,
    n_eligible: int,
    gate_profile: str = ALL,
) -> dict[str, Any]:
    return {
        "family": family,
        "rule": value if isinstance(value, str) else f"{value:g}",
        "gate_profile": gate_profile,
        "configured": value == configured,
        "n_pass": n_pass,
        "n_eligible": n_eligible,
        "interpretation": _MEANINGS[family],
    }


def _claims(
    family: str, value: float | str, configured: float | str, counts: Counts
) -> list[dict[str, Any]]:
    return [
        _row(family, value, configured, c["n_integrated"], c["n_claims"], profile)
        for profile, c in counts.items()
    ]


def _counts(decider: Decider, touched: tuple[str, ...], **changed: float) -> Counts:
    return decider.counts_with_gates(decider.gates.model_copy(update=changed), touched)


def _values(tried: tuple[float, ...], configured: float) -> list[float]:
    return sorted({*tried, configured})


def _reliability(decider: Decider) -> list[dict[str, Any]]:
    configured = decider.gates.min_reliability
    ceilings = decider.tables[BRAIN_CEILING.name]
    known = ceilings.filter(pl.col("valid") & (pl.col("kind") == "profile"))["reliability"]
    rows = []
    for value in _values(RELIABILITIES, configured):
        n_pass = int((known >= value).sum())
        rows.append(_row("brain_reliability_minimum", value, configured, n_pass, len(known)))
        counts = _counts(decider, ("relational", "ceiling"), min_reliability=value)
        rows += _claims("integrated_reliability_minimum", value, configured, counts)
    return rows


def _fraction(decider: Decider) -> list[dict[str, Any]]:
    configured = decider.gates.min_ceiling_fraction
    measured = decider.base[NORMALIZED_SCORES.name].drop("label", "gate_pass")
    rows = []
    for value in _values(FRACTIONS, configured):
        gates = decider.gates.model_copy(update={"min_ceiling_fraction": value})
        scores = label_ceiling(measured, gates)
        raw = int((scores["fraction_of_ceiling"] >= value).sum())
        survive = int(scores["gate_pass"].sum())
        n = scores.height
        rows.append(_row("raw_fraction_of_ceiling", value, configured, raw, n))
        rows.append(_row("control_surviving_fraction_of_ceiling", value, configured, survive, n))
        counts = decider.counts_with_gates(gates, ("ceiling",))
        rows += _claims("integrated_fraction_of_ceiling", value, configured, counts)
    return rows


def _direction(decider: Decider, uncertainty: pl.DataFrame) -> list[dict[str, Any]]:
    configured = decider.gates.direction_fraction
    models = uncertainty.filter(pl.col("unit") == "subject_run").drop_nulls("positive_rate")
    rows = []
    for value in _values(DIRECTIONS, configured):
        positive = models.filter(pl.col("positive_rate") >= value)
        qualified = positive.filter(pl.col("n_gate_rows") > 0)
        n = models.height
        rows.append(_row("direction_only", value, configured, positive.height, n))
        rows.append(_row("direction_gate_qualified", value, configured, qualified.height, n))
        counts = _counts(decider, ("relational", "replication"), direction_fraction=value)
        rows += _claims("integrated_direction", value, configured, counts)
    return rows


def _best_control(ablation: Ablation) -> list[dict[str, Any]]:
    rows = []
    for rule, scenario in ablation.by_rule.items():
        for stage, labelled in scenario.rows.items():
            passed = labelled["gate_pass"]
            rows.append(
                _row(
                    f"{stage}_best_control_rule",
                    rule,
                    ablation.rule,
                    int(passed.sum()),
                    len(passed),
                )
            )
        rows += _claims("integrated_best_control_rule", rule, ablation.rule, scenario.counts)
    return rows
