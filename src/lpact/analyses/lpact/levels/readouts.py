"""All readouts of one context: real features, every draw of every severe control, and nuisance features.

Levels 1 to 3 use the same held-out readouts, which are fitted once. Controls that reorder the real rows are fitted by
reordering the responses instead where that is the same for a readout, so that decompositions of the features are reused
(see docs/adr/0007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.conditions import REAL, Condition, conditions
from lpact.inputs.prepare import ModelOnGrid, Prepared, compute_settings, ridge_grid
from lpact.math.ridge import METRICS, NestedRidge, Readout, nested_ridge_draws
from lpact.math.types import FloatArray

NUISANCE = "nuisance"
NUISANCE_PLUS_MODEL = "nuisance_plus_model"

UnitScores = dict[str, FloatArray]
"""Held-out score of every unit, by metric."""


@dataclass(frozen=True)
class Fitted:
    """What is kept of a readout: scores of units by metric, and their median in every outer block, [F].

    The medians are at the study's primary metric; NaN where no unit has a score in a block.
    """

    scores: UnitScores
    blocks: FloatArray


@dataclass(frozen=True)
class ContextReadouts:
    """Readouts of one context by (condition, draw), the number of features behind each, and the real readout."""

    real: Readout
    fitted: dict[tuple[str, int], Fitted]
    n_features: dict[tuple[str, int], int]

    @property
    def scores(self) -> dict[tuple[str, int], UnitScores]:
        """Held-out scores of units."""
        return {key: fitted.scores for key, fitted in self.fitted.items()}

    @property
    def pearson(self) -> dict[tuple[str, int], FloatArray]:
        """Pearson scores of the real features, the controls and nuisance."""
        return {
            key: fitted.scores["pearson"]
            for key, fitted in self.fitted.items()
            if key[0] != NUISANCE_PLUS_MODEL
        }


def fit_nuisance(config: LPactConfig, prepared: Prepared) -> Fitted:
    """Scores of the nuisance features alone, the same for every model and layer; undefined where there are none."""
    if not prepared.nuisance.shape[1]:
        return _undefined(prepared)
    return _keep(config, _ridge(config, prepared).fit(prepared.nuisance))


def fit_context(
    config: LPactConfig,
    prepared: Prepared,
    model: ModelOnGrid,
    layer: int,
    nuisance: Fitted,
) -> ContextReadouts:
    """Fit one layer of one model under every condition."""
    fitted: dict[tuple[str, int], Fitted] = {}
    n_features: dict[tuple[str, int], int] = {}
    reordered: list[Condition] = []
    ridge = _ridge(config, prepared)
    real = ridge.fit(model.load(layer))
    for condition in conditions(config, prepared, model, layer):
        key = (condition.name, condition.draw)
        n_features[key] = condition.n_features
        if condition.name == REAL:
            fitted[key] = _keep(config, real)
        elif condition.on_responses:
            fitted[key] = _undefined(prepared)
            reordered.append(condition)
        else:
            fitted[key] = _keep(config, ridge.fit(condition.features))
    for condition, readout in zip(
        reordered, _fit_orders(config, prepared, model.load(layer), reordered), strict=True
    ):
        fitted[condition.name, condition.draw] = _keep(config, readout)

    n_nuisance = prepared.nuisance.shape[1]
    fitted[NUISANCE, 0], n_features[NUISANCE, 0] = nuisance, n_nuisance
    both, n_features[NUISANCE_PLUS_MODEL, 0] = _undefined(prepared), 0
    if n_nuisance:
        features = np.hstack([prepared.nuisance, model.load(layer)])
        both, n_features[NUISANCE_PLUS_MODEL, 0] = (
            _keep(config, ridge.fit(features)),
            features.shape[1],
        )
    fitted[NUISANCE_PLUS_MODEL, 0] = both
    return ContextReadouts(real, fitted, n_features)


def _ridge(config: LPactConfig, prepared: Prepared) -> NestedRidge:
    """Readouts of a recording. Equal features have equal scores to the last bit, so that a tie stays a tie."""
    return NestedRidge(
        prepared.grid.responses,
        prepared.folds,
        ridge_grid(config.readout, prepared),
        compute=compute_settings(config.readout),
    )


def _fit_orders(
    config: LPactConfig, prepared: Prepared, features: FloatArray, reordered: Sequence[Condition]
) -> list[Readout]:
    """Readouts of controls that are the real rows in another order, on one set of decompositions."""
    orders = [np.argsort(c.order) for c in reordered if c.order is not None]
    if not orders:
        return []
    return nested_ridge_draws(
        features,
        prepared.grid.responses,
        prepared.folds,
        ridge_grid(config.readout, prepared),
        orders,
        compute=compute_settings(config.readout),
    )


def _keep(config: LPactConfig, readout: Readout) -> Fitted:
    by_block = [row[np.isfinite(row)] for row in readout.fold_scores(config.readout.primary_metric)]
    blocks = np.array([np.median(row) if row.size else np.nan for row in by_block])
    return Fitted({metric: readout.scores(metric) for metric in METRICS}, blocks)


def _undefined(prepared: Prepared) -> Fitted:
    """Nothing to predict from is no baseline: every score is undefined."""
    n_units = len(prepared.grid.units.ids)
    scores = {metric: np.full(n_units, np.nan) for metric in METRICS}
    return Fitted(scores, np.full(prepared.folds.n_blocks, np.nan))
