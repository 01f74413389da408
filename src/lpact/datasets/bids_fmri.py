"""Reader of any BIDS dataset of functional MRI with words: volumes by an atlas or mask, fMRIPrep's confounds.

docs/how-to/datasets/bids_fmri.md shows the folder. A words table is on the clock of the stimulus, so all listeners
share one stimulus; `start_event` says which event of a run is its zero. If words are rows of the events, every run is a
stimulus.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from glob import escape
from pathlib import Path

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._bids import entities, fill, labels, stem
from lpact.datasets._files.strict import MISSING, TextTable, invalid
from lpact.datasets._fmri import (
    ABOUT,
    CONFOUNDS,
    RAW_KEYS,
    FmriDataset,
    FmriOptions,
    Scan,
    find_scan,
    no_events,
    read_events,
)
from lpact.datasets._folder_dataset import labelled_words
from lpact.datasets.base import ITEM, DatasetInfo, Findings, RecordingId, Stimulus
from lpact.datasets.catalogue import optional, required
from lpact.errors import ConfigError, InputError, RecordingError, StimulusError
from lpact.math.types import FloatArray

EVENTS = "events"
ONSET, OFFSET = ("onset_s", "onset"), ("offset_s", "offset")
LABELS = ("story_id", "sentence_id")
TIMES = (*ONSET, *OFFSET, *LABELS, "duration", "word", "trial_type")
"""Columns of a words table that are not annotations."""


class BidsFmriOptions(FmriOptions):
    """Options of the reader."""

    task: str = ""
    """Task to read, as in `task-`. Empty: the only one."""
    derivatives: str = "derivatives/fmriprep"
    """Folder of the volumes, from the dataset's folder. Empty: the dataset's folder itself."""
    space: str = ""
    """Value of `space-` in file names. Empty: any, but only one."""
    res: str = ""
    """Value of `res-` in file names. Empty: any."""
    desc: str = "preproc"
    """Value of `desc-` in file names. Empty: none."""
    words: str = ""
    """Table of words (TSV, or CSV by its ending) with `word`, `onset` and `offset` or `duration` in seconds on the
    stimulus' clock. `{subject}`, `{session}`, `{task}` and `{run}` are those of a recording; recordings with the same
    table share a stimulus. `events`: words are rows of the events files.
    """
    audio: str = ""
    """Sound file of a stimulus, on the words' clock; placeholders as in `words`. Empty: none."""
    start_event: str = ""
    """`trial_type` of the event with which the stimulus begins, the first such in a run. Empty: it begins
    `stimulus_onset_s` after the first volume.
    """
    stimulus_onset_s: float | None = None
    """Seconds from the first volume to the stimulus, where no event says so. Not for words from events. Not given: 0,
    with a note where a run has events.
    """
    word_event: str = "word"
    """`trial_type` of words among the events, with `words` = `events`."""
    word_column: str = "word"
    """Column of the events with the words."""
    item_column: str = ""
    """Column of the events with the name of a stimulus that is not a word, such as `stim_file`, with `words` =
    `events`. Rows with a name (not `n/a`) are items, of any `trial_type`; those of the same name in several
    runs are repetitions. Empty: rows are words.
    """
    story_column: str = ""
    """Column of the events with the set of an item, such as train or test, or the story of a word. In a run, sets must
    follow each other. Empty: `story_id` if there is one, or else each run is a story.
    """


def _events(scan: Scan) -> Path:
    if scan.events is None:
        raise no_events(scan, "add the file, or unset start_event and name a words table")
    return scan.events


def _times(table: TextTable) -> tuple[FloatArray, FloatArray]:
    """Return onsets and offsets in seconds, NaN where a cell is missing."""

    def numbers(column: str) -> FloatArray:
        table.require((column,))
        return np.array(table.numbers_or_nan(column), dtype=np.float64)

    onset_s = numbers(next((name for name in ONSET if name in table.columns), "onset"))
    offset = next((name for name in OFFSET if name in table.columns), None)
    if offset is None and "duration" in table.columns:
        return onset_s, onset_s + numbers("duration")
    return onset_s, numbers(offset or "offset")


class BidsFmri(FmriDataset[BidsFmriOptions]):
    """Any BIDS dataset of functional MRI; see docs/how-to/datasets/bids_fmri.md."""

    name = "bids_fmri"
    summary = "any BIDS fMRI dataset with words, by an atlas or mask, with fMRIPrep's confounds"
    Options = BidsFmriOptions
    contents = "a BIDS dataset"
    extra = "fmri"
    layout = (
        required("volumes", "derivatives/**/*_bold.nii.gz", "**/*_bold.nii.gz", "**/*_bold.nii"),
        optional("events of the runs", "**/*_events.tsv"),
        optional("confounds", *(f"derivatives/**/*_{name}" for name in CONFOUNDS)),
        ABOUT,
    )
    published = DatasetInfo("BIDS dataset", "not stated", "not stated")

    def _open(self) -> None:
        if not self.options.words:
            raise ConfigError(
                "the option 'words' is missing",
                where=f"dataset '{self.folder.name}', option 'words'",
                got="no value",
                expected="a table of words, or 'events'",
                remedy='set words = "stimuli/words.tsv", or words = "events"',
            )
        super()._open()
        self._tables = self._files_of_stimuli("words")
        self._sounds = self._files_of_stimuli("audio")

    def _find_scans(self) -> list[tuple[RecordingId, Scan]]:
        scans = []
        for bold in self._bold_files(self._find_volumes()):
            own, stimulus = labels(bold), stem(bold, *RAW_KEYS)
            if self.options.words != EVENTS:
                stimulus = Path(fill(self.options.words, bold, "option 'words'")).name.split(".")[0]
            recording_id = RecordingId(own["subject"], own["session"], own["run"], stimulus)
            scans.append((recording_id, find_scan(self.folder, bold)))
        return scans

    def _find_volumes(self) -> list[Path]:
        options = self.options
        root = f"{escape(options.derivatives.strip('/'))}/" if options.derivatives else ""
        every = [
            path
            for depth in ("func", "ses-*/func")
            for path in self.folder.glob(f"{root}sub-*/{depth}/*_bold.nii*", RecordingError)
            if path.name.endswith((".nii", ".nii.gz"))
        ]
        wanted = {"task": options.task, "space": options.space, "res": options.res}
        found = [
            path
            for path in every
            if entities(path).get("desc", "") == options.desc
            and all(not v or entities(path).get(key) == v for key, v in wanted.items())
        ]
        if not found:
            pattern = f"{root}sub-*/[ses-*/]func/*_bold.nii.gz"
            raise self._no_volumes(pattern, every, "derivatives, task, space, res and desc")
        for option in ("task", "space"):
            values = sorted({entities(path).get(option, "") for path in found})
            if len(values) > 1:
                raise InputError(
                    f"the folder contains volumes with several values of '{option}-'",
                    where=f"dataset '{self.folder.name}', option '{option}'",
                    got=", ".join(value or "none" for value in values),
                    expected="one",
                    remedy=f"choose one with the option {option}",
                )
        return found

    def _files_of_stimuli(self, option: str) -> dict[str, str | None]:
        """Return the file of every stimulus; two files for one stimulus are an error."""
        pattern: str = getattr(self.options, option)
        files: dict[str, str | None] = {}
        for key, scan in self.recordings.items():
            file = None if pattern in ("", EVENTS) else fill(pattern, scan.bold, f"option '{option}'")
            if files.setdefault(key.stimulus, file) != file:
                raise InputError(
                    f"the option {option} names two files for the stimulus '{key.stimulus}'",
                    where=f"option '{option}'",
                    got=f"{files[key.stimulus]} and {file}",
                    expected="one file per stimulus, named like its words table",
                    remedy="rename the tables of words, or use the same placeholders in both options",
                )
        return files

    def _stimulus_onset(self, scan: Scan, stimulus_id: str, findings: Findings) -> float:  # noqa: ARG002
        options = self.options
        if options.start_event:
            return self._start_event(scan)
        if options.words == EVENTS:
            return 0.0
        if options.stimulus_onset_s is None and scan.events is not None:
            self._note_assumed_start(scan.events, findings)
        return options.stimulus_onset_s or 0.0

    def _start_event(self, scan: Scan) -> float:
        kind = self.options.start_event
        events = read_events(_events(scan))
        for event in events:
            if event.kind == kind:
                return event.onset_s
        found = "trial_type " + ", ".join(sorted({event.kind for event in events})[:8])
        expected = f"an event with trial_type '{kind}', the value of the option start_event"
        where, remedy = f"{scan.events}, column 'trial_type'", "fix the option start_event"
        raise invalid(where, found, expected, remedy=remedy)

    def _note_assumed_start(self, path: Path, findings: Findings) -> None:
        """Note that a run has events, and no option says which of them starts the stimulus."""
        try:
            kinds = sorted({event.kind for event in read_events(path)})
            found = f"{path.name} with trial_type " + ", ".join(repr(kind) for kind in kinds[:8])
        except RecordingError as error:
            kinds, found = [], f"{path.name}, which cannot be read: {error.what}"
        example = next((kind for kind in kinds if "start" in kind.lower()), "…")
        findings.note(
            "start_event",
            Reason.STIMULUS_START_ASSUMED,
            f"{found}; no option says when the stimulus begins, so it begins with the first volume",
            "the option start_event (a trial_type) or stimulus_onset_s (seconds)",
            f"set start_event = {json.dumps(example)}, or stimulus_onset_s = 0.0 to confirm the assumption",
        )

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        file = self._tables[stimulus_id]
        if file is not None:
            table = TextTable(self.folder.file(file, StimulusError), StimulusError)
            column, start_s, rows = "word", 0.0, list(range(table.n_rows))
        else:
            key = next(key for key in self.recordings if key.stimulus == stimulus_id)
            scan = self.recordings[key]
            column = self.options.item_column or self.options.word_column
            table = TextTable(_events(scan), StimulusError)
            rows = self._word_rows(table)
            start_s = self._start_event(scan) if self.options.start_event else 0.0
        table.require((column,))
        where = self.folder.where(table.path)
        onset_s, offset_s = _times(table)
        timed = [row for row in rows if np.isfinite(onset_s[row] + offset_s[row])]
        findings = Findings(where)
        if len(timed) < len(rows):
            first = f"line {table.line(min(set(rows) - set(timed)))}"
            n_missing = len(rows) - len(timed)
            findings.untimed("onset", n_missing, len(rows), first)

        def cells(name: str, read: Callable[[str], list[str]]) -> list[str]:
            values = read(name)
            return [values[row] for row in timed]

        read = table.cells if file is None else table.text
        named = {name: name for name in LABELS if name in table.columns}
        if file is None and self.options.story_column:
            named["story_id"] = self.options.story_column
            table.require((self.options.story_column,))
        own = {label: cells(name, read) for label, name in named.items()}
        if items := file is None and self.options.item_column != "":
            own["sentence_id"] = [str(row) for row in timed]
        words = labelled_words(
            cells(column, read),
            onset_s[timed] - start_s,
            offset_s[timed] - start_s,
            stories=own.get("story_id", [stimulus_id] * len(timed)),
            sentences=own.get("sentence_id"),
            columns={
                name: cells(name, table.cells)
                for name in table.columns
                if name not in (*TIMES, column) and not (items and name == ITEM)
            },
            pause_s=self.options.sentence_pause_s,
            findings=findings,
            remedy="add a column 'sentence_id' where the rule is not good enough",
        )
        sound = self._sounds[stimulus_id]
        audio = None if sound is None else self.folder.file(sound, StimulusError)
        return Stimulus(
            id=stimulus_id,
            words=words.with_columns(pl.col("word").alias(ITEM)) if items else words,
            where=where,
            findings=tuple(findings),
            unknown=frozenset(("word", "sentence_id")) if items else frozenset(),
            **self._audio(audio, "no option 'audio' is given"),
        )

    def _word_rows(self, table: TextTable) -> list[int]:
        if self.options.item_column:
            table.require(("onset", "duration", self.options.item_column))
            cells = table.cells(self.options.item_column)
            return [row for row, cell in enumerate(cells) if cell not in MISSING]
        kind = self.options.word_event
        table.require(("onset", "duration", "trial_type"))
        kinds = table.cells("trial_type")
        if kind not in kinds:
            found = "trial_type " + ", ".join(sorted(set(kinds))[:8])
            expected = f"rows with trial_type '{kind}', the value of the option word_event"
            remedy = "fix the option word_event, or name a table of words in the option words"
            raise invalid(f"{table.path}, column 'trial_type'", found, expected, StimulusError, remedy)
        return [row for row, cell in enumerate(kinds) if cell == kind]

    def _stimulus_paths(self) -> Iterable[Path | None]:
        named = (*self._tables.values(), *self._sounds.values())
        return [self.folder.optional(name) for name in named if name is not None]
