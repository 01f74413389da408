"""L-PACT's part of the study file: ``[lpact]`` and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from lpact.config import Fraction, Section, SharedConfig, StudyConfig, list_once

Count = Annotated[int, Field(ge=1)]


class AuditConfig(Section):
    """Source audit: what a dataset needs before its evidence is evaluated."""

    MOVED: ClassVar[Mapping[str, str]] = {"max_bad_units": "max_bad_units of each dataset"}

    required_controls: tuple[str, ...] = Field(
        ("random_matched_dim", "random_matched_autocorr", "circular_shift"),
        description="Controls that a complete evidence chain needs.",
    )
    min_subject_runs: Annotated[int, Field(ge=1)] = Field(
        2, description="Fewest usable subject-run units for a complete chain."
    )
    min_brain_units: Annotated[int, Field(ge=1)] = Field(
        4, description="Fewest usable brain units in a subject-run for a complete chain."
    )


class RelationalConfig(Section):
    """Level 2: does the model reproduce the brain's own relational pattern?"""

    alignments: tuple[str, ...] = Field(
        ("linear", "rsa", "cka"),
        min_length=1,
        description="Registered alignment measures (`lpact list measures`), used for model→unit and unit→unit alike.",
    )
    profiles: tuple[str, ...] = Field(
        ("pearson", "spearman", "cosine"),
        min_length=1,
        description="Profile similarities (`lpact list profiles`) between the model's and a unit's pattern.",
    )
    brain_patterns_from: Literal["same_run", "other_run", "other_subject"] = Field(
        "same_run",
        description="Where brain patterns are taken from. Within one run units share noise that a model does not.",
    )
    min_units: Annotated[int, Field(ge=3)] = Field(
        8, description="With fewer units the level is `insufficient_coverage`."
    )
    half_blocks: Annotated[int, Field(ge=2)] = Field(
        8, description="Contiguous blocks that are assigned alternately to the two split halves."
    )
    permutations: Annotated[int, Field(ge=1)] = Field(
        99,
        description="Shuffled unit orders, and random exchanges of units between the model's pattern and a rival's, "
        "with which the `calibrated` gate profile compares the model.",
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Options by alignment measure."
    )


class StrippingConfig(Section):
    """Level 3: does removing a mechanism break the matching units and no others?"""

    MOVED: ClassVar[Mapping[str, str]] = {"mechanisms": "mechanisms.include"}

    methods: tuple[str, ...] = Field(
        (
            "feature_zeroing",
            "feature_residualization",
            "mechanism_projection_removal",
            "layer_ablation",
            "context_reset",
            "reversed_context",
        ),
        min_length=1,
        description="Registered stripping methods (`lpact list strippings`).",
    )
    target_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        0.15,
        description="Share of units that the localiser selects as a mechanism's target, in every outer fold anew.",
    )
    mismatch_draws: Annotated[int, Field(ge=1)] = Field(
        5,
        description="Random directions of equal variance stripped instead, for each method and mechanism.",
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Options by stripping method."
    )


class GatesConfig(Section):
    """Thresholds that turn numbers into verdicts. They never change a number of levels 1 to 4."""

    direction_fraction: Fraction = Field(
        0.6, description="Share of rows or subject-runs that must be positive."
    )
    min_subject_runs: Annotated[int, Field(ge=1)] = Field(
        3, description="Fewest subject-run units for a replicated claim."
    )
    min_reliability: Fraction = Field(
        0.1, description="Lowest brain–brain reliability that can bound a score."
    )
    min_ceiling_fraction: Annotated[float, Field(ge=0.0)] = Field(
        0.25, description="Lowest mean fraction of the brain–brain ceiling."
    )
    summary_majority: Fraction = Field(
        0.5, description="More than this share of relational summaries must pass."
    )
    method_majority: Fraction = Field(
        0.5, description="At least this share of stripping methods must agree."
    )
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.05, description="Level of every gate of the `calibrated` profile."
    )
    fdr: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.05,
        description="Expected share of false claims among those that the `calibrated` profile labels.",
    )
    severe_scope: Literal["claimed_levels", "all_levels"] = Field(
        "claimed_levels",
        description="`claimed_levels`: `predictive_only` asks for severe-control survival at level 1 alone, every "
        "stronger label at levels 1 and 2. `all_levels`: every label asks for both.",
    )


class AssayConfig(Section):
    """Positive controls. They show what the assay can detect, and never change a verdict on a model."""

    enabled: bool = Field(True, description="Whether `lpact run` computes the positive controls.")
    implant_snr: float = Field(
        1.5,
        gt=0,
        description="Strength of the signal that the implanted study carries; see `snr` of the reader `simulated`.",
    )
    unit_permutations: Count = Field(
        50,
        description="Shuffled unit orders with which brain-as-model and profile-order controls are compared.",
    )
    onset_windows_ms: tuple[tuple[float, float], ...] = Field(
        ((0.0, 100.0), (100.0, 300.0), (250.0, 500.0)),
        min_length=1,
        description="Windows after word onset in which responses to words and to their rate are tested.",
    )
    shifts: Count = Field(
        20,
        description="Circular shifts of word onsets, word rate and envelope that a response is compared with; at least "
        "`1 / alpha - 1`, so that p can reach `alpha`.",
    )
    alpha: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="Largest p at which a row passes against circular shifts, and a brain in a model's place against "
        "shuffled unit orders.",
    )
    envelope_lags_ms: tuple[float, ...] = Field(
        (0.0, 50.0, 100.0, 150.0, 200.0, 300.0),
        min_length=1,
        description="Lags at which the acoustic envelope predicts the signal, side by side.",
    )
    envelope_rate_hz: float = Field(
        25.0,
        gt=0,
        description="Rate to which envelope and signal are resampled; a slower signal keeps its own rate.",
    )

    @model_validator(mode="after")
    def _check(self) -> AssayConfig:
        if any(start >= stop for start, stop in self.onset_windows_ms):
            raise ValueError(
                "a window of onset_windows_ms ends before it starts; write [start, stop]"
            )
        if len(set(self.envelope_lags_ms)) != len(self.envelope_lags_ms):
            raise ValueError("envelope_lags_ms lists a lag twice; list each lag once")
        if len(set(self.onset_windows_ms)) != len(self.onset_windows_ms):
            raise ValueError("onset_windows_ms lists a window twice; list each window once")
        if self.alpha * (self.shifts + 1) < 1.0 - 1e-9:
            raise ValueError(
                f"no p of {self.shifts} shifts can reach alpha = {self.alpha:g}; raise shifts or alpha"
            )
        return self


class LPactSection(Section):
    """Is a brain score more than a prediction score?"""

    audit: AuditConfig = Field(default_factory=AuditConfig, description="Source audit.")
    relational: RelationalConfig = Field(default_factory=RelationalConfig, description="Level 2.")
    stripping: StrippingConfig = Field(default_factory=StrippingConfig, description="Level 3.")
    gates: GatesConfig = Field(default_factory=GatesConfig, description="Decision thresholds.")
    assay: AssayConfig = Field(default_factory=AssayConfig, description="Positive controls.")

    @model_validator(mode="after")
    def _check(self) -> LPactSection:
        list_once(
            {
                "stripping method": self.stripping.methods,
                "alignment measure": self.relational.alignments,
                "profile similarity": self.relational.profiles,
            }
        )
        return self


class LPactConfig(SharedConfig, LPactSection):
    """A study as L-PACT sees it: the shared tables and its own."""

    @classmethod
    def of(cls, study: StudyConfig) -> LPactConfig:
        """The part of a study that L-PACT reads."""
        return study.view("lpact", cls)

    def study(self) -> StudyConfig:
        """A study that asks L-PACT's question alone."""
        shared = {field: getattr(self, field) for field in SharedConfig.model_fields}
        own = {field: getattr(self, field) for field in LPactSection.model_fields}
        return StudyConfig(**shared, analyses={"lpact": LPactSection(**own)})
