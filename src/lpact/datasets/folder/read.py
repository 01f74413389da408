"""Reads the files of a dataset folder: one function for each kind of file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from lpact.datasets._files import stored as stored_arrays
from lpact.datasets._files.npy import load_npy, stored_npy
from lpact.datasets._files.strict import TomlFile, TsvFile
from lpact.datasets.base import (
    ITEM,
    WORD_COLUMNS,
    DatasetInfo,
    Envelope,
    Epochs,
    RecordingId,
    Signal,
    TimeSeries,
    Units,
    items_table,
)
from lpact.datasets.folder.layout import RecordingFiles, StimulusFiles
from lpact.errors import InputError, RecordingError, StimulusError, did_you_mean
from lpact.math.types import FloatArray

UNIT_COLUMNS = ("unit", "region")
COORDINATE_COLUMNS = ("x_mm", "y_mm", "z_mm")
_ID_KEYS = ("subject", "session", "run", "stimulus")
_SERIES_KEYS = ("sampling_rate_hz", "start_s")
_EPOCHS_KEYS = ("lags_ms",)
_ABOUT_KEYS = ("physical_unit", "coordinate_frame")
_COMPARABLE = "comparable_units"


@dataclass(frozen=True)
class RecordingHeader:
    """Content of ``recording.toml``.

    ``clock`` is sampling rate (Hz) and start (s) of a time series, or None for epochs.
    """

    id: RecordingId
    clock: tuple[float, float] | None
    lags_ms: tuple[float, ...] = ()
    physical_unit: str = ""
    coordinate_frame: str = ""
    comparable_units: bool = True


def read_info(path: Path) -> DatasetInfo:
    """Read ``dataset.toml``."""
    about = TomlFile(path, ("source", "version", "licence"), InputError)
    return DatasetInfo(about.text("source"), about.text("version"), about.text("licence"))


def read_header(found: RecordingFiles, stimuli: Collection[str]) -> RecordingHeader:
    """Read ``recording.toml``; its stimulus must be one of ``stimuli``."""
    known = (*_ID_KEYS, *_SERIES_KEYS, *_EPOCHS_KEYS, *_ABOUT_KEYS, _COMPARABLE)
    header = TomlFile(found.files["recording.toml"], known, RecordingError)
    recording_id = RecordingId(*(header.name(key) for key in _ID_KEYS))
    if recording_id.stimulus not in stimuli:
        raise RecordingError(
            "a recording names a stimulus that is not there",
            where=f"{header.path}, key 'stimulus'",
            got=recording_id.stimulus,
            expected="the name of a folder in stimuli/",
            remedy=did_you_mean(recording_id.stimulus, stimuli),
        )
    unit, frame = (header.text(key) if key in header.values else "" for key in _ABOUT_KEYS)
    comparable = header.flag(_COMPARABLE) if _COMPARABLE in header.values else True
    timing = tuple(key for key in (*_SERIES_KEYS, *_EPOCHS_KEYS) if key in header.values)
    if timing == _SERIES_KEYS:
        clock = header.number("sampling_rate_hz"), header.number("start_s")
        return RecordingHeader(recording_id, clock, (), unit, frame, comparable)
    if timing == _EPOCHS_KEYS:
        lags_ms = header.numbers("lags_ms")
        return RecordingHeader(recording_id, None, lags_ms, unit, frame, comparable)
    raise RecordingError(
        "a recording is neither a time series nor epochs",
        where=str(header.path),
        got="keys " + (", ".join(timing) or "for neither"),
        expected="sampling_rate_hz and start_s (time series), or lags_ms (epochs)",
        remedy="give the keys of one of the two",
    )


def read_signal(found: RecordingFiles, header: RecordingHeader) -> Signal:
    """Read ``neural.npy``; a big time series is read a few units at a time."""
    path = found.files["neural.npy"]
    if header.clock is not None:
        stored = stored_npy(path, RecordingError)
        if stored.n_bytes >= stored_arrays.STREAM_BYTES and len(stored.shape) == 2:
            series = stored_arrays.StoredSeries(stored, unit_axis=1)
            return TimeSeries(series, *header.clock, header.physical_unit)
    values = load_npy(path, RecordingError)
    if header.clock is None:
        return Epochs(values, header.lags_ms, header.physical_unit)
    return TimeSeries(values, *header.clock, header.physical_unit)


def read_units(found: RecordingFiles, header: RecordingHeader) -> Units:
    """Read ``units.tsv``."""
    table = TsvFile(found.files["units.tsv"], RecordingError)
    table.require(UNIT_COLUMNS)
    known = (*UNIT_COLUMNS, *COORDINATE_COLUMNS)
    for column in table.columns:
        if column not in known:
            raise RecordingError(
                f"unknown column '{column}'",
                where=f"{table.path}, line 1, column '{column}'",
                got=column,
                expected="columns " + ", ".join(known),
                remedy=did_you_mean(column, known),
            )
    coordinates = None
    if any(column in table.columns for column in COORDINATE_COLUMNS):
        table.require(COORDINATE_COLUMNS)
        axes = [table.numbers_or_nan(column) for column in COORDINATE_COLUMNS]
        coordinates = np.array(axes, dtype=np.float64).T
    ids, regions = tuple(table.text("unit")), tuple(table.text("region"))
    return Units(ids, regions, coordinates, header.coordinate_frame, header.comparable_units)


def read_words(path: Path, required: Sequence[str] = tuple(WORD_COLUMNS)) -> pl.DataFrame:
    """Read ``words.tsv``, extra columns included."""
    table = TsvFile(path, StimulusError)
    table.require(required)
    columns: dict[str, pl.Series] = {}
    for name in table.columns:
        dtype = pl.String if name == ITEM else WORD_COLUMNS.get(name)
        if dtype is None:
            columns[name] = pl.Series(name, table.values(name))
        elif dtype == pl.String:
            columns[name] = pl.Series(name, table.text(name), dtype)
        elif dtype == pl.Int64:
            columns[name] = pl.Series(name, table.integers(name), dtype)
        else:
            columns[name] = pl.Series(name, table.numbers(name), dtype)
    return pl.DataFrame(columns)


def read_table(found: StimulusFiles, story: str) -> tuple[pl.DataFrame, frozenset[str]]:
    """Read the words, or complete a table of items (see `items_table`); and which columns are unknown."""
    if found.table.name == "words.tsv":
        return read_words(found.table), frozenset()
    return items_table(read_words(found.table, required=(ITEM,)), story)


def read_mechanisms(found: StimulusFiles) -> dict[str, FloatArray]:
    """Read ``mechanisms.tsv``, if it is there."""
    if "mechanisms.tsv" not in found.files:
        return {}
    table = TsvFile(found.files["mechanisms.tsv"], StimulusError)
    return {name: np.array(table.numbers(name), dtype=np.float64) for name in table.columns}


def read_envelope(found: StimulusFiles) -> Envelope | None:
    """Read ``envelope.npy`` and ``envelope.toml``, if they are there."""
    if "envelope.npy" not in found.files:
        return None
    about = TomlFile(found.files["envelope.toml"], _SERIES_KEYS, StimulusError)
    values = load_npy(found.files["envelope.npy"], StimulusError)
    return Envelope(values, about.number("sampling_rate_hz"), about.number("start_s"))


def read_audio_start(found: StimulusFiles) -> float:
    """Read the time of the audio's first sample from ``audio.toml``; 0 s without that file."""
    if "audio.toml" not in found.files:
        return 0.0
    return TomlFile(found.files["audio.toml"], ("start_s",), StimulusError).number("start_s")
