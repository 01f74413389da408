"""Small simulated studies, measured on the side of the brain alone."""

from __future__ import annotations

from typing import Any

import polars as pl

import lpact
from lpact.analyses.base import analyses_of
from lpact.analyses.lpact.assays.jobs import BrainAsModelJob, derived_tables
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.plan.stages import BRAINS, CEILINGS
from lpact.analyses.lpact.tables.assay import BRAIN_ORACLE, BRAIN_RELIABILITY
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, BRAIN_PATTERNS
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study
from lpact.run.conductor import Conductor, Measuring
from lpact.run.executors.local import InProcess
from lpact.run.progress import Reporter
from lpact.store import MemoryTasks, concat
from lpact.tables import find_table

Frames = dict[str, pl.DataFrame]


def study_config(*, relational: dict[str, Any] | None = None, **options: Any) -> LPactConfig:
    study = lpact.load_study(
        {
            "name": "brains",
            "seed": 11,
            "datasets": [
                {
                    "name": "sim",
                    "reader": "simulated",
                    "grid": {"lags_ms": [100.0]},
                    "options": {
                        "n_subjects": 3,
                        "n_runs": 2,
                        "n_stories": 3,
                        "sentences_per_story": 6,
                        "n_units": 10,
                        "truths": ["relational"],
                        "snr": 1.5,
                        **options,
                    },
                }
            ],
            "models": [{"name": "integrated", "layers": [2]}],
            "readout": {"alphas": [10.0, 1000.0], "folds": 3, "gap_events": 2},
            "lpact": {"relational": relational or {}},
        }
    )
    return LPactConfig.of(study.config)


def measured_brains(config: LPactConfig) -> tuple[StudyAudit, Frames]:
    """Audit, patterns and reliabilities of a study."""
    audit, _, _, tables = _measured(config)
    return audit, tables


def brain_controls(config: LPactConfig) -> Frames:
    """Tables of the controls that use measured patterns and reliabilities."""
    audit, workspace, results, tables = _measured(config)
    stages = Measuring(workspace.config, audit, analyses_of(workspace.config)["lpact"]).stages
    jobs = [task.job for stage in stages for task in stage.tasks]
    (job,) = (job for job in jobs if isinstance(job, BrainAsModelJob))
    made = job.run(workspace, results)
    frames = {name: concat(find_table(name), [table]) for name, table in made.items()}
    derived = derived_tables(config, tables | frames)
    return frames | {name: derived[name]() for name in (BRAIN_RELIABILITY.name, BRAIN_ORACLE.name)}


def _measured(config: LPactConfig) -> tuple[StudyAudit, Workspace, MemoryTasks, Frames]:
    study = config.study()
    workspace, results = Workspace(study), MemoryTasks()
    audit = audit_study(workspace, Reporter())
    analysis = analyses_of(study)["lpact"]
    measuring = Measuring(study, audit, analysis, stages=(BRAINS, CEILINGS))
    measuring.run(Conductor(results, InProcess(workspace, results), Reporter()))
    names = (BRAIN_PATTERNS.name, BRAIN_CEILING.name, EVIDENCE_FEASIBILITY.name)
    tables = measuring.tables(results)
    return audit, workspace, results, {name: tables[name] for name in names}
