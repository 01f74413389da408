"""MEG-MASC: MEG of people who listened to four stories, twice (Gwilliams et al., 2023).

::

    dataset_description.json                                optional: name, version, licence
    participants.tsv                                        optional: no subject may be listed twice
    sub-XX/ses-{0,1}/meg/
        sub-XX_ses-Y_task-Z_meg.con                         KIT recording, 208 sensors, 1,000 Hz
        sub-XX_ses-Y_task-Z_events.tsv                      onset, duration, trial_type, value, sample
        sub-XX_ses-Y_task-Z_meg.json                        optional: SamplingFrequency must agree with the recording
        sub-XX_ses-Y_task-Z_channels.tsv                    optional: channels with the status 'bad' are left out
    stimuli/audio/<story>_<number>.wav                      optional: the sounds

The folder itself, or ``bids_anonym`` in it, holds these. ``trial_type`` is a Python literal. A task is a story: the
stimulus id is the story's name in lower case, and all recordings of a story share one stimulus, whose clock is that of
the story's first recording. Every recording has the word times of its own events.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._bids import (
    check_participants,
    check_sampling_rate,
    read_channels,
    read_description,
)
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import read_json
from lpact.datasets._mne.channels import channel_places, pick_channels, place_findings
from lpact.datasets._mne.series import RawSeries, open_raw
from lpact.datasets.base import (
    AbsentMedium,
    Dataset,
    DatasetInfo,
    DatasetReader,
    Envelope,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
    TimeSeries,
    Units,
)
from lpact.datasets.catalogue import Download, Expected
from lpact.datasets.meg_masc.audio import AUDIO, sound_files, story_envelope
from lpact.datasets.meg_masc.con import read_con_header
from lpact.datasets.meg_masc.events import RecordingEvents, read_events
from lpact.datasets.meg_masc.layout import (
    MEG_FOLDERS,
    RecordingFiles,
    find_recordings,
    spelling_notes,
    unknown_channels_note,
    unread_note,
)
from lpact.datasets.meg_masc.words import StoryWords, story_words, timing_findings
from lpact.datasets.validate import check_recording, check_stimulus
from lpact.errors import InputError, RecordingError, StimulusError, did_you_mean
from lpact.registry import PluginOptions

Condition = Literal["sentence", "word_list", "pseudo_words"]

CITATION = (
    "Gwilliams, L., Flick, G., Marantz, A., Pylkkänen, L., Poeppel, D., & King, J.-R. (2023). Introducing MEG-MASC: a "
    "high-quality magneto-encephalography dataset for evaluating natural speech processing. Scientific Data, 10, 862."
)
INSIDE = "bids_anonym"
_KIT_OPTIONS = {"stim": None}
_INFO = DatasetInfo(source="MEG-MASC (https://osf.io/ag3kj)", version="2023", licence="CC0 1.0")


class MegMascOptions(PluginOptions):
    """Options of `meg_masc`."""

    conditions: Annotated[tuple[Condition, ...], Field(min_length=1)] = Field(
        ("sentence",),
        description="Conditions whose words are kept: `sentence` (the stories), `word_list` (words in random order), "
        "`pseudo_words`. Words of the others are left out, and told.",
    )
    subjects: tuple[str, ...] = Field(
        (), description="Subjects to read, such as `01`; none: all that are in the folder."
    )
    envelope_rate_hz: float = Field(
        100.0, gt=0, description="Sampling rate of the acoustic envelope made of a story's sounds."
    )
    envelope_lowpass_hz: float = Field(
        10.0, gt=0, description="Cut-off of the low-pass of that envelope."
    )


class MegMascDataset(Dataset):
    """An opened MEG-MASC folder."""

    def __init__(self, folder: SourceFolder, options: MegMascOptions) -> None:
        self.info = read_description(folder, _INFO)
        self._folder = folder
        self._options = options
        self._participants = check_participants(folder)
        self._recordings = find_recordings(folder, options.subjects)
        self._events: dict[RecordingId, RecordingEvents] = {}
        self._words: dict[str, StoryWords] = {}
        self._envelopes: dict[str, Envelope] = {}

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self._recordings)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Open one recording; its values are read when they are asked for."""
        files = self._recordings.get(recording_id)
        if files is None:
            raise RecordingError(
                "the folder has no such recording",
                where=str(self._folder.root),
                got=f"{recording_id} with stimulus '{recording_id.stimulus}'",
                expected="one of recording_ids()",
                remedy=did_you_mean(str(recording_id), [str(known) for known in self._recordings]),
            )
        path = self._folder.file(files.con, RecordingError)
        where = self._folder.where(path)
        header = read_con_header(path)
        check_sampling_rate(
            header.sampling_rate_hz, self._folder.optional(files.sidecar, RecordingError), path
        )
        events = self._read_events(recording_id)
        raw = open_raw(self._folder, path, _KIT_OPTIONS).raw
        picks, units, findings = self._units(raw, files, path, where)
        words = self._story(recording_id.stimulus)
        times_s, apart_s = words.times_s(events)
        events_where = self._folder.where(events.path)
        recording = Recording(
            id=recording_id,
            signal=TimeSeries(
                RawSeries(path, picks, options=_KIT_OPTIONS, raw=raw),
                header.sampling_rate_hz,
                physical_unit="T",
            ),
            units=units,
            where=where,
            word_onsets_s=times_s,
            findings=(
                *findings,
                *events.findings,
                *timing_findings(words, events, times_s, apart_s, events_where),
            ),
        )
        check_recording(recording)
        return recording

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Return one story, with the words of all its recordings."""
        stories = {known.stimulus for known in self._recordings}
        if stimulus_id not in stories:
            raise StimulusError(
                "the folder has no such story",
                where=str(self._folder.root),
                got=stimulus_id,
                expected="a story that a recording is of",
                remedy=did_you_mean(stimulus_id, stories),
            )
        words = self._story(stimulus_id)
        files = sound_files(self._folder)
        absent = [sound for sound in words.origins if sound not in files]
        media, media_absent, envelope, start_s = {}, {}, None, 0.0
        if absent:
            media_absent["audio"] = AbsentMedium(
                Reason.MEDIA_NOT_OFFERED,
                f"not in {AUDIO}: {', '.join(f'{sound}.wav' for sound in absent)}; the official release has them",
            )
        else:
            envelope = self._envelope(stimulus_id, words, files)
            media["audio"] = AUDIO
            if len(words.origins) == 1:
                sound, start_s = next(iter(words.origins.items()))
                media["audio"] = self._folder.relative(files[sound])
        first = self._folder.file(self._recordings[self._of(stimulus_id)[0]].events)
        stimulus = Stimulus(
            id=stimulus_id,
            words=words.table,
            where=self._folder.where(first),
            envelope=envelope,
            media=media,
            media_root=self._folder.root,
            audio_start_s=start_s,
            media_absent=media_absent,
            findings=words.findings,
        )
        check_stimulus(stimulus)
        return stimulus

    def source_files(self) -> list[SourceFile]:
        """Return every file that is read, with its checksum."""
        description = self._folder.optional("dataset_description.json")
        paths = [path for path in (self._participants, description) if path is not None]
        for files in self._recordings.values():
            for relative in (files.con, files.events, files.sidecar, files.channels):
                path = self._folder.optional(relative)
                if path is not None:
                    paths.append(path)
        stories = tuple(f"{known.stimulus}_" for known in self._recordings)
        paths += [
            path for sound, path in sound_files(self._folder).items() if sound.startswith(stories)
        ]
        return self._folder.source_files(paths, self.info.licence)

    def _of(self, story: str) -> list[RecordingId]:
        return [known for known in self.recording_ids() if known.stimulus == story]

    def _read_events(self, recording_id: RecordingId) -> RecordingEvents:
        if recording_id not in self._events:
            files = self._recordings[recording_id]
            path = self._folder.file(files.events, RecordingError)
            self._events[recording_id] = read_events(
                path, self._folder.where(path), self._rate_hz(files)
            )
        return self._events[recording_id]

    def _rate_hz(self, files: RecordingFiles) -> float | None:
        """Return the recording's sampling rate; where the recording is missing or torn, that of its sidecar."""
        path = self._folder.optional(files.con, RecordingError)
        if path is not None:
            try:
                return read_con_header(path).sampling_rate_hz
            except RecordingError:
                pass  # `recording` raises it
        sidecar = self._folder.optional(files.sidecar, RecordingError)
        rate_hz = read_json(sidecar, RecordingError).get("SamplingFrequency") if sidecar else None
        return float(rate_hz) if isinstance(rate_hz, int | float) and rate_hz > 0 else None

    def _story(self, story: str) -> StoryWords:
        if story not in self._words:
            known: dict[str, RecordingEvents] = {}
            notes: list[Finding] = []
            problems: list[InputError] = []
            for recording_id in self._of(story):
                try:
                    known[str(recording_id)] = self._read_events(recording_id)
                except InputError as problem:
                    problems.append(problem)
                    where = (
                        f"dataset '{self._folder.name}', {self._recordings[recording_id].events}"
                    )
                    notes.append(unread_note(recording_id, problem, where))
            if not known:
                raise problems[0]
            first = next(iter(known.values()))
            where = self._folder.where(first.path)
            words = story_words(story, known, self._options.conditions, where)
            notes = [*spelling_notes(story, known, where), *notes, *words.findings]
            self._words[story] = StoryWords(words.table, words.rows, words.origins, tuple(notes))
        return self._words[story]

    def _envelope(self, story: str, words: StoryWords, files: dict[str, Path]) -> Envelope:
        if story not in self._envelopes:
            self._envelopes[story] = story_envelope(
                files,
                words.origins,
                rate_hz=self._options.envelope_rate_hz,
                lowpass_hz=self._options.envelope_lowpass_hz,
            )
        return self._envelopes[story]

    def _units(
        self, raw: object, files: RecordingFiles, path: Path, where: str
    ) -> tuple[list[int], Units, list[Finding]]:
        names, types = list(raw.ch_names), list(raw.get_channel_types())  # type: ignore[attr-defined]
        table = self._folder.optional(files.channels, RecordingError)
        bad, notes = {}, []
        if table is not None:
            listed = read_channels(table)
            bad = listed.bad
            unknown = [name for name in listed.bad if name not in names]
            if unknown:
                notes.append(unknown_channels_note(unknown, self._folder.where(table)))
        picks, findings = pick_channels(
            names, types, wanted=("mag", "grad"), bad=bad, where=where, path=path
        )
        places, frame = channel_places(raw, picks)
        ids = tuple(names[pick] for pick in picks)
        units = Units(ids, ("unknown",) * len(ids), places, frame)
        return picks, units, [*findings, *notes, *place_findings(ids, places, where)]


class MegMasc(DatasetReader):
    """MEG-MASC; the module's docstring describes the layout."""

    name = "meg_masc"
    summary = "MEG-MASC: 27 people listen to four stories in two sessions (KIT MEG, 208 sensors)"
    Options = MegMascOptions
    role = "primary"
    extra = "meeg"
    layout: ClassVar[tuple[Expected, ...]] = (
        Expected("recordings", (f"{MEG_FOLDERS}*_meg.con", f"{INSIDE}/{MEG_FOLDERS}*_meg.con")),
        Expected("events", (f"{MEG_FOLDERS}*_events.tsv", f"{INSIDE}/{MEG_FOLDERS}*_events.tsv")),
        Expected(
            "sidecars",
            (f"{MEG_FOLDERS}*_meg.json", f"{INSIDE}/{MEG_FOLDERS}*_meg.json"),
            needed=False,
        ),
        Expected(
            "tables of channels",
            (f"{MEG_FOLDERS}*_channels.tsv", f"{INSIDE}/{MEG_FOLDERS}*_channels.tsv"),
            needed=False,
        ),
        Expected("participants", ("participants.tsv", f"{INSIDE}/participants.tsv"), needed=False),
        Expected(
            "description",
            ("dataset_description.json", f"{INSIDE}/dataset_description.json"),
            needed=False,
        ),
        Expected("sounds", (f"{AUDIO}/*.wav", f"{INSIDE}/{AUDIO}/*.wav"), needed=False),
    )
    download = Download(
        method="manual",
        identifier="ag3kj",
        version="2023",
        size="roughly 80 GB",
        licence="CC0 1.0",
        homepage="https://osf.io/ag3kj/",
        steps=(
            "Download the OSF projects ag3kj, h2tzn and u5327: together they are the dataset.",
            "Merge their files into one folder: participants.tsv, stimuli/ and all sub-* beside one another.",
        ),
        citation=CITATION,
    )

    def open(self, *, name: str, path: Path | None, seed: int) -> MegMascDataset:  # noqa: ARG002
        """Open the folder ``path``."""
        expected = "the folder of MEG-MASC, with sub-* (or bids_anonym/sub-*)"
        folder = SourceFolder(path, name=name, expected=expected)
        inside = folder.optional(INSIDE)
        if inside is not None and not folder.glob("sub-*"):
            folder = SourceFolder(inside, name=name, expected=expected)
        return MegMascDataset(folder, cast(MegMascOptions, self.options))
