"""Reader of any BIDS dataset of functional MRI with words: volumes by an atlas or mask, fMRIPrep's confounds.

::

    [sub-<s>/[ses-<v>/]func/…_events.tsv]           where an event starts the stimulus, or words are events
    <words table>                                   word, onset, offset; the option `words` names it
    <derivatives>/sub-<s>/[ses-<v>/]func/
        sub-<s>[_ses-<v>]_task-<t>[_run-<r>]…_space-<space>…_desc-<desc>_bold.nii[.gz]
        sub-<s>[_ses-<v>]_task-<t>[_run-<r>]…_desc-confounds_timeseries.tsv

A words table is on the stimulus' own clock, so that everybody who heard it shares one stimulus; `start_event` says
which event of a run is its zero. Words that are rows of the events make one stimulus a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets._fmri.bids import CONFOUNDS, entities, read_events, stem
from lpact.datasets._fmri.dataset import (
    ABOUT,
    FmriDataset,
    FmriOptions,
    Scan,
    no_such_stimulus,
    selected,
)
from lpact.datasets.base import (
    AbsentMedium,
    DatasetInfo,
    DatasetReader,
    RecordingId,
    Stimulus,
)
from lpact.datasets.bids_fmri.words import read_word_events, read_words_table
from lpact.datasets.catalogue import Expected
from lpact.datasets.validate import check_stimulus
from lpact.errors import ConfigError, InputError, RecordingError, StimulusError, did_you_mean

RAW_KEYS = ("sub", "ses", "task", "acq", "ce", "rec", "dir", "run", "echo")
EVENTS = "events"


class BidsFmriOptions(FmriOptions):
    """Options of the reader."""

    task: str = Field(
        "", description="Task to read, as in `task-`. Empty: the only one that is there."
    )
    derivatives: str = Field(
        "derivatives/fmriprep",
        description="Folder of the volumes, from the dataset's folder. Empty: the dataset's folder itself.",
    )
    space: str = Field("", description="Value of `space-` in file names. Empty: any, but only one.")
    res: str = Field("", description="Value of `res-` in file names. Empty: any.")
    desc: str = Field("preproc", description="Value of `desc-` in file names. Empty: none.")
    words: str = Field(
        "",
        description="Table of words (TSV, or CSV by its ending) with `word`, `onset` and `offset` or `duration` in "
        "seconds on the stimulus' clock. `{subject}`, `{session}`, `{task}` and `{run}` stand for those of a "
        "recording; recordings with the same table share a stimulus. `events`: words are rows of the events files.",
    )
    audio: str = Field(
        "",
        description="Sound file of a stimulus, on the words' clock; place-holders as in `words`. Empty: none.",
    )
    start_event: str = Field(
        "",
        description="`trial_type` of the event with which the stimulus begins, the first such in a run. Empty: it "
        "begins `stimulus_onset_s` after the first volume.",
    )
    stimulus_onset_s: float | None = Field(
        None,
        description="Seconds from the first volume to the stimulus, where no event says so. Not for words from events. "
        "Not given: 0, with a note where a run has events.",
    )
    word_event: str = Field(
        "word", description="`trial_type` of words among the events, with `words` = `events`."
    )
    word_column: str = Field("word", description="Column of the events that holds the words.")


class BidsFmriDataset(FmriDataset[BidsFmriOptions]):
    """An opened BIDS dataset."""

    published = DatasetInfo("BIDS dataset", "not stated", "not stated")

    def __init__(
        self,
        folder: SourceFolder,
        options: BidsFmriOptions,
        scans: Sequence[tuple[RecordingId, Scan]],
    ) -> None:
        super().__init__(folder, options, scans)
        self._tables = _of_stimuli("words", options.words, scans)
        self._audio = _of_stimuli("audio", options.audio, scans)

    def stimulus_onset_s(self, recording_id: RecordingId, scan: Scan) -> float:  # noqa: ARG002
        """Return the onset of the start event, or of the option."""
        kind = self._options.start_event
        if not kind:
            return 0.0 if self._options.words == EVENTS else self._options.stimulus_onset_s or 0.0
        events = read_events(_events(scan))
        onsets = [event.onset_s for event in events if event.kind == kind]
        if onsets:
            return onsets[0]
        raise RecordingError(
            f"the events of a run have no '{kind}'",
            where=f"{scan.events}, column 'trial_type'",
            got="trial_type " + ", ".join(sorted({event.kind for event in events})[:8]),
            expected=f"an event with trial_type '{kind}', as the option start_event says",
            remedy="fix the option or the file",
        )

    def onset_findings(self, scan: Scan) -> tuple[Finding, ...]:
        """Return a note where a run has events, and no option says which of them starts the stimulus."""
        options = self._options
        told = options.start_event or options.stimulus_onset_s is not None
        if told or options.words == EVENTS or scan.events is None:
            return ()
        try:
            kinds = sorted({event.kind for event in read_events(scan.events)})
            found = "events with trial_type " + ", ".join(repr(kind) for kind in kinds[:8])
            found += " …" if len(kinds) > 8 else ""
        except RecordingError as error:
            kinds, found = [], f"events that cannot be read: {error.what}"
        example = next((kind for kind in kinds if "start" in kind.lower()), "…")
        note = Finding(
            field="start_event",
            reason=Reason.STIMULUS_START_ASSUMED,
            severity="note",
            where=self._folder.where(scan.events),
            found=f"{found}; no option says when the stimulus begins, so that it begins with the first volume",
            expected="the option start_event (a trial_type) or stimulus_onset_s (seconds)",
            remedy=f"set start_event = {json.dumps(example)}, or stimulus_onset_s = 0.0 if that is what was done",
        )
        return (note,)

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one words table, or the words of one run."""
        if stimulus_id not in self._tables:
            raise no_such_stimulus(self._folder, stimulus_id, self._tables)
        table = self._tables[stimulus_id]
        if table is not None:
            path = self._folder.file(table, StimulusError)
            words = read_words_table(
                self._folder, path, stimulus_id, pause_s=self._options.sentence_pause_s
            )
        else:
            key = next(key for key in self._scans if key.stimulus == stimulus_id)
            scan = self._scans[key]
            words = read_word_events(
                self._folder,
                _events(scan),
                stimulus_id,
                kind=self._options.word_event,
                column=self._options.word_column,
                onset_s=self.stimulus_onset_s(key, scan),
                pause_s=self._options.sentence_pause_s,
            )
        audio = self._audio[stimulus_id]
        if audio is not None:
            self._folder.file(audio, StimulusError)
        absent = AbsentMedium(Reason.MEDIA_NOT_OFFERED, "no option 'audio' is given")
        stimulus = replace(
            words,
            media={} if audio is None else {"audio": audio},
            media_root=self._folder.root,
            media_absent={"audio": absent} if audio is None else {},
        )
        check_stimulus(stimulus)
        return stimulus

    def stimulus_paths(self) -> Iterable[Path]:
        """Return the words tables and sound files."""
        named = (*self._tables.values(), *self._audio.values())
        found = (self._folder.optional(name) for name in named if name is not None)
        return [path for path in found if path is not None]


def _events(scan: Scan) -> Path:
    if scan.events is not None:
        return scan.events
    raise RecordingError(
        "the events of a run are not in the folder",
        where=str(scan.bold),
        got="no events file",
        expected=f"{stem(scan.bold, *RAW_KEYS)}_events.tsv in the subject's folder func/",
        remedy="add the file, or unset start_event and name a words table",
    )


def _filled(pattern: str, key: RecordingId, bold: Path) -> str:
    """Put what a recording is called into a pattern's place-holders."""
    told = {"subject": key.subject, "session": key.session, "run": key.run}
    for name, value in {**told, "task": entities(bold)["task"]}.items():
        pattern = pattern.replace(f"{{{name}}}", value)
    return pattern


def _of_stimuli(
    option: str, pattern: str, scans: Sequence[tuple[RecordingId, Scan]]
) -> dict[str, str | None]:
    """Return the file of every stimulus, None where there is none; two files of one stimulus are refused."""
    files: dict[str, str | None] = {}
    for key, scan in scans:
        file = None if pattern in ("", EVENTS) else _filled(pattern, key, scan.bold)
        if files.setdefault(key.stimulus, file) != file:
            raise InputError(
                f"the option {option} names two files for the stimulus '{key.stimulus}'",
                where=f"option '{option}'",
                got=f"{files[key.stimulus]} and {file}",
                expected="one file per stimulus; a stimulus is called like its words table, without the folder",
                remedy="rename the tables of words, or use the same place-holders in both options",
            )
    return files


class BidsFmri(DatasetReader):
    """Any BIDS dataset of functional MRI; the module's docstring describes the layout."""

    name = "bids_fmri"
    summary = "any BIDS fMRI dataset with words, by an atlas or mask, with fMRIPrep's confounds"
    Options = BidsFmriOptions
    options: BidsFmriOptions
    extra = "fmri"
    layout: ClassVar[tuple[Expected, ...]] = (
        Expected("volumes", ("derivatives/**/*_bold.nii.gz", "**/*_bold.nii.gz", "**/*_bold.nii")),
        Expected("events of the runs", ("**/*_events.tsv",), needed=False),
        Expected(
            "confounds", tuple(f"derivatives/**/*_{name}" for name in CONFOUNDS), needed=False
        ),
        *ABOUT,
    )

    def open(self, *, name: str, path: Path | None, seed: int) -> BidsFmriDataset:  # noqa: ARG002
        """Find the runs; no volume is read."""
        folder = SourceFolder(path, name=name, expected="a BIDS dataset")
        if not self.options.words:
            raise ConfigError(
                "nothing says where the words are",
                where=f"dataset '{name}', option 'words'",
                got="no value",
                expected="a table of words, or 'events'",
                remedy='set words = "stimuli/words.tsv", or words = "events"',
            )
        scans = []
        for bold in selected(self._bold_files(folder), self.options.subjects, folder):
            found = entities(bold)
            key = RecordingId(found["sub"], found.get("ses", "1"), found.get("run", "1"), "")
            stimulus = stem(bold, *RAW_KEYS)
            if self.options.words != EVENTS:
                stimulus = Path(_filled(self.options.words, key, bold)).name.split(".")[0]
            scan = _scan(folder, bold)
            scans.append((RecordingId(key.subject, key.session, key.run, stimulus), scan))
        return BidsFmriDataset(folder, self.options, scans)

    def _bold_files(self, folder: SourceFolder) -> list[Path]:
        options = self.options
        root = f"{options.derivatives.strip('/')}/" if options.derivatives else ""
        wanted = {"task": options.task, "space": options.space, "res": options.res}
        every = [
            path
            for depth in ("func", "ses-*/func")
            for path in folder.glob(f"{root}sub-*/{depth}/*_bold.nii*", RecordingError)
            if path.name.endswith((".nii", ".nii.gz"))
        ]
        found = [
            path
            for path in every
            if entities(path).get("desc", "") == options.desc
            and all(not v or entities(path).get(key) == v for key, v in wanted.items())
        ]
        for option in ("task", "space"):
            values = sorted({entities(path).get(option, "") for path in found})
            if len(values) > 1:
                raise InputError(
                    f"the folder holds volumes of several values of '{option}-'",
                    where=f"dataset '{folder.name}', option '{option}'",
                    got=", ".join(value or "none" for value in values),
                    expected="one",
                    remedy=f"choose one with the option {option}",
                )
        if not found:
            raise _no_volumes(folder, root, every, {"desc": options.desc, **wanted})
        return found


def _no_volumes(
    folder: SourceFolder, root: str, every: Sequence[Path], wanted: Mapping[str, str]
) -> InputError:
    """Return the error that says what is asked for, and what is there instead."""
    asked = [f"{k}-{v}" for k, v in wanted.items() if v] + ["no desc-"] * (not wanted["desc"])
    there = {key: {entities(path).get(key, "") for path in every} for key in wanted}
    listed = [
        f"{key}: " + ", ".join(value or "(none)" for value in sorted(values)[:8])
        for key, values in there.items()
        if any(values)
    ]
    wrong = [
        f"{key}: {did_you_mean(value, filter(None, there[key]))}"
        for key, value in wanted.items()
        if every and value and value not in there[key]
    ]
    if not every:
        home = folder.root / "derivatives"
        pipelines = sorted(p.name for p in home.iterdir()) if home.is_dir() else []
        listed = [f"no *_bold.nii.gz at all; in derivatives/: {', '.join(pipelines) or 'nothing'}"]
    return InputError(
        "there are no volumes to read",
        where=f"{folder.root / root / 'sub-*'}/[ses-*/]func/*_bold.nii.gz",
        got=f"none with {', '.join(asked)}; there: {'; '.join(listed)}",
        expected="BOLD files whose names fit the options",
        remedy="; ".join(wrong)
        or "check the options derivatives, task, space, res and desc: no file fits all of them",
    )


def _scan(folder: SourceFolder, bold: Path) -> Scan:
    found = entities(bold)
    raw = stem(bold, *RAW_KEYS)
    home = f"sub-{found['sub']}/" + (f"ses-{found['ses']}/" if "ses" in found else "") + "func"
    beside = folder.relative(bold.parent)
    own = folder.relative(bold).removesuffix(".gz").removesuffix(".nii") + ".json"
    task = f"task-{found.get('task', '')}"
    sidecars = dict.fromkeys((own, f"{home}/{raw}_bold.json", f"{task}_bold.json"))
    events = (f"{home}/{raw}_events.tsv", f"{task}_events.tsv")
    confounds = tuple(f"{beside}/{raw}_{name}" for name in CONFOUNDS)
    return Scan(
        bold=bold,
        sidecars=tuple(p for p in map(folder.optional, sidecars) if p is not None),
        events=_first(folder, events),
        confounds=_first(folder, confounds),
    )


def _first(folder: SourceFolder, names: Iterable[str]) -> Path | None:
    """Return the first of these files that is there."""
    return next((p for p in map(folder.optional, names) if p is not None), None)
