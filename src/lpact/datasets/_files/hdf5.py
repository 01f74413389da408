"""HDF5 files, opened with errors that name file and place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lpact.datasets._files.strict import ErrorType
from lpact.extras import require


@contextmanager
def open_hdf5(path: Path, error: ErrorType, *, extra: str = "hdf5") -> Iterator[Any]:
    """Open an HDF5 file for reading; one that is truncated or of another kind is named."""
    h5py = require("h5py", extra=extra)
    try:
        file = h5py.File(path, "r")
    except OSError as problem:
        raise error(
            "an HDF5 file cannot be opened; it may be truncated",
            where=str(path),
            got=f"{path.stat().st_size} bytes; {problem}",
            expected="a complete HDF5 file",
            remedy="copy or download the file again, and compare its checksum",
        ) from None
    try:
        yield file
    except OSError as problem:
        raise error(
            "an HDF5 file cannot be read to the end; it may be torn",
            where=str(path),
            got=str(problem),
            expected="a complete HDF5 file",
            remedy="copy or download the file again, and compare its checksum",
        ) from None
    finally:
        file.close()
