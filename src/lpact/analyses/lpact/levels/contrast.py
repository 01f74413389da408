"""The best of several controls, by the rule of the study file."""

from __future__ import annotations

import numpy as np

from lpact.math.types import FloatArray, IntArray


def best_control(scores: FloatArray, rule: str) -> tuple[IntArray, FloatArray]:
    """Index and score of the best control in every column.

    Parameters
    ----------
    scores
        [n_controls, m]; NaN where a control has no score. Ties go to the first control.
    rule
        ``max``, or ``mean_top_3``: the mean of the three highest (of fewer, where there are fewer).

    Returns
    -------
    index, score
        [m] each; −1 and NaN where no control has a score.
    """
    n_controls, n_columns = scores.shape
    if n_controls == 0:
        return np.full(n_columns, -1), np.full(n_columns, np.nan)
    filled = np.where(np.isnan(scores), -np.inf, scores)
    index = filled.argmax(axis=0)
    any_score = np.isfinite(scores).any(axis=0)
    if rule == "max":
        best = filled.max(axis=0)
    else:
        top = -np.sort(-filled, axis=0)[:3]
        finite = np.isfinite(top)
        best = np.where(finite, top, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    return np.where(any_score, index, -1), np.where(any_score, best, np.nan)
