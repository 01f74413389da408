"""Brain units of functional MRI: regions of an atlas, voxels of a mask, or voxels of a mask named by an atlas."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpact.codes import Reason
from lpact.datasets._files.strict import CsvFile, TsvFile
from lpact.datasets._finding import Finding
from lpact.datasets._fmri.bids import entities
from lpact.datasets._fmri.nifti import Space, read_volume
from lpact.datasets.base import Units
from lpact.errors import ConfigError, RecordingError
from lpact.math.types import IntArray

UNKNOWN = "unknown"
INDIVIDUAL = ("", "T1w", "T2w", "func", "individual", "orig", "other", "scanner")
"""Spaces of a subject's own: a voxel is another place in the next subject."""


@dataclass(frozen=True)
class Sources:
    """Files that say what a unit is, and how findings name them."""

    atlas: Path | None
    labels: Path | None
    mask: Path | None
    resample: bool
    dataset: str

    def where(self, path: Path) -> str:
        """Name one of the files in tables."""
        return f"dataset '{self.dataset}', {path.name}"

    def paths(self) -> list[Path]:
        """Return the files that are there."""
        return [path for path in (self.atlas, self.labels, self.mask) if path is not None]


@dataclass(frozen=True)
class Parcels:
    """Units and their voxels: ``voxels`` are flat indices, ``unit`` the unit of each, [n_voxels] both."""

    units: Units
    voxels: IntArray
    unit: IntArray
    findings: tuple[Finding, ...]


def make_parcels(sources: Sources, space: Space, bold: Path, frame: str) -> Parcels:
    """Return the units on the grid of a BOLD series.

    An atlas alone: one unit per label, its value the mean of the label's voxels, its place their centre. A mask alone:
    one unit per voxel, of unknown region. Both: one unit per voxel of the mask, with the region that the atlas gives.
    """
    if sources.atlas is None and sources.mask is None:
        raise ConfigError(
            "neither an atlas nor a mask says what a brain unit is",
            where=f"dataset '{sources.dataset}', options 'atlas' and 'mask'",
            got="none of them",
            expected="an atlas of whole numbers (one per region), a mask, or both",
            remedy='name one, such as atlas = "atlas.nii.gz"; paths start at the dataset\'s folder',
        )
    labels = _read_atlas(sources, space, bold)
    names, findings = ({}, []) if labels is None else _names(sources, labels)
    findings += _other_spaces(sources, frame)
    if sources.mask is None:
        assert labels is not None
        return _regions(labels, names, space, frame, findings)
    inside = read_volume(sources.mask, space, bold, resample=sources.resample, what="mask")
    voxels = np.flatnonzero((inside != 0) & np.isfinite(inside))
    if not voxels.size:
        raise _empty(sources.mask, "mask")
    regions = [UNKNOWN] * voxels.size
    if labels is not None:
        regions = [names.get(int(label), UNKNOWN) for label in labels[voxels]]
    places = np.stack(np.unravel_index(voxels, space.shape, order="F"), axis=1)
    ids = tuple(f"voxel-{i}-{j}-{k}" for i, j, k in places)
    units = Units(
        ids, tuple(regions), space.millimetres(voxels), frame, comparable=frame not in INDIVIDUAL
    )
    return Parcels(units, voxels, np.arange(voxels.size), tuple(findings))


def _regions(
    labels: IntArray, names: dict[int, str], space: Space, frame: str, findings: list[Finding]
) -> Parcels:
    present = sorted(names)
    voxels = np.flatnonzero(np.isin(labels, present))
    unit = np.searchsorted(present, labels[voxels])
    counts = np.bincount(unit, minlength=len(present))
    sums = np.stack(
        [np.bincount(unit, axis, minlength=len(present)) for axis in space.millimetres(voxels).T]
    )
    ids = tuple(names[label] for label in present)
    units = Units(ids, ids, (sums / counts).T, frame)
    return Parcels(units, voxels, unit, tuple(findings))


def _read_atlas(sources: Sources, space: Space, bold: Path) -> IntArray | None:
    if sources.atlas is None:
        return None
    values = read_volume(sources.atlas, space, bold, resample=sources.resample, what="atlas")
    finite = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0)
    labels = np.rint(finite)
    if (labels != finite).any() or (labels < 0).any():
        wrong = finite[(labels != finite) | (labels < 0)][0]
        raise RecordingError(
            "the atlas does not hold whole numbers",
            where=str(sources.atlas),
            got=f"{wrong:g} among its values",
            expected="0 outside of regions, and one whole number above 0 a region",
            remedy="use the label image of the atlas, and resample it by nearest neighbours only",
        )
    if not labels.any():
        raise _empty(sources.atlas, "atlas")
    return labels.astype(np.int64)


def _empty(path: Path, what: str) -> RecordingError:
    return RecordingError(
        f"the {what} is empty on the grid of the BOLD series",
        where=str(path),
        got="no voxel above 0",
        expected="voxels of the brain",
        remedy=f"check that the {what} is in the space of the series",
    )


def _other_spaces(sources: Sources, frame: str) -> list[Finding]:
    """Return a note for atlas and mask whose names state (``tpl-``, ``space-``) another space than the series'."""
    findings = []
    for what, path in (("atlas", sources.atlas), ("mask", sources.mask)):
        named = {} if path is None else entities(path)
        stated = named.get("space") or named.get("tpl") or ""
        if path is not None and stated and frame and stated != frame:
            note = Finding(
                field=what,
                reason=Reason.SIDECAR_DISAGREES,
                severity="note",
                where=sources.where(path),
                found=f"its name states the space {stated}; the BOLD series is in {frame}",
                expected=f"one in {frame}",
                remedy=f"use the {what} of {frame}: an equal grid alone does not make regions lie at the same places",
            )
            findings.append(note)
    return findings


def _names(sources: Sources, labels: IntArray) -> tuple[dict[int, str], list[Finding]]:
    """Return the name of every label that has voxels, and what does not fit between image and table."""
    present = [int(label) for label in np.unique(labels) if label != 0]
    if sources.labels is None:
        return {label: f"label-{label}" for label in present}, []
    listed = _listed(sources.labels)
    where = sources.where(sources.labels)
    findings = [
        Finding(
            field=name,
            reason=Reason.UNIT_WITHOUT_PLACE,
            severity="excluded",
            where=where,
            found=f"label {label} has no voxel in the atlas on the grid of the BOLD series",
            expected="at least one voxel",
            remedy="the region is left out; a finer grid or another atlas may hold it",
        )
        for label, name in sorted(listed.items())
        if label not in present
    ]
    findings += [
        Finding(
            field=f"label-{label}",
            reason=Reason.UNIT_WITHOUT_PLACE,
            severity="note",
            where=where,
            found=f"label {label} of the atlas is not in the table",
            expected="a name for every label",
            remedy="add it to the table; the region is kept under its number",
        )
        for label in present
        if label not in listed
    ]
    return {label: listed.get(label, f"label-{label}") for label in present}, findings


def _listed(path: Path) -> dict[int, str]:
    table = (CsvFile if path.suffix == ".csv" else TsvFile)(path, RecordingError)
    table.require(("index", "name"))
    indices, names = table.integers("index"), table.text("name")
    for column, values in (("index", indices), ("name", names)):
        for value, count in Counter(values).items():
            if count > 1:
                raise RecordingError(
                    f"the table of an atlas lists a label's {column} more than once",
                    where=f"{path}, column '{column}'",
                    got=f"{value!r} {count} times",
                    expected="every label once, every region with its own name",
                    remedy="tell regions of the same name apart, such as by hemisphere",
                )
    return {index: name for index, name in zip(indices, names, strict=True) if index != 0}
