"""MEG-MASC: MEG of people who listened to four stories, twice (Gwilliams et al., 2023).

docs/how-to/datasets/meg_masc.md shows the folder. A task is a story: all its recordings share one stimulus, on the
clock of the first of them, and have the word times of their own events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._bids import DESCRIPTION, read_description
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import invalid
from lpact.datasets._files.wav import wav_envelope
from lpact.datasets._folder_dataset import FolderDataset, check_known, no_audio
from lpact.datasets._mne import open_raw, open_recording
from lpact.datasets.base import Dataset, DatasetInfo, Envelope, Findings, Recording, RecordingId, Stimulus
from lpact.datasets.catalogue import published
from lpact.datasets.meg_masc.events import (
    RecordingEvents,
    StoryWords,
    first_story,
    read_events,
    sound_name,
    story_words,
)
from lpact.errors import InputError, RecordingError
from lpact.registry import PluginOptions

AUDIO = "stimuli/audio"
INSIDE = "bids_anonym"
MEG_FOLDERS = "sub-*/ses-*/meg/"
_KIT_OPTIONS = {"stim": None}
_INFO = DatasetInfo(source="MEG-MASC (https://osf.io/ag3kj)", version="2023", licence="CC0 1.0")
_FILE = re.compile(
    r"sub-(?P<sub>[A-Za-z0-9]+)/ses-(?P<ses>[A-Za-z0-9]+)/meg/"
    r"sub-(?P=sub)_ses-(?P=ses)_task-(?P<task>[A-Za-z0-9]+)_(?:meg\.con|events\.tsv)"
)


class MegMascOptions(PluginOptions):
    """Options of `meg_masc`."""

    conditions: Annotated[tuple[Literal["sentence", "word_list", "pseudo_words"], ...], Field(min_length=1)] = (
        "sentence",
    )
    """Conditions whose words are kept: `sentence` (the stories), `word_list` (words in random order), `pseudo_words`.
    Words of the others are left out, with a finding.
    """
    subjects: tuple[str, ...] = ()
    """Subjects to read, such as `01`; none: all that are in the folder."""
    envelope_rate_hz: float = Field(100.0, gt=0)
    """Sampling rate of the acoustic envelope made of a story's sounds."""
    envelope_lowpass_hz: float = Field(10.0, gt=0)
    """Cut-off of the low-pass of that envelope."""


def sound_files(folder: SourceFolder) -> dict[str, Path]:
    """Return the sound files by the names that events give them, in any case."""
    found = folder.glob(f"{AUDIO}/*")
    return {sound_name(path.name): path for path in found if path.suffix.lower() == ".wav"}


def story_envelope(
    files: Mapping[str, Path], origins: Mapping[str, float], *, rate_hz: float, lowpass_hz: float
) -> Envelope:
    """Return the broadband envelope of all sounds of a story at the times ``k / rate_hz`` of its clock.

    Each sound's envelope has its sample 0 at the sound's origin, and is interpolated linearly to the common times.
    Between sounds it is 0.
    """
    parts = {sound: wav_envelope(files[sound], rate_hz, lowpass_hz) for sound in origins}
    end_s = max(origins[sound] + values.size / rate_hz for sound, values in parts.items())
    times_s = np.arange(int(np.ceil(end_s * rate_hz)) + 1) / rate_hz
    total = np.zeros(times_s.size)
    for sound, values in parts.items():
        own_s = origins[sound] + np.arange(values.size) / rate_hz
        total += np.interp(times_s, own_s, values, left=0.0, right=0.0)
    return Envelope(total, rate_hz)


class MegMasc(FolderDataset[MegMascOptions, str]):
    """MEG-MASC; see docs/how-to/datasets/meg_masc.md."""

    name = "meg_masc"
    summary = "MEG-MASC: 27 people listen to four stories in two sessions (KIT MEG, 208 sensors)"
    Options = MegMascOptions
    contents = "the folder of MEG-MASC, with sub-* (or bids_anonym/sub-*)"
    extra = "meeg"
    layout, download = published("meg_masc")

    def open(self, *, name: str, path: Path | None, seed: int) -> Dataset:
        """Open the folder ``path``, or ``bids_anonym`` in it."""
        folder = SourceFolder(path, name=name, expected=self.contents)
        inside = folder.optional(INSIDE)
        entered = inside if inside is not None and not folder.glob("sub-*") else path
        return super().open(name=name, path=entered, seed=seed)

    def _open(self) -> None:
        self.info = read_description(self.folder, _INFO)
        self._set_recordings(self._find_recordings())
        self._events: dict[RecordingId, RecordingEvents] = {}
        self._words: dict[str, StoryWords] = {}

    def _find_recordings(self) -> Iterator[tuple[RecordingId, str]]:
        folder, subjects = self.folder, self.options.subjects
        stems: dict[str, re.Match[str]] = {}
        for pattern in ("*_meg.con", "*_events.tsv"):
            for path in folder.glob(MEG_FOLDERS + pattern, RecordingError):
                relative = folder.relative(path)
                match = _FILE.fullmatch(relative)
                if match is None:
                    expected = "sub-X/ses-Y/meg/sub-X_ses-Y_task-Z_meg.con, or …_events.tsv"
                    raise invalid(path, relative, expected, InputError, "rename or remove the file")
                stems[relative.rpartition("_")[0]] = match
        if stems:
            known = {match["sub"] for match in stems.values()}
            check_known(subjects, known, option="subjects", folder=folder)
        for stem, match in stems.items():
            if not subjects or match["sub"] in subjects:
                story = first_story(folder.file(f"{stem}_events.tsv", RecordingError))
                yield RecordingId(match["sub"], match["ses"], match["task"], story), stem

    def _recording(self, recording_id: RecordingId, files: str) -> Recording:
        path = self.folder.file(f"{files}_meg.con", RecordingError)
        recording, _ = open_recording(
            self.folder,
            path,
            recording_id,
            wanted=("mag", "grad"),
            comparable=True,
            sidecar=self.folder.optional(f"{files}_meg.json", RecordingError),
            channels=self.folder.optional(f"{files}_channels.tsv", RecordingError),
            complete=False,
            options=_KIT_OPTIONS,
        )
        events, words = self._read_events(recording_id), self._story(recording_id.stimulus)
        timing = Findings(self.folder.where(events.path))
        return replace(
            recording,
            word_onsets_s=words.times_s(events, timing),
            findings=(*recording.findings, *events.findings, *timing),
        )

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        words = self._story(stimulus_id)
        files = sound_files(self.folder)
        absent = [f"{sound}.wav" for sound in words.origins if sound not in files]
        first = self.folder.file(f"{self.recordings[self._of(stimulus_id)[0]]}_events.tsv")
        envelope, start_s = None, 0.0
        if absent:
            detail = f"not in {AUDIO}: {', '.join(absent)}; the official release has them"
            media = no_audio(Reason.MEDIA_NOT_OFFERED, detail)
        else:
            rate_hz, lowpass_hz = self.options.envelope_rate_hz, self.options.envelope_lowpass_hz
            envelope = story_envelope(files, words.origins, rate_hz=rate_hz, lowpass_hz=lowpass_hz)
            media = {"media": {"audio": AUDIO}, "media_root": self.folder.root}
            if len(words.origins) == 1:
                sound, start_s = next(iter(words.origins.items()))
                media = self._audio(files[sound], "")
        return Stimulus(
            id=stimulus_id,
            words=words.table,
            where=self.folder.where(first),
            envelope=envelope,
            audio_start_s=start_s,
            findings=tuple(words.findings),
            **media,
        )

    def _paths(self) -> Iterator[Path | None]:
        yield self.folder.optional(DESCRIPTION)
        for stem in self.recordings.values():
            for ending in ("meg.con", "events.tsv", "meg.json", "channels.tsv"):
                yield self.folder.optional(f"{stem}_{ending}")
        stories = tuple(f"{story}_" for story in self.stimulus_ids())
        for sound, path in sound_files(self.folder).items():
            if sound.startswith(stories):
                yield path

    def _of(self, story: str) -> list[RecordingId]:
        return [known for known in self.recording_ids() if known.stimulus == story]

    def _read_events(self, recording_id: RecordingId) -> RecordingEvents:
        if recording_id not in self._events:
            stem = self.recordings[recording_id]
            path = self.folder.file(f"{stem}_events.tsv", RecordingError)
            where, rate_hz = self.folder.where(path), self._rate_hz(stem)
            self._events[recording_id] = read_events(path, where, rate_hz)
        return self._events[recording_id]

    def _rate_hz(self, stem: str) -> float | None:
        """Return the sampling rate of a recording, None if its file is missing or damaged."""
        try:
            path = self.folder.file(f"{stem}_meg.con", RecordingError)
            return float(open_raw(self.folder, path, _KIT_OPTIONS).info["sfreq"])
        except RecordingError:  # `recording` raises it
            return None

    def _story(self, story: str) -> StoryWords:
        """Return the words of a story from all recordings whose events can be read."""
        if story in self._words:
            return self._words[story]
        known: dict[str, RecordingEvents] = {}
        problems: dict[RecordingId, InputError] = {}
        for recording_id in self._of(story):
            try:
                known[str(recording_id)] = self._read_events(recording_id)
            except InputError as error:
                problems[recording_id] = error
        if not known:
            raise next(iter(problems.values()))
        where = self.folder.where(next(iter(known.values())).path)
        words = story_words(story, known, self.options.conditions, where)
        spellings = sorted({events.spelling for events in known.values()} - {story})
        if spellings:
            found = f"the story is written {', '.join(map(repr, spellings))}"
            remedy = "nothing to do: names of stories are compared in lower case"
            words.findings.note("story", Reason.SOURCE_VALUES_CORRECTED, found, f"'{story}'", remedy)
        for recording_id, problem in problems.items():
            words.findings.note(
                str(recording_id),
                Reason.RECORDING_NOT_READ,
                f"its events are not used for the words of the story: {problem.what}, {problem.got}",
                "events that can be read",
                "fix the file",
            )
        self._words[story] = words
        return words
