"""A dataset's folder before any study: what is there, what is wrong, and which evidence it supports.

A first look opens headers and tables, and no signal. A deep look puts every recording on the event grid, with the
checks of the source audit. Problems are collected; none hides the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.dataset_check.chain import Link, evidence_chain
from lpact.analyses.lpact.dataset_check.looks import Events, StimulusFacts, clocks, words_beyond_end
from lpact.analyses.lpact.dataset_check.support import Level, supported, words_facts
from lpact.analyses.lpact.levels.media import StimulusMedia, media_of
from lpact.codes import Reason
from lpact.config import DatasetConfig, GridConfig, LanguageModelConfig, ReadoutConfig, Role
from lpact.datasets._finding import Finding
from lpact.datasets.base import (
    DATASETS,
    Dataset,
    DatasetInfo,
    DatasetReader,
    Epochs,
    Recording,
    RecordingId,
    Stimulus,
)
from lpact.datasets.catalogue import Part, find_instead, find_parts
from lpact.datasets.validate import (
    check_recording,
    check_recording_ids,
    check_stimulus,
    check_word_onsets,
)
from lpact.errors import InputError, LPactError
from lpact.grid.candidates import candidates
from lpact.grid.own_clock import as_held
from lpact.grid.pace import check_pace
from lpact.grid.responses import without_bad_spans
from lpact.grid.words import slices, story_codes, times_s
from lpact.inputs.prepare import inspect, make_folds
from lpact.math.types import IntArray
from lpact.run.progress import Reporter

SLOW_HZ = 2.0
"""Below this rate a sample is a volume, and events are TRs."""


@dataclass(frozen=True)
class RecordingLook:
    """One recording. ``n_events`` are those that the default grid keeps, before artefacts where the look is not deep.

    ``reason`` is ``ok``, or why it cannot be used at level 1; a look that is not deep knows nothing of bad units.
    ``duration_s`` is that of the signal, None for epochs; ``last_word_s`` is the last word's onset after the signal's
    first sample, None where no word has a time.
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


@dataclass(frozen=True)
class DatasetCheck:
    """All that a check found. ``deep`` says whether signals were read; ``chain`` is B · W · F · S · R · K.

    ``findings`` are those of the dataset as a whole, and of stimuli that no recording belongs to. ``instead`` are
    folders one level up or down that hold more of the layout; ``fetchable`` says that there is an official source.
    """

    reader: str
    folder: Path | None
    role: Role
    deep: bool
    parts: tuple[Part, ...]
    info: DatasetInfo | None
    recordings: tuple[RecordingLook, ...]
    stimuli: tuple[str, ...]
    findings: tuple[Finding, ...]
    chain: tuple[Link, ...]
    levels: tuple[Level, ...]
    problems: tuple[LPactError, ...]
    instead: tuple[Path, ...] = ()
    fetchable: bool = False

    @property
    def usable(self) -> bool:
        """Whether nothing must be fixed first."""
        return not self.problems and not any(part.must_be_fixed for part in self.parts)


@dataclass
class _Look:
    """What is gathered on the way."""

    name: str
    deep: bool
    problems: list[LPactError] = field(default_factory=list)
    recordings: list[RecordingLook] = field(default_factory=list)
    stimuli: dict[str, Stimulus | None] = field(default_factory=dict)
    facts: dict[str, StimulusFacts] = field(default_factory=dict)

    def problem(self, error: LPactError) -> None:
        """Add a problem, once."""
        if str(error) not in {str(known) for known in self.problems}:
            self.problems.append(error)


def check_dataset(
    name: str,
    folder: Path | None,
    options: Mapping[str, Any] | None = None,
    *,
    deep: bool = False,
    reporter: Reporter | None = None,
) -> DatasetCheck:
    """Look at the folder of a dataset with the reader ``name``.

    Raises
    ------
    RegistryError, ConfigError
        If there is no such reader, or if its options are not valid.
    InputError
        If there is no such folder.
    """
    reader = DATASETS.build(name, options, where="lpact datasets check")
    if reader.needs_path and (folder is None or not folder.is_dir()):
        raise InputError(
            "there is no such folder" if folder else "the reader needs a folder",
            where="lpact datasets check",
            got=str(folder) if folder else "none",
            expected=f"the folder of a dataset that the reader '{name}' reads",
            remedy=f"`lpact datasets fetch {name} --to FOLDER` says how to get it"
            if reader.download
            else "check the path",
        )
    parts = tuple(find_parts(folder, reader.layout)) if folder and reader.needs_path else ()
    look = _Look(name, deep)
    dataset = _open(reader, folder, look)
    ids: list[RecordingId] = []
    findings: list[Finding] = []
    if dataset is not None:
        ids = _recording_ids(dataset, look)
        told = reporter or Reporter()
        told.stage("deep look" if deep else "recordings", len(ids))
        for recording_id in ids:
            _look_at(dataset, recording_id, look)
            told.advance()
        findings += dataset.findings
        for stimulus_id in _other_stimuli(dataset, look):
            stimulus = _stimulus(dataset, stimulus_id, look)
            findings += [] if stimulus is None else stimulus.findings
    if dataset is not None and not look.problems and reader.role in ("primary", "secondary"):
        _expect_evidence(reader, folder, look)
    chain = evidence_chain(look.recordings, look.facts)
    return DatasetCheck(
        reader=name,
        folder=folder,
        role=reader.role,
        deep=deep,
        parts=parts,
        info=None if dataset is None else dataset.info,
        recordings=tuple(look.recordings),
        stimuli=tuple(sorted(look.stimuli)),
        findings=tuple(findings),
        chain=chain,
        levels=supported(
            look.recordings,
            look.facts,
            chain,
            reader.role,
            deep=deep,
            unread=_unread(dataset, look),
        ),
        problems=tuple(look.problems),
        instead=tuple(find_instead(folder, reader.layout)) if folder and parts else (),
        fetchable=reader.download is not None,
    )


def _unread(dataset: Dataset | None, look: _Look) -> str:
    """Why words were not looked at; empty where they were, or where there are none."""
    if dataset is None:
        return "not looked at: the folder cannot be opened, see what must be fixed"
    if look.stimuli and not look.facts:
        return "no stimulus can be read, see what must be fixed"
    return ""


def _open(reader: DatasetReader, folder: Path | None, look: _Look) -> Dataset | None:
    try:
        return reader.open(name=look.name, path=folder, seed=0)
    except LPactError as error:
        look.problem(error)
        return None


def _recording_ids(dataset: Dataset, look: _Look) -> list[RecordingId]:
    try:
        ids = dataset.recording_ids()
        check_recording_ids(ids, where=f"dataset '{look.name}'")
    except LPactError as error:
        look.problem(error)
        return []
    return ids


def _other_stimuli(dataset: Dataset, look: _Look) -> list[str]:
    """Stimuli without a recording: all of a dataset of text alone."""
    try:
        return [name for name in dataset.stimulus_ids() if name not in look.stimuli]
    except LPactError as error:
        look.problem(error)
        return []


def _look_at(dataset: Dataset, recording_id: RecordingId, look: _Look) -> None:
    """Add one recording; its stimulus and its header are looked at even if the other is broken."""
    stimulus = _stimulus(dataset, recording_id.stimulus, look)
    try:
        recording = dataset.recording(recording_id)
        check_recording(recording)
        if stimulus is not None:
            check_word_onsets(recording, stimulus)
            found = _summed_up(recording, stimulus)
            if look.deep:
                found = _deepened(dataset, recording, stimulus, found)
            look.recordings.append(found)
    except LPactError as error:
        look.problem(error)


def _stimulus(dataset: Dataset, stimulus_id: str, look: _Look) -> Stimulus | None:
    if stimulus_id not in look.stimuli:
        look.stimuli[stimulus_id] = None
        try:
            stimulus = dataset.stimulus(stimulus_id)
            check_stimulus(stimulus)
            look.facts[stimulus_id] = words_facts(stimulus)
            look.stimuli[stimulus_id] = stimulus
        except LPactError as error:
            look.problem(error)
    return look.stimuli[stimulus_id]


def default_grid(recording: Recording, stimulus: Stimulus) -> GridConfig:
    """The grid that suits a recording when no study says otherwise.

    TRs for slow series, sentences for epochs that are as many as these, words else.
    """
    signal = recording.signal
    if isinstance(signal, Epochs):
        one_a_word = signal.values.shape[1] == stimulus.words.height
        return GridConfig(events="words" if one_a_word else "sentences")
    if signal.sampling_rate_hz < SLOW_HZ and recording.word_onsets_s is None:
        tr_ms = 1000.0 / signal.sampling_rate_hz
        return GridConfig(events="trs", lags_ms=(2 * tr_ms, 3 * tr_ms))
    return GridConfig()


def _summed_up(recording: Recording, stimulus: Stimulus) -> RecordingLook:
    """What header and words tell; no signal is read."""
    signal, units = recording.signal, recording.units
    onsets = recording.word_onsets_s
    duration_s, word_s = clocks(recording, stimulus)
    beyond = words_beyond_end(recording, duration_s, word_s)
    events = _events(recording, stimulus)
    reason = Reason.OK
    if 0 in (signal.values.shape[-2], len(units.ids), stimulus.words.height):
        reason = Reason.EMPTY_RUN
    elif isinstance(folds := make_folds(events.n_events, events.story, ReadoutConfig()), Reason):
        reason = folds
    return RecordingLook(
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
        n_events=events.n_events,
        reason=reason,
        media=media_of(stimulus),
        findings=(*recording.findings, *stimulus.findings, *beyond),
        events=events,
    )


def _events(recording: Recording, stimulus: Stimulus) -> Events:
    """Events whose windows lie in the recording, outside of what its source marks as bad."""
    signal, words = recording.signal, stimulus.words
    config = default_grid(recording, stimulus)
    if isinstance(signal, Epochs):
        first_word: IntArray = np.arange(words.height)
        if config.events == "sentences":
            first_word = slices(words, "sentence_id")[0]
        first_word = first_word[: signal.values.shape[1]]
        onset_s = times_s(words)[0][first_word]
    elif words.height:
        found = candidates(recording, signal, words, config)
        check_pace(recording, signal, found, config)
        found = as_held(found, recording, words)
        stop = found.first_sample + found.n_samples
        covered = ((found.first_sample >= 0) & (stop <= signal.n_samples)).all(axis=0)
        found = without_bad_spans(found.take(np.asarray(covered)), recording.bad_spans, signal)
        first_word, onset_s = found.first_word, found.onset_s
    else:
        first_word, onset_s = np.zeros(0, dtype=np.int64), np.zeros(0)
    sentence: IntArray = words["sentence_id"].to_numpy()
    return Events(first_word, onset_s, sentence[first_word], story_codes(words)[first_word])


def _deepened(
    dataset: Dataset, recording: Recording, stimulus: Stimulus, found: RecordingLook
) -> RecordingLook:
    """The recording on its grid, with the source audit's checks of every unit."""
    grid = default_grid(recording, stimulus)
    entry = DatasetConfig(name="dataset", reader="folder", grid=grid)
    config = LPactConfig(
        name="check",
        datasets=(entry,),
        models=(LanguageModelConfig(name="none", layers=(0,)),),
    )
    seen = inspect(dataset, recording.id, name=entry.name, config=config)
    beyond = words_beyond_end(recording, *clocks(recording, stimulus))
    findings = (*seen.findings, *beyond)
    found = replace(found, n_events=seen.n_events, reason=seen.reason, findings=findings)
    if seen.prepared is None:
        return found
    kept = seen.prepared.grid
    return replace(
        found,
        unit_ids=kept.units.ids,
        events=Events(kept.first_word, kept.onset_s, kept.sentence, kept.story),
    )


def _expect_evidence(reader: DatasetReader, folder: Path | None, look: _Look) -> None:
    """A dataset whose role is evidence must have a recording that can be used."""
    if any(found.reason is Reason.OK for found in look.recordings):
        return
    first = next(iter(look.recordings), None)
    look.problem(
        InputError(
            "no recording can be used" if first else "there is no recording",
            where=str(folder) if folder else reader.name,
            got=f"{first.id}: {first.reason.value}, {first.n_events} events"
            if first
            else "0 recordings",
            expected="at least one recording with units, words and enough events for the folds",
            remedy="see its findings, or study it with fewer folds and lower minima ([readout])"
            if first
            else "compare the folder with the layout above",
        )
    )
