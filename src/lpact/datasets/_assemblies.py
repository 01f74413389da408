"""Base class of the readers of netCDF assemblies, presentation × neuroid, of the sentence and word literature.

Levels of an index are coordinates in such files. Times are nominal: only the order of presentations counts.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.strict import TextTable, damaged, invalid, is_finite, typed_column
from lpact.datasets._folder_dataset import UNKNOWN, FolderDataset, chosen_file, words_table
from lpact.datasets.base import DatasetInfo, Findings, Recording, RecordingId, Signal, Units
from lpact.datasets.catalogue import Download
from lpact.datasets.validate import check_unique
from lpact.errors import RecordingError, StimulusError, did_you_mean
from lpact.extras import require
from lpact.math.types import FloatArray
from lpact.registry import PluginOptions

PRESENTATION, NEUROID, STIMULUS_ID = "presentation", "neuroid", "stimulus_id"
TEXT = ("stimulus", "stimulus_sentence", "sentence", "stimuli", "word")
"""Coordinates that may name what was presented, in this order."""

_ENGINES = {b"\x89HDF": "h5netcdf", b"CDF\x01": "scipy", b"CDF\x02": "scipy"}
"""Engine of xarray by the first bytes of a netCDF file."""


class AssemblyOptions(PluginOptions):
    """Which files of the folder are read."""

    file: str = ""
    """Assembly to read, relative to the folder. Empty: the only netCDF file there."""
    stimuli: str = ""
    """CSV with `stimulus_id` and the text of every stimulus, relative to the folder. Empty: `stimulus*.csv`, if there
    is one.
    """


OptionsT = TypeVar("OptionsT", bound=AssemblyOptions)


class Coordinates(dict[str, list[str]]):
    """Coordinates of a dimension of an assembly: values by name, as texts, empty where missing."""

    def __init__(self, values: Mapping[str, list[str]], path: Path, dim: str) -> None:
        super().__init__(values)
        self._where = f"{path}, coordinates of '{dim}'"
        self._error = StimulusError if dim == PRESENTATION else RecordingError

    def first(self, *names: str, what: str) -> list[str]:
        """Return the first of these coordinates; one must exist, without gaps."""
        found = next((name for name in names if name in self), None)
        if found is None:
            got = "coordinates " + (", ".join(self) or "none")
            expected = f"{what}, in " + " or ".join(f"'{name}'" for name in names)
            remedy = "add the coordinate, or put the table of stimuli next to the assembly"
            raise invalid(self._where, got, expected, self._error, remedy)
        return self.checked(found, bool, f"{what}, without gaps")

    def integers(self, name: str) -> list[int]:
        """Return a coordinate that must be whole numbers from 0."""
        self.first(name, what=f"the '{name}' of each presentation")
        expected = "a whole number from 0, of at most 18 digits"
        return [int(x) for x in self.checked(name, re.compile("[0-9]{1,18}").fullmatch, expected)]

    def checked(self, name: str, valid: Callable[[str], object], expected: str) -> list[str]:
        """Return a coordinate whose values must all be valid."""
        for index, value in enumerate(self[name]):
            if not valid(value):
                where = f"{self._where}, coordinate '{name}', number {index} (from 0)"
                raise invalid(where, repr(value[:80]), expected, self._error)
        return self[name]


class AssemblyDataset(FolderDataset[OptionsT, list[int]]):
    """An opened assembly; each recording is some of its neuroids.

    Subclasses set in `_arrange` the presentations of each run in the order of its stimulus (``rows``), the
    ``unit_ids`` and ``regions`` of all neuroids, and the recordings.
    """

    contents = "a folder with one assembly (*.nc)"
    role = "secondary"
    extra = "assemblies"
    title: ClassVar[str]
    download: ClassVar[Download]
    comparable = False
    rows: dict[str, list[int]]
    unit_ids: Sequence[str]
    regions: Sequence[str]

    def _open(self) -> None:
        folder, options = self.folder, self.options
        self.info = DatasetInfo(self.title, "assembly", self.download.licence)
        self.path = chosen_file(folder, "**/*.nc", "**/*.nc4", named=options.file, option="file")
        self.where = folder.where(self.path)
        self.values, self.presentations, self.neuroids = _read_assembly(self.path)
        self._stimuli_path = None
        if options.stimuli or folder.glob("**/stimulus*.csv"):
            self._stimuli_path = chosen_file(
                folder, "**/stimulus*.csv", named=options.stimuli, option="stimuli", error=StimulusError
            )
            self._add_stimuli(TextTable(self._stimuli_path, StimulusError))
        self._coordinates_mm = None
        if self.neuroids.keys() >= set("xyz"):
            ok = "millimetres, or no value"
            axes = [self.neuroids.checked(n, lambda x: not x or is_finite(x), ok) for n in "xyz"]
            self._coordinates_mm = np.array([[float(x or "nan") for x in axis] for axis in axes]).T
        self._arrange()

    @abstractmethod
    def _arrange(self) -> None:
        """Set rows, units and recordings."""

    @abstractmethod
    def _signal(self, values: FloatArray) -> Signal:
        """Return the signal of responses [n_presentations, n_units]."""

    def stimulus_ids(self) -> list[str]:
        """Return every stimulus: one per run."""
        return list(self.rows)

    def _recording(self, recording_id: RecordingId, files: list[int]) -> Recording:
        names = [self.unit_ids[index] for index in files]
        check_unique(
            names,
            where=f"{self.path}, coordinates of '{NEUROID}', subject {recording_id.subject}",
            remedy="if a neuroid belongs to several atlases, choose one (option 'atlases'); otherwise remove the "
            "duplicates",
        )
        regions = [self.regions[index] or UNKNOWN for index in files]
        places = None if self._coordinates_mm is None else self._coordinates_mm[files]
        findings = Findings(self.where)
        if UNKNOWN in regions:
            findings.note(
                "region",
                Reason.UNIT_WITHOUT_PLACE,
                f"{regions.count(UNKNOWN)} of {len(names)} units without a region",
                "a region for every unit",
                f"they have the region '{UNKNOWN}'; add a coordinate to tell them apart",
            )
        return Recording(
            recording_id,
            self._signal(self.values[np.ix_(self.rows[recording_id.run], files)]),
            Units(tuple(names), tuple(regions), places, comparable=self.comparable),
            f"{self.where}, subject {recording_id.subject}, {recording_id.run}",
            findings=tuple(findings),
        )

    def _paths(self) -> list[Path | None]:
        return [self.path, self._stimuli_path]

    def check_repetitions(self, ids: Sequence[str], what: str = STIMULUS_ID) -> None:
        """Raise if something was presented more than once."""
        check_unique(
            ids,
            where=f"{self.path}, coordinate '{what}'",
            remedy="average over repetitions, and write the assembly again",
            error=StimulusError,
        )

    def subjects(self, *names: str, run: str) -> list[tuple[RecordingId, list[int]]]:
        """Return one recording per subject; the first of these coordinates names the subjects."""
        columns = group(self.neuroids.first(*names, what="the subjects"))
        return [(RecordingId(name, "1", run, run), found) for name, found in columns.items()]

    def note_moved(self, rows: Sequence[int], findings: Findings) -> None:
        """Add a note if presentations are not in the order of the file."""
        moved = sum(row != expected for row, expected in zip(rows, sorted(rows), strict=True))
        if moved:
            findings.note(
                PRESENTATION,
                Reason.SOURCE_ROWS_SORTED,
                f"{moved} of {len(rows)} presentations at another place in the file",
                "passages in consecutive rows, in the order in which they are read",
                "nothing to do: responses are in the same order",
            )

    def _add_stimuli(self, table: TextTable) -> None:
        """Add the columns of a table of stimuli to the presentations with the same ``stimulus_id``."""
        table.require([STIMULUS_ID])
        row_of = {name: row for row, name in enumerate(table.unique(STIMULUS_ID))}
        own = self.presentations.first(STIMULUS_ID, what="the stimulus of each presentation")
        unknown = [name for name in own if name not in row_of]
        if unknown:
            found = f"no row for {len(unknown)} stimuli; first: {unknown[0]!r}"
            expected = f"a row for every {STIMULUS_ID} of {self.path.name}"
            remedy = f"use the table of this assembly; {did_you_mean(unknown[0], row_of)}"
            raise invalid(table.path, found, expected, StimulusError, remedy)
        for column in table.columns:
            if column not in self.presentations:
                cells = table.cells(column)
                self.presentations[column] = [cells[row_of[name]] for name in own]


def _read_assembly(path: Path) -> tuple[FloatArray, Coordinates, Coordinates]:
    """Return the values [n_presentations, n_neuroids] and the coordinates of both dimensions."""
    with path.open("rb") as stream:
        magic = stream.read(4)
    if magic not in _ENGINES:
        found = f"{path.stat().st_size} bytes that begin with {path.read_bytes()[:8]!r}"
        raise invalid(path, found, "netCDF-4 (HDF5) or classic netCDF")
    xarray = require("xarray", extra="assemblies")
    if _ENGINES[magic] == "h5netcdf":
        require("h5netcdf", extra="assemblies")
    try:
        # A classic file is read as a whole: mapped, a torn one could not be closed.
        with path.open("rb") as stream:
            dataset = xarray.load_dataset(
                stream if _ENGINES[magic] == "scipy" else path,
                engine=_ENGINES[magic],
                decode_times=False,
                decode_timedelta=False,
            )
    except Exception as problem:
        raise damaged(path, problem) from None
    presentations, neuroids = (
        Coordinates(
            {
                str(name): [_text(value) for value in variable.values]
                for name, variable in dataset.variables.items()
                if variable.dims == (dim,)
            },
            path,
            dim,
        )
        for dim in (PRESENTATION, NEUROID)
    )
    return _values(dataset, path), presentations, neuroids


def _values(dataset: Any, path: Path) -> FloatArray:
    dims = {PRESENTATION, NEUROID}
    arrays = [v for v in dataset.variables.values() if dims <= set(v.dims)]
    array = arrays[0] if len(arrays) == 1 else None
    longer = {} if array is None else {d: n for d, n in array.sizes.items() if n > 1}
    if array is None or array.dtype.kind not in "fiu" or not longer.keys() <= dims:
        listed = [
            ", ".join(f"'{d}' of size {n}" for d, n in v.sizes.items()) + f" ({name}, {v.dtype})"
            for name, v in dataset.variables.items()
        ]
        expected = f"one array of numbers with the dimensions '{PRESENTATION}' and '{NEUROID}'; others of size 1"
        remedy = "use the assembly as it was published, or average over the other dimensions"
        raise invalid(path, "; ".join(listed) or "no variables", expected, remedy=remedy)
    single = [dim for dim in array.dims if dim not in dims]
    values: FloatArray = array.squeeze(single).transpose(PRESENTATION, NEUROID).values
    return values.astype(np.float64)


def _text(value: Any) -> str:
    """Return a coordinate's value as text: whole numbers without a point, missing ones empty."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, float | np.floating):
        if not np.isfinite(value):
            return ""
        return str(int(value)) if float(value).is_integer() else str(value)
    return "" if value is None else str(value)


def group(keys: Sequence[str], order: Sequence[int] | None = None) -> dict[str, list[int]]:
    """Return the indices of every key, in ``order``; keys as they first appear."""
    groups: dict[str, list[int]] = {}
    for index in range(len(keys)) if order is None else order:
        groups.setdefault(keys[index], []).append(index)
    return groups


def sentence_words(
    sentences: Sequence[str],
    stories: Sequence[str],
    onsets_s: Sequence[float],
    *,
    shown_s: float,
    where: str,
    columns: Mapping[str, Sequence[str]],
) -> pl.DataFrame:
    """Return a words table with one sentence per presentation, split at white space.

    Sentence k is shown at ``onsets_s[k]`` for ``shown_s``; its n words share that time equally. Its ``sentence_id`` is
    k. ``columns`` have one value per sentence.
    """
    words = [sentence.split() for sentence in sentences]
    if [] in words:
        empty = words.index([])
        place = f"{where}, presentation {empty} (from 0)"
        raise invalid(place, repr(sentences[empty]), "the text of a sentence", StimulusError)
    number = [index for index, own in enumerate(words) for _ in own]
    times = [
        (onset_s + shown_s / len(own) * i, onset_s + shown_s / len(own) * (i + 1))
        for onset_s, own in zip(onsets_s, words, strict=True)
        for i in range(len(own))
    ]
    return words_table(
        [word for own in words for word in own],
        [onset for onset, _ in times],
        [offset for _, offset in times],
        number,
        [stories[index] for index in number],
        {name: typed_column(values).gather(number) for name, values in columns.items()},
    )
