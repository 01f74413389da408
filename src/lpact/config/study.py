"""The whole study and how it is run: from a TOML file, a mapping, or sections built in Python."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from lpact.analyses import DEFAULT
from lpact.config.sections import (
    ControlsConfig,
    DatasetConfig,
    LanguageModelConfig,
    MechanismsConfig,
    Name,
    NuisanceConfig,
    ReadoutConfig,
)
from lpact.errors import ConfigError, did_you_mean, require_known
from lpact.registry import ANALYSES
from lpact.validation import Section, json_digest, validate_model

_Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.,@:+-]*$")]
MOST_NESTED = 50
"""Tables and lists inside each other in a file."""
_BYTES = r"^\d+(\.\d+)? ?([kMGTP]i?)?B$"


class SlurmConfig(Section):
    """SLURM jobs of `--cluster slurm`; each runs as many worker processes as it has cores."""

    jobs: Annotated[int, Field(ge=1)] = 1
    """Number of jobs."""
    cores: Annotated[int, Field(ge=1)] = 1
    """Cores of a job; each runs one worker process with one BLAS thread."""
    memory: str = Field("4 GiB", pattern=_BYTES)
    """Memory of a job, shared by its processes."""
    walltime: str = Field("01:00:00", pattern=r"^(\d+-)?\d{1,3}(:\d{2}){0,2}$")
    """Longest time of a job, as SLURM writes it. Jobs that end are replaced while the run lasts."""
    queue: _Word = ""
    """Partition; empty: the cluster's own default."""
    account: _Word = ""
    """Account that is charged; empty: the cluster's own default."""
    interface: _Word = ""
    """Network interface by which jobs reach the scheduler on this machine, such as `ib0` or `eth0`. Required, so that
    no port is opened on a network that you did not choose.
    """
    encrypt: bool = True
    """Encrypt and authenticate all traffic with certificates made for this run; they are kept in `folder` while it
    lasts.
    """
    folder: str = Field("lpact-slurm", min_length=1, pattern=r"^[^\s'\"\\\\$`]+$")
    """Folder that all machines of the cluster share, for certificates and for the jobs' own output; relative to where
    lpact is started, unless it is absolute.
    """
    directives: tuple[str, ...] = ()
    """Further lines for `#SBATCH`, such as "--constraint=haswell"."""
    prologue: tuple[str, ...] = ()
    """Shell commands before the workers start, such as "module load python"."""


class RunTable(Section):
    """The table `[run]` of a study file: settings that change no number.

    Where tasks run is not among them: a scheduler runs code on this machine, and study files come from other people.
    """

    MOVED: ClassVar[Mapping[str, str]] = {
        "cluster": "the option --cluster of `lpact run`, since a study file may not name a machine that runs code",
        "slurm": "a file of your own: `lpact run --cluster slurm --slurm FILE`",
    }

    workers: Annotated[int, Field(ge=1)] = 1
    """Processes; each uses one BLAS thread."""
    progress: bool = True
    """Show progress while running."""
    paths: dict[str, str] = Field(default_factory=dict)
    """Folder of each dataset that is read from disk, by dataset name; relative to the study file."""
    models: dict[str, str] = Field(default_factory=dict)
    """Folder (or GGUF file) of a language model, by model name; relative to the study file."""
    features: str = Field("lpact-features", min_length=1)
    """Folder in which features extracted from language models are kept; relative to the study file."""
    grids: str = Field("lpact-grids", min_length=1)
    """Folder in which recordings that take long to read are kept on their event grid; relative to the study file."""
    tasks: str = ""
    """Folder in which results of finished tasks are kept by content, relative to the study file. Empty: next to the
    run, until it is finished. Other runs with the same folder reuse what is the same for them.
    """
    preregistration: str = ""
    """File of `lpact preregister` that the run is compared with, item by item; relative to the study file."""
    patience_s: Annotated[float, Field(gt=0)] = 600.0
    """Seconds to wait for workers of a cluster while there are none, at the start and later on."""

    @field_validator("tasks")
    @classmethod
    def _folder(cls, value: str) -> str:
        if "://" in value:
            raise ValueError(f"'{value}' is not a folder; object stores are not supported")
        return value


class RunConfig(RunTable):
    """How and where the work is done: the table `[run]`, and the cluster that the user names."""

    cluster: str = ""
    """Where tasks run: empty for this machine, the address of a Dask scheduler (`tcp://host:port`, or
    `tls://host:port`), or `slurm` for SLURM jobs.
    """
    slurm: SlurmConfig = Field(default_factory=SlurmConfig)
    """Jobs of the cluster `slurm`."""

    @field_validator("cluster")
    @classmethod
    def _address(cls, value: str) -> str:
        if value in ("", "slurm") or re.fullmatch(r"(tcp|tls)://\S+", value):
            return value
        raise ValueError(f"'{value}' is not a cluster; write tcp://host:port, tls://host:port, or slurm")


class SharedConfig(Section):
    """Sections that all analyses of a study share; all of them change numbers."""

    name: Name
    """Name of the study."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Every random draw derives from this seed and the key of its row."""
    datasets: tuple[DatasetConfig, ...] = Field(min_length=1)
    """Datasets of the study."""
    models: tuple[LanguageModelConfig, ...] = ()
    """Models of the study."""
    readout: ReadoutConfig = Field(default_factory=ReadoutConfig)
    """Readout grid."""
    nuisance: NuisanceConfig = Field(default_factory=NuisanceConfig)
    """Nuisance features."""
    controls: ControlsConfig = Field(default_factory=ControlsConfig)
    """Severe controls."""
    mechanisms: MechanismsConfig = Field(default_factory=MechanismsConfig)
    """Candidate mechanisms."""

    @model_validator(mode="after")
    def _check_shared(self) -> SharedConfig:
        list_once(
            {
                "dataset": [d.name for d in self.datasets],
                "model": [m.name for m in self.models],
                "control": self.controls.include,
                "mechanism": self.mechanisms.include,
                "nuisance feature": self.nuisance.include,
            }
        )
        named = self.mechanisms.model
        if named is not None and named not in {m.name for m in self.models}:
            raise ValueError(f"mechanisms.model '{named}' is not a model of the study; name one of them")
        return self

    def digest(self) -> str:
        """SHA-256 of the canonical JSON of this configuration."""
        return json_digest(self.model_dump(mode="json"))


C = TypeVar("C", bound=SharedConfig)

MOVED = {name: f"lpact.{name}" for name in ("audit", "relational", "stripping", "gates", "assay")}
"""Tables of study files before version 0.2, and where they are now."""


class StudyConfig(SharedConfig):
    """Everything that changes a number: the shared tables, and one table per analysis."""

    analyses: dict[str, SerializeAsAny[Section]] = Field(default_factory=dict)
    """The analyses of the study, by name; each is a separate table in the file (`[lpact]`)."""

    @model_serializer(mode="wrap")
    def _as_in_the_file(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = dump(self)
        own: dict[str, Any] = values.pop("analyses")
        return values | own

    def only(self, name: str) -> StudyConfig:
        """The study with one analysis: what its results may depend on."""
        return self.model_copy(update={"analyses": {name: self.analyses[name]}})

    def view(self, name: str, kind: type[C]) -> C:
        """The shared tables and one analysis' own, as one record."""
        shared = {field: getattr(self, field) for field in SharedConfig.model_fields}
        return kind(**shared, **dict(self.analyses[name]))


def study_config(values: Mapping[str, Any], *, where: str) -> StudyConfig:
    """Validate a study as its file writes it: shared tables, and one table per analysis; raises `ConfigError`.

    A study without an analysis table runs L-PACT.
    """
    if not any(name in values for name in ANALYSES.names()):
        values = {**values, DEFAULT: {}}
    tables = [*SharedConfig.model_fields, *ANALYSES.names(), "run"]
    for name in values:
        if name not in tables:
            raise ConfigError(
                f"the study file has an unknown table or option '{name}'",
                where=where,
                got=name,
                expected=f"one of {', '.join(tables)}; or the name of an installed analysis",
                remedy=f"rename the table to [{MOVED[name]}]"
                if name in MOVED
                else f"{did_you_mean(name, tables)}; if '{name}' is an analysis, install its package",
            )
    named = [name for name in values if name in ANALYSES.names()]
    sections = {
        name: validate_model(ANALYSES.get(name).Options, _mapping(values[name]), where=f"{where}, table [{name}]")
        for name in named
    }
    shared = {name: value for name, value in values.items() if name not in named}
    return validate_model(StudyConfig, {**shared, "analyses": sections}, where=where)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {"": value}


def flat_options(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every option by its dotted path; a list of tables gives their names, then the options of each."""
    for key, value in values.items():
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping) and value:
            yield from flat_options(value, here)
        elif isinstance(value, list) and value and all(isinstance(own, Mapping) for own in value):
            names = [own.get("name", place) for place, own in enumerate(value)]
            yield here, names
            for name, own in zip(names, value, strict=True):
                rest = {inner: option for inner, option in own.items() if inner != "name"}
                yield from flat_options(rest, f"{here}[{name}]")
        else:
            yield here, value


def list_once(listed: Mapping[str, Sequence[str]]) -> None:
    """Raise `ValueError` where a name is listed twice."""
    for what, names in listed.items():
        for name in names:
            if list(names).count(name) > 1:
                raise ValueError(f"the {what} '{name}' is listed twice; list it once")


def read_study_file(path: str | Path) -> tuple[StudyConfig, RunConfig]:
    """Read and validate a study file (TOML)."""
    path = Path(path)
    study, run = study_from_values(read_toml(path, "the study file"), where=str(path))
    folder = path.absolute().parent
    own = ("features", "grids", "tasks", "preregistration")
    found: dict[str, Any] = {name: str(folder / value) for name in own if (value := getattr(run, name))}
    for option in ("paths", "models"):
        given = getattr(run, option)
        found[option] = {name: str(folder / value) for name, value in given.items()}
    return study, run.model_copy(update=found)


def read_slurm_file(path: str | Path) -> SlurmConfig:
    """Read and validate a file of SLURM options (TOML)."""
    what = "the file of SLURM options"
    return validate_model(SlurmConfig, read_toml(path, what), where=str(path), what=f"{what} is")


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """The tables of a TOML file; ``what`` names it in errors."""
    path = Path(path)
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait forever
            raise OSError("a folder" if path.is_dir() else "not a regular file")
        return parse_toml(path.read_text(encoding="utf-8-sig"), what, where=str(path))
    except FileNotFoundError:
        raise ConfigError(
            f"{what} does not exist", where=str(path), remedy=f"check the path; `lpact init {path}` writes a study file"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{what} cannot be read",
            where=str(path),
            got=str(error),
            expected="a readable UTF-8 TOML file",
            remedy="check the path and its permissions",
        ) from error


def parse_toml(text: str, what: str, *, where: str) -> dict[str, Any]:
    """The tables of a text in TOML; ``what`` and ``where`` name it in errors."""
    remedy = "correct the value"
    try:
        values = tomllib.loads(text)
        problem = _excess(values)
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
        remedy = "fix the named line" if "line" in problem else "complete its last line"
    except (ValueError, RecursionError):
        values, problem = {}, "a number of thousands of digits, or thousands of nested brackets"
    if problem:
        raise ConfigError(f"{what} is not valid TOML", where=where, got=problem, expected="TOML 1.0", remedy=remedy)
    return values


def _excess(value: object, depth: int = 0) -> str:
    """Very deep nesting, and integers of more than 64 bits, which TOML readers need not accept."""
    if depth > MOST_NESTED:
        return f"more than {MOST_NESTED} tables or lists inside each other"
    if isinstance(value, int):
        return "" if -(2**63) <= value < 2**63 else "an integer of more than 64 bits"
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return next(filter(None, (_excess(own, depth + 1) for own in inside)), "")


def parse_study(text: str, *, where: str) -> tuple[StudyConfig, RunConfig]:
    """Validate the text of a study file; ``where`` names it in errors."""
    return study_from_values(parse_toml(text, "the study file", where=where), where=where)


def study_from_values(values: dict[str, Any], *, where: str) -> tuple[StudyConfig, RunConfig]:
    """Validate a study file as a mapping."""
    if problem := _excess(values):
        raise ConfigError("the study is not valid", where=where, got=problem, remedy="correct the value")
    own = _mapping(values.pop("run", {}))
    table = validate_model(RunTable, own, where=f"{where}, table [run]")
    run = RunConfig(**table.model_dump(exclude_unset=True))
    study = study_config(values, where=where)
    check_paths(study, run, where=where)
    return study, run


def check_paths(study: StudyConfig, run: RunConfig, *, where: str) -> None:
    """Raise `ConfigError` where a path is given for a dataset or model that the study does not list."""
    others = [name for own in study.analyses.values() for name in own.path_names]
    for what, option, given, names in (
        ("dataset", "paths", run.paths, [*(d.name for d in study.datasets), *others]),
        ("model", "models", run.models, [m.name for m in study.models]),
    ):
        for name in given:
            place = f"{where}, option 'run.{option}'"
            require_known(name, names, f"{what} of the study", where=place, error=ConfigError)


class Dataset(DatasetConfig):
    """One dataset of the study, with its folder on this machine."""

    path: Path | str | None = Field(None, exclude=True)
    """Folder of the dataset, where it is read from disk."""


class Model(LanguageModelConfig):
    """One model of the study, with its folder on this machine."""

    path: Path | str | None = Field(None, exclude=True)
    """Folder (or GGUF file) of a language model."""


def with_paths(run: RunConfig | None, datasets: Sequence[Section], models: Sequence[Section]) -> RunConfig:
    """Add the folders of datasets and models to the run's settings, which they override."""
    run = run or RunConfig()
    given = {"paths": _paths(datasets), "models": _paths(models)}
    return run.model_copy(update={k: {**getattr(run, k), **v} for k, v in given.items()})


def _paths(sections: Sequence[Section]) -> dict[str, str]:
    found = ((dict(section)["name"], getattr(section, "path", None)) for section in sections)
    return {name: str(Path(path).absolute()) for name, path in found if path is not None}
