"""What readers of functional MRI share: options, the way from a BOLD file to a recording, provenance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from pydantic import Field

from lpact.datasets._files.source_folder import SourceFolder, sha256
from lpact.datasets._finding import Finding
from lpact.datasets._fmri.bids import entities, read_confounds, repetition_time
from lpact.datasets._fmri.nifti import BoldSeries, Space, read_bold_header
from lpact.datasets._fmri.units import Parcels, Sources, make_parcels
from lpact.datasets.base import (
    Dataset,
    DatasetInfo,
    Recording,
    RecordingId,
    SourceFile,
    TimeSeries,
)
from lpact.datasets.bids.sidecars import check_participants, read_description
from lpact.datasets.catalogue import Expected
from lpact.datasets.validate import check_recording_ids
from lpact.errors import InputError, RecordingError, StimulusError, did_you_mean
from lpact.registry import PluginOptions


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
        description="Pause after which a sentence begins, where neither the source nor punctuation tells sentences.",
    )


ABOUT = (
    Expected("description", ("dataset_description.json",), needed=False),
    Expected("participants", ("participants.tsv",), needed=False),
)
"""Parts of the layout that every BIDS dataset may have: licence and version, and the list of subjects."""


@dataclass(frozen=True)
class Scan:
    """The files of one recording."""

    bold: Path
    sidecars: tuple[Path, ...] = ()
    events: Path | None = None
    confounds: Path | None = None
    findings: tuple[Finding, ...] = field(default=())

    def paths(self) -> list[Path]:
        """Return every file that is read for it."""
        return [
            p for p in (self.bold, *self.sidecars, self.events, self.confounds) if p is not None
        ]


OptionsT = TypeVar("OptionsT", bound=FmriOptions)


class FmriDataset(Dataset, Generic[OptionsT]):
    """An opened dataset of functional MRI.

    ``published`` and ``published_tr_s`` are what is known of it beside its files; what these state counts.
    ``findings`` tell which recordings of the folder are not read, and why.
    """

    published: ClassVar[DatasetInfo]
    published_tr_s: ClassVar[float | None] = None

    def __init__(
        self,
        folder: SourceFolder,
        options: OptionsT,
        scans: Sequence[tuple[RecordingId, Scan]],
        findings: Sequence[Finding] = (),
    ) -> None:
        check_recording_ids([key for key, _ in scans], where=_clashing(scans, folder))
        self._folder = folder
        self._options = options
        self._scans: Mapping[RecordingId, Scan] = dict(scans)
        self._sources = Sources(
            atlas=named_file(folder, options.atlas, "atlas"),
            labels=named_file(folder, options.atlas_labels, "atlas_labels"),
            mask=named_file(folder, options.mask, "mask"),
            resample=options.resample_atlas,
            dataset=folder.name,
        )
        self._parcels: list[tuple[Space, str, Parcels]] = []
        self._participants = check_participants(folder)
        self.info = read_description(folder, self.published)
        self.findings = tuple(findings)

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self._scans)

    @abstractmethod
    def stimulus_onset_s(self, recording_id: RecordingId, scan: Scan) -> float:
        """Return when the stimulus begins, in seconds from the start of the first volume."""

    def onset_findings(self, scan: Scan) -> tuple[Finding, ...]:  # noqa: ARG002
        """Return what is doubtful about when the stimulus begins."""
        return ()

    @abstractmethod
    def stimulus_paths(self) -> Iterable[Path]:
        """Return the files that stimuli are read from, those that are there."""

    def recording(self, recording_id: RecordingId) -> Recording:
        """Read the header of one recording, its atlas and its side files; volumes are read when asked for."""
        if recording_id not in self._scans:
            raise RecordingError(
                "the dataset has no such recording",
                where=f"dataset '{self._folder.name}', {self._folder.root}",
                got=f"{recording_id} with stimulus '{recording_id.stimulus}'",
                expected="one of recording_ids()",
                remedy=did_you_mean(str(recording_id), [str(known) for known in self._scans]),
            )
        scan = self._scans[recording_id]
        header = read_bold_header(scan.bold)
        time = repetition_time(
            header.tr_s,
            scan.sidecars,
            bold=scan.bold,
            folder=self._folder,
            published_s=self.published_tr_s,
            override_s=self._options.tr_s,
        )
        parcels = self._parcels_on(header.space, scan.bold)
        onset_s = self.stimulus_onset_s(recording_id, scan)
        series = BoldSeries(scan.bold, header, parcels.voxels, parcels.unit, len(parcels.units.ids))
        return Recording(
            id=recording_id,
            signal=TimeSeries(
                values=series,
                sampling_rate_hz=1.0 / time.tr_s,
                start_s=self._options.tr_reference * time.tr_s - onset_s,
                physical_unit="a.u.",
            ),
            units=parcels.units,
            where=self._folder.where(scan.bold),
            confounds=None
            if scan.confounds is None
            else read_confounds(scan.confounds, header.n_volumes),
            findings=(
                *scan.findings,
                *time.findings,
                *self.onset_findings(scan),
                *parcels.findings,
            ),
        )

    def source_files(self) -> list[SourceFile]:
        """Return every file that is or would be read, with its checksum; an atlas from elsewhere by its name."""
        paths = [path for scan in self._scans.values() for path in scan.paths()]
        paths += self.stimulus_paths()
        paths += [] if self._participants is None else [self._participants]
        description = self._folder.optional("dataset_description.json")
        paths += [] if description is None else [description]
        named = self._sources.paths()
        inside = [path for path in named if path.is_relative_to(self._folder.root)]
        found = self._folder.source_files(paths + inside, self.info.licence)
        elsewhere = [
            SourceFile(f"elsewhere/{path.name}", path.stat().st_size, sha256(path), "", path)
            for path in sorted(set(named) - set(inside))
        ]
        return found + elsewhere

    def _parcels_on(self, space: Space, bold: Path) -> Parcels:
        frame = entities(bold).get("space", "")
        for known, known_frame, parcels in self._parcels:
            if known.same(space) and known_frame == frame:
                return parcels
        parcels = make_parcels(self._sources, space, bold, frame)
        self._parcels.append((space, frame, parcels))
        return parcels


def named_file(folder: SourceFolder, name: str, option: str) -> Path | None:
    """Return a file that an option names: from the dataset's folder, or absolute."""
    if not name:
        return None
    if not Path(name).is_absolute():
        return folder.file(name)
    if Path(name).is_file():
        return Path(name)
    raise InputError(
        f"there is no such file: the option '{option}'",
        where=f"dataset '{folder.name}', option '{option}'",
        got=name,
        expected="a file",
        remedy="fix the path; one that is not absolute starts at the dataset's folder",
    )


def selected(found: Iterable[Path], subjects: Sequence[str], folder: SourceFolder) -> list[Path]:
    """Return the files of the wanted subjects; a subject without any is named."""
    paths = list(found)
    have = {entities(path).get("sub", "") for path in paths}
    wanted = {subject.removeprefix("sub-") for subject in subjects}
    for subject in sorted(wanted - have):
        raise InputError(
            f"there is no BOLD file of the subject '{subject}'",
            where=f"dataset '{folder.name}', option 'subjects'",
            got=f"{len(have)} other subject(s) in {folder.root}",
            expected="subjects of the folder",
            remedy=did_you_mean(subject, have),
        )
    return [path for path in paths if not wanted or entities(path)["sub"] in wanted]


def no_such_stimulus(folder: SourceFolder, stimulus_id: str, known: Iterable[str]) -> StimulusError:
    """Return the error of a stimulus that no recording has."""
    return StimulusError(
        "the dataset has no such stimulus",
        where=f"dataset '{folder.name}', {folder.root}",
        got=stimulus_id,
        expected="a stimulus of one of the recordings",
        remedy=did_you_mean(stimulus_id, known),
    )


def _clashing(scans: Sequence[tuple[RecordingId, Scan]], folder: SourceFolder) -> str:
    names = [str(key) for key, _ in scans]
    twice = [folder.relative(scan.bold) for key, scan in scans if names.count(str(key)) > 1]
    return f"{folder.root}: {', '.join(twice[:4])}" if twice else str(folder.root)
