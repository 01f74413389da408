"""What the positive controls take, timed on stand-ins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lpact.analyses.lpact.assays import brain_as_model, implant, profile_order
from lpact.analyses.lpact.assays.base import BrainProfiles
from lpact.analyses.lpact.assays.signal import EPOCHS
from lpact.analyses.lpact.assays.stimulus import run_recording
from lpact.analyses.lpact.assays.stimulus_rows import Place
from lpact.analyses.lpact.levels.audit_record import DatasetAudit, RecordingSummary
from lpact.analyses.lpact.stimulus_controls import StimulusJob, stimulus_jobs
from lpact.analyses.lpact.tables.assay_brain import IMPLANTED
from lpact.analyses.lpact.tables.audit import UNIT_INVENTORY
from lpact.config import DatasetConfig, StudyConfig
from lpact.datasets.base import (
    Dataset,
    DatasetInfo,
    Epochs,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
    TimeSeries,
    Units,
)
from lpact.inputs.workspace import Workspace
from lpact.math.seeding import keyed_rng
from lpact.run.audit import StudyAudit, audit_study
from lpact.run.journal.progress import Silent
from lpact.run.planning.probes import Probe, clocked, whole_context
from lpact.run.planning.shapes import FEWEST_EVENTS, context_shapes, recording_shape
from lpact.run.planning.stand_in import SECONDS_A_WORD, make_stand_in, make_stimulus

MOST_NUMBERS = 500_000
"""Numbers in the signal of a stand-in; longer ones are taken in proportion."""

MOST_UNITS = 64
"""Units whose patterns are compared in a stand-in; more are taken in proportion to their square."""

MOST_PAIRED = 6
"""Recordings of a stand-in dataset; more are taken in proportion to their pairs."""


@dataclass(frozen=True)
class ControlTimes:
    """Seconds of the positive controls: one arm of the implanted study, patterns of each dataset, all recordings."""

    implant: float
    profiles: tuple[float, ...]
    stimuli: tuple[float, ...]

    @property
    def n_tasks(self) -> int:
        """Pieces of work."""
        return len(implant.ARMS) + len(self.profiles) + len(self.stimuli)

    @property
    def seconds(self) -> float:
        """All of them, with one worker."""
        return len(implant.ARMS) * self.implant + sum(self.profiles) + sum(self.stimuli)

    @property
    def longest(self) -> float:
        """The longest of them."""
        return max((self.implant, *self.profiles, *self.stimuli))


def control_times(config: StudyConfig, audit: StudyAudit) -> ControlTimes:
    """Time one of each kind, and take the others in proportion."""
    return ControlTimes(
        implant_seconds(config),
        tuple(profile_seconds(config, name, d) for name, d in audit.datasets.items()),
        stimulus_seconds(config, audit),
    )


def implant_seconds(config: StudyConfig) -> float:
    """One arm of the implanted study: a recording of noise of its size, and as many as it has."""
    arm = implant.implant_config(config, IMPLANTED)
    options = arm.datasets[0].options
    n_recordings = int(options["n_subjects"]) * int(options["n_runs"])
    entry = arm.datasets[0].model_copy(
        update={"options": {**options, "n_subjects": 1, "n_runs": 1}}
    )
    one = arm.model_copy(update={"datasets": (entry,)})
    audit, looked = clocked(lambda: audit_study(Workspace(one), Silent()), cpu=True)
    shapes = context_shapes(one, audit)
    if not shapes:
        return looked * n_recordings
    probe: Probe = whole_context(one, next(iter(shapes)))
    return n_recordings * (probe.seconds + looked) * ARM_SHARE


ARM_SHARE = 1.15
"""An arm over its recordings: brain patterns, ceilings and the decision come to about so much more."""


def profile_seconds(config: StudyConfig, name: str, dataset: DatasetAudit) -> float:
    """Brain-as-model and profile order of one dataset."""
    recordings = dataset.recordings
    if not recordings:
        return 0.0
    some = recordings[:MOST_PAIRED]
    brains = [_profiles(config, recording) for recording in some]

    def work() -> None:
        brain_as_model.run(config, name, brains)
        brain_as_model.tests_of_order(config, name, brains)
        profile_order.run(config, name, "primary", brains)

    _, seconds = clocked(work, cpu=True)
    return (
        seconds
        * (_n_pairs(config, name, recordings) + len(recordings))
        / (_n_pairs(config, name, some) + len(some))
    )


def _n_pairs(config: StudyConfig, name: str, recordings: Sequence[RecordingSummary]) -> int:
    kinds = brain_as_model.COMPARISONS
    return sum(len(brain_as_model.pairs(config, name, kind, recordings)[0]) for kind in kinds)


def _profiles(config: StudyConfig, recording: RecordingSummary) -> BrainProfiles:
    n = min(MOST_UNITS, len(recording.unit_ids))
    rng = keyed_rng(0, "stand-in profiles", str(recording.id))
    names = config.relational.alignments
    return BrainProfiles(
        recording.id,
        recording.comparable,
        recording.unit_ids[:n],
        {name: rng.standard_normal((n, n)) for name in names},
        {name: rng.uniform(0.2, 0.8, n) for name in names},
    )


@dataclass(frozen=True)
class _Signal:
    """Size of a recording as it is read."""

    n_samples: int
    n_units: int
    n_words: int
    rate_hz: float | None

    @property
    def numbers(self) -> int:
        return max(1, self.n_samples * self.n_units)


def stimulus_seconds(config: StudyConfig, audit: StudyAudit) -> tuple[float, ...]:
    """Low-level gates, envelope and proxies of every recording: one of each dataset is timed."""
    jobs = stimulus_jobs(config, audit)
    sizes = _signals(audit)
    entries = {entry.name: entry for entry in config.datasets}
    rate: dict[str, float] = {}
    seconds = []
    for job in jobs:
        size = sizes[job.dataset, job.recording]
        used = {r.id: r for r in audit.datasets[job.dataset].recordings}.get(job.recording)
        if used is None:
            seconds.append(0.0)
            continue
        if job.dataset not in rate:
            took = _stimulus_probe(config, entries[job.dataset], audit, job, used, size)
            rate[job.dataset] = took / size.numbers
        seconds.append(rate[job.dataset] * size.numbers)
    return tuple(seconds)


def _signals(audit: StudyAudit) -> dict[tuple[str, RecordingId], _Signal]:
    names = ("dataset", "subject", "session", "run", "stimulus")
    sizes = ("n_samples", "n_units", "n_words", "sampling_rate_hz")
    rows = audit.tables[UNIT_INVENTORY.name].select(*names, *sizes).iter_rows()
    return {(row[0], RecordingId(*row[1:5])): _Signal(*row[5:]) for row in rows}


def largest_signal_bytes(audit: StudyAudit) -> int:
    """Bytes of the largest signal of a study, in double precision."""
    return 8 * max((signal.numbers for signal in _signals(audit).values()), default=0)


def _stimulus_probe(
    config: StudyConfig,
    entry: DatasetConfig,
    audit: StudyAudit,
    job: StimulusJob,
    recording: RecordingSummary,
    size: _Signal,
) -> float:
    """Seconds of a recording of noise of the same size, or in proportion to a shorter one."""
    shape = recording_shape(config, audit.datasets[job.dataset], recording)
    part = min(1.0, MOST_NUMBERS / max(size.numbers, shape.n_events * shape.n_targets))
    fewest = FEWEST_EVENTS * shape.n_folds
    few = replace(shape, n_events=min(shape.n_events, max(fewest, round(part * shape.n_events))))
    shorter = replace(
        size,
        n_samples=max(2, round(part * size.n_samples)),
        n_words=max(40, round(part * size.n_words)),
    )
    plain = {
        "channels": (),
        "drop_channels": (),
        "regions": (),
        "reference": "none",
        "confounds": (),
    }
    as_read = entry.model_copy(update={"preprocess": entry.preprocess.model_copy(update=plain)})
    place = Place(config, as_read, job.recording, job.kind)
    prepared = partial(make_stand_in, config, few)
    dataset = _StandInDataset(shorter, job.kind, shape.n_lags)
    _, seconds = clocked(
        lambda: run_recording(place, dataset, lambda: prepared().prepared), cpu=True
    )
    return seconds / part


class _StandInDataset(Dataset):
    """One recording of noise."""

    info = DatasetInfo("a stand-in for planning", "", "")

    def __init__(self, size: _Signal, kind: str, n_lags: int) -> None:
        self._size, self._kind, self._n_lags = size, kind, n_lags

    def recording_ids(self) -> list[RecordingId]:
        return [RecordingId("stand-in", "1", "1", "stand-in")]

    def recording(self, recording_id: RecordingId) -> Recording:
        size = self._size
        rng = np.random.default_rng(0)
        ids = tuple(f"u{i}" for i in range(size.n_units))
        signal: TimeSeries | Epochs
        if self._kind == EPOCHS or size.rate_hz is None:
            values = rng.standard_normal((self._n_lags, size.n_words, size.n_units))
            signal = Epochs(values, tuple(100.0 * i for i in range(self._n_lags)))
        else:
            values = rng.standard_normal((size.n_samples, size.n_units))
            signal = TimeSeries(values, size.rate_hz)
        return Recording(recording_id, signal, Units(ids, ("r",) * size.n_units), "a stand-in")

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Words that end before the signal does."""
        size = self._size
        n_words = size.n_words
        if size.rate_hz is not None:
            seconds = size.n_samples / size.rate_hz
            n_words = max(8, min(n_words, int(seconds / SECONDS_A_WORD) - 4))
        return make_stimulus(stimulus_id, n_words)

    def source_files(self) -> list[SourceFile]:
        return []
