"""Reader of any BIDS dataset of MEG, EEG or iEEG recordings in which words were heard or read.

::

    dataset_description.json, participants.tsv
    sub-<label>/[ses-<label>/]<meg|eeg|ieeg>/
        sub-<label>[_ses-<label>]_task-<label>[_run-<index>]_<meg|eeg|ieeg>.<fif|vhdr|edf|bdf|set|con|ds>
        …_<meg|eeg|ieeg>.json         SamplingFrequency must be that of the file
        …_channels.tsv                name, type, units, status
        …_events.tsv                  onset, duration, trial_type, and a column with words
        …_electrodes.tsv, …_coordsystem.json     optional: positions, regions

Words come from the events (``words = "events"``), or from a table on the clock of the stimulus, which an event starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Formatter

import numpy as np

from lpact.codes import Reason
from lpact.datasets._bids import check_participants, read_description
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets._mne.series import open_raw
from lpact.datasets.base import (
    AbsentMedium,
    Dataset,
    DatasetReader,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
)
from lpact.datasets.bids.events import (
    Events,
    Heard,
    SharedWords,
    heard_words,
    merge_heard,
    place_words,
    read_events,
    start_time,
)
from lpact.datasets.bids.files import BidsFiles, Filters, find_recordings
from lpact.datasets.bids.options import EVENTS, BidsOptions
from lpact.datasets.bids.recording import coordinate_system_file, open_recording, shifted
from lpact.datasets.bids.words import WordOptions, words_of_events, words_of_table
from lpact.datasets.catalogue import Expected
from lpact.datasets.triggers import TriggerClock
from lpact.datasets.validate import check_recording, check_recording_ids, check_stimulus
from lpact.errors import ConfigError, RecordingError, StimulusError, did_you_mean
from lpact.math.types import FloatArray


class BidsDataset(Dataset):
    """An opened folder."""

    def __init__(self, folder: SourceFolder, options: BidsOptions) -> None:
        self._folder = folder
        self._options = options
        self.info = read_description(folder)
        self._participants = check_participants(folder)
        filters = Filters(
            options.datatype,
            options.task,
            options.subjects,
            options.sessions,
            options.runs,
            options.acquisition,
            options.processing,
            options.description,
            options.derivative,
        )
        self._files: dict[RecordingId, BidsFiles] = {}
        for files in find_recordings(folder, filters):
            self._files[files.id(self._stimulus_id(files))] = files
        check_recording_ids(self._files, where=str(folder.root))
        self._opened_files: dict[RecordingId, tuple[Path, ...]] = {}
        self._shared: dict[str, tuple[dict[RecordingId, Heard], SharedWords]] = {}

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self._files)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Open one recording; its values are read later, a few channels at a time."""
        if recording_id not in self._files:
            raise RecordingError(
                "the folder has no such recording",
                where=str(self._folder.root),
                got=str(recording_id),
                expected="one of recording_ids()",
                remedy=did_you_mean(str(recording_id), [str(known) for known in self._files]),
            )
        files, options = self._files[recording_id], self._options
        found = open_recording(
            self._folder,
            files,
            datatype=files.entities.datatype,
            channel_types=options.channel_types,
            space=options.space,
            region_column=options.region_column,
        )
        self._opened_files[recording_id] = found.files
        onsets_s: FloatArray | None = None
        notes: tuple[Finding, ...] = ()
        if options.words == EVENTS:
            onsets_s, notes = self._heard_onsets(recording_id)
        elif options.sync_event:
            onsets_s, notes = self._synced_onsets(recording_id)
        elif options.start_event:
            events = self._events(files)
            found = shifted(found, -start_time(events, options.start_event, options.event_columns))
        recording = Recording(
            recording_id,
            found.signal,
            found.units,
            self._folder.where(files.path),
            word_onsets_s=onsets_s,
            bad_spans=found.bad_spans,
            findings=found.findings + notes,
        )
        check_recording(recording)
        return recording

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read the words of one stimulus."""
        chosen = [i for i in self.recording_ids() if i.stimulus == stimulus_id]
        if not chosen:
            raise StimulusError(
                "the folder has no such stimulus",
                where=str(self._folder.root),
                got=stimulus_id,
                expected="the stimulus of a recording",
                remedy=did_you_mean(stimulus_id, {i.stimulus for i in self._files}),
            )
        options = self._options
        columns = WordOptions(
            options.word_column,
            options.onset_column,
            options.offset_column,
            options.sentence_column,
            options.story_column,
        )
        files = self._files[chosen[0]]
        if options.words == EVENTS:
            heard, shared = self._shared_words(stimulus_id)
            ids = list(heard)
            source = heard[ids[shared.origin[0][0]]].events
            where = self._folder.where(source.path)
            words, findings = words_of_events(
                list(heard.values()),
                shared,
                columns,
                story=stimulus_id,
                zero_s=self._zero_s(list(heard.values())),
                where=where,
            )
        else:
            path = self._folder.file(self._filled(options.words, files), StimulusError)
            where = self._folder.where(path)
            words, findings = words_of_table(path, columns, story=stimulus_id, where=where)
        media = {}
        if options.audio:
            relative = self._filled(options.audio, files)
            self._folder.file(relative, StimulusError)
            media["audio"] = relative
        stimulus = Stimulus(
            id=stimulus_id,
            words=words,
            where=where,
            media=media,
            media_root=self._folder.root,
            media_absent={}
            if media
            else {"audio": AbsentMedium(Reason.MEDIA_NOT_OFFERED, "no option 'audio' is given")},
            findings=tuple(findings),
        )
        check_stimulus(stimulus)
        return stimulus

    def source_files(self) -> list[SourceFile]:
        """Return every file that is read with its checksum, by path."""
        paths = [self._folder.file("dataset_description.json")]
        paths += [] if self._participants is None else [self._participants]
        for recording_id, files in self._files.items():
            paths += [*self._recording_files(recording_id), *files.sidecars()]
            for template in (self._options.words, self._options.audio):
                if template not in ("", EVENTS):
                    paths.append(self._folder.file(self._filled(template, files)))
            subject = f"sub-{files.entities.subject}"
            for table in self._folder.glob(f"{subject}/**/{subject}_*electrodes.tsv"):
                system = coordinate_system_file(self._folder, table)
                paths += [table, *([] if system is None else [system])]
        return self._folder.source_files(paths, self.info.licence)

    def _recording_files(self, recording_id: RecordingId) -> Sequence[Path]:
        """Return the files of a recording as its headers name them; of one that cannot be opened, by its name."""
        if recording_id not in self._opened_files:
            path = self._files[recording_id].path
            try:
                self._opened_files[recording_id] = open_raw(self._folder, path).files
            except RecordingError:
                return self._files[recording_id].by_name(self._folder)
        return self._opened_files[recording_id]

    def _stimulus_id(self, files: BidsFiles) -> str:
        if self._options.words == EVENTS:
            run = files.entities.run
            return f"task-{files.entities.task}" + (f"_run-{run}" if run else "")
        relative = Path(self._filled(self._options.words, files))
        return relative.with_suffix("").as_posix().replace("/", "_")

    def _filled(self, template: str, files: BidsFiles) -> str:
        known = {
            "task": files.entities.task,
            "run": files.run,
            "session": files.session,
            "subject": files.entities.subject,
        }
        try:
            parts = [part[1:] for part in Formatter().parse(template) if part[1] is not None]
            wrong = [str(name) for name, spec, kind in parts if name not in known or spec or kind]
        except ValueError as problem:
            wrong = [str(problem)]
        if wrong:
            raise ConfigError(
                "a file name holds a place-holder that is not known",
                where=f"dataset '{self._folder.name}', options 'words' and 'audio'",
                got=f"{template!r} ({', '.join(wrong)})",
                expected="{task}, {run}, {session} and {subject} only",
                remedy="fix the option",
            )
        return template.format(**known)

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
            options = self._options
            heard = {
                recording_id: heard_words(
                    self._events(files),
                    kind=options.word_trial_type,
                    kind_columns=options.event_columns,
                    word_column=options.word_column,
                )
                for recording_id, files in sorted(self._files.items())
                if recording_id.stimulus == stimulus_id
            }
            self._shared[stimulus_id] = heard, merge_heard(list(heard.values()))
        return self._shared[stimulus_id]

    def _zero_s(self, heard: Sequence[Heard]) -> float:
        """Return the stimulus' time 0 on the clock of the shared words."""
        if not self._options.start_event:
            return 0.0
        leader = max(range(len(heard)), key=lambda i: (len(heard[i].words), -i))
        return start_time(
            heard[leader].events, self._options.start_event, self._options.event_columns
        )

    def _heard_onsets(self, recording_id: RecordingId) -> tuple[FloatArray, tuple[Finding, ...]]:
        heard, shared = self._shared_words(recording_id.stimulus)
        own = heard[recording_id]
        onsets_s = place_words(own, shared)
        lost = np.flatnonzero(np.isnan(onsets_s))
        if not lost.size and not own.n_without_time:
            return onsets_s, ()
        first = f"; the first is word {lost[0]}, {shared.words[lost[0]]!r}" if lost.size else ""
        note = Finding(
            field="events.tsv",
            reason=Reason.TRIGGERS_DROPPED,
            severity="note",
            where=self._folder.where(own.events.path),
            found=f"{lost.size} of {len(shared.words)} words have no event here{first}",
            expected="an event for every word that other recordings of the stimulus have",
            remedy="none is needed: the words have no time in this recording, and are left out of it",
        )
        return onsets_s, (note,)

    def _synced_onsets(self, recording_id: RecordingId) -> tuple[FloatArray, tuple[Finding, ...]]:
        files, options = self._files[recording_id], self._options
        events = self._events(files)
        events.table.require((options.sync_column,))
        rows = events.rows(options.event_columns, options.sync_event)
        times = np.array(events.table.numbers_or_nan(options.sync_column))
        rows = [row for row in rows if np.isfinite(events.onset_s[row] + times[row])]
        clock = TriggerClock(
            times[rows],
            events.onset_s[rows],
            where=f"{events.path}, events '{options.sync_event}'",
            labels=[f"line {row + 2}" for row in rows],
        )
        words = self.stimulus(recording_id.stimulus).words
        where = self._folder.where(events.path)
        return clock.to_recording(words["onset_s"].to_numpy()), clock.findings(where)


class Bids(DatasetReader):
    """Any BIDS dataset of MEG, EEG or iEEG; the module's docstring describes the layout."""

    name = "bids"
    summary = "MEG, EEG or iEEG recordings of any BIDS dataset, with words from events or a table"
    Options = BidsOptions
    role = "primary"
    extra = "meeg"
    # Sidecars (.json, .tsv) are no recordings.
    layout = (
        Expected("description and licence", ("dataset_description.json",)),
        Expected(
            "recordings",
            (
                "sub-*/**/*_meg.[!jt]*",
                "sub-*/**/*_eeg.[!jt]*",
                "sub-*/**/*_ieeg.[!jt]*",
                "derivatives/**/*_*eg.[!jt]*",
            ),
        ),
        Expected("channels", ("sub-*/**/*_channels.tsv",), needed=False),
        Expected("events", ("sub-*/**/*_events.tsv",), needed=False),
        Expected("people", ("participants.tsv",), needed=False),
        Expected("electrode positions", ("sub-*/**/*_electrodes.tsv",), needed=False),
    )

    def open(self, *, name: str, path: Path | None, seed: int) -> BidsDataset:  # noqa: ARG002
        """Open the folder ``path``."""
        assert isinstance(self.options, BidsOptions)
        expected = "the folder of a BIDS dataset, with dataset_description.json"
        return BidsDataset(SourceFolder(path, name=name, expected=expected), self.options)
