"""Which trials of the Brain Treebank a folder holds, and where their files lie."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import NAME_PATTERN, ErrorType, read_text
from lpact.datasets._finding import Finding
from lpact.errors import ConfigError, InputError, RecordingError, did_you_mean

H5_FOLDERS = ("", "all_subject_data/")
"""Where neural files lie: at the root as they are unpacked, or in a folder of their own."""

_TRIAL = re.compile(r"sub_([1-9][0-9]*)_trial([0-9]{3})\.h5")


@dataclass(frozen=True)
class Trial:
    """One film that one subject watched."""

    subject: str
    trial: str
    movie: str
    h5: Path
    metadata: Path

    @property
    def name(self) -> str:
        """Name as in the release, ``sub_1_trial000``."""
        return f"sub_{self.subject}_trial{self.trial}"


def read_json(path: Path, error: ErrorType) -> Any:
    """Return what a JSON file holds."""
    try:
        return json.loads(read_text(path, error))
    except (ValueError, RecursionError) as problem:
        # Numbers with thousands of digits are ValueErrors, thousands of brackets a RecursionError.
        line = f", line {problem.lineno}" if isinstance(problem, json.JSONDecodeError) else ""
        raise error(
            "a file is not valid JSON",
            where=f"{path}{line}",
            got=str(problem),
            expected="JSON",
            remedy="download the file again",
        ) from None


def without_neural_file(folder: SourceFolder) -> list[Finding]:
    """Trials with timings whose neural file is not there, as those that were never unpacked."""
    there = {path.stem for prefix in H5_FOLDERS for path in folder.glob(f"{prefix}sub_*.h5")}
    findings = []
    for timings in folder.glob("subject_timings/sub_*_timings.csv"):
        name = timings.stem.removesuffix("_timings")
        if name in there:
            continue
        zipped = [p for prefix in H5_FOLDERS for p in folder.glob(f"{prefix}{name}.h5.zip")]
        findings.append(
            Finding(
                field=name,
                reason=Reason.RECORDING_NOT_READ,
                severity="note",
                where=folder.where(timings),
                found=f"timings, and {zipped[0].name}, which is not unpacked"
                if zipped
                else f"timings, and no {name}.h5",
                expected=f"{name}.h5 beside them",
                remedy=f"unzip {folder.relative(zipped[0])}"
                if zipped
                else "download the trial, if the study is to have it",
            )
        )
    return findings


def find_trials(
    folder: SourceFolder, subjects: Sequence[str], trials: Sequence[str]
) -> list[Trial]:
    """Return the trials of the folder that a study asks for, by subject and number; none: all."""
    found: dict[str, Path] = {}
    for prefix in H5_FOLDERS:
        for path in folder.glob(f"{prefix}sub_*.h5"):
            if not _TRIAL.fullmatch(path.name):
                raise InputError(
                    "the name of a neural file is not as expected",
                    where=str(path),
                    got=path.name,
                    expected="sub_<subject>_trial<three digits>.h5, such as sub_1_trial000.h5",
                    remedy="give the file its name in the release, or move it out of the folder",
                )
            if path.stem in found:
                raise InputError(
                    f"the trial '{path.stem}' is there twice",
                    where=str(path),
                    got=f"also {found[path.stem]}",
                    expected="every trial once",
                    remedy="keep one of the two files",
                )
            found[path.stem] = path
    if not found:
        raise InputError(
            "the folder holds no neural files",
            where=str(folder.root),
            got="no sub_*_trial*.h5 at the root or in all_subject_data/",
            expected="sub_1_trial000.h5 and others",
            remedy="download and unpack the trials, and give the folder that holds them",
        )
    names = {name: _parts(name) for name in found}
    _check_asked("subjects", subjects, {subject for subject, _ in names.values()})
    _check_asked("trials", trials, names)
    wanted = [
        name
        for name, (subject, _) in names.items()
        if (not subjects or subject in subjects) and (not trials or name in trials)
    ]
    if not wanted:
        raise ConfigError(
            "the options 'subjects' and 'trials' leave no trial",
            where=f"dataset '{folder.name}'",
            got=f"subjects {list(subjects)}, trials {list(trials)}",
            expected="trials of the chosen subjects",
            remedy="leave out one of the two options",
        )
    wanted.sort(key=lambda name: (int(names[name][0]), names[name][1]))
    return [_trial(folder, name, found[name]) for name in wanted]


def _parts(name: str) -> tuple[str, str]:
    match = _TRIAL.fullmatch(f"{name}.h5")
    assert match is not None  # checked when the file was found
    return match[1], match[2]


def _check_asked(option: str, asked: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in asked:
        if name not in known:
            raise ConfigError(
                f"the folder has nothing for '{name}'",
                where=f"option '{option}'",
                got=name,
                expected=f"{option} of the folder",
                remedy=did_you_mean(name, known),
            )


def _trial(folder: SourceFolder, name: str, h5: Path) -> Trial:
    path = folder.file(f"subject_metadata/{name}_metadata.json", RecordingError)
    values = read_json(path, RecordingError)
    movie = values.get("filename") if isinstance(values, dict) else None
    if not isinstance(movie, str) or not NAME_PATTERN.fullmatch(movie):
        raise RecordingError(
            "a trial's metadata do not name its film",
            where=f"{path}, key 'filename'",
            got=reprlib.repr(movie),
            expected="the film's folder in transcripts/, such as 'the-martian'",
            remedy="download the metadata again",
        )
    subject, trial = _parts(name)
    return Trial(subject, trial, movie, h5, path)
