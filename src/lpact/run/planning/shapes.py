"""Sizes of contexts, and which of them stand for the others in the calibration.

A study can have a hundred thousand contexts, but few sizes. Contexts of about the same size are timed once: the time of
one of them is taken for all, in proportion to the work that they are by the count of operations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lpact.analyses.lpact.levels.audit_record import ContextOffer, DatasetAudit, RecordingSummary
from lpact.config import StudyConfig
from lpact.run.audit import StudyAudit
from lpact.run.planning.rows import context_kind, mechanism_strippings, on_responses

FEWEST_EVENTS = 24
"""Events of a scaled shape for every fold, at least."""

FEWEST_UNITS, FEWEST_COLUMNS = 4, 4

OVERHEAD = 2e6
"""What a readout of the smallest size costs, in multiplications that would take as long."""


@dataclass(frozen=True)
class Shape:
    """All that the cost of a context depends on: sizes and names, no data."""

    n_events: int
    n_lags: int
    n_units: int
    n_folds: int
    n_features: int
    n_delays: int
    mechanisms: tuple[str, ...]
    draws: tuple[tuple[str, int], ...]
    strippings: tuple[str, ...]
    contexts: tuple[str, ...]
    split: str

    @property
    def n_targets(self) -> int:
        """Columns of the responses: units at all lags."""
        return self.n_lags * self.n_units

    @property
    def n_fitted(self) -> int:
        """Draws of controls that are fitted by themselves."""
        return sum(n for name, n in self.draws if not on_responses(name))

    @property
    def n_reordered(self) -> int:
        """Draws of controls that share decompositions with the real features."""
        return sum(n for name, n in self.draws if on_responses(name))

    def n_strips(self, mismatch_draws: int) -> int:
        """Readouts of stripped features, alone."""
        own = len(mechanism_strippings(self.strippings))
        shared = len(self.strippings) - own
        return shared + own * (1 + mismatch_draws) * len(self.mechanisms)

    @property
    def n_beside(self) -> int:
        """Readouts of real and stripped features beside nuisance features."""
        return 1 + len(self.strippings) * len(self.mechanisms)

    def scaled(self, scale: float) -> Shape:
        """The same with fewer events, units and columns."""
        if scale >= 1:
            return self
        width = self.n_features // self.n_delays
        fewest = FEWEST_EVENTS * self.n_folds
        return replace(
            self,
            n_events=min(self.n_events, max(fewest, round(scale * self.n_events))),
            n_units=min(self.n_units, max(FEWEST_UNITS, round(scale * self.n_units))),
            n_features=self.n_delays * min(width, max(FEWEST_COLUMNS, round(scale * width))),
        )


def context_shapes(config: StudyConfig, audit: StudyAudit) -> Counter[Shape]:
    """Sizes of all contexts, and how many of them there are of each."""
    shapes: Counter[Shape] = Counter()
    for dataset in audit.datasets.values():
        by_id = {recording.id: recording for recording in dataset.recordings}
        known: dict[tuple[object, ...], Shape] = {}
        for offer in dataset.contexts:
            recording = by_id[offer.recording]
            kind = context_kind(recording, offer)
            if kind not in known:
                known[kind] = context_shape(config, dataset, recording, offer)
            shapes[known[kind]] += 1
    return shapes


def context_shape(
    config: StudyConfig, dataset: DatasetAudit, recording: RecordingSummary, offer: ContextOffer
) -> Shape:
    """The size of one context."""
    return replace(
        recording_shape(config, dataset, recording),
        n_features=offer.n_features,
        draws=tuple(offer.draws.items()),
        strippings=offer.strippings,
        contexts=offer.contexts_offered,
    )


def recording_shape(
    config: StudyConfig, dataset: DatasetAudit, recording: RecordingSummary
) -> Shape:
    """The size of a recording without a model."""
    return Shape(
        n_events=recording.n_events,
        n_lags=recording.n_lags,
        n_units=len(recording.unit_ids),
        n_folds=recording.n_folds,
        n_features=1,
        n_delays=max(1, len(dataset.config.grid.fir_ms)),
        mechanisms=recording.mechanisms,
        draws=(),
        strippings=(),
        contexts=(),
        split=config.readout.split,
    )


def fit_work(config: StudyConfig, shape: Shape) -> float:
    """Multiplications of one nested readout, about: products, decompositions of every training set, predictions."""
    n, p, t = shape.n_events, shape.n_features, shape.n_targets
    n_sets = shape.n_folds * (shape.n_folds + 1) // 2
    inner = min(n, p)
    grid = len(config.readout.alphas) * len(config.readout.pca)
    decompositions = n * p * inner + n_sets * (10.0 * inner**3 + p * inner * t)
    return OVERHEAD + decompositions + shape.n_folds * grid * n * t * min(inner, 50)


def context_work(config: StudyConfig, shape: Shape) -> float:
    """Multiplications of a whole context, about."""
    n_fits = 2 + shape.n_fitted + shape.n_strips(config.stripping.mismatch_draws) + shape.n_beside
    return fit_work(config, shape) * n_fits + OVERHEAD * shape.n_reordered


def representatives(
    config: StudyConfig, shapes: Mapping[Shape, int], most: int
) -> dict[Shape, Shape]:
    """For every shape, the one that is calibrated for it: at most ``most`` different ones, where most work is."""
    groups: dict[tuple[object, ...], list[Shape]] = {}
    for shape in shapes:
        groups.setdefault(_alike(shape), []).append(shape)
    work = {shape: context_work(config, shape) for shape in shapes}
    ranked = sorted(groups.values(), key=lambda g: -sum(work[s] * shapes[s] for s in g))
    chosen = [sorted(group, key=lambda s: work[s])[len(group) // 2] for group in ranked[:most]]
    found = {}
    for group in ranked:
        for shape in group:
            found[shape] = min(chosen, key=lambda c: _distance(work[c], work[shape], c, shape))
    return found


def _alike(shape: Shape) -> tuple[object, ...]:
    """Shapes with the same are about as large as one another."""
    sizes = (shape.n_events, shape.n_targets, shape.n_features)
    return (*(round(math.log2(max(1, n))) for n in sizes), shape.n_delays > 1)


def _distance(work: float, other_work: float, a: Shape, b: Shape) -> float:
    delays = 0.0 if (a.n_delays > 1) == (b.n_delays > 1) else 4.0
    return abs(math.log(work / other_work)) + delays
