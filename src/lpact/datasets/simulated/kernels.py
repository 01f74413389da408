"""How a word's response unfolds in time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import sparse
from scipy.special import gamma

from lpact.math.types import FloatArray

WINDOW_S = 0.2
"""Response window in which signal and noise are compared."""

PEAK_S = 0.2
KERNEL_ORDER = 6
KERNEL_LENGTH_S = 1.0
HRF_LENGTH_S = 32.0


def word_kernel(delay_s: FloatArray) -> FloatArray:
    """Response at ``delay_s`` after onset: ``∝ (x e^{1−x})^6``, x = delay / 200 ms; 0 before onset.

    Its mean over the best window, 100–300 ms, is about 1.
    """
    return _shape(delay_s) / _shape_window_mean(PEAK_S - WINDOW_S / 2)


def kernel_window_mean(lag_s: float) -> float:
    """Mean of `word_kernel` over the 200 ms that start ``lag_s`` after onset."""
    return _shape_window_mean(lag_s) / _shape_window_mean(PEAK_S - WINDOW_S / 2)


def _shape(delay_s: FloatArray) -> FloatArray:
    x = np.maximum(delay_s, 0.0) / PEAK_S
    shape: FloatArray = (x * np.exp(1.0 - x)) ** KERNEL_ORDER
    return shape


@cache
def _shape_window_mean(lag_s: float) -> float:
    n_points = 2000
    return float(_shape(lag_s + (np.arange(n_points) + 0.5) * WINDOW_S / n_points).mean())


def hrf(delay_s: FloatArray) -> FloatArray:
    """Canonical double-gamma haemodynamic response, ``t⁵e⁻ᵗ/Γ(6) − t¹⁵e⁻ᵗ/(6 Γ(16))``, t in s."""
    t = np.maximum(delay_s, 0.0)
    response: FloatArray = np.exp(-t) * (t**5 / gamma(6.0) - t**15 / (6.0 * gamma(16.0)))
    return response


def design_matrix(
    onset_s: FloatArray,
    n_samples: int,
    rate_hz: float,
    kernel: Callable[[FloatArray], FloatArray],
    kernel_length_s: float,
) -> sparse.csr_array:
    """Kernel of each word at each sample, [n_samples, n_words]; sample 0 is at 0 s."""
    first = np.ceil(onset_s * rate_hz).astype(np.int64)
    rows = first[:, None] + np.arange(int(kernel_length_s * rate_hz))
    columns = np.broadcast_to(np.arange(len(onset_s))[:, None], rows.shape)
    inside = rows < n_samples
    values = kernel((rows / rate_hz - onset_s[:, None])[inside])
    return sparse.csr_array((values, (rows[inside], columns[inside])), (n_samples, len(onset_s)))
