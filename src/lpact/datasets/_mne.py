"""Recordings that MNE opens: files, channels, units and places; values are read a few channels at a time.

The unit of voltages: a unit that the file states counts. If ``channels.tsv`` states another one, that is an error; for
the plain ``V`` it is a note, because tables often hold the unit in which software returns values. Where the file states
none (EDF, BDF), the table's counts, with a note; where neither does, that is an error. For MEG the file's calibration
counts, and another unit in the table is a note.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpact.codes import Reason
from lpact.datasets._bids import ChannelTable, Places, check_sampling_rate, read_channels, shown
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import MISSING
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import UNKNOWN, damaged, excluded, note
from lpact.datasets.base import Span, TimeSeries, Units
from lpact.datasets.series import StreamedSeries
from lpact.errors import RecordingError
from lpact.extras import require
from lpact.math.types import FloatArray

NUMBERING_SAMPLES = 2.0
"""Samples are counted from 0 or from 1, and a time between two of them has been rounded to one."""

ROUNDING_S = 0.0005
"""Onsets are written in milliseconds, or finer."""

MICROVOLT = "µV"
_VOLTAGES = ("eeg", "ecog", "seeg", "dbs")
_VOLT, _MEG_UNITS = 107, {112: "T", 201: "T/m"}
_FRAMES = {1: "device", 4: "head", 5: "mri", 2001: "mri_voxel", 2002: "ras", 2003: "mni_tal"}
"""Codes of FIFF, as MNE names them."""

_EDF, _KIT = (".edf", ".bdf"), (".con", ".sqd")
_KIT_DATA = 9
"""Entry of the raw data in the directory of a KIT file."""

_MICRO = ("uv", "µv", "microv", "microvolt", "microvolts")
_VOLTS = {
    **dict.fromkeys(_MICRO, 1e-6),
    **dict.fromkeys(("V", "v", "volt", "volts"), 1.0),
    **dict.fromkeys(("mV", "mv", "millivolt", "millivolts"), 1e-3),
    **dict.fromkeys(("nV", "nv", "nanovolt", "nanovolts"), 1e-9),
}
_BIDS_TYPES = {"MEGMAG": "mag", "MEGGRADAXIAL": "mag", "MEGGRADPLANAR": "grad"}
"""Types of channels in BIDS whose names in MNE differ; axial gradiometers are in T, as magnetometers are."""

_DAMAGED = re.compile("corrupt|truncated|invalid tag|does not match the file size", re.IGNORECASE)
_MARKERS = re.compile(r"^\s*MarkerFile\s*[=:][ \t]*(.*?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_RECORD_ONSET = re.compile(rb"([+-][0-9]+(?:\.[0-9]*)?)(?:\x15[0-9.]*)?\x14")


class OpenedRaw(NamedTuple):
    """A recording as MNE opened it, and all files that are read for it."""

    raw: Any
    files: tuple[Path, ...]


def open_raw(
    folder: SourceFolder, path: Path, options: Mapping[str, Any] | None = None
) -> OpenedRaw:
    """Open a recording with MNE, by its extension, without reading its data.

    A file outside ``folder`` and gaps between the records of an EDF or BDF file are errors. ``options`` go to MNE's
    reader of the format.
    """
    raw = _open(path, options or {})
    files = _recording_files(folder, path, raw)
    if path.suffix.lower() in _EDF:
        _check_continuous(path, raw)
    if path.suffix.lower() in _KIT:
        _check_length(path, raw)
    return OpenedRaw(raw, files)


def _open(path: Path, options: Mapping[str, Any]) -> Any:
    """Open a recording; warnings of MNE other than of damage concern what is checked here, or what does not matter."""
    mne = require("mne", extra="meeg")
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            raw = mne.io.read_raw(path, preload=False, verbose="warning", **options)
    except Exception as problem:
        raise damaged(path, problem) from None
    for warning in heard:
        if _DAMAGED.search(str(warning.message).replace(str(path), path.suffix)):
            raise damaged(path, warning.message)
    return raw


class RawSeries(StreamedSeries):
    """Channels of a recording as [n_samples, n_units], time-major in the file.

    Only the path is kept: every `read` opens the file anew, so that a series can be sent to other processes and read
    in several threads. ``picks`` are the channels of units, ``scale`` factors from MNE's SI units to the physical
    unit, and ``options`` those of `open_raw`, which gave ``raw``.
    """

    def __init__(
        self,
        path: Path,
        picks: Sequence[int],
        *,
        scale: float | Sequence[float] = 1.0,
        options: Mapping[str, Any] | None = None,
        raw: Any,
    ) -> None:
        self.path = path
        self._picks = tuple(int(pick) for pick in picks)
        self._scale: FloatArray = np.full(len(self._picks), scale, dtype=np.float64)
        self._options = dict(options or {})
        self.shape = (int(raw.n_times), len(self._picks))
        self.dtype = np.dtype(np.float64)

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices in this order, [n_samples, len(units)]."""
        raw = _open(self.path, self._options)
        wanted = [self._picks[unit] for unit in units]
        rising, order = np.unique(wanted, return_inverse=True)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", category=RuntimeWarning)
                values: npt.NDArray[Any] = raw.get_data(picks=rising, verbose="error")
        except Exception as problem:
            raise damaged(self.path, problem) from None
        if values.shape[1] != self.shape[0]:
            n_samples = f"{self.shape[0]} samples"
            raise damaged(self.path, f"{values.shape[1]} samples", expected=n_samples)
        if wanted != rising.tolist():
            values = values[order]
        scaled: FloatArray = values.T.astype(np.float64, copy=False)
        factor = self._scale[list(units)]
        return scaled if (factor == 1.0).all() else scaled * factor


@dataclass(frozen=True)
class OpenRecording:
    """A recording before its words are known: sample 0 is at 0 s. ``files`` are those that hold it."""

    raw: Any
    signal: TimeSeries
    units: Units
    bad_spans: tuple[Span, ...]
    findings: tuple[Finding, ...]
    files: tuple[Path, ...]


def open_recording(
    folder: SourceFolder,
    path: Path,
    *,
    wanted: Sequence[str],
    comparable: bool,
    sidecar: Path | None = None,
    channels: Path | None = None,
    complete: bool = True,
    places: Callable[[Places, Sequence[str]], Places] | None = None,
    envelope: bool = False,
    options: Mapping[str, Any] | None = None,
) -> OpenRecording:
    """Open a recording without reading its values: its usable channels, their scales and places, and bad spans.

    ``wanted`` are the types of channels that are units, as MNE names them. Types and status in ``channels`` (a
    channels.tsv, with all channels if ``complete``) count before those in the file. ``places`` returns the places of
    units from those in the file and the names of units. An ``envelope`` is in arbitrary units, and is not scaled.
    """
    where = folder.where(path)
    raw, files = open_raw(folder, path, options)
    rate_hz = float(raw.info["sfreq"])
    check_sampling_rate(rate_hz, sidecar, path)
    table = None if channels is None else read_channels(channels)
    names = [str(name) for name in raw.ch_names]
    if table is not None and complete:
        table.check_complete(names, path)
    types, bad, findings = _channel_types(table, names, raw, where)
    picks, more = pick_channels(names, types, wanted=wanted, bad=bad, where=where, path=path)
    ids = [names[pick] for pick in picks]
    scaled = Scaling((1.0,) * len(picks), "a.u.")
    if not envelope:
        scaled = scaling(path, raw, picks, types, table=table, where=where)
    own = _channel_places(raw, picks)
    units, place_notes = _units(ids, places(own, ids) if places else own, where, comparable)
    series = RawSeries(path, picks, scale=scaled.factors, options=options, raw=raw)
    return OpenRecording(
        raw,
        TimeSeries(series, rate_hz, 0.0, scaled.physical_unit, envelope=envelope),
        units,
        tuple(_bad_annotations(raw)),
        (*findings, *more, *scaled.findings, *place_notes),
        files,
    )


def _channel_types(
    table: ChannelTable | None, names: Sequence[str], raw: Any, where: str
) -> tuple[list[str], dict[str, str], list[Finding]]:
    """Return each channel's type in MNE's terms and why bad ones are bad; channels.tsv counts, then the file."""
    bad = {str(name): "in the file" for name in raw.info["bads"]}
    if table is None:
        return list(raw.get_channel_types()), bad, []
    unknown = [name for name in table.types if name not in names]
    known = {name: _BIDS_TYPES.get(kind, kind.lower()) for name, kind in table.types.items()}
    own = zip(names, raw.get_channel_types(), strict=True)
    types = [known.get(name, kind) for name, kind in own]
    finding = note(
        "channels.tsv",
        Reason.SIDECAR_DISAGREES,
        where,
        f"{len(unknown)} row(s) for channels that the file does not have: {shown(unknown)}",
        "the channels of the file",
        "none is needed: the file's channels count",
    )
    return types, bad | table.bad, [finding] if unknown else []


def _recording_files(folder: SourceFolder, path: Path, raw: Any) -> tuple[Path, ...]:
    """Return every file that is read for an opened recording, sorted: header, data, parts and markers."""
    named = [path, *(Path(name) for name in raw.filenames if name is not None)]
    if path.suffix.lower() == ".vhdr":
        match = _MARKERS.search(path.read_bytes().decode("latin-1"))
        beside = [path.parent / match[1], path.with_suffix(".vmrk")] if match and match[1] else []
        named += [marker for marker in beside if marker.is_file()][:1]
    found = {_inside(folder, path, one) for one in named}
    for one in [one for one in found if one.is_dir()]:
        found.remove(one)
        found |= {_inside(folder, path, part) for part in one.rglob("*") if not part.is_dir()}
    return tuple(sorted(found))


def _inside(folder: SourceFolder, path: Path, named: Path) -> Path:
    absolute = Path(os.path.abspath(path.parent / named))  # does not follow links
    for one in (absolute, absolute.resolve()):
        if one.is_relative_to(folder.root):
            return folder.file(folder.relative(one), RecordingError)
    raise RecordingError(
        "a recording's data lie outside the dataset's folder",
        where=str(path),
        got=str(absolute),
        expected=f"a file inside {folder.root}",
        remedy="copy the data into the folder, and fix the header",
    )


def _check_length(path: Path, raw: Any) -> None:
    """Raise `RecordingError` if a KIT file is shorter than its header says."""
    extras = raw._raw_extras[0]
    n_values = int(extras["n_samples"]) * int(extras["nchan"])
    n_bytes = int(extras["dirs"][_KIT_DATA]["offset"]) + n_values * extras["dtype"].itemsize
    if path.stat().st_size < n_bytes:
        raise damaged(path, "data are missing at its end", expected=f"at least {n_bytes} bytes")


def _check_continuous(path: Path, raw: Any) -> None:
    """Raise `RecordingError` if a discontinuous file (EDF+D, BDF+D) has a gap between its records.

    MNE returns the records one after another: samples after a gap would be too early.
    """
    extras = raw._raw_extras[0]
    with path.open("rb") as stream:
        kind = stream.read(197)[192:].decode("latin-1").upper()
        if kind not in ("EDF+D", "BDF+D") or not len(extras["tal_idx"]):
            return
        ends = np.cumsum([0, *extras["n_samps"]]) * int(extras["dtype_byte"])
        first, stop = (int(ends[extras["tal_idx"][0] + k]) for k in (0, 1))
        onsets = []
        for record in range(int(extras["n_records"])):
            stream.seek(int(extras["data_offset"]) + record * int(ends[-1]) + first)
            cell = stream.read(stop - first)
            match = _RECORD_ONSET.match(cell)
            if match is None:
                found = f"record {record + 1}: {cell[:24]!r}"
                expected = "the onset of each record at the start of its annotations"
                raise damaged(path, found, expected=expected)
            onsets.append(float(match[1]))
    onset_s = np.array(onsets)
    expected_s = float(np.ravel(extras["record_length"])[0]) * np.arange(onset_s.size)
    apart_s = onset_s - onset_s[0] - expected_s
    sample_s = 1.0 / raw.info["sfreq"]
    beyond = np.flatnonzero(np.abs(apart_s) > sample_s + 1e-6 * expected_s)
    if beyond.size:
        first = int(beyond[0])
        n_gaps = int((np.abs(np.diff(apart_s)) > sample_s).sum())
        raise RecordingError(
            "a recording has gaps: its samples do not follow one another",
            where=f"{path}, record {first + 1} of {onset_s.size}",
            got=f"{kind} with {n_gaps} gap(s); this record begins {apart_s[first]:+g} s from where the one before it "
            "ends",
            expected="records without gaps (EDF+C), so that a time is a sample",
            remedy="cut the file at its gaps into one recording each, with its own events, or fill the gaps and mark "
            "them with events whose name begins with BAD",
        )


def pick_channels(
    names: Sequence[str],
    types: Sequence[str],
    *,
    wanted: Sequence[str],
    bad: Mapping[str, str],
    where: str,
    path: Path,
) -> tuple[list[int], list[Finding]]:
    """Return the indices of usable neural channels, and findings on all others.

    ``types`` are MNE's (``ecog``, ``mag`` …), ``wanted`` those that count as neural; ``bad`` maps channels that the
    source marks as bad to the reason that it states.
    """
    findings = []
    kinds = Counter(types)
    other = [name for name, kind in zip(names, types, strict=True) if kind not in wanted]
    if other:
        counts = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()) if kind not in wanted)
        findings.append(
            excluded(
                "channels",
                Reason.CHANNEL_NOT_NEURAL,
                where,
                f"{len(other)} channel(s) ({counts}): {shown(other)}",
                "channels of type " + ", ".join(wanted),
                "none is needed; fix the channel's type in the source if it is neural",
            )
        )
    neural = [i for i, kind in enumerate(types) if kind in wanted]
    findings += [
        excluded(
            names[i],
            Reason.CHANNEL_MARKED_BAD,
            where,
            f"marked as bad: {bad[names[i]]}",
            "a channel that is not marked as bad",
            "the channel is left out; fix its status in the source to keep it",
        )
        for i in neural
        if names[i] in bad
    ]
    picks = [i for i in neural if names[i] not in bad]
    if not picks:
        raise RecordingError(
            "a recording has no usable neural channel",
            where=str(path),
            got=", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())) or "nothing",
            expected="at least one channel of type " + ", ".join(wanted) + " that is not bad",
            remedy="check the types and status of channels (channels.tsv), and the options",
        )
    return picks, findings


def _channel_places(raw: Any, picks: Sequence[int]) -> Places:
    """Return positions from the channel info in mm, NaN where there is none, and their frame."""
    chosen = [raw.info["chs"][pick] for pick in picks]
    places = np.array([channel["loc"][:3] for channel in chosen], dtype=np.float64) * 1000.0
    absent = ~np.isfinite(places).all(axis=1) | (places == 0.0).all(axis=1)
    places[absent] = np.nan
    frames = {int(channel["coord_frame"]) for channel in chosen}
    frame = _FRAMES.get(frames.pop(), "") if len(frames) == 1 else ""
    return Places(places, frame, (UNKNOWN,) * len(picks))


def _units(
    ids: Sequence[str], places: Places, where: str, comparable: bool
) -> tuple[Units, list[Finding]]:
    """Return the units at these places, with a note if some have none."""
    xyz = places.coordinates_mm
    absent = [name for name, place in zip(ids, xyz, strict=True) if np.isnan(place).any()]
    nowhere = len(absent) == len(ids)
    units = Units(
        tuple(ids),
        places.regions,
        None if nowhere else xyz,
        "" if nowhere else places.frame,
        comparable=comparable,
    )
    if not absent:
        return units, [*places.findings]
    missing = note(
        "units",
        Reason.UNIT_WITHOUT_PLACE,
        where,
        f"{len(absent)} of {len(ids)} unit(s) without a position: {shown(absent)}",
        "a position for every unit",
        "the units are kept, without a position",
    )
    return units, [*places.findings, missing]


def _bad_annotations(raw: Any) -> list[Span]:
    """Return stretches that annotations of the file mark as bad, in seconds from the file's first sample."""
    found = raw.annotations
    return [
        Span(float(onset - raw.first_time), float(onset - raw.first_time + duration), str(label))
        for onset, duration, label in zip(
            found.onset, found.duration, found.description, strict=True
        )
        if str(label).lower().startswith("bad")
    ]


def shift_spans(spans: Sequence[Span], by_s: float) -> tuple[Span, ...]:
    """Return spans on a clock that is ``by_s`` ahead."""
    return tuple(Span(span.start_s + by_s, span.stop_s + by_s, span.label) for span in spans)


@dataclass(frozen=True)
class SampleMismatch:
    """Rows whose two times differ; ``apart`` is ``onset · rate − sample`` of every row, NaN where one is missing."""

    rows: tuple[int, ...]
    within: float
    apart: FloatArray
    found: str
    expected: str


def sample_mismatch(
    onset_s: npt.ArrayLike, samples: Sequence[float], rate_hz: float, tolerance: float | None = None
) -> SampleMismatch | None:
    """Compare ``onset`` (seconds) and ``sample`` (a number) of events, one row per line; None where they agree.

    They agree where ``|onset · rate_hz − sample| ≤ tolerance``; unless it is given, that is `NUMBERING_SAMPLES` and
    the samples in `ROUNDING_S`.
    """
    within = NUMBERING_SAMPLES + ROUNDING_S * rate_hz if tolerance is None else tolerance
    onsets = np.asarray(onset_s, dtype=np.float64)
    apart = onsets * rate_hz - np.asarray(samples, dtype=np.float64)
    rows = tuple(int(row) for row in np.flatnonzero(np.abs(apart) > within + 1e-6))
    if not rows:
        return None
    first = rows[0]
    return SampleMismatch(
        rows,
        within,
        apart,
        f"{len(rows)} of {onsets.size} lines, by up to {np.nanmax(np.abs(apart)):.0f} samples; first: line "
        f"{first + 2}, onset {onsets[first]} s and sample {samples[first]:.15g}",
        f"onset · {rate_hz:g} Hz = sample, within {within:.3g}",
    )


class Scaling(NamedTuple):
    """Factor from MNE's values to the physical unit for each unit, the physical unit, and notes."""

    factors: tuple[float, ...]
    physical_unit: str
    findings: tuple[Finding, ...] = ()


def scaling(
    path: Path,
    raw: Any,
    picks: Sequence[int],
    types: Sequence[str],
    *,
    table: ChannelTable | None,
    where: str,
) -> Scaling:
    """Return the scaling of the channels ``picks`` by the rule of this module; ``types`` are those of all channels."""
    factors, units = [], set()
    from_table: list[tuple[str, str, str]] = []
    different: list[tuple[str, str, str]] = []
    for pick in picks:
        name = str(raw.ch_names[pick])
        listed = table.units.get(name, "").strip() if table else ""
        if types[pick] not in _VOLTAGES:
            unit = _MEG_UNITS.get(int(raw.info["chs"][pick]["unit"]), "")
            if not unit:
                raise _unknown_unit(path, name, "a unit that is not T or T/m", listed)
            if listed not in MISSING and listed != unit:
                different.append((name, unit, listed))
            factors.append(1.0)
            units.add(unit)
            continue
        text, stated, applied = _stated_unit(path, raw, pick)
        listed_volts = _volts(listed)
        if applied is None or (stated is None and listed_volts is None):
            raise _unknown_unit(path, name, repr(text) if text else "no unit", listed)
        if stated is None:
            from_table.append((name, text, listed))
        elif listed_volts not in (None, stated, 1.0):
            raise RecordingError(
                "the recording and channels.tsv state different units for a channel",
                where=f"{table.path if table else ''}, channel '{name}', column 'units'",
                got=f"'{text}' in {path.name}, '{listed}' in the table",
                expected="the same unit in both",
                remedy="find out which is right; fix the table, or write the recording again",
            )
        elif listed_volts != stated and listed not in MISSING:
            different.append((name, text, listed))
        factors.append(1e6 * ((listed_volts if stated is None else stated) or 1.0) / applied)
        units.add(MICROVOLT)
    findings = []
    for channels, expected, counts in (
        (from_table, "a unit of voltage in the file", "the unit in channels.tsv counts"),
        (different, "the file's unit in channels.tsv", "the file's unit counts"),
    ):
        if channels:
            name, text, listed = channels[0]
            found = f"{len(channels)} channel(s); the first is {name}: {text or 'no unit'} in the file, {listed} in "
            found += "channels.tsv"
            remedy = f"none is needed: {counts}"
            reason = Reason.SIDECAR_DISAGREES
            findings.append(note("units", reason, where, found, expected, remedy))
    return Scaling(tuple(factors), ", ".join(sorted(units)), tuple(findings))


def _volts(text: str) -> float | None:
    """Return how many volts one of a unit is, None if it is no unit of voltage."""
    # Greek mu, mu in Shift JIS, and the micro sign in UTF-8 that was read as Latin-1.
    plain = text.strip().replace("\u03bc", "µ").replace("\x83\xca", "µ").replace("Âµ", "µ")
    return _VOLTS.get(plain, _VOLTS.get(plain.lower()) if plain.lower() in _MICRO else None)


def _stated_unit(path: Path, raw: Any, pick: int) -> tuple[str, float | None, float | None]:
    """Return a channel's unit in its file, its volts, and the factor by which MNE makes volts of it (None: none)."""
    channel, ending = raw.info["chs"][pick], path.suffix.lower()
    text = str(raw._orig_units.get(raw.ch_names[pick], "")).replace("n/a", "")
    if ending in _EDF:
        # MNE takes a unit that it does not know for volts.
        return text, _volts(text), float(raw._raw_extras[0]["units"][pick])
    if int(channel["unit"]) != _VOLT or int(channel["unit_mul"]) != 0:
        return text, None, None
    text = MICROVOLT if ending in (".set", ".mff") else text or "V"
    return text, _volts(text), _volts(text)


def _unknown_unit(path: Path, name: str, found: str, listed: str) -> RecordingError:
    in_table = f"'{listed}' in the column 'units' of" if listed else "none in"
    return RecordingError(
        "the unit of a channel is not known",
        where=f"{path}, channel '{name}'",
        got=f"{found} in the file; {in_table} channels.tsv",
        expected="V, mV, µV or nV, in the file or in channels.tsv",
        remedy="add the unit in the column 'units' of channels.tsv, or leave the channel out: type MISC there",
    )
