"""Simulated features and responses; every contender gets the same arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

ALPHAS = tuple(float(a) for a in np.logspace(0, 6, 15))
"""Penalties of the cases on the CPU."""

COMPONENTS = (50, 200, 0)
"""PCA sizes of the full grid; 0 is all features."""


@dataclass(frozen=True)
class Problem:
    """Features [n, p] and responses [n_lags, n, t]."""

    x: Floats
    y: Floats

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of rows, features and targets, under the names of the result file."""
        return {"n": self.x.shape[0], "p": self.x.shape[1], "t": self.y.shape[2]}

    def at(self, precision: str) -> Problem:
        """The same numbers in another precision."""
        return Problem(self.x.astype(precision), self.y.astype(precision))

    def lags(self, number: int) -> Problem:
        """The first lags alone."""
        return Problem(self.x, np.ascontiguousarray(self.y[:number]))


def simulate(n: int, p: int, t: int, *, n_lags: int = 5, seed: int = 0) -> Problem:
    """Correlated features with means and scales of their own, and targets of many signal-to-noise ratios.

    Features are latents of decaying variance, mixed at random. A target follows the features at one lag, which differs
    between targets, and half as strongly at the others; noise ranges from a tenth of the signal to a hundred times it,
    so that chosen lags, sizes and penalties spread over the grid.
    """
    rng = np.random.default_rng(seed)
    decay = 1.0 / np.sqrt(1.0 + np.arange(p) / 20.0)
    mixed = (rng.standard_normal((n, p)) * decay) @ rng.standard_normal((p, p)) / np.sqrt(p)
    x = mixed * rng.uniform(0.5, 2.0, p) + rng.normal(0.0, 1.0, p)
    weights = rng.standard_normal((p, t)) / np.sqrt(p)
    signal = (mixed @ weights) / (mixed @ weights).std(axis=0)
    noise = 10.0 ** rng.uniform(-1.0, 2.0, t)
    best = rng.integers(0, n_lags, t)
    y = np.empty((n_lags, n, t))
    for lag in range(n_lags):
        strength = np.where(best == lag, 1.0, 0.5)
        y[lag] = signal * strength + noise * rng.standard_normal((n, t)) + rng.normal(0.0, 1.0, t)
    return Problem(x, y)
