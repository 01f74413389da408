"""Electrodes of a Brain Treebank subject: which are neural, and where they lie."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import CsvFile
from lpact.datasets._finding import Finding
from lpact.datasets.base import Units
from lpact.datasets.brain_treebank.layout import read_json
from lpact.errors import RecordingError
from lpact.math.types import FloatArray

CORRUPTED = "corrupted_elec.json"
PLACES = "localization/elec_coords_full.csv"
UNKNOWN = "unknown"
_NOT_NEURAL = ("DC", "TRIG")
_NO_REGION = ("", "unknown", "n/a", "nan", "none")
FRAMES = {"subject": "subject LIP", "standard": "MNI"}
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
    for mark in "*#_":
        label = label.replace(mark, "")
    return label.strip()


def labels_file(folder: SourceFolder, subject: str) -> Path:
    """Return the file of a subject's electrode labels."""
    return folder.file(f"electrode_labels/sub_{subject}/electrode_labels.json", RecordingError)


def read_electrodes(
    folder: SourceFolder, subject: str, *, atlas: str, coordinates: str
) -> Electrodes:
    """Return a subject's neural electrodes; every one that is left out has a finding."""
    path = labels_file(folder, subject)
    labels = [clean_label(label) for label in _texts(path, read_json(path, RecordingError))]
    corrupted_path = folder.file(CORRUPTED, RecordingError)
    corrupted = _corrupted(corrupted_path, subject)
    where = folder.where(path)
    findings = [
        Finding(
            field=label,
            reason=Reason.SIDECAR_DISAGREES,
            severity="note",
            where=folder.where(corrupted_path),
            found=f"'{label}' of sub_{subject} is listed as corrupted and is no electrode",
            expected="labels of electrode_labels.json",
            remedy="none is needed",
        )
        for label in corrupted
        if label not in labels
    ]
    positions = []
    for position, label in enumerate(labels):
        if not label:
            raise RecordingError(
                "an electrode has no label",
                where=f"{path}, entry {position}",
                got=repr(label),
                expected=f"the label of electrode_{position}",
                remedy="download the file again",
            )
        reason = _left_out(label, corrupted)
        if reason is None:
            positions.append(position)
            continue
        listed = corrupted_path.name if reason is Reason.CHANNEL_MARKED_BAD else "the label"
        findings.append(
            Finding(
                field=label,
                reason=reason,
                severity="excluded",
                where=where,
                found=f"electrode_{position}, by {listed}",
                expected="neural channels",
                remedy="none is needed: it is left out",
            )
        )
    kept = [labels[position] for position in positions]
    units, placed, files = _units(folder, subject, kept, atlas=atlas, coordinates=coordinates)
    return Electrodes(
        positions=tuple(positions),
        units=units,
        n_labels=len(labels),
        findings=(*findings, *placed),
        files=(path, corrupted_path, *files),
    )


def _left_out(label: str, corrupted: Sequence[str]) -> Reason | None:
    if label.upper().startswith(_NOT_NEURAL):
        return Reason.CHANNEL_NOT_NEURAL
    return Reason.CHANNEL_MARKED_BAD if label in corrupted else None


def _texts(path: Path, values: object, key: str = "") -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise RecordingError(
            "a list of electrode labels is malformed",
            where=f"{path}{key}",
            got=reprlib.repr(values),
            expected="a list of texts",
            remedy="download the file again",
        )
    return values


def _corrupted(path: Path, subject: str) -> list[str]:
    values = read_json(path, RecordingError)
    key = f"sub_{subject}"
    if not isinstance(values, dict) or key not in values:
        keys = ", ".join(values) if isinstance(values, dict) else reprlib.repr(values)
        raise RecordingError(
            f"nothing is said about corrupted electrodes of '{key}'",
            where=f"{path}, key '{key}'",
            got=f"keys {keys}",
            expected=f'"{key}": a list of labels',
            remedy=f'download the file again; if the subject has none, write "{key}": []',
        )
    return [clean_label(label) for label in _texts(path, values[key], f", key '{key}'")]


def _units(
    folder: SourceFolder, subject: str, labels: list[str], *, atlas: str, coordinates: str
) -> tuple[Units, list[Finding], list[Path]]:
    """Return units with regions and coordinates; those without a place have a note."""
    regions = dict.fromkeys(labels, UNKNOWN)
    places: dict[str, tuple[float, float, float]] = {}
    files = []
    depth = folder.optional(f"localization/sub_{subject}/depth-wm.csv", RecordingError)
    if depth is not None:
        files.append(depth)
        table = CsvFile(depth, RecordingError)
        table.require(("Electrode", "L", "I", "P", atlas))
        names = _names(table, table.cells("Electrode"))
        known = dict(zip(names, table.cells(atlas), strict=True))
        for label in labels:
            region = known.get(label, "").strip()
            regions[label] = UNKNOWN if region.lower() in _NO_REGION else region
        if coordinates == "subject":
            places = _places(table, names, ("L", "I", "P"))
    full = folder.optional(PLACES, RecordingError)
    if full is not None and coordinates == "standard":
        files.append(full)
        places = _standard_places(full, f"sub_{subject}")
    missing = (float("nan"),) * 3
    points: FloatArray = np.array([places.get(label, missing) for label in labels]).reshape(-1, 3)
    placed = [bool(np.isfinite(point).all()) for point in points]
    where = folder.where(depth) if depth is not None else f"dataset '{folder.name}', localization"
    findings = [
        Finding(
            field=label,
            reason=Reason.UNIT_WITHOUT_PLACE,
            severity="note",
            where=where,
            found="no region" + ("" if finite else " and no coordinates"),
            expected=f"a row with {atlas}",
            remedy="none is needed: the unit is kept in the region 'unknown'",
        )
        for label, finite in zip(labels, placed, strict=True)
        if regions[label] == UNKNOWN
    ]
    none = not any(placed)
    units = Units(
        ids=tuple(labels),
        regions=tuple(regions[label] for label in labels),
        coordinates_mm=None if none else points,
        coordinate_frame="" if none else FRAMES[coordinates],
        comparable=False,
    )
    return units, findings, files


def _names(table: CsvFile, cells: list[str]) -> list[str]:
    names = [clean_label(cell) for cell in cells]
    for row, name in enumerate(names):
        if name in names[:row]:
            raise table.wrong("Electrode", row, "every electrode of a subject once")
    return names


def _places(
    table: CsvFile, names: list[str], columns: tuple[str, str, str]
) -> dict[str, tuple[float, float, float]]:
    x, y, z = (table.numbers_or_nan(column) for column in columns)
    return dict(zip(names, zip(x, y, z, strict=True), strict=True))


def _standard_places(path: Path, subject: str) -> dict[str, tuple[float, float, float]]:
    table = CsvFile(path, RecordingError)
    table.require(("Subject", "Electrode", "X", "Y", "Z"))
    every = _places(table, [str(row) for row in range(table.n_rows)], ("X", "Y", "Z"))
    return {
        clean_label(electrode): every[str(row)]
        for row, (owner, electrode) in enumerate(
            zip(table.cells("Subject"), table.cells("Electrode"), strict=True)
        )
        if owner == subject
    }
