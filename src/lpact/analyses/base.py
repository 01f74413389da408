"""What an analysis is: one question that a study can ask, as a plug-in of the engine.

The engine plans, runs, resumes, reports, archives and compares every analysis through `Analysis` alone. Work is cut
into tasks: a job says what to do, a key says all that its result depends on. The key is a hash of the job and the code
that it may run, of the part of the configuration that matters to it, of the checksums of its sources, of the keys of
the tasks whose results it needs, and of the libraries in use. A result with the same key is the same result,
whichever study, run or machine made it first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import polars as pl

from lpact.analyses.explanation import (
    Block,
    ClaimTable,
    Conclusion,
    DatasetReport,
    Explanation,
    MethodsPart,
)
from lpact.config import SharedConfig, StudyConfig
from lpact.errors import InputError, TableError
from lpact.features.models import FEATURE_SETS, MODELS
from lpact.inputs.check import DatasetCheck
from lpact.inputs.workspace import Workspace
from lpact.registry import ANALYSES, Plugin, Registry
from lpact.store import Manifest, Results, code_digest, library_versions
from lpact.store.code import SHARED
from lpact.tables import MODEL_FILES, SOURCE_FILES, Table
from lpact.validation import Section, json_digest

if TYPE_CHECKING:
    from lpact.claim_audit import Verdicts

__all__ = [
    "ANALYSES",
    "Analysis",
    "Audit",
    "Job",
    "Keys",
    "Material",
    "Scope",
    "Stage",
    "StageWork",
    "Task",
]

Frames = dict[str, pl.DataFrame]
Rows = Callable[..., pl.DataFrame]
"""``rows(table, column=value, …)``: rows of a run's table by equality, in the order of the key."""

PARSER = "(parser)"
"""Stands in a model's place in the table of model files."""

LONG = 4
"""Items of a list that enter a key one by one."""


@dataclass(frozen=True)
class Scope:
    """What a job reads: a dataset, models, and the configuration but for some parts.

    ``dataset`` None: no source at all. ``models`` are those whose features are read. ``without`` names tables of the
    study file that no result of the job depends on: shared ones (``controls``), or the analysis' own (``lpact.gates``).
    """

    dataset: str | None
    models: tuple[str, ...] = ()
    without: tuple[str, ...] = ("name",)


class Job(Protocol):
    """A piece of work: a small frozen dataclass that can be sent to another process.

    ``code`` lists the files and folders of lpact that it may run besides the shared ones (`lpact.store.code.SHARED`).
    """

    code: ClassVar[tuple[str, ...]]

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study, with the analysis first."""
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


@dataclass(frozen=True)
class Stage:
    """Tasks that can run side by side, under a name that progress, plan, log and `lpact status` show."""

    name: str
    tasks: Sequence[Task]


@dataclass(frozen=True)
class StageWork:
    """What the tasks of a stage take, counted from sizes alone, for a first estimate of its time and memory."""

    operations: float
    """Floating-point operations of all tasks. The unit is one operation of a large matrix product; work that runs at a
    lower speed, such as a decomposition, counts for more.
    """
    longest: float = 0.0
    """Operations of the longest task: no number of workers makes the stage shorter than that."""
    peak_bytes: int = 0
    """Arrays of the largest task in memory."""
    disk_bytes: int = 0
    """Results of all tasks on disk."""


@dataclass(frozen=True)
class Audit:
    """What an analysis found in the sources, before any evidence is looked at."""

    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Its tables of the audit."""
    claims: tuple[str, ...] = ()
    """Ids of the claims that a run would decide."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows of each table that a run would write; names in ``at_most`` are upper bounds."""
    at_most: frozenset[str] = frozenset()
    impossible: tuple[str, ...] = ()
    """What the sources do not allow, one sentence each, with the reason."""
    detail: Any = None
    """Whatever the analysis itself needs to make its tasks; small, and free of data."""


@dataclass(frozen=True)
class Material:
    """What figures, texts and conclusions are made from: tables by full name, and the configuration.

    ``more`` holds tables that are not the run's own, such as those of ``Analysis.extra_tables``.
    """

    tables: Mapping[str, pl.DataFrame]
    config: StudyConfig
    more: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def table(self, name: str) -> pl.DataFrame:
        """A table by full name; a missing one is a `KeyError`."""
        return self.tables[name] if name in self.tables else self.more[name]

    def has(self, *names: str) -> bool:
        """Whether all of these tables exist."""
        return all(name in self.tables or name in self.more for name in names)

    def lacks(self, *names: str) -> tuple[str, ...]:
        """Those of these tables that do not exist."""
        return tuple(name for name in names if not self.has(name))


class Analysis(Plugin, ABC):
    """One question that a study can ask.

    An instance holds the analysis' own table of the study file as ``options``. Nothing here may depend on the number of
    workers, the order of the work or the time of day.
    """

    tables: ClassVar[tuple[Table, ...]]
    """Tables that a run writes: those of `audit`, of the tasks, of `derive` and of `decide`."""
    other_tables: ClassVar[tuple[Table, ...]] = ()
    """Tables that the analysis' own commands make."""
    claims: ClassVar[ClaimTable]
    """Where its claims are."""
    uses: ClassVar[frozenset[str]] = frozenset()
    """Shared parts of the study file that it computes with: "readout", "nuisance", "controls", "mechanisms". The
    Methods section describes no others.
    """
    keeps_missing: ClassVar[bool] = False
    """Whether missing responses stay missing, whatever ``preprocess.missing`` says."""
    registered: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Columns of its audit tables that a preregistration freezes, by table; they hold names and sizes, no outcomes."""
    figures: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Names of its figures by section of the report ("verdict", "why", "how sure", "how it was made")."""
    commands: ClassVar[Mapping[str, str]] = {}
    """Its own commands: name on the command line to ``"module:function"`` (or ``"module:app"`` for a Typer app)."""
    kinds: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Its own kinds of plug-ins: the kind's plural to ``"module:REGISTRY"`` and the option that names them
    (``"relational.alignments"``). Options of such plug-ins are in the table ``options`` next to that option.
    """
    size_options: ClassVar[tuple[str, ...]] = ()
    """Options that make its tables smaller when lowered (``"controls.draws"``), for advice where memory is short."""
    task_modules: ClassVar[tuple[str, ...]] = ()
    """Modules that its tasks need; worker processes import them while the main process audits the sources."""
    starter: ClassVar[Mapping[str, Any]] = {}
    """Values of options in the file that `lpact init` writes, where the defaults would take minutes."""
    starter_study: ClassVar[Mapping[str, Sequence[Mapping[str, Any]]]] = {}
    """``datasets`` and ``models`` of that file, where simulated speech does not suit the analysis."""

    def plugins(self, study: StudyConfig) -> Iterable[tuple[Registry[Any], str]]:
        """Plug-ins that it uses besides the shared ones: their code enters keys and manifest."""
        return ()

    def resolve(self, study: StudyConfig) -> Section:
        """Its options with every option of its plug-ins spelt out; raises `ConfigError` for what does not exist."""
        return self.options

    def contexts(self, study: StudyConfig) -> set[str]:
        """Contexts in which features must be extracted besides the full one (`lpact.features.models`)."""
        return set()

    def run_tables(self, study: StudyConfig) -> tuple[Table, ...]:
        """Tables that a run of this study writes; all of ``tables`` unless some are switched off."""
        return self.tables

    @abstractmethod
    def audit(self, workspace: Workspace, problems: list[InputError], advance: Callable[[], None]) -> Audit:
        """Say what the sources allow; errors in them are appended to ``problems``, so that all are shown at once.

        ``advance`` is called once per recording.
        """

    @abstractmethod
    def stages(self, study: StudyConfig, audit: Audit, keys: Keys) -> list[Stage]:
        """All tasks in the order of their stages; keys alone link them, so nothing has to run first."""

    def work(self, study: StudyConfig, audit: Audit) -> Mapping[str, StageWork]:
        """Work of its stages by name. A stage that is left out has no estimate until its first tasks are finished."""
        return {}

    def list_bytes(self, study: StudyConfig, audit: Audit) -> int:
        """Bytes of list columns in the tables of a run, which the number of rows does not count."""
        return 0

    def derive(
        self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]
    ) -> Mapping[str, Callable[[], pl.DataFrame]]:
        """Tables that need all rows of others, by name; each is made when it is read.

        A derived table may have the name of a measured one: ``tables`` then holds the measured rows.
        """
        return {}

    @abstractmethod
    def decide(self, study: StudyConfig, tables: Mapping[str, pl.DataFrame]) -> Frames:
        """Tables of the decision, from measured tables alone; `lpact verify` makes them again."""

    @abstractmethod
    def conclude(self, material: Material) -> Conclusion:
        """The answer in one sentence, and why."""

    @abstractmethod
    def explain(self, config: StudyConfig, rows: Rows, claim: Mapping[str, Any], profile: str) -> Explanation:
        """Why a claim got its label. ``claim`` has a value for each column of ``claims.key``."""

    def verdicts(self, material: Material, profile: str) -> Verdicts | None:
        """Which statements its verdicts support under one profile, for `lpact claims`; None: it licenses none."""
        return None

    def outline(self, study: StudyConfig) -> list[Block]:
        """What follows from the study file alone, for `lpact plan` while data are missing."""
        return []

    def audit_blocks(self, audit: Audit, *, full: bool = False) -> list[Block]:
        """What the audit found, for `lpact plan` and `lpact audit`; ``full``: everything, however long."""
        return [Block("Not possible", audit.impossible)] if audit.impossible else []

    def result_blocks(self, material: Material) -> list[Block]:
        """What `lpact run` prints besides claims and conclusion."""
        return []

    def unavailable(self, material: Material) -> Sequence[tuple[str, str, str]]:
        """What the sources of a finished run did not allow, for the report: what, where and why."""
        return ()

    def figure(self, name: str, material: Material) -> Any:
        """A figure by name: `lpact.report.figure.Figure`, or `Missing` with the reason."""
        raise KeyError(name, material)

    def methods(self, manifest: Manifest, material: Material) -> Sequence[MethodsPart]:
        """Its parts of the Methods section besides those that every study has (`lpact.report.methods`)."""
        return []

    def extra_tables(self, material: Material, tell: Callable[[str], None]) -> Frames:
        """Tables for the report that a run does not store; ``tell`` is called with what is being done."""
        return {}

    def check(self, study: StudyConfig, rows: Rows) -> Iterable[str]:
        """Faults between tables of a finished run that `lpact verify` should name, one sentence each."""
        return ()

    @classmethod
    def check_dataset(cls, check: DatasetCheck) -> DatasetReport | None:
        """What a checked dataset supports before any study, for `lpact datasets check`; None: nothing to add."""
        return None


def decided(analysis: Analysis, study: StudyConfig, tables: Mapping[str, pl.DataFrame]) -> Frames:
    """Tables of an analysis' decision; raises `TableError` for a label that the analysis does not declare."""
    made = analysis.decide(study, tables)
    about = analysis.claims
    if about.table.name in made:
        labels = made[about.table.name]["label"].unique(maintain_order=True)
        if unknown := [label for label in labels if label not in about.labels]:
            raise TableError(
                f"the analysis '{analysis.name}' gives a claim a label that it does not declare",
                where=f"table '{about.table.name}', column 'label'",
                got=", ".join(map(str, unknown)),
                expected=f"one of {', '.join(about.labels)}",
                remedy="add the label to `claims`, or correct `decide`",
            )
    return made


class Keys:
    """Makes tasks of the jobs of one analysis.

    Parameters
    ----------
    config
        The shared tables of the study and those of the analysis (`StudyConfig.only`).
    files
        The tables `SOURCE_FILES` and `MODEL_FILES` of the audit.
    plugins
        Packages that plug-ins of the study come from, and digests of their code.
    """

    def __init__(
        self,
        config: SharedConfig,
        files: Mapping[str, pl.DataFrame],
        plugins: tuple[Sequence[str], Mapping[str, str]] = ((), {}),
    ) -> None:
        self._config = config
        self._files = files
        self._plugins = plugins
        self._scopes: dict[Scope, str] = {}
        self._lists: dict[tuple[object, ...], str] = {}

    def task(self, job: StudyJob) -> Task:
        """The job with the key of its result."""
        if job.scope not in self._scopes:
            self._scopes[job.scope] = self._digest_of(job.scope)
        # The job's own fields hold the keys of what it needs.
        parts = [
            type(job).__name__,
            code_digest((*SHARED, *job.code)),
            self._scopes[job.scope],
            {own.name: self._short(getattr(job, own.name)) for own in fields(job)},  # type: ignore[arg-type]
            self._libraries,
        ]
        return Task(job, json_digest(parts))

    def _short(self, value: object) -> object:
        """A field of a job as plain values; long lists, which many jobs share, by their digest."""
        if not isinstance(value, tuple) or len(value) <= LONG:
            return plain(value)
        if value not in self._lists:
            self._lists[value] = json_digest([plain(value)])
        return self._lists[value]

    def tasks(self, jobs: Sequence[StudyJob]) -> list[Task]:
        """All jobs with their keys."""
        return [self.task(job) for job in jobs]

    def _digest_of(self, scope: Scope) -> str:
        config = self._config.model_dump(mode="json")
        for part in scope.without:
            _drop(config, part.split("."))
        read = {*scope.models, *self._mechanism_models} if scope.models else set()
        config["datasets"] = [d for d in config["datasets"] if d["name"] == scope.dataset]
        # Which layers are claimed is nothing to a task about one of them.
        config["models"] = [m | {"layers": []} for m in config["models"] if m["name"] in read]
        sources = self._files[SOURCE_FILES.name].filter(dataset=scope.dataset or "")
        # Features that were extracted for other datasets are nothing to this one.
        own = pl.col("path").str.starts_with(f"{FEATURE_SETS}{scope.dataset}/")
        files = self._files[MODEL_FILES.name].filter(
            pl.col("model").is_in([*read, PARSER]),
            own | ~pl.col("path").str.starts_with(FEATURE_SETS),
        )
        return json_digest(
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
            list(self._plugins[0]),
            dict(self._plugins[1]),
        ]


def _drop(config: dict[str, Any], path: Sequence[str]) -> None:
    """Remove one table of a configuration, if it exists."""
    for part in path[:-1]:
        config = config.get(part, {})
    config.pop(path[-1], None)


def plain(value: object) -> object:
    """Records and tuples as dictionaries and lists, all the way down."""
    if is_dataclass(value):
        return {own.name: plain(getattr(value, own.name)) for own in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def analyses_of(study: StudyConfig) -> dict[str, Analysis]:
    """The analyses of a study, by name, in the order of its file."""
    return {name: ANALYSES.get(name)(section) for name, section in study.analyses.items()}
