"""Recordings and models of noise, of a given size: what a calibration computes with.

Nothing of a study's data is in them, so that no outcome of the study is known before it is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from scipy import sparse

from lpact.config import StudyConfig
from lpact.controls.base import CONTROLS
from lpact.controls.other_layer import LayerLabelPermutation
from lpact.datasets.base import FeatureKey, RecordingId, Stimulus, Units
from lpact.features.models import FULL, STATIC, ModelSource
from lpact.grid import EventGrid
from lpact.inputs.prepare import ModelOnGrid, Prepared
from lpact.math.seeding import keyed_rng
from lpact.math.splits import BlockedFolds, contiguous_folds, segment_folds
from lpact.math.types import FloatArray
from lpact.run.planning.shapes import Shape

DATASET, MODEL = "stand-in", "stand-in"
N_LAYERS = 3
LAYER = 2
"""The layer that is timed: one that has a layer before it."""

WORDS_A_SENTENCE = 8
SECONDS_A_WORD = 0.4
STORIES = 4
CONSTANT_NUISANCES = 1


@dataclass(frozen=True)
class StandIn:
    """A recording of noise on its grid, and a model of noise for it."""

    prepared: Prepared
    model: ModelOnGrid


def make_stand_in(
    config: StudyConfig, shape: Shape, recording: RecordingId | None = None
) -> StandIn:
    """Noise of the given size."""
    own = recording or RecordingId("stand-in", "1", "1", "stand-in")
    rng = keyed_rng(0, "stand-in", str(own), shape.n_events, shape.n_units, shape.n_features)
    stimulus = make_stimulus(own.stimulus, shape.n_events)
    mechanisms = {name: rng.standard_normal(shape.n_events) for name in shape.mechanisms}
    delayed = {}
    if shape.n_delays > 1:
        sizes = (shape.n_events, shape.n_delays)
        delayed = {name: rng.standard_normal(sizes) for name in shape.mechanisms}
        mechanisms = {name: values[:, 0] for name, values in delayed.items()}
    n_nuisance = len(config.nuisance.include) + config.nuisance.drift_cosines - CONSTANT_NUISANCES
    prepared = Prepared(
        DATASET,
        own,
        _grid(shape, stimulus, rng),
        stimulus,
        rng.standard_normal((shape.n_events, shape.n_delays * max(1, n_nuisance))),
        mechanisms,
        _folds(config, shape),
        delayed=delayed,
    )
    return StandIn(prepared, ModelOnGrid(MODEL, _Noise(shape), prepared))


def make_stimulus(name: str, n_words: int) -> Stimulus:
    """Words in sentences and stories, at an even pace."""
    numbers = np.arange(n_words)
    onset = numbers * SECONDS_A_WORD
    words = pl.DataFrame(
        {
            "word": [f"w{i % 97}" for i in range(n_words)],
            "onset_s": onset,
            "offset_s": onset + 0.75 * SECONDS_A_WORD,
            "sentence_id": numbers // WORDS_A_SENTENCE,
            "story_id": [f"s{i}" for i in _stories(n_words)],
        }
    )
    return Stimulus(name, words, "a stand-in for planning")


def _stories(n_words: int) -> list[int]:
    """Story of each word; stories begin with a sentence."""
    n_sentences = -(-n_words // WORDS_A_SENTENCE)
    sentence = np.arange(n_words) // WORDS_A_SENTENCE
    story: list[int] = (sentence * STORIES // n_sentences).tolist()
    return story


def _grid(shape: Shape, stimulus: Stimulus, rng: np.random.Generator) -> EventGrid:
    n = shape.n_events
    ids = tuple(f"u{i}" for i in range(shape.n_units))
    words = stimulus.words
    weights = None
    if shape.n_delays > 1:
        rows = np.repeat(np.arange(n), shape.n_delays) - np.tile(np.arange(shape.n_delays), n)
        inside = np.maximum(rows, 0)
        ones = np.ones(len(inside))
        weights = sparse.csr_array((ones, (np.arange(len(inside)), inside)), shape=(len(inside), n))
    return EventGrid(
        onset_s=words["onset_s"].to_numpy(),
        offset_s=words["offset_s"].to_numpy(),
        sentence=words["sentence_id"].to_numpy(),
        story=np.array(_stories(n)),
        responses=rng.standard_normal((shape.n_lags, n, shape.n_units)),
        lags_ms=tuple(100.0 * i for i in range(shape.n_lags)),
        reference_lag=shape.n_lags // 2,
        units=Units(ids, tuple(f"r{i % 4}" for i in range(shape.n_units))),
        first_word=np.arange(n),
        stop_word=np.arange(1, n + 1),
        n_words=n,
        pooling="mean",
        exclusions=(),
        n_candidate_events=n,
        weights=weights,
        fir_delays=tuple(range(shape.n_delays)) if shape.n_delays > 1 else (),
    )


def _folds(config: StudyConfig, shape: Shape) -> BlockedFolds:
    gap = min(config.readout.gap_events, FOLD_SHARE_OF_GAP * shape.n_events // shape.n_folds // 10)
    if shape.split == "stories":
        return segment_folds(np.arange(shape.n_events) * shape.n_folds // shape.n_events, gap=gap)
    return contiguous_folds(shape.n_events, shape.n_folds, gap=gap)


FOLD_SHARE_OF_GAP = 2
"""Tenths of a fold that a gap may take in a stand-in, which can be shorter than the recording."""


class _Noise(ModelSource):
    """Features of noise in every context that the model of the study offers."""

    name = "stand-in"

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._shape = shape

    @cached_property
    def _keys(self) -> list[FeatureKey]:
        n_draws: dict[str, int] = {}
        for control, n in self._shape.draws:
            for context in CONTROLS.build(control).contexts():
                n_draws[context] = max(n, n_draws.get(context, 1))
        n_layers = max(N_LAYERS, 1 + dict(self._shape.draws).get(LayerLabelPermutation.name, 0))
        keys = []
        for context in sorted({FULL, *self._shape.contexts}):
            layers = (0,) if context == STATIC else range(n_layers)
            draws = range(n_draws.get(context, 1))
            keys += [FeatureKey(MODEL, layer, context, draw) for layer in layers for draw in draws]
        return keys

    def offers(self, model: str, stimulus: Stimulus) -> Sequence[FeatureKey]:  # noqa: ARG002
        """Every context of the study's model, at a few layers."""
        return self._keys

    def load(self, key: FeatureKey, stimulus: Stimulus) -> FloatArray:
        """Noise, one row a word."""
        width = self._shape.n_features // self._shape.n_delays
        rng = keyed_rng(0, "stand-in", key.layer, key.context, key.draw)
        return rng.standard_normal((stimulus.words.height, width))
