"""Reader of any BIDS dataset of MEG, EEG or iEEG recordings in which words were heard or read.

docs/how-to/datasets/bids.md shows the folder. Words come from the events (``words = "events"``), or from a table on the
clock of the stimulus, which an event starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._bids import (
    DESCRIPTION,
    Places,
    entities,
    fill,
    find_sidecar,
    labels,
    read_description,
    read_electrodes,
)
from lpact.datasets._files.strict import TextTable, invalid
from lpact.datasets._folder_dataset import FolderDataset, labelled_words, read_json
from lpact.datasets._mne import open_recording, recording_files, sample_mismatch
from lpact.datasets.base import Findings, Recording, RecordingId, Stimulus, TimeSeries
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
from lpact.datasets.catalogue import optional, required
from lpact.datasets.triggers import TriggerClock
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.math.types import FloatArray
from lpact.registry import PluginOptions
from lpact.wording import listed

NEURAL = {"meg": ("mag", "grad"), "eeg": ("eeg",), "ieeg": ("ecog", "seeg", "dbs")}
"""Datatypes, and the types of their channels that are units."""

OPENED = (".fif", ".vhdr", ".edf", ".bdf", ".set", ".con", ".sqd", ".ds", ".mff")
"""Endings of files and folders that are opened; files next to them may belong to them."""

EVENTS = "events"
"""Value of the option ``words`` that means rows of events.tsv."""

SENTENCE_PAUSE_S = 0.5
_NAME_SENTENCES = "give the column that numbers them (option 'sentence_column')"
_EVENT_COLUMNS = {"onset", "duration", "trial_type", "value", "sample", "response_time"}


class BidsOptions(PluginOptions):
    """Options of the reader: recordings and channels, then words."""

    datatype: Literal["", "meg", "eeg", "ieeg"] = ""
    """Kind of recordings; empty if the dataset has only one."""
    task: str = ""
    """Task of the recordings (`task-<label>`), without `task-`; empty if the dataset has only one."""
    subjects: tuple[str, ...] = ()
    """Subjects that are read; empty for all."""
    sessions: tuple[str, ...] = ()
    """Sessions that are read; empty for all."""
    runs: tuple[str, ...] = ()
    """Runs that are read; empty for all."""
    acquisition: str = ""
    """Only recordings with this `acq-<label>`."""
    processing: str = ""
    """Only recordings with this `proc-<label>`."""
    description: str = ""
    """Only recordings with this `desc-<label>`."""
    derivative: str = ""
    """Folder of a derivative below the dataset's, such as `derivatives/prep`."""
    channel_types: tuple[Literal["mag", "grad", "eeg", "ecog", "seeg", "dbs"], ...] = ()
    """Types of channels that are units; empty for all neural ones of the kind."""
    space: str = ""
    """Space of the electrode positions (`space-<label>`)."""
    region_column: str = ""
    """Column of electrodes.tsv with the region; empty to take a known one."""
    words: str = EVENTS
    """`events`: words are rows of events.tsv. Otherwise a TSV or CSV file in the folder with the words on the clock of
    the stimulus; `{task}`, `{run}`, `{session}` and `{subject}` are those of a recording.
    """
    event_columns: tuple[str, ...] = ("trial_type", "value")
    """Columns of events.tsv that say what an event is."""
    word_trial_type: str = "word"
    """Value of an event that is a word (`words = events`)."""
    word_column: str = "word"
    """Column with the word."""
    onset_column: str = "onset"
    """Column of the words file with onsets in s."""
    offset_column: str = "offset"
    """Column of the words file with ends in s."""
    sentence_column: str = ""
    """Column that numbers or names sentences."""
    story_column: str = ""
    """Column that names stories."""
    start_event: str = ""
    """Event at which the stimulus' time is 0. Empty: the recording's first sample."""
    sync_event: str = ""
    """Events whose time in the stimulus is known; with a words file, drift between clocks is followed."""
    sync_column: str = "stimulus_time"
    """Column with the time of a sync event in the stimulus, in s."""
    audio: str = ""
    """Audio file in the folder, on the clock of the stimulus; as for `words`."""


@dataclass(frozen=True)
class BidsFiles:
    """The file or folder of one recording, and its sidecars."""

    path: Path
    channels: Path | None
    events: Path | None
    sidecar: Path | None


def _datatype(path: Path) -> str:
    return path.name.rpartition("_")[2].partition(".")[0]


class Bids(FolderDataset[BidsOptions, BidsFiles]):
    """Any BIDS dataset of MEG, EEG or iEEG; see docs/how-to/datasets/bids.md."""

    name = "bids"
    summary = "MEG, EEG or iEEG recordings of any BIDS dataset, with words from events or a table"
    Options = BidsOptions
    contents = "the folder of a BIDS dataset, with dataset_description.json"
    extra = "meeg"
    # Sidecars (.json, .tsv) are no recordings.
    layout = (
        required("description and licence", DESCRIPTION),
        required(
            "recordings",
            "sub-*/**/*_meg.[!jt]*",
            "sub-*/**/*_eeg.[!jt]*",
            "sub-*/**/*_ieeg.[!jt]*",
            "derivatives/**/*_*eg.[!jt]*",
        ),
        optional("channels", "sub-*/**/*_channels.tsv"),
        optional("events", "sub-*/**/*_events.tsv"),
        optional("electrode positions", "sub-*/**/*_electrodes.tsv"),
    )

    def _open(self) -> None:
        self.info = read_description(self.folder)
        for path in self._find_recordings():
            files = BidsFiles(
                path,
                channels=self._sidecar(path, "channels.tsv"),
                events=self._sidecar(path, "events.tsv"),
                sidecar=self._sidecar(path, f"{_datatype(path)}.json"),
            )
            known = self.recordings.setdefault(self._id(path), files)
            if known is not files:
                found = f"{known.path.name} and {path.name}"
                expected = "one file for every subject, session and run"
                remedy = "choose one with the options acquisition, processing or description"
                raise invalid(path, found, expected, remedy=remedy)
        self._shared: dict[str, tuple[dict[RecordingId, Heard], SharedWords]] = {}

    def _find_recordings(self) -> list[Path]:
        """Return the recordings that the options choose, sorted."""
        options, root = self.options, self.folder.root / self.options.derivative
        every = [
            path
            for kind in NEURAL
            for path in sorted(root.glob(f"sub-*/**/{kind}/*_{kind}.*"))
            if path.suffix in OPENED and entities(path).get("split", "01") == "01"
        ]
        datatype = options.datatype or self._only("datatype", {_datatype(p) for p in every})
        own = [path for path in every if _datatype(path) == datatype]
        task = options.task or self._only("task", {entities(path).get("task", "") for path in own})
        wanted: dict[str, Sequence[str]] = {
            "task": [task],
            "sub": options.subjects,
            "ses": options.sessions,
            "run": options.runs,
            "acq": [options.acquisition],
            "proc": [options.processing],
            "desc": [options.description],
        }
        found = [
            path
            for path in own
            if all(entities(path).get(k) in v for k, v in wanted.items() if any(v))
            and (options.derivative or options.description or "desc" not in entities(path))
        ]
        if not found:
            raise InputError(
                "the folder has no such recordings",
                where=str(root),
                got=f"{len(every)} recording(s): {listed([path.name for path in every])}",
                expected=f"recordings of datatype '{datatype}' and task '{task}'",
                remedy="check the options datatype, task, subjects, sessions, runs and derivative",
            )
        names = [path.relative_to(self.folder.root).as_posix() for path in found]
        return [self.folder.file(name, RecordingError) for name in sorted(names)]

    def _only(self, option: str, found: set[str]) -> str:
        if len(found) == 1:
            return next(iter(found))
        raise InputError(
            f"the folder has more than one {option}" if found else "the folder contains no recording",
            where=f"{self.folder.root / self.options.derivative}, option '{option}'",
            got=", ".join(sorted(found)) or "no MEG, EEG or iEEG file of a known kind",
            expected=f"one {option}, or the option '{option}'",
            remedy=f"give the option '{option}'" if found else "check the folder and the derivative",
        )

    def _sidecar(self, path: Path, name: str) -> Path | None:
        """Return a sidecar of a recording; a derivative without one takes that of the raw recording."""
        raw = self.folder.root / path.relative_to(self.folder.root / self.options.derivative)
        found = find_sidecar(self.folder, path, name)
        return found or find_sidecar(self.folder, raw, name)

    def _id(self, path: Path) -> RecordingId:
        own, run = labels(path), entities(path).get("run")
        if self.options.words == EVENTS:
            stimulus = f"task-{own['task']}" + (f"_run-{run}" if run else "")
        else:
            words = Path(self._filled("words", path))
            stimulus = words.with_suffix("").as_posix().replace("/", "_")
        return RecordingId(own["subject"], own["session"], own["run"], stimulus)

    def _filled(self, option: Literal["words", "audio"], path: Path) -> str:
        where = f"dataset '{self.folder.name}', option '{option}'"
        return fill(getattr(self.options, option), path, where)

    def _recording(self, recording_id: RecordingId, files: BidsFiles) -> Recording:
        options, datatype = self.options, _datatype(files.path)
        start_s = 0.0
        if options.words != EVENTS and options.start_event and not options.sync_event:
            start_s = -self._events(files).start_s(options.start_event, options.event_columns)
        recording, first_sample = open_recording(
            self.folder,
            files.path,
            recording_id,
            start_s=start_s,
            wanted=tuple(options.channel_types) or NEURAL[datatype],
            comparable=datatype != "ieeg",
            sidecar=files.sidecar,
            channels=files.channels,
            places=lambda own, ids: self._places(files, own, ids),
        )
        assert isinstance(recording.signal, TimeSeries)
        spans = set(recording.bad_spans)
        findings = Findings(self.folder.where(files.events or files.path))
        if files.events is not None:
            events = read_events(files.events)
            spans |= {span.shifted(start_s) for span in events.bad_spans()}
            self._check_samples(events, recording.signal.sampling_rate_hz, first_sample, findings)
        onsets_s: FloatArray | None = None
        if options.words == EVENTS:
            onsets_s = self._heard_onsets(recording_id, findings)
        elif options.sync_event:
            onsets_s = self._synced_onsets(recording_id, files, findings)
        return replace(
            recording, word_onsets_s=onsets_s, bad_spans=tuple(sorted(spans)), findings=(*recording.findings, *findings)
        )

    def _check_samples(self, events: Events, rate_hz: float, first_sample: int, findings: Findings) -> None:
        """Compare the columns ``onset`` and ``sample`` of the events, if both exist.

        Two clocks that disagree are an error: one of them puts the words at wrong samples. A note is enough where
        samples are numbered as the file numbers them, from its first one on, and where a derivative has the events of
        its raw recording, whose samples are not its own: ``onset`` is used then.
        """
        if "sample" not in events.table.columns:
            return
        mismatch = sample_mismatch(events.onset_s, events.table.numbers_or_nan("sample"), rate_hz)
        if mismatch is None:
            return
        shifted_by = np.abs(mismatch.apart[np.isfinite(mismatch.apart)] + first_sample)
        renumbered = first_sample != 0 and bool((shifted_by <= mismatch.within).all())
        own = events.path.is_relative_to(self.folder.root / self.options.derivative)
        if own and not renumbered:
            where = f"{events.path}, line {mismatch.first_row + 2}, columns 'onset' and 'sample'"
            remedy = "find out which is right; fix the other, or remove the column 'sample'"
            raise invalid(where, *mismatch.texts, remedy=remedy)
        why = f"numbered from {first_sample}" if renumbered else "those of the raw recording"
        remedy = f"nothing to do: the samples are {why}, and 'onset' is used"
        findings.note("sample", Reason.SIDECAR_DISAGREES, *mismatch.texts, remedy)

    def _places(self, files: BidsFiles, own: Places, ids: Sequence[str]) -> Places:
        """Return the places of the units: from electrodes.tsv, or else those in the file."""
        path = self._electrodes(files)
        if path is None:
            return own
        system = self._coordinate_system(path)
        values = {} if system is None else read_json(system)
        units = [str(v) for k, v in values.items() if k.endswith("CoordinateUnits")]
        frames = [str(v) for k, v in values.items() if k.endswith("CoordinateSystem")]
        return read_electrodes(
            path,
            ids,
            unit=units[0] if units else "n/a",
            frame=frames[0] if frames else "",
            region_column=self.options.region_column,
            where=self.folder.where(path),
        )

    def _electrodes(self, files: BidsFiles) -> Path | None:
        """Return the electrode table: the one of the option ``space``, or the only one."""
        own, space = entities(files.path), self.options.space
        found = [
            path
            for path in self._electrode_tables(own["sub"])
            if entities(path).get("ses", own.get("ses")) == own.get("ses")
            and (not space or entities(path).get("space") == space)
        ]
        of_run = [path for path in found if entities(path).get("run", "") == own.get("run")]
        found = of_run or found
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            expected = "one electrode table for the recording"
            raise invalid(files.path, names, expected, remedy="choose with the option 'space'")
        return found[0] if found else None

    def _electrode_tables(self, subject: str) -> list[Path]:
        patterns = (f"sub-{subject}/**/sub-{subject}_*electrodes.tsv", "*electrodes.tsv")
        found = (self.folder.glob(pattern, RecordingError) for pattern in patterns)
        return next((tables for tables in found if tables), [])

    def _coordinate_system(self, electrodes: Path) -> Path | None:
        name = electrodes.name.removesuffix("electrodes.tsv") + "coordsystem.json"
        return self.folder.optional(self.folder.relative(electrodes.with_name(name)), RecordingError)

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        files = next(f for i, f in sorted(self.recordings.items()) if i.stimulus == stimulus_id)
        sound = None
        if self.options.audio:
            sound = self.folder.file(self._filled("audio", files.path), StimulusError)
        if self.options.words == EVENTS:
            words, findings = self._words_of_events(stimulus_id)
        else:
            words, findings = self._words_of_table(files, stimulus_id)
        return Stimulus(
            id=stimulus_id,
            words=words,
            where=findings.where,
            findings=tuple(findings),
            **self._audio(sound, "no option 'audio' is given"),
        )

    def _words_of_table(self, files: BidsFiles, stimulus_id: str) -> tuple[pl.DataFrame, Findings]:
        options = self.options
        path = self.folder.file(self._filled("words", files.path), StimulusError)
        table, findings = TextTable(path, StimulusError), Findings(self.folder.where(path))
        story, sentence = options.story_column, options.sentence_column
        needed = [options.word_column, options.onset_column, options.offset_column]
        needed += filter(None, (story, sentence))
        table.require(needed)
        words = labelled_words(
            table.text(options.word_column),
            np.array(table.numbers(options.onset_column)),
            np.array(table.numbers(options.offset_column)),
            stories=table.text(story) if story else [stimulus_id] * table.n_rows,
            sentences=table.cells(sentence) if sentence else None,
            columns={name: table.cells(name) for name in table.columns if name not in needed},
            pause_s=SENTENCE_PAUSE_S,
            findings=findings,
            remedy=_NAME_SENTENCES,
        )
        return words, findings

    def _words_of_events(self, stimulus_id: str) -> tuple[pl.DataFrame, Findings]:
        """Return the words that recordings heard, with the columns of their events."""
        options = self.options
        by_id, shared = self._shared_words(stimulus_id)
        heard = list(by_id.values())
        rows = [(heard[i].events, heard[i].rows[k]) for i, k in shared.origin]
        findings = Findings(self.folder.where(rows[0][0].path))
        zero_s = 0.0
        if options.start_event:
            first = heard[leader(heard)].events
            zero_s = first.start_s(options.start_event, options.event_columns)
        onset_s = shared.onset_s - zero_s
        length_s = np.array([events.duration_s[row] for events, row in rows])
        if unknown := int(np.isnan(length_s).sum()):
            findings.note(
                "duration",
                Reason.SOURCE_VALUES_CORRECTED,
                f"{unknown} word(s) without a duration",
                "a duration for every word",
                "nothing to do: such a word ends where it begins",
            )

        def column(name: str) -> list[str]:
            tables = {one.events.path: one.events.table for one in heard}
            cells = {path: t.cells(name) for path, t in tables.items() if name in t.columns}
            return [cells[e.path][row] if e.path in cells else "n/a" for e, row in rows]

        story, sentence = options.story_column, options.sentence_column
        names = {name for one in heard for name in one.events.table.columns}
        used = {options.word_column, sentence, story, *_EVENT_COLUMNS}
        words = labelled_words(
            shared.words,
            onset_s,
            onset_s + np.nan_to_num(length_s),
            stories=column(story) if story else [stimulus_id] * len(rows),
            sentences=column(sentence) if sentence else None,
            columns={name: column(name) for name in sorted(names - used)},
            pause_s=SENTENCE_PAUSE_S,
            findings=findings,
            remedy=_NAME_SENTENCES,
        )
        return words, findings

    def _paths(self) -> Iterator[Path | None]:
        yield self.folder.file(DESCRIPTION)
        for recording_id, files in self.recordings.items():
            yield from recording_files(self.folder, files.path)
            yield from (files.channels, files.events, files.sidecar)
            if self.options.words != EVENTS:
                yield self.folder.file(self._filled("words", files.path))
            if self.options.audio:
                yield self.folder.file(self._filled("audio", files.path))
            for table in self._electrode_tables(recording_id.subject):
                yield from (table, self._coordinate_system(table))

    def _events(self, files: BidsFiles) -> Events:
        if files.events is None:
            expected = files.path.name.rpartition("_")[0] + "_events.tsv, next to it or further up"
            remedy = "add the file, or give words on the recording's clock (option 'words', no 'start_event')"
            raise invalid(files.path, "no events.tsv", expected, remedy=remedy)
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

    def _heard_onsets(self, recording_id: RecordingId, findings: Findings) -> FloatArray:
        heard, shared = self._shared_words(recording_id.stimulus)
        onsets_s = place_words(heard[recording_id], shared)
        lost = np.flatnonzero(np.isnan(onsets_s))
        if lost.size:
            findings.note(
                "events.tsv",
                Reason.TRIGGERS_DROPPED,
                f"{lost.size} of {len(shared.words)} words have no event here; the first is word {lost[0]}, "
                f"{shared.words[lost[0]]!r}",
                "an event for every word that other recordings of the stimulus have",
                "nothing to do: the words have no time in this recording, and are left out of it",
            )
        return onsets_s

    def _synced_onsets(self, recording_id: RecordingId, files: BidsFiles, findings: Findings) -> FloatArray:
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
        findings += clock.findings(findings.where)
        words = self.stimulus(recording_id.stimulus).words
        return clock.to_recording(words["onset_s"].to_numpy())
