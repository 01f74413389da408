"""What the assemblies of the sentence and word literature share: one recording per subject, units by coordinate."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._assemblies.files import AssemblyFile, find_assembly, find_stimuli
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import CsvFile, is_finite
from lpact.datasets._finding import Finding
from lpact.datasets.base import (
    Dataset,
    DatasetInfo,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
    Units,
)
from lpact.datasets.catalogue import Download, Expected
from lpact.datasets.validate import check_recording_ids
from lpact.errors import RecordingError, StimulusError, did_you_mean
from lpact.math.types import FloatArray
from lpact.registry import PluginOptions

UNKNOWN = "unknown"
SESSION = "1"
LICENCE = "not stated by the source; ask the authors before sharing"
TEXT = ("stimulus", "stimulus_sentence", "sentence", "stimuli", "word")
"""Coordinates that may hold what was presented, in this order."""

AXES = ("x", "y", "z")
"""Coordinates of neuroids that hold their places, in millimetres."""
MOST_DIGITS = 18

LAYOUT = (
    Expected("the assembly, presentation × neuroid", ("*.nc", "**/*.nc", "*.nc4", "**/*.nc4")),
    Expected(
        "the table of stimuli, where the assembly does not hold their text",
        ("stimulus*.csv", "**/stimulus*.csv"),
        needed=False,
    ),
)


class AssemblyOptions(PluginOptions):
    """Which files of the folder are read."""

    file: str = Field(
        "",
        description="Assembly to read, relative to the folder. Empty: the only netCDF file there.",
    )
    stimuli: str = Field(
        "",
        description="CSV with `stimulus_id` and the text of every stimulus, relative to the folder. "
        "Empty: `stimulus*.csv`, if there is one.",
    )


def download(identifier: str, citation: str) -> Download:
    """Where an assembly officially comes from: the loader of brain-score, which needs a person to run it."""
    return Download(
        method="manual",
        identifier=identifier,
        version="as loaded",
        size="below 100 MB",
        licence=LICENCE,
        homepage="https://github.com/brain-score/language",
        steps=(
            "install brainscore_language as its homepage says",
            f"in Python: assembly = brainscore_language.load_dataset('{identifier}')",
            "assembly.reset_index(list(assembly.indexes)).to_dataset(name='data')"
            f".to_netcdf('assy_{identifier.replace('.', '_')}.nc')",
            "put the file into the dataset's folder",
        ),
        citation=citation,
    )


class AssemblyDataset(Dataset):
    """An opened assembly; subclasses say what its runs and stimuli are."""

    def __init__(
        self, name: str, path: Path | None, options: AssemblyOptions, *, info: DatasetInfo
    ) -> None:
        self.info = info
        self.source = SourceFolder(path, name=name, expected="a folder with one assembly (*.nc)")
        self.path = find_assembly(self.source, options.file)
        self._stimuli_path = find_stimuli(self.source, options.stimuli)
        self.file = AssemblyFile(self.path)
        if self._stimuli_path is not None:
            self.file.add_presentations(CsvFile(self._stimuli_path, StimulusError))
        self.where = self.source.where(self.path)
        self._coordinates_mm = self._read_places()
        self._ids: dict[RecordingId, list[int]] = {}

    @abstractmethod
    def _read(self, recording_id: RecordingId, columns: list[int]) -> Recording:
        """Read a recording from these neuroids."""

    @abstractmethod
    def _stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one of the stimuli."""

    @abstractmethod
    def stimulus_ids(self) -> list[str]:
        """Return every stimulus."""

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self._ids)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Read the values of one subject's neuroids."""
        if recording_id not in self._ids:
            raise RecordingError(
                "the assembly has no such recording",
                where=str(self.path),
                got=f"{recording_id} with stimulus '{recording_id.stimulus}'",
                expected="one of recording_ids()",
                remedy=did_you_mean(str(recording_id), [str(known) for known in self._ids]),
            )
        return self._read(recording_id, self._ids[recording_id])

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Return the words of one stimulus."""
        if stimulus_id not in self.stimulus_ids():
            raise StimulusError(
                "the assembly has no such stimulus",
                where=str(self.path),
                got=stimulus_id,
                expected="one of " + ", ".join(self.stimulus_ids()),
                remedy=did_you_mean(stimulus_id, self.stimulus_ids()),
            )
        return self._stimulus(stimulus_id)

    def source_files(self) -> list[SourceFile]:
        """Return the assembly, and the table of stimuli where there is one."""
        paths = [self.path, *([self._stimuli_path] if self._stimuli_path else [])]
        return self.source.source_files(paths, self.info.licence)

    def _set_recordings(self, ids: dict[RecordingId, list[int]]) -> None:
        check_recording_ids(ids, where=str(self.path))
        self._ids = ids

    def columns_by_subject(
        self, subjects: Sequence[str], keep: Sequence[int] | None = None
    ) -> dict[str, list[int]]:
        """Return the neuroids of every subject, in the order of the file."""
        columns: dict[str, list[int]] = {}
        for index in range(len(subjects)) if keep is None else keep:
            columns.setdefault(subjects[index], []).append(index)
        return columns

    def one_a_subject(self, names: Sequence[str], run: str) -> dict[RecordingId, list[int]]:
        """Return one recording per subject, which the first of these coordinates names; ``run`` is its stimulus too."""
        subjects = self.file.neuroid(names, what="the subjects")
        return {
            RecordingId(subject, SESSION, run, run): columns
            for subject, columns in self.columns_by_subject(subjects).items()
        }

    def integers(self, name: str) -> list[int]:
        """Return a coordinate of the presentations that must be whole numbers from 0 on."""
        values = self.file.presentation([name], what=f"the '{name}' of each presentation")
        for row, value in enumerate(values):
            if not value.isascii() or not value.isdigit() or len(value) > MOST_DIGITS:
                raise StimulusError(
                    f"a value of the coordinate '{name}' is not a number",
                    where=f"{self.path}, coordinate '{name}', presentation {row} (from 0)",
                    got=repr(value[:80]),
                    expected=f"a whole number from 0 on, of at most {MOST_DIGITS} digits",
                    remedy="fix the coordinate",
                )
        return [int(value) for value in values]

    def _read_places(self) -> FloatArray | None:
        """Return x, y and z of the neuroids, [n_neuroids, 3], NaN where one has none; None unless all are there."""
        if not set(AXES) <= self.file.neuroids.keys():
            return None
        places = np.full((self.file.n_neuroids, len(AXES)), np.nan)
        for axis, name in enumerate(AXES):
            for index, value in enumerate(self.file.neuroids[name]):
                if value and not is_finite(value):
                    raise RecordingError(
                        f"a value of the coordinate '{name}' is not a number",
                        where=f"{self.path}, coordinate '{name}', neuroid {index} (from 0)",
                        got=repr(value[:80]),
                        expected="millimetres, or no value",
                        remedy="fix the coordinate",
                    )
                places[index, axis] = float(value or "nan")
        return places

    def check_stimulus_ids(self, ids: Sequence[str]) -> None:
        """Raise where a stimulus id stands for two presentations."""
        for name, count in Counter(ids).items():
            if count > 1:
                raise StimulusError(
                    "a stimulus is presented more than once",
                    where=f"{self.path}, coordinate 'stimulus_id'",
                    got=f"{name!r} {count} times",
                    expected="one presentation for every stimulus",
                    remedy="average over repetitions, and write the assembly again",
                )

    def units(
        self,
        ids: Sequence[str],
        regions: Sequence[str],
        columns: Sequence[int],
        *,
        comparable: bool,
    ) -> Units:
        """Return the units of these neuroids, with their places if the file has any; two of one name are an error."""
        names = [ids[index] for index in columns]
        for name, count in Counter(names).items():
            if count > 1:
                raise RecordingError(
                    "a neuroid is listed more than once for one subject",
                    where=f"{self.path}, coordinates of 'neuroid'",
                    got=f"{name!r} {count} times",
                    expected="every neuroid of a subject once",
                    remedy="where it stands for several atlases, choose one in the dataset's "
                    "options; otherwise remove the duplicates",
                )
        return Units(
            tuple(names),
            tuple(regions[index] or UNKNOWN for index in columns),
            None if self._coordinates_mm is None else self._coordinates_mm[list(columns)],
            comparable=comparable,
        )

    def placeless(self, units: Units) -> list[Finding]:
        """Return a note if the source does not say where units lie."""
        n_unknown = sum(region == UNKNOWN for region in units.regions)
        if n_unknown == 0:
            return []
        return [
            Finding(
                field="region",
                reason=Reason.UNIT_WITHOUT_PLACE,
                severity="note",
                where=self.where,
                found=f"{n_unknown} of {len(units.ids)} units without a region",
                expected="a region for every unit",
                remedy=f"they have the region '{UNKNOWN}'; add a coordinate to tell them apart",
            )
        ]


def all_missing(values: FloatArray) -> bool:
    """Whether no value is there at all."""
    return bool(np.isnan(values).all())
