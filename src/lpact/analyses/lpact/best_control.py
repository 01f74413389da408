"""The best of several controls, by the study's rule."""

from __future__ import annotations

import numpy as np

from lpact.math.types import FloatArray, IntArray


def best_control(scores: FloatArray, rule: str) -> tuple[IntArray, FloatArray]:
    """Index and score of the best control in every column; −1 and NaN where no control has a score.

    ``scores`` is [n_controls, m], NaN where a control has no score; ties go to the first control. The ``rule`` is
    ``max``, or ``mean_top_3``: the mean of the three highest (of fewer, where there are fewer).
    """
    n_controls, n_columns = scores.shape
    if n_controls == 0:
        return np.full(n_columns, -1), np.full(n_columns, np.nan)
    filled = np.where(np.isnan(scores), -np.inf, scores)
    top = -np.sort(-filled, axis=0)[: 1 if rule == "max" else 3]
    finite = np.isfinite(top)
    count = finite.sum(axis=0)
    best = np.where(finite, top, 0.0).sum(axis=0) / np.maximum(count, 1)
    return np.where(count, filled.argmax(axis=0), -1), np.where(count, best, np.nan)
