"""Filters of one channel: none delays, and none reaches across missing samples."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
import scipy
from scipy.fft import irfft, next_fast_len, rfft

from lpact.config import PreprocessConfig
from lpact.math.types import FloatArray

FILTER_ORDER = 4
"""Order of the Butterworth filters in one direction; they run forwards and backwards."""
NOTCH_QUALITY = 30.0
"""Frequency of a notch divided by its width."""
SETTLED = 1e-3
"""A filter has settled when its impulse response has fallen to this share."""
NEVER = sys.maxsize
"""Settling time of an unstable filter, in samples."""
MIN_FREQUENCY_SHARE = 1e-6
"""Share of the sampling rate below which a filter is unstable: its poles are too near 1 for double precision."""
RESAMPLING_REACH = 10
"""New samples that the low-pass of a new rate spans on each side."""
FINEST_RATIO = 10_000
"""Largest denominator of the ratio of sampling rates, unless the rates are further apart."""


def butterworth(low_hz: float | None, high_hz: float | None, rate_hz: float) -> FloatArray:
    """Return a Butterworth high-pass, low-pass or band-pass of order 4 as second-order sections, [n, 6]."""
    edges = [edge for edge in (low_hz, high_hz) if edge is not None]
    kind: Literal["bandpass", "highpass", "lowpass"] = "bandpass"
    if len(edges) == 1:
        kind = "lowpass" if low_hz is None else "highpass"
    return scipy.signal.butter(FILTER_ORDER, np.squeeze(edges), kind, fs=rate_hz, output="sos")


def notch(frequency_hz: float, rate_hz: float) -> FloatArray:
    """Return a notch of quality 30 as one second-order section, [1, 6]."""
    return np.concatenate(scipy.signal.iirnotch(frequency_hz, NOTCH_QUALITY, fs=rate_hz))[None]


def settling_samples(sections: FloatArray) -> int:
    """Samples after which the slowest pole has fallen to 1e-3: ``ln 1e-3 / ln max |p|``, or `NEVER`."""
    radius = max(float(np.abs(np.roots(section[3:])).max(initial=0.0)) for section in sections)
    if radius >= 1:
        return NEVER
    return max(1, math.ceil(math.log(SETTLED) / math.log(radius))) if radius > 0 else 1


def ratio_of_rates(new_hz: float, rate_hz: float) -> Fraction:
    """Return the fraction nearest to ``new_hz / rate_hz`` with a denominator up to 10,000 (more for far-off rates)."""
    finest = max(FINEST_RATIO, math.ceil(10 * rate_hz / new_hz))
    return Fraction(new_hz / rate_hz).limit_denominator(finest)


def zero_phase(sections: FloatArray, values: FloatArray) -> FloatArray:
    """Run a filter forwards and backwards over [n_samples], extended oddly by the time it takes to settle."""
    padding = min(settling_samples(sections), values.size - 1)
    return scipy.signal.sosfiltfilt(sections, values, padlen=padding)


def amplitude(values: FloatArray) -> FloatArray:
    """Return ``|x + i H x|`` of [n_samples], with H the Hilbert transform.

    The signal is padded with zeros to a fast length. Equals the magnitude of `scipy.signal.hilbert` in half the memory:
    H x is real, and needs only the non-negative frequencies, each times −i.
    """
    n_padded = next_fast_len(values.size, real=True)
    spectrum = rfft(values, n=n_padded)
    spectrum *= -1j
    spectrum[0] = 0.0
    if n_padded % 2 == 0:
        spectrum[-1] = 0.0
    shifted = irfft(spectrum, n=n_padded, overwrite_x=True)[: values.size]
    return np.hypot(values, shifted)


def between_gaps(function: Callable[[FloatArray], FloatArray], values: FloatArray, shortest: int) -> FloatArray:
    """Apply a function to every stretch of finite values; NaN stays, and stretches up to ``shortest`` become NaN."""
    finite = np.isfinite(values)
    if finite.all():
        return function(values)
    result = np.full(values.size, np.nan)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], finite, [False]))))
    for first, stop in zip(edges[::2], edges[1::2], strict=True):
        if stop - first > shortest:
            result[first:stop] = function(values[first:stop])
    return result


@dataclass(frozen=True)
class Chain:
    """Filter, envelope and new sampling rate of one channel.

    ``sections`` are notches and band-pass in one cascade (None: no filter), ``bands`` the band-passes of a high-gamma
    envelope, ``ratio`` new over old sampling rate. With ``gaps`` a channel is filtered between missing samples;
    without, one missing sample makes the whole channel NaN.
    """

    sections: FloatArray | None = None
    hilbert: bool = False
    bands: tuple[FloatArray, ...] = ()
    ratio: Fraction = Fraction(1)
    gaps: bool = False

    @classmethod
    def of(cls, config: PreprocessConfig, rate_hz: float) -> Chain:
        """Design the filters for a sampling rate."""
        parts = [notch(frequency, rate_hz) for frequency in config.notch_hz]
        if config.highpass_hz is not None or config.lowpass_hz is not None:
            parts.append(butterworth(config.highpass_hz, config.lowpass_hz, rate_hz))
        bands = pairwise(config.envelope_bands_hz) if config.envelope == "high_gamma" else ()
        return cls(
            sections=np.concatenate(parts) if parts else None,
            hilbert=config.envelope == "hilbert",
            bands=tuple(butterworth(low, high, rate_hz) for low, high in bands),
            ratio=Fraction(1) if config.resample_hz is None else ratio_of_rates(config.resample_hz, rate_hz),
            gaps=config.missing != "drop_units",
        )

    @property
    def idle(self) -> bool:
        """Whether nothing is done."""
        return self.sections is None and not (self.hilbert or self.bands) and self.ratio == 1

    @property
    def settling(self) -> int:
        """Samples that the slowest filter takes to settle; shorter stretches are not filtered."""
        filters = [*self.bands, *([] if self.sections is None else [self.sections])]
        return max((settling_samples(sections) for sections in filters), default=0)

    def n_samples(self, n_samples: int) -> int:
        """Samples of the result: ``ceil(n · ratio)``."""
        return math.ceil(n_samples * self.ratio)

    def __call__(self, column: FloatArray) -> FloatArray:
        """Return the channel [n_samples] filtered; one that never varies is returned constant, exactly."""
        values = column.astype(np.float64, copy=False)
        if self.idle or values.size == 0:
            return values
        finite = np.isfinite(values)
        whole = bool(finite.all())
        known = values if whole else values[finite]
        if known.size == 0 or not (whole or self.gaps):
            return np.full(self.n_samples(values.size), np.nan)
        if known.min() == known.max():
            return np.full(self.n_samples(values.size), known[0])
        if not whole:
            values = np.where(finite, values, np.nan)
        if self.sections is not None:
            values = between_gaps(partial(zero_phase, self.sections), values, self.settling)
        values = self._envelope(values)
        if self.ratio != 1:
            # New sample k is at the time of old sample k / ratio; NaN wherever the low-pass spans a gap.
            values = scipy.signal.resample_poly(values, self.ratio.numerator, self.ratio.denominator, padtype="edge")
        return values

    def _envelope(self, values: FloatArray) -> FloatArray:
        """``|x + i H x|``, or the mean over bands b of ``|x_b + i H x_b| / mean_t |x_b + i H x_b|``."""
        if self.hilbert:
            return between_gaps(amplitude, values, 0)
        if not self.bands:
            return values
        total = np.zeros(values.size)
        for sections in self.bands:
            filtered = between_gaps(partial(zero_phase, sections), values, self.settling)
            band = between_gaps(amplitude, filtered, 0)
            finite = np.isfinite(band)
            if finite.any():
                band /= len(self.bands) * band.mean(where=finite)
            total += band
        return total


def zscored(values: FloatArray) -> FloatArray:
    """Return ``(x − mean) / sd`` over the finite samples of [n_samples]; a channel that never varies stays the same."""
    known = values[np.isfinite(values)]
    if known.size == 0 or known.min() == known.max():
        return values
    scaled: FloatArray = (values - known.mean()) / known.std()
    return scaled
