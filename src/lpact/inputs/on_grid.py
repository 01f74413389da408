"""A recording on its event grid: read and preprocessed once, small enough to keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lpact.config import DatasetConfig, PreprocessConfig
from lpact.datasets.base import Dataset, RecordingId, Stimulus
from lpact.datasets.validate import Finding, check_recording
from lpact.grid import EventGrid, Rejection, read_grid
from lpact.preprocess import preprocess


@dataclass(frozen=True)
class OnGrid:
    """What is left of a recording once it has met the words.

    ``grid`` holds all units, ``usable`` the indices of those that can be used; without samples, units or words there
    is no grid. ``findings`` are those of the reader, the preprocessing and the units.
    """

    where: str
    n_samples: int
    sampling_rate_hz: float | None
    n_units: int
    grid: EventGrid | None
    usable: tuple[int, ...]
    findings: tuple[Finding, ...]


Place = Callable[[Dataset, RecordingId, Stimulus, DatasetConfig], OnGrid]


def put_on_grid(
    dataset: Dataset, recording_id: RecordingId, stimulus: Stimulus, entry: DatasetConfig
) -> OnGrid:
    """Read a recording, preprocess it, and take its responses to the words."""
    recording = preprocess(dataset.recording(recording_id), entry.preprocess)
    check_recording(recording)
    shape = recording.signal.values.shape
    grid: EventGrid | None = None
    usable: tuple[int, ...] = ()
    findings = recording.findings
    if 0 not in (*shape[-2:], stimulus.words.height):
        read = read_grid(recording, stimulus, entry.grid, rejection(entry.preprocess))
        grid, usable = read.grid, tuple(read.usable)
        findings = (*findings, *read.findings)
    return OnGrid(
        where=recording.where,
        n_samples=shape[-2],
        sampling_rate_hz=getattr(recording.signal, "sampling_rate_hz", None),
        n_units=len(recording.units.ids),
        grid=grid,
        usable=usable,
        findings=findings,
    )


def rejection(config: PreprocessConfig) -> Rejection:
    """Translate the study's rules for artefacts and gaps for the grid."""
    return Rejection(
        config.artefact_threshold, config.artefact_units, config.missing == "drop_events"
    )
