"""What every dataset yields: recordings, stimuli, and where they came from."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

import polars as pl

from lpact.math.types import FloatArray
from lpact.registry import Plugin, Registry

WORD_COLUMNS = {
    "word": pl.String,
    "onset_s": pl.Float64,
    "offset_s": pl.Float64,
    "sentence_id": pl.Int64,
    "story_id": pl.String,
}
"""Columns that every words table has; others (``log_frequency``, parses …) are kept as they are."""


@dataclass(frozen=True, order=True)
class RecordingId:
    """One subject-run unit of a dataset."""

    subject: str
    session: str
    run: str
    stimulus: str

    def __str__(self) -> str:
        return f"sub-{self.subject}_ses-{self.session}_run-{self.run}"


@dataclass(frozen=True)
class TimeSeries:
    """Continuous neural data: ``values`` is [n_samples, n_units]; sample 0 is at ``start_s``."""

    values: FloatArray
    sampling_rate_hz: float
    start_s: float = 0.0


@dataclass(frozen=True)
class Epochs:
    """Already-epoched neural data: ``values`` is [n_lags, n_words, n_units], one layer per lag."""

    values: FloatArray
    lags_ms: tuple[float, ...]


Signal: TypeAlias = TimeSeries | Epochs


@dataclass(frozen=True)
class Units:
    """Brain units in canonical order.

    ``coordinates_mm`` is [n_units, 3], or None where the dataset has none.
    """

    ids: tuple[str, ...]
    regions: tuple[str, ...]
    coordinates_mm: FloatArray | None = None

    def order_hash(self) -> str:
        """Hash of the unit order: equal hashes mean equal units in equal order."""
        return hashlib.sha256("\x1f".join(self.ids).encode()).hexdigest()[:16]

    def take(self, indices: Sequence[int]) -> Units:
        """Return the units at ``indices``, in that order."""
        coordinates = None if self.coordinates_mm is None else self.coordinates_mm[list(indices)]
        return Units(
            tuple(self.ids[i] for i in indices),
            tuple(self.regions[i] for i in indices),
            coordinates,
        )


@dataclass(frozen=True)
class Recording:
    """Neural data of one subject-run. ``where`` names its file or generator in messages."""

    id: RecordingId
    signal: Signal
    units: Units
    where: str


@dataclass(frozen=True)
class FeatureKey:
    """One feature set on offer: ``context`` is full, sentence_reset, reversed, shuffled, untrained or static."""

    model: str
    layer: int
    context: str
    draw: int = 0


class FeatureOffer(Protocol):
    """Feature sets that a dataset brings for a stimulus."""

    def keys(self) -> Sequence[FeatureKey]:
        """Return what is on offer."""
        ...

    def load(self, key: FeatureKey) -> FloatArray:
        """Return the features [n_words, n_columns]."""
        ...

    def where(self, key: FeatureKey) -> str:
        """Return the file or generator of a feature set, for messages."""
        ...


@dataclass(frozen=True)
class Envelope:
    """Acoustic envelope of a stimulus on the clock of its words."""

    values: FloatArray
    sampling_rate_hz: float
    start_s: float = 0.0


@dataclass(frozen=True)
class Stimulus:
    """What was presented: words on the recording's clock, and everything known about them.

    ``words`` has the columns of `WORD_COLUMNS`; ``mechanisms`` holds one value a word for each mechanism on offer;
    ``media`` maps a kind of medium (``audio``, ``video``) to its path, as it stands in tables; relative paths start at
    ``media_root``. Sample 0 of the audio is at ``audio_start_s``. ``transcripts`` holds the text of each story as it is
    written, where the dataset has it: what a language model reads.
    """

    id: str
    words: pl.DataFrame
    where: str
    features: FeatureOffer | None = None
    mechanisms: Mapping[str, FloatArray] = field(default_factory=dict)
    envelope: Envelope | None = None
    media: Mapping[str, str] = field(default_factory=dict)
    media_root: Path | None = None
    audio_start_s: float = 0.0
    transcripts: Mapping[str, str] = field(default_factory=dict)

    def media_path(self, kind: str) -> Path:
        """Return the path under which a medium can be opened."""
        return Path(self.media_root or "", self.media[kind])


@dataclass(frozen=True)
class SourceFile:
    """One file (or generated source) that a dataset was read from."""

    path: str
    n_bytes: int
    sha256: str
    licence: str


@dataclass(frozen=True)
class DatasetInfo:
    """Provenance of a dataset."""

    source: str
    version: str
    licence: str


class Dataset(ABC):
    """An opened dataset. Recordings and stimuli are loaded one at a time."""

    info: DatasetInfo

    @abstractmethod
    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""

    @abstractmethod
    def recording(self, recording_id: RecordingId) -> Recording:
        """Load one recording; raises `RecordingError` when it is malformed."""

    @abstractmethod
    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Load one stimulus; raises `StimulusError` when it is malformed."""

    @abstractmethod
    def source_files(self) -> list[SourceFile]:
        """Return every source file with its checksum."""


class DatasetReader(Plugin, ABC):
    """A registered way to open a dataset."""

    needs_path: bool = True

    @abstractmethod
    def open(self, *, name: str, path: Path | None, seed: int) -> Dataset:
        """Open the dataset ``name`` of a study with seed ``seed``; ``path`` is its folder, if it has one."""


DATASETS: Registry[DatasetReader] = Registry("dataset", DatasetReader, package="lpact.datasets")  # type: ignore[type-abstract]
