"""What weaker rules call positive, which models enter the decisions, and which single change alters the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.analyses.lpact.robustness.changes import INTEGRATED
from lpact.analyses.lpact.robustness.deciding import DecidedRun, Tables
from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY, MODEL_INVENTORY
from lpact.analyses.lpact.tables.levels import (
    CONTROL_DELTAS,
    DISSOCIATIONS,
    NORMALIZED_SCORES,
    PROFILE_DELTAS,
    STRIPPING_DELTAS,
)
from lpact.analyses.lpact.tables.robustness import (
    CONTROL_ABLATION,
    CONVENTIONAL_CONTRAST,
    LEAVE_DATASET_OUT,
    MODEL_SUMMARY,
    SUBJECT_RUN_DECISIONS,
    THRESHOLD_SENSITIVITY,
)
from lpact.codes import Reason
from lpact.store import frame, validate
from lpact.tables import CLAIM_KEY

Row = dict[str, Any]


def conventional_contrast(run: DecidedRun) -> pl.DataFrame:
    """Seven weaker rules.

    Six count rows of the stored tables, with or without a number and whatever the dataset's role. The last counts
    claims with any raw positive.
    """
    rows = []
    for profile in run.profiles:
        decisions = run.decisions.filter(gate_profile=profile)
        for weaker in [*_weaker_rules(run), _any_positive(decisions)]:
            positive, passed = weaker.pop("positive"), weaker.pop("passed")
            rows.append(
                {
                    "gate_profile": profile,
                    "counted": "rows",
                    "n_positive": int(positive.sum()),
                    "n_total": len(positive),
                    "n_lpact_pass": int(passed.sum()),
                    "n_claims": decisions.height,
                    "n_claims_pass": int(decisions[weaker["gate"]].sum()),
                    **weaker,
                }
            )
    return validate(frame(CONVENTIONAL_CONTRAST, rows), CONVENTIONAL_CONTRAST)


def _weaker_rules(run: DecidedRun) -> list[Row]:
    """Rules on rows: which of them they call positive, which pass, and the gate that requires more.

    A double dissociation is a diagnostic that enters no gate, so that none passes.
    """
    base, minimum = run.base, run.gates.min_ceiling_fraction
    level1, level2 = base[CONTROL_DELTAS.name], base[PROFILE_DELTAS.name]
    drops, pairs = base[STRIPPING_DELTAS.name], base[DISSOCIATIONS.name]
    pearson, ceiling = level1.filter(metric="pearson"), base[NORMALIZED_SCORES.name]
    return [
        {
            "analysis": "raw_predictive_pearson",
            "rule": "real_score > 0, metric pearson",
            "positive": pearson["real_score"] > 0,
            "passed": pearson["gate_pass"],
            "gate": "predictive",
            "interpretation": "a positive score can be nuisance or autocorrelation",
        },
        {
            "analysis": "nuisance_only_improvement",
            "rule": "delta_nuisance > 0, all metrics",
            "positive": level1["delta_nuisance"] > 0,
            "passed": level1["gate_pass"],
            "gate": "severe_control_level1",
            "interpretation": "beating nuisance is not beating the severe controls",
        },
        {
            "analysis": "raw_relational_similarity",
            "rule": "real_similarity > 0",
            "positive": level2["real_similarity"] > 0,
            "passed": level2["gate_pass"],
            "gate": "relational",
            "interpretation": "control patterns resemble the brain's as well",
        },
        {
            "analysis": "raw_stripping_drop",
            "rule": "drop > 0, all targets",
            "positive": drops["drop"] > 0,
            "passed": drops["gate_pass"],
            "gate": "mechanism_specific",
            "interpretation": "any strip can cost score; it must cost the matching target most",
        },
        {
            "analysis": "pairwise_double_dissociation",
            "rule": "both matching drops positive and above the crossed ones",
            "positive": pairs["double_dissociation"],
            "passed": pairs["double_dissociation"] & False,
            "gate": "mechanism_specific",
            "interpretation": "diagnostic only; it enters no gate",
        },
        {
            "analysis": "raw_ceiling_fraction",
            "rule": f"fraction_of_ceiling >= {minimum:g}",
            "positive": ceiling["fraction_of_ceiling"] >= minimum,
            "passed": ceiling["gate_pass"],
            "gate": "ceiling",
            "interpretation": "the fraction must survive the contrast with the best control",
        },
    ]


def _any_positive(decisions: pl.DataFrame) -> Row:
    return {
        "analysis": "integrated_decision",
        "rule": "a raw positive at any level",
        "counted": "claims",
        "positive": decisions["raw_positive"],
        "passed": decisions["integrated"],
        "gate": "integrated",
        "interpretation": "a claim must pass every gate; nothing compensates",
    }


def model_summary(run: DecidedRun) -> pl.DataFrame:
    """One row per model of the study file, from the audit's inventory and the claims."""
    inventory = run.tables[MODEL_INVENTORY.name].sort(MODEL_INVENTORY.key)
    all_claims = run.decisions.select(CLAIM_KEY).unique()
    rows = []
    for (model,), offers in inventory.group_by(["model"], maintain_order=True):
        claims = all_claims.filter(model=model)
        controls = run.tables[CONTROL_AVAILABILITY.name].filter(model=model)
        datasets = claims["dataset"].unique().sort().to_list()
        available = set(controls.filter("available")["control"])
        why, status = Reason.OK, f"included: {claims.height} claims"
        if not claims.height:
            missing = offers.filter(~pl.col("included"))["reason"]
            codes = sorted(code for code in missing if code != Reason.OK.value)
            why = Reason(codes[0]) if codes else Reason.NOTHING_MEASURED
            status = f"not included: {why.explanation}"
        rows.append(
            {
                "model": model,
                "source": offers["source"][0],
                "layers": claims["layer"].unique().sort().to_list(),
                "datasets": datasets,
                "datasets_without": [d for d in offers["dataset"] if d not in datasets],
                "controls_available": sorted(available),
                "controls_missing": sorted(set(controls["control"]) - available),
                "n_claims": claims.height,
                "included": claims.height > 0,
                "status": status,
                "reason": why.value,
            }
        )
    return validate(frame(MODEL_SUMMARY, rows), MODEL_SUMMARY)


# --- Findings --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
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
    rows = tables[CONVENTIONAL_CONTRAST.name].filter(analysis="integrated_decision")
    counts = rows.select("gate_profile", "n_claims_pass", "n_claims")
    return {profile: (n, total) for profile, n, total in counts.iter_rows()}


def findings(tables: Tables) -> list[Finding]:
    """Which single change alters a count of integrated claims or the outcome, by gate profile and kind of change."""
    found = []
    for profile, (n, total) in integrated_counts(tables).items():
        thresholds, ablation, datasets, runs = (
            tables[table.name].filter(gate_profile=profile)
            for table in (
                THRESHOLD_SENSITIVITY,
                CONTROL_ABLATION,
                LEAVE_DATASET_OUT,
                SUBJECT_RUN_DECISIONS,
            )
        )
        other = thresholds.filter(
            pl.col("family").str.starts_with(INTEGRATED) & ~pl.col("configured")
        )
        # One decision per choice of controls, shown once for each stage.
        choices = ablation.unique("scenario", keep="first", maintain_order=True)
        # A study of one dataset has no outcome without it.
        datasets = datasets.filter(pl.col("remaining").list.len() > 0)
        kinds: dict[str, tuple[pl.DataFrame, Iterable[str]]] = {
            "thresholds and rules": (
                other,
                (
                    f"{row['family'].removeprefix(INTEGRATED)} {row['rule']}: {row['n_pass']} of {total} "
                    f"integrated instead of {n}"
                    for row in other.iter_rows(named=True)
                    if row["n_pass"] != n
                ),
            ),
            "choices of controls": (
                choices,
                (
                    f"{row['scenario']}: {_moved(row)}"
                    for row in choices.iter_rows(named=True)
                    if _moved(row)
                ),
            ),
            "omitted datasets (outcome)": (
                datasets,
                (
                    f"without {row['omitted']}: outcome {row['outcome']} instead of {row['outcome_of_run']}"
                    for row in datasets.iter_rows(named=True)
                    if row["outcome"] != row["outcome_of_run"]
                ),
            ),
            "omitted subject-runs": (
                runs,
                (
                    f"without {row['dataset']}/{row['subject']}/{row['session']}/{row['run']}: {_moved(row)}"
                    for row in runs.iter_rows(named=True)
                    if _moved(row)
                ),
            ),
        }
        found += [
            Finding(profile, kind, rows.height, tuple(changes))
            for kind, (rows, changes) in kinds.items()
        ]
    return found


def _moved(row: Mapping[str, Any]) -> str:
    """Integrated claims after a change that alters some; empty for one that does not."""
    if not (row["n_gained"] or row["n_lost"]):
        return ""
    short = row.get("n_lost_coverage")
    why = f"; {short} for too few subject-runs" if short else ""
    gained, lost = row["n_gained"], row["n_lost"]
    return f"{row['n_integrated']} of {row['n_claims']} integrated (+{gained}, -{lost}){why}"
