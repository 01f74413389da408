"""The recordings of a BIDS folder, and the files beside each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets.base import RecordingId
from lpact.errors import InputError, RecordingError
from lpact.extras import require

Datatype = Literal["meg", "eeg", "ieeg"]
NO_ENTITY = "1"
"""Session and run of recordings whose names have none."""

DATATYPES: tuple[Datatype, ...] = ("meg", "eeg", "ieeg")
OPENED = (".fif", ".vhdr", ".edf", ".bdf", ".set", ".con", ".sqd", ".ds", ".mff")
"""Endings of files and folders that are opened; what lies beside them belongs to them."""

_Text = TypeVar("_Text", bound=str)


@dataclass(frozen=True)
class Filters:
    """Which recordings are meant; empty means any, and for datatype and task the only one there."""

    datatype: Datatype | Literal[""]
    task: str
    subjects: tuple[str, ...]
    sessions: tuple[str, ...]
    runs: tuple[str, ...]
    acquisition: str
    processing: str
    description: str
    derivative: str


@dataclass(frozen=True)
class BidsFiles:
    """One recording: its BIDS path (of MNE-BIDS), the file that is opened, and its sidecars."""

    entities: Any
    path: Path
    channels: Path | None
    events: Path | None
    sidecar: Path | None

    @property
    def session(self) -> str:
        """Session, as it stands in tables."""
        return self.entities.session or NO_ENTITY

    @property
    def run(self) -> str:
        """Run, as it stands in tables."""
        return self.entities.run or NO_ENTITY

    def id(self, stimulus: str) -> RecordingId:
        """Return the id of the recording of a stimulus."""
        return RecordingId(self.entities.subject, self.session, self.run, stimulus)

    def sidecars(self) -> list[Path]:
        """Return the small files that are read beside the recording."""
        return [path for path in (self.channels, self.events, self.sidecar) if path is not None]

    def by_name(self, folder: SourceFolder) -> list[Path]:
        """Return what belongs to a recording by its name, for one that cannot be opened."""
        if self.path.is_dir():
            found = [path for path in self.path.rglob("*") if not path.is_dir()]
        else:
            stem = self.path.name.removesuffix("".join(self.path.suffixes))
            found = [path for path in self.path.parent.glob(f"{stem}.*") if not path.is_dir()]
            found += self.path.parent.glob(f"{stem.replace('_split-01', '_split-*')}*.fif")
        return [folder.file(folder.relative(path), RecordingError) for path in sorted(set(found))]


def find_recordings(folder: SourceFolder, filters: Filters) -> list[BidsFiles]:
    """Return the recordings that the filters name, sorted; two files for one recording are an error."""
    mne_bids = require("mne_bids", extra="meeg")
    root = folder.root / filters.derivative if filters.derivative else folder.root
    if not root.is_dir():
        raise InputError(
            "the folder of the derivative is not there",
            where=f"{root}, option 'derivative'",
            got="no such folder",
            expected="a folder below the dataset's",
            remedy="fix the option, or leave it out to read the raw recordings",
        )
    filters = _resolved(root, filters)
    matches = mne_bids.find_matching_paths(
        root,
        subjects=list(filters.subjects) or None,
        sessions=list(filters.sessions) or None,
        runs=list(filters.runs) or None,
        tasks=filters.task,
        acquisitions=filters.acquisition or None,
        processings=filters.processing or None,
        descriptions=filters.description or None,
        suffixes=filters.datatype,
        datatypes=filters.datatype,
        ignore_nosub=True,
        ignore_json=True,
    )
    chosen: dict[tuple[str, str, str], BidsFiles] = {}
    for match in sorted(matches, key=lambda match: str(match.fpath)):
        if not _is_recording(match, folder, filters):
            continue
        found = _with_sidecars(folder, match)
        key = (match.subject, found.session, found.run)
        if key in chosen:
            raise _twice(chosen[key].path, found.path)
        chosen[key] = found
    if not chosen:
        raise InputError(
            "the folder holds no such recording",
            where=str(root),
            got=f"nothing like {_pattern(filters)}",
            expected=f"recordings of datatype '{filters.datatype}' and task '{filters.task}'",
            remedy="check the options datatype, task, subjects, sessions, runs and derivative; "
            + _tasks_here(root, filters.datatype),
        )
    return [chosen[key] for key in sorted(chosen)]


def _resolved(root: Path, filters: Filters) -> Filters:
    """Return the filters with datatype and task: as given, or the only ones there."""
    names = [
        (kind, path.name)
        for kind in DATATYPES
        for path in root.glob(f"sub-*/**/{kind}/*_{kind}.*")
        if path.suffix in OPENED
    ]
    datatype = filters.datatype or _only("datatype", sorted({kind for kind, _ in names}), root)
    here = [name for kind, name in names if kind == datatype]
    tasks = sorted({part[5:] for name in here for part in name.split("_") if part[:5] == "task-"})
    task = filters.task or _only("task", tasks, root)
    return replace(filters, datatype=datatype, task=task)


def _only(option: str, found: Sequence[_Text], root: Path) -> _Text:
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"it must be said which {option} is meant" if found else "the folder holds no recording",
        where=f"{root}, option '{option}'",
        got=", ".join(found) or "no MEG, EEG or iEEG file of a kind that is known",
        expected=f"one {option}, or the option '{option}'",
        remedy=f"give the option '{option}'" if found else "check the folder, and the derivative",
    )


def _is_recording(match: Any, folder: SourceFolder, filters: Filters) -> bool:
    path = Path(match.fpath)
    raw_root = not filters.derivative
    inside = path.is_relative_to(folder.root / "derivatives") and raw_root
    other = raw_root and (match.description is not None and not filters.description)
    split = match.split not in (None, "01")
    return path.suffix in OPENED and not (inside or other or split)


def _with_sidecars(folder: SourceFolder, match: Any) -> BidsFiles:
    path = folder.file(Path(match.fpath).relative_to(folder.root).as_posix(), RecordingError)
    return BidsFiles(
        match,
        path,
        channels=sidecar_of(folder, match, "channels", ".tsv"),
        events=sidecar_of(folder, match, "events", ".tsv"),
        sidecar=sidecar_of(folder, match, match.datatype, ".json"),
    )


def sidecar_of(folder: SourceFolder, match: Any, suffix: str, extension: str) -> Path | None:
    """Return a recording's sidecar by the inheritance of BIDS: its own, or one further up.

    A derivative that has none takes the one of the raw recording.
    """
    found = _sidecar(match, suffix, extension)
    if found is None and Path(match.root) != folder.root:
        raw = match.copy().update(
            root=folder.root, description=None, processing=None, check=False, split=None
        )
        found = _sidecar(raw, suffix, extension)
    if found is None:
        return None
    return folder.file(Path(found).relative_to(folder.root).as_posix(), RecordingError)


def _sidecar(match: Any, suffix: str, extension: str) -> Path | None:
    plain = match.copy().update(split=None, check=False)
    try:
        found = plain.find_matching_sidecar(suffix=suffix, extension=extension, on_error="ignore")
    except RuntimeError as problem:
        raise RecordingError(
            f"it is not clear which {suffix}{extension} belongs to a recording",
            where=str(match.fpath),
            got=" ".join(str(problem).split())[:300],
            expected="one that fits best",
            remedy="rename or remove the others",
        ) from None
    return None if found is None else Path(found)


def _twice(first: Path, second: Path) -> RecordingError:
    return RecordingError(
        "two files are the same recording",
        where=str(second),
        got=f"{first.name} and {second.name} have the same subject, session and run",
        expected="one file for every subject, session and run",
        remedy="choose one with the options acquisition, processing or description, or remove the duplicate",
    )


def _pattern(filters: Filters) -> str:
    parts = [
        f"sub-{'|'.join(filters.subjects) or '*'}",
        f"ses-{'|'.join(filters.sessions)}" if filters.sessions else "",
        f"task-{filters.task}",
        f"acq-{filters.acquisition}" if filters.acquisition else "",
        f"run-{'|'.join(filters.runs)}" if filters.runs else "",
        f"proc-{filters.processing}" if filters.processing else "",
        f"desc-{filters.description}" if filters.description else "",
        f"{filters.datatype}.*",
    ]
    return "_".join(part for part in parts if part)


def _tasks_here(root: Path, datatype: str) -> str:
    names = [path.name for path in root.glob(f"sub-*/**/*_{datatype}.*")]
    tasks = sorted({part for name in names for part in name.split("_") if part[:5] == "task-"})
    return f"in the folder: {_listed(tasks)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) or "no recording of that datatype"
