"""Recordings that MNE opens: files, channels, units and places; values are read a few channels at a time.

docs/how-to/datasets/bids.md says which unit counts where the file and ``channels.tsv`` state different ones.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpact.codes import Reason
from lpact.datasets._bids import ChannelTable, Places, check_sampling_rate, read_channels
from lpact.datasets._files.source_folder import SourceFolder, check_regular
from lpact.datasets._files.strict import MISSING, damaged, invalid
from lpact.datasets._folder_dataset import UNKNOWN
from lpact.datasets.base import Findings, Recording, RecordingId, Span, TimeSeries, Units
from lpact.datasets.series import StreamedSeries
from lpact.errors import InputError, RecordingError
from lpact.extras import require
from lpact.math.types import FloatArray
from lpact.wording import listed

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
_DATA = re.compile(rb"^\s*DataFile\s*=[ \t]*(.*?)\s*$", re.MULTILINE | re.IGNORECASE)
_RECORD_ONSET = re.compile(rb"([+-][0-9]+(?:\.[0-9]*)?)(?:\x15[0-9.]*)?\x14")


def open_raw(folder: SourceFolder, path: Path, options: Mapping[str, Any] | None = None) -> Any:
    """Open a recording with MNE, by its extension, without reading its data.

    A file outside ``folder`` and gaps between the records of an EDF or BDF file are errors. ``options`` go to MNE's
    reader of the format.
    """
    raw = _open(path, options or {})
    _files(folder, path, raw)
    if path.suffix.lower() in _EDF:
        _check_continuous(path, raw)
    if path.suffix.lower() in _KIT:
        _check_length(path, raw)
    return raw


def recording_files(folder: SourceFolder, path: Path) -> Iterable[Path]:
    """Return the files of a recording as its headers name them; of a damaged one, those of its name."""
    try:
        return _files(folder, path, _open(path, {}))
    except RecordingError:
        return [part for part in (path, *path.rglob("*")) if part.is_file()]


def _open(path: Path, options: Mapping[str, Any]) -> Any:
    """Open a recording; warnings of MNE other than of damage concern what is checked here, or what does not matter."""
    mne = require("mne", extra="meeg")
    named = _DATA.findall(path.read_bytes()) if path.suffix.lower() == ".vhdr" else []
    elsewhere = [path.parent / os.fsdecode(name) for name in named]
    check_regular((*path.parent.iterdir(), *path.rglob("*"), *elsewhere), RecordingError)
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


def open_recording(
    folder: SourceFolder,
    path: Path,
    recording_id: RecordingId,
    *,
    wanted: Sequence[str],
    comparable: bool,
    start_s: float = 0.0,
    sidecar: Path | None = None,
    channels: Path | None = None,
    complete: bool = True,
    places: Callable[[Places, Sequence[str]], Places] | None = None,
    envelope: bool = False,
    options: Mapping[str, Any] | None = None,
) -> tuple[Recording, int]:
    """Open a recording without reading its values; return it, and the number that the file gives its first sample.

    ``wanted`` are the types of channels that are units, as MNE names them; the first sample is at ``start_s``. Types
    and status in ``channels`` (a channels.tsv, with all channels if ``complete``) take precedence over those in the
    file. ``places`` returns the places of units from those in the file and the names of units. An ``envelope`` is in
    a.u., and is not scaled.
    """
    findings = Findings(folder.where(path))
    raw = open_raw(folder, path, options)
    rate_hz = float(raw.info["sfreq"])
    check_sampling_rate(rate_hz, sidecar, path)
    table = None if channels is None else read_channels(channels)
    names = [str(name) for name in raw.ch_names]
    types = [str(kind) for kind in raw.get_channel_types()]
    bad = {str(name): "in the file" for name in raw.info["bads"]}
    if table is not None:
        unlisted = [name for name in names if name not in table.types]
        if complete and unlisted:
            found = f"no row for {listed(unlisted)}"
            expected = f"a row for each of the {len(names)} channels of {path.name}"
            remedy = "add the rows, or download both files again"
            raise invalid(table.path, found, expected, remedy=remedy)
        known = {name: _BIDS_TYPES.get(kind, kind.lower()) for name, kind in table.types.items()}
        types = [known.get(name, kind) for name, kind in zip(names, types, strict=True)]
        bad |= table.bad
        if unknown := [name for name in table.types if name not in names]:
            findings.note(
                "channels.tsv",
                Reason.SIDECAR_DISAGREES,
                f"{len(unknown)} row(s) for channels that the file does not have: {listed(unknown)}",
                "the channels of the file",
                "nothing to do: the file's channels are used",
            )
    picks = _pick_channels(path, names, types, wanted, bad, findings)
    ids = [names[pick] for pick in picks]
    factors, physical_unit = [1.0] * len(picks), "a.u."
    if not envelope:
        factors, physical_unit = _scaling(path, raw, picks, types, table, findings)
    own = _channel_places(raw, picks)
    units = _units(ids, places(own, ids) if places else own, comparable, findings)
    series = RawSeries(path, picks, scale=factors, options=options, raw=raw)
    recording = Recording(
        recording_id,
        TimeSeries(series, rate_hz, start_s, physical_unit, envelope=envelope),
        units,
        findings.where,
        bad_spans=tuple(span.shifted(start_s) for span in _bad_annotations(raw)),
        findings=tuple(findings),
    )
    return recording, int(raw.first_samp)


def _files(folder: SourceFolder, path: Path, raw: Any) -> set[Path]:
    """Return every file that is read for an opened recording: header, data, parts and markers."""
    named = [path, *(Path(name) for name in raw.filenames if name is not None)]
    if path.suffix.lower() == ".vhdr":
        match = _MARKERS.search(path.read_bytes().decode("latin-1"))
        markers = [path.parent / match[1], path.with_suffix(".vmrk")] if match and match[1] else []
        named += [marker for marker in markers if marker.is_file()][:1]
    named += [part for one in named if one.is_dir() for part in one.rglob("*")]
    return {_inside(folder, path, one) for one in named if not one.is_dir()}


def _inside(folder: SourceFolder, path: Path, named: Path) -> Path:
    absolute = Path(os.path.abspath(path.parent / named))  # does not follow links
    for one in (absolute, absolute.resolve()):
        if one.is_relative_to(folder.root):
            return folder.file(folder.relative(one), RecordingError)
    raise RecordingError(
        "a recording's data are outside the dataset's folder",
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
        where = f"{path}, record {first + 1} of {onset_s.size}"
        found = f"{kind} with {n_gaps} gap(s); this record begins {apart_s[first]:+g} s after the one before it ends"
        remedy = "cut the file at its gaps into one recording each, with its own events, or fill the gaps and mark "
        remedy += "them with events whose name begins with BAD"
        raise invalid(where, found, "records without gaps (EDF+C)", remedy=remedy)


def _pick_channels(
    path: Path,
    names: Sequence[str],
    types: Sequence[str],
    wanted: Sequence[str],
    bad: Mapping[str, str],
    findings: Findings,
) -> list[int]:
    """Return the indices of usable neural channels; ``bad`` says why bad channels are bad."""
    counts = Counter(types)
    other = [name for name, kind in zip(names, types, strict=True) if kind not in wanted]
    expected = "channels of type " + ", ".join(wanted)
    if other:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()) if kind not in wanted)
        found = f"{len(other)} channel(s) ({kinds}): {listed(other)}"
        remedy = "nothing to do; fix the channel's type in the source if it is neural"
        findings.excluded("channels", Reason.CHANNEL_NOT_NEURAL, found, expected, remedy)
    neural = [i for i, kind in enumerate(types) if kind in wanted]
    for name in (names[i] for i in neural if names[i] in bad):
        findings.excluded(
            name,
            Reason.CHANNEL_MARKED_BAD,
            f"marked as bad: {bad[name]}",
            "a channel that is not marked as bad",
            "the channel is left out; fix its status in the source to keep it",
        )
    picks = [i for i in neural if names[i] not in bad]
    if not picks:
        found = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())) or "nothing"
        remedy = "check the types and status of channels (channels.tsv), and the options"
        raise invalid(path, found, f"{expected} that are not bad", remedy=remedy)
    return picks


def _channel_places(raw: Any, picks: Sequence[int]) -> Places:
    """Return positions from the channel info in mm, NaN where there is none, and their frame."""
    chosen = [raw.info["chs"][pick] for pick in picks]
    places = np.array([channel["loc"][:3] for channel in chosen], dtype=np.float64) * 1000.0
    absent = ~np.isfinite(places).all(axis=1) | (places == 0.0).all(axis=1)
    places[absent] = np.nan
    frames = {int(channel["coord_frame"]) for channel in chosen}
    frame = _FRAMES.get(frames.pop(), "") if len(frames) == 1 else ""
    return Places(places, frame, (UNKNOWN,) * len(picks))


def _units(ids: Sequence[str], places: Places, comparable: bool, findings: Findings) -> Units:
    """Return the units at these places, with a note if some have none."""
    xyz = places.coordinates_mm
    findings += places.findings
    absent = [name for name, place in zip(ids, xyz, strict=True) if np.isnan(place).any()]
    if absent:
        findings.note(
            "units",
            Reason.UNIT_WITHOUT_PLACE,
            f"{len(absent)} of {len(ids)} unit(s) without a position: {listed(absent)}",
            "a position for every unit",
            "the units are kept, without a position",
        )
    if len(absent) == len(ids):
        return Units(tuple(ids), places.regions, comparable=comparable)
    return Units(tuple(ids), places.regions, xyz, places.frame, comparable=comparable)


def _bad_annotations(raw: Any) -> list[Span]:
    """Return stretches that annotations of the file mark as bad, in seconds from the file's first sample."""
    found = raw.annotations
    return [
        Span(float(onset - raw.first_time), float(onset - raw.first_time + duration), str(label))
        for onset, duration, label in zip(found.onset, found.duration, found.description, strict=True)
        if str(label).lower().startswith("bad")
    ]


class SampleMismatch(NamedTuple):
    """Rows of events whose two times differ.

    ``apart`` is ``onset · rate − sample`` of every row, ``texts`` what was found and what was expected.
    """

    first_row: int
    apart: FloatArray
    within: float
    texts: tuple[str, str]


def sample_mismatch(onset_s: npt.ArrayLike, samples: Sequence[float], rate_hz: float) -> SampleMismatch | None:
    """Compare ``onset`` (seconds) and ``sample`` (a number) of events, one row per line; None where they agree.

    They agree where ``|onset · rate_hz − sample|`` is at most `NUMBERING_SAMPLES` and the samples in `ROUNDING_S`.
    """
    within = NUMBERING_SAMPLES + ROUNDING_S * rate_hz
    onsets = np.asarray(onset_s, dtype=np.float64)
    apart = onsets * rate_hz - np.asarray(samples, dtype=np.float64)
    rows = np.flatnonzero(np.abs(apart) > within + 1e-6)
    if not rows.size:
        return None
    first = int(rows[0])
    found = f"{rows.size} of {onsets.size} lines, by up to {np.nanmax(np.abs(apart)):.0f} samples; first: line "
    found += f"{first + 2}, onset {onsets[first]} s and sample {samples[first]:.15g}"
    expected = f"onset · {rate_hz:g} Hz = sample, within {within:.3g}"
    return SampleMismatch(first, apart, within, (found, expected))


def _scaling(
    path: Path,
    raw: Any,
    picks: Sequence[int],
    types: Sequence[str],
    table: ChannelTable | None,
    findings: Findings,
) -> tuple[list[float], str]:
    """Return the factor from MNE's values to the physical unit for each unit, and the physical unit."""
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
            where = f"{table.path if table else ''}, channel '{name}', column 'units'"
            found = f"'{text}' in {path.name}, '{listed}' in the table"
            expected = "the same unit in the recording and in channels.tsv"
            raise invalid(where, found, expected, remedy="find out which is right, and fix the other")
        elif listed_volts != stated and listed not in MISSING:
            different.append((name, text, listed))
        factors.append(1e6 * ((listed_volts if stated is None else stated) or 1.0) / applied)
        units.add(MICROVOLT)
    for channels, source in ((from_table, "channels.tsv"), (different, "the file")):
        if channels:
            name, text, listed = channels[0]
            found = f"{len(channels)} channel(s); the first is {name}: {text or 'no unit'} in the file, {listed} in "
            found += "channels.tsv"
            remedy = f"nothing to do: the unit in {source} is used"
            expected = "the same unit in the file and in channels.tsv"
            findings.note("units", Reason.SIDECAR_DISAGREES, found, expected, remedy)
    return factors, ", ".join(sorted(units))


def _volts(text: str) -> float | None:
    """Return the factor from a unit to volts, or None if it is not a unit of voltage."""
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


def _unknown_unit(path: Path, name: str, found: str, listed: str) -> InputError:
    in_table = f"'{listed}' in the column 'units' of" if listed else "none in"
    return invalid(
        f"{path}, channel '{name}'",
        f"{found} in the file; {in_table} channels.tsv",
        "V, mV, µV or nV, in the file or in channels.tsv",
        remedy="add the unit in the column 'units' of channels.tsv, or leave the channel out: type MISC there",
    )
