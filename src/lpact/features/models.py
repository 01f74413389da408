"""Language-model features: from a stimulus to one matrix per model, layer and context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from lpact.datasets.base import FeatureKey, Stimulus
from lpact.errors import FeatureError
from lpact.math.types import FloatArray
from lpact.registry import Plugin, Registry

FULL = "full"
SENTENCE_RESET = "sentence_reset"
REVERSED = "reversed"
SHUFFLED = "shuffled"
UNTRAINED = "untrained"
STATIC = "static"
CONTEXTS = (FULL, SENTENCE_RESET, REVERSED, SHUFFLED, UNTRAINED, STATIC)
"""Contexts in which a model can be asked for features. ``untrained`` and ``shuffled`` come in several draws."""


class ModelSource(Plugin, ABC):
    """A registered way to get a model's features for a stimulus."""

    @abstractmethod
    def offers(self, model: str, stimulus: Stimulus) -> Sequence[FeatureKey]:
        """Return every feature set that can be had for ``stimulus``."""

    @abstractmethod
    def load(self, key: FeatureKey, stimulus: Stimulus) -> FloatArray:
        """Return features [n_words, n_columns]; raises `FeatureError` when they do not fit the words."""

    def check(self, key: FeatureKey, stimulus: Stimulus) -> None:
        """Raise `FeatureError` for a feature set that would not load, where that can be told cheaply.

        The audit asks for every set on offer, so that a damaged file does not stop a run half-way.
        """


MODELS: Registry[ModelSource] = Registry("model", ModelSource, package="lpact.features.sources")  # type: ignore[type-abstract]


def check_features(values: FloatArray, key: FeatureKey, stimulus: Stimulus, *, where: str) -> None:
    """Raise `FeatureError` unless ``values`` is a finite matrix with one row a word."""
    n_words = stimulus.words.height
    what = f"features of model '{key.model}', layer {key.layer}, context '{key.context}'"
    if values.ndim != 2 or values.shape[1] == 0:
        raise FeatureError(
            f"{what} are not a matrix",
            where=where,
            got=f"shape {values.shape}",
            expected=f"shape ({n_words}, columns)",
            remedy="store one row a word",
        )
    if values.shape[0] != n_words:
        raise FeatureError(
            f"{what} have {'fewer' if values.shape[0] < n_words else 'more'} rows than there are words",
            where=where,
            got=f"{values.shape[0]} rows",
            expected=f"{n_words} rows, one a word of stimulus '{stimulus.id}' ({stimulus.where})",
            remedy="extract the features again from this words table",
        )
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise FeatureError(
            f"{what} hold values that are not finite",
            where=f"{where}, row {row}, column {column}",
            got=f"{values[row, column]} ({int(bad.sum())} such values)",
            expected="finite numbers",
            remedy="extract the features again, in float32 or better",
        )
