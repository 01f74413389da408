"""Conditions of a context: the real features and every draw of every available severe control."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lpact.analyses.lpact.config import LPactConfig
from lpact.controls.base import CONTROLS, ControlInputs, SevereControl
from lpact.controls.reordered import ReorderedRows
from lpact.errors import FeatureError
from lpact.features.models import FULL
from lpact.inputs.prepare import ModelOnGrid, Prepared
from lpact.math.seeding import keyed_rng
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray

REAL = "real"


@dataclass(frozen=True)
class Condition:
    """One feature matrix to be scored.

    ``source`` is [n_events, columns]; with an ``order``, a permutation of the events, the features are its rows in that
    order. ``on_responses`` says that a readout may reorder the responses instead.
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


def control_inputs(
    config: LPactConfig, prepared: Prepared, model: ModelOnGrid, layer: int
) -> ControlInputs:
    """What controls may see of one context: never a response."""
    return ControlInputs(
        features=model.load(layer, FULL),
        sentence=prepared.grid.sentence,
        story=prepared.grid.story,
        layer=layer,
        offered=model.offered,
        load=model.load,
        draws=config.controls.draws,
    )


def conditions(
    config: LPactConfig, prepared: Prepared, model: ModelOnGrid, layer: int
) -> Iterator[Condition]:
    """Yield the real features, then every draw of every available control.

    A draw depends on the study seed, stimulus, model, layer, control and its number alone: recordings of the same
    stimulus on the same events get the same features, as they do of the real model, so that what chance has in common
    over recordings it has in common in every draw.
    """
    inputs = control_inputs(config, prepared, model, layer)
    yield Condition(REAL, 0, True, False, inputs.features)
    for name, control in build_controls(config).items():
        if control.unavailable(inputs) is not None:
            continue
        for draw in range(control.n_draws(inputs, config.controls.draws)):
            place = (prepared.dataset, prepared.id.stimulus, model.model, layer)
            rng = keyed_rng(config.seed, "control", *place, name, draw)
            kind = (control.counted, control.surrogate)
            if isinstance(control, ReorderedRows):
                order = control.row_index(inputs, rng)
                if np.array_equal(np.sort(order), np.arange(prepared.n_events)):
                    same = control.contiguous or keeps_blocks(order, prepared.folds)
                    yield Condition(name, draw, *kind, inputs.features, order, same)
                    continue
                features = inputs.features[order]
            else:
                features = control.draw(inputs, rng, draw)
            _check(features, prepared.n_events, control)
            yield Condition(name, draw, *kind, features)


def keeps_blocks(order: IntArray, folds: BlockedFolds) -> bool:
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


def best_control(scores: FloatArray, rule: str) -> tuple[IntArray, FloatArray]:
    """Index and score of the best control in every column.

    Parameters
    ----------
    scores
        [n_controls, m]; NaN where a control has no score. Ties go to the first control.
    rule
        ``max``, or ``mean_top_3``: the mean of the three highest (of fewer, where there are fewer).

    Returns
    -------
    index, score
        [m] each; −1 and NaN where no control has a score.
    """
    n_controls, n_columns = scores.shape
    if n_controls == 0:
        return np.full(n_columns, -1), np.full(n_columns, np.nan)
    filled = np.where(np.isnan(scores), -np.inf, scores)
    index = filled.argmax(axis=0)
    any_score = np.isfinite(scores).any(axis=0)
    if rule == "max":
        best = filled.max(axis=0)
    else:
        top = -np.sort(-filled, axis=0)[:3]
        finite = np.isfinite(top)
        best = np.where(finite, top, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    return np.where(any_score, index, -1), np.where(any_score, best, np.nan)
