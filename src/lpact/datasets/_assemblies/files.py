"""netCDF files that hold one array, presentation × neuroid, as xarray writes them.

Coordinates are read when a file is opened, values only when they are asked for. Levels of an index are coordinates of
their own in such files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import CsvFile, ErrorType
from lpact.errors import InputError, RecordingError, StimulusError, did_you_mean
from lpact.extras import require
from lpact.math.types import FloatArray

PRESENTATION, NEUROID = "presentation", "neuroid"
STIMULUS_ID = "stimulus_id"

_HDF5 = b"\x89HDF\r\n\x1a\n"
_CLASSIC = b"CDF"
_BROKEN = (OSError, ValueError, TypeError, KeyError, IndexError, EOFError, RuntimeError)
"""What the libraries raise on torn files."""

Coordinates = dict[str, list[str]]


class AssemblyFile:
    """One assembly: what its presentations and neuroids are, and their values.

    ``presentations`` and ``neuroids`` map the name of a coordinate to its values as text, one per row or column; one
    that is missing is empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._engine = _engine(path)
        with self._open() as dataset:
            self._variable = self._find_variable(dataset)
            array = dataset[self._variable]
            self._dims = tuple(str(dim) for dim in array.dims)
            self._check_dims(dict(zip(self._dims, array.shape, strict=True)))
            if array.dtype.kind not in "fiu":
                raise self._error(
                    "the array does not hold real numbers",
                    got=f"dtype {array.dtype}",
                    expected="floating-point or integer values",
                    remedy="write the array again as float64",
                )
            self.n_presentations = int(dataset.sizes[PRESENTATION])
            self.n_neuroids = int(dataset.sizes[NEUROID])
            self.presentations = _coordinates(dataset, PRESENTATION)
            self.neuroids = _coordinates(dataset, NEUROID)

    def read(self, rows: Sequence[int], columns: Sequence[int]) -> FloatArray:
        """Return the values of these presentations and neuroids, [len(rows), len(columns)]."""
        if not len(rows) or not len(columns):
            return np.empty((len(rows), len(columns)))
        first_row, first = min(rows), min(columns)
        block = {
            PRESENTATION: slice(first_row, max(rows) + 1),
            NEUROID: slice(first, max(columns) + 1),
        }
        with self._open() as dataset:
            array = dataset[self._variable].isel(block)
            single = [dim for dim in self._dims if dim not in block]
            values = array.squeeze(single).transpose(PRESENTATION, NEUROID).values
        picked: FloatArray = np.asarray(values, dtype=np.float64)[
            np.ix_(np.asarray(rows) - first_row, np.asarray(columns) - first)
        ]
        return picked

    def add_presentations(self, table: CsvFile) -> None:
        """Add what a table of stimuli says of every presentation, found by its ``stimulus_id``."""
        table.require([STIMULUS_ID])
        ids = table.cells(STIMULUS_ID)
        row_of: dict[str, int] = {}
        for row, name in enumerate(ids):
            if name in row_of:
                raise table.wrong(STIMULUS_ID, row, "every stimulus once")
            row_of[name] = row
        own = self.presentation([STIMULUS_ID], what="the stimulus of each presentation")
        unknown = [name for name in own if name not in row_of]
        if unknown:
            raise StimulusError(
                "the table of stimuli lacks stimuli of the assembly",
                where=f"{table.path}, column '{STIMULUS_ID}'",
                got=f"no row for {len(unknown)} stimuli; first: {unknown[0]!r}",
                expected=f"a row for every {STIMULUS_ID} of {self.path.name}",
                remedy="use the table that belongs to the assembly; "
                + did_you_mean(unknown[0], row_of),
            )
        for column in table.columns:
            if column not in self.presentations:
                cells = table.cells(column)
                self.presentations[column] = [cells[row_of[name]] for name in own]

    def presentation(self, names: Sequence[str], *, what: str) -> list[str]:
        """Return the first of these coordinates that presentations have; one must be there, without gaps."""
        return self._need(self.presentations, PRESENTATION, names, what, StimulusError)

    def neuroid(self, names: Sequence[str], *, what: str) -> list[str]:
        """Return the first of these coordinates that neuroids have; one must be there, without gaps."""
        return self._need(self.neuroids, NEUROID, names, what, RecordingError)

    def _need(
        self,
        coordinates: Mapping[str, list[str]],
        dim: str,
        names: Sequence[str],
        what: str,
        error: ErrorType,
    ) -> list[str]:
        found = next((name for name in names if name in coordinates), None)
        if found is None:
            raise error(
                f"the assembly does not say {what}",
                where=f"{self.path}, coordinates of '{dim}'",
                got="coordinates " + (", ".join(coordinates) or "none"),
                expected=" or ".join(f"'{name}'" for name in names),
                remedy="add the coordinate, or put the table of stimuli beside the assembly"
                if dim == PRESENTATION
                else "add the coordinate",
            )
        values = coordinates[found]
        if "" in values:
            raise error(
                f"a value of the coordinate '{found}' is missing",
                where=f"{self.path}, coordinate '{found}', {dim} {values.index('')} (from 0)",
                got=f"{values.count('')} empty value(s)",
                expected=f"{what}, for every {dim}",
                remedy="fill the coordinate",
            )
        return values

    @contextmanager
    def _open(self) -> Iterator[Any]:
        xarray = require("xarray", extra="assemblies")
        if self._engine == "h5netcdf":
            require("h5netcdf", extra="assemblies")
        try:
            # A classic file is read as a whole: mapped, a torn one could not be closed.
            with (
                self.path.open("rb") as stream,
                xarray.open_dataset(
                    stream if self._engine == "scipy" else self.path,
                    engine=self._engine,
                    decode_times=False,
                    decode_timedelta=False,
                    cache=False,
                ) as dataset,
            ):
                yield dataset
        except InputError:
            raise
        except _BROKEN as problem:
            raise self._error(
                "a netCDF file cannot be read; it may be truncated",
                got=f"{self.path.stat().st_size} bytes; {type(problem).__name__}: {problem}",
                expected="a complete netCDF file",
                remedy="copy or download the file again, and compare its checksum",
            ) from None

    def _find_variable(self, dataset: Any) -> str:
        both = [
            str(name)
            for name, variable in dataset.variables.items()
            if {PRESENTATION, NEUROID} <= set(variable.dims)
        ]
        if len(both) != 1:
            listing = ", ".join(f"{name} {tuple(v.dims)}" for name, v in dataset.variables.items())
            raise self._error(
                "the file does not hold one array of presentations and neuroids",
                got=f"{len(both)} such arrays; variables {listing or 'none'}",
                expected=f"one array with the dimensions '{PRESENTATION}' and '{NEUROID}'",
                remedy="use the assembly as it was published, or rename the dimensions",
            )
        return both[0]

    def _check_dims(self, sizes: Mapping[str, int]) -> None:
        for dim, size in sizes.items():
            if dim not in (PRESENTATION, NEUROID) and size != 1:
                raise self._error(
                    "the array has a further dimension",
                    got=f"'{dim}' of size {size}, in dimensions {dict(sizes)}",
                    expected=f"'{PRESENTATION}' and '{NEUROID}'; others of size 1",
                    remedy=f"choose or average over '{dim}', and write the assembly again",
                )

    def _error(self, what: str, *, got: str, expected: str, remedy: str) -> InputError:
        return RecordingError(what, where=str(self.path), got=got, expected=expected, remedy=remedy)


def find_assembly(source: SourceFolder, file: str) -> Path:
    """Return the assembly of a folder: the file of this name, or the only netCDF file."""
    if file:
        return source.file(file)
    found = source.glob("**/*.nc") + source.glob("**/*.nc4")
    if len(found) != 1:
        names = [source.relative(path) for path in found]
        raise InputError(
            "there is no netCDF file" if not found else "there are several netCDF files",
            where=str(source.root),
            got=", ".join(names[:8]) or "no file '*.nc'",
            expected="one assembly, such as assy_Pereira2018_language.nc",
            remedy="put the assembly into the folder"
            if not found
            else f'name one in the dataset\'s options: file = "{names[0]}"',
        )
    return found[0]


def find_stimuli(source: SourceFolder, file: str) -> Path | None:
    """Return the table of stimuli beside an assembly: the file of this name, or ``stimulus*.csv`` if there is one."""
    if file:
        return source.file(file, StimulusError)
    found = source.glob("**/stimulus*.csv", StimulusError)
    if len(found) > 1:
        raise StimulusError(
            "there are several tables of stimuli",
            where=str(source.root),
            got=", ".join(source.relative(path) for path in found[:8]),
            expected="one table stimulus*.csv",
            remedy=f'name one in the dataset\'s options: stimuli = "{source.relative(found[0])}"',
        )
    return found[0] if found else None


def trailing_numbers(names: Sequence[str]) -> list[int] | None:
    """Return the number at the end of every name, or None unless all have one of their own."""
    matches = [re.search(r"([0-9]{1,9})$", name) for name in names]
    numbers = [int(match.group(1)) for match in matches if match is not None]
    return numbers if len(set(numbers)) == len(names) else None


def _engine(path: Path) -> str:
    with path.open("rb") as stream:
        magic = stream.read(8)
    if magic == _HDF5:
        return "h5netcdf"
    if magic[:3] == _CLASSIC:
        return "scipy"
    raise RecordingError(
        "a file is not netCDF",
        where=str(path),
        got=f"{path.stat().st_size} bytes that begin with {magic!r}",
        expected="netCDF-4 (HDF5) or classic netCDF",
        remedy="download the file again; a page that asks to log in may have been saved in its place",
    )


def _coordinates(dataset: Any, dim: str) -> Coordinates:
    return {
        str(name): [_text(value) for value in _values(variable)]
        for name, variable in dataset.variables.items()
        if tuple(variable.dims) == (dim,)
    }


def _values(variable: Any) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = np.asarray(variable.values)
    return values


def _text(value: Any) -> str:
    """Return a coordinate's value as text: whole numbers without a point, missing ones empty."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if value is None or (isinstance(value, float | np.floating) and not np.isfinite(value)):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
