"""Memory of a process that computes contexts: what it holds by itself, and arrays.

How many arrays there are at a time is measured on a small stand-in; how they grow with events, units and columns is
known.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from dataclasses import replace

from lpact.config import StudyConfig
from lpact.inputs.prepare import KEPT_FEATURE_SETS
from lpact.inputs.workspace import KEPT_RECORDINGS
from lpact.run.planning.probes import pieces
from lpact.run.planning.shapes import FEWEST_COLUMNS, Shape

BYTES = 8
MOST_TRACED = 2e6
"""Numbers in the arrays of the stand-in that is traced, about."""

NEGLIGIBLE = 3e7
"""Bytes of arrays that are few beside those of the process itself: nothing is traced for them."""

USUAL_FACTOR = 2.5


PATTERNS = 12
"""Matrices of units by units that are held at a time: patterns of a few measures, whole and in halves."""


def recording_bytes(shape: Shape) -> float:
    """Bytes of recordings on their grids, and of the patterns of their units."""
    responses = (KEPT_RECORDINGS + 1) * shape.n_events * shape.n_targets
    return float(BYTES * (responses + PATTERNS * shape.n_units**2))


def input_bytes(shape: Shape) -> float:
    """Bytes of what a context is computed from: recordings on their grids, and feature sets."""
    return recording_bytes(shape) + BYTES * KEPT_FEATURE_SETS * shape.n_events * shape.n_features


def array_bytes(config: StudyConfig, shape: Shape) -> float:
    """Bytes of the arrays of one context: inputs, and the working memory of a readout as far as it may grow."""
    n, p, t = shape.n_events, shape.n_features, shape.n_targets
    grid = len(config.readout.alphas) * len(config.readout.pca)
    working = BYTES * (6 * n * p + 4 * p * min(n, p) + t * grid * (n + shape.n_folds * p))
    return input_bytes(shape) + min(working, config.readout.memory_gib * 2**30)


def traced_factor(config: StudyConfig, shape: Shape) -> float:
    """How many times `array_bytes` a context of this kind really holds, from a small one."""
    if array_bytes(config, shape) < NEGLIGIBLE:
        return USUAL_FACTOR
    scale = min(1.0, (MOST_TRACED * BYTES / array_bytes(config, shape)) ** 0.5)
    small = shape.scaled(scale)
    if small.n_features < FEWEST_COLUMNS * small.n_delays:
        small = replace(small, n_features=FEWEST_COLUMNS * small.n_delays)
    running = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        pieces(config, small)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if not running:
            tracemalloc.stop()
    return max(0.5, (peak - before) / array_bytes(config, small))


def context_bytes(config: StudyConfig, shapes: Iterable[Shape]) -> int:
    """Bytes of the arrays of the largest context."""
    largest = max(shapes, key=lambda shape: array_bytes(config, shape), default=None)
    if largest is None:
        return 0
    return int(array_bytes(config, largest) * traced_factor(config, largest))
