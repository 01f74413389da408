"""The levels of a study, run on stand-ins and timed: the very code that a run uses.

A whole context is timed where that is quick. Otherwise its pieces are: a readout of features as they are, one more
order of the events, a readout of stripped features, the measures of one condition, and what does not depend on events
and features, such as shuffled unit orders and the making of tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import polars as pl
from threadpoolctl import threadpool_limits

from lpact.analyses.lpact.levels import predictive, relational, stripping
from lpact.analyses.lpact.levels.readouts import ContextReadouts, fit_context, fit_nuisance
from lpact.analyses.lpact.levels.relational import BrainPatterns
from lpact.config import StudyConfig
from lpact.math.seeding import keyed_rng
from lpact.run.planning.rows import mechanism_strippings, on_responses
from lpact.run.planning.shapes import FEWEST_COLUMNS, FEWEST_EVENTS, Shape
from lpact.run.planning.stand_in import LAYER, MODEL, StandIn, make_stand_in

T = TypeVar("T")
Frames = dict[str, pl.DataFrame]

MOST_PERMUTED = 5e7
"""Entries of patterns that are compared in shuffled orders, at most; more orders are timed in part."""


@dataclass(frozen=True)
class Pieces:
    """Seconds of the pieces of a context of one shape."""

    fit: float
    order: float
    strip: float
    measure: float


@dataclass(frozen=True)
class Probe:
    """What a context takes, and tables of the size that it and its recording's brain patterns will have."""

    seconds: float
    context: Frames
    brain: Frames


def clocked(work: Callable[[], T], *, cpu: bool) -> tuple[T, float]:
    """A result, and the seconds it took on one thread: of the processor, or on the wall where a device computes."""
    clock = time.process_time if cpu else time.perf_counter
    with threadpool_limits(1):
        start = clock()
        result = work()
        return result, clock() - start


def on_cpu(config: StudyConfig) -> bool:
    """Whether readouts are computed by the processor."""
    return config.readout.device == "cpu"


def limited(config: StudyConfig, shape: Shape, **most: int) -> StudyConfig:
    """The study's settings with the controls and strips that are possible, and fewer draws where ``most`` says so."""
    names = tuple(name for name, _ in shape.draws)
    return config.model_copy(
        update={
            "controls": config.controls.model_copy(
                update={
                    "include": names,
                    "draws": min(config.controls.draws, most.get("draws", config.controls.draws)),
                }
            ),
            "relational": config.relational.model_copy(
                update={
                    "permutations": min(
                        config.relational.permutations,
                        most.get("permutations", config.relational.permutations),
                    )
                }
            ),
            "stripping": config.stripping.model_copy(
                update={
                    "methods": shape.strippings,
                    "mismatch_draws": min(
                        config.stripping.mismatch_draws,
                        most.get("mismatch_draws", config.stripping.mismatch_draws),
                    ),
                }
            ),
        }
    )


def whole_context(config: StudyConfig, shape: Shape) -> Probe:
    """A context as it will be computed, at its own size."""
    cpu, some = on_cpu(config), limited(config, shape)
    own = make_stand_in(config, shape)
    brain = relational.run_brain(config=some, prepared=own.prepared)
    frames, seconds = clocked(lambda: _levels(some, own, _readouts(some, own)), cpu=cpu)
    return Probe(seconds, frames, brain)


def pieces(config: StudyConfig, shape: Shape) -> Pieces:
    """Seconds of the pieces at one size."""
    cpu = on_cpu(config)
    fitted = [name for name, _ in shape.draws if not on_responses(name)][:1]
    orders = [name for name, _ in shape.draws if on_responses(name)][:1]
    own = make_stand_in(config, shape)
    some = _with_controls(config, shape, fitted, draws=1)
    readouts, seconds = clocked(lambda: _readouts(some, own), cpu=cpu)
    fit = seconds / (3 + len(fitted))  # nuisance, real, both, and the control
    order = 0.0
    if orders:
        again = _with_controls(config, shape, orders, draws=N_ORDERS)
        _, seconds = clocked(lambda: _readouts(again, own), cpu=cpu)
        order = max(0.05 * fit, (seconds - 4 * fit) / N_ORDERS)
    _, measured = clocked(lambda: _relational(some, own, readouts), cpu=cpu)
    strip = 0.0
    if shape.strippings and shape.mechanisms:
        one = _one_strip(some, shape)
        few = replace(own.prepared, mechanisms=dict([next(iter(own.prepared.mechanisms.items()))]))
        _, seconds = clocked(lambda: _stripping(one, StandIn(few, own.model), readouts), cpu=cpu)
        strip = seconds / (4 if mechanism_strippings(one.stripping.methods) else 3)
    return Pieces(fit, order, strip, measured / (2 + len(fitted)))


N_ORDERS = 4
"""Orders of events that are timed together."""


def from_pieces(config: StudyConfig, shape: Shape, found: Pieces) -> float:
    """Seconds of a context that its pieces come to, but for what depends on neither events nor features."""
    n_conditions = 2 + shape.n_fitted + shape.n_reordered
    n_strips = shape.n_strips(config.stripping.mismatch_draws) + shape.n_beside
    return (
        found.fit * (2 + shape.n_fitted)
        + found.order * shape.n_reordered
        + (found.fit if shape.n_reordered else 0.0)
        + found.strip * (n_strips if shape.strippings and shape.mechanisms else 0)
        + found.measure * n_conditions
    )


def tables_of_context(config: StudyConfig, shape: Shape) -> Probe:
    """A context with all of its units, draws and strips, but hardly any events and features.

    Its tables have their full size; what it takes is what does not depend on events and features.
    """
    few = replace(
        shape,
        n_events=min(shape.n_events, FEWEST_EVENTS * shape.n_folds),
        n_lags=1,
        n_features=shape.n_delays * FEWEST_COLUMNS,
    )
    n_pairs = shape.n_units**2 * (2 + len(shape.draws))
    permutations = max(2, int(MOST_PERMUTED / n_pairs / 10))
    some = limited(config, few, permutations=permutations)
    cpu, own = on_cpu(config), make_stand_in(config, few)
    brain = relational.run_brain(config=some, prepared=own.prepared)
    readouts = _readouts(some, own)
    level2, seconds = clocked(lambda: _relational(some, own, readouts), cpu=cpu)
    seconds *= max(1.0, config.relational.permutations / some.relational.permutations)
    others, more = clocked(
        lambda: _predictive(some, own, readouts) | _stripping(some, own, readouts), cpu=cpu
    )
    return Probe(seconds + more, others | level2, brain)


def _with_controls(
    config: StudyConfig, shape: Shape, names: list[str], *, draws: int
) -> StudyConfig:
    chosen = tuple((n, min(draws, k)) for n, k in shape.draws if n in names)
    return limited(
        config, replace(shape, draws=chosen), draws=draws, permutations=1, mismatch_draws=1
    )


def _one_strip(config: StudyConfig, shape: Shape) -> StudyConfig:
    """One method and one mechanism."""
    methods = mechanism_strippings(shape.strippings) or list(shape.strippings)
    update = {
        "methods": tuple(methods[-1:]),
        "mechanisms": shape.mechanisms[:1],
        "mismatch_draws": 1,
    }
    return config.model_copy(update={"stripping": config.stripping.model_copy(update=update)})


def _readouts(config: StudyConfig, own: StandIn) -> ContextReadouts:
    nuisance = fit_nuisance(config, own.prepared)
    return fit_context(config, own.prepared, own.model, LAYER, nuisance)


def _levels(config: StudyConfig, own: StandIn, readouts: ContextReadouts) -> Frames:
    level1 = _predictive(config, own, readouts)
    return level1 | _relational(config, own, readouts) | _stripping(config, own, readouts)


def _predictive(config: StudyConfig, own: StandIn, readouts: ContextReadouts) -> Frames:
    return predictive.run(
        config=config,
        prepared=own.prepared,
        model=MODEL,
        layer=LAYER,
        confirmatory=True,
        readouts=readouts,
    )


def _relational(config: StudyConfig, own: StandIn, readouts: ContextReadouts) -> Frames:
    return relational.run(
        config=config,
        prepared=own.prepared,
        model=own.model,
        layer=LAYER,
        confirmatory=True,
        brain_patterns=noise_patterns(config, own),
        readout_scores=readouts.pearson,
    )


def _stripping(config: StudyConfig, own: StandIn, readouts: ContextReadouts) -> Frames:
    return stripping.run(
        config=config,
        prepared=own.prepared,
        model=own.model,
        layer=LAYER,
        confirmatory=True,
        real=readouts.real,
    )


def noise_patterns(config: StudyConfig, own: StandIn) -> BrainPatterns:
    """Brain patterns of noise for a stand-in."""
    units = own.prepared.grid.units
    n = len(units.ids)
    rng = keyed_rng(0, "stand-in patterns", str(own.prepared.id))
    names = config.relational.alignments
    matrices: Mapping[str, object] = {name: rng.standard_normal((n, n)) for name in names}
    return BrainPatterns(
        matrices,  # type: ignore[arg-type]
        {name: rng.uniform(0.2, 0.8, n) for name in names},
        units.order_hash(),
    )
