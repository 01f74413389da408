"""Level 1: do the real features predict held-out responses beyond nuisance and every severe control?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.conditions import REAL, best_control, build_controls
from lpact.analyses.lpact.levels.readouts import (
    NUISANCE,
    NUISANCE_PLUS_MODEL,
    ContextReadouts,
    UnitScores,
)
from lpact.analyses.lpact.tables.levels import (
    BLOCK_SCORES,
    CONTROL_DELTAS,
    CONTROL_NULLS,
    PREDICTIVE_SCORES,
    SUBJECT_RUN_SUMMARY,
    UNIT_SCORES,
)
from lpact.codes import Reason
from lpact.inputs.prepare import Prepared
from lpact.math.ridge import METRICS
from lpact.math.types import FloatArray
from lpact.stats import benjamini_hochberg, rank_p_values
from lpact.store import frame

Scores = dict[tuple[str, int], UnitScores]
"""Unit scores by (condition, draw), then metric."""


def run(
    *,
    config: LPactConfig,
    prepared: Prepared,
    model: str,
    layer: int,
    confirmatory: bool,
    readouts: ContextReadouts,
) -> dict[str, pl.DataFrame]:
    """Contrast one context's scores under every condition."""
    scores, n_features = readouts.scores, readouts.n_features
    key = {**prepared.key, "model": model, "layer": layer}
    deltas, nulls = _contrasts(key, scores, config, prepared, confirmatory)
    summary = [
        {k: row[k] for k in (*key, "metric", "real_score", "delta_nuisance", "delta_control")}
        for row in deltas
    ]
    return {
        PREDICTIVE_SCORES.name: frame(
            PREDICTIVE_SCORES, _score_rows(key, scores, n_features, prepared)
        ),
        UNIT_SCORES.name: frame(UNIT_SCORES, _unit_rows(key, scores, prepared)),
        CONTROL_DELTAS.name: frame(CONTROL_DELTAS.measured(), deltas),
        CONTROL_NULLS.name: frame(CONTROL_NULLS, nulls),
        BLOCK_SCORES.name: frame(
            BLOCK_SCORES, _block_rows(key, prepared.id.stimulus, config, readouts)
        ),
        SUBJECT_RUN_SUMMARY.name: frame(SUBJECT_RUN_SUMMARY.measured(), summary),
    }


def _summary(values: FloatArray) -> tuple[float | None, float | None]:
    """Median and mean over units with a finite score."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None, None
    return float(np.median(finite)), float(np.mean(finite))


def _sizes(prepared: Prepared) -> dict[str, int]:
    folds = prepared.folds
    return {
        "n_train_min": min(len(folds.train_rows(b)) for b in range(folds.n_blocks)),
        "n_test_min": int(folds.test_sizes().min()),
    }


def _score_rows(
    key: Mapping[str, object],
    scores: Scores,
    n_features: Mapping[tuple[str, int], int],
    prepared: Prepared,
) -> list[dict[str, object]]:
    rows = []
    sizes = _sizes(prepared)
    for (condition, draw), by_metric in scores.items():
        for metric, values in by_metric.items():
            median, mean = _summary(values)
            rows.append(
                {
                    **key,
                    "condition": condition,
                    "draw": draw,
                    "metric": metric,
                    "score_median": median,
                    "score_mean": mean,
                    "n_units": len(values),
                    "n_units_finite": int(np.isfinite(values).sum()),
                    **sizes,
                    "n_features": n_features[condition, draw],
                    "reason": _reason(median is not None, n_features[condition, draw]),
                }
            )
    return rows


def _reason(complete: bool, n_features: int) -> Reason:
    if complete:
        return Reason.OK
    return Reason.UNDEFINED_SCORE if n_features else Reason.NUISANCE_NOT_OFFERED


def _unit_rows(
    key: Mapping[str, object], scores: Scores, prepared: Prepared
) -> list[dict[str, object]]:
    order = prepared.grid.units.order_hash()
    return [
        {
            **key,
            "condition": condition,
            "draw": draw,
            "metric": metric,
            "unit_order_hash": order,
            "scores": [float(v) if np.isfinite(v) else None for v in values],
        }
        for (condition, draw), by_metric in scores.items()
        for metric, values in by_metric.items()
    ]


def _block_rows(
    key: Mapping[str, object], stimulus: str, config: LPactConfig, readouts: ContextReadouts
) -> list[dict[str, object]]:
    """Scores in every outer block, averaged over the draws of a condition."""
    draws: dict[str, list[FloatArray]] = {}
    for (condition, _), fitted in readouts.fitted.items():
        if condition != NUISANCE_PLUS_MODEL:
            draws.setdefault(condition, []).append(fitted.blocks)
    return [
        {
            **key,
            "stimulus": stimulus,
            "condition": condition,
            "metric": config.readout.primary_metric,
            "scores": [float(v) if np.isfinite(v) else None for v in np.mean(blocks, axis=0)],
        }
        for condition, blocks in draws.items()
    ]


def _contrasts(
    key: Mapping[str, object],
    scores: Scores,
    config: LPactConfig,
    prepared: Prepared,
    confirmatory: bool,
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    controls = build_controls(config)
    sizes = _sizes(prepared)
    deltas: list[dict[str, object]] = []
    nulls: list[dict[str, object]] = []
    for metric in METRICS:
        median = {c: _summary(by[metric])[0] for c, by in scores.items()}
        real, nuisance, both = (median[c, 0] for c in (REAL, NUISANCE, NUISANCE_PLUS_MODEL))
        counted: dict[str, float] = {}
        for name, control in controls.items():
            draws = [v for (c, _), v in median.items() if c == name]
            if not draws:
                continue
            row = _null_row(real, draws, random=control.random)
            kind = {"counted": control.counted, "surrogate": control.surrogate}
            nulls.append({**key, "metric": metric, "control": name, **kind, **row})
            if control.counted and isinstance(row["control_score"], float):
                counted[name] = row["control_score"]
        index, best_scores = best_control(
            np.array(list(counted.values())).reshape(-1, 1), config.controls.best_control_rule
        )
        best = list(counted)[index[0]] if counted else None
        best_score = float(best_scores[0]) if counted else None
        complete = real is not None and nuisance is not None and best_score is not None
        deltas.append(
            {
                **key,
                "metric": metric,
                "real_score": real,
                "nuisance_score": nuisance,
                "delta_nuisance": _minus(real, nuisance),
                "best_control": best,
                "best_control_score": best_score,
                "delta_control": _minus(real, best_score),
                "nuisance_plus_model_score": both,
                "delta_incremental": _minus(both, nuisance),
                "n_controls": len(counted),
                **sizes,
                "confirmatory": confirmatory,
                "reason": _reason(complete, prepared.nuisance.shape[1]),
            }
        )
    return deltas, nulls


def _null_row(
    real: float | None, draws: Sequence[float | None], *, random: bool
) -> dict[str, object]:
    """Mean over draws and, for random controls, p = (1 + #{draws ≥ real}) / (1 + draws)."""
    finite = np.array([d for d in draws if d is not None])
    row: dict[str, object] = {"random": random, "n_draws": finite.size}
    row |= dict.fromkeys(("control_score", "control_sd", "delta", "p_value", "q_value"))
    if real is None or not finite.size:
        return row | {"reason": Reason.UNDEFINED_SCORE}
    score = float(finite.mean())
    return row | {
        "control_score": score,
        "control_sd": float(finite.std(ddof=1)) if finite.size > 1 else None,
        "delta": real - score,
        "p_value": float(rank_p_values(real, finite)) if random else None,
        "reason": Reason.OK,
    }


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def correct(nulls: pl.DataFrame) -> pl.DataFrame:
    """Fill ``q_value``: Benjamini–Hochberg over all rows of the study with the same metric."""
    p = nulls["p_value"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    q = np.full(len(p), np.nan)
    for metric in nulls["metric"].unique().sort():
        rows = (nulls["metric"] == metric).to_numpy()
        q[rows] = benjamini_hochberg(p[rows])
    return nulls.with_columns(pl.Series("q_value", q).fill_nan(None))
