"""Similarity of patterns over units, without each unit's own entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from lpact.math.columns import as_matrix, power_of_two_scale
from lpact.math.scores import average_ranks
from lpact.math.types import BoolArray, FloatArray

ProfileKind = Literal["pearson", "spearman", "cosine"]

MIN_ENTRIES = 3
"""Fewest shared finite entries for which a similarity is defined."""

_CHUNK_ENTRIES = 4_000_000
"""Pattern entries compared at a time (about 30 MB per array)."""


def pearson_rows(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the Pearson correlation of patterns [..., N] along the last axis, broadcast against each other.

    An entry that is not finite on either side is left out on both. NaN where fewer than `MIN_ENTRIES` entries remain or
    either remainder is constant.
    """
    return _correlate(*_shared_entries(a, b))


def spearman_rows(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the Spearman correlation of patterns: `pearson_rows` of shared entries' ranks."""
    a, b = _shared_entries(a, b)
    return _correlate(average_ranks(a), average_ranks(b))


def cosine_rows(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the cosine a·b / (‖a‖ ‖b‖) of patterns: as `pearson_rows`, not centred; NaN where either side is zero."""
    a, b = _shared_entries(a, b)
    return _cosine(_filled(a), _filled(b), np.isfinite(a).sum(axis=-1) >= MIN_ENTRIES)


_ROWS = {"pearson": pearson_rows, "spearman": spearman_rows, "cosine": cosine_rows}


def profile_similarity(b: FloatArray, q: FloatArray, kind: ProfileKind) -> FloatArray:
    """Return the similarity of model patterns with each unit's pattern, s_i = ρ(b_ij, q_j over j ≠ i): [..., N].

    An entry that is not finite on either side is left out; NaN where fewer than `MIN_ENTRIES` remain or ρ is undefined.

    Parameters
    ----------
    b
        Brain patterns, [N, N]: row i is that of unit i; its entry i is ignored.
    q
        Model patterns, [..., N].
    kind
        ρ: ``"pearson"``, ``"spearman"`` or ``"cosine"``.
    """
    compare = _comparison(kind)
    brain = _without_self(b)
    n_units = len(brain)
    q = np.asarray(q, dtype=np.float64)
    if q.ndim == 0 or q.shape[-1] != n_units:
        raise ValueError(f"model patterns must end in {n_units} units, got shape {q.shape}")
    patterns = q.reshape(-1, n_units)
    similarity = np.empty(patterns.shape)
    step = max(1, _CHUNK_ENTRIES // brain.size)
    for start in range(0, len(patterns), step):
        chunk = patterns[start : start + step]
        similarity[start : start + step] = compare(brain, chunk[:, None, :])
    return similarity.reshape(q.shape)


def profile_similarity_pairs(a: FloatArray, b: FloatArray, kind: ProfileKind) -> FloatArray:
    """Return s_i = ρ(a_ij, b_ij over j ≠ i) for two sets of patterns [N, N] of the same units, [N].

    NaN and ``kind`` as in `profile_similarity`.
    """
    compare = _comparison(kind)
    first, second = _without_self(a), _without_self(b)
    if first.shape != second.shape:
        raise ValueError(f"patterns must be of the same units, got {first.shape} and {second.shape}")
    return compare(first, second)


def _comparison(kind: str) -> Callable[[FloatArray, FloatArray], FloatArray]:
    if kind not in _ROWS:
        raise ValueError(f"unknown profile similarity '{kind}'; known: {', '.join(_ROWS)}")
    return _ROWS[kind]


def _without_self(patterns: FloatArray) -> FloatArray:
    patterns = as_matrix(patterns, "unit patterns").copy()
    if patterns.shape[0] != patterns.shape[1]:
        raise ValueError(f"unit patterns must be square, got shape {patterns.shape}")
    np.fill_diagonal(patterns, np.nan)
    return patterns


def _shared_entries(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both sides with NaN wherever either is not finite.

    A side from which the other removes nothing keeps its shape, so that what depends on it alone is computed once.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    finite_a, finite_b = np.isfinite(a), np.isfinite(b)
    shared = finite_a & finite_b
    keep_a = finite_a if (finite_a == shared).all() else shared
    keep_b = finite_b if (finite_b == shared).all() else shared
    return np.where(keep_a, a, np.nan), np.where(keep_b, b, np.nan)


def _filled(x: FloatArray) -> FloatArray:
    """Return ``x`` with 0 for NaN, brought near 1 so that squares neither overflow nor vanish."""
    filled = np.where(np.isnan(x), 0.0, x)
    filled *= power_of_two_scale(np.abs(filled).max(axis=-1, keepdims=True))
    return filled


def _centred(x: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return ``x`` centred, with 0 for NaN, and which patterns have enough entries that are not all equal."""
    kept = ~np.isnan(x)
    count = kept.sum(axis=-1, keepdims=True)
    lowest = np.where(kept, x, np.inf).min(axis=-1)
    highest = np.where(kept, x, -np.inf).max(axis=-1)
    centred = _filled(x)
    for _ in range(2):  # the second pass removes what rounding left of a mean ≫ spread
        centred -= centred.sum(axis=-1, keepdims=True) / np.maximum(count, 1)
        centred *= kept
    return _filled(centred), (count[..., 0] >= MIN_ENTRIES) & (lowest < highest)


def _correlate(a: FloatArray, b: FloatArray) -> FloatArray:
    (a, defined_a), (b, defined_b) = _centred(a), _centred(b)
    return _cosine(a, b, defined_a & defined_b)


def _cosine(a: FloatArray, b: FloatArray, defined: BoolArray) -> FloatArray:
    product = np.einsum("...i,...i->...", a, b)
    length = np.sqrt(np.einsum("...i,...i->...", a, a) * np.einsum("...i,...i->...", b, b))
    defined = defined & (length > 0.0)
    similarity = np.clip(product / np.where(defined, length, 1.0), -1.0, 1.0)
    return np.where(defined, similarity, np.nan)
