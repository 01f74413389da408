"""Fit at the chosen settings, predict the held-out blocks, and collect the results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpact.math.ridge.compute import Array
from lpact.math.ridge.engine import Engine, Loaded
from lpact.math.ridge.results import Readout, deviation_scores, empty_scores
from lpact.math.ridge.select import Choice
from lpact.math.types import FloatArray


class Collector:
    """Results of one draw, filled target by target."""

    def __init__(
        self, engine: Engine, responses: Array, metrics: Sequence[str], keep: Sequence[str]
    ) -> None:
        _, n_rows, n_targets = responses.shape
        n_blocks = engine.folds.n_blocks
        self.engine = engine
        self.metrics = tuple(metrics)
        self.lag, self.alpha, self.components = (
            np.empty((n_blocks, n_targets), dtype=np.int64) for _ in range(3)
        )
        self.pooled = empty_scores(self.metrics, n_targets)
        self.by_fold = empty_scores(self.metrics, n_blocks, n_targets)
        self.predictions = (
            {name: np.empty((n_rows, n_targets)) for name in ("observed", "predicted", "baseline")}
            if "predictions" in keep
            else None
        )
        self.weights: dict[str, FloatArray] | None = {} if "weights" in keep else None
        """[F, p, t], [F, m, t] and [F, t], made when the first are known."""

    def readout(self) -> Readout:
        """Everything found."""
        more: dict[str, FloatArray] = dict(self.predictions or {})
        more |= self.weights or {}
        return Readout(
            self.engine.folds,
            self.lag,
            self.alpha,
            np.asarray(self.engine.grid.components)[self.components],
            self.pooled,
            self.by_fold,
            **more,
        )


def refit(
    engine: Engine, loaded: Loaded, choices: list[Choice], collectors: list[Collector]
) -> None:
    """Fit every outer training set at the chosen settings, predict its block, and score."""
    be, folds = engine.be, engine.folds
    observed = be.empty(loaded.n_targets, folds.n_rows)
    predicted = be.empty(loaded.n_targets, folds.n_rows)
    collector = collectors[loaded.chunk[0].draw]
    keeps = collector.predictions is not None
    baseline = np.empty((folds.n_rows, loaded.n_targets)) if keeps else None
    for held, (rows,) in engine.tests.items():
        (block,) = held
        choice = choices[block]
        axes = engine.trained(held).axes
        projected, coefficients = engine.fitted(
            axes, loaded, choice.lag, choice.alpha, choice.components
        )
        columns = loaded.columns(choice.lag)
        scores, nuisance = axes.scores(rows)
        deviation = coefficients @ scores.T
        if nuisance is not None:
            deviation = deviation + projected.nuisance @ nuisance.T
        own = be.take(loaded.responses.rows[:, rows], columns, 0)
        observed[:, rows] = own - projected.mean[:, None]
        predicted[:, rows] = deviation
        if baseline is not None:
            mean = be.host(projected.mean) / loaded.responses.factor[columns]
            baseline[rows] = loaded.responses.offset[columns] + mean
        if collector.weights is not None:
            found = engine.raw_weights(axes, loaded, columns, projected, coefficients)
            _scatter_weights(loaded, block, [be.host(x) for x in found], collectors)
    pooled, by_fold = held_out_scores(engine, observed, predicted, collector.metrics)
    start = 0
    for part in loaded.chunk:
        here = slice(start, start + part.n_targets)
        start = here.stop
        own_collector = collectors[part.draw]
        for block, choice in enumerate(choices):
            own_collector.lag[block, part.targets] = choice.lag[here]
            own_collector.alpha[block, part.targets] = choice.alpha[here]
            own_collector.components[block, part.targets] = choice.components[here]
        for metric in own_collector.metrics:
            own_collector.pooled[metric][part.targets] = pooled[metric][here]
            own_collector.by_fold[metric][:, part.targets] = by_fold[metric][:, here]
    if baseline is not None:
        _scatter_predictions(engine, loaded, choices, predicted, baseline, collectors)


def held_out_scores(
    engine: Engine, observed: Array, predicted: Array, metrics: Sequence[str]
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Scores over all rows, and in every block."""
    be, folds = engine.be, engine.folds
    pooled = {metric: deviation_scores(be, observed, predicted, metric) for metric in metrics}
    blocks = [folds.rows(block) for block in range(folds.n_blocks)]
    by_fold = {
        metric: np.stack(
            [deviation_scores(be, observed[:, rows], predicted[:, rows], metric) for rows in blocks]
        )
        for metric in metrics
    }
    return pooled, by_fold


def _scatter_weights(
    loaded: Loaded, block: int, found: list[FloatArray], collectors: list[Collector]
) -> None:
    start = 0
    for part in loaded.chunk:
        here = slice(start, start + part.n_targets)
        start = here.stop
        weights, shape = collectors[part.draw].weights, collectors[part.draw].lag.shape
        if weights is None:
            continue
        for name, values in zip(("weights", "nuisance_weights", "intercept"), found, strict=True):
            if name not in weights:
                weights[name] = np.empty((shape[0], *values.shape[1:], shape[1]))
            weights[name][block, ..., part.targets] = values[here].T


def _scatter_predictions(
    engine: Engine,
    loaded: Loaded,
    choices: list[Choice],
    predicted: Array,
    baseline: FloatArray,
    collectors: list[Collector],
) -> None:
    be, folds = engine.be, engine.folds
    deviation = be.host(predicted).T
    start = 0
    for part in loaded.chunk:
        here = slice(start, start + part.n_targets)
        start = here.stop
        kept = collectors[part.draw].predictions
        if kept is None:
            continue
        for block, choice in enumerate(choices):
            rows = folds.rows(block)
            columns = loaded.columns(choice.lag)[here]
            factor = loaded.responses.factor[columns]
            kept["observed"][rows, part.targets] = (
                be.host(be.take(loaded.raw[rows], columns, 1))
                if not isinstance(loaded.raw, np.ndarray)
                else loaded.raw[rows][:, columns]
            )
            kept["baseline"][rows, part.targets] = baseline[rows, here]
            kept["predicted"][rows, part.targets] = (
                baseline[rows, here] + deviation[rows, here] / factor
            )


def choice_of(choice: Choice, targets: slice) -> Choice:
    """The choice of some targets."""
    return Choice(choice.lag[targets], choice.components[targets], choice.alpha[targets])
