"""Settings that a recording's sampling rate or length does not allow."""

from __future__ import annotations

from lpact.config import PreprocessConfig
from lpact.datasets.base import Recording, TimeSeries
from lpact.errors import RecordingError, did_you_mean
from lpact.preprocess.channels import matches
from lpact.preprocess.filters import LOWEST_PART, RESAMPLING_REACH, Chain

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
    """Raise `RecordingError` if a filter or the new rate cannot be had at the recording's sampling rate.

    A filter must lie below half the sampling rate, and not below 1e-6 of it. The new rate
    is at most the old one, and leaves the recording as many samples as its low-pass spans.
    """
    rate_hz = signal.sampling_rate_hz
    if signal.envelope and config.envelope != "none":
        raise RecordingError(
            "the signal is an envelope already",
            where=f"{recording.where}, option 'preprocess.envelope'",
            got=f'envelope = "{config.envelope}" of a band\'s amplitude',
            expected='the voltage, or envelope = "none"',
            remedy="unset the option, or let the reader give the raw signal",
        )
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
        wanted += [("envelope_bands_hz", edge) for edge in config.envelope_bands_hz]
    for option, frequency in wanted:
        _check_not_too_low(recording, option, frequency, rate_hz)
        if frequency >= rate_hz / 2:
            raise RecordingError(
                "a filter lies at or above half the sampling rate",
                where=f"{recording.where}, option 'preprocess.{option}'",
                got=f"{frequency:g} Hz, with a sampling rate of {rate_hz:g} Hz",
                expected=f"below {rate_hz / 2:g} Hz",
                remedy=f"choose {_FILTERS[option]}",
            )
    if config.resample_hz is not None:
        _check_new_rate(recording, signal, config.resample_hz)


def _check_not_too_low(recording: Recording, option: str, frequency: float, rate_hz: float) -> None:
    lowest_hz = LOWEST_PART * rate_hz
    if frequency < lowest_hz:
        raise RecordingError(
            "a filter lies too low for the sampling rate",
            where=f"{recording.where}, option 'preprocess.{option}'",
            got=f"{frequency:g} Hz, with a sampling rate of {rate_hz:g} Hz",
            expected=f"from {lowest_hz:g} Hz to below {rate_hz / 2:g} Hz; lower ones are lost in rounding",
            remedy="choose a higher frequency, or unset it for this dataset",
        )


def _check_new_rate(recording: Recording, signal: TimeSeries, new_hz: float) -> None:
    rate_hz, n_samples = signal.sampling_rate_hz, signal.n_samples
    lowest_hz = 2 * RESAMPLING_REACH * rate_hz / max(1, n_samples)
    if n_samples and new_hz < rate_hz and new_hz < lowest_hz:
        raise RecordingError(
            "the new sampling rate leaves too few samples",
            where=f"{recording.where}, option 'preprocess.resample_hz'",
            got=f"{new_hz:g} Hz for {n_samples} samples at {rate_hz:g} Hz",
            expected=f"at least {lowest_hz:g} Hz: the low-pass spans {2 * RESAMPLING_REACH} new samples",
            remedy="choose a higher rate, or leave the recording out",
        )
    if new_hz > rate_hz:
        raise RecordingError(
            "the new sampling rate is above the recording's",
            where=f"{recording.where}, option 'preprocess.resample_hz'",
            got=f"{new_hz:g} Hz, with a sampling rate of {rate_hz:g} Hz",
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
