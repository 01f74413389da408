"""From a recording as it was stored to the signal that a study looks at, a few units at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from lpact.config import PreprocessConfig
from lpact.datasets.base import Recording, TimeSeries
from lpact.datasets.series import BLOCK_BYTES, StreamedSeries, read_units, take_units
from lpact.datasets.validate import check_recording
from lpact.math.types import FloatArray
from lpact.preprocess.channels import select_channels
from lpact.preprocess.filters import Chain, zscored
from lpact.preprocess.fmri import Design
from lpact.preprocess.guards import (
    check_epochs,
    check_frequencies,
    check_length,
    confound_names,
    continuous_steps,
)
from lpact.preprocess.reference import rereference


class Cleaning:
    """What is taken out of fMRI series: a line, slow cosines, confounds."""

    def __init__(self, design: Design) -> None:
        self._design = design

    def __call__(self, values: FloatArray) -> FloatArray:
        """Clean [n_samples, n_units] in place; a unit with missing samples becomes NaN."""
        whole = np.isfinite(values).all(axis=0)
        varies = whole & (values.max(axis=0) > values.min(axis=0))
        values[:, ~whole] = np.nan
        if varies.any():
            values[:, varies] = self._design(values[:, varies])
        return values


class Columns(StreamedSeries):
    """An array that is too large to be copied, most often one that is mapped from a file."""

    def __init__(self, values: FloatArray) -> None:
        self._values = values
        self.shape = (values.shape[0], values.shape[1])
        self.dtype = values.dtype

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices, [n_samples, len(units)]."""
        return read_units(self._values, units)


class Preprocessed(StreamedSeries):
    """Units of a source, filtered when they are read: each by itself, so that results do not depend on blocks."""

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
        # A source is often far longer than the result: what is read at a time follows from the source.
        self._width = 1 if self.unit_major else max(1, block_bytes // max(1, 8 * source.shape[0]))

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices, [n_samples, len(units)]."""
        values = np.empty((self.shape[0], len(units)), order="F")
        for first in range(0, len(units), self._width):
            some = units[first : first + self._width]
            block = read_units(self._source, some)
            for place in range(len(some)):
                values[:, first + place] = self._chain(block[:, place])
        if self._cleaning is not None and values.size:
            values = self._cleaning(values)
        if self._zscore:
            for place in range(len(units)):
                values[:, place] = zscored(values[:, place])
        return values


def preprocess(recording: Recording, config: PreprocessConfig) -> Recording:
    """Return the recording as the study wants it; the same object where the study asks for nothing.

    In this order: selection of channels, notch and reference (linear both, so that their order does not matter),
    band-pass, envelope, new sampling rate, cleaning (fMRI), z-scores. The signal of the result is computed when it is
    read, a few units at a time. Only a reference reads the recording beforehand, once, to find channels that cannot
    serve. Times stay as they are: ``start_s`` is that of the recording, and no filter delays. What is left out is in
    the findings. The definitions are in ``docs/explanation/preprocessing.md``.

    ``artefact_threshold`` and ``artefact_units`` are rules of the event grid, as is ``missing``; here the latter
    decides whether filters work between missing samples.

    Raises
    ------
    RecordingError
        If the recording is malformed, is epoched and asked for more than a selection of channels, has no channel or
        confound that the study names, is too short or sampled too slowly for a filter, or has too little left once it
        is cleaned.
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
    cleaning = _cleaning(recording, config, chain)
    if config.reference != "none":
        recording = _referenced(recording, config)
    return _filtered(recording, config, chain, cleaning)


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
    if not findings:
        return recording
    return replace(recording, findings=(*recording.findings, *findings))


def _referenced(recording: Recording, config: PreprocessConfig) -> Recording:
    signal = recording.signal
    assert isinstance(signal, TimeSeries)
    assert config.reference != "none"
    gaps_allowed = config.missing == "drop_events"
    done = rereference(
        recording, signal.values, recording.units, config.reference, gaps_allowed=gaps_allowed
    )
    return replace(
        recording,
        signal=replace(signal, values=done.values),
        units=done.units,
        findings=(*recording.findings, *done.findings),
    )


def _filtered(
    recording: Recording, config: PreprocessConfig, chain: Chain, cleaning: Cleaning | None
) -> Recording:
    signal = recording.signal
    assert isinstance(signal, TimeSeries)
    if chain.idle and cleaning is None and not config.zscore:
        return recording
    up, down = chain.ratio.as_integer_ratio()
    unit = "a.u." if config.envelope == "high_gamma" else signal.physical_unit
    return replace(
        recording,
        signal=TimeSeries(
            Preprocessed(signal.values, chain, cleaning, zscore=config.zscore),
            sampling_rate_hz=signal.sampling_rate_hz * up / down,
            start_s=signal.start_s,
            physical_unit="standard deviations" if config.zscore else unit,
        ),
        # Confounds have one row per sample of the recording.
        confounds=recording.confounds if chain.ratio == 1 else None,
    )


def _cleaning(recording: Recording, config: PreprocessConfig, chain: Chain) -> Cleaning | None:
    if not (config.detrend or config.highpass_s is not None or config.confounds):
        return None
    signal = recording.signal
    assert isinstance(signal, TimeSeries)
    names = confound_names(recording, config.confounds)
    table: pl.DataFrame | None = recording.confounds
    design = Design.of(
        chain.n_samples(signal.n_samples),
        tr_s=1.0 / (signal.sampling_rate_hz * float(chain.ratio)),
        detrend=config.detrend,
        highpass_s=config.highpass_s,
        confounds=table.select(names).to_numpy() if table is not None and names else None,
        where=recording.where,
    )
    return Cleaning(design)
