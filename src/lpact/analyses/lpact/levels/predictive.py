"""Level 1: do the real features predict held-out responses beyond nuisance and every severe control?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from lpact.analyses.lpact.best_control import best_control
from lpact.analyses.lpact.levels.readouts import (
    NUISANCE,
    NUISANCE_PLUS_MODEL,
    REAL,
    Fitted,
    LayerInputs,
    LayerReadouts,
    build_controls,
    minus,
    nullable,
)
from lpact.analyses.lpact.tables import levels
from lpact.codes import Reason
from lpact.math.ridge import METRICS
from lpact.math.types import FloatArray
from lpact.stats import benjamini_hochberg, rank_p_values
from lpact.store import frame
from lpact.tables import Table

Row = dict[str, object]
Readouts = Mapping[tuple[str, int], Fitted]


def measure_predictive(layer: LayerInputs, readouts: LayerReadouts) -> dict[str, pl.DataFrame]:
    """Contrast one layer's scores under every condition."""
    key, fitted, folds = layer.key, readouts.fitted, layer.prepared.folds
    n_train = min(len(folds.train_rows(b)) for b in range(folds.n_blocks))
    sizes = {"n_train_min": n_train, "n_test_min": int(folds.test_sizes().min())}
    scores, unit_scores = _score_rows(layer, fitted, sizes)
    deltas, nulls = _contrasts(layer, fitted, sizes)
    kept = (*key, "metric", "real_score", "delta_nuisance", "delta_control")
    summary: list[Row] = [{k: row[k] for k in kept} for row in deltas]
    by_block: dict[str, list[FloatArray]] = {}
    for (condition, _), readout in fitted.items():
        if condition != NUISANCE_PLUS_MODEL:
            by_block.setdefault(condition, []).append(readout.blocks)
    place = {"stimulus": layer.prepared.id.stimulus, "metric": layer.config.readout.primary_metric}
    blocks: list[Row] = []
    for condition, draws in by_block.items():
        means = nullable(np.mean(draws, axis=0))
        blocks.append({**key, **place, "condition": condition, "scores": means})
    made: dict[Table, list[Row]] = {
        levels.PREDICTIVE_SCORES: scores,
        levels.UNIT_SCORES: unit_scores,
        levels.CONTROL_DELTAS: deltas,
        levels.CONTROL_NULLS: nulls,
        levels.BLOCK_SCORES: blocks,
        levels.SUBJECT_RUN_SUMMARY: summary,
    }
    return {table.name: frame(table.measured(), rows) for table, rows in made.items()}


def _summary(values: FloatArray) -> tuple[float | None, float | None]:
    """Median and mean over units with a finite score."""
    finite = values[np.isfinite(values)]
    return (float(np.median(finite)), float(np.mean(finite))) if finite.size else (None, None)


def _score_rows(layer: LayerInputs, fitted: Readouts, sizes: Mapping[str, int]) -> tuple[list[Row], list[Row]]:
    """Scores over units, and those of every unit, by condition, draw and metric."""
    rows: list[Row] = []
    unit_rows: list[Row] = []
    order = layer.prepared.grid.units.order_hash()
    for (condition, draw), readout in fitted.items():
        for metric, values in readout.scores.items():
            median, mean = _summary(values)
            place = {**layer.key, "condition": condition, "draw": draw, "metric": metric}
            rows.append(
                {
                    **place,
                    "score_median": median,
                    "score_mean": mean,
                    "n_units": len(values),
                    "n_units_finite": int(np.isfinite(values).sum()),
                    **sizes,
                    "n_features": readout.n_features,
                    "reason": _reason(median is not None, readout.n_features),
                }
            )
            unit_rows.append({**place, "unit_order_hash": order, "scores": nullable(values)})
    return rows, unit_rows


def _reason(complete: bool, n_features: int) -> Reason:
    if complete:
        return Reason.OK
    return Reason.UNDEFINED_SCORE if n_features else Reason.NUISANCE_NOT_OFFERED


def _contrasts(layer: LayerInputs, fitted: Readouts, sizes: Mapping[str, int]) -> tuple[list[Row], list[Row]]:
    """Real features against nuisance and the best control, and against every control, by metric."""
    key, config = layer.key, layer.config
    deltas: list[Row] = []
    nulls: list[Row] = []
    for metric in METRICS:
        median = {c: _summary(readout.scores[metric])[0] for c, readout in fitted.items()}
        real, nuisance, both = (median[c, 0] for c in (REAL, NUISANCE, NUISANCE_PLUS_MODEL))
        counted: dict[str, float] = {}
        for name, control in build_controls(config).items():
            draws = [v for (c, _), v in median.items() if c == name]
            if not draws:
                continue
            row = _null_row(real, draws, random=control.random)
            kind = {"counted": control.counted, "surrogate": control.surrogate}
            nulls.append({**key, "metric": metric, "control": name, **kind, **row})
            if control.counted and isinstance(row["control_score"], float):
                counted[name] = row["control_score"]
        scores = np.array(list(counted.values())).reshape(-1, 1)
        index, best_scores = best_control(scores, config.controls.best_control_rule)
        best = list(counted)[index[0]] if counted else None
        best_score = float(best_scores[0]) if counted else None
        complete = real is not None and nuisance is not None and best_score is not None
        deltas.append(
            {
                **key,
                "metric": metric,
                "real_score": real,
                "nuisance_score": nuisance,
                "delta_nuisance": minus(real, nuisance),
                "best_control": best,
                "best_control_score": best_score,
                "delta_control": minus(real, best_score),
                "nuisance_plus_model_score": both,
                "delta_incremental": minus(both, nuisance),
                "n_controls": len(counted),
                **sizes,
                "confirmatory": layer.confirmatory,
                "reason": _reason(complete, layer.prepared.nuisance.shape[1]),
            }
        )
    return deltas, nulls


def _null_row(real: float | None, draws: Sequence[float | None], *, random: bool) -> Row:
    """Mean over draws and, for random controls, p = (1 + #{draws ≥ real}) / (1 + draws)."""
    finite = np.array([d for d in draws if d is not None])
    row: Row = {"random": random, "n_draws": finite.size}
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


def with_q_values(nulls: pl.DataFrame) -> pl.DataFrame:
    """Fill ``q_value``: Benjamini–Hochberg over all rows of the study with the same metric."""
    p = nulls["p_value"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    q = np.full(len(p), np.nan)
    for metric in nulls["metric"].unique().sort():
        rows = (nulls["metric"] == metric).to_numpy()
        q[rows] = benjamini_hochberg(p[rows])
    return nulls.with_columns(pl.Series("q_value", q).fill_nan(None))
