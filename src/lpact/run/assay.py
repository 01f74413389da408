"""Positive controls of a study: their jobs, and the tables made of them. No verdict reads what is made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from lpact.assays import brain_as_model, implant, oracle, profile_order, reliability
from lpact.assays.base import read_profiles, roles
from lpact.config import RunConfig, StudyConfig
from lpact.decide import decide
from lpact.levels.audit_record import RecordingSummary
from lpact.levels.prepare import check_device
from lpact.run.assay_jobs import stimulus_jobs, summarise_stimulus
from lpact.run.inspect import StudyAudit, audit_study
from lpact.run.jobs import Frames
from lpact.run.measure import Nowhere, Tasks, measure_brains, measure_in_memory, run_jobs
from lpact.run.pool import Job, Pool, open_pool
from lpact.run.progress import Reporter
from lpact.run.workspace import Workspace
from lpact.store import concat
from lpact.tables import find_table
from lpact.tables.assay_brain import (
    BRAIN_AS_MODEL,
    BRAIN_AS_MODEL_SUMMARY,
    BRAIN_ORACLE,
    BRAIN_RELIABILITY,
    IMPLANT,
    PROFILE_ORDER,
)
from lpact.tables.assay_stimulus import TABLES as STIMULUS_TABLES
from lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.tables.ceilings import BRAIN_CEILING
from lpact.tables.relational import BRAIN_PATTERNS


@dataclass(frozen=True)
class ImplantJob:
    """One arm of the implanted study: measured and judged as any study is."""

    arm: str

    @property
    def key(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"assay/implant/{self.arm}"

    def run(self, workspace: Workspace) -> Frames:
        """Simulate, measure and judge."""
        config = implant.implant_config(workspace.config, self.arm)
        return {IMPLANT.name: _implanted(config.model_dump_json(), self.arm)}


@lru_cache(maxsize=8)
def _implanted(config_json: str, arm: str) -> pl.DataFrame:
    """Table of one arm; studies with the same settings share it, since nothing else of them enters."""
    config = StudyConfig.model_validate_json(config_json)
    metric = config.readout.primary_metric
    measured = measure_in_memory(config)
    decided = decide(measured, gates=config.gates, primary_metric=metric)
    return implant.summarise(arm, measured, decided, metric)


@dataclass(frozen=True)
class BrainProfilesJob:
    """Brain-as-model and profile order of one dataset, from its measured patterns."""

    dataset: str
    role: str
    recordings: tuple[RecordingSummary, ...]
    patterns: pl.DataFrame
    ceilings: pl.DataFrame

    @property
    def key(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"assay/brain/{self.dataset}"

    def run(self, workspace: Workspace) -> Frames:
        """Compare patterns, in right and in shuffled unit order."""
        brains = read_profiles(self.patterns, self.recordings)
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
                ceilings=self.ceilings,
            ),
            PROFILE_ORDER.name: profile_order.run(config, self.dataset, self.role, brains),
        }


def execute_assay(
    config: StudyConfig,
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
    with open_pool(workspace, workers) as pool:
        measured = measure_brains(audit, Nowhere(), pool, reporter)
        return run_assay(config, audit, measured, Nowhere(), pool, reporter)


def run_assay(
    config: StudyConfig,
    audit: StudyAudit,
    measured: Mapping[str, pl.DataFrame],
    tasks: Tasks,
    pool: Pool,
    reporter: Reporter,
) -> Frames:
    """All positive controls, from measured brain patterns and reliabilities and from the sources."""
    jobs: list[Job] = [
        *(ImplantJob(arm) for arm in implant.ARMS),
        *profile_jobs(audit, measured),
        *stimulus_jobs(config, audit),
    ]
    results = [frames for _, frames in run_jobs(jobs, tasks, pool, reporter, "positive controls")]
    made = _joined(results)
    stimulus = {table.name: made.pop(table.name) for table in STIMULUS_TABLES if table.name in made}
    return {
        **brain_tables(config, measured, made),
        **summarise_stimulus(stimulus, config),
    }


def profile_jobs(audit: StudyAudit, measured: Mapping[str, pl.DataFrame]) -> list[BrainProfilesJob]:
    """One job a dataset, with its measured patterns."""
    role = roles(measured[EVIDENCE_FEASIBILITY.name])
    patterns, ceilings = measured[BRAIN_PATTERNS.name], measured[BRAIN_CEILING.name]
    return [
        BrainProfilesJob(
            name,
            role[name],
            tuple(dataset.recordings),
            patterns.filter(dataset=name),
            ceilings.filter(dataset=name),
        )
        for name, dataset in audit.datasets.items()
    ]


def brain_tables(
    config: StudyConfig, measured: Mapping[str, pl.DataFrame], frames: Frames
) -> Frames:
    """The jobs' tables, and what is made of them and of the reliabilities."""
    role = roles(measured[EVIDENCE_FEASIBILITY.name])
    ceilings = measured[BRAIN_CEILING.name]
    return {
        **frames,
        BRAIN_RELIABILITY.name: reliability.summarise(ceilings, role, config.gates),
        BRAIN_ORACLE.name: oracle.check(frames[BRAIN_AS_MODEL_SUMMARY.name], config.gates),
    }


def _joined(results: Sequence[Frames]) -> Frames:
    """One frame a table."""
    parts: dict[str, list[pl.DataFrame]] = {}
    for frames in results:
        for name, table in frames.items():
            parts.setdefault(name, []).append(table)
    return {name: concat(find_table(name), tables) for name, tables in parts.items()}
