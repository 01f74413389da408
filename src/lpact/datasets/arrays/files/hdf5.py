"""HDF5 files: datasets by path, numbers by path or as ``path@attribute``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.hdf5 import open_hdf5
from lpact.datasets.arrays.files.stored import (
    ArrayFile,
    Index,
    StoredArray,
    check_real,
    one_number,
    the_key,
)
from lpact.errors import RecordingError, did_you_mean
from lpact.extras import require


class Hdf5File(ArrayFile):
    """Datasets of an HDF5 file; a file is open only while something is read from it."""

    noun = "dataset"

    def array(self, key: str | None) -> StoredArray:
        """Return a dataset by its path; without one, the only one that has two axes or more."""
        with self._open() as file:
            name = the_key(None, self._matrices(file), self.path, self.noun) if key is None else key
            dataset = self.dataset(file, name)
            where = f"{self.path}, {self.noun} '{name}'"
            self._check(dataset, where)
            return StoredArray(
                where=where,
                shape=self._turn(dataset.shape),
                dtype=dataset.dtype,
                read=lambda index: self._read(name, index),
                chunks=None if dataset.chunks is None else self._turn(dataset.chunks),
                fortran=self._turn((0, 1)) == (1, 0),
                unwritten=_unwritten(dataset),
            )

    def number(self, key: str) -> float:
        """Return a scalar dataset, or an attribute, as in ``data@rate`` (``@rate`` for the file's own)."""
        path, _, attribute = key.partition("@")
        where = f"{self.path}, '{key}'"
        with self._open() as file:
            if not attribute:
                dataset = self.dataset(file, path)
                check_real(dataset.dtype, where)
                small = math.prod(dataset.shape) == 1
                return one_number(dataset[()] if small else np.empty(dataset.shape), where)
            place = file if not path.strip("/") else self._walk(file, path)
            if attribute not in place.attrs:
                raise RecordingError(
                    f"there is no attribute '{attribute}'",
                    where=where,
                    got="attributes " + (", ".join(place.attrs) or "none"),
                    expected=f"the attribute '{attribute}'",
                    remedy=did_you_mean(attribute, place.attrs),
                )
            return one_number(place.attrs[attribute], where)

    def dataset(self, file: Any, name: str) -> Any:
        """Return a dataset by its path; nothing leads into another file."""
        found = self._walk(file, name)
        h5py = require("h5py", extra="hdf5")
        if not isinstance(found, h5py.Dataset):
            raise RecordingError(
                f"a group was named, not a {self.noun}",
                where=f"{self.path}, '{name}'",
                got="a group with " + (", ".join(found) or "nothing in it"),
                expected=f"the path of a {self.noun}",
                remedy=f"name one of those in it, as in '{name}/{next(iter(found), '…')}'",
            )
        if found.is_virtual or found.external or found.file.filename != file.filename:
            raise self._leads_out(name, "values that lie in other files")
        return found

    def _walk(self, file: Any, name: str) -> Any:
        h5py = require("h5py", extra="hdf5")
        place = file
        for part in name.strip("/").split("/"):
            link = place.get(part, getlink=True) if isinstance(place, h5py.Group) else None
            if isinstance(link, h5py.ExternalLink):
                raise self._leads_out(name, f"a link into '{link.filename}'")
            inner = None if link is None else place.get(part)
            if inner is None:
                the_key(name, self._names(file), self.path, self.noun)
                raise self._leads_out(name, "a link that leads nowhere")
            place = inner
        return place

    def _leads_out(self, name: str, found: str) -> RecordingError:
        return RecordingError(
            "a link leads out of an HDF5 file",
            where=f"{self.path}, '{name}'",
            got=found,
            expected="values in the file itself",
            remedy="copy the values into the file (h5repack, or h5copy), or name the other file",
        )

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with open_hdf5(self.path, RecordingError) as file:
            yield file

    def _read(self, name: str, index: Index) -> npt.NDArray[Any]:
        with self._open() as file:
            values: npt.NDArray[Any] = file[name][index]
        return values

    def _turn(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        """Axes as the user sees them."""
        return axes

    def _check(self, dataset: Any, where: str) -> None:
        check_real(dataset.dtype, where)
        if dataset.shape is None:
            raise RecordingError(
                "a dataset is empty",
                where=where,
                got="a null dataspace",
                expected="an array",
                remedy="name another dataset",
            )
        h5py = require("h5py", extra="hdf5")
        filters = dataset.id.get_create_plist()
        for position in range(filters.get_nfilters()):
            code, _, _, name = filters.get_filter(position)
            if not h5py.h5z.filter_avail(code):
                raise RecordingError(
                    "the compression of a dataset is not known here",
                    where=where,
                    got=f"HDF5 filter {code} ({name.decode(errors='replace')})",
                    expected="a filter that h5py has, such as gzip",
                    remedy="write it again with compression='gzip' (h5repack -f GZIP=4)",
                )

    def _names(self, file: Any) -> list[str]:
        h5py = require("h5py", extra="hdf5")
        names: list[str] = []
        file.visititems(
            lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
        )
        return names

    def _matrices(self, file: Any) -> list[str]:
        names = self._names(file)
        return [name for name in names if file[name].dtype.kind in "fiu" and file[name].ndim >= 2]


def _unwritten(dataset: Any) -> str:
    """Tell of parts for which no bytes were ever stored."""
    if dataset.chunks is None:
        never = dataset.size > 0 and dataset.id.get_storage_size() == 0
        return f"no value was ever stored; all read as {dataset.fillvalue}" if never else ""
    n_chunks = math.prod(
        -(-length // chunk) for length, chunk in zip(dataset.shape, dataset.chunks, strict=True)
    )
    missing = n_chunks - dataset.id.get_num_chunks()
    text = f"{missing} of {n_chunks} chunks were never stored; they read as {dataset.fillvalue}"
    return text if missing > 0 else ""
