"""Hand-made studies for the robustness analyses: the decision's own, and what the analyses read beside them."""

from __future__ import annotations

from typing import Any

import polars as pl
from synthetic_tables import (
    CEILING,
    CONTROL_DELTAS,
    CONTROL_SCORES,
    GATES,
    NULLS,
    PROFILE_DELTAS,
    SIMILARITIES,
    SUBJECT_RUNS,
    Tables,
    passing_tables,
    put,
)

from lpact.analyses.lpact.robustness import robustness
from lpact.analyses.lpact.robustness.decide_again import Decider
from lpact.store import frame
from lpact.tables import CONTEXT_KEY, find_table

BRAIN_CEILING = "ceilings/brain_brain_ceiling"
AVAILABILITY = "audits/lpact_control_availability"
INVENTORY = "controls/main_table_model_inventory"

CONTRAST = "controls/main_table_conventional_vs_lpact_contrast"
UNCERTAINTY = "controls/main_table_lpact_uncertainty_by_dataset_level"
BY_MECHANISM = "controls/si_table_causal_uncertainty_by_mechanism"
THRESHOLDS = "controls/main_table_gate_threshold_sensitivity"
ABLATION = "controls/main_table_control_family_ablation"
WITHOUT_DATASET = "controls/main_table_leave_one_dataset_out_summary"
WITHOUT_RUN = "controls/main_table_leave_one_subject_run_out_summary"
RUN_DECISIONS = "controls/leave_one_subject_run_out_decisions"
MODELS = "controls/model_inventory_summary"


def passing_study(**changed: Any) -> Tables:
    """One layer that passes every gate of the paper profile; contrasts follow from the stored scores."""
    tables = passing_tables(**changed)
    dataset, model = changed.get("dataset", "demo"), changed.get("model", "gpt2")
    layer, runs = changed.get("layer", 8), changed.get("runs", ("1", "2", "3", "4", "5"))
    ceilings = [
        {
            "dataset": dataset,
            "subject": "01",
            "session": "a",
            "run": run,
            "mode": "run_to_run",
            "kind": "profile",
            "alignment": "linear",
            "profile": "pearson",
            "valid": True,
            "reason": "ok",
            "reliability": 0.8,
            "reliability_spearman_brown": 0.9,
            "n_partners": 4,
            "n_units_shared": 5,
            "alone": False,
        }
        for run in runs
    ]
    available = [
        {
            "dataset": dataset,
            "model": model,
            "layer": layer,
            "control": control,
            "available": True,
            "reason": "ok",
            "detail": "",
            "draws": 20,
            "counted": control != "static_embedding",
        }
        for control in CONTROL_SCORES
    ]
    offered = {
        "model": model,
        "dataset": dataset,
        "source": "precomputed",
        "layers_offered": [0, layer],
        "layers_claimed": [layer],
        "contexts_offered": ["full"],
        "n_features": [10],
        "included": True,
        "reason": "ok",
    }
    beside = {BRAIN_CEILING: ceilings, AVAILABILITY: available, INVENTORY: [offered]}
    return contrasted(tables | {name: frame(find_table(name), rows) for name, rows in beside.items()})


def with_control(
    tables: Tables, control: str, *, score: float | None = None, similarity: float | None = None
) -> Tables:
    """The study with another score of a control at level 1, or another similarity at level 2."""
    if score is not None:
        tables = put(tables, NULLS, pl.col("control") == control, control_score=score)
    if similarity is not None:
        tables = put(tables, SIMILARITIES, pl.col("condition") == control, similarity=similarity)
    return contrasted(tables)


def contrasted(tables: Tables) -> Tables:
    """Contrasts with the best counted control, by the rule `max`, from the scores."""
    level1, level2 = [*CONTEXT_KEY, "metric"], [*CONTEXT_KEY, "unit", "alignment", "profile"]
    real = tables[CONTROL_DELTAS].select(*level1, "real_score")
    nulls = (
        tables[NULLS]
        .join(real, on=level1, maintain_order="left")
        .with_columns(delta=pl.col("real_score") - pl.col("control_score"))
        .drop("real_score")
    )
    best = _best(nulls.filter("counted"), level1, "control", "control_score")
    deltas = (
        tables[CONTROL_DELTAS]
        .drop("best_control", "best_control_score")
        .join(best, on=level1, maintain_order="left")
        .with_columns(delta_control=pl.col("real_score") - pl.col("best_control_score"))
    )
    rivals = tables[SIMILARITIES].filter(pl.col("counted") & (pl.col("condition") != "real"))
    best2 = _best(rivals, level2, "condition", "similarity")
    profile = (
        tables[PROFILE_DELTAS]
        .drop("best_control", "best_control_similarity")
        .join(best2, on=level2, maintain_order="left")
        .with_columns(delta_rel=pl.col("real_similarity") - pl.col("best_control_similarity"))
    )
    ceiling = (
        tables[CEILING]
        .drop("delta_rel")
        .join(profile.select(*level2, "delta_rel"), on=level2, maintain_order="left")
        .with_columns(delta_fraction=pl.col("delta_rel") / pl.col("reliability"))
    )
    summary = (
        tables[SUBJECT_RUNS]
        .drop("delta_control")
        .join(deltas.select(*level1, "delta_control"), on=level1, maintain_order="left")
    )
    return tables | {
        NULLS: nulls,
        CONTROL_DELTAS: deltas,
        PROFILE_DELTAS: profile,
        CEILING: ceiling,
        SUBJECT_RUNS: summary,
    }


def _best(scores: pl.DataFrame, key: list[str], name: str, value: str) -> pl.DataFrame:
    suffix = "best_control_score" if value == "control_score" else "best_control_similarity"
    ranked = scores.sort(value, descending=True, maintain_order=True)
    first = ranked.unique(key, keep="first", maintain_order=True)
    return first.select(*key, pl.col(name).alias("best_control"), pl.col(value).alias(suffix))


def analysed(tables: Tables, **gates: Any) -> Tables:
    """All robustness tables, with the default thresholds or some of them changed."""
    return robustness(tables, gates=GATES.model_copy(update=gates), primary_metric="pearson", seed=1)


def decider(tables: Tables, **gates: Any) -> Decider:
    """What single analyses are made from."""
    return Decider(tables, GATES.model_copy(update=gates), "pearson")


def row(table: pl.DataFrame, **where: Any) -> dict[str, Any]:
    """The one row of a table with these values."""
    found = table.filter(**where)
    assert found.height == 1, found
    return found.row(0, named=True)
