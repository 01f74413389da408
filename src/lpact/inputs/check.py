"""A dataset's folder before any study: what it contains, what is wrong, and how many events it has.

A quick check opens headers and tables, and no signal. A deep check puts every recording on the event grid, with the
checks of the source audit. Problems are collected; none hides the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lpact.codes import Reason
from lpact.config import DatasetConfig, GridConfig, ReadoutConfig, Role, SharedConfig
from lpact.datasets.base import (
    DATASETS,
    Dataset,
    DatasetInfo,
    Epochs,
    Finding,
    Findings,
    Recording,
    RecordingId,
    Stimulus,
)
from lpact.datasets.catalogue import Part, find_instead, find_parts
from lpact.datasets.validate import check_recording, check_recording_ids, check_stimulus, check_word_onsets
from lpact.errors import InputError, LPactError
from lpact.features.parsing import read_parse
from lpact.grid.candidates import usable_events
from lpact.grid.words import slices, story_codes, times_s
from lpact.inputs.media import StimulusMedia, media_of
from lpact.inputs.prepare import inspect, make_folds
from lpact.math.types import FloatArray, IntArray

SLOW_HZ = 2.0
"""Below this rate a sample is a volume, and events are TRs."""
MAX_BEYOND_END = 0.1
"""Share of a stimulus' words that may begin after the recording's end without a note."""

T = TypeVar("T")
Each = Callable[[Sequence[RecordingId]], Iterable[RecordingId]]


@dataclass(frozen=True, eq=False)
class Events:
    """Rows of a recording's grid, [n_events] each: ``first_word`` and ``onset_s`` are those of the stimulus."""

    first_word: IntArray
    onset_s: FloatArray
    sentence: IntArray
    story: IntArray

    @cached_property
    def keys(self) -> frozenset[tuple[int, float]]:
        """What identifies an event of a stimulus in any recording."""
        return frozenset(zip(self.first_word.tolist(), self.onset_s.tolist(), strict=True))


@dataclass(frozen=True)
class RecordingCheck:
    """One recording. ``n_events`` are those that the default grid keeps, before artefacts unless the check is deep.

    ``reason`` is ``ok``, or why no readout can use it; a quick check knows nothing of bad units. ``duration_s`` is that
    of the signal, None for epochs; ``last_word_s`` is the last word's onset after the signal's first sample, None if no
    word has a time.
    """

    id: RecordingId
    where: str
    sampling_rate_hz: float | None
    physical_unit: str
    n_samples: int
    duration_s: float | None
    last_word_s: float | None
    unit_ids: tuple[str, ...]
    comparable: bool
    n_regions: int
    n_words: int
    n_words_without_time: int
    n_events: int
    reason: Reason
    media: StimulusMedia
    findings: tuple[Finding, ...]
    events: Events = field(repr=False, compare=False)

    @property
    def n_units(self) -> int:
        """Number of brain units."""
        return len(self.unit_ids)


@dataclass
class DatasetCheck:
    """All results of a check; ``deep``: signals were read.

    ``stimuli`` that cannot be read are None. ``findings`` are those of the dataset as a whole, and of stimuli without a
    recording. ``instead`` are folders one level up or down with more of the layout.
    """

    reader: str
    folder: Path | None
    role: Role
    deep: bool
    fetchable: bool
    parts: tuple[Part, ...] = ()
    info: DatasetInfo | None = None
    recordings: list[RecordingCheck] = field(default_factory=list)
    stimuli: dict[str, Stimulus | None] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    problems: list[LPactError] = field(default_factory=list)
    instead: tuple[Path, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether nothing must be fixed first."""
        return not self.problems and not any(part.must_be_fixed for part in self.parts)

    @property
    def usable_recordings(self) -> list[RecordingCheck]:
        """Recordings that a readout can use."""
        return [recording for recording in self.recordings if recording.reason is Reason.OK]

    def attempt(self, action: Callable[..., T], *args: Any) -> T | None:
        """The result of ``action``; an error is added to the problems, once, and gives None."""
        try:
            return action(*args)
        except LPactError as error:
            if str(error) not in map(str, self.problems):
                self.problems.append(error)
            return None


def check_dataset(
    name: str,
    folder: Path | None,
    options: Mapping[str, Any] | None = None,
    *,
    deep: bool = False,
    each: Each = iter,
) -> DatasetCheck:
    """Check the folder of a dataset with the reader ``name``; ``each`` may report progress over recordings.

    Raises if there is no such reader or folder, or if an option is not valid.
    """
    reader = DATASETS.build(name, options, where="lpact datasets check")
    found = DatasetCheck(name, folder, reader.role, deep, reader.download is not None)
    if reader.needs_path:
        if folder is None or not folder.is_dir():
            raise InputError(
                "there is no such folder" if folder else "the reader needs a folder",
                where="lpact datasets check",
                got=str(folder) if folder else "none",
                expected=f"the folder of a dataset that the reader '{name}' reads",
                remedy=f"`lpact datasets fetch {name} --to FOLDER` shows how to get it"
                if reader.download
                else "check the path",
            )
        found.parts = tuple(find_parts(folder, reader.layout))
        found.instead = tuple(find_instead(folder, reader.layout)) if found.parts else ()
    dataset = found.attempt(lambda: reader.open(name=name, path=folder, seed=0))
    if dataset is None:
        return found
    found.info = dataset.info
    ids = found.attempt(dataset.recording_ids) or []
    found.attempt(lambda: check_recording_ids(ids, where=f"dataset '{name}'"))
    for recording_id in each(ids):
        stimulus = _stimulus(found, dataset, recording_id.stimulus)
        recording = found.attempt(_check_recording, dataset, recording_id, stimulus, deep)
        found.recordings += [] if recording is None else [recording]
    found.findings += dataset.findings
    for stimulus_id in found.attempt(dataset.stimulus_ids) or []:
        if stimulus_id not in found.stimuli:
            stimulus = _stimulus(found, dataset, stimulus_id)
            found.findings += [] if stimulus is None else stimulus.findings
    evidence = reader.role in ("primary", "secondary")
    if evidence and not found.problems and not found.usable_recordings:
        first = [f"{r.id}: {r.reason.value}, {r.n_events} events" for r in found.recordings[:1]]
        error = InputError(
            "no recording can be used",
            where=str(found.folder or reader.name),
            got="".join(first) or "0 recordings",
            expected="at least one recording with units, words and enough events for the folds",
            remedy="compare the folder with the layout above; see the findings; or study it with fewer folds and lower "
            "minima ([readout])",
        )
        found.problems.append(error)
    return found


def _stimulus(found: DatasetCheck, dataset: Dataset, stimulus_id: str) -> Stimulus | None:
    def read() -> Stimulus:
        stimulus = dataset.stimulus(stimulus_id)
        check_stimulus(stimulus)
        read_parse(stimulus, None)
        return stimulus

    if stimulus_id not in found.stimuli:
        found.stimuli[stimulus_id] = found.attempt(read)
    return found.stimuli[stimulus_id]


def _check_recording(
    dataset: Dataset, recording_id: RecordingId, stimulus: Stimulus | None, deep: bool
) -> RecordingCheck | None:
    """One recording; its header is checked even if its stimulus cannot be read."""
    recording = dataset.recording(recording_id)
    check_recording(recording)
    if stimulus is None:
        return None
    check_word_onsets(recording, stimulus)
    found = _from_header(recording, stimulus)
    return _from_grid(dataset, recording, stimulus, found) if deep else found


def default_grid(recording: Recording, stimulus: Stimulus) -> GridConfig:
    """The grid that suits a recording if no study sets one.

    TRs for slow series, sentences for epochs that are not one per word, words else.
    """
    signal = recording.signal
    if isinstance(signal, Epochs):
        one_per_word = signal.values.shape[1] == stimulus.words.height
        return GridConfig(events="words" if one_per_word else "sentences")
    if signal.sampling_rate_hz < SLOW_HZ and recording.word_onsets_s is None:
        tr_ms = 1000.0 / signal.sampling_rate_hz
        return GridConfig(events="trs", lags_ms=(2 * tr_ms, 3 * tr_ms))
    return GridConfig()


def _from_header(recording: Recording, stimulus: Stimulus) -> RecordingCheck:
    """Facts of header and words; no signal is read."""
    signal, units = recording.signal, recording.units
    onsets = recording.word_onsets_s
    duration_s, word_s = _clocks(recording, stimulus)
    events = _events(recording, stimulus)
    n_events = len(events.first_word)
    reason = Reason.OK
    if 0 in (signal.values.shape[-2], len(units.ids), stimulus.words.height):
        reason = Reason.EMPTY_RUN
    elif isinstance(folds := make_folds(n_events, events.story, ReadoutConfig()), Reason):
        reason = folds
    beyond = _words_beyond_end(recording, stimulus)
    return RecordingCheck(
        id=recording.id,
        where=recording.where,
        sampling_rate_hz=getattr(signal, "sampling_rate_hz", None),
        physical_unit=signal.physical_unit,
        n_samples=int(signal.values.shape[-2]),
        duration_s=duration_s,
        last_word_s=float(word_s.max()) if word_s.size else None,
        unit_ids=units.ids,
        comparable=units.comparable,
        n_regions=len(set(units.regions) - {"unknown"}),
        n_words=stimulus.words.height,
        n_words_without_time=0 if onsets is None else int(np.isnan(onsets).sum()),
        n_events=n_events,
        reason=reason,
        media=media_of(stimulus),
        findings=(*recording.findings, *stimulus.findings, *beyond),
        events=events,
    )


def _events(recording: Recording, stimulus: Stimulus) -> Events:
    """Events whose windows are inside the recording, outside of spans that its source marks as bad."""
    signal, words = recording.signal, stimulus.words
    config = default_grid(recording, stimulus)
    if isinstance(signal, Epochs):
        first_word: IntArray = np.arange(words.height)
        if config.events == "sentences":
            first_word = slices(words, "sentence_id")[0]
        first_word = first_word[: signal.values.shape[1]]
        onset_s = times_s(words)[0][first_word]
    elif words.height:
        found = usable_events(recording, signal, words, config)
        first_word, onset_s = found.first_word, found.onset_s
    else:
        first_word, onset_s = np.zeros(0, dtype=np.int64), np.zeros(0)
    sentence: IntArray = words["sentence_id"].to_numpy()
    return Events(first_word, onset_s, sentence[first_word], story_codes(words)[first_word])


def _from_grid(dataset: Dataset, recording: Recording, stimulus: Stimulus, found: RecordingCheck) -> RecordingCheck:
    """The recording on its grid, with the source audit's checks of every unit."""
    grid = default_grid(recording, stimulus)
    entry = DatasetConfig(name="dataset", reader="folder", grid=grid)
    config = SharedConfig(name="check", datasets=(entry,))
    seen = inspect(dataset, recording.id, name=entry.name, config=config)
    findings = (*seen.findings, *_words_beyond_end(recording, stimulus))
    found = replace(found, n_events=seen.n_events, reason=seen.reason, findings=findings)
    if seen.prepared is None:
        return found
    kept = seen.prepared.grid
    events = Events(kept.first_word, kept.onset_s, kept.sentence, kept.story)
    return replace(found, unit_ids=kept.units.ids, events=events)


def _clocks(recording: Recording, stimulus: Stimulus) -> tuple[float | None, FloatArray]:
    """Duration of the signal, and onsets of the words that have one, both in seconds from its first sample.

    Epochs have no clock: their duration is None, and the words' own times are returned.
    """
    signal = recording.signal
    onset_s = recording.word_onsets_s
    if onset_s is None:
        onset_s = stimulus.words["onset_s"].to_numpy()
    onset_s = onset_s[np.isfinite(onset_s)]
    if isinstance(signal, Epochs):
        return None, onset_s
    return signal.n_samples / signal.sampling_rate_hz, onset_s - signal.start_s


def _words_beyond_end(recording: Recording, stimulus: Stimulus) -> tuple[Finding, ...]:
    """A note if many words begin after the recording's end."""
    signal = recording.signal
    duration_s, word_s = _clocks(recording, stimulus)
    if duration_s is None or isinstance(signal, Epochs):
        return ()
    n_beyond = int((word_s >= duration_s).sum())
    if n_beyond <= MAX_BEYOND_END * word_s.size:
        return ()
    found = f"{n_beyond} of {word_s.size} words begin after the end: the recording has {duration_s:.6g} s at "
    found += f"{signal.sampling_rate_hz:g} Hz and starts at {signal.start_s:g} s of the stimulus, and the last word "
    found += f"begins {word_s.max():.6g} s after its first sample"
    expected = f"at most {MAX_BEYOND_END:.0%} of the words beyond the end"
    remedy = "check the sampling rate first, then where the stimulus starts; nothing is wrong if the recording covers "
    remedy += "only a part of the stimulus"
    findings = Findings(recording.where)
    findings.note("words", Reason.WORDS_OUTSIDE_RECORDING, found, expected, remedy)
    return tuple(findings)
