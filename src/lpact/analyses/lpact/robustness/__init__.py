"""What the verdicts of a run depend on, from its stored tables alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from lpact.analyses.lpact.config import GatesConfig, LPactConfig
from lpact.analyses.lpact.gates import NEEDED
from lpact.analyses.lpact.gates.verdict import list_claims, list_layers
from lpact.analyses.lpact.robustness import changes, uncertainty
from lpact.analyses.lpact.robustness.changes import Sensitivity, integrated_counts, sensitivities
from lpact.analyses.lpact.robustness.controls import Ablation, control_names
from lpact.analyses.lpact.robustness.decide_again import DECIDED, DecidedRun, Decider
from lpact.analyses.lpact.tables import levels
from lpact.analyses.lpact.tables import robustness as results
from lpact.analyses.lpact.tables.assay import BRAIN_AS_MODEL
from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY, MODEL_INVENTORY
from lpact.codes import Reason
from lpact.errors import TableError, require_known
from lpact.store import frame, validate
from lpact.tables import CLAIM_KEY, RECORDING_KEY, Table

__all__ = [
    "READS",
    "READS_DECIDED",
    "READS_IF_THERE",
    "Sensitivity",
    "integrated_counts",
    "n_claim_decisions",
    "robustness",
    "sensitivities",
    "tables_for_report",
]

READS: tuple[Table, ...] = (*NEEDED, levels.BRAIN_CEILING, CONTROL_AVAILABILITY, MODEL_INVENTORY)
"""Tables that `robustness` needs."""
READS_DECIDED: tuple[Table, ...] = (*DECIDED, CONTROL_AVAILABILITY, MODEL_INVENTORY)
"""Tables that `robustness` needs if it decides nothing again."""
READS_IF_THERE: tuple[Table, ...] = (BRAIN_AS_MODEL,)
"""Tables that are used if a run has them."""
MAX_CLAIM_DECISIONS = 20_000
"""Claims that a report decides again at most; a thousand take about a second."""
_OTHER_CHOICES = 3
"""Choices of controls other than omitting one: the other rule, temporal ones only, nuisance only."""


def robustness(
    tables: Mapping[str, pl.DataFrame],
    *,
    gates: GatesConfig,
    primary_metric: str,
    seed: int,
    tell: Callable[[str], None] = lambda _: None,
    decide_again: bool = True,
) -> dict[str, pl.DataFrame]:
    """What the verdicts of a run depend on; nothing is fitted again.

    ``tables`` are those of `READS`, and of `READS_IF_THERE` if the run has them; ``gates``, ``primary_metric`` and
    ``seed`` are the run's. Returns the tables of `lpact.analyses.lpact.tables.robustness` by full name. ``tell`` is
    called with the name of each step. Without ``decide_again`` the run's own decision is taken as stored, ``tables``
    are those of `READS_DECIDED`, and only tables that need no other decision are returned.
    """
    for table in READS if decide_again else READS_DECIDED:
        require_known(table.name, tables, "table", where="tables of the run", error=TableError)
    if decide_again:
        run: DecidedRun = Decider(tables, gates, primary_metric, tell)
    else:
        base = {table.name: validate(tables[table.name], table) for table in DECIDED}
        run = DecidedRun(tables, base, gates, primary_metric)
    quantities = uncertainty.level_quantities(run)
    mechanisms = uncertainty.mechanism_quantities(run.base)
    shown = [*quantities, *uncertainty.brain_as_model_quantities(tables)]
    by_level = uncertainty.uncertainty_by_level(shown, run.datasets, seed=seed)
    without_run = uncertainty.leave_one_subject_run_out(quantities, run.datasets)
    made = {
        results.CONVENTIONAL_CONTRAST: conventional_contrast(run),
        results.UNCERTAINTY: by_level,
        results.CAUSAL_UNCERTAINTY: uncertainty.uncertainty_by_mechanism(mechanisms, seed=seed),
        results.LEAVE_SUBJECT_RUN_OUT: without_run,
        results.MODEL_SUMMARY: model_summary(run),
    }
    if isinstance(run, Decider):
        ablation = Ablation(run)
        made |= {
            results.THRESHOLD_SENSITIVITY: changes.threshold_sensitivity(run, ablation, by_level),
            results.CONTROL_ABLATION: ablation.table(),
            results.LEAVE_DATASET_OUT: changes.leave_one_dataset_out(run),
            results.SUBJECT_RUN_DECISIONS: changes.leave_one_subject_run_out_decisions(run),
        }
    return {table.name: made[table] for table in results.TABLES if table in made}


def n_claim_decisions(tables: Mapping[str, pl.DataFrame]) -> int:
    """Claims that `robustness` decides again at most, over thresholds, controls and subject-runs.

    A subject-run affects the claims of its dataset alone. Leaving a dataset out evaluates no gate again.
    """
    deltas = tables[levels.CONTROL_DELTAS.name]
    claims = list_claims(list_layers(deltas), tables[levels.SPECIFICITY.name])
    n_controls = len({name for names in control_names(tables).values() for name in names})
    n_thresholds = len(changes.RELIABILITIES) + len(changes.FRACTIONS) + len(changes.DIRECTIONS)
    runs = deltas.select(RECORDING_KEY).unique()["dataset"].to_list()
    everywhere = n_thresholds + n_controls + _OTHER_CHOICES
    return sum(everywhere + runs.count(claim[0]) for claim in claims)


def tables_for_report(
    config: LPactConfig, tables: Mapping[str, pl.DataFrame], tell: Callable[[str], None]
) -> dict[str, pl.DataFrame]:
    """Uncertainty of the verdicts; and, unless that takes minutes, the verdicts under other thresholds and data."""
    again = n_claim_decisions(tables) <= MAX_CLAIM_DECISIONS
    reads = [*(READS if again else READS_DECIDED), *READS_IF_THERE]
    return robustness(
        {table.name: tables[table.name] for table in reads if table.name in tables},
        gates=config.gates,
        primary_metric=config.readout.primary_metric,
        seed=config.seed,
        tell=tell,
        decide_again=again,
    )


_WEAKER_RULES = {
    "raw_predictive_pearson": (
        "real_score > 0, metric pearson",
        "predictive",
        "a positive score can be nuisance or autocorrelation",
    ),
    "nuisance_only_improvement": (
        "delta_nuisance > 0, all metrics",
        "severe_control_level1",
        "beating nuisance is not beating the severe controls",
    ),
    "raw_relational_similarity": (
        "real_similarity > 0",
        "relational",
        "control patterns resemble the brain's as well",
    ),
    "raw_stripping_drop": (
        "drop > 0, all targets",
        "mechanism_specific",
        "any strip can cost score; it must cost the matching target most",
    ),
    "pairwise_double_dissociation": (
        "both matching drops positive and above the crossed ones",
        "mechanism_specific",
        "diagnostic only; it enters no gate",
    ),
    "raw_ceiling_fraction": (
        "fraction_of_ceiling >= {minimum:g}",
        "ceiling",
        "the fraction must survive the contrast with the best control",
    ),
    "integrated_decision": (
        "a raw positive at any level",
        "integrated",
        "a claim must pass every gate; nothing compensates",
    ),
}
"""Rule, gate that requires more, and why, by what the rule looks at; all but the last count rows."""


def conventional_contrast(run: DecidedRun) -> pl.DataFrame:
    """What weaker rules call positive, and how much of it passes."""
    minimum = run.gates.min_ceiling_fraction
    level1, level2 = run.base[levels.CONTROL_DELTAS.name], run.base[levels.PROFILE_DELTAS.name]
    drops, pairs = run.base[levels.STRIPPING_DELTAS.name], run.base[levels.DISSOCIATIONS.name]
    pearson, ceiling = level1.filter(metric="pearson"), run.base[levels.NORMALIZED_SCORES.name]
    dissociated = pairs["double_dissociation"]
    counted = [
        (pearson["real_score"] > 0, pearson["gate_pass"]),
        (level1["delta_nuisance"] > 0, level1["gate_pass"]),
        (level2["real_similarity"] > 0, level2["gate_pass"]),
        (drops["drop"] > 0, drops["gate_pass"]),
        (dissociated, dissociated & False),
        (ceiling["fraction_of_ceiling"] >= minimum, ceiling["gate_pass"]),
    ]
    rows = []
    for profile in run.profiles:
        claims = run.decisions.filter(gate_profile=profile)
        flags = [*counted, (claims["raw_positive"], claims["integrated"])]
        for (analysis, about), (positive, passed) in zip(_WEAKER_RULES.items(), flags, strict=True):
            rule, gate, meaning = about
            rows.append(
                {
                    "analysis": analysis,
                    "gate_profile": profile,
                    "rule": rule.format(minimum=minimum),
                    "counted": "claims" if gate == "integrated" else "rows",
                    "n_positive": int(positive.sum()),
                    "n_total": len(positive),
                    "n_lpact_pass": int(passed.sum()),
                    "n_claims": claims.height,
                    "n_claims_pass": int(claims[gate].sum()),
                    "gate": gate,
                    "interpretation": meaning,
                }
            )
    return validate(frame(results.CONVENTIONAL_CONTRAST, rows), results.CONVENTIONAL_CONTRAST)


def model_summary(run: DecidedRun) -> pl.DataFrame:
    """One row per model of the study file, from the audit's inventory and the claims."""
    inventory = run.tables[MODEL_INVENTORY.name].sort(MODEL_INVENTORY.key)
    all_claims = run.decisions.select(CLAIM_KEY).unique()
    rows: list[dict[str, Any]] = []
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
    return validate(frame(results.MODEL_SUMMARY, rows), results.MODEL_SUMMARY)
