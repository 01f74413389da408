"""Positive controls: their jobs, and the tables made from them. No verdict reads what is made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import ClassVar

import polars as pl

from lpact.analyses.base import Audit, Frames, Scope, StudyJob, analyses_of
from lpact.analyses.lpact.assays import brain_as_model, implant, reliability
from lpact.analyses.lpact.assays.brain_as_model import profile_order, read_patterns, roles
from lpact.analyses.lpact.assays.signal import kind_of
from lpact.analyses.lpact.assays.stimulus import Place, run_recording, summarise_recordings, unused_recording
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.gates import decide
from lpact.analyses.lpact.jobs import MEASURING, LPactJob
from lpact.analyses.lpact.plan.audit import RecordingSummary
from lpact.analyses.lpact.tables import assay
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY, UNIT_INVENTORY
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, BRAIN_PATTERNS
from lpact.codes import Reason
from lpact.config import RunConfig, SharedConfig, StudyConfig
from lpact.datasets.base import RecordingId
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study, check_device
from lpact.run.conductor import Conductor, Measuring
from lpact.run.executors.local import open_executor, scratch_results
from lpact.run.progress import Reporter
from lpact.store import Results, concat
from lpact.tables import Table

JUDGING = (
    *MEASURING,
    "analyses/lpact/analysis.py",
    "analyses/lpact/assays",
    "analyses/lpact/gates",
    "analyses/lpact/plan/audit.py",
    "analyses/lpact/plan/media.py",
    "analyses/lpact/plan/stages.py",
    "analyses/lpact/tables",
    "run/audit.py",
    "run/conductor.py",
)
"""Code that a positive control may run: the implanted study is measured and judged as any other."""


@dataclass(frozen=True)
class StimulusJob(LPactJob):
    """Low-level gates, envelope and proxies of one recording; ``reason`` says why the audit does not use it."""

    kind = "controls/stimulus"
    code: ClassVar[tuple[str, ...]] = JUDGING
    without = ("name", "lpact.gates")

    recording: RecordingId
    sampling: str
    reason: Reason

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
        return Place(config, entry, self.recording, self.sampling)


def stimulus_jobs(config: LPactConfig, audit: Audit) -> list[StimulusJob]:
    """One job for every recording of the study, used or not, in order."""
    entries = {entry.name: entry for entry in config.datasets}
    jobs = []
    rows = audit.tables[UNIT_INVENTORY.name].sort(UNIT_INVENTORY.key)
    for row in rows.iter_rows(named=True):
        recording = RecordingId(row["subject"], row["session"], row["run"], row["stimulus"])
        kind = kind_of(row["sampling_rate_hz"], entries[row["dataset"]])
        jobs.append(StimulusJob(row["dataset"], recording, kind, Reason(row["reason"])))
    return jobs


@dataclass(frozen=True)
class ImplantJob:
    """One arm of the implanted study: measured and judged as any ``study``, its configuration as JSON."""

    code: ClassVar[tuple[str, ...]] = JUDGING
    needs: ClassVar[tuple[str, ...]] = ()

    arm: str
    study: str

    @classmethod
    def of(cls, config: LPactConfig, arm: str) -> ImplantJob:
        """The job of one arm for a study."""
        return cls(arm, implant.implant_config(config, arm).model_dump_json())

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"lpact/controls/implant/{self.arm}"

    @property
    def scope(self) -> Scope:
        """Nothing of the study that it belongs to."""
        shared = SharedConfig.model_fields.keys() - {"datasets", "models"}
        return Scope(None, without=(*sorted(shared), "lpact"))

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Simulate, measure and judge."""
        return {assay.IMPLANT.name: _implanted(self.study, self.arm)}


@lru_cache(maxsize=8)
def _implanted(config_json: str, arm: str) -> pl.DataFrame:
    """Table of one arm; studies with the same settings share it, since nothing else of them enters."""
    from lpact.analyses.lpact.plan.stages import measure_levels

    config = LPactConfig.model_validate_json(config_json)
    metric = config.readout.primary_metric
    measured = measure_levels(config)
    decided = decide(measured, gates=config.gates, primary_metric=metric)
    return implant.summarise_arm(arm, measured, decided, metric)


@dataclass(frozen=True)
class BrainAsModelJob(LPactJob):
    """Brain-as-model and profile order of one dataset; ``patterns`` and ``ceilings`` are keys of measured results."""

    kind = "controls/brain"
    code: ClassVar[tuple[str, ...]] = JUDGING
    without = ("name",)

    role: str
    recordings: tuple[RecordingSummary, ...]
    patterns: tuple[str, ...]
    ceilings: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of patterns and reliabilities."""
        return (*self.patterns, *self.ceilings)

    def run(self, workspace: Workspace, results: Results) -> Frames:
        """Compare patterns, in right and in shuffled unit order."""
        patterns = _read(results, self.patterns, BRAIN_PATTERNS)
        brains = read_patterns(patterns, self.recordings)
        config = LPactConfig.of(workspace.config)
        rows = brain_as_model.compare_brains(config, self.dataset, brains)
        summaries = brain_as_model.summarise_comparisons(
            config,
            self.dataset,
            self.role,
            self.recordings,
            rows=rows,
            tests=brain_as_model.unit_order_tests(config, self.dataset, brains),
            ceilings=_read(results, self.ceilings, BRAIN_CEILING),
        )
        return {
            assay.BRAIN_AS_MODEL.name: rows,
            assay.BRAIN_AS_MODEL_SUMMARY.name: summaries,
            assay.PROFILE_ORDER.name: profile_order(config, self.dataset, self.role, brains),
        }


def _read(results: Results, keys: Sequence[str], table: Table) -> pl.DataFrame:
    """One table from the results of several tasks."""
    parts = (results.load(key, [table.name])[table.name] for key in keys)
    return concat(table.measured(), parts)


def measure_controls(
    study: StudyConfig,
    *,
    settings: RunConfig,
    workers: int,
    reporter: Reporter,
    audit: StudyAudit | None = None,
) -> Frames:
    """Positive controls alone, from brains and stimuli; nothing is written."""
    from lpact.analyses.lpact.plan.stages import BRAINS, CEILINGS, CONTROLS

    enabled = LPactConfig.of(study).assay.model_copy(update={"enabled": True})
    own = study.analyses["lpact"].model_copy(update={"assay": enabled})
    study = study.model_copy(update={"analyses": {"lpact": own}})
    check_device(study)
    workspace = Workspace(study, settings)
    if audit is None:
        audit = audit_study(workspace, reporter)
    else:
        workspace.hold(audit.seen, audit.fingerprints)
    analysis = analyses_of(study)["lpact"]
    measuring = Measuring(study, audit, analysis, stages=(BRAINS, CEILINGS, CONTROLS))
    with scratch_results() as results, open_executor(workspace, results, workers) as executor:
        conductor = Conductor(results, executor, reporter)
        measuring.run(conductor)
        conductor.check()
        tables = measuring.tables(results)
        return {table.name: tables[table.name] for table in assay.TABLES}


def control_jobs(
    config: LPactConfig,
    audit: Audit,
    brains: Mapping[str, Mapping[RecordingId, str]],
    ceilings: Mapping[str, str],
) -> list[StudyJob]:
    """Jobs of all positive controls; ``brains`` and ``ceilings`` are keys of the tasks that measure them."""
    role = roles(audit.tables[EVIDENCE_FEASIBILITY.name])
    jobs: list[StudyJob] = [ImplantJob.of(config, arm) for arm in implant.ARMS]
    for name, dataset in audit.detail.items():
        keys = (tuple(brains[name].values()), (ceilings[name],) if name in ceilings else ())
        jobs.append(BrainAsModelJob(name, role[name], tuple(dataset.recordings), *keys))
    return [*jobs, *stimulus_jobs(config, audit)]


def derived_tables(config: LPactConfig, tables: Mapping[str, pl.DataFrame]) -> dict[str, Callable[[], pl.DataFrame]]:
    """Summaries over all jobs, by table, each made when it is read."""
    of_jobs = (assay.LOW_LEVEL, assay.ENVELOPE_STANDALONE, assay.ENVELOPE_FULL, assay.PROXY)
    stimulus = cache(lambda: summarise_recordings({t.name: tables[t.name] for t in of_jobs}, config))

    def summary(name: str) -> Callable[[], pl.DataFrame]:
        return lambda: stimulus()[name]

    return {
        assay.BRAIN_RELIABILITY.name: lambda: reliability.summarise_reliability(
            tables[BRAIN_CEILING.name], roles(tables[EVIDENCE_FEASIBILITY.name]), config.gates
        ),
        assay.BRAIN_ORACLE.name: lambda: brain_as_model.oracle(tables[assay.BRAIN_AS_MODEL_SUMMARY.name], config.gates),
        **{table.name: summary(table.name) for table in assay.STIMULUS_TABLES},
    }
