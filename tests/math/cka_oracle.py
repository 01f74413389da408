"""Centred kernel alignment by its definition: n × n kernels and sums over events, nothing rearranged."""

from __future__ import annotations

import numpy as np


def linear_kernel(x):
    return x @ x.T


def rbf_kernel(x, median_fraction=1.0):
    distance = np.sqrt(((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2))
    squared = [distance[a, b] ** 2 for a in range(len(x)) for b in range(a + 1, len(x))]
    sigma = median_fraction * np.sqrt(np.median(squared))
    return np.exp(-(distance**2) / (2 * sigma**2))


def kernel_alignment(k, m):
    n = len(k)
    h = np.eye(n) - 1.0 / n
    k, m = h @ k @ h, h @ m @ h
    return np.sum(k * m) / np.sqrt(np.sum(k * k) * np.sum(m * m))


def unbiased_hsic(k, m):
    """Song et al. (2007), theorem 1."""
    n = len(k)
    one = np.ones(n)
    k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
    inner = (
        np.trace(k @ m) + (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2)) - 2.0 / (n - 2) * (one @ k @ m @ one)
    )
    return inner / (n * (n - 3))


def debiased_alignment(k, m):
    return unbiased_hsic(k, m) / np.sqrt(unbiased_hsic(k, k) * unbiased_hsic(m, m))
