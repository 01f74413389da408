"""Keyed random streams, and the processes that are drawn from them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray


@dataclass(frozen=True)
class Streams:
    """All random streams of one simulated dataset."""

    seed: int
    dataset: str

    def rng(self, *key: str | int) -> np.random.Generator:
        """Return the generator of ``key`` in this dataset."""
        return keyed_rng(self.seed, "simulated", self.dataset, *key)


def ar1(rng: np.random.Generator, n_rows: int, n_columns: int, coefficient: float) -> FloatArray:
    """Return stationary AR(1) columns of mean 0 and variance 1, [n_rows, n_columns].

    ``x[t] = φ x[t − 1] + √(1 − φ²) ε[t]`` with ``x[0] ~ N(0, 1)``; columns are independent.
    """
    values: FloatArray = rng.standard_normal((n_rows, n_columns))
    values[1:] *= np.sqrt(1.0 - coefficient**2)
    # The recursion of `scipy.signal.lfilter`, whose import takes longer than a whole simulated recording.
    for before, now in itertools.pairwise(values):
        now += coefficient * before
    return values


def ar1_window_sd(coefficient: float, n_samples: int) -> float:
    """Standard deviation of the mean of ``n_samples`` successive values of `ar1`.

    ``var = (n + 2 Σ_{k=1}^{n−1} (n − k) φ^k) / n²``.
    """
    k = np.arange(1, n_samples)
    total = n_samples + 2.0 * np.sum((n_samples - k) * coefficient**k)
    return float(np.sqrt(total)) / n_samples


def standardise(values: FloatArray) -> FloatArray:
    """Return columns with mean 0 and standard deviation 1 over rows; zeros where one does not vary."""
    centred = values - values.mean(axis=0)
    sd = centred.std(axis=0)
    scaled: FloatArray = centred / np.where(sd > 1e-9, sd, np.inf)
    return scaled
