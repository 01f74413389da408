"""Work cut into tasks: a job says what to do, a key says all that its result depends on.

The key is a hash of the step and the code that it may run, of the part of the configuration that matters to it, of the
checksums of its sources, of the keys of the tasks whose results it needs, and of the libraries in use. A result with
the same key is the same result, whichever study, run or machine asked for it first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import polars as pl

from lpact.analyses.lpact.tables.audit import MODEL_FILES, SOURCE_FILES
from lpact.config import StudyConfig
from lpact.features.models import FEATURE_SETS, MODELS
from lpact.inputs.workspace import Workspace
from lpact.run.audit import PARSER, StudyAudit, plugin_code, plugin_packages
from lpact.store import Results, code_digest, library_versions

Frames = dict[str, pl.DataFrame]

LONG = 4
"""Items of a list that enter a key one by one."""

ABOUT_VERDICTS = ("name", "gates", "assay")
"""Parts of the configuration that no measured number depends on."""


@dataclass(frozen=True)
class Scope:
    """What a job reads: a dataset, models, and the configuration but for some parts.

    ``dataset`` None: no source at all. ``models`` are those whose features are read.
    """

    dataset: str | None
    models: tuple[str, ...] = ()
    without: tuple[str, ...] = ABOUT_VERDICTS


class Job(Protocol):
    """A piece of work: a small record, which can be sent to another process. ``code`` is what it may run."""

    code: ClassVar[tuple[str, ...]]

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the tasks whose results it reads."""
        ...

    def run(self, workspace: Workspace, results: Results) -> Frames:
        """Compute the job's tables."""
        ...


class StudyJob(Job, Protocol):
    """A job that belongs to a study."""

    @property
    def scope(self) -> Scope:
        """What the job reads."""
        ...


@dataclass(frozen=True)
class Task:
    """A job and the key of its result."""

    job: Job
    key: str

    @property
    def name(self) -> str:
        """Name of the task among all tasks of the study."""
        return self.job.name


class Keys:
    """Makes tasks of a study's jobs."""

    def __init__(self, config: StudyConfig, audit: StudyAudit) -> None:
        self._config = config
        self._audit = audit
        self._scopes: dict[Scope, str] = {}
        self._lists: dict[tuple[object, ...], str] = {}

    def task(self, job: StudyJob) -> Task:
        """The job with the key of its result."""
        if job.scope not in self._scopes:
            self._scopes[job.scope] = self._digest_of(job.scope)
        # The job's own fields hold the keys of what it needs.
        parts = [
            type(job).__name__,
            code_digest(job.code),
            self._scopes[job.scope],
            {own.name: self._short(getattr(job, own.name)) for own in fields(job)},  # type: ignore[arg-type]
            self._libraries,
        ]
        return Task(job, digest(parts))

    def _short(self, value: object) -> object:
        """A field of a job as plain values; long lists, which many jobs share, by their digest."""
        if not isinstance(value, tuple) or len(value) <= LONG:
            return plain(value)
        if value not in self._lists:
            self._lists[value] = digest([plain(value)])
        return self._lists[value]

    def tasks(self, jobs: Sequence[StudyJob]) -> list[Task]:
        """All jobs with their keys."""
        return [self.task(job) for job in jobs]

    def _digest_of(self, scope: Scope) -> str:
        config = self._config.model_dump(mode="json")
        for part in scope.without:
            config.pop(part)
        read = {*scope.models, *self._mechanism_models} if scope.models else set()
        config["datasets"] = [d for d in config["datasets"] if d["name"] == scope.dataset]
        # Which layers are claimed is nothing to a task about one of them.
        config["models"] = [m | {"layers": []} for m in config["models"] if m["name"] in read]
        sources = self._audit.tables[SOURCE_FILES.name].filter(dataset=scope.dataset or "")
        # Features that were extracted for other datasets are nothing to this one.
        own = pl.col("path").str.starts_with(f"{FEATURE_SETS}{scope.dataset}/")
        files = self._audit.tables[MODEL_FILES.name].filter(
            pl.col("model").is_in([*read, PARSER]),
            own | ~pl.col("path").str.starts_with(FEATURE_SETS),
        )
        return digest(
            [
                config,
                sources.select("path", "sha256").sort("path").rows(),
                files.select("model", "path", "sha256").sort("model", "path").rows(),
            ]
        )

    @cached_property
    def _mechanism_models(self) -> tuple[str, ...]:
        """Models that mechanisms may be taken from, whichever model a job is about."""
        named = self._config.mechanisms.model
        if named is not None:
            return (named,)
        reading = [m.name for m in self._config.models if MODELS.get(m.source).reads_text]
        return tuple(reading[:1])

    @cached_property
    def _libraries(self) -> list[object]:
        config = self._config.model_dump(mode="json")
        return [
            sorted(library_versions(config).items()),
            plugin_packages(self._config),
            plugin_code(self._config),
        ]


def plain(value: object) -> object:
    """Records and tuples as dictionaries and lists, all the way down."""
    if is_dataclass(value):
        return {own.name: plain(getattr(value, own.name)) for own in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def digest(parts: Sequence[object]) -> str:
    """Hash of plain values."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
