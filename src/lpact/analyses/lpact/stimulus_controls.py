"""Positive controls that use the stimulus: one job a recording, and what all of them say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import polars as pl

from lpact.analyses.base import Audit, Frames, Scope
from lpact.analyses.lpact.assays.envelope import PROXIES
from lpact.analyses.lpact.assays.signal import kind_of
from lpact.analyses.lpact.assays.stimulus import Place, run_recording, summarise, unused_recording
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.jobs import MEASURING
from lpact.analyses.lpact.tables.assay import (
    ENVELOPE_FULL,
    ENVELOPE_STANDALONE,
    LOW_LEVEL,
    PROXY,
)
from lpact.analyses.lpact.tables.audit import UNIT_INVENTORY
from lpact.codes import Reason
from lpact.datasets.base import RecordingId
from lpact.inputs.workspace import Workspace
from lpact.store import Results

JUDGING = (
    *MEASURING,
    "analyses/lpact/analysis.py",
    "analyses/lpact/assays",
    "analyses/lpact/gates",
    "analyses/lpact/positive_controls.py",
    "analyses/lpact/stages.py",
    "analyses/lpact/stimulus_controls.py",
    "run/audit.py",
    "run/measure.py",
    "run/features.py",
)
"""Code that a positive control may run: it may measure and judge studies of its own."""

_REASONS = {reason.value: reason for reason in Reason}


@dataclass(frozen=True)
class StimulusJob:
    """Low-level gates, envelope and proxies of one recording; ``reason`` says why the audit does not use it."""

    code: ClassVar[tuple[str, ...]] = JUDGING
    needs: ClassVar[tuple[str, ...]] = ()

    dataset: str
    recording: RecordingId
    kind: str
    reason: Reason

    @property
    def scope(self) -> Scope:
        """The dataset, without any model."""
        return Scope(self.dataset, without=("name", "lpact.gates"))

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"lpact/controls/stimulus/{self.dataset}/{self.recording}"

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Read the recording once, and compute all of them."""
        place = self.place(LPactConfig.of(workspace.config))
        if self.reason is not Reason.OK:
            return unused_recording(place, self.reason)
        prepared = partial(workspace.prepared, self.dataset, self.recording)
        return run_recording(place, workspace.dataset(self.dataset), prepared)

    def place(self, config: LPactConfig) -> Place:
        """The recording in the study."""
        entry = next(d for d in config.datasets if d.name == self.dataset)
        return Place(config, entry, self.recording, self.kind)


def stimulus_jobs(config: LPactConfig, audit: Audit) -> list[StimulusJob]:
    """One job for every recording of the study, used or not, in order."""
    entries = {entry.name: entry for entry in config.datasets}
    rows = audit.tables[UNIT_INVENTORY.name].sort(UNIT_INVENTORY.key)
    return [
        StimulusJob(
            row["dataset"],
            RecordingId(row["subject"], row["session"], row["run"], row["stimulus"]),
            kind_of(row["sampling_rate_hz"], entries[row["dataset"]]),
            _REASONS[row["reason"]],
        )
        for row in rows.iter_rows(named=True)
    ]


def stimulus_rows(config: LPactConfig, audit: Audit) -> Counter[str]:
    """Rows that the jobs will make, by table."""
    rows: Counter[str] = Counter()
    for job in stimulus_jobs(config, audit):
        windows = job.place(config).windows
        rows[LOW_LEVEL.name] += sum(len(named) for named in windows.values())
        rows[ENVELOPE_STANDALONE.name] += 1
        rows[ENVELOPE_FULL.name] += 1
        rows[PROXY.name] += len(PROXIES)
    return rows


def summarise_stimulus(
    frames: Mapping[str, pl.DataFrame],
    config: LPactConfig,
) -> Frames:
    """Return the jobs' tables, joined before, and their summaries by dataset."""
    return summarise(frames, config)
