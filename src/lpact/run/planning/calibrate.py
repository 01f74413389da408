"""From few timings on stand-ins to the time of every context: small sizes first, then as large as time allows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lpact.config import StudyConfig
from lpact.run.planning.probes import (
    Pieces,
    Probe,
    from_pieces,
    pieces,
    tables_of_context,
    whole_context,
)
from lpact.run.planning.shapes import Shape, context_work, fit_work, representatives

MOST_SHAPES = 3
"""Sizes of contexts that are timed; others are taken in proportion."""

BUDGET_S = 9.0
"""Seconds of the calibration of contexts, about, over all sizes."""

SMALL_WORK = 3e8
"""Multiplications of a readout that is timed at its own size at once."""


@dataclass(frozen=True)
class Calibrated:
    """What contexts take. ``probes`` has one for every shape that was timed, ``stands_for`` which one that is.

    ``extrapolated`` says that some shape was too large to be timed at its own size.
    """

    config: StudyConfig
    probes: Mapping[Shape, Probe]
    stands_for: Mapping[Shape, Shape]
    extrapolated: bool

    def seconds(self, shape: Shape) -> float:
        """Time of one context."""
        own = self.stands_for[shape]
        ratio = context_work(self.config, shape) / context_work(self.config, own)
        return self.probes[own].seconds * ratio


def calibrate(
    config: StudyConfig, shapes: Mapping[Shape, int], budget_s: float = BUDGET_S
) -> Calibrated:
    """Time the sizes that most of the work has."""
    stands_for = representatives(config, shapes, MOST_SHAPES)
    chosen = list(dict.fromkeys(stands_for.values()))
    probes, extrapolated = {}, False
    for shape in chosen:
        probe, measured = _calibrate_one(config, shape, budget_s / len(chosen))
        probes[shape] = probe
        extrapolated |= not measured
    return Calibrated(config, probes, stands_for, extrapolated)


def _calibrate_one(config: StudyConfig, shape: Shape, budget_s: float) -> tuple[Probe, bool]:
    """A probe, and whether it was made at the shape's own size."""
    found, measured = _pieces_at_full_size(config, shape, 0.5 * budget_s)
    expected = from_pieces(config, shape, found)
    if measured and expected <= budget_s:
        return whole_context(config, shape), True
    tables = tables_of_context(config, shape)
    return replace(tables, seconds=expected + tables.seconds), measured


def _pieces_at_full_size(config: StudyConfig, shape: Shape, budget_s: float) -> tuple[Pieces, bool]:
    """Pieces at the shape's size: timed there if there is time, else worked out from a smaller size."""
    small = shape.scaled(_scale(config, shape, SMALL_WORK))
    found = pieces(config, small)
    if small == shape:
        return found, True
    taken = 8 * found.fit + 4 * found.order + 4 * found.strip + 3 * found.measure
    possible = fit_work(config, small) * max(1.0, budget_s / taken)
    larger = shape.scaled(_scale(config, shape, possible))
    if larger != small:
        found = pieces(config, larger)
    growth = _grown(fit_work(config, shape), fit_work(config, larger))
    return (
        Pieces(
            found.fit * growth,
            found.order * growth,
            found.strip * growth,
            found.measure * math.sqrt(growth),
        ),
        larger == shape,
    )


def _scale(config: StudyConfig, shape: Shape, work: float) -> float:
    """The largest scale at which a readout takes no more than ``work``; 1 where it never does."""
    if fit_work(config, shape) <= work:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if fit_work(config, shape.scaled(middle)) <= work else (low, middle)
        )
    return low


def _grown(work: float, measured: float) -> float:
    """Time at some work over the time at the work that was timed: the larger matrices are, the faster the machine."""
    return _time_like(work) / _time_like(measured)


def _time_like(work: float) -> float:
    """A figure that grows with work as time does."""
    return float(min(work, FULL_SPEED) ** SPEED_UP * max(1.0, work / FULL_SPEED))


FULL_SPEED = 1e11
"""Multiplications of a readout from which on twice the work takes twice the time."""

SPEED_UP = 0.8
"""Below, time grows with this power of the work."""
