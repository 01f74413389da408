"""Conditions of a context: the real features and every draw of every available severe control."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lpact.config import StudyConfig
from lpact.controls.base import CONTROLS, ControlInputs, SevereControl
from lpact.features.availability import Missing
from lpact.features.models import FULL
from lpact.levels.prepare import ModelOnGrid, Prepared
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray

REAL = "real"


@dataclass(frozen=True)
class Condition:
    """One feature matrix to be scored: [n_events, columns]."""

    name: str
    draw: int
    counted: bool
    features: FloatArray


def build_controls(config: StudyConfig) -> dict[str, SevereControl]:
    """Instances of the study's controls, by name, in the order of the study file."""
    return {
        name: CONTROLS.build(name, config.controls.options.get(name), where="controls.include")
        for name in config.controls.include
    }


def control_inputs(prepared: Prepared, model: ModelOnGrid, layer: int) -> ControlInputs:
    """What controls may see of one context: never a response."""
    return ControlInputs(
        features=model.load(layer, FULL),
        sentence=prepared.grid.sentence,
        story=prepared.grid.story,
        layer=layer,
        offered=model.offered,
        load=model.load,
    )


def unavailable_controls(config: StudyConfig, inputs: ControlInputs) -> dict[str, Missing]:
    """The study's controls that cannot be made here, with reasons."""
    checked = {name: c.unavailable(inputs) for name, c in build_controls(config).items()}
    return {name: why for name, why in checked.items() if why is not None}


def conditions(
    config: StudyConfig, prepared: Prepared, model: ModelOnGrid, layer: int
) -> Iterator[Condition]:
    """Yield the real features, then every draw of every available control.

    The draw of a row depends on the study seed and the row's key alone.
    """
    inputs = control_inputs(prepared, model, layer)
    yield Condition(REAL, 0, True, inputs.features)
    for name, control in build_controls(config).items():
        if control.unavailable(inputs) is not None:
            continue
        for draw in range(control.n_draws(inputs, config.controls.draws)):
            place = prepared.key.values()
            rng = keyed_rng(config.seed, "control", *place, model.model, layer, name, draw)
            yield Condition(name, draw, control.counted, control.draw(inputs, rng, draw))
