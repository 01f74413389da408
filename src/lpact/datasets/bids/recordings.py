"""The MEG, EEG and iEEG recordings of a BIDS folder: files, channels, places and marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._bids import Places, read_electrodes, shown
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import note, read_json
from lpact.datasets._mne import OpenRecording, open_recording, sample_mismatch
from lpact.datasets.bids.events import Events, read_events
from lpact.errors import InputError, RecordingError
from lpact.extras import require
from lpact.registry import PluginOptions

NEURAL = {"meg": ("mag", "grad"), "eeg": ("eeg",), "ieeg": ("ecog", "seeg", "dbs")}
"""Datatypes, and the types of their channels that are units."""

OPENED = (".fif", ".vhdr", ".edf", ".bdf", ".set", ".con", ".sqd", ".ds", ".mff")
"""Endings of files and folders that are opened; files beside them may belong to them."""

_DURATION_NOTE_S = 1.0


class RecordingOptions(PluginOptions):
    """Options that choose recordings and channels."""

    datatype: Literal["", "meg", "eeg", "ieeg"] = Field(
        "", description="Kind of recordings; empty if the dataset has only one."
    )
    task: str = Field(
        "",
        description="Task of the recordings (`task-<label>`), without `task-`; empty if the dataset has only one.",
    )
    subjects: tuple[str, ...] = Field((), description="Subjects that are read; empty for all.")
    sessions: tuple[str, ...] = Field((), description="Sessions that are read; empty for all.")
    runs: tuple[str, ...] = Field((), description="Runs that are read; empty for all.")
    acquisition: str = Field("", description="Only recordings with this `acq-<label>`.")
    processing: str = Field("", description="Only recordings with this `proc-<label>`.")
    description: str = Field("", description="Only recordings with this `desc-<label>`.")
    derivative: str = Field(
        "", description="Folder of a derivative below the dataset's, such as `derivatives/prep`."
    )
    channel_types: tuple[Literal["mag", "grad", "eeg", "ecog", "seeg", "dbs"], ...] = Field(
        (), description="Types of channels that are units; empty for all neural ones of the kind."
    )
    space: str = Field("", description="Space of the electrode positions (`space-<label>`).")
    region_column: str = Field(
        "", description="Column of electrodes.tsv with the region; empty to take a known one."
    )


@dataclass(frozen=True)
class BidsFiles:
    """One recording: its BIDS path (of MNE-BIDS), the file that is opened, and its sidecars."""

    entities: Any
    path: Path
    channels: Path | None
    events: Path | None
    sidecar: Path | None

    @property
    def labels(self) -> dict[str, str]:
        """Subject, session, run and task; ``1`` where a name has no session or run."""
        e = self.entities
        return {
            "subject": e.subject,
            "session": e.session or "1",
            "run": e.run or "1",
            "task": e.task,
        }


def find_recordings(folder: SourceFolder, options: RecordingOptions) -> list[BidsFiles]:
    """Return the recordings that the options choose, sorted; two files for one recording are an error."""
    root = folder.root / options.derivative
    if not root.is_dir():
        raise InputError(
            "the folder of the derivative does not exist",
            where=f"{root}, option 'derivative'",
            got="no such folder",
            expected="a folder below the dataset's",
            remedy="fix the option, or leave it out to read the raw recordings",
        )
    names = [
        (kind, path.name)
        for kind in NEURAL
        for path in sorted(root.glob(f"sub-*/**/{kind}/*_{kind}.*"))
        if path.suffix in OPENED
    ]
    datatype = options.datatype or _only("datatype", {kind for kind, _ in names}, root)
    parts = [part for kind, name in names if kind == datatype for part in name.split("_")]
    tasks = {part[5:] for part in parts if part.startswith("task-")}
    task = options.task or _only("task", tasks, root)
    matches = require("mne_bids", extra="meeg").find_matching_paths(
        root,
        subjects=list(options.subjects) or None,
        sessions=list(options.sessions) or None,
        runs=list(options.runs) or None,
        tasks=task,
        acquisitions=options.acquisition or None,
        processings=options.processing or None,
        descriptions=options.description or None,
        suffixes=datatype,
        datatypes=datatype,
        ignore_nosub=True,
        ignore_json=True,
    )
    chosen: dict[tuple[str, ...], BidsFiles] = {}
    for match in sorted(matches, key=lambda match: str(match.fpath)):
        if not _is_recording(match, folder, options):
            continue
        found = BidsFiles(
            match,
            folder.file(Path(match.fpath).relative_to(folder.root).as_posix(), RecordingError),
            channels=sidecar_of(folder, match, "channels", ".tsv"),
            events=sidecar_of(folder, match, "events", ".tsv"),
            sidecar=sidecar_of(folder, match, match.datatype, ".json"),
        )
        key = tuple(found.labels.values())
        if key in chosen:
            raise RecordingError(
                "two files are the same recording",
                where=str(found.path),
                got=f"{chosen[key].path.name} and {found.path.name} have the same subject, session and run",
                expected="one file for every subject, session and run",
                remedy="choose one with the options acquisition, processing or description, or remove the duplicate",
            )
        chosen[key] = found
    if not chosen:
        raise InputError(
            "the folder holds no such recording",
            where=str(root),
            got=f"{len(names)} recording(s): {shown([name for _, name in names])}",
            expected=f"recordings of datatype '{datatype}' and task '{task}'",
            remedy="check the options datatype, task, subjects, sessions, runs and derivative",
        )
    return [chosen[key] for key in sorted(chosen)]


def _only(option: str, found: set[str], root: Path) -> str:
    if len(found) == 1:
        return next(iter(found))
    raise InputError(
        f"it is not clear which {option} is meant" if found else "the folder holds no recording",
        where=f"{root}, option '{option}'",
        got=", ".join(sorted(found)) or "no MEG, EEG or iEEG file of a known kind",
        expected=f"one {option}, or the option '{option}'",
        remedy=f"give the option '{option}'" if found else "check the folder, and the derivative",
    )


def _is_recording(match: Any, folder: SourceFolder, options: RecordingOptions) -> bool:
    path = Path(match.fpath)
    if path.suffix not in OPENED or match.split not in (None, "01"):
        return False
    derived = path.is_relative_to(folder.root / "derivatives") or (
        match.description is not None and not options.description
    )
    return bool(options.derivative) or not derived


def sidecar_of(folder: SourceFolder, match: Any, suffix: str, extension: str) -> Path | None:
    """Return a recording's sidecar by the inheritance of BIDS: its own, or one further up.

    A derivative that has none takes the one of the raw recording.
    """
    raw = {"root": folder.root, "description": None, "processing": None}
    for changes in ({}, raw):
        plain = match.copy().update(split=None, check=False, **changes)
        try:
            found = plain.find_matching_sidecar(
                suffix=suffix, extension=extension, on_error="ignore"
            )
        except RuntimeError as problem:
            raise RecordingError(
                f"it is not clear which {suffix}{extension} belongs to a recording",
                where=str(match.fpath),
                got=" ".join(str(problem).split())[:300],
                expected="one that fits best",
                remedy="rename or remove the others",
            ) from None
        if found is not None:
            return folder.file(Path(found).relative_to(folder.root).as_posix(), RecordingError)
    return None


def open_bids_recording(
    folder: SourceFolder, files: BidsFiles, options: RecordingOptions
) -> OpenRecording:
    """Open a recording without reading its values."""
    datatype = files.entities.datatype
    found = open_recording(
        folder,
        files.path,
        wanted=tuple(options.channel_types) or NEURAL[datatype],
        comparable=datatype != "ieeg",
        sidecar=files.sidecar,
        channels=files.channels,
        places=lambda own, ids: _places(folder, files, options, own, ids),
    )
    rate_hz = found.signal.sampling_rate_hz
    findings = _duration_note(found.signal.n_samples / rate_hz, files.sidecar, folder)
    spans = set(found.bad_spans)
    if files.events is not None:
        events = read_events(files.events)
        spans |= set(events.bad_spans())
        findings += _sample_notes(folder, files, events, rate_hz, int(found.raw.first_samp))
    return replace(
        found,
        bad_spans=tuple(sorted(spans, key=lambda span: (span.start_s, span.stop_s, span.label))),
        findings=(*found.findings, *findings),
    )


def _sample_notes(
    folder: SourceFolder, files: BidsFiles, events: Events, rate_hz: float, first_sample: int
) -> list[Finding]:
    """Compare the columns ``onset`` and ``sample`` of the events, if both exist.

    Two clocks that disagree are an error: one of them puts the words at wrong samples. A note is enough where samples
    are numbered as the file numbers them, from its first one on, and where a derivative has the events of its raw
    recording, whose samples are not its own: ``onset`` counts then.
    """
    if "sample" not in events.table.columns:
        return []
    mismatch = sample_mismatch(events.onset_s, events.table.numbers_or_nan("sample"), rate_hz)
    if mismatch is None:
        return []
    shifted_by = np.abs(mismatch.apart[np.isfinite(mismatch.apart)] + first_sample)
    renumbered = first_sample != 0 and bool((shifted_by <= mismatch.within).all())
    if events.path.is_relative_to(Path(files.entities.root)) and not renumbered:
        raise RecordingError(
            "the columns 'onset' and 'sample' of the events disagree",
            where=f"{events.path}, line {mismatch.rows[0] + 2}",
            got=mismatch.found,
            expected=mismatch.expected,
            remedy="find out which is right; fix the other, or remove the column 'sample'",
        )
    why = (
        f"numbered from {first_sample} as in the file"
        if renumbered
        else "those of the raw recording"
    )
    return [
        note(
            "sample",
            Reason.SIDECAR_DISAGREES,
            folder.where(events.path),
            mismatch.found,
            mismatch.expected,
            f"none is needed: the samples are {why}, and 'onset' counts",
        )
    ]


def _duration_note(length_s: float, sidecar: Path | None, folder: SourceFolder) -> list[Finding]:
    stated = None if sidecar is None else read_json(sidecar).get("RecordingDuration")
    number = isinstance(stated, int | float)
    if sidecar is None or not number or math.isclose(stated, length_s, abs_tol=_DURATION_NOTE_S):  # type: ignore[arg-type]
        return []
    return [
        note(
            "RecordingDuration",
            Reason.SIDECAR_DISAGREES,
            folder.where(sidecar),
            f"{stated:g} s in the sidecar, {length_s:g} s in the file",
            f"the same length, within {_DURATION_NOTE_S:g} s",
            "check that the file is complete; words after its end are left out",
        )
    ]


def _places(
    folder: SourceFolder,
    files: BidsFiles,
    options: RecordingOptions,
    own: Places,
    ids: Sequence[str],
) -> Places:
    """Return the places of the units: from electrodes.tsv, or else those in the file."""
    path = _electrodes_file(folder, files, options.space)
    if path is None:
        return own
    system = coordinate_system_file(folder, path)
    values = {} if system is None else read_json(system)
    units = [str(v) for k, v in values.items() if k.endswith("CoordinateUnits")]
    frames = [str(v) for k, v in values.items() if k.endswith("CoordinateSystem")]
    return read_electrodes(
        path,
        ids,
        unit=units[0] if units else "n/a",
        frame=frames[0] if frames else "",
        region_column=options.region_column,
        where=folder.where(path),
    )


def _electrodes_file(folder: SourceFolder, files: BidsFiles, space: str) -> Path | None:
    """Return the electrode table: the one of ``space``, or the only one."""
    entities = files.entities
    found = [
        path
        for path in electrode_tables(folder, entities.subject)
        if (not entities.session or f"ses-{entities.session}" in path.parts)
        and (not space or f"_space-{space}_" in path.name)
    ]
    found = [path for path in found if f"_run-{entities.run}_" in path.name] or found
    if not found:
        changes = {"space": space or None, "acquisition": None, "run": None, "check": False}
        return sidecar_of(folder, entities.copy().update(**changes), "electrodes", ".tsv")
    if len(found) > 1:
        raise RecordingError(
            "there are several electrode tables for a recording",
            where=str(files.path),
            got=", ".join(path.name for path in found),
            expected="one, or one of the chosen space",
            remedy="choose with the option 'space'",
        )
    return found[0]


def electrode_tables(folder: SourceFolder, subject: str) -> list[Path]:
    """Return every electrode table of a subject."""
    return folder.glob(f"sub-{subject}/**/sub-{subject}_*electrodes.tsv", RecordingError)


def coordinate_system_file(folder: SourceFolder, electrodes: Path) -> Path | None:
    """Return the coordsystem.json beside an electrode table, if it exists."""
    name = electrodes.name.removesuffix("electrodes.tsv") + "coordsystem.json"
    return folder.optional(folder.relative(electrodes.with_name(name)), RecordingError)
