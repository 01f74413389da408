"""From events at irregular times to samples at regular ones: haemodynamic responses and Lanczos filters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from scipy import sparse

from lpact.math.types import FloatArray

HRF_LENGTH_S = 32.0
"""A haemodynamic response is zero after this time."""


@dataclass(frozen=True)
class DoubleGamma:
    """``h(t) = g(t; delay / a, a) − ratio · g(t; undershoot / b, b)`` with gamma densities g of shape and scale."""

    delay_s: float
    undershoot_s: float
    dispersion: float
    undershoot_dispersion: float
    ratio: float

    def __call__(self, time_s: FloatArray) -> FloatArray:
        """Return the response at times after an impulse; 0 before it and after `HRF_LENGTH_S`."""
        rise = scipy.stats.gamma.pdf(time_s, self.delay_s / self.dispersion, scale=self.dispersion)
        fall = scipy.stats.gamma.pdf(
            time_s, self.undershoot_s / self.undershoot_dispersion, scale=self.undershoot_dispersion
        )
        inside = (time_s >= 0) & (time_s <= HRF_LENGTH_S)
        return np.asarray(np.where(inside, rise - self.ratio * fall, 0.0))


HRFS = {"spm": DoubleGamma(6.0, 16.0, 1.0, 1.0, 0.167), "glover": DoubleGamma(6.0, 12.0, 0.9, 0.9, 0.48)}
"""Canonical responses by name: SPM's (Friston et al. 1998), and Glover's (1999)."""


def hrf_weights(sample_s: FloatArray, event_s: FloatArray, hrf: Callable[[FloatArray], FloatArray]) -> sparse.csr_array:
    """Return W [n_samples, n_events] with ``W_ke = h(sample_k − event_e)``: W @ x is x convolved with h, sampled."""
    return _weights(sample_s, event_s, -HRF_LENGTH_S, 0.0, hrf)


def lanczos_weights(sample_s: FloatArray, event_s: FloatArray, *, cutoff_hz: float, lobes: int) -> sparse.csr_array:
    """Return W [n_samples, n_events] of a Lanczos filter, as used for words in continuous-speech fMRI.

    ``W_ke = sinc(u) sinc(u / lobes)`` for |u| < lobes, else 0, with ``u = cutoff_hz · (sample_k − event_e)`` and
    ``sinc(u) = sin(πu) / (πu)`` (Huth et al. 2016).
    """
    reach_s = lobes / cutoff_hz

    def kernel(delay_s: FloatArray) -> FloatArray:
        u = delay_s * cutoff_hz
        return np.asarray(np.where(np.abs(u) < lobes, np.sinc(u) * np.sinc(u / lobes), 0.0))

    return _weights(sample_s, event_s, -reach_s, reach_s, kernel)


def _weights(
    sample_s: FloatArray,
    event_s: FloatArray,
    first_s: float,
    last_s: float,
    kernel: Callable[[FloatArray], FloatArray],
) -> sparse.csr_array:
    """Sparse matrix of ``kernel(sample − event)`` over events within [sample + first_s, sample + last_s].

    Events are in order of time, and so are the columns of a row.
    """
    low = np.searchsorted(event_s, sample_s + first_s, side="left")
    high = np.searchsorted(event_s, sample_s + last_s, side="right")
    counts = high - low
    pointers = np.concatenate(([0], np.cumsum(counts)))
    columns = np.arange(pointers[-1]) + np.repeat(low - pointers[:-1], counts)
    values = kernel(np.repeat(sample_s, counts) - event_s[columns])
    return sparse.csr_array((values, columns, pointers), shape=(sample_s.size, event_s.size))
