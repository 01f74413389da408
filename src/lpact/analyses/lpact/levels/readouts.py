"""All readouts of one layer on one recording: real features, every draw of every severe control, and nuisance features.

Levels 1 to 3 share them. Where a control reorders the real rows, the responses are reordered instead if that is the
same for a readout: decompositions of the features are then reused (docs/adr/0007).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lpact.analyses.lpact.config import LPactConfig
from lpact.controls.base import CONTROLS, ControlInputs, SevereControl
from lpact.controls.reordered import ReorderedRows
from lpact.errors import FeatureError
from lpact.inputs.prepare import ModelOnGrid, Prepared, compute_settings, ridge_grid
from lpact.math.ridge import METRICS, NestedRidge, Readout, nested_ridge_draws
from lpact.math.seeding import keyed_rng
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray

REAL = "real"
NUISANCE = "nuisance"
NUISANCE_PLUS_MODEL = "nuisance_plus_model"


def minus(a: float | None, b: float | None) -> float | None:
    """Difference of two numbers; None where one is missing."""
    return None if a is None or b is None else a - b


def nullable(values: FloatArray) -> list[float | None]:
    """Numbers for a list column; None where one is not finite."""
    return [float(v) if np.isfinite(v) else None for v in values]


@dataclass(frozen=True)
class LayerInputs:
    """One layer of a model on one recording: what levels 1 to 3 measure."""

    config: LPactConfig
    prepared: Prepared
    model: ModelOnGrid
    layer: int
    confirmatory: bool = False

    @property
    def key(self) -> dict[str, str | int]:
        """Key columns of every table."""
        return {**self.prepared.key, "model": self.model.model, "layer": self.layer}

    @property
    def place(self) -> tuple[str, str, str, int]:
        """What random draws depend on, with the seed; the same for all recordings of a stimulus."""
        return self.prepared.dataset, self.prepared.id.stimulus, self.model.model, self.layer

    @property
    def features(self) -> FloatArray:
        """The real features, [n_events, p]."""
        return self.model.load(self.layer)

    @property
    def for_controls(self) -> ControlInputs:
        """What controls may see: never a response."""
        grid = self.prepared.grid
        return ControlInputs(
            features=self.features,
            sentence=grid.sentence,
            story=grid.story,
            layer=self.layer,
            offered=self.model.offered,
            load=self.model.load,
            draws=self.config.controls.draws,
        )


@dataclass(frozen=True)
class Condition:
    """One feature matrix to be scored: ``source`` [n_events, columns], with its rows in ``order`` if there is one.

    ``on_responses`` says that a readout may reorder the responses instead.
    """

    name: str
    draw: int
    counted: bool
    surrogate: bool
    source: FloatArray
    order: IntArray | None = None
    on_responses: bool = False

    @property
    def features(self) -> FloatArray:
        """The features, [n_events, columns]."""
        return self.source if self.order is None else self.source[self.order]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.source.shape[1])


def build_controls(config: LPactConfig) -> dict[str, SevereControl]:
    """Instances of the study's controls, by name, in the order of the study file."""
    return {
        name: CONTROLS.build(name, config.controls.options.get(name), where="controls.include")
        for name in config.controls.include
    }


def conditions(layer: LayerInputs) -> Iterator[Condition]:
    """Yield the real features, then every draw of every available control.

    Recordings of the same stimulus get the same draws, as they do of the real model, so that chance has as much in
    common over recordings in every draw.
    """
    inputs, folds = layer.for_controls, layer.prepared.folds
    n_events = layer.prepared.n_events
    yield Condition(REAL, 0, True, False, inputs.features)
    for name, control in build_controls(layer.config).items():
        if control.unavailable(inputs) is not None:
            continue
        for draw in range(control.n_draws(inputs, layer.config.controls.draws)):
            rng = keyed_rng(layer.config.seed, "control", *layer.place, name, draw)
            kind = (control.counted, control.surrogate)
            if isinstance(control, ReorderedRows):
                order = control.row_index(inputs, rng)
                if np.array_equal(np.sort(order), np.arange(n_events)):
                    same = control.contiguous or _keeps_blocks(order, folds)
                    yield Condition(name, draw, *kind, inputs.features, order, same)
                    continue
                features = inputs.features[order]
            else:
                features = control.draw(inputs, rng, draw)
            _check(features, n_events, control)
            yield Condition(name, draw, *kind, features)


def _keeps_blocks(order: IntArray, folds: BlockedFolds) -> bool:
    """Whether an order moves events inside held-out blocks only, with no embargo between them."""
    block = np.repeat(np.arange(folds.n_blocks), folds.test_sizes())
    return folds.gap == 0 and bool((block[order] == block).all())


def _check(features: FloatArray, n_events: int, control: SevereControl) -> None:
    """Name the control whose features cannot be scored."""
    if features.ndim == 2 and len(features) == n_events and np.isfinite(features).all():
        return
    raise FeatureError(
        f"the control '{control.name}' made features that cannot be scored",
        where=f"{type(control).__module__}.{type(control).__qualname__}.draw",
        got=f"an array of shape {features.shape}, {np.isnan(features).sum()} NaN",
        expected=f"finite numbers, one row for each of {n_events} events",
        remedy="fix the control, or leave it out of controls.include",
    )


@dataclass(frozen=True)
class Fitted:
    """What is kept of a readout: scores of units by metric, and their median in every outer block, [F].

    Medians are at the primary metric; NaN where no unit has a score.
    """

    scores: dict[str, FloatArray]
    blocks: FloatArray
    n_features: int

    @classmethod
    def of(cls, config: LPactConfig, readout: Readout, n_features: int) -> Fitted:
        """Keep the scores of a readout."""
        by_fold = readout.fold_scores(config.readout.primary_metric)
        finite = [row[np.isfinite(row)] for row in by_fold]
        blocks = np.array([np.median(row) if row.size else np.nan for row in finite])
        return cls({metric: readout.scores(metric) for metric in METRICS}, blocks, n_features)

    @classmethod
    def undefined(cls, prepared: Prepared) -> Fitted:
        """No features to predict from: every score is undefined."""
        n_units = len(prepared.grid.units.ids)
        scores = {metric: np.full(n_units, np.nan) for metric in METRICS}
        return cls(scores, np.full(prepared.folds.n_blocks, np.nan), 0)


@dataclass(frozen=True)
class LayerReadouts:
    """Readouts of one layer by (condition, draw), and the real readout."""

    real: Readout
    fitted: dict[tuple[str, int], Fitted]

    @property
    def pearson(self) -> dict[tuple[str, int], FloatArray]:
        """Pearson scores of every condition."""
        return {key: fitted.scores["pearson"] for key, fitted in self.fitted.items()}


def fit_nuisance(config: LPactConfig, prepared: Prepared) -> Fitted:
    """Scores of the nuisance features alone, the same for every model and layer; undefined where there are none."""
    n_features = prepared.nuisance.shape[1]
    if not n_features:
        return Fitted.undefined(prepared)
    return Fitted.of(config, layer_ridge(config, prepared).fit(prepared.nuisance), n_features)


def fit_layer(layer: LayerInputs, nuisance: Fitted) -> LayerReadouts:
    """Fit one layer of one model under every condition."""
    config, prepared = layer.config, layer.prepared
    fitted: dict[tuple[str, int], Fitted] = {}
    reordered: dict[tuple[str, int], IntArray] = {}
    ridge = layer_ridge(config, prepared)
    real = ridge.fit(layer.features)
    for condition in conditions(layer):
        key, n_features = (condition.name, condition.draw), condition.n_features
        if condition.on_responses and condition.order is not None:
            fitted[key] = Fitted.undefined(prepared)  # Keeps the order of conditions.
            reordered[key] = np.argsort(condition.order)
        else:
            readout = real if condition.name == REAL else ridge.fit(condition.features)
            fitted[key] = Fitted.of(config, readout, n_features)
    if reordered:
        grid, compute = ridge_grid(config.readout, prepared), compute_settings(config.readout)
        data = (layer.features, prepared.grid.responses, prepared.folds)
        readouts = nested_ridge_draws(*data, grid, list(reordered.values()), compute=compute)
        for key, readout in zip(reordered, readouts, strict=True):
            fitted[key] = Fitted.of(config, readout, layer.features.shape[1])
    fitted[NUISANCE, 0] = nuisance
    fitted[NUISANCE_PLUS_MODEL, 0] = Fitted.undefined(prepared)
    if prepared.nuisance.shape[1]:
        both = np.hstack([prepared.nuisance, layer.features])
        fitted[NUISANCE_PLUS_MODEL, 0] = Fitted.of(config, ridge.fit(both), both.shape[1])
    return LayerReadouts(real, fitted)


def layer_ridge(config: LPactConfig, prepared: Prepared, metrics: Sequence[str] = METRICS) -> NestedRidge:
    """Readouts of a recording. Equal features have equal scores to the last bit, so that a tie stays a tie."""
    grid, compute = ridge_grid(config.readout, prepared), compute_settings(config.readout)
    data = (prepared.grid.responses, prepared.folds)
    return NestedRidge(*data, grid, metrics=metrics, compute=compute)
