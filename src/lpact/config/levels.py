"""Models, readouts, features, controls and levels."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from lpact.config.section import Fraction, Metric, Name, Section


class LanguageModelConfig(Section):
    """One model of the study."""

    name: Name = Field(description="Name in every table; a model can be listed once.")
    source: str = Field("precomputed", description="Registered model source (`lpact list models`).")
    layers: tuple[int, ...] = Field(
        min_length=1, description="Layers to make claims about; 0 is the input embedding."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Options of the model source; see its reference page."
    )

    @model_validator(mode="after")
    def _check(self) -> LanguageModelConfig:
        if len(set(self.layers)) != len(self.layers):
            raise ValueError("layers lists a layer twice; list each layer once")
        return self


class ReadoutConfig(Section):
    """The nested, blocked, cross-validated ridge readout."""

    folds: Annotated[int, Field(ge=3)] = Field(
        5,
        description="Contiguous outer blocks. Inner validation uses the remaining ones, so at least 3.",
    )
    split: Literal["blocks", "stories"] = Field(
        "blocks",
        description="`blocks`: contiguous blocks of equal size. `stories`: leave one story out (at least 3 stories).",
    )
    gap_events: Annotated[int, Field(ge=0)] = Field(
        5, description="Events left out of training on both sides of every held-out block."
    )
    alphas: tuple[float, ...] = Field(
        (1.0, 10.0, 100.0, 1000.0, 10000.0),
        min_length=1,
        description="Ridge penalties (features are standardised on training rows).",
    )
    pca: tuple[int, ...] = Field(
        (0,),
        min_length=1,
        description="Numbers of principal components to choose from; 0 means all features, no PCA.",
    )
    selection_metric: Literal["r2", "pearson", "spearman"] = Field(
        "r2", description="Inner-fold score by which lag, penalty and components are chosen."
    )
    selection: Literal["per_unit", "per_region", "shared"] = Field(
        "per_unit",
        description="Choose lag, penalty and components for each unit, for all units of a region together, "
        "or one set for all.",
    )
    device: str = Field(
        "cpu",
        pattern=r"^(cpu|torch|mps|cuda(:[0-9]+)?)$",
        description="`cpu`: NumPy. `torch` (torch on the CPU), `cuda`, `cuda:N` or `mps`: PyTorch there, which must be "
        "installed (`pip install 'lpact[torch]'`). Last digits differ between devices.",
    )
    precision: Literal["float64", "float32"] = Field(
        "float64",
        description="Of the large products; `float32` is faster, and exact to three digits or more. "
        "`mps` has no other.",
    )
    memory_gib: Annotated[float, Field(gt=0)] = Field(
        2.0,
        description="Working memory of one readout, beside its inputs; units are taken in chunks that fit.",
    )
    primary_metric: Metric = Field(
        "pearson", description="Held-out metric that the gates look at; all three are stored."
    )
    min_train_events: Annotated[int, Field(ge=2)] = Field(
        50, description="Fewest training rows in any outer fold."
    )
    min_test_events: Annotated[int, Field(ge=2)] = Field(
        10, description="Fewest test rows in any outer fold."
    )

    @model_validator(mode="after")
    def _check(self) -> ReadoutConfig:
        if any(alpha <= 0 for alpha in self.alphas):
            raise ValueError("alphas must be positive")
        if self.device == "mps" and self.precision == "float64":
            raise ValueError('the device mps has no float64; set precision = "float32"')
        if any(k < 0 for k in self.pca):
            raise ValueError("pca sizes must be 0 (no PCA) or positive")
        if len(set(self.alphas)) != len(self.alphas) or len(set(self.pca)) != len(self.pca):
            raise ValueError("alphas and pca must not list a value twice")
        return self


class NuisanceConfig(Section):
    """Nuisance features that a model must beat."""

    include: tuple[str, ...] = Field(
        (
            "word_rate",
            "word_duration",
            "pause_duration",
            "word_length",
            "log_frequency",
            "position_in_sentence",
            "sentence_length",
            "position_in_story",
            "acoustic_envelope",
        ),
        min_length=1,
        description="Nuisance features to build; one that a dataset cannot offer is listed by the audit.",
    )
    drift_cosines: Annotated[int, Field(ge=0)] = Field(
        4, description="Slow cosines over each story that go with `position_in_story`."
    )
    rate_window_s: float = Field(
        2.0, gt=0, description="Window over which `word_rate` counts word onsets."
    )
    language: str | None = Field(
        None,
        pattern=r"^[a-z]{2,3}$",
        description="Language of the words (`en`, `de`, `fr` …), whose list in the package wordfreq gives "
        "`log_frequency` where the words table has no such column. Unset: the column or nothing.",
    )
    envelope_rate_hz: float = Field(
        100.0,
        gt=0,
        description="Sampling rate of an acoustic envelope that is computed from a WAV file.",
    )
    envelope_lowpass_hz: float = Field(
        10.0,
        gt=0,
        description="Cut-off of the low-pass of such an envelope; at most half of `envelope_rate_hz`.",
    )

    @model_validator(mode="after")
    def _check(self) -> NuisanceConfig:
        if 2 * self.envelope_lowpass_hz > self.envelope_rate_hz:
            raise ValueError(
                "envelope_lowpass_hz is above half of envelope_rate_hz; lower it or raise the rate"
            )
        return self


class ControlsConfig(Section):
    """Severe controls."""

    include: tuple[str, ...] = Field(
        (
            "random_matched_dim",
            "random_matched_autocorr",
            "circular_shift",
            "sentence_reset_fresh",
            "reversed_context_fresh",
            "layer_label_permutation",
            "token_order_shuffle",
            "within_story_block_shuffle",
            "untrained_model_fresh",
            "static_embedding",
        ),
        min_length=1,
        description="Registered severe controls (`lpact list controls`). One that a dataset or model cannot support "
        "is reported as unavailable, with the reason.",
    )
    draws: Annotated[int, Field(ge=1)] = Field(
        20, description="Draws of every random control; its score is their mean."
    )
    best_control_rule: Literal["max", "mean_top_3"] = Field(
        "max", description="How the best control is formed from the controls' scores."
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Options by control name; see each control's reference page.",
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
        8, description="Contiguous blocks that are dealt alternately into the two split halves."
    )
    permutations: Annotated[int, Field(ge=1)] = Field(
        99,
        description="Shuffled unit orders, and random exchanges of units between the model's pattern and a rival's, "
        "that the `calibrated` gate profile is held against.",
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Options by alignment measure."
    )


class StrippingConfig(Section):
    """Level 3: does removing a mechanism break the matching units and no others?"""

    mechanisms: tuple[str, ...] = Field(
        (
            "surprisal",
            "semantic_transition",
            "dependency_integration",
            "syntactic_boundary",
            "discourse_boundary",
            "context_update",
        ),
        min_length=2,
        description="Registered mechanisms (`lpact list mechanisms`), one scalar an event each.",
    )
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
        description="Share of units that the localiser picks as a mechanism's target, in every outer fold anew.",
    )
    mismatch_draws: Annotated[int, Field(ge=1)] = Field(
        5,
        description="Random directions of equal variance stripped instead, for each method and mechanism.",
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Options by stripping method."
    )


class MechanismsConfig(Section):
    """Where mechanisms come from, if the dataset does not bring their values along."""

    model: str | None = Field(
        None,
        description="Model of the study whose surprisal and states are used. Unset: the first one that reads text.",
    )
    parser: str | None = Field(
        None,
        pattern=r"^(spacy|stanza):.+$",
        description="Installed pipeline that parses the sentences, as `spacy:NAME` or `stanza:LANGUAGE`. "
        "Unset: the columns `head`, `deprel` and `upos` of the words table.",
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Options by mechanism name; see each mechanism's reference page.",
    )


class AuditConfig(Section):
    """Source audit: what must be there before evidence is looked at."""

    required_controls: tuple[str, ...] = Field(
        ("random_matched_dim", "random_matched_autocorr", "circular_shift"),
        description="Controls without which a dataset's evidence chain is not complete.",
    )
    min_subject_runs: Annotated[int, Field(ge=1)] = Field(
        2, description="Fewest usable subject-run units for a complete chain."
    )
    min_brain_units: Annotated[int, Field(ge=1)] = Field(
        4, description="Fewest usable brain units in a subject-run for a complete chain."
    )
    max_bad_units: Fraction = Field(
        0.5, description="A recording with a larger share of unusable units is excluded whole."
    )


class GatesConfig(Section):
    """Thresholds that turn numbers into verdicts. They never change a number of levels 1 to 4."""

    direction_fraction: Fraction = Field(
        0.6, description="Share of rows or subject-runs that must point the positive way."
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
        description="Expected share of false ones among the claims that the `calibrated` profile gives a label.",
    )
    severe_scope: Literal["claimed_levels", "all_levels"] = Field(
        "claimed_levels",
        description="`claimed_levels`: `predictive_only` asks for severe-control survival at level 1 alone, every "
        "stronger label at levels 1 and 2. `all_levels`: every label asks for both.",
    )
