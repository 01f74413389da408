"""L-PACT's part of the study file: ``[lpact]`` and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from lpact.config import Fraction, Section, SharedConfig, StudyConfig, list_once

Count = Annotated[int, Field(ge=1)]

OF_POPULATIONS = ("linear", "rsa", "cka_debiased")
"""Alignment measures of populations, by default: the number of units changes no expected value at chance."""


class AuditConfig(Section):
    """Source audit: what a dataset needs before its evidence is evaluated."""

    MOVED: ClassVar[Mapping[str, str]] = {"max_bad_units": "max_bad_units of each dataset"}

    required_controls: tuple[str, ...] = (
        "random_matched_dim",
        "random_matched_autocorr",
        "circular_shift",
    )
    """Controls that a complete evidence chain needs."""
    min_subject_runs: Annotated[int, Field(ge=1)] = 2
    """Minimum number of usable subject-runs for a complete evidence chain."""
    min_brain_units: Annotated[int, Field(ge=1)] = 4
    """Minimum number of usable brain units per subject-run for a complete evidence chain."""


class RelationalConfig(Section):
    """Level 2: does the model reproduce the brain's own relational pattern?"""

    alignments: tuple[str, ...] = Field(("linear", "rsa", "cka"), min_length=1)
    """Registered alignment measures (`lpact list measures`), used for model→unit and unit→unit alike."""
    profiles: tuple[str, ...] = Field(("pearson", "spearman", "cosine"), min_length=1)
    """Profile similarities (`lpact list profiles`) between the model's and a unit's pattern."""
    brain_patterns_from: Literal["same_run", "other_run", "other_subject"] = "same_run"
    """Where brain patterns are taken from. Within one run units share noise that a model does not."""
    min_units: Annotated[int, Field(ge=3)] = 8
    """With fewer units the level is `insufficient_coverage`."""
    half_blocks: Annotated[int, Field(ge=2)] = 8
    """Contiguous blocks that are assigned alternately to the two split halves."""
    permutations: Annotated[int, Field(ge=1)] = 99
    """Shuffled unit orders, and random exchanges of units between the model's pattern and a rival's, with which the
    `calibrated` gate profile compares the model.
    """
    region_as: Literal["mean", "population"] = "mean"
    """What level 2 compares where `grid.units = "regions"`: means over the units of a region, or populations of units.
    With populations, the default of `alignments` has `cka_debiased` in place of `cka`.
    """
    min_region_units: Count = 3
    """With fewer units a region has no pattern (`too_few_units`). `rsa` correlates responses of three units or more."""
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options by alignment measure."""

    @model_validator(mode="before")
    @classmethod
    def _unbiased_measures(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and values.get("region_as") == "population":
            return {"alignments": OF_POPULATIONS, **values}
        return values


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
    )
    """Registered stripping methods (`lpact list strippings`)."""
    target_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = 0.15
    """Share of units that the localiser selects as a mechanism's target, anew in every outer fold."""
    mismatch_draws: Annotated[int, Field(ge=1)] = 5
    """Random directions of equal variance stripped instead, for each method and mechanism."""
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options by stripping method."""


class GatesConfig(Section):
    """Thresholds that turn numbers into verdicts. They never change a number of levels 1 to 4."""

    direction_fraction: Fraction = 0.6
    """Share of rows or subject-runs that must be positive."""
    min_subject_runs: Annotated[int, Field(ge=1)] = 3
    """Minimum number of subject-runs for a replicated claim."""
    min_reliability: Fraction = 0.1
    """Lowest brain–brain reliability that can bound a score."""
    min_ceiling_fraction: Annotated[float, Field(ge=0.0)] = 0.25
    """Lowest mean fraction of the brain–brain ceiling."""
    summary_majority: Fraction = 0.5
    """More than this share of relational summaries must pass."""
    method_majority: Fraction = 0.5
    """At least this share of stripping methods must agree."""
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.05
    """Level of every gate of the `calibrated` profile."""
    fdr: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.05
    """Expected share of false claims among those that the `calibrated` profile labels."""
    severe_scope: Literal["claimed_levels", "all_levels"] = "claimed_levels"
    """`claimed_levels`: `predictive_only` requires survival of severe controls at level 1 only, every stronger label at
    levels 1 and 2. `all_levels`: every label requires both.
    """


class AssayConfig(Section):
    """Positive controls. They show what the assay can detect, and never change a verdict on a model."""

    enabled: bool = True
    """Whether `lpact run` computes the positive controls."""
    implant_snr: float = Field(1.5, gt=0)
    """Strength of the signal that the implanted study carries; see `snr` of the reader `simulated`."""
    unit_permutations: Count = 50
    """Shuffled unit orders with which brain-as-model and profile-order controls are compared."""
    onset_windows_ms: tuple[tuple[float, float], ...] = Field(
        ((0.0, 100.0), (100.0, 300.0), (250.0, 500.0)), min_length=1
    )
    """Windows after word onset in which responses to words and to their rate are tested."""
    shifts: Count = 20
    """Circular shifts of word onsets, word rate and envelope that a response is compared with; at least `1 / alpha -
    1`, so that p can reach `alpha`.
    """
    alpha: float = Field(0.05, gt=0, lt=1)
    """Largest p at which a row passes against circular shifts, and a brain in a model's place against shuffled unit
    orders.
    """
    envelope_lags_ms: tuple[float, ...] = Field((0.0, 50.0, 100.0, 150.0, 200.0, 300.0), min_length=1)
    """Lags of the acoustic envelope that predict the signal jointly."""
    envelope_rate_hz: float = Field(25.0, gt=0)
    """Rate to which envelope and signal are resampled; a slower signal keeps its own rate."""

    @model_validator(mode="after")
    def _check(self) -> AssayConfig:
        if any(start >= stop for start, stop in self.onset_windows_ms):
            why = "a window of onset_windows_ms ends before it starts; write [start, stop]"
            raise ValueError(why)
        for name in ("envelope_lags_ms", "onset_windows_ms"):
            if len(set(getattr(self, name))) != len(getattr(self, name)):
                raise ValueError(f"{name} lists a value twice; list each once")
        if self.alpha * (self.shifts + 1) < 1.0 - 1e-9:
            raise ValueError(f"no p of {self.shifts} shifts can reach alpha = {self.alpha:g}; raise shifts or alpha")
        return self


class LPactSection(Section):
    """Is a brain score more than a prediction score?"""

    audit: AuditConfig = Field(default_factory=AuditConfig)
    """Source audit."""
    relational: RelationalConfig = Field(default_factory=RelationalConfig)
    """Level 2."""
    stripping: StrippingConfig = Field(default_factory=StrippingConfig)
    """Level 3."""
    gates: GatesConfig = Field(default_factory=GatesConfig)
    """Decision thresholds."""
    assay: AssayConfig = Field(default_factory=AssayConfig)
    """Positive controls."""

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
