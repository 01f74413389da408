"""The whole study, and how it is run."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

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
