"""Held-out scores of a few targets, in all blocks at once and over all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from lpact.math.ridge.results import rankable
from lpact.math.scores import average_ranks
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray

_ITEMSIZE = 8


def whole_scores(observed: FloatArray, predicted: FloatArray, metric: str) -> FloatArray:
    """Scores over all rows, [t], from deviations [t, n] from the training mean; defined as in `deviation_scores`."""
    whole = _Segments((0,), observed.shape[1])
    if metric == "r2":
        return _r2(observed, predicted, whole)[:, 0]
    if metric == "spearman":
        observed = average_ranks(observed)
        predicted = average_ranks(rankable(predicted, _ITEMSIZE))
    return _pearson(observed, predicted, whole)[:, 0]


class FoldScores(Mapping[str, FloatArray]):
    """Scores in every block, [F, t], by metric; each is made when it is first asked for.

    ``ranks`` gives the ranks of ``observed`` [t, n] within blocks.
    """

    def __init__(
        self,
        observed: FloatArray,
        predicted: FloatArray,
        folds: BlockedFolds,
        metrics: Sequence[str],
        ranks: Callable[[], FloatArray],
    ) -> None:
        self._observed, self._predicted, self._folds = observed, predicted, folds
        self._metrics = tuple(metrics)
        self._ranks = ranks
        self._made: dict[str, FloatArray] = {}

    def __getitem__(self, metric: str) -> FloatArray:
        """Scores of one metric."""
        if metric not in self._metrics:
            raise KeyError(metric)
        if metric not in self._made:
            self._made[metric] = self._make(metric)
        return self._made[metric]

    def __iter__(self) -> Iterator[str]:
        """Names of the metrics."""
        return iter(self._metrics)

    def __len__(self) -> int:
        """Number of metrics."""
        return len(self._metrics)

    def _make(self, metric: str) -> FloatArray:
        blocks = _Segments(self._folds.starts, self._folds.n_rows)
        if metric == "r2":
            return _r2(self._observed, self._predicted, blocks).T.copy()
        if metric == "pearson":
            return _pearson(self._observed, self._predicted, blocks).T.copy()
        ranks = block_ranks(self._predicted, self._folds, round_to_rank=True)
        return _pearson(self._ranks(), ranks, blocks).T.copy()


class _Segments:
    """Sums and ranges of [t, n] over contiguous segments of columns."""

    def __init__(self, starts: Sequence[int], n_rows: int) -> None:
        self.starts = np.asarray(starts)
        self.sizes = np.diff([*starts, n_rows])

    def sums(self, x: FloatArray) -> FloatArray:
        """[t, segments]."""
        out: FloatArray = np.add.reduceat(x, self.starts, axis=1)
        return out

    def vary(self, x: FloatArray) -> BoolArray:
        """Whether smallest and largest differ, [t, segments]."""
        high = np.maximum.reduceat(x, self.starts, axis=1)
        out: BoolArray = high != np.minimum.reduceat(x, self.starts, axis=1)
        return out

    def centred(self, x: FloatArray) -> FloatArray:
        """Less every segment's mean."""
        out: FloatArray = x - np.repeat(self.sums(x) / self.sizes, self.sizes, axis=1)
        return out


def _r2(observed: FloatArray, predicted: FloatArray, segments: _Segments) -> FloatArray:
    error = observed - predicted
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = segments.sums(error * error) / segments.sums(observed * observed)
    return np.where(segments.vary(observed), 1.0 - ratio, np.nan)


def _pearson(observed: FloatArray, predicted: FloatArray, segments: _Segments) -> FloatArray:
    y, z = segments.centred(observed), segments.centred(predicted)
    power = segments.sums(y * y) * segments.sums(z * z)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.clip(segments.sums(y * z) / np.sqrt(power), -1.0, 1.0)
    defined = segments.vary(observed) & segments.vary(predicted) & (power > 0.0)
    return np.where(defined, r, np.nan)


def block_ranks(x: FloatArray, folds: BlockedFolds, *, round_to_rank: bool = False) -> FloatArray:
    """Ranks of every row of ``x`` [t, n] within every block, after `rankable` where asked."""
    out = np.empty_like(x)
    for block in range(folds.n_blocks):
        rows = folds.rows(block)
        part = rankable(x[:, rows], _ITEMSIZE) if round_to_rank else x[:, rows]
        out[:, rows] = average_ranks(part)
    return out
