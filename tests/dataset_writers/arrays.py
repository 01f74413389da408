"""Writer of a folder of arrays as users have them: every format of the reader ``arrays``, with its truth.

One stimulus of two stories, and one recording for each format. The words table is a CSV file with names of its own.
Unit 0 of a recording is 0 everywhere but at the true sample of word i, where it is i + 1; other units are noise.
Clocks drift, triggers are dropped, and recordings begin after the first words or end before the last.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import lfilter

from lpact.datasets.base import RecordingId
from lpact.extras import require
from lpact.math.types import FloatArray, IntArray

FORMATS = (
    "npy",
    "npy_fortran",
    "npz",
    "hdf5",
    "hdf5_rows",
    "zarr2",
    "zarr3",
    "nwb",
    "nwb_timestamps",
    "mat5",
    "mat73",
)
"""Subjects are named after them, without the underscore."""

REGIONS = ("STG", "IFG")
STORIES = ("north", "south")


@dataclass(frozen=True)
class ArraysTruth:
    """What was written.

    Attributes
    ----------
    sampling_rate_hz, words, onset_s
        Of all recordings; texts and onsets of the words on the stimulus' clock.
    samples
        The sample of every word in each recording, −1 for words that it does not hold.
    values
        Each recording [n_samples, n_units] in its physical unit.
    units
        Names of the units in NWB files and tables.
    drift_ppm, n_dropped
        Drift of each recording's clock, and triggers that it lost.
    """

    sampling_rate_hz: float
    words: tuple[str, ...]
    onset_s: FloatArray
    samples: Mapping[RecordingId, IntArray]
    values: Mapping[RecordingId, FloatArray]
    units: tuple[str, ...]
    drift_ppm: Mapping[RecordingId, float]
    n_dropped: Mapping[RecordingId, int]


@dataclass(frozen=True)
class _Made:
    """One recording before it is written."""

    values: FloatArray
    samples: IntArray
    start_s: float
    triggers: FloatArray
    n_dropped: int


def write_arrays(
    folder: Path,
    *,
    seed: int = 0,
    formats: Sequence[str] = FORMATS,
    n_words: int = 40,
    n_units: int = 4,
    sampling_rate_hz: float = 512.0,
) -> ArraysTruth:
    """Write ``folder`` and return what is in it."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    words = tuple(f"wörd{i}" if i % 7 == 0 else f"word{i}" for i in range(n_words))
    onset_s = np.round(1.0 + np.cumsum(rng.uniform(0.2, 0.6, n_words)), 4)
    _write_words(folder / "talk.csv", words, onset_s)
    units = tuple(f"E{i + 1}" for i in range(n_units))
    lines = [f"{unit}\t{REGIONS[i % 2]}\t{i}.5\t{-i}.0\t{'n/a' if i == 1 else i}" for i, unit in enumerate(units)]
    _text(folder / "units.tsv", "unit\tregion\tx_mm\ty_mm\tz_mm", lines)
    tables = [_HEAD]
    samples, values, drift, dropped = {}, {}, {}, {}
    for number, kind in enumerate(formats):
        recording_id = RecordingId(kind.replace("_", ""), "1", "1", "talk")
        ppm = (0.0, 1200.0, -2500.0)[number % 3]
        shared = number % 3 == 0
        made = _make(rng, onset_s, n_units, sampling_rate_hz, ppm, shared=shared)
        gain = _gain(kind, n_units)
        keys = _WRITERS[kind](folder, made.values, sampling_rate_hz, made.start_s)
        keys |= _timing(folder, made, number % 3, words, recording_id, keys)
        tables.append(_entry(recording_id, keys))
        samples[recording_id] = made.samples
        values[recording_id] = made.values * gain
        drift[recording_id] = ppm
        dropped[recording_id] = made.n_dropped if number % 3 == 1 else 0
    (folder / "recordings.toml").write_text("\n".join(tables), encoding="utf-8")
    return ArraysTruth(sampling_rate_hz, words, onset_s, samples, values, units, drift, dropped)


def _gain(kind: str, n_units: int) -> FloatArray:
    """What a stored value is multiplied by: NWB files have a factor for the series, and one for each channel."""
    series = 1e-6 if kind.startswith("nwb") else 1.0
    channels = np.arange(1, n_units + 1) if kind == "nwb" else np.ones(n_units)
    return channels.astype(np.float64) * series


_HEAD = """[dataset]
source = "written by dataset_writers"
version = "1"
licence = "CC0-1.0"

[[stimuli]]
id = "talk"
words = "talk.csv"
times_in = "ms"
columns = { word = "text", onset_s = "start", offset_s = "end", sentence_id = "sentence", story_id = "story" }

[defaults]
stimulus = "talk"
"""


def _make(
    rng: np.random.Generator,
    onset_s: FloatArray,
    n_units: int,
    rate_hz: float,
    ppm: float,
    *,
    shared: bool,
) -> _Made:
    """Draw a recording: its clock reads ``origin + (1 + ppm) t`` at stimulus time t, and sample 0 is at ``start_s``."""
    speed = 1.0 + ppm * 1e-6
    origin = 0.0 if shared else float(np.round(rng.uniform(-20.0, 20.0), 3))
    # It begins between the third and the fourth word, and ends before the last but one.
    start_s = origin + float(np.round(speed * np.mean(onset_s[2:4]), 3))
    n_samples = int((origin + speed * onset_s[-2] - start_s) * rate_hz) - 2
    samples = np.rint((origin + speed * onset_s - start_s) * rate_hz).astype(np.int64)
    samples[(samples < 0) | (samples >= n_samples)] = -1
    noise = rng.integers(-200, 200, (n_samples, n_units)).astype(np.float64)
    values = np.rint(lfilter([1.0], [1.0, -0.9], noise, axis=0))
    values[:, 0] = 0.0
    heard = samples >= 0
    values[samples[heard], 0] = np.flatnonzero(heard) + 1
    # A trigger about every half second falls on a sample; the stimulus' clock tells its time exactly.
    at = np.arange(0, n_samples, round(rate_hz / 2))
    lost = np.sort(rng.choice(np.arange(2, at.size - 2), 3, replace=False))
    stimulus_s = (start_s + at / rate_hz - origin) / speed
    triggers = np.stack([stimulus_s, at.astype(np.float64)], axis=1)
    triggers[lost, 1] = np.nan
    return _Made(values, samples, start_s, triggers, lost.size)


def _timing(
    folder: Path,
    made: _Made,
    way: int,
    words: Sequence[str],
    recording_id: RecordingId,
    keys: Mapping[str, Any],
) -> dict[str, Any]:
    """Write how words are found in time: by the shared clock, by triggers, or by a list of onsets."""
    first = keys.get("first_sample", 0)
    clock = {} if keys["file"].endswith(".nwb") else {"start_s": made.start_s}
    if way == 0:
        return clock
    if way == 1:
        lines = [
            f"{stimulus_s:.9f}\t{'n/a' if np.isnan(sample) else int(sample) + first}"
            for stimulus_s, sample in made.triggers
        ]
        name = f"{recording_id.subject}_triggers.tsv"
        _text(folder / name, "stimulus_s\tsample", lines)
        return clock | {"triggers": "{subject}_triggers.tsv", "max_trigger_gap_s": 2.0}
    lines = [
        f"{word}\t{'n/a' if sample < 0 else sample + first}" for word, sample in zip(words, made.samples, strict=True)
    ]
    _text(folder / f"{recording_id.subject}_onsets.tsv", "word\tsample", lines)
    return clock | {"word_onsets": "{subject}_onsets.tsv"}


def _entry(recording_id: RecordingId, keys: Mapping[str, Any]) -> str:
    lines = ["[[recordings]]", f'subject = "{recording_id.subject}"']
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"


def _write_words(path: Path, words: Sequence[str], onset_s: FloatArray) -> None:
    half = len(words) // 2
    lines = [
        f'"{word}",{1000 * onset:.1f},{1000 * onset + 150:.1f},{i // 5},{STORIES[i >= half]},{len(word)},NOUN,'
        f"{'n/a' if i == 0 else i / 10}"
        for i, (word, onset) in enumerate(zip(words, onset_s, strict=True))
    ]
    _text(path, "text,start,end,sentence,story,n_letters,upos,score", lines)


def _text(path: Path, header: str, lines: Sequence[str]) -> None:
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


_PLAIN = {"units": "units.tsv", "coordinate_frame": "MNI152NLin2009cAsym", "physical_unit": "µV"}


def _npy(folder: Path, values: FloatArray, rate_hz: float, _start_s: float) -> dict[str, Any]:
    np.save(folder / "rows.npy", values.astype(np.float32), allow_pickle=False)
    return {"file": "rows.npy", "axes": "time,unit", "sampling_rate_hz": rate_hz, **_PLAIN}


def _npy_fortran(folder: Path, values: FloatArray, rate_hz: float, _s: float) -> dict[str, Any]:
    np.save(folder / "columns.npy", np.asfortranarray(values), allow_pickle=False)
    return {"file": "columns.npy", "axes": "time, unit", "sampling_rate_hz": rate_hz, **_PLAIN}


def _npz(folder: Path, values: FloatArray, rate_hz: float, _start_s: float) -> dict[str, Any]:
    np.savez_compressed(folder / "named.npz", ecog=values.T.astype(np.int32), fs=rate_hz)
    keys = {"key": "ecog", "axes": "unit,time", "sampling_rate_key": "fs"}
    return {"file": "named.npz", **keys, **_PLAIN}


def _hdf5(folder: Path, values: FloatArray, rate_hz: float, _start_s: float) -> dict[str, Any]:
    h5py = require("h5py", extra="hdf5")
    with h5py.File(folder / "units.h5", "w") as file:
        data = file.create_dataset(
            "ecog/data",
            data=values.T.astype(np.float32),
            chunks=(1, min(4096, len(values))),
            compression="gzip",
        )
        data.attrs["rate"] = rate_hz
        file["ecog/quality"] = np.ones((values.shape[1], 2))
    keys = {"key": "/ecog/data", "axes": "unit,time", "sampling_rate_key": "ecog/data@rate"}
    return {"file": "units.h5", **keys, **_PLAIN}


def _hdf5_rows(folder: Path, values: FloatArray, rate_hz: float, _s: float) -> dict[str, Any]:
    h5py = require("h5py", extra="hdf5")
    with h5py.File(folder / "rows.hdf5", "w") as file:
        file["data"] = values.astype(np.int16)
        file["info/rate"] = rate_hz
    keys = {"axes": "time,unit", "sampling_rate_key": "info/rate", "sampling_rate_hz": rate_hz}
    return {"file": "rows.hdf5", **keys, **_PLAIN}


def _zarr(zarr_format: int) -> Any:
    def write(folder: Path, values: FloatArray, rate_hz: float, _start_s: float) -> dict[str, Any]:
        zarr = require("zarr", extra="zarr")
        name = f"format{zarr_format}.zarr"
        group = zarr.open_group(str(folder / name), mode="w", zarr_format=zarr_format)
        array = group.create_array(
            "ieeg/data", shape=values.shape, chunks=(2000, 1), dtype="float64", fill_value=np.nan
        )
        array[:] = values
        array.attrs["sfreq"] = rate_hz
        keys = {"key": "ieeg/data", "axes": "time,unit", "sampling_rate_key": "ieeg/data@sfreq"}
        return {"file": name, **keys, **_PLAIN}

    return write


def _nwb(*, timestamps: bool) -> Any:
    def write(folder: Path, values: FloatArray, rate_hz: float, start_s: float) -> dict[str, Any]:
        pynwb = require("pynwb", extra="nwb")
        file = pynwb.NWBFile("a talk", "arrays", datetime(2026, 1, 1, tzinfo=UTC))
        group = file.create_electrode_group("grid", "a grid", "temporal", file.create_device("array"))
        file.add_electrode_column("label", "name of the electrode")
        # The table holds one electrode more than the series, which takes them in another order.
        n_units = values.shape[1]
        for i in range(n_units + 1):
            location = " " if i == 2 else REGIONS[i % 2]
            place = {"x": 1000.0 * i, "y": 500.0, "z": -float(i)}
            file.add_electrode(**place, location=location, group=group, label=f"E{i}")
        rows = list(range(1, n_units + 1))
        clock = (
            {"timestamps": start_s + np.arange(len(values)) / rate_hz}
            if timestamps
            else {"rate": rate_hz, "starting_time": start_s}
        )
        series = require("pynwb.ecephys", extra="nwb").ElectricalSeries(
            name="ElectricalSeries",
            data=values.astype(np.int16),
            electrodes=file.create_electrode_table_region(rows, "the grid"),
            conversion=1e-6,
            channel_conversion=None if timestamps else 1e6 * _gain("nwb", n_units),
            **clock,
        )
        file.add_acquisition(series)
        name = "times.nwb" if timestamps else "rate.nwb"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)
            with pynwb.NWBHDF5IO(str(folder / name), "w") as io:
                io.write(file)
        return {"file": name, "unit_column": "label", "coordinates_in": "um"}

    return write


def _mat5(folder: Path, values: FloatArray, rate_hz: float, _start_s: float) -> dict[str, Any]:
    from scipy.io import savemat

    content = {"EEG": {"data": values.T, "srate": rate_hz}, "note": "a talk"}
    savemat(folder / "five.mat", content, do_compression=True)
    keys = {"key": "EEG.data", "axes": "unit,time", "sampling_rate_key": "EEG.srate"}
    return {"file": "five.mat", **keys, "first_sample": 1, **_PLAIN}


def _mat73(folder: Path, values: FloatArray, rate_hz: float, _start_s: float) -> dict[str, Any]:
    h5py = require("h5py", extra="hdf5")
    path = folder / "seven.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        # MATLAB's [time, unit] lies in HDF5 as [unit, time].
        for name, content in (("data", values.T), ("fs", np.array([[rate_hz]]))):
            file[name] = content
            file[name].attrs["MATLAB_class"] = np.bytes_(b"double")
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, written by dataset_writers".ljust(116) + bytes(8))
        stream.write(b"\x00\x02IM")
    keys = {"key": "data", "axes": "time,unit", "sampling_rate_key": "fs"}
    return {"file": "seven.mat", **keys, "first_sample": 1, **_PLAIN}


_WRITERS = {
    "npy": _npy,
    "npy_fortran": _npy_fortran,
    "npz": _npz,
    "hdf5": _hdf5,
    "hdf5_rows": _hdf5_rows,
    "zarr2": _zarr(2),
    "zarr3": _zarr(3),
    "nwb": _nwb(timestamps=False),
    "nwb_timestamps": _nwb(timestamps=True),
    "mat5": _mat5,
    "mat73": _mat73,
}
