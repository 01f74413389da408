"""Decisions with one threshold changed, without one dataset, or without one subject-run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.analyses.lpact.gates.labels import label_ceiling
from lpact.analyses.lpact.robustness.controls import Ablation
from lpact.analyses.lpact.robustness.decide_again import GATES, Counts, Decider, Tables
from lpact.analyses.lpact.robustness.uncertainty import brain_as_model_passing
from lpact.analyses.lpact.tables import robustness as results
from lpact.analyses.lpact.tables.decisions import STUDY_OUTCOME
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, CONTROL_DELTAS, NORMALIZED_SCORES
from lpact.codes import FinalLabel
from lpact.store import frame, validate
from lpact.tables import RECORDING_KEY

Row = dict[str, Any]
Passed = pl.Series | tuple[int, int]
"""Flags, or the number of passes and of all."""

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


def threshold_sensitivity(decider: Decider, ablation: Ablation, uncertainty: pl.DataFrame) -> pl.DataFrame:
    """Counts if one threshold had another value; the run's own value is always among those tried."""
    gates = decider.gates
    ceilings = decider.tables[BRAIN_CEILING.name].filter(pl.col("valid"), kind="profile")
    measured = decider.base[NORMALIZED_SCORES.name].drop("label", "gate_pass")
    summaries = uncertainty.filter(unit="subject_run").drop_nulls("positive_rate")
    rows: list[Row] = []

    def add(family: str, value: float | str, own: float | str | None, counts: Counts, **passed: Passed) -> None:
        """Rows of one value: what passes by name of what is counted, and the claims of each gate profile."""
        found = [(name, "all", flags) for name, flags in passed.items()]
        for profile, c in counts.items():
            found.append((f"{INTEGRATED}{family}", profile, (c["n_integrated"], c["n_claims"])))
        for name, profile, flags in found:
            n_pass, n = (flags.sum(), len(flags)) if isinstance(flags, pl.Series) else flags
            rows.append(
                {
                    "family": name,
                    "rule": value if isinstance(value, str) else f"{value:g}",
                    "gate_profile": profile,
                    "configured": value == own,
                    "n_pass": int(n_pass),
                    "n_eligible": n,
                    "interpretation": _MEANINGS[name],
                }
            )

    def counts(touched: Sequence[str], **changed: float) -> Counts:
        return decider.counts(touched, gates=gates.model_copy(update=changed))

    own: float = gates.min_reliability
    for value in sorted({*RELIABILITIES, own}):
        made = counts(("relational", "ceiling"), min_reliability=value)
        passed = {"brain_reliability_minimum": ceilings["reliability"] >= value}
        add("reliability_minimum", value, own, made, **passed)
    own = gates.min_ceiling_fraction
    for value in sorted({*FRACTIONS, own}):
        made = counts(("ceiling",), min_ceiling_fraction=value)
        scores = label_ceiling(measured, gates.model_copy(update={"min_ceiling_fraction": value}))
        passed = {
            "raw_fraction_of_ceiling": scores["fraction_of_ceiling"] >= value,
            "control_surviving_fraction_of_ceiling": scores["gate_pass"],
        }
        add("fraction_of_ceiling", value, own, made, **passed)
    own = gates.direction_fraction
    for value in sorted({*DIRECTIONS, own}):
        made = counts(("relational", "replication"), direction_fraction=value)
        positive = summaries["positive_rate"] >= value
        qualified = positive & (summaries["n_gate_rows"] > 0)
        passed = {"direction_only": positive, "direction_gate_qualified": qualified}
        add("direction", value, own, made, **passed)
    for rule, scenario in ablation.by_rule.items():
        rows_of = scenario.rows.items()
        passed = {f"{stage}_best_control_rule": rows["gate_pass"] for stage, rows in rows_of}
        add("best_control_rule", rule, ablation.rule, scenario.counts, **passed)
    for value in PASS_FRACTIONS:
        if (found := brain_as_model_passing(decider.tables, value)) is not None:
            add("", value, None, {}, brain_as_model_pass_fraction=found)
    return validate(frame(results.THRESHOLD_SENSITIVITY, rows), results.THRESHOLD_SENSITIVITY)


def leave_one_dataset_out(decider: Decider) -> pl.DataFrame:
    """Gates passed and outcome without each dataset that has claims; multiple-testing correction covers the others."""

    def outcomes(table: pl.DataFrame) -> dict[str, str]:
        return dict(table.select("gate_profile", "outcome").iter_rows())

    whole = outcomes(decider.base[STUDY_OUTCOME.name])
    counted = {f"n_{gate.removesuffix('_specific')}": gate for gate in (*GATES, "integrated")}
    rows = []
    for omitted in decider.datasets:
        decider.tell(f"deciding without {omitted}")
        decided, outcome = decider.without_dataset(omitted)
        for profile, left in outcomes(outcome).items():
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
                    "outcome": left,
                    "outcome_of_run": whole[profile],
                }
            )
    return validate(frame(results.LEAVE_DATASET_OUT, rows), results.LEAVE_DATASET_OUT)


def leave_one_subject_run_out_decisions(decider: Decider) -> pl.DataFrame:
    """Integrated claims without each subject-run; reliabilities are those stored, with it among the partners."""
    runs = decider.tables[CONTROL_DELTAS.name].select(RECORDING_KEY).unique().sort(RECORDING_KEY)
    rows = []
    for number, recording in enumerate(runs.iter_rows(named=True), start=1):
        decider.tell(f"deciding without subject-run {number} of {runs.height}")
        counts = counts_without(decider, recording)
        rows += [{**recording, "gate_profile": p, **counted} for p, counted in counts.items()]
    return validate(frame(results.SUBJECT_RUN_DECISIONS, rows), results.SUBJECT_RUN_DECISIONS)


def counts_without(decider: Decider, recording: Mapping[str, str]) -> Counts:
    """Counts without one subject-run (values of `RECORDING_KEY`); all gates of its dataset may change."""
    same = pl.all_horizontal(*(pl.col(name) == value for name, value in recording.items()))

    def without(tables: Tables) -> dict[str, pl.DataFrame]:
        own = (name for name, t in tables.items() if set(RECORDING_KEY) <= set(t.columns))
        return {name: tables[name].filter(~same) for name in own}

    return decider.counts(GATES, change=without, dataset=recording["dataset"])


@dataclass(frozen=True)
class Sensitivity:
    """One kind of change under one gate profile.

    ``changes`` describes every change that alters the result; ``tried`` counts all changes of the kind.
    """

    gate_profile: str
    kind: str
    tried: int
    changes: tuple[str, ...]

    @property
    def stable(self) -> bool:
        """Whether none of the changes alters anything."""
        return not self.changes


def integrated_counts(tables: Tables) -> dict[str, tuple[int, int]]:
    """Integrated claims and all claims of the run, by gate profile."""
    rows = tables[results.CONVENTIONAL_CONTRAST.name].filter(analysis="integrated_decision")
    counts = rows.select("gate_profile", "n_claims_pass", "n_claims")
    return {profile: (n, total) for profile, n, total in counts.iter_rows()}


def sensitivities(tables: Tables) -> list[Sensitivity]:
    """Which single change alters a count of integrated claims or the outcome, by gate profile and kind of change."""
    thresholds = tables[results.THRESHOLD_SENSITIVITY.name].filter(
        pl.col("family").str.starts_with(INTEGRATED) & ~pl.col("configured")
    )
    # One decision per choice of controls, shown once for each stage.
    choices = tables[results.CONTROL_ABLATION.name].unique(
        ["scenario", "gate_profile"], keep="first", maintain_order=True
    )
    # A study of one dataset has no outcome without it.
    datasets = tables[results.LEAVE_DATASET_OUT.name].filter(pl.col("remaining").list.len() > 0)
    kinds = {
        "thresholds and rules": (thresholds, _other_threshold),
        "choices of controls": (choices, lambda row, _: _moved(row["scenario"], row)),
        "omitted datasets (outcome)": (datasets, _other_outcome),
        "omitted subject-runs": (
            tables[results.SUBJECT_RUN_DECISIONS.name],
            lambda row, _: _moved("without " + "/".join(row[k] for k in RECORDING_KEY), row),
        ),
    }
    found = []
    for profile, counts in integrated_counts(tables).items():
        for kind, (rows, describe) in kinds.items():
            own = rows.filter(gate_profile=profile)
            changes = (describe(row, counts) for row in own.iter_rows(named=True))
            found.append(Sensitivity(profile, kind, own.height, tuple(filter(None, changes))))
    return found


def _other_threshold(row: Row, counts: tuple[int, int]) -> str:
    n, total = counts
    if row["n_pass"] == n:
        return ""
    family = row["family"].removeprefix(INTEGRATED)
    return f"{family} {row['rule']}: {row['n_pass']} of {total} integrated instead of {n}"


def _other_outcome(row: Row, _: tuple[int, int]) -> str:
    before, after = row["outcome_of_run"], row["outcome"]
    change = f"without {row['omitted']}: outcome {after} instead of {before}"
    return "" if before == after else change


def _moved(change: str, row: Row) -> str:
    """Integrated claims after a change that alters some; empty for one that does not."""
    gained, lost, short = row["n_gained"], row["n_lost"], row.get("n_lost_coverage")
    if not (gained or lost):
        return ""
    why = f"; {short} for too few subject-runs" if short else ""
    left = f"{row['n_integrated']} of {row['n_claims']} integrated"
    return f"{change}: {left} (+{gained}, -{lost}){why}"
