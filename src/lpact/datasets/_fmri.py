"""Base class of the fMRI readers: options, files of a scan, repetition times, confounds and events."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeGuard, TypeVar

import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._bids import DESCRIPTION, entities, find_sidecar, read_description, stem
from lpact.datasets._files.source_folder import SourceFolder, sha256
from lpact.datasets._files.strict import TextTable
from lpact.datasets._fmri_volumes import BoldHeader, BoldSeries, Parcels, Space, UnitFiles, read_bold_header
from lpact.datasets._folder_dataset import FolderDataset, check_known, first_file, read_json
from lpact.datasets.base import DatasetInfo, Findings, Recording, RecordingId, SourceFile, TimeSeries
from lpact.datasets.catalogue import optional
from lpact.errors import InputError, RecordingError
from lpact.registry import PluginOptions
from lpact.wording import listed

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

    atlas: str = ""
    """Label image (whole numbers, 0 outside): one unit per region, the mean of its voxels. A path from the dataset's
    folder, or an absolute one. With `mask` too: the atlas only names the region of each voxel.
    """
    atlas_labels: str = ""
    """Table with the columns `index` and `name` for the atlas (TSV, or CSV by its ending). Empty: regions are called
    `label-<index>`.
    """
    mask: str = ""
    """Mask image: one unit per voxel that is not 0."""
    resample_atlas: bool = False
    """Bring atlas and mask to the grid of each BOLD series by nearest neighbours. Otherwise another grid is an error.
    """
    tr_s: float | None = Field(None, gt=0)
    """Repetition time in seconds, where header and sidecar disagree or are wrong."""
    tr_reference: float = Field(0.0, ge=0, le=1)
    """Fraction of the repetition time to which a volume is assigned: 0 is the start of its acquisition, 0.5 the middle,
    to which fMRIPrep's slice-time correction refers.
    """
    subjects: tuple[str, ...] = ()
    """Subjects to read, without `sub-`. Empty: all."""
    sentence_pause_s: float = Field(0.5, gt=0)
    """Pause after which a sentence begins, where neither the source nor punctuation marks sentences."""


@dataclass(frozen=True)
class Scan:
    """The files of one recording."""

    bold: Path
    sidecars: tuple[Path, ...] = ()
    events: Path | None = None
    confounds: Path | None = None


def find_scan(folder: SourceFolder, bold: Path) -> Scan:
    """Find the side files of a BOLD file: its own, those of its raw file, and inherited ones."""
    found, raw = entities(bold), stem(bold, *RAW_KEYS)
    session = f"ses-{found['ses']}/" if "ses" in found else ""
    original = folder.root / f"sub-{found['sub']}/{session}func/{raw}_bold.nii.gz"
    sidecars = [find_sidecar(folder, path, "bold.json") for path in (bold, original)]
    home = folder.relative(bold.parent)
    return Scan(
        bold=bold,
        sidecars=tuple(dict.fromkeys(path for path in sidecars if path is not None)),
        events=find_sidecar(folder, original, "events.tsv"),
        confounds=first_file(folder, *(f"{home}/{raw}_{name}" for name in CONFOUNDS)),
    )


OptionsT = TypeVar("OptionsT", bound=FmriOptions)


class FmriDataset(FolderDataset[OptionsT, Scan]):
    """An opened dataset of functional MRI.

    ``published`` and ``published_tr_s`` are what is known apart from the files; what these state takes precedence.
    """

    published: ClassVar[DatasetInfo]
    published_tr_s: ClassVar[float | None] = None

    def _open(self) -> None:
        folder, options = self.folder, self.options
        self.info = read_description(folder, self.published)
        self._unit_files = UnitFiles(
            atlas=named_file(folder, options.atlas),
            labels=named_file(folder, options.atlas_labels),
            mask=named_file(folder, options.mask),
            resample=options.resample_atlas,
            dataset=folder.name,
        )
        self._parcels: list[tuple[Space, str, Parcels]] = []
        self._set_recordings(self._find_scans())

    @abstractmethod
    def _find_scans(self) -> list[tuple[RecordingId, Scan]]:
        """Find the recordings."""

    @abstractmethod
    def _stimulus_onset(self, scan: Scan, stimulus_id: str, findings: Findings) -> float:
        """Return when the stimulus begins, in seconds from the start of the first volume."""

    @abstractmethod
    def _stimulus_paths(self) -> Iterable[Path | None]:
        """Return the files that stimuli are read from."""

    def _recording(self, recording_id: RecordingId, files: Scan) -> Recording:
        header, findings = read_bold_header(files.bold), Findings(self.folder.where(files.bold))
        tr_s = self._repetition_time(header, files, findings)
        parcels = self._parcels_on(header.space, files.bold)
        onset_s = self._stimulus_onset(files, recording_id.stimulus, findings)
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
            where=findings.where,
            confounds=read_confounds(confounds, header.n_volumes) if confounds else None,
            findings=(*findings, *parcels.findings),
        )

    def _paths(self) -> list[Path | None]:
        scans = [
            path
            for scan in self.recordings.values()
            for path in (scan.bold, *scan.sidecars, scan.events, scan.confounds)
        ]
        units = [p for p in self._unit_files.paths() if p.is_relative_to(self.folder.root)]
        return [*scans, *self._stimulus_paths(), self.folder.optional(DESCRIPTION), *units]

    def source_files(self) -> list[SourceFile]:
        """Return every file that is read, with its checksum; an atlas from elsewhere by its name."""
        return super().source_files() + elsewhere(self.folder, self._unit_files.paths())

    def _bold_files(self, found: Sequence[Path]) -> list[Path]:
        """Return the files of the subjects that the option names."""
        subjects = {subject.removeprefix("sub-") for subject in self.options.subjects}
        have = [entities(path).get("sub", "") for path in found]
        check_known(sorted(subjects), have, option="subjects", folder=self.folder)
        pairs = zip(found, have, strict=True)
        return [path for path, subject in pairs if not subjects or subject in subjects]

    def _no_volumes(self, pattern: str, others: Sequence[Path], options: str) -> InputError:
        """Return the error for options that no BOLD file fits; ``others`` are files that do not fit."""
        home = self.folder.root / "derivatives"
        pipelines = sorted(path.name for path in home.iterdir()) if home.is_dir() else []
        names = listed([path.name for path in others])
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

    def _repetition_time(self, header: BoldHeader, scan: Scan, findings: Findings) -> float:
        """Return the repetition time on which header, sidecars and publication agree, or the option ``tr_s``."""
        stated: dict[str, object] = {} if header.tr_s is None else {"the NIfTI header": header.tr_s}
        for path in scan.sidecars:
            stated[path.name] = read_json(path).get("RepetitionTime")
        stated["the dataset's publication"] = self.published_tr_s
        stated = {source: value for source, value in stated.items() if value is not None}
        listed = ", ".join(
            f"{source}: {value:g} s" if _is_time(value) else f"{source}: {value!r}" for source, value in stated.items()
        )
        times = [value for value in stated.values() if _is_time(value)]
        tr_s = self.options.tr_s or (times[-1] if times else None)
        same = [_is_time(value) and math.isclose(value, tr_s or 0, rel_tol=SAME_TR) for value in stated.values()]
        if tr_s is None or (self.options.tr_s is None and not all(same)):
            raise RecordingError(
                "sources disagree about the repetition time" if times else "no file states the repetition time",
                where=str(scan.bold),
                got=listed or "none in the header, and no sidecar with RepetitionTime",
                expected="one repetition time, in seconds above 0",
                remedy="find out which one is right, and set the option tr_s to it",
            )
        if not all(same):
            expected = f"{tr_s:g} s, the value of the option tr_s"
            remedy = "check the option: its value is used"
            findings.note("tr_s", Reason.SIDECAR_DISAGREES, listed, expected, remedy)
        return tr_s


def _is_time(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def named_file(folder: SourceFolder, name: str) -> Path | None:
    """Return a file that an option names: from the dataset's folder, or absolute."""
    path = Path(name)
    if path.is_absolute() and path.is_file():
        return path
    return folder.file(name) if name else None


def elsewhere(folder: SourceFolder, paths: Iterable[Path]) -> list[SourceFile]:
    """Return the files that are outside of the dataset's folder, with their checksums."""
    return [
        SourceFile(f"elsewhere/{path.name}", path.stat().st_size, sha256(path), "", path)
        for path in sorted(set(paths))
        if not path.is_relative_to(folder.root)
    ]


def read_confounds(path: Path, n_volumes: int) -> pl.DataFrame:
    """Read fMRIPrep's confounds, [n_volumes, n_columns]; ``n/a`` (as in first rows of derivatives) is NaN."""
    table = TextTable(path, RecordingError)
    table.require_rows(n_volumes, "volume", "use the confounds of this run")
    columns = {column: table.numbers_or_nan(column) for column in table.columns}
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64))


class Event(NamedTuple):
    """One row of an events file: onset, ``trial_type`` and ``stim_file``."""

    onset_s: float
    kind: str
    stimulus: str


def read_events(path: Path) -> list[Event]:
    """Read the events of a run, in order of time."""
    table = TextTable(path, RecordingError)
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
