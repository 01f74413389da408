"""The source audit of a study, shared by its analyses; and the features that are still to be extracted."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import polars as pl

from lpact.analyses.base import ANALYSES, PARSER, Audit, Keys, analyses_of
from lpact.config import Section, SharedConfig, StudyConfig
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS, SourceFile, Stimulus, role_of
from lpact.datasets.validate import check_recording_ids
from lpact.errors import ConfigError, InputError, StudyInputError
from lpact.features.mechanisms import MECHANISMS
from lpact.features.models import FEATURE_SETS, FULL, MODELS, NO_COST, STATIC, ExtractionCost, ModelSource, StoredSet
from lpact.features.nuisance import nuisance_builder
from lpact.features.parsing import parser_files
from lpact.inputs.prepare import compute_settings
from lpact.inputs.sources import Owner, Seen
from lpact.inputs.workspace import Workspace, build_source
from lpact.registry import BUILT_IN, Plugin, Registry
from lpact.run.machine import peak_bytes
from lpact.run.progress import AUDIT, Reporter
from lpact.store import InputFile, Manifest, Provenance, frame
from lpact.store.code import is_own, package_digest, source_digests
from lpact.tables import MODEL_FILES, SOURCE_FILES


def wanted_contexts(config: StudyConfig) -> tuple[str, ...]:
    """Contexts of features that the analyses of a study load."""
    wanted = {FULL, STATIC}
    for analysis in analyses_of(config).values():
        wanted |= analysis.contexts(config)
    return tuple(sorted(wanted))


def extract_features(workspace: Workspace, reporter: Reporter) -> bool:
    """Extract missing feature sets; return whether anything was done."""
    wanted = wanted_contexts(workspace.config)
    worked = False
    for model, source, stimulus in unready(workspace):
        source.extract(model, stimulus, wanted, reporter)
        worked = True
    return worked


def extraction_cost(workspace: Workspace) -> ExtractionCost:
    """What extraction will take; a model that has work to do is loaded, and one batch is timed."""
    wanted = wanted_contexts(workspace.config)
    total = NO_COST
    for model, source, stimulus in unready(workspace):
        total += source.cost(model, stimulus, wanted)
    return total


def unready(workspace: Workspace) -> Iterator[tuple[str, ModelSource, Stimulus]]:
    """Models and stimuli with features to extract; recordings share stimuli, and stimuli can share their text."""
    wanted = wanted_contexts(workspace.config)
    for _, model, source, stimulus in _read(workspace, workspace.sources):
        if not source.ready(model, stimulus, wanted):
            yield model, source, stimulus


def stored_sets(workspace: Workspace) -> dict[tuple[str, str], dict[str, StoredSet | None]]:
    """Sets of extracted features that the study reads, by dataset and model; None for one that is to come."""
    wanted = wanted_contexts(workspace.config)
    found: dict[tuple[str, str], dict[str, StoredSet | None]] = {}
    extracting = [name for name, s in workspace.sources.items() if type(s).sets is not ModelSource.sets]
    for dataset, model, source, stimulus in _read(workspace, extracting):
        if sets := source.sets(model, stimulus, wanted):
            found.setdefault((dataset, model), {}).update(sets)
    return found


def _read(workspace: Workspace, models: Collection[str]) -> Iterator[tuple[str, str, ModelSource, Stimulus]]:
    """Every dataset, model and stimulus, each once."""
    for entry in workspace.config.datasets if models else ():
        dataset = workspace.dataset(entry.name)
        for name in dict.fromkeys(r.stimulus for r in dataset.recording_ids()):
            stimulus = dataset.stimulus(name)
            for model in models:
                yield entry.name, model, workspace.sources[model], stimulus


S = TypeVar("S", bound=Section)


@dataclass(frozen=True)
class StudyAudit:
    """What the sources allow, for every analysis of a study."""

    of: Mapping[str, Audit]
    """What each analysis found, by name."""
    tables: Mapping[str, pl.DataFrame]
    """All tables of the audit."""
    n_recordings: int = 0
    """Recordings that were read."""
    seconds: float = field(default=0.0, compare=False)
    peak_bytes: int = field(default=0, compare=False)
    """Time that it took, and the most memory that this process had used by its end."""
    seen: Mapping[Owner, tuple[Seen, ...]] = field(default_factory=dict, compare=False, repr=False)
    fingerprints: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Source files as they were, to notice later changes."""
    sets_to_come: int = field(default=0, compare=False)
    """Sets of features that are not extracted yet, and so not among the model files."""


def audit_study(workspace: Workspace, reporter: Reporter) -> StudyAudit:
    """Check every source; raises `StudyInputError` with everything that must be fixed."""
    config = workspace.config
    source_digests()
    plugin_code(config)
    start = time.perf_counter()
    problems: list[InputError] = []
    n_recordings = sum(_n_recordings(workspace, d.name, problems) for d in config.datasets)
    if problems:
        raise StudyInputError(problems)
    reporter.stage(AUDIT, n_recordings * len(config.analyses))
    found = {
        name: analysis.audit(workspace, problems, reporter.advance) for name, analysis in analyses_of(config).items()
    }
    sources = [] if problems else _source_files(workspace, problems)
    models, to_come = ([], 0) if problems else _model_files(workspace, problems)
    if problems:
        raise StudyInputError(problems)
    tables = {name: table for own in found.values() for name, table in own.tables.items()}
    tables[SOURCE_FILES.name] = frame(SOURCE_FILES, sources)
    tables[MODEL_FILES.name] = frame(MODEL_FILES, models)
    return StudyAudit(
        found,
        tables,
        n_recordings,
        time.perf_counter() - start,
        peak_bytes(),
        dict(workspace.watch.seen),
        dict(workspace.fingerprints),
        to_come,
    )


def _n_recordings(workspace: Workspace, name: str, problems: list[InputError]) -> int:
    try:
        ids = workspace.dataset(name).recording_ids()
        check_recording_ids(ids, where=f"dataset '{name}'")
    except InputError as error:
        problems.append(error)
        return 0
    return len(ids)


def _source_files(workspace: Workspace, problems: list[InputError]) -> list[dict[str, object]]:
    """Rows of the datasets' files; those that were read must be those whose checksums are recorded."""
    rows: list[dict[str, object]] = []
    for entry in workspace.config.datasets:
        files = workspace.dataset(entry.name).source_files()
        try:
            workspace.watch.compare((entry.name, ""), {file.path: file.sha256 for file in files})
        except InputError as error:
            problems.append(error)
        rows += (
            {
                "dataset": entry.name,
                "path": file.path,
                "n_bytes": file.n_bytes,
                "sha256": file.sha256,
                "licence": file.licence,
            }
            for file in files
        )
    return rows


def _model_files(workspace: Workspace, problems: list[InputError]) -> tuple[list[dict[str, object]], int]:
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


def study_keys(config: StudyConfig, audit: StudyAudit, analysis: str) -> Keys:
    """Keys for the jobs of one analysis; nothing of another analysis enters them."""
    own = config.only(analysis)
    return Keys(own, audit.tables, (plugin_packages(own), dict(plugin_code(own))))


def check_device(config: SharedConfig) -> None:
    """Raise `ConfigError` if the readouts' device is not available."""
    try:
        compute_settings(config.readout).open()
    except (ImportError, ValueError) as error:
        raise ConfigError(
            "the readouts cannot be computed on this device",
            where="option 'readout.device'",
            got=f"'{config.readout.device}': {error}",
            expected="a device of this machine",
            remedy='choose "cpu", install PyTorch, or run on a machine with the device',
        ) from error


def resolve_plugins(config: StudyConfig) -> StudyConfig:
    """Fail early on a plugin or option that does not exist, and spell out every option of every plugin in use.

    The resolved configuration is what is hashed and recorded, so that a default that changes changes the hash too.
    """
    readers = [DATASETS.build(d.reader, d.options, where=f"dataset '{d.name}'") for d in config.datasets]
    registries: list[tuple[str, Registry[Any], Any]] = [
        ("controls", CONTROLS, config.controls),
        ("mechanisms", MECHANISMS, config.mechanisms),
    ]
    shared = {
        name: spell_out(section, registry, section.include, where=f"{name}.include")
        for name, registry, section in registries
    }
    for name in config.nuisance.include:
        nuisance_builder(name)
    resolved = config.model_copy(
        update={
            "datasets": tuple(
                d.model_copy(update={"role": role_of(d), "options": reader.options.model_dump()})
                for d, reader in zip(config.datasets, readers, strict=True)
            ),
            "models": tuple(
                m.model_copy(update={"options": build_source(m).options.model_dump()}) for m in config.models
            ),
            **shared,
        }
    )
    own = {name: analysis.resolve(resolved) for name, analysis in analyses_of(resolved).items()}
    return resolved.model_copy(update={"analyses": own})


def spell_out(section: S, registry: Registry[Any], names: Iterable[str], *, where: str) -> S:
    """A section with ``options`` of all its plug-ins as they are used; those without options are left out."""
    given: Mapping[str, Any] = section.options  # type: ignore[attr-defined]
    for name in given:
        registry.get(name, where=where.split(".", maxsplit=1)[0] + ".options")
    built: dict[str, Plugin] = {name: registry.build(name, given.get(name), where=where) for name in names}
    options = {name: plugin.options.model_dump() for name, plugin in built.items()}
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
        (ANALYSES, config.analyses),
        (DATASETS, (d.reader for d in config.datasets)),
        (MODELS, (m.source for m in config.models)),
        (CONTROLS, config.controls.include),
        (MECHANISMS, config.mechanisms.include),
    ]
    for registry, names in used:
        for name in names:
            yield registry, name
    for analysis in analyses_of(config).values():
        yield from analysis.plugins(config)


def with_sets_of(manifest: Manifest, now: Provenance) -> Provenance:
    """Add sets of features that a finished run names and that no longer exist.

    They would be extracted again from files that are compared themselves.
    """
    there = {(file.dataset, file.path) for file in now.inputs}
    gone = tuple(
        file
        for file in manifest.inputs
        if file.dataset.startswith("model ")
        and file.path.startswith(FEATURE_SETS)
        and (file.dataset, file.path) not in there
    )
    return replace(now, inputs=(*now.inputs, *gone))


def provenance(config: StudyConfig, audit: StudyAudit) -> Provenance:
    """What the run is made from."""
    files = audit.tables[SOURCE_FILES.name].select("dataset", "path", "n_bytes", "sha256")
    inputs = [InputFile(**row) for row in files.iter_rows(named=True)]
    models = audit.tables[MODEL_FILES.name].select("model", "path", "n_bytes", "sha256")
    inputs += [
        InputFile(dataset=f"model {model}", path=path, n_bytes=n_bytes, sha256=sha256)
        for model, path, n_bytes, sha256 in models.iter_rows()
    ]
    return Provenance(
        study=config.name,
        seed=config.seed,
        config=config.model_dump(mode="json"),
        inputs=tuple(inputs),
        plugins=plugin_packages(config),
        plugin_code=dict(plugin_code(config)),
    )
