"""Shared sections of a study file: datasets and their event grids, models, readout, nuisance, controls, mechanisms."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, model_validator

from lpact.validation import Section

Role = Literal["primary", "secondary", "validation_only", "stimulus_only", "diagnostic"]
EventKind = Literal["words", "sentences", "trs"]
Pooling = Literal["last", "mean", "sum", "first"]
Metric = Literal["pearson", "spearman", "r2"]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]

T = TypeVar("T")


def _distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(values)) != len(values):
        raise ValueError("lists a value twice; list each once")
    return values


Distinct = Annotated[tuple[T, ...], AfterValidator(_distinct)]
"""Values of which each is listed once."""


class GridConfig(Section):
    """How words become rows that features and neural responses share."""

    events: EventKind = "words"
    """What one row is: a word, a sentence or a TR."""
    lags_ms: Distinct[float] = Field((0.0, 100.0, 200.0, 300.0), min_length=1)
    """Candidate lags from event onset (or TR) to the response; chosen on training rows only. Recordings that come
    epoched bring their own lags.
    """
    window_ms: float = Field(200.0, gt=0)
    """Length of the response window that starts at onset + lag."""
    units: Literal["units", "regions"] = "units"
    """What one brain unit is: an electrode, sensor or voxel, or the mean over a region's units."""
    pooling: Pooling = "mean"
    """How a sentence's or TR's words are pooled into one feature row."""
    tr_features: Literal["pool", "hrf", "lanczos"] = "pool"
    """How words reach TRs. `pool`: the words that begin in a TR, by `pooling`. `hrf`: every word's features convolved
    with a haemodynamic response, sampled at the TRs. `lanczos`: low-pass filtered and resampled to the TRs. With the
    last two, TRs without words are kept.
    """
    hrf: Literal["spm", "glover"] = "spm"
    """Haemodynamic response of `tr_features = "hrf"`."""
    lanczos_lobes: Annotated[int, Field(ge=1)] = 3
    """Lobes of the Lanczos filter on each side."""
    lanczos_cutoff: float = Field(1.0, gt=0)
    """Cut-off of the Lanczos filter, in units of 1 / TR."""
    fir_ms: Distinct[float] = ()
    """Delays of a finite impulse response: a TR's row has the features at all of these delays side by side, and
    readouts weigh them freely. Whole numbers of TRs; requires `tr_features = "lanczos"`. Empty: none.
    """
    reference_lag_ms: float | None = None
    """Lag for measures that are not fitted (RSA, CKA, reliability); must be one of `lags_ms`. Unset: the middle one."""

    @model_validator(mode="after")
    def _check(self) -> GridConfig:
        if self.reference_lag_ms is not None and self.reference_lag_ms not in self.lags_ms:
            raise ValueError("reference_lag_ms is not one of lags_ms; choose one of them")
        if self.tr_features != "pool" and self.events != "trs":
            raise ValueError(f'tr_features = "{self.tr_features}" requires events = "trs"')
        if self.fir_ms and self.tr_features != "lanczos":
            raise ValueError('fir_ms requires tr_features = "lanczos", which keeps every TR')
        return self


class PreprocessConfig(Section):
    """Preprocessing of a recording before it is put on the event grid; none by default."""

    channels: Distinct[str] = ()
    """Units to keep, by id or pattern (`LA*`, `MEG ???1`). Empty: all."""
    drop_channels: Distinct[str] = ()
    """Units to leave out, by id or pattern."""
    regions: Distinct[str] = ()
    """Regions whose units are kept, by name or pattern. Empty: all."""
    notch_hz: Distinct[Positive] = ()
    """Frequencies to remove, each by a notch of 1/30 of its frequency: power line and harmonics."""
    reference: Literal["none", "average", "bipolar", "laplacian"] = "none"
    """`none`: as recorded. `average`: minus the mean of the kept, usable channels. `bipolar`: minus the next contact of
    the shaft or strip. `laplacian`: minus the mean of the contacts before and after.
    """
    highpass_hz: float | None = Field(None, gt=0)
    """Lowest frequency to keep. Unset: no high-pass."""
    lowpass_hz: float | None = Field(None, gt=0)
    """Highest frequency to keep. Unset: no low-pass."""
    envelope: Literal["none", "hilbert", "high_gamma"] = "none"
    """`hilbert`: amplitude of the signal as it was filtered; set `highpass_hz` and `lowpass_hz` to the band.
    `high_gamma`: mean of the amplitudes in the bands of `envelope_bands_hz`, each divided by its own mean. `none`: the
    signal itself.
    """
    envelope_bands_hz: tuple[Positive, ...] = Field(
        (70.0, 80.0, 90.0, 100.0, 110.0, 120.0, 130.0, 140.0, 150.0), min_length=2
    )
    """Edges of the bands of `envelope = "high_gamma"`, rising."""
    resample_hz: float | None = Field(None, gt=0)
    """New sampling rate, at most the old one. Unset: as recorded."""
    detrend: bool = False
    """Remove a straight line over the recording (fMRI; nilearn)."""
    highpass_s: float | None = Field(None, gt=0)
    """High-pass period, filtered with cosines (fMRI; nilearn), such as 128. Unset: no filter."""
    confounds: Distinct[str] = ()
    """Nuisance series of the recording to regress out, by name or pattern (fMRI; nilearn)."""
    zscore: bool = False
    """Scale every unit to mean 0 and deviation 1 over its recording, after all other steps. Readouts standardise on
    training rows in any case.
    """
    artefact_threshold: float | None = Field(None, gt=0)
    """Absolute value, in the unit of the signal after all steps, beyond which a sample is an artefact. Unset: none is.
    """
    artefact_units: Fraction = 0.1
    """An event is left out when more than this share of units has an artefact in its windows."""
    missing: Literal["drop_units", "drop_events", "keep"] = "drop_units"
    """What to drop where samples are not finite. `drop_units`: the unit that has them. `drop_events`: the events whose
    windows touch them; filters then work between them. `keep`: nothing; only analyses that count trials can use such
    recordings (`turing`, which reads all recordings this way).
    """

    @model_validator(mode="after")
    def _check(self) -> PreprocessConfig:
        bands = self.envelope_bands_hz
        if any(low >= high for low, high in pairwise(bands)):
            raise ValueError("envelope_bands_hz does not rise; list the edges of the bands in order")
        low, high = self.highpass_hz, self.lowpass_hz
        if low is not None and high is not None and low >= high:
            raise ValueError("highpass_hz is not below lowpass_hz, which removes all frequencies; swap them")
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
                "resample_hz and confounds are both set, but confounds have one row per sample of the recording; "
                "unset one of them"
            )
        if new_hz is not None and low is not None and self.envelope == "none" and 2 * low >= new_hz:
            raise ValueError(
                "highpass_hz is not below half of resample_hz, which removes all frequencies; raise resample_hz"
            )
        return self


class DatasetConfig(Section):
    """One dataset of the study."""

    name: Name
    """Name in every table; a dataset can be listed once."""
    reader: str
    """Registered dataset reader (`lpact list datasets`)."""
    role: Role | None = None
    """Evidence role. Only `primary` is confirmatory; the source audit can lower a role, never raise it. Unset: the
    reader's own, which `lpact plan` shows.
    """
    preprocess: PreprocessConfig = Field(default_factory=PreprocessConfig)
    """Preprocessing of recordings before they are put on the event grid."""
    grid: GridConfig = Field(default_factory=GridConfig)
    """Event grid of this dataset."""
    max_bad_units: Fraction = 0.5
    """A recording with a larger share of unusable units is excluded whole."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the reader; see its reference page."""

    @model_validator(mode="after")
    def _check(self) -> DatasetConfig:
        scaled = {"zscore": self.preprocess.zscore, 'envelope = "high_gamma"': self.preprocess.envelope == "high_gamma"}
        for option, scales in scaled.items():
            if scales and self.grid.units == "regions":
                raise ValueError(
                    f'preprocess.{option} and grid.units = "regions" do not go together: a region\'s mean would weigh '
                    "its units by their size over the whole recording, held-out rows included; unset one of them"
                )
        return self


class LanguageModelConfig(Section):
    """One model of the study."""

    name: Name
    """Name in every table; a model can be listed once."""
    source: str = "precomputed"
    """Registered model source (`lpact list models`)."""
    layers: Distinct[int] = Field(min_length=1)
    """Layers to make claims about; 0 is the input embedding."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the model source; see its reference page."""


class ReadoutConfig(Section):
    """The nested, blocked, cross-validated ridge readout."""

    folds: Annotated[int, Field(ge=3)] = 5
    """Contiguous outer blocks. Inner validation uses the remaining ones, so at least 3."""
    split: Literal["blocks", "stories"] = "blocks"
    """`blocks`: contiguous blocks of equal size. `stories`: leave one story out (at least 3 stories)."""
    gap_events: Annotated[int, Field(ge=0)] = 5
    """Events left out of training on both sides of every held-out block."""
    alphas: Distinct[Positive] = Field((1.0, 10.0, 100.0, 1000.0, 10000.0), min_length=1)
    """Ridge penalties (features are standardised on training rows)."""
    pca: Distinct[Annotated[int, Field(ge=0)]] = Field((0,), min_length=1)
    """Numbers of principal components to choose from; 0 means all features, no PCA."""
    selection_metric: Literal["r2", "pearson", "spearman"] = "r2"
    """Inner-fold score by which lag, penalty and components are chosen."""
    selection: Literal["per_unit", "per_region", "shared"] = "per_unit"
    """Choose lag, penalty and components for each unit, for all units of a region together, or one set for all."""
    device: str = Field("cpu", pattern=r"^(cpu|torch|mps|cuda(:[0-9]+)?)$")
    """`cpu`: NumPy. `torch` (torch on the CPU), `cuda`, `cuda:N` or `mps`: PyTorch there, which must be installed (`pip
    install 'lpact[torch]'`). Last digits differ between devices.
    """
    precision: Literal["float64", "float32"] = "float64"
    """Precision of large products. `float32` is faster, and exact to at least three digits; `mps` requires it."""
    memory_gib: Annotated[float, Field(ge=1e-6, le=1e6)] = 2.0
    """Working memory of one readout, in addition to its inputs; units are processed in chunks that fit."""
    primary_metric: Metric = "pearson"
    """Held-out metric that the gates look at; all three are stored."""
    min_train_events: Annotated[int, Field(ge=2)] = 50
    """Fewest training rows in any outer fold."""
    min_test_events: Annotated[int, Field(ge=2)] = 10
    """Fewest test rows in any outer fold."""

    @property
    def on_processor(self) -> bool:
        """Whether readouts are computed on the processor, in its memory."""
        return self.device in ("cpu", "torch")

    @model_validator(mode="after")
    def _check(self) -> ReadoutConfig:
        if self.device == "mps" and self.precision == "float64":
            raise ValueError('the device mps has no float64; set precision = "float32"')
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
    )
    """Nuisance features to build. The audit lists those that a dataset does not provide."""
    drift_cosines: Annotated[int, Field(ge=0, le=1000)] = 4
    """Slow cosines over each story that go with `position_in_story`."""
    rate_window_s: float = Field(2.0, gt=0)
    """Window over which `word_rate` counts word onsets."""
    language: str | None = Field(None, pattern=r"^[a-z]{2,3}$")
    """Language of the words (`en`, `de`, `fr` …), whose list in the package wordfreq gives `log_frequency` where the
    words table has no such column. Unset: the column or nothing.
    """
    envelope_rate_hz: float = Field(100.0, gt=0)
    """Sampling rate of an acoustic envelope that is computed from a WAV file."""
    envelope_lowpass_hz: float = Field(10.0, gt=0)
    """Cut-off of the low-pass of such an envelope; at most half of `envelope_rate_hz`."""

    @model_validator(mode="after")
    def _check(self) -> NuisanceConfig:
        if 2 * self.envelope_lowpass_hz > self.envelope_rate_hz:
            raise ValueError("envelope_lowpass_hz is above half of envelope_rate_hz; lower it or raise the rate")
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
    )
    """Registered severe controls (`lpact list controls`). One that a dataset or model cannot support is reported as
    unavailable, with the reason.
    """
    draws: Annotated[int, Field(ge=1)] = 20
    """Draws of every random control; its score is their mean."""
    best_control_rule: Literal["max", "mean_top_3"] = "max"
    """How the best control is formed from the controls' scores."""
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options by control name; see each control's reference page."""


class MechanismsConfig(Section):
    """Candidate mechanisms, and where they come from if the dataset does not provide their values."""

    include: tuple[str, ...] = (
        "surprisal",
        "semantic_transition",
        "dependency_integration",
        "syntactic_boundary",
        "discourse_boundary",
        "context_update",
    )
    """Registered mechanisms (`lpact list mechanisms`), one number per event each."""
    model: str | None = None
    """Model of the study whose surprisal and states are used. Unset: the first one that reads text."""
    parser: str | None = Field(None, pattern=r"^(spacy|stanza):.+$")
    """Installed pipeline that parses the sentences, as `spacy:NAME` or `stanza:LANGUAGE`. Unset: the columns `head`,
    `deprel` and `upos` of the words table.
    """
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options by mechanism name; see each mechanism's reference page."""
