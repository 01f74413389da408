"""Volumes of functional MRI as units: regions of an atlas, or voxels of a mask.

A series is gone through a few volumes at a time, so that memory stays bounded whatever the length of a run; opening
reads headers and the atlas or mask only.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lpact.datasets._files.strict import ErrorType
from lpact.datasets.series import StreamedSeries
from lpact.errors import RecordingError
from lpact.extras import require
from lpact.math.types import FloatArray, IntArray

EXTRA = "fmri"
CHUNK_BYTES = 64 * 2**20
"""Most bytes of whole volumes, as float64, that are held at a time; at least one volume is."""

SAME_GRID_MM = 1e-3
"""Affines may differ by this much: headers store them in single precision."""

_SECONDS = {"sec": 1.0, "msec": 1e-3, "usec": 1e-6, "unknown": 1.0}


@dataclass(frozen=True)
class Space:
    """The grid of a volume: its shape, and the affine from voxel indices to mm, [4, 4]."""

    shape: tuple[int, int, int]
    affine: FloatArray

    def same(self, other: Space) -> bool:
        """Whether voxels of both lie at the same places."""
        close = np.allclose(self.affine, other.affine, rtol=0.0, atol=SAME_GRID_MM)
        return self.shape == other.shape and bool(close)

    def millimetres(self, flat: IntArray) -> FloatArray:
        """Places of voxels, [n, 3]; ``flat`` counts voxels with the first axis running fastest."""
        indices = np.stack(np.unravel_index(flat, self.shape, order="F"), axis=1)
        places: FloatArray = indices @ self.affine[:3, :3].T + self.affine[:3, 3]
        return places

    def __str__(self) -> str:
        rows = "; ".join(" ".join(f"{x:g}" for x in row) for row in self.affine[:3])
        return f"shape {'x'.join(map(str, self.shape))}, affine [{rows}]"


@dataclass(frozen=True)
class BoldHeader:
    """What the header of a series says; ``tr_s`` is None where it says nothing."""

    space: Space
    n_volumes: int
    tr_s: float | None


def torn(path: Path, problem: Exception, error: ErrorType) -> Exception:
    """Return the error of a file that cannot be read to its end."""
    return error(
        "a NIfTI file cannot be read; it may be truncated",
        where=str(path),
        got=f"{path.stat().st_size} bytes; {type(problem).__name__}: {problem}",
        expected="a complete NIfTI file (.nii or .nii.gz)",
        remedy="copy or download the file again, and compare its checksum",
    )


def open_nifti(path: Path, error: ErrorType = RecordingError) -> Any:
    """Open a NIfTI image; its data are not read. One that is truncated or of another kind is named."""
    nibabel = require("nibabel", extra=EXTRA)
    broken = (
        require("nibabel.filebasedimages", extra=EXTRA).ImageFileError,
        require("nibabel.spatialimages", extra=EXTRA).HeaderDataError,
        require("nibabel.wrapstruct", extra=EXTRA).WrapStructError,
    )
    try:
        image = nibabel.Nifti1Image.from_filename(path, keep_file_open=path.suffix == ".gz")
        shape, offset = image.shape, image.dataobj.offset
    except (OSError, EOFError, ValueError, zlib.error, *broken) as problem:
        raise torn(path, problem, error) from None
    n_expected = offset + int(np.prod(shape)) * image.header.get_data_dtype().itemsize
    if path.suffix != ".gz" and path.stat().st_size < n_expected:
        raise torn(path, EOFError(f"the header announces {n_expected} bytes"), error)
    return image


def read_bold_header(path: Path) -> BoldHeader:
    """Return grid, volumes and repetition time of a series, from its header alone."""
    image = open_nifti(path)
    if len(image.shape) != 4:
        raise RecordingError(
            "a BOLD file does not hold a series of volumes",
            where=str(path),
            got=f"shape {image.shape}",
            expected="four axes: x, y, z and time",
            remedy="name the series itself, not its mean or mask",
        )
    time_unit = image.header.get_xyzt_units()[1]
    # Single precision holds seven digits; the rest would add up over a run.
    tr_s = round(float(image.header.get_zooms()[3]) * _SECONDS.get(time_unit, 1.0), 6)
    return BoldHeader(space_of(image), int(image.shape[3]), tr_s if tr_s > 0 else None)


def space_of(image: Any) -> Space:
    """Return the grid of an image."""
    nx, ny, nz = (int(n) for n in image.shape[:3])
    return Space((nx, ny, nz), np.asarray(image.affine, dtype=np.float64))


def read_volume(
    path: Path, space: Space, bold: Path, *, resample: bool, what: str
) -> npt.NDArray[Any]:
    """Return an atlas or mask on the grid of a BOLD series, flat, with the first axis running fastest.

    One on another grid is refused, or, with ``resample``, brought there by nearest neighbours.
    """
    image = open_nifti(path)
    if len(image.shape) == 4 and image.shape[3] == 1:
        image = image.slicer[..., 0]
    if len(image.shape) != 3:
        raise RecordingError(
            f"the {what} is not one volume",
            where=str(path),
            got=f"shape {image.shape}",
            expected="three axes; a probabilistic atlas has a fourth",
            remedy="use the maximum-probability version of the atlas (whole numbers, one per voxel)",
        )
    if not resample and not space.same(space_of(image)):
        raise RecordingError(
            f"the {what} and the BOLD series are not on the same grid",
            where=f"{path} and {bold}",
            got=f"{what}: {space_of(image)}; BOLD: {space}",
            expected="equal shapes and equal affines",
            remedy=f"resample the {what} to the BOLD grid (nilearn.image.resample_to_img, interpolation="
            "'nearest'), or set the option resample_atlas = true; both must be in the same space",
        )
    try:
        values: npt.NDArray[Any] = np.asarray(image.dataobj)
    except (OSError, EOFError, ValueError, zlib.error) as problem:
        raise torn(path, problem, RecordingError) from None
    if not space.same(space_of(image)):
        values = np.asarray(_resampled(image, space, path, bold, what).dataobj)
    return values.reshape(-1, order="F")


def _resampled(image: Any, space: Space, path: Path, bold: Path, what: str) -> Any:
    """Return an image on another grid, by nearest neighbours; one that does not reach it is named."""
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
            got=f"{what}: {space_of(image)}; BOLD: {space}",
            expected=f"the {what}, in mm, where the brain of the series lies",
            remedy=f"use the {what} of the series' own space; one of the two affines may be wrong",
        ) from None


class BoldSeries(StreamedSeries):
    """A BOLD file as [n_volumes, n_units].

    Parameters
    ----------
    path
        The series.
    header
        Its header.
    voxels
        [n_voxels], flat indices of the voxels that count, the first axis running fastest.
    unit
        [n_voxels], the unit of each. Units of several voxels hold their mean at every volume.
    n_units
        Units; each has at least one voxel.
    """

    def __init__(
        self, path: Path, header: BoldHeader, voxels: IntArray, unit: IntArray, n_units: int
    ) -> None:
        self._path = path
        self._header = header
        self._voxels = voxels
        self._unit = unit
        self._averaged = voxels.size > n_units
        self._means: FloatArray | None = None
        self.shape = (header.n_volumes, n_units)
        self.dtype = np.dtype(np.float64)

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices, [n_volumes, len(units)]; means over voxels are made once and kept."""
        wanted = np.asarray(units, dtype=np.int64)
        if not self._averaged:
            order = np.argsort(self._unit)
            return self._go_through(self._voxels[order][wanted], None)
        if self._means is None:
            counts = np.bincount(self._unit, minlength=self.shape[1])
            entries = (1.0 / counts[self._unit], (self._unit, np.arange(self._unit.size)))
            weights = sparse.csr_array(entries, shape=(self.shape[1], self._unit.size))
            self._means = self._go_through(self._voxels, weights)
        return self._means[:, wanted]

    def _go_through(self, voxels: IntArray, weights: sparse.csr_array | None) -> FloatArray:
        """Return ``weights @ values`` of every volume, [n_volumes, n]; without weights the voxels themselves."""
        n_volumes = self._header.n_volumes
        image = open_nifti(self._path)
        width = voxels.size if weights is None else weights.shape[0]
        out = np.empty((n_volumes, width))
        step = max(1, CHUNK_BYTES // (8 * int(np.prod(self._header.space.shape))))
        for first in range(0, n_volumes, step):
            stop = min(first + step, n_volumes)
            try:
                block = np.asarray(image.dataobj[..., first:stop], dtype=np.float64)
            except (OSError, EOFError, ValueError, zlib.error) as problem:
                raise torn(self._path, problem, RecordingError) from None
            values = block.reshape(-1, stop - first, order="F")[voxels]
            out[first:stop] = (values if weights is None else weights @ values).T
        return out
