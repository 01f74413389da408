"""Electrodes of the Brain Treebank: which are neural, where they lie, and their signals."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lpact.codes import Reason
from lpact.datasets._files.hdf5 import hdf5_dataset, hdf5_object, never_written, open_hdf5
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import CsvFile
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import UNKNOWN, excluded, note, read_json_value
from lpact.datasets.base import Units
from lpact.datasets.series import StreamedSeries
from lpact.errors import RecordingError
from lpact.math.types import FloatArray

CORRUPTED = "corrupted_elec.json"
GROUP = "data"
_NOT_NEURAL = ("DC", "TRIG")
_NO_REGION = ("", "unknown", "n/a", "nan", "none")
_ELECTRODE = re.compile(r"electrode_(0|[1-9][0-9]*)")
_FRAMES = {"subject": "subject LIP", "standard": "MNI"}
"""Axes run to the left, inferior and posterior in the subject's scan, and right, anterior and superior in MNI."""


@dataclass(frozen=True)
class Electrodes:
    """Neural electrodes in the order of the labels; ``positions`` are their places in the unfiltered list."""

    positions: tuple[int, ...]
    units: Units
    n_labels: int
    findings: tuple[Finding, ...]
    files: tuple[Path, ...]


def clean_label(label: str) -> str:
    """Return a label without the marks ``*``, ``#`` and ``_``."""
    return re.sub(r"[*#_]", "", label).strip()


def read_electrodes(
    folder: SourceFolder, subject: str, *, atlas: str, coordinates: str
) -> Electrodes:
    """Return a subject's neural electrodes; every one that is left out has a finding."""
    name = f"sub_{subject}"
    path = folder.file(f"electrode_labels/{name}/electrode_labels.json", RecordingError)
    labels = _labels(path, read_json_value(path))
    if "" in labels:
        raise _malformed(path, f"an empty label at place {labels.index('')}")
    corrupted_path = folder.file(CORRUPTED, RecordingError)
    values = read_json_value(corrupted_path)
    if not isinstance(values, dict) or name not in values:
        raise RecordingError(
            f"corrupted electrodes of '{name}' are not listed",
            where=f"{corrupted_path}, key '{name}'",
            got=f"keys {', '.join(values) if isinstance(values, dict) else reprlib.repr(values)}",
            expected=f'"{name}": a list of labels',
            remedy=f'download the file again; if the subject has none, write "{name}": []',
        )
    corrupted = _labels(corrupted_path, values[name])
    findings = []
    positions = []
    for position, label in enumerate(labels):
        if label.upper().startswith(_NOT_NEURAL):
            reason, source = Reason.CHANNEL_NOT_NEURAL, "the label"
        elif label in corrupted:
            reason, source = Reason.CHANNEL_MARKED_BAD, CORRUPTED
        else:
            positions.append(position)
            continue
        found = f"electrode_{position}, by {source}"
        remedy = "none is needed: it is left out"
        where = folder.where(path)
        findings.append(excluded(label, reason, where, found, "neural channels", remedy))
    kept = [labels[position] for position in positions]
    units, more, files = _units(folder, name, kept, atlas=atlas, coordinates=coordinates)
    return Electrodes(
        positions=tuple(positions),
        units=units,
        n_labels=len(labels),
        findings=(*findings, *more),
        files=(path, corrupted_path, *files),
    )


def _labels(path: Path, values: object) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _malformed(path, reprlib.repr(values))
    return [clean_label(value) for value in values]


def _malformed(path: Path, got: str) -> RecordingError:
    return RecordingError(
        "a list of electrode labels is malformed",
        where=str(path),
        got=got,
        expected="a list of texts, one label per electrode",
        remedy="download the file again",
    )


def _units(
    folder: SourceFolder, subject: str, labels: list[str], *, atlas: str, coordinates: str
) -> tuple[Units, list[Finding], list[Path]]:
    """Return units with regions and coordinates; those without a region have a note."""
    regions = dict.fromkeys(labels, UNKNOWN)
    places: dict[str, tuple[float, ...]] = {}
    files = []
    depth = folder.optional(f"localization/{subject}/depth-wm.csv", RecordingError)
    if depth is not None:
        files.append(depth)
        table = CsvFile(depth, RecordingError)
        table.require(("Electrode", "L", "I", "P", atlas))
        names = [clean_label(cell) for cell in table.cells("Electrode")]
        for row, name in enumerate(names):
            if names.index(name) != row:
                raise table.wrong("Electrode", row, "every electrode of a subject once")
        known = dict(zip(names, (cell.strip() for cell in table.cells(atlas)), strict=True))
        regions |= {n: r for n, r in known.items() if r.lower() not in _NO_REGION}
        if coordinates == "subject":
            places = dict(zip(names, _points(table, "LIP"), strict=True))
    full = folder.optional("localization/elec_coords_full.csv", RecordingError)
    if full is not None and coordinates == "standard":
        files.append(full)
        table = CsvFile(full, RecordingError)
        table.require(("Subject", "Electrode", "X", "Y", "Z"))
        rows = zip(
            table.cells("Subject"), table.cells("Electrode"), _points(table, "XYZ"), strict=True
        )
        places = {clean_label(label): point for owner, label, point in rows if owner == subject}
    points = np.array([places.get(label, (np.nan,) * 3) for label in labels]).reshape(-1, 3)
    placed = np.isfinite(points).all(axis=1)
    where = folder.where(depth) if depth is not None else f"dataset '{folder.name}', localization"
    findings = [
        note(
            label,
            Reason.UNIT_WITHOUT_PLACE,
            where,
            "no region" + ("" if finite else " and no coordinates"),
            f"a row with {atlas}",
            f"none is needed: the unit is kept in the region '{UNKNOWN}'",
        )
        for label, finite in zip(labels, placed, strict=True)
        if regions[label] == UNKNOWN
    ]
    units = Units(
        ids=tuple(labels),
        regions=tuple(regions[label] for label in labels),
        coordinates_mm=points if placed.any() else None,
        coordinate_frame=_FRAMES[coordinates] if placed.any() else "",
        comparable=False,
    )
    return units, findings, files


def _points(table: CsvFile, axes: str) -> list[tuple[float, ...]]:
    return list(zip(*(table.numbers_or_nan(axis) for axis in axes), strict=True))


class ElectrodeSeries(StreamedSeries):
    """Electrodes of ``f['data']['electrode_<position>']``, in the precision of the file, read one at a time.

    Opening reads the shapes of all of them and none of the values. ``unwritten`` describes, by position, parts of
    electrodes that were never stored; ``beyond`` are positions of electrodes that ``n_labels`` labels do not reach.
    """

    unit_major = True

    def __init__(self, path: Path, positions: Sequence[int], n_labels: int) -> None:
        self._path = path
        self._positions = tuple(positions)
        self.unwritten: dict[int, str] = {}
        with open_hdf5(path, RecordingError) as file:
            names = set(_group(file, path))
            headers = [self._header(file, names, position) for position in self._positions]
        numbers = (int(match[1]) for match in map(_ELECTRODE.fullmatch, names) if match)
        self.beyond = sorted(number for number in numbers if number >= n_labels)
        n_samples = headers[0][0] if headers else 0
        for position, (length, _) in zip(self._positions, headers, strict=True):
            if length != n_samples:
                raise RecordingError(
                    "electrodes are not of the same length",
                    where=f"{path}, {GROUP}/electrode_{position}",
                    got=f"{length} samples",
                    expected=f"{n_samples} samples, as in {GROUP}/electrode_{self._positions[0]}",
                    remedy="download the file again; if it stays, leave the trial out with the option 'trials'",
                )
        self.shape = (n_samples, len(self._positions))
        self.dtype = np.result_type(*{dtype for _, dtype in headers}) if headers else np.dtype("f4")

    def _header(self, file: Any, names: set[str], position: int) -> tuple[int, np.dtype[Any]]:
        name = f"electrode_{position}"
        where = f"{self._path}, {GROUP}/{name}"
        if name not in names:
            raise RecordingError(
                "the file lacks an electrode that has a label",
                where=where,
                got=f"{len(names)} datasets in '{GROUP}'",
                expected=f"the electrode of label {position} (from 0) of electrode_labels.json",
                remedy="check that file and labels are of the same subject and release",
            )
        dataset = hdf5_dataset(file, f"{GROUP}/{name}", RecordingError)
        if dataset.dtype.kind not in "fiu" or dataset.shape is None or len(dataset.shape) != 1:
            raise RecordingError(
                "an electrode is not a series of real numbers",
                where=where,
                got=f"shape {dataset.shape}, dtype {dataset.dtype}",
                expected="one axis of numbers",
                remedy="download the file again",
            )
        if unwritten := never_written(dataset):
            self.unwritten[position] = unwritten
        return int(dataset.shape[0]), dataset.dtype

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return electrodes, [n_samples, len(units)]."""
        values: FloatArray = np.empty((len(units), self.shape[0]), dtype=self.dtype)
        with open_hdf5(self._path, RecordingError) as file:
            for row, unit in enumerate(units):
                if self.shape[0]:
                    name = f"{GROUP}/electrode_{self._positions[unit]}"
                    hdf5_dataset(file, name, RecordingError).read_direct(values[row])
        return values.T


def _group(file: Any, path: Path) -> Any:
    group = hdf5_object(file, GROUP, RecordingError) if GROUP in set(file) else None
    if group is None or not hasattr(group, "keys"):
        raise RecordingError(
            f"the file has no group '{GROUP}'",
            where=str(path),
            got=f"keys {sorted(file)}"[:200],
            expected=f"{GROUP}/electrode_0, {GROUP}/electrode_1 …",
            remedy="check that the file is a trial of the Brain Treebank",
        )
    return group
