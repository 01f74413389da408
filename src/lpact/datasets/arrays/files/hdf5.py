"""HDF5 files: datasets by path, numbers by path or as ``path@attribute``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy.typing as npt

from lpact.datasets._files.hdf5 import hdf5_dataset, hdf5_object, never_written, open_hdf5
from lpact.datasets._files.stored import Index, StoredArray
from lpact.datasets.arrays.files.stored import (
    ArrayFile,
    check_one_number,
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
            dataset = self._dataset(file, name)
            where = f"{self.path}, {self.noun} '{name}'"
            self._check(dataset, where)
            return StoredArray(
                where=where,
                shape=self._turn(dataset.shape),
                dtype=dataset.dtype,
                read=lambda index: self._read(name, index),
                chunks=None if dataset.chunks is None else self._turn(dataset.chunks),
                fortran=self._turn((0, 1)) == (1, 0),
                unwritten=never_written(dataset),
            )

    def number(self, key: str) -> float:
        """Return a scalar dataset, or an attribute, as in ``data@rate`` (``@rate`` for the file's own)."""
        path, _, attribute = key.partition("@")
        where = f"{self.path}, '{key}'"
        with self._open() as file:
            if not attribute:
                dataset = self._dataset(file, path)
                check_one_number(dataset.shape, dataset.dtype, where)
                return one_number(dataset[()], where)
            attributes = hdf5_object(file, path, RecordingError, noun=self.noun).attrs
            if attribute not in attributes:
                raise RecordingError(
                    f"there is no attribute '{attribute}'",
                    where=where,
                    got="attributes " + (", ".join(attributes) or "none"),
                    expected=f"the attribute '{attribute}'",
                    remedy=did_you_mean(attribute, attributes),
                )
            return one_number(attributes[attribute], where)

    def _dataset(self, file: Any, name: str) -> Any:
        return hdf5_dataset(file, name, RecordingError, noun=self.noun)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with open_hdf5(self.path, RecordingError) as file:
            yield file

    def _read(self, name: str, index: Index) -> npt.NDArray[Any]:
        with self._open() as file:
            values: npt.NDArray[Any] = self._dataset(file, name)[index]
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
