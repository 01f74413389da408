"""The source audit of a whole study."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import polars as pl

from lpact.analyses.lpact.levels import audit
from lpact.analyses.lpact.levels.audit_record import DatasetAudit
from lpact.analyses.lpact.levels.conditions import build_controls
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.analyses.lpact.levels.relational import build_measures, build_profiles
from lpact.analyses.lpact.levels.strip import STRIPPINGS, build_strippings
from lpact.config import Section, StudyConfig
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS, RecordingId, SourceFile, role_of
from lpact.datasets.validate import check_recording_ids
from lpact.errors import FeatureError, InputError, StudyInputError, did_you_mean
from lpact.features.mechanisms import MECHANISMS
from lpact.features.models import FEATURE_SETS, MODELS
from lpact.features.nuisance import nuisance_builder
from lpact.features.parsing.files import parser_files
from lpact.inputs.prepare import Inspection
from lpact.inputs.sources import Owner, Seen
from lpact.inputs.workspace import Workspace, build_source
from lpact.measures import MEASURES
from lpact.registry import BUILT_IN, Plugin, Registry
from lpact.run.features import stored_sets
from lpact.run.journal.progress import Reporter
from lpact.run.memory import peak_bytes
from lpact.store import frame
from lpact.store.code import remember_code
from lpact.store.package_code import is_own, package_digest
from lpact.tables import MODEL_FILES, SOURCE_FILES

S = TypeVar("S", bound=Section)

PARSER = "(parser)"
"""Stands in a model's place in the table of model files."""


@dataclass(frozen=True)
class StudyAudit:
    """The audit of every dataset, and its tables.

    ``seconds`` is the time that it took, ``preparing`` the processor's time in which recordings were read and prepared,
    ``peak_bytes`` the most memory that this process had held by its end.
    ``seen`` and ``fingerprints`` tell what it saw of the files, ``sets_to_come`` how many sets of features are not
    extracted yet, and not among the model files.
    """

    datasets: Mapping[str, DatasetAudit]
    tables: Mapping[str, pl.DataFrame]
    seconds: float = field(default=0.0, compare=False)
    preparing: float = field(default=0.0, compare=False)
    peak_bytes: int = field(default=0, compare=False)
    seen: Mapping[Owner, tuple[Seen, ...]] = field(default_factory=dict, compare=False, repr=False)
    fingerprints: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    sets_to_come: int = field(default=0, compare=False)


def audit_study(workspace: Workspace, reporter: Reporter) -> StudyAudit:
    """Look at every source; raises `StudyInputError` with everything that must be mended."""
    config = workspace.config
    remember_code()
    plugin_code(config)
    start = time.perf_counter()
    problems: list[InputError] = []
    ids = {d.name: _recording_ids(workspace, d.name, problems) for d in config.datasets}
    reporter.stage("source audit", sum(len(found or ()) for found in ids.values()))
    audits = []
    preparing: list[float] = []
    for entry in config.datasets:
        found = ids[entry.name]
        if found is None:
            continue
        inspections = _inspections(workspace, entry.name, found, problems, reporter, preparing)
        audits.append(
            audit.run(
                config=config,
                dataset_config=entry,
                dataset=workspace.dataset(entry.name),
                inspections=inspections,
                sources=workspace.sources,
                problems=problems,
            )
        )
        _same_as_before(workspace, audits[-1], problems)
    if not problems:
        problems = _unknown_models(config, audits)
    files, to_come = ([], 0) if problems else _model_files(workspace, problems)
    if problems:
        raise StudyInputError(problems)
    tables = audit.frames(audits)
    tables[MODEL_FILES.name] = frame(MODEL_FILES, files)
    seconds = time.perf_counter() - start
    return StudyAudit(
        {a.config.name: a for a in audits},
        tables,
        seconds,
        _second_time(preparing),
        peak_bytes(),
        dict(workspace.watch.seen),
        dict(workspace.fingerprints),
        to_come,
    )


def _same_as_before(workspace: Workspace, made: DatasetAudit, problems: list[InputError]) -> None:
    """Files that were read must be those whose checksums are recorded after that."""
    name = made.config.name
    found = {str(row["path"]): str(row["sha256"]) for row in made.rows(SOURCE_FILES)}
    try:
        workspace.watch.compare((name, ""), found)
    except InputError as error:
        problems.append(error)


def _model_files(
    workspace: Workspace, problems: list[InputError]
) -> tuple[list[dict[str, object]], int]:
    """Rows of the models' files and of their sets of extracted features; and how many sets are to come."""
    files = [(m, file) for m, source in workspace.sources.items() for file in source.files(m)]
    to_come = 0
    try:
        sets = stored_sets(workspace)
        for (dataset, model), own in sets.items():
            there = [stored for stored in own.values() if stored is not None]
            to_come += len(own) - len(there)
            workspace.watch.note((dataset, model), (f for s in there for f in s.files), None)
            for stored in there:
                path = f"{FEATURE_SETS}{dataset}/{stored.name}"
                files.append((model, SourceFile(path, stored.n_bytes, stored.sha256, "")))
        for owner, own in stored_sets(workspace).items():  # again: they may be written meanwhile
            found = {f.path: f.sha256 for s in own.values() if s is not None for f in s.files}
            workspace.watch.compare(owner, found)
    except InputError as error:
        problems.append(error)
    files += [(PARSER, file) for file in parser_files(workspace.config.mechanisms.parser)]
    return [
        {
            "model": model,
            "path": file.path,
            "n_bytes": file.n_bytes,
            "sha256": file.sha256,
            "source": file.licence,
        }
        for model, file in files
    ], to_come


def _unknown_models(config: StudyConfig, audits: list[DatasetAudit]) -> list[InputError]:
    """Models that no dataset has features for, where some dataset could have had them: a misspelt name, most likely."""
    if not any(a.recordings for a in audits):
        return []
    known = {name for a in audits for name in a.models_offered}
    return [
        FeatureError(
            f"no dataset has features of the model '{model.name}'",
            where=f"[[models]] '{model.name}'",
            got="none",
            expected="features for at least one usable recording",
            remedy=f"remove the model, or add its features; {did_you_mean(model.name, known)}",
        )
        for model in config.models
        if not any(model.name in a.models() for a in audits)
    ]


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
    preparing: list[float],
) -> Iterator[Inspection]:
    """Inspect one recording after another; a problem of one does not hide those of the next.

    ``preparing`` is told how long each took.
    """
    for recording in ids:
        start = time.process_time()
        try:
            inspection = workspace.inspection(name, recording)
            preparing.append(time.process_time() - start)
            yield inspection
        except InputError as error:
            # Recordings that share a stimulus share its problems.
            if str(error) not in {str(known) for known in problems}:
                problems.append(error)
        reporter.advance()


def _second_time(preparing: Sequence[float]) -> float:
    """Time to prepare all recordings once more: with the first one libraries are loaded, too."""
    first, others = sum(preparing[:1]), preparing[1:]
    return min(first, max(others, default=first)) + sum(others)


def resolve_plugins(config: StudyConfig) -> StudyConfig:
    """Fail early on a plugin or option that does not exist, and spell out every option of every plugin in use.

    The resolved configuration is what is hashed and recorded, so that a default that changes changes the hash too.
    """
    readers = [
        DATASETS.build(d.reader, d.options, where=f"dataset '{d.name}'") for d in config.datasets
    ]
    for where, registry, names in (
        ("controls.options", CONTROLS, config.controls.options),
        ("relational.options", MEASURES, config.relational.options),
        ("stripping.options", STRIPPINGS, config.stripping.options),
        ("mechanisms.options", MECHANISMS, config.mechanisms.options),
        ("audit.required_controls", CONTROLS, config.audit.required_controls),
    ):
        for name in names:
            registry.get(name, where=where)
    mechanisms = {
        name: MECHANISMS.build(
            name, config.mechanisms.options.get(name), where="mechanisms.include"
        )
        for name in config.mechanisms.include
    }
    for name in config.nuisance.include:
        nuisance_builder(name)
    build_profiles(config)
    return config.model_copy(
        update={
            "datasets": tuple(
                d.model_copy(update={"role": role_of(d), "options": reader.options.model_dump()})
                for d, reader in zip(config.datasets, readers, strict=True)
            ),
            "models": tuple(
                m.model_copy(update={"options": build_source(m).options.model_dump()})
                for m in config.models
            ),
            "controls": _spelt_out(config.controls, build_controls(config)),
            "relational": _spelt_out(config.relational, build_measures(config)),
            "stripping": _spelt_out(config.stripping, build_strippings(config)),
            "mechanisms": _spelt_out(config.mechanisms, mechanisms),
        }
    )


def _spelt_out(section: S, plugins: Mapping[str, Plugin]) -> S:
    """A section with the options of its plugins as they are; plugins without options are left out."""
    options = {name: plugin.options.model_dump() for name, plugin in plugins.items()}
    return section.model_copy(update={"options": {n: o for n, o in options.items() if o}})


def plugin_packages(config: StudyConfig) -> tuple[str, ...]:
    """Name and version of every other package whose plugins the study uses."""
    origins = {registry.origin(name) for registry, name in _plugins_in_use(config)}
    return tuple(sorted(origins - {BUILT_IN}))


def plugin_code(config: StudyConfig) -> tuple[tuple[str, str], ...]:
    """SHA-256 of the code of every plugin that is not lpact's own: one that is being written has no new version.

    It is that of the first look in this process, at the code of the plugin's package (see `package_digest`).
    """
    found = {}
    for registry, name in _plugins_in_use(config):
        plugin = registry.get(name)
        if not is_own(plugin):
            found[f"{registry.kind} {name}"] = package_digest(plugin)
    return tuple(sorted(found.items()))


def _plugins_in_use(config: StudyConfig) -> Iterator[tuple[Registry[Any], str]]:
    used: list[tuple[Registry[Any], Iterable[str]]] = [
        (DATASETS, (d.reader for d in config.datasets)),
        (MODELS, (m.source for m in config.models)),
        (CONTROLS, config.controls.include),
        (MEASURES, config.relational.alignments),
        (PROFILES, config.relational.profiles),
        (MECHANISMS, config.mechanisms.include),
        (STRIPPINGS, config.stripping.methods),
    ]
    for registry, names in used:
        for name in names:
            yield registry, name
