"""Sections that every analysis shares: models, readout, nuisance, controls, mechanisms."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from lpact.config.recordings import Metric, Name
from lpact.validation import Section


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


class MechanismsConfig(Section):
    """Candidate mechanisms, and where they come from if the dataset does not bring their values along."""

    include: tuple[str, ...] = Field(
        (
            "surprisal",
            "semantic_transition",
            "dependency_integration",
            "syntactic_boundary",
            "discourse_boundary",
            "context_update",
        ),
        description="Registered mechanisms (`lpact list mechanisms`), one number per event each.",
    )
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
