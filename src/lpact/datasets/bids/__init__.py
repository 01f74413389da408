"""Reader of any BIDS dataset of MEG, EEG or iEEG recordings in which words were heard or read.

::

    dataset_description.json
    sub-<label>/[ses-<label>/]<meg|eeg|ieeg>/
        sub-<label>[_ses-<label>]_task-<label>[_run-<index>]_<meg|eeg|ieeg>.<fif|vhdr|edf|bdf|set|con|ds>
        …_<meg|eeg|ieeg>.json         SamplingFrequency must be that of the file
        …_channels.tsv                name, type, units, status
        …_events.tsv                  onset, duration, trial_type, and a column with words
        …_electrodes.tsv, …_coordsystem.json     optional: positions, regions

Words come from the events (``words = "events"``), or from a table on the clock of the stimulus, which an event starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from string import Formatter

import numpy as np
import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._bids import DESCRIPTION, read_description
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import (
    FolderDataset,
    FolderReader,
    labelled_words,
    note,
    read_table,
)
from lpact.datasets._mne import open_raw, shift_spans
from lpact.datasets.base import Recording, RecordingId, Stimulus
from lpact.datasets.bids.events import (
    Events,
    Heard,
    SharedWords,
    heard_words,
    leader,
    merge_heard,
    place_words,
    read_events,
)
from lpact.datasets.bids.recordings import (
    BidsFiles,
    RecordingOptions,
    coordinate_system_file,
    electrode_tables,
    find_recordings,
    open_bids_recording,
)
from lpact.datasets.catalogue import Expected, optional
from lpact.datasets.triggers import TriggerClock
from lpact.errors import ConfigError, RecordingError, StimulusError
from lpact.math.types import FloatArray

EVENTS = "events"
"""Value of the option ``words`` that means rows of events.tsv."""

SENTENCE_PAUSE_S = 0.5
_EVENT_COLUMNS = {"onset", "duration", "trial_type", "value", "sample", "response_time"}


class BidsOptions(RecordingOptions):
    """Options of the reader."""

    words: str = Field(
        EVENTS,
        description="`events`: words are rows of events.tsv. Otherwise a TSV or CSV file in the folder with the words "
        "on the clock of the stimulus; `{task}`, `{run}`, `{session}` and `{subject}` stand for a recording's.",
    )
    event_columns: tuple[str, ...] = Field(
        ("trial_type", "value"), description="Columns of events.tsv that say what an event is."
    )
    word_trial_type: str = Field(
        "word", description="What an event is that stands for a word (`words = events`)."
    )
    word_column: str = Field("word", description="Column with the word.")
    onset_column: str = Field("onset", description="Column of the words file with onsets in s.")
    offset_column: str = Field("offset", description="Column of the words file with ends in s.")
    sentence_column: str = Field("", description="Column that numbers or names sentences.")
    story_column: str = Field("", description="Column that names stories.")
    start_event: str = Field(
        "",
        description="Event at which the stimulus' time is 0. Empty: the recording's first sample.",
    )
    sync_event: str = Field(
        "",
        description="Events whose time in the stimulus is known; with a words file, drift between clocks is followed.",
    )
    sync_column: str = Field(
        "stimulus_time", description="Column with the time of a sync event in the stimulus, in s."
    )
    audio: str = Field(
        "", description="Audio file in the folder, on the clock of the stimulus; as for `words`."
    )


class BidsDataset(FolderDataset[BidsOptions, BidsFiles]):
    """An opened folder."""

    def __init__(self, folder: SourceFolder, options: BidsOptions) -> None:
        super().__init__(folder, options)
        self.info = read_description(folder)
        self._set_recordings((self._id(files), files) for files in find_recordings(folder, options))
        self._opened: dict[RecordingId, tuple[Path, ...]] = {}
        self._shared: dict[str, tuple[dict[RecordingId, Heard], SharedWords]] = {}

    def _id(self, files: BidsFiles) -> RecordingId:
        labels, run = files.labels, files.entities.run
        if self.options.words == EVENTS:
            stimulus = f"task-{labels['task']}" + (f"_run-{run}" if run else "")
        else:
            words = Path(self._filled(self.options.words, files))
            stimulus = words.with_suffix("").as_posix().replace("/", "_")
        return RecordingId(labels["subject"], labels["session"], labels["run"], stimulus)

    def _filled(self, template: str, files: BidsFiles) -> str:
        """Replace the place-holders of a file name by the labels of a recording."""
        known = files.labels
        try:
            parts = [part[1:] for part in Formatter().parse(template) if part[1] is not None]
            wrong = [str(name) for name, spec, kind in parts if name not in known or spec or kind]
        except ValueError as problem:
            wrong = [str(problem)]
        if wrong:
            raise ConfigError(
                "a file name holds an unknown place-holder",
                where=f"dataset '{self.folder.name}', options 'words' and 'audio'",
                got=f"{template!r} ({', '.join(wrong)})",
                expected="{task}, {run}, {session} and {subject} only",
                remedy="fix the option",
            )
        return template.format(**known)

    def _recording(self, recording_id: RecordingId, files: BidsFiles) -> Recording:
        options = self.options
        found = open_bids_recording(self.folder, files, options)
        self._opened[recording_id] = found.files
        signal, spans = found.signal, found.bad_spans
        onsets_s: FloatArray | None = None
        notes: Sequence[Finding] = ()
        if options.words == EVENTS:
            onsets_s, notes = self._heard_onsets(recording_id)
        elif options.sync_event:
            onsets_s, notes = self._synced_onsets(recording_id, files)
        elif options.start_event:
            start_s = -self._events(files).start_s(options.start_event, options.event_columns)
            signal, spans = replace(signal, start_s=start_s), shift_spans(spans, start_s)
        return Recording(
            recording_id,
            signal,
            found.units,
            self.folder.where(files.path),
            word_onsets_s=onsets_s,
            bad_spans=spans,
            findings=(*found.findings, *notes),
        )

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        files = next(f for i, f in sorted(self.recordings.items()) if i.stimulus == stimulus_id)
        audio = self.options.audio
        sound = self.folder.file(self._filled(audio, files), StimulusError) if audio else None
        if self.options.words == EVENTS:
            words, where, findings = self._words_of_events(stimulus_id)
        else:
            words, where, findings = self._words_of_table(files, stimulus_id)
        return Stimulus(
            id=stimulus_id,
            words=words,
            where=where,
            findings=tuple(findings),
            **self._audio(sound, "no option 'audio' is given"),
        )

    def _words_of_table(
        self, files: BidsFiles, stimulus_id: str
    ) -> tuple[pl.DataFrame, str, list[Finding]]:
        options = self.options
        path = self.folder.file(self._filled(options.words, files), StimulusError)
        where, table = self.folder.where(path), read_table(path, StimulusError)
        needed = [options.word_column, options.onset_column, options.offset_column]
        optional = [c for c in (options.sentence_column, options.story_column) if c]
        table.require([*needed, *optional])
        others = [column for column in table.columns if column not in needed + optional]
        story, sentence = options.story_column, options.sentence_column
        words, findings = labelled_words(
            table.text(options.word_column),
            np.array(table.numbers(options.onset_column)),
            np.array(table.numbers(options.offset_column)),
            stories=table.text(story) if story else [stimulus_id] * table.n_rows,
            sentences=table.cells(sentence) if sentence else None,
            columns={column: table.cells(column) for column in others},
            pause_s=SENTENCE_PAUSE_S,
            where=where,
            remedy="give the column that numbers them (option 'sentence_column')",
        )
        return words, where, findings

    def _words_of_events(self, stimulus_id: str) -> tuple[pl.DataFrame, str, list[Finding]]:
        """Return the words that recordings heard, with the columns of their events."""
        options = self.options
        by_id, shared = self._shared_words(stimulus_id)
        heard = list(by_id.values())
        where = self.folder.where(heard[shared.origin[0][0]].events.path)
        rows = [(heard[i].events, heard[i].rows[k]) for i, k in shared.origin]
        zero_s = 0.0
        if options.start_event:
            first = heard[leader(heard)].events
            zero_s = first.start_s(options.start_event, options.event_columns)
        onset_s = shared.onset_s - zero_s
        length_s = np.array([events.duration_s[row] for events, row in rows])
        unknown = int(np.isnan(length_s).sum())
        missing = note(
            "duration",
            Reason.SOURCE_ROWS_MENDED,
            where,
            f"{unknown} word(s) without a duration",
            "a duration for every word",
            "none is needed: such a word ends where it begins",
        )

        def column(name: str) -> list[str]:
            tables = {one.events.path: one.events.table for one in heard}
            cells = {path: t.cells(name) for path, t in tables.items() if name in t.columns}
            return [cells[e.path][row] if e.path in cells else "n/a" for e, row in rows]

        story, sentence = options.story_column, options.sentence_column
        names = {name for one in heard for name in one.events.table.columns}
        used = {options.word_column, sentence, story, *_EVENT_COLUMNS}
        words, findings = labelled_words(
            shared.words,
            onset_s,
            onset_s + np.nan_to_num(length_s),
            stories=column(story) if story else [stimulus_id] * len(rows),
            sentences=column(sentence) if sentence else None,
            columns={name: column(name) for name in sorted(names - used)},
            pause_s=SENTENCE_PAUSE_S,
            where=where,
            remedy="give the column that numbers them (option 'sentence_column')",
        )
        return words, where, [missing, *findings] if unknown else findings

    def _paths(self) -> Iterator[Path | None]:
        yield self.folder.file(DESCRIPTION)
        for recording_id, files in self.recordings.items():
            yield from self._recording_files(recording_id, files)
            yield from (files.channels, files.events, files.sidecar)
            for template in (self.options.words, self.options.audio):
                if template not in ("", EVENTS):
                    yield self.folder.file(self._filled(template, files))
            for table in electrode_tables(self.folder, recording_id.subject):
                yield from (table, coordinate_system_file(self.folder, table))

    def _recording_files(self, recording_id: RecordingId, files: BidsFiles) -> Sequence[Path]:
        """Return the files of a recording as its headers name them; of a damaged one, those of its name."""
        if recording_id not in self._opened:
            try:
                self._opened[recording_id] = open_raw(self.folder, files.path).files
            except RecordingError:
                parts = files.path.rglob("*") if files.path.is_dir() else (files.path,)
                return [path for path in parts if path.is_file()]
        return self._opened[recording_id]

    def _events(self, files: BidsFiles) -> Events:
        if files.events is None:
            raise RecordingError(
                "a recording has no events.tsv",
                where=str(files.path),
                got="no such file beside it, nor further up",
                expected=files.path.name.rpartition("_")[0] + "_events.tsv",
                remedy="add the file, or give words on the recording's own clock (options 'words', no 'start_event')",
            )
        return read_events(files.events)

    def _shared_words(self, stimulus_id: str) -> tuple[dict[RecordingId, Heard], SharedWords]:
        """Return what every recording of a stimulus heard, and the words that they share."""
        if stimulus_id not in self._shared:
            options = self.options
            heard = {
                recording_id: heard_words(
                    self._events(files),
                    kind=options.word_trial_type,
                    kind_columns=options.event_columns,
                    word_column=options.word_column,
                )
                for recording_id, files in sorted(self.recordings.items())
                if recording_id.stimulus == stimulus_id
            }
            self._shared[stimulus_id] = heard, merge_heard(list(heard.values()))
        return self._shared[stimulus_id]

    def _heard_onsets(self, recording_id: RecordingId) -> tuple[FloatArray, list[Finding]]:
        heard, shared = self._shared_words(recording_id.stimulus)
        own = heard[recording_id]
        onsets_s = place_words(own, shared)
        lost = np.flatnonzero(np.isnan(onsets_s))
        if not lost.size and not own.n_without_time:
            return onsets_s, []
        first = f"; the first is word {lost[0]}, {shared.words[lost[0]]!r}" if lost.size else ""
        finding = note(
            "events.tsv",
            Reason.TRIGGERS_DROPPED,
            self.folder.where(own.events.path),
            f"{lost.size} of {len(shared.words)} words have no event here{first}",
            "an event for every word that other recordings of the stimulus have",
            "none is needed: the words have no time in this recording, and are left out of it",
        )
        return onsets_s, [finding]

    def _synced_onsets(
        self, recording_id: RecordingId, files: BidsFiles
    ) -> tuple[FloatArray, Sequence[Finding]]:
        """Return word times by the sync events, so that drift between the clocks is followed."""
        options, events = self.options, self._events(files)
        events.table.require((options.sync_column,))
        times = np.array(events.table.numbers_or_nan(options.sync_column))
        rows = events.rows(options.event_columns, options.sync_event)
        rows = [row for row in rows if np.isfinite(events.onset_s[row] + times[row])]
        clock = TriggerClock(
            times[rows],
            events.onset_s[rows],
            where=f"{events.path}, events '{options.sync_event}'",
            labels=[f"line {row + 2}" for row in rows],
        )
        words = self.stimulus(recording_id.stimulus).words
        findings = clock.findings(self.folder.where(events.path))
        return clock.to_recording(words["onset_s"].to_numpy()), findings


class Bids(FolderReader):
    """Any BIDS dataset of MEG, EEG or iEEG; the module's docstring describes the layout."""

    name = "bids"
    summary = "MEG, EEG or iEEG recordings of any BIDS dataset, with words from events or a table"
    Options = BidsOptions
    dataset = BidsDataset
    contents = "the folder of a BIDS dataset, with dataset_description.json"
    role = "primary"
    extra = "meeg"
    # Sidecars (.json, .tsv) are no recordings.
    layout = (
        Expected("description and licence", (DESCRIPTION,)),
        Expected(
            "recordings",
            (
                "sub-*/**/*_meg.[!jt]*",
                "sub-*/**/*_eeg.[!jt]*",
                "sub-*/**/*_ieeg.[!jt]*",
                "derivatives/**/*_*eg.[!jt]*",
            ),
        ),
        optional("channels", "sub-*/**/*_channels.tsv"),
        optional("events", "sub-*/**/*_events.tsv"),
        optional("electrode positions", "sub-*/**/*_electrodes.tsv"),
    )
