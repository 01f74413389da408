"""Datasets of a study: what is read, how it is preprocessed, and how it meets the words."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from lpact.validation import Section

Role = Literal["primary", "secondary", "validation_only", "stimulus_only", "diagnostic"]
EventKind = Literal["words", "sentences", "trs"]
Pooling = Literal["last", "mean", "sum", "first"]
Metric = Literal["pearson", "spearman", "r2"]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]


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
        description="Delays of a finite impulse response: a TR's row holds the features at all of these delays side by "
        'side, and readouts weigh them freely. Whole numbers of TRs; asks for `tr_features = "lanczos"`. Empty: none.',
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
                "resample_hz and confounds are both set, but confounds have one row per sample of the recording; "
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
    max_bad_units: Fraction = Field(
        0.5, description="A recording with a larger share of unusable units is excluded whole."
    )
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
