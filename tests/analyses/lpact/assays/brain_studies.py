"""Small simulated studies, measured on the side of the brain alone."""

from __future__ import annotations

from typing import Any

import polars as pl
from lpact.run.measure import Measured, measure_brains

import lpact
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.positive_controls import brain_tables, profile_jobs
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study
from lpact.run.conduct import Conductor, Watched
from lpact.run.executors.here import Here
from lpact.run.journal.progress import Silent
from lpact.store import MemoryTasks, concat
from lpact.tables import find_table

Frames = dict[str, pl.DataFrame]


def study_config(*, relational: dict[str, Any] | None = None, **options: Any) -> LPactConfig:
    return lpact.load_study(
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
            "relational": relational or {},
        }
    ).config


def measured_brains(config: LPactConfig) -> tuple[StudyAudit, Frames]:
    """Audit, patterns and reliabilities of a study."""
    measured = _measured(config)
    return measured.audit, dict(measured.tables)


def brain_controls(config: LPactConfig) -> Frames:
    """Tables of the controls that use measured patterns and reliabilities."""
    measured = _measured(config)
    workspace, results = Workspace(config), measured.conductor.results
    (made,) = [job.run(workspace, results) for job in profile_jobs(measured)]
    frames = {name: concat(find_table(name), [table]) for name, table in made.items()}
    return brain_tables(config, measured.tables, frames)


def _measured(config: LPactConfig) -> Measured:
    workspace = Workspace(config)
    audit = audit_study(workspace, Silent())
    results = MemoryTasks()
    conductor = Conductor(results, Here(workspace, results), Watched(Silent()))
    return measure_brains(config, audit, conductor)
