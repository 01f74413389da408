"""The same analyses composed from other libraries, called as they are installed.

Every function predicts each outer block from the others, with features standardised on the outer training rows, and
returns held-out R² around the training mean and what was chosen. ``outer`` names the blocks that are predicted: where a
whole run would take very long, one block is measured and the time multiplied, and the result file says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Floats
from lpact.math.splits import BlockedFolds

Ints = NDArray[np.intp]


@dataclass(frozen=True)
class Held:
    """Held-out results of the outer blocks that were asked for.

    ``r2`` and the indices of what was chosen are [blocks, t].
    """

    r2: Floats
    lag: Ints
    components: Ints
    alpha: Ints


@dataclass(frozen=True)
class Split:
    """Standardised features of one outer block."""

    rows: slice
    train: NDArray[np.intp]
    x_train: Floats
    x_test: Floats
    inner: NDArray[np.intp]
    """Inner validation block of every training row."""


def splits(x: Floats, folds: BlockedFolds, outer: tuple[int, ...]) -> Iterator[Split]:
    """Scale the features on the training rows of every outer block in turn."""
    from sklearn.preprocessing import StandardScaler

    block_of_row = np.repeat(np.arange(folds.n_blocks), folds.test_sizes())
    for block in outer:
        rows, train = folds.rows(block), folds.train_rows(block)
        scaler = StandardScaler()
        x_train = scaler.fit_transform(x[train])
        yield Split(rows, train, x_train, scaler.transform(x[rows]), block_of_row[train])


def held_out_r2(y: Floats, predicted: Floats, mean: Floats) -> Floats:
    """R² of every target around its training mean."""
    residual: Floats = y - predicted
    total: Floats = y - mean
    r2: Floats = 1.0 - (residual**2).sum(axis=0) / (total**2).sum(axis=0)
    return r2


def himalaya_nested(
    x: Floats,
    y: Floats,
    folds: BlockedFolds,
    alphas: tuple[float, ...],
    *,
    backend: str,
    outer: tuple[int, ...],
    kernel: bool = False,
) -> Held:
    """himalaya's RidgeCV in every outer block, its folds being the other blocks. ``y`` is [n, t].

    With ``kernel`` its KernelRidgeCV with a linear kernel, which solves the same problem.
    """
    r2, alpha = [], []
    for split in splits(x, folds, outer):
        model = _ridge_cv(alphas, split, backend, kernel).fit(split.x_train, y[split.train])
        predicted = _numpy(model.predict(split.x_test))
        r2.append(held_out_r2(y[split.rows], predicted, y[split.train].mean(axis=0)))
        alpha.append(_nearest(_numpy(model.best_alphas_), alphas))
    return _single(r2, alpha)


def sklearn_nested(
    x: Floats,
    y: Floats,
    folds: BlockedFolds,
    alphas: tuple[float, ...],
    *,
    outer: tuple[int, ...],
) -> Held:
    """scikit-learn's RidgeCV in every outer block: leave-one-out inside, one decomposition a block."""
    from sklearn.linear_model import RidgeCV

    r2, alpha = [], []
    for split in splits(x, folds, outer):
        model = RidgeCV(alphas=alphas, alpha_per_target=True).fit(split.x_train, y[split.train])
        predicted = model.predict(split.x_test)
        r2.append(held_out_r2(y[split.rows], predicted, y[split.train].mean(axis=0)))
        alpha.append(_nearest(np.asarray(model.alpha_), alphas))
    return _single(r2, alpha)


def himalaya_grid(
    x: Floats,
    y: Floats,
    folds: BlockedFolds,
    alphas: tuple[float, ...],
    components: tuple[int, ...],
    *,
    backend: str,
    outer: tuple[int, ...],
    stacked: bool = False,
) -> Held:
    """Lags × PCA sizes × penalties: scikit-learn's PCA on the outer training rows, himalaya's RidgeCV on its scores.

    ``y`` is [n_lags, n, t]. One call of RidgeCV for every lag and PCA size, or with ``stacked`` one for every PCA size,
    with the lags side by side as targets. The best cross-validated score wins, per target.
    """
    lags = tuple(range(len(y)))
    groups = [lags] if stacked else [(lag,) for lag in lags]
    found: list[_Best] = []
    for split in splits(x, folds, outer):
        sizes = _principal_scores(split, components)
        best = _Best(y, split)
        for group in groups:
            layer = np.concatenate([y[lag] for lag in group], axis=1)
            for size, (x_train, x_test) in enumerate(sizes):
                model = _ridge_cv(alphas, split, backend).fit(x_train, layer[split.train])
                best.offer(group, size, model, x_test, alphas)
        found.append(best)
    return Held(*(np.stack([getattr(b, name) for b in found]) for name in _Best.COLUMNS))


class _Best:
    """The best setting so far of every target in one outer block."""

    COLUMNS = ("r2", "lag", "size", "alpha")

    def __init__(self, y: Floats, split: Split) -> None:
        t = y.shape[2]
        self.y, self.split = y, split
        self.score, self.r2 = np.full(t, -np.inf), np.full(t, np.nan)
        self.lag, self.size, self.alpha = (np.zeros(t, dtype=np.intp) for _ in range(3))

    def offer(
        self,
        lags: tuple[int, ...],
        size: int,
        model: Any,
        x_test: Floats,
        alphas: tuple[float, ...],
    ) -> None:
        """Take a fitted model's lags where they are better."""
        t = len(self.score)
        score = _numpy(model.cv_scores_).reshape(len(lags), t)
        alpha = _nearest(_numpy(model.best_alphas_), alphas).reshape(len(lags), t)
        predicted = _numpy(model.predict(x_test)).reshape(-1, len(lags), t)
        for i, lag in enumerate(lags):
            y = self.y[lag]
            r2 = held_out_r2(y[self.split.rows], predicted[:, i], y[self.split.train].mean(axis=0))
            better = score[i] > self.score
            self.score = np.where(better, score[i], self.score)
            self.r2 = np.where(better, r2, self.r2)
            self.alpha = np.where(better, alpha[i], self.alpha)
            self.lag = np.where(better, lag, self.lag)
            self.size = np.where(better, size, self.size)


def _principal_scores(split: Split, components: tuple[int, ...]) -> list[tuple[Floats, Floats]]:
    """Training and test features of every PCA size, from one decomposition."""
    from sklearn.decomposition import PCA

    largest = max(components)
    if largest == 0:
        return [(split.x_train, split.x_test)] * len(components)
    pca = PCA(n_components=largest, svd_solver="covariance_eigh").fit(split.x_train)
    train, test = pca.transform(split.x_train), pca.transform(split.x_test)
    everything = (split.x_train, split.x_test)
    return [everything if k == 0 else (train[:, :k], test[:, :k]) for k in components]


def _ridge_cv(alphas: tuple[float, ...], split: Split, backend: str, kernel: bool = False) -> Any:
    """himalaya's RidgeCV over the inner blocks, scored by R²."""
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import KernelRidgeCV
    from himalaya.ridge import RidgeCV
    from himalaya.scoring import r2_score
    from sklearn.model_selection import PredefinedSplit

    set_backend(backend)
    common: dict[str, Any] = {
        "alphas": np.array(alphas, dtype=split.x_train.dtype),
        "fit_intercept": True,
        "cv": PredefinedSplit(split.inner),
    }
    if kernel:
        options: dict[str, Any] = {"score_func": r2_score}
        return KernelRidgeCV(kernel="linear", solver="eigenvalues", solver_params=options, warn=False, **common)
    options = {"score_func": r2_score, "warn": False}
    return RidgeCV(solver="svd", solver_params=options, **common)


def _single(r2: list[Floats], alpha: list[Ints]) -> Held:
    zeros = np.zeros((len(alpha), len(alpha[0])), dtype=np.intp)
    return Held(np.stack(r2), zeros, zeros, np.stack(alpha))


def _nearest(values: Floats, alphas: tuple[float, ...]) -> Ints:
    """Index of the penalty that a library reports, which it may have rounded."""
    distance = np.abs(np.log(values)[:, None] - np.log(alphas)[None, :])
    return distance.argmin(axis=1)


def _numpy(array: Any) -> Floats:
    """A NumPy array of what a library returns."""
    return array.numpy() if hasattr(array, "numpy") else np.asarray(array)
