"""Which units of a recording a study keeps, and options that do not fit a recording."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from lpact.codes import Reason
from lpact.config import PreprocessConfig
from lpact.datasets._finding import Finding
from lpact.datasets.base import Recording, TimeSeries
from lpact.errors import MOST_LISTED, RecordingError, did_you_mean
from lpact.preprocess.filters import MIN_FREQUENCY_SHARE, RESAMPLING_REACH, Chain
from lpact.wording import listed

_FOR_CONTINUOUS = (
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


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name equals or matches one of the patterns (``*``, ``?``, ``[abc]``; case-sensitive)."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def select_channels(
    recording: Recording, config: PreprocessConfig
) -> tuple[list[int], tuple[Finding, ...]]:
    """Indices of the units that the study keeps, in order, and findings about the selection.

    A unit is kept if its id matches one of ``channels``, its region one of ``regions`` (if these are set), and its id
    none of ``drop_channels``. A pattern that matches nothing in this recording is a note, since electrodes differ
    between subjects; if none of ``channels`` matches anything, `RecordingError` is raised.
    """
    ids, regions = recording.units.ids, recording.units.regions
    notes = []
    for option, patterns, names in (
        ("channels", config.channels, ids),
        ("drop_channels", config.drop_channels, ids),
        ("regions", config.regions, regions),
    ):
        idle = [p for p in patterns if not any(matches(name, (p,)) for name in names)]
        if option == "channels" and idle and len(idle) == len(patterns):
            raise RecordingError(
                "no unit of the recording is among the channels that the study selects",
                where=f"{recording.where}, option 'preprocess.channels'",
                got=listed(idle, MOST_LISTED),
                expected="ids of units, or patterns that match some of them",
                remedy=did_you_mean(idle[0], ids),
            )
        notes += [
            Finding(
                field=pattern,
                reason=Reason.CHANNEL_NOT_SELECTED,
                severity="note",
                where=recording.where,
                found=f"no unit of this recording matches '{pattern}' (preprocess.{option})",
                expected="a name or pattern that matches",
                remedy=f"none needed if other recordings have it; {did_you_mean(pattern, set(names))}",
            )
            for pattern in idle
        ]
    kept = [
        index
        for index, (unit, region) in enumerate(zip(ids, regions, strict=True))
        if (not config.channels or matches(unit, config.channels))
        and (not config.regions or matches(region, config.regions))
        and not matches(unit, config.drop_channels)
    ]
    left_out = [ids[index] for index in sorted(set(range(len(ids))) - set(kept))]
    if left_out:
        notes.append(
            Finding(
                field="channels",
                reason=Reason.CHANNEL_NOT_SELECTED,
                severity="excluded",
                where=recording.where,
                found=f"{len(left_out)} of {len(ids)} units: {listed(left_out, MOST_LISTED)}",
                expected="units that preprocess.channels, drop_channels and regions keep",
                remedy="none needed; widen the selection to keep them",
            )
        )
    return kept, tuple(notes)


def continuous_steps(config: PreprocessConfig) -> list[str]:
    """Options that are set and need a continuous recording."""
    unset = PreprocessConfig()
    return [name for name in _FOR_CONTINUOUS if getattr(config, name) != getattr(unset, name)]


def check_epochs(recording: Recording, steps: list[str]) -> None:
    """Raise `RecordingError` if epochs would need steps for continuous recordings."""
    if steps:
        raise RecordingError(
            "epoched data cannot be preprocessed like a continuous recording",
            where=f"{recording.where}, option 'preprocess.{steps[0]}'",
            got="epochs, with " + ", ".join(f"preprocess.{step}" for step in steps),
            expected="a continuous time series; of epochs, only channels can be selected",
            remedy="unset these options, or provide the continuous recording",
        )


def check_frequencies(recording: Recording, signal: TimeSeries, config: PreprocessConfig) -> None:
    """Raise `RecordingError` if a filter or the new rate does not fit the recording's sampling rate.

    A filter must lie below half the sampling rate, and not below 1e-6 of it. The new rate is at most the old one, and
    leaves the recording as many samples as its low-pass spans.
    """
    rate_hz, n_samples = signal.sampling_rate_hz, signal.n_samples
    if signal.envelope and config.envelope != "none":
        raise RecordingError(
            "the signal is an envelope already",
            where=f"{recording.where}, option 'preprocess.envelope'",
            got=f'envelope = "{config.envelope}" of a band\'s amplitude',
            expected='the voltage, or envelope = "none"',
            remedy="unset the option, or let the reader return the raw signal",
        )
    cutoffs = {"highpass_hz": config.highpass_hz, "lowpass_hz": config.lowpass_hz}
    bands = config.envelope_bands_hz if config.envelope == "high_gamma" else ()
    filters = [
        *(("notch_hz", frequency) for frequency in config.notch_hz),
        *((option, value) for option, value in cutoffs.items() if value is not None),
        *(("envelope_bands_hz", edge) for edge in bands),
    ]
    lowest_hz = MIN_FREQUENCY_SHARE * rate_hz
    for option, frequency in filters:
        if not lowest_hz <= frequency < rate_hz / 2:
            raise RecordingError(
                "a filter does not fit the sampling rate",
                where=f"{recording.where}, option 'preprocess.{option}'",
                got=f"{frequency:g} Hz, with a sampling rate of {rate_hz:g} Hz",
                expected=f"from {lowest_hz:g} Hz to below {rate_hz / 2:g} Hz",
                remedy="choose another frequency, or unset the option for this dataset",
            )
    new_hz = config.resample_hz
    if new_hz is None or not n_samples or new_hz == rate_hz:
        return
    lowest_hz = 2 * RESAMPLING_REACH * rate_hz / n_samples
    if not lowest_hz <= new_hz <= rate_hz:
        raise RecordingError(
            "the new sampling rate does not fit the recording",
            where=f"{recording.where}, option 'preprocess.resample_hz'",
            got=f"{new_hz:g} Hz for {n_samples} samples at {rate_hz:g} Hz",
            expected=f"from {lowest_hz:g} Hz (the low-pass spans {2 * RESAMPLING_REACH} new samples) to {rate_hz:g} Hz",
            remedy="choose another rate, unset it for this dataset, or leave the recording out",
        )


def check_length(recording: Recording, signal: TimeSeries, chain: Chain) -> None:
    """Raise `RecordingError` if a recording ends before its slowest filter has settled."""
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
    """The recording's confounds that match, in order; raises if a pattern matches none."""
    known = [] if recording.confounds is None else recording.confounds.columns
    for pattern in patterns:
        if not any(matches(name, (pattern,)) for name in known):
            raise RecordingError(
                f"the recording has no confound '{pattern}'",
                where=f"{recording.where}, option 'preprocess.confounds'",
                got=f"{len(known)} confounds",
                expected="names of its confounds, or patterns that match some of them",
                remedy=did_you_mean(pattern, known),
            )
    return [name for name in known if matches(name, patterns)]
