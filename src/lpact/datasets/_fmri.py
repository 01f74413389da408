"""What readers of functional MRI share: options, files of a scan, repetition times, confounds, events."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._bids import (
    DESCRIPTION,
    entities,
    read_description,
    shown,
    stem,
)
from lpact.datasets._files.source_folder import SourceFolder, sha256
from lpact.datasets._files.strict import TsvFile
from lpact.datasets._finding import Finding
from lpact.datasets._fmri_volumes import (
    BoldHeader,
    BoldSeries,
    Parcels,
    Space,
    UnitFiles,
    read_bold_header,
)
from lpact.datasets._folder_dataset import (
    FolderDataset,
    check_known,
    first_file,
    note,
    read_json,
)
from lpact.datasets.base import DatasetInfo, Recording, RecordingId, SourceFile, TimeSeries
from lpact.datasets.catalogue import optional
from lpact.errors import InputError, RecordingError
from lpact.registry import PluginOptions

RAW_KEYS = ("sub", "ses", "task", "acq", "ce", "rec", "dir", "run", "echo")
"""Entities of raw BOLD files; derivatives have more."""

SAME_TR = 1e-3
"""Repetition times may differ by this fraction: headers store them in single precision."""

CONFOUNDS = ("desc-confounds_timeseries.tsv", "desc-confounds_regressors.tsv")
"""Names of fMRIPrep's confounds, now and before version 21."""

ABOUT = optional("description", DESCRIPTION)
"""Part of the layout that every BIDS dataset may have: licence and version."""


class FmriOptions(PluginOptions):
    """Options that every reader of functional MRI has."""

    atlas: str = Field(
        "",
        description="Label image (whole numbers, 0 outside): one unit per region, the mean of its voxels. A path from "
        "the dataset's folder, or an absolute one. With `mask` too: the atlas only names the region of each voxel.",
    )
    atlas_labels: str = Field(
        "",
        description="Table with the columns `index` and `name` for the atlas (TSV, or CSV by its ending). Empty: "
        "regions are called `label-<index>`.",
    )
    mask: str = Field("", description="Mask image: one unit per voxel that is not 0.")
    resample_atlas: bool = Field(
        False,
        description="Bring atlas and mask to the grid of each BOLD series by nearest neighbours. Otherwise another "
        "grid is an error.",
    )
    tr_s: float | None = Field(
        None,
        gt=0,
        description="Repetition time in seconds, where header and sidecar disagree or are wrong.",
    )
    tr_reference: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Fraction of the repetition time at which a volume counts: 0 is the start of its acquisition, "
        "0.5 the middle, to which fMRIPrep's slice-time correction refers.",
    )
    subjects: tuple[str, ...] = Field(
        (), description="Subjects to read, without `sub-`. Empty: all."
    )
    sentence_pause_s: float = Field(
        0.5,
        gt=0,
        description="Pause after which a sentence begins, where neither the source nor punctuation marks sentences.",
    )


@dataclass(frozen=True)
class Scan:
    """The files of one recording."""

    bold: Path
    sidecars: tuple[Path, ...] = ()
    events: Path | None = None
    confounds: Path | None = None


def find_scan(folder: SourceFolder, bold: Path) -> Scan:
    """Find the side files of a BOLD file: beside it, beside its raw file, and those of its task."""
    found, raw = entities(bold), stem(bold, *RAW_KEYS)
    home = f"sub-{found['sub']}/" + (f"ses-{found['ses']}/" if "ses" in found else "") + "func"
    own = folder.relative(bold).removesuffix(".gz").removesuffix(".nii") + ".json"
    task = f"task-{found.get('task', '')}"
    sidecars = dict.fromkeys((own, f"{home}/{raw}_bold.json", f"{task}_bold.json"))
    beside = folder.relative(bold.parent)
    paths = [folder.optional(name, RecordingError) for name in sidecars]
    events = (f"{home}/{raw}_events.tsv", f"{task}_events.tsv")
    return Scan(
        bold=bold,
        sidecars=tuple(path for path in paths if path is not None),
        events=first_file(folder, *events, error=RecordingError),
        confounds=first_file(folder, *(f"{beside}/{raw}_{name}" for name in CONFOUNDS)),
    )


OptionsT = TypeVar("OptionsT", bound=FmriOptions)


class FmriDataset(FolderDataset[OptionsT, Scan]):
    """An opened dataset of functional MRI.

    ``published`` and ``published_tr_s`` are what is known besides the files; what the files state counts.
    """

    published: ClassVar[DatasetInfo]
    published_tr_s: ClassVar[float | None] = None

    def __init__(self, folder: SourceFolder, options: OptionsT) -> None:
        super().__init__(folder, options)
        self.info = read_description(folder, self.published)
        self._unit_files = UnitFiles(
            atlas=_named_file(folder, options.atlas, "atlas"),
            labels=_named_file(folder, options.atlas_labels, "atlas_labels"),
            mask=_named_file(folder, options.mask, "mask"),
            resample=options.resample_atlas,
            dataset=folder.name,
        )
        self._parcels: list[tuple[Space, str, Parcels]] = []
        self._set_recordings(self._find_scans())

    @abstractmethod
    def _find_scans(self) -> list[tuple[RecordingId, Scan]]:
        """Find the recordings."""

    @abstractmethod
    def _stimulus_onset(
        self, recording_id: RecordingId, scan: Scan
    ) -> tuple[float, Sequence[Finding]]:
        """Return when the stimulus begins, in seconds from the start of the first volume, and doubts about it."""

    @abstractmethod
    def _stimulus_paths(self) -> Iterable[Path | None]:
        """Return the files that stimuli are read from."""

    def _recording(self, recording_id: RecordingId, files: Scan) -> Recording:
        header = read_bold_header(files.bold)
        tr_s, tr_findings = self._repetition_time(header, files)
        parcels = self._parcels_on(header.space, files.bold)
        onset_s, onset_findings = self._stimulus_onset(recording_id, files)
        confounds = files.confounds
        return Recording(
            id=recording_id,
            signal=TimeSeries(
                values=BoldSeries(files.bold, header, parcels),
                sampling_rate_hz=1.0 / tr_s,
                start_s=self.options.tr_reference * tr_s - onset_s,
                physical_unit="a.u.",
            ),
            units=parcels.units,
            where=self.folder.where(files.bold),
            confounds=read_confounds(confounds, header.n_volumes) if confounds else None,
            findings=(*tr_findings, *onset_findings, *parcels.findings),
        )

    def _paths(self) -> list[Path | None]:
        scans = [
            path
            for scan in self.recordings.values()
            for path in (scan.bold, *scan.sidecars, scan.events, scan.confounds)
        ]
        about = self.folder.optional(DESCRIPTION)
        units = [p for p in self._unit_files.paths() if p.is_relative_to(self.folder.root)]
        return [*scans, *self._stimulus_paths(), about, *units]

    def source_files(self) -> list[SourceFile]:
        """Return every file that is read, with its checksum; an atlas from elsewhere by its name."""
        elsewhere = {p for p in self._unit_files.paths() if not p.is_relative_to(self.folder.root)}
        return super().source_files() + [
            SourceFile(f"elsewhere/{path.name}", path.stat().st_size, sha256(path), "", path)
            for path in sorted(elsewhere)
        ]

    def _bold_files(self, found: Sequence[Path]) -> list[Path]:
        """Return the files of the subjects that the option names."""
        subjects = {subject.removeprefix("sub-") for subject in self.options.subjects}
        have = [entities(path).get("sub", "") for path in found]
        check_known(sorted(subjects), have, option="subjects", folder=self.folder)
        return [
            path
            for path, subject in zip(found, have, strict=True)
            if not subjects or subject in subjects
        ]

    def _no_volumes(self, pattern: str, others: Sequence[Path], options: str) -> InputError:
        """Return the error for options that no BOLD file fits; ``others`` are files that do not fit."""
        home = self.folder.root / "derivatives"
        pipelines = sorted(path.name for path in home.iterdir()) if home.is_dir() else []
        names = shown([path.name for path in others])
        return InputError(
            "there are no volumes to read",
            where=str(self.folder.root / pattern),
            got=f"{len(others)} other file(s): {names}; in derivatives/: {', '.join(pipelines) or 'nothing'}",
            expected="NIfTI volumes whose names fit the options; surfaces (.func.gii) are not read",
            remedy=f"download them, or change the options {options}",
        )

    def _parcels_on(self, space: Space, bold: Path) -> Parcels:
        frame = entities(bold).get("space", "")
        for known, known_frame, parcels in self._parcels:
            if known.same(space) and known_frame == frame:
                return parcels
        parcels = self._unit_files.parcels(space, bold, frame)
        self._parcels.append((space, frame, parcels))
        return parcels

    def _repetition_time(self, header: BoldHeader, scan: Scan) -> tuple[float, list[Finding]]:
        """Return the repetition time on which header, sidecars and publication agree, or the option ``tr_s``."""
        stated = {} if header.tr_s is None else {"the NIfTI header": header.tr_s}
        for path in scan.sidecars:
            value = read_json(path).get("RepetitionTime")
            if value is not None:
                stated[path.name] = _positive(value, path)
        if self.published_tr_s is not None:
            stated["the dataset's publication"] = self.published_tr_s
        listed = ", ".join(f"{source}: {value:g} s" for source, value in stated.items())
        tr_s = self.options.tr_s or next(reversed(stated.values()), None)
        if tr_s is None:
            raise RecordingError(
                "no file states the repetition time",
                where=str(scan.bold),
                got="none in the header, and no sidecar with RepetitionTime",
                expected="seconds between volumes",
                remedy="add RepetitionTime to the sidecar, or set the option tr_s",
            )
        if all(math.isclose(value, tr_s, rel_tol=SAME_TR) for value in stated.values()):
            return tr_s, []
        if self.options.tr_s is None:
            raise RecordingError(
                "sources disagree about the repetition time",
                where=str(scan.bold),
                got=listed,
                expected="one repetition time",
                remedy="find out which one is right, and set the option tr_s to it",
            )
        return tr_s, [
            note(
                "tr_s",
                Reason.SIDECAR_DISAGREES,
                self.folder.where(scan.bold),
                listed,
                f"{tr_s:g} s, the value of the option tr_s",
                "check the option: it counts",
            )
        ]


def _positive(value: object, path: Path) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise RecordingError(
        "RepetitionTime is not a time",
        where=f"{path}, key 'RepetitionTime'",
        got=repr(value),
        expected="seconds, above 0",
        remedy="fix the sidecar",
    )


def _named_file(folder: SourceFolder, name: str, option: str) -> Path | None:
    """Return a file that an option names: from the dataset's folder, or absolute."""
    if not name:
        return None
    if not Path(name).is_absolute():
        return folder.file(name)
    if Path(name).is_file():
        return Path(name)
    raise InputError(
        f"the file of the option '{option}' does not exist",
        where=f"dataset '{folder.name}', option '{option}'",
        got=name,
        expected="a file",
        remedy="fix the path; a relative path starts at the dataset's folder",
    )


def read_confounds(path: Path, n_volumes: int) -> pl.DataFrame:
    """Read fMRIPrep's confounds, [n_volumes, n_columns]; ``n/a`` (as in first rows of derivatives) is NaN."""
    table = TsvFile(path, RecordingError)
    if table.n_rows != n_volumes:
        raise RecordingError(
            "the confounds do not have one row per volume",
            where=str(path),
            got=f"{table.n_rows} rows",
            expected=f"{n_volumes} rows",
            remedy="use the confounds of this run",
        )
    columns = {column: table.numbers_or_nan(column) for column in table.columns}
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64))


@dataclass(frozen=True)
class Event:
    """One row of an events file: onset, ``trial_type`` and ``stim_file``."""

    onset_s: float
    kind: str
    stimulus: str


def read_events(path: Path) -> list[Event]:
    """Read the events of a run, in order of time."""
    table = TsvFile(path, RecordingError)
    table.require(("onset", "trial_type"))
    files = table.cells("stim_file") if "stim_file" in table.columns else [""] * table.n_rows
    rows = zip(table.numbers("onset"), table.cells("trial_type"), files, strict=True)
    return sorted((Event(*row) for row in rows), key=lambda event: event.onset_s)


def no_events(scan: Scan, remedy: str) -> RecordingError:
    """Return the error of a run whose events are needed."""
    return RecordingError(
        "the events of a run are not in the folder",
        where=str(scan.bold),
        got="no events file",
        expected=f"{stem(scan.bold, *RAW_KEYS)}_events.tsv in the subject's folder func/",
        remedy=remedy,
    )
