"""Arrays in files of several formats, opened without reading them. One file a format."""

from __future__ import annotations

from pathlib import Path

from lpact.datasets.arrays.files.stored import ArrayFile
from lpact.errors import RecordingError

SUFFIXES = (".npy", ".npz", ".h5", ".hdf5", ".nwb", ".zarr", ".mat")


def open_array_file(path: Path) -> ArrayFile:
    """Return the opener of a file's format, which its suffix names."""
    # Imported here, so that a study with one format loads that one alone.
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz"):
        from lpact.datasets.arrays.files.npy import NpyFile, NpzFile

        return NpyFile(path) if suffix == ".npy" else NpzFile(path)
    if suffix in (".h5", ".hdf5", ".nwb"):
        from lpact.datasets.arrays.files.hdf5 import Hdf5File

        return Hdf5File(path)
    if suffix == ".zarr":
        from lpact.datasets.arrays.files.zarr_folder import ZarrFolder

        return ZarrFolder(path)
    if suffix == ".mat":
        from lpact.datasets.arrays.files.matlab import open_matlab

        return open_matlab(path)
    raise RecordingError(
        "the format of an array file is not known",
        where=str(path),
        got=f"the suffix '{path.suffix}'",
        expected="one of " + ", ".join(SUFFIXES),
        remedy="rename the file by its format, or save the array in one of these formats",
    )
