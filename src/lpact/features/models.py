"""Language-model features: from a stimulus to one matrix per model, layer and context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from lpact.datasets.base import FeatureKey, Stimulus
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


MODELS: Registry[ModelSource] = Registry("model", ModelSource, package="lpact.features.sources")  # type: ignore[type-abstract]
