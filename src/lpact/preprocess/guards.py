"""Settings that a recording's sampling rate or length does not allow."""

from __future__ import annotations

from lpact.config import PreprocessConfig
from lpact.datasets.base import Recording, TimeSeries
from lpact.errors import RecordingError, did_you_mean
from lpact.preprocess.channels import matches
from lpact.preprocess.filters import Chain

_CONTINUOUS = (
    "notch_hz",
    "reference",
    "highpass_hz",
    "lowpass_hz",
    "envelope",
    "resample_hz",
    "detrend",
    "highpass_s",
    "confounds",
    "zscore",
)
_FILTERS = {
    "notch_hz": "a lower frequency, or unset it for this dataset",
    "highpass_hz": "a lower cut-off, or unset it for this dataset",
    "lowpass_hz": "a lower cut-off, or unset it: the signal holds nothing above",
    "envelope_bands_hz": "bands below, or data with a higher sampling rate",
}


def continuous_steps(config: PreprocessConfig) -> list[str]:
    """Options that are set and ask for a continuous recording."""
    unset = PreprocessConfig()
    return [option for option in _CONTINUOUS if getattr(config, option) != getattr(unset, option)]


def check_epochs(recording: Recording, steps: list[str]) -> None:
    """Raise `RecordingError` if epochs are asked for what only a continuous recording can have."""
    if steps:
        raise RecordingError(
            "epoched data cannot be preprocessed like a continuous recording",
            where=f"{recording.where}, option 'preprocess.{steps[0]}'",
            got="epochs, with " + ", ".join(f"preprocess.{step}" for step in steps),
            expected="a continuous time series; epochs can have their channels selected, nothing else",
            remedy="unset these options, or provide the continuous recording",
        )


def check_frequencies(recording: Recording, signal: TimeSeries, config: PreprocessConfig) -> None:
    """Raise `RecordingError` if a filter lies at or above half the sampling rate, or the new rate above the old."""
    rate_hz = signal.sampling_rate_hz
    wanted = [("notch_hz", frequency) for frequency in config.notch_hz]
    wanted += [
        (option, value)
        for option, value in (
            ("highpass_hz", config.highpass_hz),
            ("lowpass_hz", config.lowpass_hz),
        )
        if value is not None
    ]
    if config.envelope == "high_gamma":
        wanted.append(("envelope_bands_hz", config.envelope_bands_hz[-1]))
    for option, frequency in wanted:
        if frequency >= rate_hz / 2:
            raise RecordingError(
                "a filter lies at or above half the sampling rate",
                where=f"{recording.where}, option 'preprocess.{option}'",
                got=f"{frequency:g} Hz, with a sampling rate of {rate_hz:g} Hz",
                expected=f"below {rate_hz / 2:g} Hz",
                remedy=f"choose {_FILTERS[option]}",
            )
    if config.resample_hz is not None and config.resample_hz > rate_hz:
        raise RecordingError(
            "the new sampling rate is above the recording's",
            where=f"{recording.where}, option 'preprocess.resample_hz'",
            got=f"{config.resample_hz:g} Hz, with a sampling rate of {rate_hz:g} Hz",
            expected=f"at most {rate_hz:g} Hz",
            remedy="choose a lower rate, or unset it for this dataset",
        )


def check_length(recording: Recording, signal: TimeSeries, chain: Chain) -> None:
    """Raise `RecordingError` if a recording is over before its slowest filter has settled."""
    if 0 < signal.n_samples <= chain.settling:
        rate_hz = signal.sampling_rate_hz
        raise RecordingError(
            "the recording is too short for the filters",
            where=f"{recording.where}, table 'preprocess'",
            got=f"{signal.n_samples} samples ({signal.n_samples / rate_hz:g} s)",
            expected=f"more than {chain.settling} samples ({chain.settling / rate_hz:g} s), in which the slowest "
            "filter settles",
            remedy="raise highpass_hz, widen the band, or leave the recording out",
        )


def confound_names(recording: Recording, patterns: tuple[str, ...]) -> list[str]:
    """Return the recording's confounds that fit, in their order; raises where a pattern fits none."""
    known = [] if recording.confounds is None else recording.confounds.columns
    for pattern in patterns:
        if not any(matches(name, (pattern,)) for name in known):
            raise RecordingError(
                f"the recording has no confound '{pattern}'",
                where=f"{recording.where}, option 'preprocess.confounds'",
                got=f"{len(known)} confounds",
                expected="names of its confounds, or patterns that fit some of them",
                remedy=did_you_mean(pattern, known),
            )
    return [name for name in known if matches(name, patterns)]
