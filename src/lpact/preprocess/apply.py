"""From a recording as it was stored to the signal that a study analyses, a few units at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from lpact.codes import Reason
from lpact.config import PreprocessConfig
from lpact.datasets.base import Findings, Recording, TimeSeries
from lpact.datasets.series import StreamedSeries, block_width, read_units, take_units
from lpact.datasets.validate import check_recording
from lpact.errors import MOST_LISTED, RecordingError, did_you_mean, require_known
from lpact.math.types import FloatArray
from lpact.preprocess.filters import MIN_FREQUENCY_SHARE, RESAMPLING_REACH, Chain, zscored
from lpact.preprocess.fmri import Cleaning
from lpact.preprocess.reference import rereference
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


class Preprocessed(StreamedSeries):
    """Units of a source, filtered when they are read: each separately, so that results do not depend on blocks."""

    def __init__(
        self,
        source: FloatArray | StreamedSeries,
        chain: Chain,
        cleaning: Cleaning | None = None,
        *,
        zscore: bool = False,
        block_bytes: int | None = None,
    ) -> None:
        self._source = source
        self._chain = chain
        self._cleaning = cleaning
        self._zscore = zscore
        self.shape = (chain.n_samples(source.shape[0]), source.shape[1])
        self.unit_major = isinstance(source, StreamedSeries) and source.unit_major
        # A source is often far longer than the result: its size decides how many units are read at a time.
        self._width = block_width(source, block_bytes)

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices, [n_samples, len(units)]."""
        values = np.empty((self.shape[0], len(units)), order="F")
        for first in range(0, len(units), self._width):
            block = read_units(self._source, units[first : first + self._width])
            for place, column in enumerate(block.T, start=first):
                values[:, place] = self._chain(column)
        if self._cleaning is not None and values.size:
            values = self._cleaning(values)
        if self._zscore:
            for column in values.T:
                column[:] = zscored(column)
        return values


def preprocess(recording: Recording, config: PreprocessConfig) -> Recording:
    """Return the preprocessed recording; the same object if no option is set.

    In this order: selection of channels, notch and reference (both linear, so that their order does not matter),
    band-pass, envelope, new sampling rate, cleaning (fMRI), z-scores; ``docs/explanation/preprocessing.md`` defines
    them. The signal is computed when it is read, a few units at a time; only a reference reads the recording
    beforehand, once. Times stay the same: no filter delays. Units that are left out are in the findings.
    ``artefact_threshold``, ``artefact_units`` and ``missing`` are rules of the event grid; here the last decides
    whether filters work between missing samples. Raises `RecordingError` if the options do not fit the recording.
    """
    unset = PreprocessConfig()
    steps = [name for name in _FOR_CONTINUOUS if getattr(config, name) != getattr(unset, name)]
    if not (steps or config.channels or config.drop_channels or config.regions):
        return recording
    check_recording(recording)
    signal = recording.signal
    if isinstance(signal, TimeSeries):
        _check_frequencies(recording, signal, config)
    elif steps:
        raise RecordingError(
            "epoched data cannot be preprocessed like a continuous recording",
            where=f"{recording.where}, option 'preprocess.{steps[0]}'",
            got="epochs, with " + ", ".join(f"preprocess.{step}" for step in steps),
            expected="a continuous time series; of epochs, only channels can be selected",
            remedy="unset these options, or provide the continuous recording",
        )
    recording = _selected(recording, config)
    if not steps or not isinstance(signal, TimeSeries) or 0 in recording.signal.values.shape:
        return recording
    chain = Chain.of(config, signal.sampling_rate_hz)
    if signal.n_samples <= (settling := chain.settling):
        rate_hz = signal.sampling_rate_hz
        raise RecordingError(
            "the recording is too short for the filters",
            where=f"{recording.where}, table 'preprocess'",
            got=f"{signal.n_samples} samples ({signal.n_samples / rate_hz:g} s)",
            expected=f"more than {settling} samples ({settling / rate_hz:g} s), in which the slowest filter settles",
            remedy="raise highpass_hz, widen the band, or leave the recording out",
        )
    cleaning = _cleaning(recording, signal, config, chain)
    if config.reference != "none":
        gaps_allowed = config.missing != "drop_units"
        recording = rereference(recording, config.reference, gaps_allowed=gaps_allowed)
    if chain.idle and cleaning is None and not config.zscore:
        return recording
    values = recording.signal.values
    up, down = chain.ratio.as_integer_ratio()
    unit = "a.u." if config.envelope == "high_gamma" else signal.physical_unit
    return replace(
        recording,
        signal=TimeSeries(
            Preprocessed(values, chain, cleaning, zscore=config.zscore),
            sampling_rate_hz=signal.sampling_rate_hz * up / down,
            start_s=signal.start_s,
            physical_unit="standard deviations" if config.zscore else unit,
        ),
        # Confounds have one row per sample of the recording.
        confounds=recording.confounds if chain.ratio == 1 else None,
    )


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name equals or matches one of the patterns (``*``, ``?``, ``[abc]``; case-sensitive)."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def _selected(recording: Recording, config: PreprocessConfig) -> Recording:
    """Keep the units that the study selects, with findings about the selection.

    A unit is kept if its id matches one of ``channels``, its region one of ``regions`` (if these are set), and its id
    none of ``drop_channels``. A pattern that matches nothing in this recording is a note, since electrodes differ
    between subjects; if none of ``channels`` matches anything, `RecordingError` is raised.
    """
    ids, regions = recording.units.ids, recording.units.regions
    notes = Findings(recording.where)
    notes += recording.findings
    for option, patterns, names in (
        ("channels", config.channels, ids),
        ("drop_channels", config.drop_channels, ids),
        ("regions", config.regions, regions),
    ):
        idle = [p for p in patterns if not any(_matches(name, (p,)) for name in names)]
        if option == "channels" and idle and len(idle) == len(patterns):
            raise RecordingError(
                "no unit of the recording is among the channels that the study selects",
                where=f"{recording.where}, option 'preprocess.channels'",
                got=listed(idle, MOST_LISTED),
                expected="ids of units, or patterns that match some of them",
                remedy=did_you_mean(idle[0], ids),
            )
        for pattern in idle:
            notes.note(
                pattern,
                Reason.CHANNEL_NOT_SELECTED,
                f"no unit of this recording matches '{pattern}' (preprocess.{option})",
                "a name or pattern that matches",
                f"none needed if other recordings have it; {did_you_mean(pattern, set(names))}",
            )
    kept = [
        index
        for index, (unit, region) in enumerate(zip(ids, regions, strict=True))
        if (not config.channels or _matches(unit, config.channels))
        and (not config.regions or _matches(region, config.regions))
        and not _matches(unit, config.drop_channels)
    ]
    left_out = [ids[index] for index in sorted(set(range(len(ids))) - set(kept))]
    if left_out:
        notes.excluded(
            "channels",
            Reason.CHANNEL_NOT_SELECTED,
            f"{len(left_out)} of {len(ids)} units: {listed(left_out, MOST_LISTED)}",
            "units that preprocess.channels, drop_channels and regions keep",
            "none needed; widen the selection to keep them",
        )
        taken = replace(recording.signal, values=take_units(recording.signal.values, kept))  # type: ignore[arg-type]
        recording = replace(recording, signal=taken, units=recording.units.take(kept))
    return replace(recording, findings=tuple(notes))


def _check_frequencies(recording: Recording, signal: TimeSeries, config: PreprocessConfig) -> None:
    """Raise `RecordingError` if a filter or the new rate does not fit the recording's sampling rate.

    A filter must be below half the sampling rate, and not below 1e-6 of it. The new rate is at most the old one, and
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


def _cleaning(recording: Recording, signal: TimeSeries, config: PreprocessConfig, chain: Chain) -> Cleaning | None:
    if not (config.detrend or config.highpass_s is not None or config.confounds):
        return None
    table = recording.confounds
    known = [] if table is None else table.columns
    for pattern in config.confounds:
        if not any(_matches(name, (pattern,)) for name in known):
            where = f"{recording.where}, option 'preprocess.confounds'"
            require_known(pattern, known, "confound", where=where, error=RecordingError)
    names = [name for name in known if _matches(name, config.confounds)]
    return Cleaning.of(
        chain.n_samples(signal.n_samples),
        tr_s=1.0 / (signal.sampling_rate_hz * float(chain.ratio)),
        detrend=config.detrend,
        highpass_s=config.highpass_s,
        confounds=table.select(names).to_numpy() if table is not None and names else None,
        where=recording.where,
    )
