"""Files of a MEG-MASC folder, and notes on what in them is not as expected."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets.base import RecordingId
from lpact.datasets.meg_masc.events import RecordingEvents, first_story
from lpact.datasets.validate import check_recording_ids
from lpact.errors import InputError, RecordingError, did_you_mean

MEG_FOLDERS = "sub-*/ses-*/meg/"
_FILE = re.compile(
    r"sub-(?P<sub>[A-Za-z0-9]+)_ses-(?P<ses>[A-Za-z0-9]+)_task-(?P<task>[A-Za-z0-9]+)"
    r"_(?:meg\.con|events\.tsv)"
)


@dataclass(frozen=True)
class RecordingFiles:
    """Common beginning of a recording's file names, from the dataset's folder."""

    stem: str

    @property
    def con(self) -> str:
        """The recording."""
        return f"{self.stem}_meg.con"

    @property
    def events(self) -> str:
        """Its events."""
        return f"{self.stem}_events.tsv"

    @property
    def sidecar(self) -> str:
        """Its JSON sidecar."""
        return f"{self.stem}_meg.json"

    @property
    def channels(self) -> str:
        """Its table of channels."""
        return f"{self.stem}_channels.tsv"


def find_recordings(
    folder: SourceFolder, subjects: Sequence[str]
) -> dict[RecordingId, RecordingFiles]:
    """Return the files of every recording by its id; ``subjects`` are those to read, none: all."""
    stems: dict[tuple[str, str, str], RecordingFiles] = {}
    for pattern in ("*_meg.con", "*_events.tsv"):
        for path in folder.glob(MEG_FOLDERS + pattern, RecordingError):
            relative = folder.relative(path)
            match = _FILE.fullmatch(path.name)
            parent = f"sub-{match['sub']}/ses-{match['ses']}/meg" if match else ""
            if match is None or relative != f"{parent}/{path.name}":
                raise InputError(
                    "a file's name does not fit the layout",
                    where=str(path),
                    got=relative,
                    expected="sub-X/ses-Y/meg/sub-X_ses-Y_task-Z_meg.con, or …_events.tsv",
                    remedy="rename or remove the file",
                )
            subject, session, task = match["sub"], match["ses"], match["task"]
            stem = f"{parent}/sub-{subject}_ses-{session}_task-{task}"
            if not subjects or subject in subjects:
                stems[subject, session, task] = RecordingFiles(stem)
    found = {subject for subject, _, _ in stems}
    for subject in subjects:
        if subject not in found:
            raise InputError(
                f"the subject '{subject}' is not in the folder",
                where=f"dataset '{folder.name}', option 'subjects'",
                got=subject,
                expected="subjects that have a folder sub-<name> with recordings",
                remedy=did_you_mean(
                    subject, [p.name.removeprefix("sub-") for p in folder.glob("sub-*")]
                ),
            )
    if not stems:
        raise InputError(
            "the folder holds no recordings",
            where=str(folder.root),
            got="no sub-*/ses-*/meg/*_meg.con",
            expected="the folders sub-01, sub-02 … of MEG-MASC",
            remedy="give the folder that holds participants.tsv and sub-*",
        )
    ids = {
        RecordingId(*names, first_story(folder.file(files.events, RecordingError))): files
        for names, files in stems.items()
    }
    check_recording_ids(ids, where=str(folder.root))
    return ids


def spelling_notes(story: str, known: Mapping[str, RecordingEvents], where: str) -> list[Finding]:
    """Return a note where a story is not written in lower case."""
    written = sorted({events.spelling for events in known.values()} - {story})
    if not written:
        return []
    return [
        Finding(
            field="story",
            reason=Reason.SOURCE_ROWS_MENDED,
            severity="note",
            where=where,
            found=f"the story is written {', '.join(repr(name) for name in written)}",
            expected=f"'{story}'",
            remedy="none is needed: names of stories are compared in lower case",
        )
    ]


def unread_note(recording_id: RecordingId, problem: InputError, where: str) -> Finding:
    """Return a note on a recording whose events cannot be read."""
    return Finding(
        field=str(recording_id),
        reason=Reason.RECORDING_NOT_READ,
        severity="note",
        where=where,
        found=f"its events do not count for the words of the story: {problem.what}",
        expected="events that can be read",
        remedy="fix the file",
    )


def unknown_channels_note(names: list[str], where: str) -> Finding:
    """Return a note on bad channels that the recording does not have."""
    return Finding(
        field="channels.tsv",
        reason=Reason.SIDECAR_DISAGREES,
        severity="note",
        where=where,
        found=f"{len(names)} channel(s) that the recording does not have are marked as bad: {', '.join(names[:8])}",
        expected="names of the recording's channels",
        remedy="check the names; channels under other names are kept",
    )
