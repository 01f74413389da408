"""Neural data of a Brain Treebank trial: one HDF5 dataset an electrode, read one at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lpact.datasets._files.hdf5 import (
    hdf5_dataset,
    hdf5_object,
    never_written,
    open_hdf5,
)
from lpact.datasets.series import StreamedSeries
from lpact.errors import RecordingError
from lpact.math.types import FloatArray

GROUP = "data"
_ELECTRODE = re.compile(r"electrode_(0|[1-9][0-9]*)")


class ElectrodeSeries(StreamedSeries):
    """Electrodes of ``f['data']['electrode_<position>']``, in the precision of the file.

    Opening reads the shapes of all of them and none of the values. Nothing is read from another file: links out of the
    file are refused. ``unwritten`` tells, by position, of electrodes with parts that were never stored.

    Parameters
    ----------
    path
        The trial's file.
    positions
        Places of the wanted electrodes in the unfiltered list of labels.
    """

    unit_major = True

    def __init__(self, path: Path, positions: Sequence[int]) -> None:
        self._path = path
        self._positions = tuple(positions)
        self.unwritten: dict[int, str] = {}
        with open_hdf5(path, RecordingError) as file:
            names = set(_group(file, path))
            headers = [self._header(file, names, position) for position in self._positions]
        lengths = [length for length, _ in headers]
        for position, length in zip(self._positions, lengths, strict=True):
            if length != lengths[0]:
                raise RecordingError(
                    "electrodes are not of the same length",
                    where=f"{path}, {GROUP}/electrode_{position}",
                    got=f"{length} samples",
                    expected=f"{lengths[0]} samples, as in {GROUP}/electrode_{self._positions[0]}",
                    remedy="download the file again; if it stays, leave the trial out with the "
                    "option 'trials'",
                )
        self.shape = (lengths[0] if lengths else 0, len(self._positions))
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
        dtype = dataset.dtype
        if dtype.kind not in "fiu" or dataset.shape is None or len(dataset.shape) != 1:
            raise RecordingError(
                "an electrode is not a series of real numbers",
                where=where,
                got=f"shape {dataset.shape}, dtype {dtype}",
                expected="one axis of numbers",
                remedy="download the file again",
            )
        unwritten = never_written(dataset)
        if unwritten:
            self.unwritten[position] = unwritten
        return int(dataset.shape[0]), dtype

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return electrodes, [n_samples, len(units)]."""
        values: FloatArray = np.empty((len(units), self.shape[0]), dtype=self.dtype)
        with open_hdf5(self._path, RecordingError) as file:
            for row, unit in enumerate(units):
                if self.shape[0]:
                    name = f"{GROUP}/electrode_{self._positions[unit]}"
                    hdf5_dataset(file, name, RecordingError).read_direct(values[row])
        return values.T


def electrode_positions(path: Path) -> list[int]:
    """Return the positions of all electrodes of a file, rising."""
    with open_hdf5(path, RecordingError) as file:
        matches = [_ELECTRODE.fullmatch(name) for name in _group(file, path)]
    return sorted(int(match[1]) for match in matches if match is not None)


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
