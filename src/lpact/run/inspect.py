"""The source audit of a whole study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from lpact.config import StudyConfig
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS, RecordingId
from lpact.datasets.validate import check_recording_ids
from lpact.errors import InputError, StudyInputError
from lpact.features.mechanisms import MECHANISMS
from lpact.features.nuisance import nuisance_builder
from lpact.levels import audit
from lpact.levels.audit_record import DatasetAudit
from lpact.levels.conditions import build_controls
from lpact.levels.measure import MEASURES
from lpact.levels.prepare import Inspection
from lpact.levels.relational import build_measures, build_profiles
from lpact.levels.strip import STRIPPINGS
from lpact.levels.stripping import build_strippings
from lpact.run.progress import Reporter
from lpact.run.workspace import Workspace, build_source


@dataclass(frozen=True)
class StudyAudit:
    """The audit of every dataset, and its tables."""

    datasets: Mapping[str, DatasetAudit]
    tables: Mapping[str, pl.DataFrame]


def audit_study(workspace: Workspace, reporter: Reporter) -> StudyAudit:
    """Look at every source; raises `StudyInputError` with everything that must be mended."""
    config = workspace.config
    problems: list[InputError] = []
    ids = {d.name: _recording_ids(workspace, d.name, problems) for d in config.datasets}
    reporter.stage("source audit", sum(len(found or ()) for found in ids.values()))
    audits = []
    for entry in config.datasets:
        found = ids[entry.name]
        if found is None:
            continue
        inspections = _inspections(workspace, entry.name, found, problems, reporter)
        audits.append(
            audit.run(
                config=config,
                dataset_config=entry,
                dataset=workspace.dataset(entry.name),
                inspections=inspections,
                problems=problems,
            )
        )
    if problems:
        raise StudyInputError(problems)
    return StudyAudit({a.config.name: a for a in audits}, audit.frames(audits))


def _recording_ids(
    workspace: Workspace, name: str, problems: list[InputError]
) -> list[RecordingId] | None:
    try:
        ids = workspace.dataset(name).recording_ids()
        check_recording_ids(ids, where=f"dataset '{name}'")
    except InputError as error:
        problems.append(error)
        return None
    return ids


def _inspections(
    workspace: Workspace,
    name: str,
    ids: list[RecordingId],
    problems: list[InputError],
    reporter: Reporter,
) -> Iterator[Inspection]:
    """Inspect one recording after another; a problem of one does not hide those of the next."""
    for recording in ids:
        try:
            yield workspace.inspection(name, recording)
        except InputError as error:
            # Recordings that share a stimulus share its problems.
            if str(error) not in {str(known) for known in problems}:
                problems.append(error)
        reporter.advance()


def validate_plugins(config: StudyConfig) -> None:
    """Fail early on a plugin or plugin option that does not exist."""
    for dataset in config.datasets:
        DATASETS.build(dataset.reader, dataset.options, where=f"dataset '{dataset.name}'")
    for model in config.models:
        build_source(model)
    for mechanism in config.stripping.mechanisms:
        MECHANISMS.build(mechanism, where="stripping.mechanisms")
    for name in config.nuisance.include:
        nuisance_builder(name)
    build_controls(config)
    build_measures(config)
    build_profiles(config)
    build_strippings(config)
    for where, registry, names in (
        ("controls.options", CONTROLS, config.controls.options),
        ("relational.options", MEASURES, config.relational.options),
        ("stripping.options", STRIPPINGS, config.stripping.options),
        ("audit.required_controls", CONTROLS, config.audit.required_controls),
    ):
        for name in names:
            registry.get(name, where=where)
