"""Volumes of functional MRI as units: regions of an atlas, voxels of a mask, or voxels of a mask named by an atlas.

A series is read a few volumes at a time, so memory does not grow with the length of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lpact.codes import Reason
from lpact.datasets._bids import entities
from lpact.datasets._files.strict import TextTable, damaged, invalid
from lpact.datasets._folder_dataset import UNKNOWN
from lpact.datasets.base import Finding, Findings, Units
from lpact.datasets.series import StreamedSeries
from lpact.datasets.validate import check_unique
from lpact.errors import ConfigError, RecordingError
from lpact.extras import require
from lpact.math.types import FloatArray, IntArray

EXTRA = "fmri"
CHUNK_BYTES = 64 * 2**20
"""Most bytes of whole volumes, as float64, that are read at a time; at least one volume is."""

SAME_GRID_MM = 1e-3
"""Affines may differ by this much: headers store them in single precision."""

INDIVIDUAL = ("", "T1w", "T2w", "func", "individual", "orig", "other", "scanner")
"""Spaces of one subject: a voxel is another place in the next subject."""

_SECONDS = {"sec": 1.0, "msec": 1e-3, "usec": 1e-6, "unknown": 1.0}


@dataclass(frozen=True)
class Space:
    """The grid of a volume: its shape, and the affine from voxel indices to mm, [4, 4]."""

    shape: tuple[int, int, int]
    affine: FloatArray

    def same(self, other: Space) -> bool:
        """Whether voxels of both have the same places."""
        close = np.allclose(self.affine, other.affine, rtol=0.0, atol=SAME_GRID_MM)
        return self.shape == other.shape and bool(close)

    def indices(self, flat: IntArray) -> IntArray:
        """Indices of voxels, [n, 3]; ``flat`` counts voxels with the first axis running fastest."""
        return np.stack(np.unravel_index(flat, self.shape, order="F"), axis=1)

    def millimetres(self, flat: IntArray) -> FloatArray:
        """Places of voxels in mm, [n, 3]."""
        return self.indices(flat) @ self.affine[:3, :3].T + self.affine[:3, 3]

    def __str__(self) -> str:
        rows = "; ".join(" ".join(f"{x:g}" for x in row) for row in self.affine[:3])
        return f"shape {'x'.join(map(str, self.shape))}, affine [{rows}]"


@dataclass(frozen=True)
class BoldHeader:
    """Grid, length and repetition time of a series; ``tr_s`` is None where the header does not state it."""

    space: Space
    n_volumes: int
    tr_s: float | None


def open_nifti(path: Path) -> Any:
    """Open a NIfTI image without reading its data."""
    nibabel = require("nibabel", extra=EXTRA)
    try:
        image = nibabel.Nifti1Image.from_filename(path, keep_file_open=path.suffix == ".gz")
        shape, offset = image.shape, image.dataobj.offset
    except Exception as problem:
        raise damaged(path, problem) from None
    n_expected = offset + int(np.prod(shape)) * image.header.get_data_dtype().itemsize
    if path.suffix != ".gz" and path.stat().st_size < n_expected:
        raise damaged(path, f"the header announces {n_expected} bytes")
    return image


def read_bold_header(path: Path) -> BoldHeader:
    """Read the header of a series."""
    image = open_nifti(path)
    if len(image.shape) != 4:
        raise invalid(path, f"shape {image.shape}", "a series of volumes: x, y, z and time")
    time_unit = image.header.get_xyzt_units()[1]
    # Single precision has seven digits; the rest would add up over a run.
    tr_s = round(float(image.header.get_zooms()[3]) * _SECONDS.get(time_unit, 1.0), 6)
    return BoldHeader(_space(image), int(image.shape[3]), tr_s if tr_s > 0 else None)


def _space(image: Any) -> Space:
    nx, ny, nz = (int(n) for n in image.shape[:3])
    return Space((nx, ny, nz), np.asarray(image.affine, dtype=np.float64))


def _values(image: Any, path: Path, part: Any = ...) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(image.dataobj[part], dtype=np.float64)
    except Exception as problem:
        raise damaged(path, problem) from None


class BoldSeries(StreamedSeries):
    """A BOLD file as [n_volumes, n_units].

    ``voxels`` are flat indices of voxels (first axis fastest) and ``unit`` the unit of each, both [n_voxels]. A unit of
    several voxels is their mean.
    """

    def __init__(self, path: Path, header: BoldHeader, parcels: Parcels) -> None:
        self._path = path
        self._space = header.space
        self._voxels, self._unit = parcels.voxels, parcels.unit
        self.shape = (header.n_volumes, len(parcels.units.ids))
        self._means: FloatArray | None = None

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices, [n_volumes, len(units)]; means of regions are computed once."""
        wanted = np.asarray(units, dtype=np.int64)
        n_units = self.shape[1]
        if self._voxels.size == n_units:
            return self._read_volumes(self._voxels[np.argsort(self._unit)][wanted], None)
        if self._means is None:
            counts = np.bincount(self._unit, minlength=n_units)
            entries = (1.0 / counts[self._unit], (self._unit, np.arange(self._unit.size)))
            weights = sparse.csr_array(entries, shape=(n_units, self._unit.size))
            self._means = self._read_volumes(self._voxels, weights)
        return self._means[:, wanted]

    def _read_volumes(self, voxels: IntArray, weights: sparse.csr_array | None) -> FloatArray:
        """Return ``weights @ values`` of every volume, or the voxels themselves."""
        n_volumes = self.shape[0]
        image = open_nifti(self._path)
        out = np.empty((n_volumes, voxels.size if weights is None else weights.shape[0]))
        step = max(1, CHUNK_BYTES // (8 * int(np.prod(self._space.shape))))
        for first in range(0, n_volumes, step):
            stop = min(first + step, n_volumes)
            block = _values(image, self._path, np.s_[..., first:stop])
            values = block.reshape(-1, stop - first, order="F")[voxels]
            out[first:stop] = (values if weights is None else weights @ values).T
        return out


@dataclass(frozen=True)
class Parcels:
    """Units and their voxels: ``voxels`` are flat indices, ``unit`` the unit of each, [n_voxels] both."""

    units: Units
    voxels: IntArray
    unit: IntArray
    findings: Sequence[Finding]


@dataclass(frozen=True)
class UnitFiles:
    """Files that define units: an atlas with its table of labels, a mask, or both."""

    atlas: Path | None
    labels: Path | None
    mask: Path | None
    resample: bool
    dataset: str

    def paths(self) -> list[Path]:
        """Return the files that are given."""
        return [path for path in (self.atlas, self.labels, self.mask) if path is not None]

    def parcels(self, space: Space, bold: Path, frame: str) -> Parcels:
        """Return the units on the grid of a BOLD series.

        Atlas: one unit per label, at the centre of its voxels. Mask: one unit per voxel. Both: one unit per voxel of
        the mask, with the region from the atlas.
        """
        if self.atlas is None and self.mask is None:
            raise ConfigError(
                "neither an atlas nor a mask defines the brain units",
                where=f"dataset '{self.dataset}', options 'atlas' and 'mask'",
                got="none of them",
                expected="an atlas of whole numbers (one per region), a mask, or both",
                remedy='name one, such as atlas = "atlas.nii.gz"; paths start at the dataset\'s folder',
            )
        findings = Findings(f"dataset '{self.dataset}'")
        labels = None if self.atlas is None else self._read_labels(self.atlas, space, bold)
        names = {} if labels is None else self._names(labels, findings)
        self._note_other_spaces(frame, findings)
        if labels is not None and self.mask is None:
            present = sorted(names)
            voxels = np.flatnonzero(np.isin(labels, present))
            unit = np.searchsorted(present, labels[voxels])
            places = space.millimetres(voxels)
            sums = np.stack([np.bincount(unit, axis) for axis in places.T], axis=1)
            ids = tuple(names[label] for label in present)
            units = Units(ids, ids, sums / np.bincount(unit)[:, None], frame)
            return Parcels(units, voxels, unit, findings)
        assert self.mask is not None
        voxels = np.flatnonzero(self._read_volume(self.mask, space, bold, "mask"))
        regions = (UNKNOWN,) * voxels.size
        if labels is not None:
            regions = tuple(names.get(int(label), UNKNOWN) for label in labels[voxels])
        ids = tuple(f"voxel-{i}-{j}-{k}" for i, j, k in space.indices(voxels))
        places = space.millimetres(voxels)
        units = Units(ids, regions, places, frame, comparable=frame not in INDIVIDUAL)
        return Parcels(units, voxels, np.arange(voxels.size), findings)

    def _read_volume(self, path: Path, space: Space, bold: Path, what: str) -> FloatArray:
        """Return an atlas or mask on the grid of a BOLD series, flat, with the first axis running fastest."""
        image = open_nifti(path)
        if len(image.shape) == 4 and image.shape[3] == 1:
            image = image.slicer[..., 0]
        if len(image.shape) != 3:
            expected = "one volume: x, y and z; a probabilistic atlas has a fourth axis"
            remedy = "use the maximum-probability version of the atlas (whole numbers, one per voxel)"
            raise invalid(path, f"shape {image.shape}", expected, remedy=remedy)
        own = _space(image)
        if not own.same(space) and not self.resample:
            raise RecordingError(
                f"the {what} and the BOLD series are not on the same grid",
                where=f"{path} and {bold}",
                got=f"{what}: {own}; BOLD: {space}",
                expected="equal shapes and equal affines",
                remedy=f"resample the {what} to the BOLD grid (nilearn.image.resample_to_img, interpolation="
                "'nearest'), or set the option resample_atlas = true; both must be in the same space",
            )
        values = _values(image, path)
        if not own.same(space):
            values = _values(_resampled(image, space, path, bold, what), path)
        values = np.nan_to_num(values.reshape(-1, order="F"), nan=0.0, posinf=0.0, neginf=0.0)
        if not values.any():
            found = "no voxel above 0 on the grid of the BOLD series"
            raise invalid(path, found, f"a {what} in the space of the series", remedy=f"use another {what}")
        return values

    def _read_labels(self, path: Path, space: Space, bold: Path) -> IntArray:
        values = self._read_volume(path, space, bold, "atlas")
        wrong = (np.rint(values) != values) | (values < 0)
        if wrong.any():
            found = f"{values[wrong][0]:g} among its values"
            expected = "0 outside of regions, and one whole number above 0 per region"
            remedy = "use the label image of the atlas, and resample it by nearest neighbours only"
            raise invalid(path, found, expected, remedy=remedy)
        return values.astype(np.int64)

    def _note_other_spaces(self, frame: str, findings: Findings) -> None:
        """Note an atlas or mask whose name (``tpl-``, ``space-``) states another space than the series."""
        for what, path in (("atlas", self.atlas), ("mask", self.mask)):
            named = {} if path is None else entities(path)
            stated = named.get("space") or named.get("tpl") or ""
            if path is not None and stated and frame and stated != frame:
                findings.note(
                    what,
                    Reason.SIDECAR_DISAGREES,
                    f"the name of {path.name} states the space {stated}; the BOLD series is in {frame}",
                    f"one in {frame}",
                    f"use the {what} of {frame}: regions may be elsewhere although the grids are equal",
                )

    def _names(self, labels: IntArray, findings: Findings) -> dict[int, str]:
        """Return the name of every label that has voxels; note differences between image and table."""
        present = [int(label) for label in np.unique(labels) if label != 0]
        names = {label: f"label-{label}" for label in present}
        if self.labels is None:
            return names
        listed = _read_label_table(self.labels)
        for label in sorted(listed.keys() - names.keys()):
            findings.excluded(
                listed[label],
                Reason.UNIT_WITHOUT_PLACE,
                f"label {label} of {self.labels.name} has no voxel in the atlas on the grid of the BOLD series",
                "at least one voxel",
                "the region is left out; a finer grid or another atlas may contain it",
            )
        for label in sorted(names.keys() - listed.keys()):
            findings.note(
                names[label],
                Reason.UNIT_WITHOUT_PLACE,
                f"label {label} of the atlas is not in {self.labels.name}",
                "a name for every label",
                "add it to the table; the region is kept under its number",
            )
        return {label: listed.get(label, name) for label, name in names.items()}


def _resampled(image: Any, space: Space, path: Path, bold: Path, what: str) -> Any:
    outside = require("nilearn.image.resampling", extra=EXTRA).BoundingBoxError
    try:
        return require("nilearn.image", extra=EXTRA).resample_img(
            image,
            target_affine=space.affine,
            target_shape=space.shape,
            interpolation="nearest",
            force_resample=True,
            copy_header=True,
        )
    except outside:
        raise RecordingError(
            f"the {what} and the BOLD series do not overlap",
            where=f"{path} and {bold}",
            got=f"{what}: {_space(image)}; BOLD: {space}",
            expected=f"the {what}, in mm, where the brain of the series is",
            remedy=f"use the {what} of the series' own space; one of the two affines may be wrong",
        ) from None


def _read_label_table(path: Path) -> dict[int, str]:
    table = TextTable(path, RecordingError)
    table.require(("index", "name"))
    indices, names = table.integers("index"), table.text("name")
    for column, values in (("index", [str(index) for index in indices]), ("name", names)):
        remedy = "give every region its own index and name, for example with its hemisphere"
        check_unique(values, where=f"{path}, column '{column}'", remedy=remedy)
    return {index: name for index, name in zip(indices, names, strict=True) if index != 0}
