"""The whole study, and how it is run."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from pydantic import Field, field_validator, model_validator

from lpact.config.assay import AssayConfig
from lpact.config.levels import (
    AuditConfig,
    ControlsConfig,
    GatesConfig,
    LanguageModelConfig,
    MechanismsConfig,
    NuisanceConfig,
    ReadoutConfig,
    RelationalConfig,
    StrippingConfig,
)
from lpact.config.recordings import DatasetConfig
from lpact.config.section import Name, Section
from lpact.config.validate import config_digest

_WORD = r"^[A-Za-z0-9_.,@:+-]*$"
_BYTES = r"^\d+(\.\d+)? ?([kMGTP]i?)?B$"


class SlurmConfig(Section):
    """Jobs that `cluster = "slurm"` asks SLURM for; each holds as many worker processes as cores."""

    jobs: Annotated[int, Field(ge=1)] = Field(1, description="Jobs to ask for.")
    cores: Annotated[int, Field(ge=1)] = Field(
        1, description="Cores of a job; each runs one worker process with one BLAS thread."
    )
    memory: str = Field(
        "4 GiB", pattern=_BYTES, description="Memory of a job, shared by its processes."
    )
    walltime: str = Field(
        "01:00:00",
        pattern=r"^(\d+-)?\d{1,3}(:\d{2}){0,2}$",
        description="Longest time of a job, as SLURM writes it. Jobs that end are asked for again while the run lasts.",
    )
    queue: str = Field(
        "", pattern=_WORD, description="Partition; empty: the cluster's own default."
    )
    account: str = Field(
        "", pattern=_WORD, description="Account that is charged; empty: the cluster's own default."
    )
    interface: str = Field(
        "",
        pattern=_WORD,
        description="Network interface by which jobs reach the scheduler on this machine, such as `ib0` or `eth0`. "
        "Needed: nothing is opened to a network that was not named.",
    )
    encrypt: bool = Field(
        True,
        description="Encrypt and authenticate all traffic with certificates made for this run; they are kept in "
        "`folder` while it lasts.",
    )
    folder: str = Field(
        "lpact-slurm",
        min_length=1,
        pattern=r"^[^\s'\"\\\\$`]+$",
        description="Folder that all machines of the cluster share, for certificates and for the jobs' own output; "
        "relative to where lpact is started, unless it is absolute.",
    )
    directives: tuple[str, ...] = Field(
        (), description='Further lines for `#SBATCH`, such as "--constraint=haswell".'
    )
    prologue: tuple[str, ...] = Field(
        (), description='Shell commands before the workers start, such as "module load python".'
    )


class RunConfig(Section):
    """Settings that change no number: how and where the work is done."""

    workers: Annotated[int, Field(ge=1)] = Field(
        1, description="Processes; each uses one BLAS thread."
    )
    progress: bool = Field(True, description="Show progress while running.")
    paths: dict[str, str] = Field(
        default_factory=dict,
        description="Folder of each dataset that is read from disk, by dataset name; relative to the study file.",
    )
    models: dict[str, str] = Field(
        default_factory=dict,
        description="Folder (or GGUF file) of a language model, by model name; relative to the study file.",
    )
    features: str = Field(
        "lpact-features",
        min_length=1,
        description="Folder in which features extracted from language models are kept; relative to the study file.",
    )
    grids: str = Field(
        "lpact-grids",
        min_length=1,
        description="Folder in which recordings that take long to read are kept on their event grid; relative to the "
        "study file.",
    )
    tasks: str = Field(
        "",
        description="Where results of finished tasks are kept by content: a folder, relative to the study file, or the "
        "URL of an object store (`s3://bucket/folder`). Empty: beside the run, until it is finished. A place that is "
        "named here is kept, and other runs take from it what is the same for them.",
    )
    preregistration: str = Field(
        "",
        description="File of `lpact preregister` that the run is held against, item by item; relative to the study "
        "file.",
    )
    cluster: str = Field(
        "",
        description="Where tasks run: empty for this machine, the address of a Dask scheduler (`tcp://host:port`, or "
        "`tls://host:port`), or `slurm` for jobs of its own (see `run.slurm`).",
    )
    patience_s: Annotated[float, Field(gt=0)] = Field(
        600.0,
        description="Seconds to wait for workers of a cluster while there are none, at the start and later on.",
    )
    slurm: SlurmConfig = Field(
        default_factory=SlurmConfig, description='Jobs of `cluster = "slurm"`.'
    )

    @field_validator("cluster")
    @classmethod
    def _address(cls, value: str) -> str:
        if value in ("", "slurm") or re.fullmatch(r"(tcp|tls)://\S+", value):
            return value
        raise ValueError(
            f"'{value}' is no cluster; write tcp://host:port, tls://host:port, or slurm"
        )


class StudyConfig(Section):
    """Everything that changes a number."""

    BESIDE: ClassVar[tuple[str, ...]] = ("run",)
    """Tables that a study file has beside these."""

    name: Name = Field(description="Name of the study.")
    seed: Annotated[int, Field(ge=0)] = Field(
        0, description="Every random draw derives from this seed and the key of its row."
    )
    datasets: tuple[DatasetConfig, ...] = Field(min_length=1, description="Datasets of the study.")
    models: tuple[LanguageModelConfig, ...] = Field(
        min_length=1, description="Models of the study."
    )
    readout: ReadoutConfig = Field(default_factory=ReadoutConfig, description="Readout grid.")
    nuisance: NuisanceConfig = Field(
        default_factory=NuisanceConfig, description="Nuisance features."
    )
    controls: ControlsConfig = Field(default_factory=ControlsConfig, description="Severe controls.")
    relational: RelationalConfig = Field(default_factory=RelationalConfig, description="Level 2.")
    stripping: StrippingConfig = Field(default_factory=StrippingConfig, description="Level 3.")
    mechanisms: MechanismsConfig = Field(
        default_factory=MechanismsConfig, description="Sources of mechanisms."
    )
    audit: AuditConfig = Field(default_factory=AuditConfig, description="Source audit.")
    gates: GatesConfig = Field(default_factory=GatesConfig, description="Decision thresholds.")
    assay: AssayConfig = Field(default_factory=AssayConfig, description="Positive controls.")

    @model_validator(mode="after")
    def _check(self) -> StudyConfig:
        for what, names in (
            ("dataset", [d.name for d in self.datasets]),
            ("model", [m.name for m in self.models]),
            ("control", list(self.controls.include)),
            ("mechanism", list(self.stripping.mechanisms)),
            ("stripping method", list(self.stripping.methods)),
            ("alignment measure", list(self.relational.alignments)),
            ("profile similarity", list(self.relational.profiles)),
            ("nuisance feature", list(self.nuisance.include)),
        ):
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"the {what} '{name}' is listed twice; list it once")
        named = self.mechanisms.model
        if named is not None and named not in {m.name for m in self.models}:
            raise ValueError(
                f"mechanisms.model '{named}' is no model of the study; name one of them"
            )
        return self

    def digest(self) -> str:
        """SHA-256 of the canonical JSON of this configuration."""
        return config_digest(self.model_dump(mode="json"))
