"""Effective numbers: of independent events in two autocorrelated series, and of independent units.

Two series that are independent of each other, but each correlated with itself, correlate by chance more strongly than
white noise does: with n events the variance of their correlation is not 1/n but 1/n_eff,

    n_eff = n / (1 + 2 Σ_k (N_k / n) ρ_x(k) ρ_y(k)),        N_k = pairs of events k apart (n − k in one segment)

(Bartlett, J. R. Stat. Soc. 98, 1935; Clifford, Richardson & Hémon, Biometrics 45, 1989; Afyouni, Smith & Nichols,
NeuroImage 199, 2019). If either series is white, n_eff = n: autocorrelation of one side alone does no harm.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import integrate, special

from lpact.math.columns import as_finite_matrix, standard_columns
from lpact.math.surrogates import lagged_sums
from lpact.math.types import FloatArray, IntArray

LARGEST_LAG = 0.25
"""Share of the longest segment up to which autocorrelations are looked at; beyond it they are mostly noise."""

_NORMAL_GRID = 4001
_NORMAL_SPAN = 9.0


def segment_lengths(segments: npt.ArrayLike) -> IntArray:
    """Lengths of the contiguous runs of equal ids."""
    segments = np.asarray(segments)
    if not len(segments):
        return np.zeros(0, dtype=np.int64)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(segments)) + 1, [len(segments)]])
    return np.asarray(np.diff(starts), dtype=np.int64)


def pair_counts(lengths: npt.ArrayLike, max_lag: int) -> FloatArray:
    """N_k for k = 0 … max_lag: pairs of events k apart within a segment, [max_lag + 1]."""
    lags = np.arange(max_lag + 1)
    counts: FloatArray = np.maximum(np.asarray(lengths)[:, None] - lags, 0).sum(axis=0).astype(float)
    return counts


def autocorrelation(x: npt.ArrayLike, segments: npt.ArrayLike | None = None, max_lag: int | None = None) -> FloatArray:
    """Autocorrelation of every column, within segments.

    ρ_j(k) = (Σ x_ij x_{i+k,j} / N_k) / (Σ x_ij² / n), over pairs in the same segment, x centred over all events.

    Parameters
    ----------
    x
        [n, p].
    segments
        [n], ids of contiguous stretches (stories); None: one stretch.
    max_lag
        Largest k; default: a quarter of the longest segment, at least 1.

    Returns
    -------
    [max_lag + 1, number of columns that vary]
        Row 0 is 1. Lags that no segment is long enough for are 0.
    """
    z, varies = standard_columns(as_finite_matrix(x, "x"))
    x = z[:, varies]
    lengths = segment_lengths(np.zeros(len(x), dtype=np.int64) if segments is None else segments)
    if lengths.sum() != len(x):
        raise ValueError(f"{lengths.sum()} segment ids for {len(x)} rows")
    if max_lag is None:
        max_lag = max(1, int(LARGEST_LAG * lengths.max(initial=0)))
    if not x.shape[1]:
        return np.ones((max_lag + 1, 0))
    parts = np.split(x, np.cumsum(lengths)[:-1])
    start = np.zeros((max_lag + 1, x.shape[1]))
    sums = sum((lagged_sums(part, max_lag) for part in parts), start)
    counts = pair_counts(lengths, max_lag)
    rho: FloatArray = np.where(counts > 0, 1.0, 0.0)[:, None] * sums
    rho /= np.maximum(counts, 1.0)[:, None] * (sums[0] / counts[0])
    return rho


def variance_inflation(rho_x: npt.ArrayLike, rho_y: npt.ArrayLike, lengths: npt.ArrayLike) -> float:
    """1 + 2 Σ_k (N_k / n) ρ_x(k) ρ_y(k): how much larger the variance of a chance correlation is than 1/n.

    Both autocorrelations are [max_lag + 1], of one series or the mean over several: the mean over all pairs of a
    series of one kind and a series of the other is the product of the means. The sum ends where the product is first
    not positive, since estimated autocorrelations beyond are mostly noise. (Series that alternate are not given an
    n_eff above n for the same reason.)
    """
    rho_x, rho_y = (np.asarray(rho, dtype=np.float64) for rho in (rho_x, rho_y))
    if len(rho_x) != len(rho_y):
        raise ValueError(f"autocorrelations of {len(rho_x)} and {len(rho_y)} lags")
    product = rho_x[1:] * rho_y[1:]
    counts = pair_counts(lengths, len(product))
    negative = np.flatnonzero(product <= 0)
    last = int(negative[0]) if negative.size else len(product)
    return float(1.0 + 2.0 * np.sum(counts[1 : last + 1] / counts[0] * product[:last]))


def ar1_variance_inflation(a: float, b: float, n: int) -> float:
    """The same for two first-order autoregressive series with coefficients a and b, in closed form.

    With c = a b: 1 + 2 Σ_{k=1}^{n−1} (1 − k/n) c^k = (1 + c) / (1 − c) − 2 c (1 − c^n) / (n (1 − c)²).
    """
    c = a * b
    return float((1 + c) / (1 - c) - 2 * c * (1 - c**n) / (n * (1 - c) ** 2))


def effective_units(responses: npt.ArrayLike) -> float:
    """Effective number of independent units in a mean score over units: (Σ λ)² / Σ λ² = U² / Σ_uv C_uv².

    λ are the eigenvalues of the correlation matrix C of the units' responses. Chance scores of units u and v correlate
    by the correlation of their responses times that of their predictions; predictions without information are linear
    in the responses that they were fitted to, so that both are C_uv.

    Parameters
    ----------
    responses
        [n_events, n_units]; units that do not vary are left out.

    Returns
    -------
    1 to the number of units; 0 where none varies.
    """
    z, varies = standard_columns(as_finite_matrix(responses, "responses"))
    z = z[:, varies]
    n_events, n_units = z.shape
    if n_units < 2:
        return float(n_units)
    # ‖ZᵀZ‖ = ‖ZZᵀ‖: the smaller of both products.
    gram = z @ z.T if n_events < n_units else z.T @ z
    return float(n_units**2 / np.sum((gram / n_events) ** 2))


def median_penalty(n: float) -> float:
    """Variance of the median of n independent normal values over that of their mean: 1 at n = 1, π/2 for many.

    ``1 + (π/2 − 1)(1 − 1/n)`` is within 5 % of the exact values for odd n.
    """
    return 1.0 + (np.pi / 2 - 1.0) * (1.0 - 1.0 / max(n, 1.0))


def expected_maximum(deviations: npt.ArrayLike) -> float:
    """Expected maximum of independent normal values of mean 0 and these standard deviations.

    E max = c − ∫_{−c}^{c} F with F = Π_i Φ(t / σ_i) and c far out. For equal deviations: 0.564 σ for two, 1.352 σ for
    seven.
    """
    deviations = np.asarray(deviations, dtype=np.float64)
    deviations = deviations[deviations > 0]
    if not deviations.size:
        return 0.0
    span = _NORMAL_SPAN * deviations.max()
    t = np.linspace(-span, span, _NORMAL_GRID)
    distribution = np.prod(special.ndtr(t[:, None] / deviations), axis=1)
    return float(span - integrate.simpson(distribution, x=t))
