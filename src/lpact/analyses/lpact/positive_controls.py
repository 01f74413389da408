"""Positive controls: their jobs, and the tables made from them. No verdict reads what is made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import ClassVar

import polars as pl

from lpact.analyses.base import Audit, Frames, Scope, StudyJob, analyses_of
from lpact.analyses.lpact.assays import brain_as_model, implant, reliability
from lpact.analyses.lpact.assays.patterns import profile_order, read_profiles, roles
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.gates import decide
from lpact.analyses.lpact.levels.audit_record import RecordingSummary
from lpact.analyses.lpact.stimulus_controls import JUDGING, stimulus_jobs, summarise_stimulus
from lpact.analyses.lpact.tables.assay import (
    BRAIN_AS_MODEL,
    BRAIN_AS_MODEL_SUMMARY,
    BRAIN_ORACLE,
    BRAIN_RELIABILITY,
    ENVELOPE_FULL,
    ENVELOPE_STANDALONE,
    IMPLANT,
    LOW_LEVEL,
    PROFILE_ORDER,
    PROXY,
    STIMULUS_TABLES,
    TABLES,
)
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, BRAIN_PATTERNS
from lpact.config import RunConfig, SharedConfig, StudyConfig
from lpact.datasets.base import RecordingId
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study, check_device
from lpact.run.executors.local import open_executor, scratch_results
from lpact.run.measure import Conductor, Measuring
from lpact.run.progress import Reporter
from lpact.store import Results, concat
from lpact.tables import Table

ASSAY_TABLES = TABLES
"""Tables of the positive controls."""

STIMULUS_JOB_TABLES = (LOW_LEVEL, ENVELOPE_STANDALONE, ENVELOPE_FULL, PROXY)
"""Those that jobs fill, one recording each."""


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
        return f"lpact/controls/implant/{self.arm}"

    @property
    def scope(self) -> Scope:
        """Nothing of the study beside it."""
        shared = SharedConfig.model_fields.keys() - {"datasets", "models"}
        return Scope(None, without=(*sorted(shared), "lpact"))

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Simulate, measure and judge."""
        return {IMPLANT.name: _implanted(self.study, self.arm)}


@lru_cache(maxsize=8)
def _implanted(config_json: str, arm: str) -> pl.DataFrame:
    """Table of one arm; studies with the same settings share it, since nothing else of them enters."""
    from lpact.analyses.lpact.stages import measure_levels

    config = LPactConfig.model_validate_json(config_json)
    metric = config.readout.primary_metric
    measured = measure_levels(config)
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
        return f"lpact/controls/brain/{self.dataset}"

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
        config = LPactConfig.of(workspace.config)
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
            PROFILE_ORDER.name: profile_order(config, self.dataset, self.role, brains),
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
    """Positive controls alone, written nowhere: brains and stimuli are measured, models are not looked at."""
    from lpact.analyses.lpact.stages import BRAINS, CEILINGS, CONTROLS

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
        return {table.name: tables[table.name] for table in ASSAY_TABLES}


def control_jobs(
    config: LPactConfig,
    audit: Audit,
    brains: Mapping[str, Mapping[RecordingId, str]],
    ceilings: Mapping[str, str],
) -> list[StudyJob]:
    """Jobs of all positive controls; ``brains`` and ``ceilings`` are keys of the tasks that measure them."""
    role = roles(audit.tables[EVIDENCE_FEASIBILITY.name])
    profiles = [
        BrainProfilesJob(
            name,
            role[name],
            tuple(dataset.recordings),
            tuple(brains[name].values()),
            (ceilings[name],) if name in ceilings else (),
        )
        for name, dataset in audit.detail.items()
    ]
    return [
        *(ImplantJob.of(config, arm) for arm in implant.ARMS),
        *profiles,
        *stimulus_jobs(config, audit),
    ]


def derived_tables(
    config: LPactConfig, tables: Mapping[str, pl.DataFrame]
) -> dict[str, Callable[[], pl.DataFrame]]:
    """Summaries over all jobs, by table; each is made when it is asked for."""

    @cache
    def stimulus() -> Frames:
        return summarise_stimulus(
            {table.name: tables[table.name] for table in STIMULUS_JOB_TABLES}, config
        )

    def reliabilities() -> pl.DataFrame:
        role = roles(tables[EVIDENCE_FEASIBILITY.name])
        return reliability.summarise(tables[BRAIN_CEILING.name], role, config.gates)

    def oracles() -> pl.DataFrame:
        return brain_as_model.oracle(tables[BRAIN_AS_MODEL_SUMMARY.name], config.gates)

    def summary(name: str) -> Callable[[], pl.DataFrame]:
        return lambda: stimulus()[name]

    return {
        BRAIN_RELIABILITY.name: reliabilities,
        BRAIN_ORACLE.name: oracles,
        **{table.name: summary(table.name) for table in STIMULUS_TABLES},
    }
