"""What the brain patterns of a recording take, timed on stand-ins."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from lpact.analyses.lpact.levels import relational
from lpact.config import StudyConfig
from lpact.run.audit import StudyAudit
from lpact.run.planning.probes import clocked, on_cpu
from lpact.run.planning.shapes import Shape, recording_shape
from lpact.run.planning.stand_in import make_stand_in

MOST_SHAPES = 3
MOST_WORK = 3e8
"""Products of a recording that is timed at its own size; a larger one is made smaller."""

OVERHEAD = 1e5


def recording_shapes(config: StudyConfig, audit: StudyAudit) -> Counter[Shape]:
    """Sizes of all recordings, and how many of them there are of each."""
    return Counter(
        recording_shape(config, dataset, recording)
        for dataset in audit.datasets.values()
        for recording in dataset.recordings
    )


def brain_work(shape: Shape) -> float:
    """Products of units with units, about."""
    return OVERHEAD + float(shape.n_events) * shape.n_units**2 * shape.n_lags


@dataclass(frozen=True)
class BrainTimes:
    """Seconds of recordings of a few sizes, by their work; others are taken in proportion to the nearest."""

    timed: tuple[tuple[float, float], ...]

    def seconds(self, shape: Shape) -> float:
        """Time of the brain patterns of one recording."""
        work = brain_work(shape)
        own, seconds = min(self.timed, key=lambda pair: abs(math.log(pair[0] / work)))
        return seconds * work / own


def time_brains(config: StudyConfig, shapes: Counter[Shape]) -> BrainTimes:
    """Time recordings of noise of the sizes that most of the work has."""
    ranked = sorted(shapes, key=lambda shape: -shapes[shape] * brain_work(shape))
    different: dict[int, Shape] = {}
    for shape in ranked:
        different.setdefault(round(math.log2(brain_work(shape))), shape)
    return BrainTimes(tuple(_timed(config, s) for s in list(different.values())[:MOST_SHAPES]))


def _timed(config: StudyConfig, shape: Shape) -> tuple[float, float]:
    small = shape.scaled(min(1.0, (MOST_WORK / brain_work(shape)) ** (1 / 3)))
    own = make_stand_in(config, small)
    _, seconds = clocked(
        lambda: relational.run_brain(config=config, prepared=own.prepared), cpu=on_cpu(config)
    )
    return brain_work(small), seconds
