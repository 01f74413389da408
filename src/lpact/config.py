"""The study file: what changes numbers (`StudyConfig`, hashed) and what does not (`RunConfig`, never hashed).

Every option carries its explanation; ``docs/reference/study-file.md`` and the starter file of ``lpact init`` are made
from them.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lpact.errors import ConfigError, did_you_mean

Role = Literal["primary", "secondary", "validation_only", "stimulus_only", "diagnostic"]
EventKind = Literal["words", "sentences", "trs"]
Pooling = Literal["last", "mean", "sum", "first"]
Metric = Literal["pearson", "spearman", "r2"]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]


class Section(BaseModel):
    """A table of the study file: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class GridConfig(Section):
    """How words become rows that features and neural responses share."""

    events: EventKind = Field("words", description="What one row is: a word, a sentence or a TR.")
    lags_ms: tuple[float, ...] = Field(
        (0.0, 100.0, 200.0, 300.0),
        min_length=1,
        description="Candidate lags from event onset (or TR) to the response; chosen on training rows only. "
        "Recordings that come epoched bring their own lags.",
    )
    window_ms: float = Field(
        200.0, gt=0, description="Length of the response window that starts at onset + lag."
    )
    units: Literal["units", "regions"] = Field(
        "units",
        description="What one brain unit is: an electrode, sensor or voxel, or the mean over a region's units.",
    )
    pooling: Pooling = Field(
        "mean", description="How a sentence's or TR's words are pooled into one feature row."
    )
    tr_features: Literal["pool", "hrf", "lanczos"] = Field(
        "pool",
        description="How words reach TRs. `pool`: the words that begin in a TR, by `pooling`. `hrf`: every word's "
        "features convolved with a haemodynamic response, sampled at the TRs. `lanczos`: low-pass filtered and "
        "resampled to the TRs. With the last two, TRs without words are kept.",
    )
    hrf: Literal["spm", "glover"] = Field(
        "spm", description='Haemodynamic response of `tr_features = "hrf"`.'
    )
    lanczos_lobes: Annotated[int, Field(ge=1)] = Field(
        3, description="Lobes of the Lanczos filter on each side."
    )
    lanczos_cutoff: float = Field(
        1.0, gt=0, description="Cut-off of the Lanczos filter, in units of 1 / TR."
    )
    fir_ms: tuple[float, ...] = Field(
        (),
        description="Delays of a finite impulse response: readouts see the features at all of these delays side by "
        'side, and weigh them freely. Whole numbers of TRs; asks for `tr_features = "lanczos"`. Empty: none.',
    )
    reference_lag_ms: float | None = Field(
        None,
        description="Lag for measures that are not fitted (RSA, CKA, reliability); must be one of `lags_ms`. "
        "Unset: the middle one.",
    )

    @model_validator(mode="after")
    def _check(self) -> GridConfig:
        if len(set(self.lags_ms)) != len(self.lags_ms):
            raise ValueError("lags_ms lists a lag twice; list each lag once")
        if self.reference_lag_ms is not None and self.reference_lag_ms not in self.lags_ms:
            raise ValueError("reference_lag_ms is not one of lags_ms; choose one of them")
        if self.tr_features != "pool" and self.events != "trs":
            raise ValueError(f'tr_features = "{self.tr_features}" asks for events = "trs"')
        if self.fir_ms and self.tr_features != "lanczos":
            raise ValueError('fir_ms asks for tr_features = "lanczos", which keeps every TR')
        if len(set(self.fir_ms)) != len(self.fir_ms):
            raise ValueError("fir_ms lists a delay twice; list each delay once")
        return self


class PreprocessConfig(Section):
    """What is done to a recording before it is put on the grid; by default nothing."""

    channels: tuple[str, ...] = Field(
        (),
        description="Units to keep, by id or pattern (`LA*`, `MEG ???1`). Empty: all.",
    )
    drop_channels: tuple[str, ...] = Field((), description="Units to leave out, by id or pattern.")
    regions: tuple[str, ...] = Field(
        (), description="Regions whose units are kept, by name or pattern. Empty: all."
    )
    notch_hz: tuple[Annotated[float, Field(gt=0)], ...] = Field(
        (),
        description="Frequencies to take out, each by a notch of 1/30 of its frequency: power line and harmonics.",
    )
    reference: Literal["none", "average", "bipolar", "laplacian"] = Field(
        "none",
        description="`none`: as recorded. `average`: minus the mean of the kept, usable channels. `bipolar`: minus "
        "the next contact of the shaft or strip. `laplacian`: minus the mean of the contacts before and after.",
    )
    highpass_hz: float | None = Field(
        None, gt=0, description="Lowest frequency to keep. Unset: no high-pass."
    )
    lowpass_hz: float | None = Field(
        None, gt=0, description="Highest frequency to keep. Unset: no low-pass."
    )
    envelope: Literal["none", "hilbert", "high_gamma"] = Field(
        "none",
        description="`hilbert`: amplitude of the signal as it was filtered; set `highpass_hz` and `lowpass_hz` to the "
        "band. `high_gamma`: mean of the amplitudes in the bands of `envelope_bands_hz`, each divided by its own mean. "
        "`none`: the signal itself.",
    )
    envelope_bands_hz: tuple[Annotated[float, Field(gt=0)], ...] = Field(
        (70.0, 80.0, 90.0, 100.0, 110.0, 120.0, 130.0, 140.0, 150.0),
        min_length=2,
        description='Edges of the bands of `envelope = "high_gamma"`, rising.',
    )
    resample_hz: float | None = Field(
        None,
        gt=0,
        description="New sampling rate, at most the old one. Unset: as recorded.",
    )
    detrend: bool = Field(
        False, description="Take out a straight line over the recording (fMRI; nilearn)."
    )
    highpass_s: float | None = Field(
        None,
        gt=0,
        description="Take out what is slower than this period, with cosines (fMRI; nilearn), such as 128. "
        "Unset: nothing.",
    )
    confounds: tuple[str, ...] = Field(
        (),
        description="Nuisance series of the recording to regress out, by name or pattern (fMRI; nilearn).",
    )
    zscore: bool = Field(
        False,
        description="Scale every unit to mean 0 and deviation 1 over its recording, after all other steps. "
        "Readouts standardise on training rows in any case.",
    )
    artefact_threshold: float | None = Field(
        None,
        gt=0,
        description="Absolute value, in the unit of the signal after all steps, beyond which a sample is an artefact. "
        "Unset: none is.",
    )
    artefact_units: Fraction = Field(
        0.1,
        description="An event is left out when more than this share of units has an artefact in its windows.",
    )
    missing: Literal["drop_units", "drop_events"] = Field(
        "drop_units",
        description="What samples that are not finite cost: `drop_units`: the unit that has them. `drop_events`: the "
        "events whose windows touch them; filters then work between them.",
    )

    @model_validator(mode="after")
    def _check(self) -> PreprocessConfig:
        for option in ("channels", "drop_channels", "regions", "notch_hz", "confounds"):
            values = getattr(self, option)
            if len(set(values)) != len(values):
                raise ValueError(f"{option} lists a value twice; list each once")
        bands = self.envelope_bands_hz
        if any(low >= high for low, high in pairwise(bands)):
            raise ValueError(
                "envelope_bands_hz does not rise; list the edges of the bands in order"
            )
        low, high = self.highpass_hz, self.lowpass_hz
        if low is not None and high is not None and low >= high:
            raise ValueError(
                "highpass_hz is not below lowpass_hz, which leaves nothing; exchange them"
            )
        if self.envelope == "high_gamma" and (low is not None or high is not None):
            raise ValueError(
                'envelope = "high_gamma" cuts its own bands; unset highpass_hz and lowpass_hz, '
                'or take envelope = "hilbert"'
            )
        if low is not None and self.highpass_s is not None:
            raise ValueError("highpass_hz and highpass_s are both set; unset one of them")
        new_hz = self.resample_hz
        if new_hz is not None and self.confounds:
            raise ValueError(
                "resample_hz and confounds are both set, but confounds have one row a sample of the recording; "
                "unset one of them"
            )
        if new_hz is not None and low is not None and self.envelope == "none" and 2 * low >= new_hz:
            raise ValueError(
                "highpass_hz is not below half of resample_hz, which leaves nothing; raise resample_hz"
            )
        return self


class DatasetConfig(Section):
    """One dataset of the study."""

    name: Name = Field(description="Name in every table; a dataset can be listed once.")
    reader: str = Field(description="Registered dataset reader (`lpact list datasets`).")
    role: Role | None = Field(
        None,
        description="Evidence role. Only `primary` is confirmatory; the source audit can lower a role, never raise it. "
        "Unset: the reader's own, which `lpact plan` tells.",
    )
    preprocess: PreprocessConfig = Field(
        default_factory=PreprocessConfig,
        description="What is done to recordings before they meet the words.",
    )
    grid: GridConfig = Field(default_factory=GridConfig, description="Event grid of this dataset.")
    options: dict[str, Any] = Field(
        default_factory=dict, description="Options of the reader; see its reference page."
    )

    @model_validator(mode="after")
    def _check(self) -> DatasetConfig:
        scaled = {
            "zscore": self.preprocess.zscore,
            'envelope = "high_gamma"': self.preprocess.envelope == "high_gamma",
        }
        for option, scales in scaled.items():
            if scales and self.grid.units == "regions":
                raise ValueError(
                    f'preprocess.{option} and grid.units = "regions" do not go together: a region\'s mean would weigh '
                    "its units by their size over the whole recording, held-out rows included; unset one of them"
                )
        return self


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
    severe_scope: Literal["claimed_levels", "all_levels"] = Field(
        "claimed_levels",
        description="`claimed_levels`: `predictive_only` asks for severe-control survival at level 1 alone, every "
        "stronger label at levels 1 and 2. `all_levels`: every label asks for both.",
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


class StudyConfig(Section):
    """Everything that changes a number."""

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


M = TypeVar("M", bound=BaseModel)


def config_digest(plain: Mapping[str, Any]) -> str:
    """SHA-256 of a configuration as canonical JSON (sorted keys, no white space)."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def validate_model(
    model: type[M], values: Mapping[str, Any], *, where: str, what: str = "the study file is"
) -> M:
    """Validate ``values``; a failure becomes a `ConfigError` that names field, value and remedy."""
    try:
        return model.model_validate(_tuples(values))
    except ValidationError as error:
        raise _config_error(model, error, where, what) from None


def _tuples(value: Any) -> Any:
    """TOML arrays are lists; strict models hold tuples."""
    if isinstance(value, Mapping):
        return {key: _tuples(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_tuples(item) for item in value)
    return value


def _config_error(
    model: type[BaseModel], error: ValidationError, where: str, what: str
) -> ConfigError:
    problems = []
    for item in error.errors():
        location = ".".join(str(part) for part in item["loc"]) or "(top level)"
        if item["type"] == "extra_forbidden":
            known = _known_keys(model, item["loc"][:-1])
            problems.append(
                f"{location}: unknown option; {did_you_mean(str(item['loc'][-1]), known)}"
            )
        elif item["type"] == "missing":
            problems.append(f"{location}: required option is missing")
        else:
            message = item["msg"].removeprefix("Value error, ")
            found = item["input"]
            shown = "" if isinstance(found, Mapping) else f" (found {found!r})"
            problems.append(f"{location}: {message}{shown}")
    first = problems[0].split(":", 1)[0]
    return ConfigError(
        f"{what} not valid:\n" + "\n".join(f"  - {p}" for p in problems),
        where=f"{where}, option '{first}'",
        expected="options as listed in docs/reference/study-file.md (`lpact init` writes them all)",
        remedy="mend the listed options",
    )


def _known_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    current: Any = model
    for part in location:
        if isinstance(part, int) or not hasattr(current, "model_fields"):
            continue
        annotation = current.model_fields[part].annotation if part in current.model_fields else None
        inner = [annotation, *getattr(annotation, "__args__", ())]
        models = [a for a in inner if isinstance(a, type) and issubclass(a, BaseModel)]
        if not models:
            return []
        current = models[0]
    extra = ["run"] if current is StudyConfig else []
    return [*current.model_fields, *extra]


def read_study_file(path: str | Path) -> tuple[StudyConfig, RunConfig]:
    """Read and validate a study file (TOML)."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            "the study file does not exist",
            where=str(path),
            remedy=f"write one with `lpact init {path}`",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "the study file cannot be read",
            where=str(path),
            got=str(error),
            expected="a readable UTF-8 TOML file",
            remedy="check the path and its permissions",
        ) from error
    study, run = parse_study(text, where=str(path))
    folder = path.absolute().parent
    paths = {name: str(folder / given) for name, given in run.paths.items()}
    models = {name: str(folder / given) for name, given in run.models.items()}
    kept = {"features": str(folder / run.features), "grids": str(folder / run.grids)}
    return study, run.model_copy(update={"paths": paths, "models": models, **kept})


def parse_study(text: str, *, where: str) -> tuple[StudyConfig, RunConfig]:
    """Validate the text of a study file; ``where`` names it in errors."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            "the study file is not valid TOML",
            where=where,
            got=str(error),
            expected="TOML 1.0",
            remedy="mend the named line",
        ) from None
    run = validate_model(RunConfig, values.pop("run", {}), where=f"{where}, table [run]")
    study = validate_model(StudyConfig, values, where=where)
    check_paths(study, run, where=where)
    return study, run


def check_paths(study: StudyConfig, run: RunConfig, *, where: str) -> None:
    """Raise `ConfigError` where a path is given for a dataset or model that the study does not list."""
    for what, option, given, names in (
        ("dataset", "paths", run.paths, [d.name for d in study.datasets]),
        ("model", "models", run.models, [m.name for m in study.models]),
    ):
        for unknown in sorted(set(given) - set(names)):
            raise ConfigError(
                f"a path is given for a {what} that the study does not list",
                where=f"{where}, option 'run.{option}'",
                got=unknown,
                expected=f"names of [[{what}s]]",
                remedy=did_you_mean(unknown, names),
            )
