"""Language-model features: from a stimulus to one matrix per model, layer and context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from lpact.datasets.base import FeatureKey, Finding, SourceFile, Stimulus
from lpact.datasets.fetch import Progress
from lpact.errors import FeatureError
from lpact.features.mechanisms import NO_LANGUAGE, Missing, WordValues
from lpact.math.types import FloatArray, IntArray
from lpact.registry import Plugin, Registry

FULL = "full"
SENTENCE_RESET = "sentence_reset"
REVERSED = "reversed"
SHUFFLED = "shuffled"
UNTRAINED = "untrained"
STATIC = "static"
CONTEXTS = (FULL, SENTENCE_RESET, REVERSED, SHUFFLED, UNTRAINED, STATIC)
"""Contexts of features; ``untrained`` and ``shuffled`` have several draws."""


@dataclass(frozen=True)
class ModelPlace:
    """Folder of a model's files, if the user gave one, and folder of extracted features."""

    folder: Path | None = None
    features: Path = Path("lpact-features")


FEATURE_SETS = "features/"
"""Prefix of sets of extracted features among a model's files."""


@dataclass(frozen=True)
class StoredSet:
    """A set of extracted features on disk: its name, the digest of its content, and its files."""

    name: str
    sha256: str
    files: tuple[SourceFile, ...]

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(file.n_bytes for file in self.files)


@dataclass(frozen=True)
class ExtractionCost:
    """Remaining extraction: sets, words, tokens through the model, seconds on this machine, bytes on disk."""

    n_sets: int = 0
    n_words: int = 0
    tokens: int = 0
    seconds: float = 0.0
    n_bytes: int = 0

    def __add__(self, other: ExtractionCost) -> ExtractionCost:
        return ExtractionCost(*map(sum, zip(vars(self).values(), vars(other).values(), strict=True)))


NO_COST = ExtractionCost()
"""Nothing is left to extract."""


class ModelSource(Plugin, ABC):
    """A registered way to get a model's features for a stimulus.

    A source of existing features only needs `offers` and `load`. One that runs a model says what is not
    extracted yet (`ready`), extracts it (`extract`), and gives the model's view of the words (`words`).
    """

    reads_text: ClassVar[bool] = False
    """Whether `words` gives surprisal and states."""

    place: ModelPlace = ModelPlace()

    @property
    def token_pooling(self) -> str | None:
        """How the tokens of a word became its row: `sum`, `mean`, `last` or `first`; None where no tokens are read."""
        return None

    def has_sentences(self, model: str, stimulus: Stimulus) -> bool:  # noqa: ARG002
        """Return whether a row represents a whole sentence, and its words share it."""
        return False

    def token_counts(self, model: str, stimulus: Stimulus) -> IntArray:  # noqa: ARG002
        """Return the number of tokens of every word, [n_words]; 1 where words are not read as tokens."""
        return np.ones(stimulus.words.height, dtype=np.int64)

    def at(self, place: ModelPlace) -> None:
        """Set the folders of model and features."""
        self.place = place

    @abstractmethod
    def offers(self, model: str, stimulus: Stimulus) -> Sequence[FeatureKey]:
        """Return every available feature set for ``stimulus``."""

    @abstractmethod
    def load(self, key: FeatureKey, stimulus: Stimulus) -> FloatArray:
        """Return features [n_words, n_columns]; raises `FeatureError` when they do not fit the words."""

    def check(self, key: FeatureKey, stimulus: Stimulus) -> None:
        """Raise `FeatureError` for a set that would not load, if that is cheap to find out."""

    def width(self, key: FeatureKey, stimulus: Stimulus) -> int:
        """Return the number of columns of a feature set."""
        return int(self.load(key, stimulus).shape[1])

    def ready(self, model: str, stimulus: Stimulus, contexts: Sequence[str]) -> bool:  # noqa: ARG002
        """Return whether features in these contexts can be loaded now, without extraction."""
        return True

    def cost(self, model: str, stimulus: Stimulus, contexts: Sequence[str]) -> ExtractionCost:  # noqa: ARG002
        """Return the remaining extraction of these contexts."""
        return NO_COST

    def extract(self, model: str, stimulus: Stimulus, contexts: Sequence[str], progress: Progress) -> None:
        """Extract and keep what is missing in these contexts."""

    def words(self, model: str, stimulus: Stimulus) -> WordValues | Missing:  # noqa: ARG002
        """Return surprisal, entropy and states of each word in full context."""
        return NO_LANGUAGE

    def findings(self, model: str, stimulus: Stimulus) -> list[Finding]:  # noqa: ARG002
        """Return notes on how the model read the words."""
        return []

    def absent(self, model: str) -> str:  # noqa: ARG002
        """Say what is missing on this machine before the model can be used; empty if nothing is. Fetches nothing."""
        return ""

    def folder(self, model: str) -> Path | None:  # noqa: ARG002
        """Return the folder of the model's files, found once for all processes; None without files."""
        return None

    def files(self, model: str) -> list[SourceFile]:  # noqa: ARG002
        """Return the model's own files, with checksums."""
        return []

    def sets(
        self,
        model: str,  # noqa: ARG002
        stimulus: Stimulus,  # noqa: ARG002
        contexts: Sequence[str],  # noqa: ARG002
    ) -> dict[str, StoredSet | None]:
        """Return sets by name, None if not extracted yet; a set that has changed is a `FeatureError`."""
        return {}


MODELS: Registry[ModelSource] = Registry("model", "lpact.features.models:ModelSource", package="lpact.features.sources")


def check_features(
    values: FloatArray, key: FeatureKey, stimulus: Stimulus, *, where: str, of_words: bool = True
) -> None:
    """Raise `FeatureError` unless ``values`` is a finite matrix with one row per word, or else per stimulus."""
    n_words = stimulus.words.height
    what = f"features of model '{key.model}', layer {key.layer}, context '{key.context}'"
    if values.ndim != 2 or values.shape[0] != n_words or values.shape[1] == 0:
        row, of = "stimulus", "the responses"
        remedy = "give one row per stimulus, in the order of the responses"
        if of_words:
            row, of = "word", f"stimulus '{stimulus.id}' ({stimulus.where})"
            remedy = "give one row per word of this table; if the words have changed, extract the features again"
        raise FeatureError(
            f"{what} do not have one row per {row}",
            where=where,
            got=f"shape {values.shape}",
            expected=f"shape ({n_words}, columns), one row per {row} of {of}",
            remedy=remedy,
        )
    bad = ~np.isfinite(values)
    if bad.any():
        at, column = (int(i) for i in np.argwhere(bad)[0])
        raise FeatureError(
            f"{what} contain values that are not finite",
            where=f"{where}, row {at}, column {column}",
            got=f"{values[at, column]} ({int(bad.sum())} such values)",
            expected="finite numbers",
            remedy="correct these values; if they overflowed, extract the features again in float32",
        )
