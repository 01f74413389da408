"""Reader of the Brain Treebank: ten people with depth electrodes who watched films.

docs/how-to/datasets/brain_treebank.md shows the folder. A film is one stimulus and one story; its words are in film
time, and every recording has their times by its own triggers.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.hdf5 import hdf5_dataset, hdf5_object, never_written, never_written_finding, open_hdf5
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import NAME_PATTERN, TextTable, invalid
from lpact.datasets._folder_dataset import UNKNOWN, FolderDataset, check_known, read_json, read_json_value
from lpact.datasets.base import AbsentMedium, DatasetInfo, Findings, Recording, RecordingId, Stimulus, TimeSeries, Units
from lpact.datasets.brain_treebank.words import Clock, read_words, word_times
from lpact.datasets.catalogue import published
from lpact.datasets.series import StreamedSeries
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.math.types import FloatArray
from lpact.registry import PluginOptions

RATE_HZ = 2048.0
"""Sampling rate of the release, unless a study states another one for a subject; no file states it."""

H5_FOLDERS = ("", "all_subject_data/")
"""Folders of neural files: the root, where they are unpacked, or their own."""

MEDIA = {"audio": "wav", "video": "mp4"}
CORRUPTED = "corrupted_elec.json"
_TRIAL = re.compile(r"sub_([1-9][0-9]*)_trial([0-9]{3})")
_ELECTRODE = re.compile(r"electrode_(0|[1-9][0-9]*)")
_NOT_NEURAL = ("DC", "TRIG")
_NO_REGION = ("", "unknown", "n/a", "nan", "none")
_FRAMES = {"subject": "subject LIP", "standard": "MNI"}
"""Axes run to the left, inferior and posterior in the subject's scan, and right, anterior and superior in MNI."""


class BrainTreebankOptions(PluginOptions):
    """How the Brain Treebank is read."""

    subjects: tuple[str, ...] = ()
    """Subjects to read, such as ["1", "7"]; empty: all in the folder."""
    trials: tuple[str, ...] = ()
    """Trials to read, such as ["sub_1_trial000"]; empty: all of the subjects."""
    clock: Clock = "nearest"
    """Which triggers give a word its sample. `nearest`: the trigger nearest in film time, and from there the nominal
    rate. `next`: the first trigger that is not before the word, backwards. `linear`: between the two neighbours, which
    also follows drift.
    """
    max_gap_s: float = Field(2.0, gt=0)
    """A word further than this from every trigger, in film time, has no time in the recording."""
    atlas: Literal["DesikanKilliany", "Destrieux", "DKT"] = "DesikanKilliany"
    """Column of `depth-wm.csv` that names an electrode's region."""
    coordinates: Literal["subject", "standard"] = "subject"
    """`subject`: L, I, P of `depth-wm.csv`, in the subject's own scan. `standard`: X, Y, Z of `elec_coords_full.csv`.
    """
    trials_are: Literal["runs", "sessions"] = "runs"
    """What trials of one subject are to ceilings: runs of one session (electrodes stay where they are), or sessions of
    their own.
    """
    sampling_rates_hz: dict[str, float] = Field(default_factory=dict)
    """Sampling rate by subject, for those that were not recorded at 2048 Hz; no file of the release says it. A rate
    that the triggers contradict is an error.
    """
    unlabelled: Literal["refuse", "leave_out"] = "refuse"
    """What to do with electrodes of a neural file beyond the end of the list of labels."""


@dataclass(frozen=True)
class Trial:
    """One film that one subject watched; ``name`` is that of the release, ``sub_1_trial000``."""

    name: str
    subject: str
    movie: str
    h5: Path
    metadata: Path


@dataclass(frozen=True)
class Electrodes:
    """Neural electrodes in the order of the labels; ``positions`` are their places in the unfiltered list."""

    positions: tuple[int, ...]
    units: Units
    n_labels: int
    findings: Findings
    files: tuple[Path, ...]


def clean_label(label: str) -> str:
    """Return a label without the marks ``*``, ``#`` and ``_``."""
    return re.sub(r"[*#_]", "", label).strip()


def read_electrodes(folder: SourceFolder, subject: str, *, atlas: str, coordinates: str) -> Electrodes:
    """Return a subject's neural electrodes; every one that is left out has a finding."""
    name = f"sub_{subject}"
    path = folder.file(f"electrode_labels/{name}/electrode_labels.json", RecordingError)
    labels = _labels(path, read_json_value(path))
    corrupted_path = folder.file(CORRUPTED, RecordingError)
    values = read_json(corrupted_path)
    if name not in values:
        expected = f'"{name}": a list of labels, which may be empty'
        remedy = f'download the file again; if the subject has none, write "{name}": []'
        found = f"keys {', '.join(values)}"
        raise invalid(f"{corrupted_path}, key '{name}'", found, expected, remedy=remedy)
    corrupted = _labels(corrupted_path, values[name])
    findings = Findings(folder.where(path))
    positions = []
    for position, label in enumerate(labels):
        if label.upper().startswith(_NOT_NEURAL):
            reason, source = Reason.CHANNEL_NOT_NEURAL, "the label"
        elif label in corrupted:
            reason, source = Reason.CHANNEL_MARKED_BAD, CORRUPTED
        else:
            positions.append(position)
            continue
        found, remedy = f"electrode_{position}, by {source}", "nothing to do: it is left out"
        findings.excluded(label, reason, found, "neural channels", remedy)
    kept = [labels[position] for position in positions]
    units, files = _units(folder, name, kept, atlas, coordinates, findings)
    files = [path, corrupted_path, *files]
    return Electrodes(tuple(positions), units, len(labels), findings, tuple(files))


def _labels(path: Path, values: object) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(v, str) and clean_label(v) for v in values):
        raise invalid(path, reprlib.repr(values), "a list of texts, one label per electrode")
    return [clean_label(value) for value in values]


def _units(
    folder: SourceFolder,
    subject: str,
    labels: list[str],
    atlas: str,
    coordinates: str,
    findings: Findings,
) -> tuple[Units, list[Path]]:
    """Return units with regions and coordinates; those without a region have a note."""
    regions = dict.fromkeys(labels, UNKNOWN)
    places: dict[str, tuple[float, ...]] = {}
    files = []
    depth = folder.optional(f"localization/{subject}/depth-wm.csv", RecordingError)
    if depth is not None:
        files.append(depth)
        table = TextTable(depth, RecordingError)
        table.require(("Electrode", "L", "I", "P", atlas))
        names = [clean_label(cell) for cell in table.cells("Electrode")]
        for row, name in enumerate(names):
            if names.index(name) != row:
                raise table.wrong("Electrode", row, "every electrode of a subject once")
        known = dict(zip(names, map(str.strip, table.cells(atlas)), strict=True))
        regions |= {n: r for n, r in known.items() if r.lower() not in _NO_REGION}
        if coordinates == "subject":
            places = dict(zip(names, _points(table, "LIP"), strict=True))
    full = folder.optional("localization/elec_coords_full.csv", RecordingError)
    if full is not None and coordinates == "standard":
        files.append(full)
        table = TextTable(full, RecordingError)
        table.require(("Subject", "Electrode", "X", "Y", "Z"))
        owners, names = table.cells("Subject"), table.cells("Electrode")
        rows = zip(owners, names, _points(table, "XYZ"), strict=True)
        places = {clean_label(label): point for owner, label, point in rows if owner == subject}
    points = np.array([places.get(label, (np.nan,) * 3) for label in labels]).reshape(-1, 3)
    placed = np.isfinite(points).all(axis=1)
    for label, finite in zip(labels, placed, strict=True):
        if regions[label] == UNKNOWN:
            findings.note(
                label,
                Reason.UNIT_WITHOUT_PLACE,
                "no region" + ("" if finite else " and no coordinates"),
                f"a row with {atlas} in localization/{subject}/depth-wm.csv",
                f"nothing to do: the unit is kept in the region '{UNKNOWN}'",
            )
    units = Units(
        ids=tuple(labels),
        regions=tuple(regions[label] for label in labels),
        coordinates_mm=points if placed.any() else None,
        coordinate_frame=_FRAMES[coordinates] if placed.any() else "",
        comparable=False,
    )
    return units, files


def _points(table: TextTable, axes: str) -> list[tuple[float, ...]]:
    return list(zip(*(table.numbers_or_nan(axis) for axis in axes), strict=True))


class ElectrodeSeries(StreamedSeries):
    """Electrodes of ``f['data']['electrode_<position>']``, in the precision of the file, read one at a time.

    Opening reads the shapes of all of them and none of the values. ``unwritten`` describes, by position, parts of
    electrodes that were never stored; ``stored`` are the positions of all electrodes in the file.
    """

    unit_major = True

    def __init__(self, path: Path, positions: Sequence[int]) -> None:
        self._path = path
        self._names = [f"data/electrode_{position}" for position in positions]
        self.unwritten: dict[int, str] = {}
        n_samples, dtypes = None, [np.dtype("f4")] * (not positions)
        with open_hdf5(path, RecordingError) as file:
            matches = map(_ELECTRODE.fullmatch, hdf5_object(file, "data", RecordingError))
            self.stored = sorted(int(match[1]) for match in matches if match)
            for position, name in zip(positions, self._names, strict=True):
                dataset = hdf5_dataset(file, name, RecordingError)
                shape, dtype = dataset.shape or (), dataset.dtype
                n_samples = shape[0] if shape and n_samples is None else n_samples
                if shape != (n_samples,) or dtype.kind not in "fiu":
                    expected = f"{n_samples} samples, as in {self._names[0]}"
                    raise invalid(f"{path}, {name}", f"shape {shape}, dtype {dtype}", expected)
                dtypes.append(dtype)
                if unwritten := never_written(dataset):
                    self.unwritten[position] = unwritten
        self.shape = (n_samples or 0, len(self._names))
        self.dtype = np.result_type(*set(dtypes))

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return electrodes, [n_samples, len(units)]."""
        values: FloatArray = np.empty((len(units), self.shape[0]), dtype=self.dtype)
        with open_hdf5(self._path, RecordingError) as file:
            for row, unit in enumerate(units):
                if self.shape[0]:
                    hdf5_dataset(file, self._names[unit], RecordingError).read_direct(values[row])
        return values.T


class BrainTreebank(FolderDataset[BrainTreebankOptions, Trial]):
    """The Brain Treebank as it is released; see docs/how-to/datasets/brain_treebank.md."""

    name = "brain_treebank"
    summary = "Brain Treebank: depth electrodes of 10 people who watched films, 2048 Hz (HDF5, CSV)"
    Options = BrainTreebankOptions
    contents = "a folder with sub_1_trial000.h5 and others, and transcripts/"
    chosen_by = "subjects and trials"
    extra = "hdf5"
    layout, download = published("brain_treebank")
    info = DatasetInfo(download.homepage, download.version, download.licence)

    def _open(self) -> None:
        neural = self._neural_files()
        self._set_recordings(self._find_trials(neural))
        self.findings = tuple(self._without_neural_file(neural))

    def _neural_files(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for prefix in H5_FOLDERS:
            for path in self.folder.glob(f"{prefix}sub_*.h5"):
                if not _TRIAL.fullmatch(path.stem):
                    expected = "sub_<subject>_trial<three digits>.h5, such as sub_1_trial000.h5"
                    remedy = "give the file its name in the release, or move it out of the folder"
                    raise invalid(path, path.name, expected, InputError, remedy)
                if found.setdefault(path.stem, path) != path:
                    got, remedy = f"also {found[path.stem]}", "keep one of the two files"
                    raise invalid(path, got, "every trial once", InputError, remedy)
        return found

    def _find_trials(self, neural: dict[str, Path]) -> Iterator[tuple[RecordingId, Trial]]:
        """Find the trials that the options choose."""
        options = self.options
        parts = {name: match.groups() for name in neural if (match := _TRIAL.fullmatch(name))}
        subjects = {subject for subject, _ in parts.values()}
        if parts:
            check_known(options.subjects, subjects, option="subjects", folder=self.folder)
            check_known(options.trials, parts, option="trials", folder=self.folder)
        for name, (subject, number) in sorted(parts.items()):
            if subject not in (options.subjects or subjects) or name not in (options.trials or parts):
                continue
            path = self.folder.file(f"subject_metadata/{name}_metadata.json", RecordingError)
            movie = read_json(path).get("filename")
            if not isinstance(movie, str) or not NAME_PATTERN.fullmatch(movie):
                expected = "the film's folder in transcripts/, such as 'the-martian'"
                raise invalid(f"{path}, key 'filename'", reprlib.repr(movie), expected)
            trial = Trial(name, subject, movie, neural[name], path)
            session, run = ("1", number) if options.trials_are == "runs" else (number, "1")
            yield RecordingId(subject, session, run, trial.movie), trial

    def _without_neural_file(self, neural: dict[str, Path]) -> Findings:
        """Return notes on trials with timings whose neural file is missing, or was never unpacked."""
        findings = Findings(f"dataset '{self.folder.name}'")
        for timings in self.folder.glob("subject_timings/sub_*_timings.csv"):
            name = timings.stem.removesuffix("_timings")
            found, remedy = f"no {name}.h5", "download the trial, if the study needs it"
            for prefix in H5_FOLDERS:
                if self.folder.optional(f"{prefix}{name}.h5.zip") is not None:
                    found = f"{name}.h5.zip, which is not unpacked"
                    remedy = f"unzip {prefix}{name}.h5.zip"
            if name not in neural:
                reason, found = Reason.RECORDING_NOT_READ, f"timings, and {found}"
                findings.note(name, reason, found, f"{name}.h5", remedy)
        return findings

    def _electrodes(self, subject: str) -> Electrodes:
        atlas, coordinates = self.options.atlas, self.options.coordinates
        return read_electrodes(self.folder, subject, atlas=atlas, coordinates=coordinates)

    def _recording(self, recording_id: RecordingId, files: Trial) -> Recording:
        options, where = self.options, self.folder.where(files.h5)
        electrodes = self._electrodes(files.subject)
        series = ElectrodeSeries(files.h5, electrodes.positions)
        findings = Findings(where)
        beyond = [number for number in series.stored if number >= electrodes.n_labels]
        if beyond and options.unlabelled == "refuse":
            raise RecordingError(
                "an electrode has no label",
                where=f"{files.h5}, data/electrode_{beyond[0]}",
                got=f"{electrodes.n_labels} labels, and {len(beyond)} electrode(s) beyond them",
                expected="a label for every electrode, at its place in electrode_labels.json",
                remedy="check that file and labels are of the same subject and release; "
                "unlabelled = 'leave_out' reads the others",
            )
        for number in beyond:
            findings.excluded(
                f"electrode_{number}",
                Reason.CHANNEL_NOT_SELECTED,
                f"no label: the list has {electrodes.n_labels}",
                "a label for every electrode",
                "it is left out because of unlabelled = 'leave_out'",
            )
        for label, number in zip(electrodes.units.ids, electrodes.positions, strict=True):
            if found := series.unwritten.get(number):
                place = f"{where}, electrode_{number}"
                findings.append(never_written_finding(found, field=label, where=place))
        timings = self._timings(files)
        rate_hz = options.sampling_rates_hz.get(files.subject, RATE_HZ)
        clock_findings = Findings(self.folder.where(timings))
        onsets_s = word_times(
            timings,
            self.stimulus(files.movie).words["onset_s"].to_numpy(),
            rule=options.clock,
            max_gap_s=options.max_gap_s,
            n_samples=series.shape[0] if electrodes.positions else None,
            rate_hz=rate_hz,
            findings=clock_findings,
        )
        return Recording(
            id=recording_id,
            signal=TimeSeries(series, rate_hz, physical_unit="µV"),
            units=electrodes.units,
            where=where,
            word_onsets_s=onsets_s,
            findings=(*electrodes.findings, *findings, *clock_findings),
        )

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        path, media = self._features(stimulus_id), self._media(stimulus_id)
        findings = Findings(self.folder.where(path))
        return Stimulus(
            id=stimulus_id,
            words=read_words(path, stimulus_id, findings),
            where=findings.where,
            media={kind: self.folder.relative(path) for kind, path in media.items() if path},
            media_root=self.folder.root,
            media_absent={
                kind: AbsentMedium(
                    Reason.MEDIA_NOT_RELEASED,
                    f"the release contains no {kind} of its films; {self.layout[-1].boundary}; put your own copy at "
                    f"media/{stimulus_id}.{MEDIA[kind]}",
                )
                for kind, path in media.items()
                if path is None
            },
            findings=tuple(findings),
        )

    def _paths(self) -> Iterator[Path | None]:
        for trial in self.recordings.values():
            yield from (trial.h5, trial.metadata, self._timings(trial))
            yield from self._electrodes(trial.subject).files
            yield self._features(trial.movie)
            yield from self._media(trial.movie).values()

    def _features(self, movie: str) -> Path:
        return self.folder.file(f"transcripts/{movie}/features.csv", StimulusError)

    def _timings(self, trial: Trial) -> Path:
        return self.folder.file(f"subject_timings/{trial.name}_timings.csv", RecordingError)

    def _media(self, movie: str) -> dict[str, Path | None]:
        return {kind: self.folder.optional(f"media/{movie}.{suffix}", StimulusError) for kind, suffix in MEDIA.items()}
