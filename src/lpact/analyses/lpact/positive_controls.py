"""Positive controls of a study: their jobs, and the tables made of them. No verdict reads what is made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import polars as pl

from lpact.analyses.base import Frames, Scope, StudyJob, Task
from lpact.analyses.lpact.assays import brain_as_model, implant, oracle, profile_order, reliability
from lpact.analyses.lpact.assays.base import read_profiles, roles
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.gates import decide
from lpact.analyses.lpact.levels.audit_record import RecordingSummary
from lpact.analyses.lpact.stimulus_controls import stimulus_jobs, summarise_stimulus
from lpact.analyses.lpact.tables.assay_brain import (
    BRAIN_AS_MODEL,
    BRAIN_AS_MODEL_SUMMARY,
    BRAIN_ORACLE,
    BRAIN_RELIABILITY,
    IMPLANT,
    PROFILE_ORDER,
)
from lpact.analyses.lpact.tables.assay_stimulus import TABLES as STIMULUS_TABLES
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.ceilings import BRAIN_CEILING
from lpact.analyses.lpact.tables.relational import BRAIN_PATTERNS
from lpact.config import RunConfig
from lpact.inputs.prepare import check_device
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study
from lpact.run.conduct import Conductor, Watched
from lpact.run.executors.choose import open_executor, scratch_results
from lpact.run.journal.progress import Reporter
from lpact.run.measure import Measured, joined, measure_brains, measure_in_memory
from lpact.run.stages import CONTROLS
from lpact.store import Results, concat
from lpact.store.code import JUDGING
from lpact.tables import Table, find_table


@dataclass(frozen=True)
class ImplantJob:
    """One arm of the implanted study: measured and judged as any study is.

    ``study`` is that study's configuration as JSON: all that enters.
    """

    code: ClassVar[tuple[str, ...]] = JUDGING
    needs: ClassVar[tuple[str, ...]] = ()

    arm: str
    study: str

    @classmethod
    def of(cls, config: LPactConfig, arm: str) -> ImplantJob:
        """The job of one arm beside a study."""
        return cls(arm, implant.implant_config(config, arm).model_dump_json())

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"assay/implant/{self.arm}"

    @property
    def scope(self) -> Scope:
        """Nothing of the study beside it."""
        return Scope(None, without=tuple(LPactConfig.model_fields.keys() - {"datasets", "models"}))

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Simulate, measure and judge."""
        return {IMPLANT.name: _implanted(self.study, self.arm)}


@lru_cache(maxsize=8)
def _implanted(config_json: str, arm: str) -> pl.DataFrame:
    """Table of one arm; studies with the same settings share it, since nothing else of them enters."""
    config = LPactConfig.model_validate_json(config_json)
    metric = config.readout.primary_metric
    measured = measure_in_memory(config)
    decided = decide(measured, gates=config.gates, primary_metric=metric)
    return implant.summarise(arm, measured, decided, metric)


@dataclass(frozen=True)
class BrainProfilesJob:
    """Brain-as-model and profile order of one dataset, from its measured patterns and reliabilities.

    ``brains`` and ``ceilings`` are keys of the tasks that measured them.
    """

    code: ClassVar[tuple[str, ...]] = JUDGING

    dataset: str
    role: str
    recordings: tuple[RecordingSummary, ...]
    brains: tuple[str, ...]
    ceilings: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"assay/brain/{self.dataset}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of patterns and reliabilities."""
        return (*self.brains, *self.ceilings)

    @property
    def scope(self) -> Scope:
        """The dataset and all that is decided about it, without any model."""
        return Scope(self.dataset, without=("name",))

    def run(self, workspace: Workspace, results: Results) -> Frames:
        """Compare patterns, in right and in shuffled unit order."""
        patterns = _read(results, self.brains, BRAIN_PATTERNS)
        brains = read_profiles(patterns, self.recordings)
        config = workspace.config
        rows = brain_as_model.run(config, self.dataset, brains)
        return {
            BRAIN_AS_MODEL.name: rows,
            BRAIN_AS_MODEL_SUMMARY.name: brain_as_model.summarise(
                config,
                self.dataset,
                self.role,
                self.recordings,
                rows=rows,
                tests=brain_as_model.tests_of_order(config, self.dataset, brains),
                ceilings=_read(results, self.ceilings, BRAIN_CEILING),
            ),
            PROFILE_ORDER.name: profile_order.run(config, self.dataset, self.role, brains),
        }


def _read(results: Results, keys: Sequence[str], table: Table) -> pl.DataFrame:
    """One table from the results of several tasks."""
    parts = (results.load(key, [table.name])[table.name] for key in keys)
    return concat(table.measured(), parts)


def execute_assay(
    config: LPactConfig,
    *,
    settings: RunConfig,
    workers: int,
    reporter: Reporter,
    audit: StudyAudit | None = None,
) -> Frames:
    """Positive controls alone: brains and stimuli are measured, models are not looked at."""
    check_device(config.readout)
    workspace = Workspace(config, settings)
    if audit is None:
        audit = audit_study(workspace, reporter)
    else:
        workspace.hold(audit.seen, audit.fingerprints)
    with scratch_results() as results, open_executor(workspace, results, workers) as executor:
        conductor = Conductor(results, executor, Watched(reporter))
        measured = measure_brains(config, audit, conductor)
        return run_assay(measured)


def run_assay(measured: Measured) -> Frames:
    """All positive controls, from measured brain patterns and reliabilities and from the sources."""
    config, conductor = measured.config, measured.conductor
    tasks = control_tasks(measured)
    conductor.run(CONTROLS, tasks)
    conductor.check()
    made = {
        name: concat(find_table(name), tables)
        for name, tables in joined(conductor.results, tasks).items()
    }
    stimulus = {table.name: made.pop(table.name) for table in STIMULUS_TABLES if table.name in made}
    return {
        **brain_tables(config, measured.tables, made),
        **summarise_stimulus(stimulus, config),
    }


def control_tasks(measured: Measured) -> list[Task]:
    """Tasks of all positive controls; keys of what they need are enough."""
    jobs: list[StudyJob] = [
        *(ImplantJob.of(measured.config, arm) for arm in implant.ARMS),
        *profile_jobs(measured),
        *stimulus_jobs(measured.config, measured.audit),
    ]
    return measured.keys.tasks(jobs)


def profile_jobs(measured: Measured) -> list[BrainProfilesJob]:
    """One job a dataset, on the results of its brain patterns and reliabilities."""
    audit = measured.audit
    role = roles(audit.tables[EVIDENCE_FEASIBILITY.name])
    return [
        BrainProfilesJob(
            name,
            role[name],
            tuple(dataset.recordings),
            tuple(measured.brains[name].values()),
            tuple(key for own, key in measured.ceilings.items() if own == name),
        )
        for name, dataset in audit.datasets.items()
    ]


def brain_tables(
    config: LPactConfig, measured: Mapping[str, pl.DataFrame], frames: Frames
) -> Frames:
    """The jobs' tables, and what is made of them and of the reliabilities."""
    role = roles(measured[EVIDENCE_FEASIBILITY.name])
    ceilings = measured[BRAIN_CEILING.name]
    return {
        **frames,
        BRAIN_RELIABILITY.name: reliability.summarise(ceilings, role, config.gates),
        BRAIN_ORACLE.name: oracle.check(frames[BRAIN_AS_MODEL_SUMMARY.name], config.gates),
    }
