"""The parts of every dataset: recordings, stimuli, findings and provenance."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import polars as pl

from lpact.codes import Reason
from lpact.config import DatasetConfig, Role
from lpact.datasets.catalogue import Download, Expected
from lpact.datasets.series import StreamedSeries, read_units, unit_blocks
from lpact.math.types import FloatArray
from lpact.registry import Plugin, Registry

if TYPE_CHECKING:
    from lpact.datasets.connectivity import Connectivity

WORD_COLUMNS = {
    "word": pl.String,
    "onset_s": pl.Float64,
    "offset_s": pl.Float64,
    "sentence_id": pl.Int64,
    "story_id": pl.String,
}
"""Columns that every words table has; others (``log_frequency``, parses …) are kept as they are."""

ITEM = "item"
"""Column with the ids of items that are not words: pictures, sentences, questions."""


@dataclass(frozen=True)
class Finding:
    """Something that the audit left out (``excluded``) or kept with a ``note``.

    ``field`` is the unit, column or file that the finding is about.
    """

    field: str
    reason: Reason
    severity: Literal["excluded", "note"]
    where: str
    found: str
    expected: str
    remedy: str


class Findings(list[Finding]):
    """Findings about one file, which ``where`` names."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def note(self, field: str, reason: Reason, found: str, expected: str, remedy: str) -> None:
        """Add a finding on something that is kept."""
        self.append(Finding(field, reason, "note", self.where, found, expected, remedy))

    def excluded(self, field: str, reason: Reason, found: str, expected: str, remedy: str) -> None:
        """Add a finding on something that is left out."""
        self.append(Finding(field, reason, "excluded", self.where, found, expected, remedy))

    def untimed(self, field: str, n_missing: int, n_words: int, first: str) -> None:
        """Add the finding on words without times."""
        self.excluded(
            field,
            Reason.SOURCE_ROWS_LEFT_OUT,
            f"{n_missing} of {n_words} words without times; first: {first}",
            "times of every word",
            "the words are left out; add their times to keep them",
        )

    def sentences_by_rule(self, found: str, expected: str, remedy: str) -> None:
        """Add the note that sentences follow from a rule, not from the source."""
        self.note("sentence_id", Reason.SENTENCES_BY_RULE, found, expected, remedy)


@dataclass(frozen=True, order=True)
class RecordingId:
    """One subject-run unit of a dataset."""

    subject: str
    session: str
    run: str
    stimulus: str

    def __str__(self) -> str:
        return f"sub-{self.subject}_ses-{self.session}_run-{self.run}"

    def key(self, dataset: str) -> dict[str, str]:
        """Recording columns of every table."""
        place = {"subject": self.subject, "session": self.session, "run": self.run}
        return {"dataset": dataset, **place}


@dataclass(frozen=True)
class TimeSeries:
    """Continuous neural data: ``values`` is [n_samples, n_units]; sample 0 is at ``start_s``.

    ``values`` is an array, in memory or mapped, or a `StreamedSeries`. ``physical_unit`` (``µV``, ``T``, ``a.u.`` …) is
    empty if the source does not say. ``envelope`` marks the amplitude of a band, such as a high-gamma derivative.
    """

    values: FloatArray | StreamedSeries
    sampling_rate_hz: float
    start_s: float = 0.0
    physical_unit: str = ""
    envelope: bool = False

    @property
    def n_samples(self) -> int:
        """Samples of every unit."""
        return int(self.values.shape[0])

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices, [n_samples, len(units)]."""
        return read_units(self.values, units)

    def blocks(self) -> Iterator[tuple[range, FloatArray]]:
        """Yield ``(indices, values)`` over all units in order, as many at a time as memory allows."""
        return unit_blocks(self.values)


@dataclass(frozen=True)
class Epochs:
    """Epoched neural data: ``values`` is [n_lags, n_words, n_units]."""

    values: FloatArray
    lags_ms: tuple[float, ...]
    physical_unit: str = ""


Signal: TypeAlias = TimeSeries | Epochs


@dataclass(frozen=True)
class Units:
    """Brain units in canonical order.

    ``coordinates_mm`` is [n_units, 3], NaN for a unit without coordinates, or None; ``coordinate_frame`` is their space
    (``MNI152NLin2009cAsym``, ``head`` …). A unit without a known region has the region ``unknown``. ``comparable``: a
    unit of the same name is the same place in another subject, as for sensors and regions, but not for implanted
    electrodes and voxels in native space.
    """

    ids: tuple[str, ...]
    regions: tuple[str, ...]
    coordinates_mm: FloatArray | None = None
    coordinate_frame: str = ""
    comparable: bool = True

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
            self.coordinate_frame,
            self.comparable,
        )


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of a recording that must not be used, on the clock of its signal."""

    start_s: float
    stop_s: float
    label: str

    def shifted(self, by_s: float) -> Span:
        """Return the span on a clock that is ``by_s`` ahead."""
        return Span(self.start_s + by_s, self.stop_s + by_s, self.label)


@dataclass(frozen=True)
class Recording:
    """Neural data of one subject-run. ``where`` names its file or generator in messages.

    ``word_onsets_s`` [n_words of the stimulus] are word times on the signal's clock, from triggers or events of this
    recording; NaN for a word that it lacks. None: the times of the stimulus apply. ``bad_spans`` are stretches that the
    source marks as unusable. ``confounds`` has one row per sample and one column per nuisance series (motion, drifts
    …). ``findings`` list what the reader left out or noticed.
    """

    id: RecordingId
    signal: Signal
    units: Units
    where: str
    word_onsets_s: FloatArray | None = None
    bad_spans: tuple[Span, ...] = ()
    confounds: pl.DataFrame | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class FeatureKey:
    """One feature set; ``context`` is full, sentence_reset, reversed, shuffled, untrained or static."""

    model: str
    layer: int
    context: str
    draw: int = 0


@dataclass(frozen=True)
class OfferedFeatures:
    """One feature set of a dataset: ``where`` names its file or generator, ``load`` returns [n_words, n_columns]."""

    where: str
    load: Callable[[], FloatArray]


@dataclass(frozen=True)
class Envelope:
    """Acoustic envelope of a stimulus on the clock of its words."""

    values: FloatArray
    sampling_rate_hz: float
    start_s: float = 0.0


@dataclass(frozen=True)
class AbsentMedium:
    """Why a medium is missing: ``MEDIA_NOT_RELEASED`` or ``MEDIA_NOT_OFFERED``, and possible substitutes."""

    reason: Reason
    detail: str


@dataclass(frozen=True)
class Stimulus:
    """What was presented: words on the recording's clock, or other items, with annotations and media.

    ``words`` has the columns of `WORD_COLUMNS`; those in ``unknown`` are placeholders for columns that the source lacks
    (see `items_table`), and nothing is computed from them. ``mechanisms`` has one value per word. ``media`` maps
    ``audio`` and ``video`` to paths relative to ``media_root``; sample 0 of the audio is at ``audio_start_s``.
    ``transcripts`` is the running text of each story, which language models then read. ``media_absent`` says why a
    medium is missing. ``findings`` list what the reader left out, sorted or corrected.
    """

    id: str
    words: pl.DataFrame
    where: str
    features: Mapping[FeatureKey, OfferedFeatures] = field(default_factory=dict)
    mechanisms: Mapping[str, FloatArray] = field(default_factory=dict)
    envelope: Envelope | None = None
    media: Mapping[str, str] = field(default_factory=dict)
    media_root: Path | None = None
    audio_start_s: float = 0.0
    transcripts: Mapping[str, str] = field(default_factory=dict)
    media_absent: Mapping[str, AbsentMedium] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    unknown: frozenset[str] = frozenset()

    @property
    def has_text(self) -> bool:
        """Whether there are words that a language model or a parser can read."""
        return "word" not in self.unknown and not self.words.is_empty()

    def lacks(self, *columns: str) -> str:
        """Say which of these columns of the words table are unknown; empty if none is."""
        missing = [f"'{column}'" for column in columns if column in self.unknown]
        noun = "column" if len(missing) == 1 else "columns"
        return f"its items have no {noun} {', '.join(missing)}" if missing else ""

    def media_path(self, kind: str) -> Path:
        """Return the path under which a medium can be opened."""
        return Path(self.media_root or "", self.media[kind])


@dataclass(frozen=True)
class SourceFile:
    """One file (or generated source) of a dataset; ``place`` is its path on this machine."""

    path: str
    n_bytes: int
    sha256: str
    licence: str
    place: Path | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class DatasetInfo:
    """Provenance of a dataset."""

    source: str
    version: str
    licence: str


class Dataset(ABC):
    """An open dataset, loaded one recording or stimulus at a time; ``findings`` are about the whole folder."""

    info: DatasetInfo
    findings: tuple[Finding, ...] = ()

    @abstractmethod
    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""

    def stimulus_ids(self) -> list[str]:
        """Return every stimulus, sorted, including those without recordings."""
        return sorted({recording.stimulus for recording in self.recording_ids()})

    @abstractmethod
    def recording(self, recording_id: RecordingId) -> Recording:
        """Load one recording; raises `RecordingError` when it is malformed."""

    @abstractmethod
    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Load one stimulus; raises `StimulusError` when it is malformed."""

    @abstractmethod
    def source_files(self) -> list[SourceFile]:
        """Return every source file with its checksum."""

    def connectivity(self) -> Connectivity | None:
        """Return the structural connectivity of its regions; None if it has none."""
        return None


class DatasetReader(Plugin, ABC):
    """A registered way to open a dataset.

    ``role`` is the default evidence role. ``layout`` lists the expected parts of its folder, and ``download`` the
    official source, for `lpact datasets check` and `fetch`. ``extra`` is the optional part of lpact that it needs
    (``lpact[meeg]`` …).
    """

    needs_path: bool = True
    role: ClassVar[Role] = "primary"
    layout: ClassVar[tuple[Expected, ...]] = ()
    download: ClassVar[Download | None] = None
    extra: ClassVar[str] = ""

    @abstractmethod
    def open(self, *, name: str, path: Path | None, seed: int) -> Dataset:
        """Open the dataset ``name`` of a study with seed ``seed``; ``path`` is its folder, if it has one."""


DATASETS: Registry[DatasetReader] = Registry("dataset", "lpact.datasets.base:DatasetReader", package="lpact.datasets")


def items_table(items: pl.DataFrame, story: str) -> tuple[pl.DataFrame, frozenset[str]]:
    """Complete a table of items into a words table, and return the columns that are placeholders.

    Placeholders of ``word`` are ids (column ``item``, or row numbers), of ``onset_s`` row numbers, of ``offset_s`` the
    onsets, of ``sentence_id`` one sentence per item, of ``story_id`` the one ``story``. Sentence ids may be texts.
    """
    rows = pl.int_range(items.height, eager=True)
    fill = {
        "word": items[ITEM] if ITEM in items.columns else rows.cast(pl.String),
        "onset_s": rows.cast(pl.Float64),
        "sentence_id": rows,
        "story_id": pl.Series([story] * items.height, dtype=pl.String),
    }
    fill["offset_s"] = items["onset_s"] if "onset_s" in items.columns else fill["onset_s"]
    columns = {name: items[name] if name in items.columns else fill[name] for name in WORD_COLUMNS}
    if columns["sentence_id"].dtype == pl.String:
        columns["sentence_id"] = columns["sentence_id"].rle_id()
    words = pl.DataFrame({name: columns[name].cast(kind) for name, kind in WORD_COLUMNS.items()})
    others = items.select(name for name in items.columns if name not in WORD_COLUMNS)
    unknown = frozenset(WORD_COLUMNS) - frozenset(items.columns)
    return words.hstack(others.get_columns()), unknown


def role_of(config: DatasetConfig) -> Role:
    """The role that a study gives a dataset: its own, or that of the reader."""
    if config.role is not None:
        return config.role
    return DATASETS.get(config.reader, where=f"dataset '{config.name}'").role
