"""Nearest neighbours of events, and how many two representations share (Huh et al. 2024, ICML)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.spatial.distance import squareform

from lpact.math.columns import as_finite_matrix, power_of_two_scale
from lpact.math.similarity._common import squared_distances
from lpact.math.types import FloatArray, IntArray

NeighbourDistance = Literal["cosine", "euclidean"]


def nearest_neighbours(x: FloatArray, k: int, distance: NeighbourDistance) -> IntArray | None:
    """Return the k nearest other rows of every row of x [n, p], ascending, as a n + b for row a's neighbour b: [n k].

    Cosine distance is half the squared distance of rows at unit length; one column has no direction, and its distance
    is Euclidean. Distances that agree to seven digits (in single precision) are ties, and the earlier row comes first.
    None where n ≤ k, all distances are equal, or a row is zero and has no direction.
    """
    x = as_finite_matrix(x, "x")
    n = len(x)
    x = x * power_of_two_scale(np.abs(x).max())
    if distance == "cosine" and x.shape[1] > 1:
        length = np.linalg.norm(x, axis=1, keepdims=True)
        if not length.all():
            return None
        x = x / length
    distances = squared_distances(x).astype(np.float32)
    if n <= k or distances.max() == distances.min():
        return None
    # Bits of numbers that are not negative sort as the numbers do; the row's number below them decides ties.
    keys = (squareform(distances).view(np.uint32).astype(np.uint64) << 32) | np.arange(n, dtype=np.uint64)
    np.fill_diagonal(keys, np.iinfo(np.uint64).max)
    nearest = np.sort(np.partition(keys, k - 1, axis=1)[:, :k] & 0xFFFFFFFF, axis=1)
    return (nearest.astype(np.int64) + n * np.arange(n)[:, None]).ravel()


def shared_neighbours(a: IntArray, b: IntArray) -> float:
    """Return the share of neighbours that two representations of the same events have in common, in [0, 1]."""
    return len(np.intersect1d(a, b, assume_unique=True)) / len(a)
