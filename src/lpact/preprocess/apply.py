"""From a recording as it was stored to the signal that a study analyses, a few units at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lpact.config import PreprocessConfig
from lpact.datasets.base import Recording, TimeSeries
from lpact.datasets.series import BLOCK_BYTES, StreamedSeries, read_units, take_units
from lpact.datasets.validate import check_recording
from lpact.math.types import FloatArray
from lpact.preprocess.checks import (
    check_epochs,
    check_frequencies,
    check_length,
    confound_names,
    continuous_steps,
    select_channels,
)
from lpact.preprocess.filters import Chain, zscored
from lpact.preprocess.fmri import Cleaning
from lpact.preprocess.reference import rereference


class Columns(StreamedSeries):
    """An array that is too large to be copied, usually one that is mapped from a file."""

    def __init__(self, values: FloatArray) -> None:
        self._values = values
        self.shape = (values.shape[0], values.shape[1])
        self.dtype = values.dtype

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices, [n_samples, len(units)]."""
        return read_units(self._values, units)


class Preprocessed(StreamedSeries):
    """Units of a source, filtered when they are read: each separately, so that results do not depend on blocks."""

    def __init__(
        self,
        source: FloatArray | StreamedSeries,
        chain: Chain,
        cleaning: Cleaning | None = None,
        *,
        zscore: bool = False,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._source = source
        self._chain = chain
        self._cleaning = cleaning
        self._zscore = zscore
        self.shape = (chain.n_samples(source.shape[0]), source.shape[1])
        self.dtype = np.dtype(np.float64)
        self.unit_major = isinstance(source, StreamedSeries) and source.unit_major
        # A source is often far longer than the result: its size decides how many units are read at a time.
        self._width = 1 if self.unit_major else max(1, block_bytes // max(1, 8 * source.shape[0]))

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
    band-pass, envelope, new sampling rate, cleaning (fMRI), z-scores. The signal of the result is computed when it is
    read, a few units at a time. Only a reference reads the recording beforehand, once, to find channels that cannot
    serve. Times stay the same: ``start_s`` is that of the recording, and no filter delays. Units that are left out are
    in the findings. The definitions are in ``docs/explanation/preprocessing.md``.

    ``artefact_threshold`` and ``artefact_units`` are rules of the event grid, as is ``missing``; here the latter
    decides whether filters work between missing samples.

    Raises
    ------
    RecordingError
        If the recording is malformed, is epoched and more than a selection of channels is set, has no channel or
        confound that the study names, is too short or sampled too slowly for a filter, or has too little left after
        cleaning.
    """
    steps = continuous_steps(config)
    if not (steps or config.channels or config.drop_channels or config.regions):
        return recording
    check_recording(recording)
    signal = recording.signal
    if isinstance(signal, TimeSeries):
        check_frequencies(recording, signal, config)
    else:
        check_epochs(recording, steps)
    recording = _selected(recording, config)
    if not steps or not isinstance(signal, TimeSeries) or 0 in recording.signal.values.shape:
        return recording
    chain = Chain.of(config, signal.sampling_rate_hz)
    check_length(recording, signal, chain)
    cleaning = _cleaning(recording, signal, config, chain)
    if config.reference != "none":
        gaps_allowed = config.missing == "drop_events"
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


def _selected(recording: Recording, config: PreprocessConfig) -> Recording:
    kept, findings = select_channels(recording, config)
    if len(kept) < len(recording.units.ids):
        signal = recording.signal
        if isinstance(signal, TimeSeries):
            values = signal.values
            if not isinstance(values, StreamedSeries) and values.nbytes > BLOCK_BYTES:
                values = Columns(values)
            signal = replace(signal, values=take_units(values, kept))
        else:
            signal = replace(signal, values=signal.values[..., kept])
        recording = replace(recording, signal=signal, units=recording.units.take(kept))
    return replace(recording, findings=(*recording.findings, *findings)) if findings else recording


def _cleaning(
    recording: Recording, signal: TimeSeries, config: PreprocessConfig, chain: Chain
) -> Cleaning | None:
    if not (config.detrend or config.highpass_s is not None or config.confounds):
        return None
    names = confound_names(recording, config.confounds)
    table = recording.confounds
    return Cleaning.of(
        chain.n_samples(signal.n_samples),
        tr_s=1.0 / (signal.sampling_rate_hz * float(chain.ratio)),
        detrend=config.detrend,
        highpass_s=config.highpass_s,
        confounds=table.select(names).to_numpy() if table is not None and names else None,
        where=recording.where,
    )
