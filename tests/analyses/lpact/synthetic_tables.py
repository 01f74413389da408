"""A small study whose only claim layer passes every gate; tests break it one number at a time."""

from __future__ import annotations

from itertools import product
from typing import Any

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates import decide
from lpact.store import frame
from lpact.tables import find_table

GATES = GatesConfig()
RUNS = ("1", "2", "3", "4", "5")
UNITS = ("u1", "u2", "u3", "u4", "u5")
ALIGNMENTS = ("linear", "rsa")
PROFILES = ("pearson", "cosine")
METHODS = ("feature_zeroing", "feature_residualization", "layer_ablation", "context_reset")
MECHANISMS = ("context_update", "surprisal")
METRICS = ("pearson", "r2")

FEASIBILITY = "audits/lpact_evidence_feasibility"
CONTROL_DELTAS = "predictive/predictive_control_deltas"
NULLS = "predictive/predictive_control_nulls"
SCORES = "predictive/predictive_scores"
BLOCKS = "predictive/predictive_block_scores"
RELATIONAL_NULLS = "relational/relational_null_draws"
BLOCK_DROPS = "causal/causal_block_drops"
SUBJECT_RUNS = "predictive/predictive_subject_run_summary"
FAILURE_MODES = "predictive/predictive_failure_modes"
SIMILARITIES = "relational/profile_similarity_scores"
PROFILE_DELTAS = "relational/profile_similarity_deltas"
RELATIONAL_SUMMARY = "relational/relational_subject_run_summary"
STRIPPING_DELTAS = "causal/causal_stripping_deltas"
SPECIFICITY = "causal/mechanism_specificity_summary"
DISSOCIATIONS = "causal/double_dissociation_tests"
CEILING = "ceilings/ceiling_normalized_scores"
DECISIONS = "decisions/lpact_decision_table"
EVIDENCE = "decisions/lpact_gate_evidence"
EXPLAINED = "decisions/control_explained_results"
SUMMARY = "decisions/lpact_decision_summary"
OUTCOME = "decisions/lpact_study_outcome"

Tables = dict[str, pl.DataFrame]

# Static embeddings beat the model everywhere, and are not counted.
CONTROL_SCORES = {"circular_shift": 0.06, "random_matched_dim": 0.01, "static_embedding": 0.4}
CONTROL_SIMILARITIES = {
    "circular_shift": 0.3,
    "random_matched_dim": 0.05,
    "static_embedding": 0.9,
}
COUNTED = {"real", "circular_shift", "random_matched_dim"}
SURROGATES = {"circular_shift", "random_matched_dim"}
N_DRAWS = 20
RANDOM = "random_direction"
N_BLOCKS = 4


def passing_tables(
    *, dataset: str = "demo", model: str = "gpt2", layer: int = 8, runs: tuple[str, ...] = RUNS
) -> Tables:
    """Measured tables of one layer that passes every gate."""
    contexts = [
        {
            "dataset": dataset,
            "subject": "01",
            "session": "a",
            "run": run,
            "model": model,
            "layer": layer,
        }
        for run in runs
    ]
    rows = {
        FEASIBILITY: [_feasibility(dataset)],
        CONTROL_DELTAS: [_control_delta(c, m) for c, m in product(contexts, METRICS)],
        NULLS: [_null(c, m, n) for c, m, n in product(contexts, METRICS, CONTROL_SCORES)],
        SCORES: [
            _score(c, condition, draw)
            for c in contexts
            for condition in ("real", *SURROGATES)
            for draw in range(1 if condition == "real" else N_DRAWS)
        ],
        BLOCKS: [
            {
                **c,
                "stimulus": "story",
                "condition": name,
                "metric": "pearson",
                "scores": _block_scores(name, score),
            }
            for c in contexts
            for name, score in {"real": 0.1, "nuisance": 0.05, **CONTROL_SCORES}.items()
        ],
        RELATIONAL_NULLS: [
            {**c, **s, **_relational_null(test, against)}
            for c, s, (test, against) in product(contexts, _summaries(), RELATIONAL_TESTS)
        ],
        BLOCK_DROPS: [
            {
                **c,
                "stimulus": "story",
                "method": m,
                "stripped": k,
                "target": t,
                "beside": beside,
                "drops": _block_drops(k, t),
            }
            for c, m, k, t in product(contexts, METHODS, (*MECHANISMS, RANDOM), MECHANISMS)
            for beside in (("nothing",) if k == RANDOM else ("nothing", "nuisance"))
        ],
        SUBJECT_RUNS: [
            {**c, "metric": m, "real_score": 0.1, "delta_nuisance": 0.05, "delta_control": 0.04}
            for c, m in product(contexts, METRICS)
        ],
        SIMILARITIES: [
            _similarity({**c, **s, "unit": u}, condition)
            for c, u, s, condition in product(contexts, UNITS, _summaries(), ("real", *CONTROL_SIMILARITIES))
        ],
        PROFILE_DELTAS: [_profile_delta({**c, **s, "unit": u}) for c, u, s in product(contexts, UNITS, _summaries())],
        RELATIONAL_SUMMARY: [
            {
                **c,
                **s,
                "n_units": len(UNITS),
                "mean_real_similarity": 0.5,
                "mean_delta_rel": 0.2,
                "reason": "ok",
            }
            for c, s in product(contexts, _summaries())
        ],
        STRIPPING_DELTAS: [
            _stripping_delta({**c, "method": m, "stripped": k, "target": t})
            for c, m, k, t in product(contexts, METHODS, MECHANISMS, MECHANISMS)
        ],
        SPECIFICITY: [
            _specificity({**c, "method": m, "stripped": k}) for c, m, k in product(contexts, METHODS, MECHANISMS)
        ],
        DISSOCIATIONS: [
            {
                **c,
                "mechanism_a": MECHANISMS[0],
                "mechanism_b": MECHANISMS[1],
                "drop_aa": 0.03,
                "drop_ab": 0.01,
                "drop_ba": 0.01,
                "drop_bb": 0.03,
                "reason": "ok",
            }
            for c in contexts
        ],
        CEILING: [_ceiling({**c, **s, "unit": u}) for c, u, s in product(contexts, UNITS, _summaries())],
    }
    return {name: frame(find_table(name).measured(), table) for name, table in rows.items()}


RELATIONAL_TESTS = (
    ("surrogate", "circular_shift"),
    ("surrogate", "random_matched_dim"),
    ("unit_order", "unit_order"),
    ("swap", "nuisance"),
    ("swap", "static_embedding"),
)


def _block_scores(condition: str, score: float) -> list[float]:
    """The real score differs a little from block to block."""
    return [score + (0.01 * b if condition == "real" else 0.0) for b in range(N_BLOCKS)]


def _score(context: dict[str, Any], condition: str, draw: int) -> dict[str, Any]:
    """Draws of a surrogate lie evenly around its score, 0.01 wide."""
    score = 0.1 if condition == "real" else CONTROL_SCORES[condition] + 0.01 * (draw / (N_DRAWS - 1) - 0.5)
    return {
        **context,
        "condition": condition,
        "draw": draw,
        "metric": "pearson",
        "score_median": score,
        "score_mean": score,
        "n_units": len(UNITS),
        "n_units_finite": len(UNITS),
        "n_train_min": 500,
        "n_test_min": 100,
        "n_features": 10,
        "reason": "ok",
    }


def _relational_null(test: str, against: str) -> dict[str, Any]:
    """Observed 0.5 among draws from −0.1 to 0.1; static embeddings are ahead of the model."""
    ahead = -0.4 if against == "static_embedding" else 0.4
    draws = [0.2 * (draw / (N_DRAWS - 1) - 0.5) for draw in range(N_DRAWS)]
    return {
        "test": test,
        "against": against,
        "observed": 0.5,
        "draws": draws,
        "advantage": ahead,
        "reason": "ok",
    }


def _block_drops(stripped: str, target: str) -> list[float]:
    if stripped == target:
        return [0.03 + 0.002 * b for b in range(N_BLOCKS)]
    return [0.005 if stripped == RANDOM else 0.01] * N_BLOCKS


def _summaries() -> list[dict[str, str]]:
    return [{"alignment": a, "profile": p} for a, p in product(ALIGNMENTS, PROFILES)]


def _feasibility(dataset: str) -> dict[str, Any]:
    counts = (
        "n_subjects n_runs n_stimuli n_subject_runs n_subject_runs_excluded n_brain_units n_models "
        "n_mechanisms n_relational_runs n_stripping_runs"
    )
    flags = "has_brain has_words has_features has_controls has_reliability has_coverage chain_complete"
    return {
        "dataset": dataset,
        "reader": "simulated",
        "configured_role": "primary",
        "role": "primary",
        "confirmatory": True,
        "role_reason": "ok",
        "role_detail": "",
        **dict.fromkeys(counts.split(), 5),
        **dict.fromkeys(flags.split(), True),
        "source": "made up",
        "version": "1",
        "licence": "none",
    }


def _control_delta(context: dict[str, Any], metric: str) -> dict[str, Any]:
    return {
        **context,
        "metric": metric,
        "real_score": 0.1,
        "nuisance_score": 0.05,
        "delta_nuisance": 0.05,
        "best_control": "circular_shift",
        "best_control_score": 0.06,
        "delta_control": 0.04,
        "nuisance_plus_model_score": 0.12,
        "delta_incremental": 0.07,
        "n_controls": 2,
        "n_train_min": 500,
        "n_test_min": 100,
        "confirmatory": True,
        "reason": "ok",
    }


def _null(context: dict[str, Any], metric: str, control: str) -> dict[str, Any]:
    return {
        **context,
        "metric": metric,
        "control": control,
        "counted": control in COUNTED,
        "random": True,
        "surrogate": control in SURROGATES,
        "n_draws": 20,
        "control_score": CONTROL_SCORES[control],
        "control_sd": 0.01,
        "delta": 0.1 - CONTROL_SCORES[control],
        "p_value": 0.05,
        "q_value": 0.05,
        "reason": "ok",
    }


def _similarity(key: dict[str, Any], condition: str) -> dict[str, Any]:
    return {
        **key,
        "condition": condition,
        "counted": condition in COUNTED,
        "similarity": 0.5 if condition == "real" else CONTROL_SIMILARITIES[condition],
        "n_draws": 1,
    }


def _profile_delta(key: dict[str, Any]) -> dict[str, Any]:
    return {
        **key,
        "brain_patterns_from": "same_run",
        "model_unit_order_hash": "abc",
        "brain_unit_order_hash": "abc",
        "split_half_reliability": 0.7,
        "real_similarity": 0.5,
        "best_control": "circular_shift",
        "best_control_similarity": 0.3,
        "delta_rel": 0.2,
        "confirmatory": True,
        "reason": "ok",
    }


def _stripping_delta(key: dict[str, Any]) -> dict[str, Any]:
    matching = key["stripped"] == key["target"]
    drop = 0.03 if matching else 0.01
    return {
        **key,
        "matching": matching,
        "real_score": 0.1,
        "stripped_score": 0.1 - drop,
        "drop": drop,
        "confirmatory": True,
        "reason": "ok",
    }


def _specificity(key: dict[str, Any]) -> dict[str, Any]:
    other = next(m for m in MECHANISMS if m != key["stripped"])
    return {
        **key,
        "matching_drop": 0.03,
        "best_nonmatching_target": other,
        "best_nonmatching_drop": 0.01,
        "margin": 0.02,
        "mismatch_kind": "random_direction",
        "mismatch_drop": 0.005,
        "mismatch_margin": 0.025,
        "n_targets": 2,
        "confirmatory": True,
        "reason": "ok",
    }


def _ceiling(key: dict[str, Any]) -> dict[str, Any]:
    return {
        **key,
        "mode": "run_to_run",
        "reliability": 0.8,
        "split_half_alone": False,
        "real_similarity": 0.5,
        "delta_rel": 0.2,
        "fraction_of_ceiling": 0.625,
        "delta_fraction": 0.25,
        "confirmatory": True,
        "reason": "ok",
    }


def put(tables: Tables, name: str, where: pl.Expr | None = None, **values: Any) -> Tables:
    """Return the tables with columns of one table set to ``values`` in the rows where ``where`` holds."""
    chosen = pl.lit(True) if where is None else where
    changed = tables[name].with_columns(
        pl.when(chosen)
        .then(value if isinstance(value, pl.Expr) else pl.lit(value))
        .otherwise(pl.col(column))
        .cast(tables[name].schema[column])
        .alias(column)
        for column, value in values.items()
    )
    return {**tables, name: changed}


def make_diagnostic(tables: Tables, role: str = "secondary") -> Tables:
    """Return the tables as if the dataset had another role."""
    out = put(
        tables,
        FEASIBILITY,
        confirmatory=False,
        role=role,
        role_reason="role_not_confirmatory",
        role_detail="",
    )
    for name, table in out.items():
        if "confirmatory" in table.columns and name != FEASIBILITY:
            out = put(out, name, confirmatory=False)
    return out


def stack(*studies: Tables) -> Tables:
    """Return several studies' tables as one study."""
    return {name: pl.concat([study[name] for study in studies]).unique(maintain_order=True) for name in studies[0]}


def decided(tables: Tables, profile: str = "paper", **gates: Any) -> Tables:
    """Decide with the default thresholds, or some of them changed; verdicts of one gate profile."""
    found = decide(tables, gates=GATES.model_copy(update=gates), primary_metric="pearson")
    return {
        name: table.filter(gate_profile=profile) if "gate_profile" in table.columns else table
        for name, table in found.items()
    }


def claim_row(tables: Tables, mechanism: str = "surprisal", profile: str = "paper", **gates: Any) -> dict[str, Any]:
    """Return the decision row of the one layer and ``mechanism``."""
    rows = decided(tables, profile, **gates)[DECISIONS].filter(pl.col("mechanism") == mechanism)
    return rows.row(0, named=True)
