"""Banded ridge regression that chooses the weights of feature spaces over contiguous blocks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from lpact.estimators._blocked import ArrayLike, BlockedEstimator, Problem
from lpact.math.ridge import (
    METRICS,
    BandedGrid,
    BandedReadout,
    RidgeFit,
    cross_validated_banded_ridge,
    nested_banded_ridge,
)
from lpact.math.types import FloatArray, IntArray
from lpact.splits import Split


class BandedRidge(BlockedEstimator):
    """Ridge regression with a penalty for each feature space, chosen for every target over contiguous blocks of rows.

    The standardised columns of feature space g are multiplied by √γ_g, so that their penalty is α / γ_g; a space with
    γ_g = 0 is left out. Weights γ are searched: first equal ones for every subset of the spaces, then random ones.
    Every target takes the γ and α with its best mean validation score. Blocks, `fit` and `nested_scores` are those of
    `NestedRidge`.

    Parameters
    ----------
    spaces
        The feature space of every column, [p] labels; or a mapping from names of spaces to their columns (numbers, or
        names if ``X`` is a data frame), every column once. None for a single space: ridge regression.
    alphas
        Penalties α, positive.
    draws
        Largest number of random weights.
    patience, min_gain
        The search stops after ``patience`` draws in a row that did not raise the mean over targets of their best
        validation score by more than ``min_gain``.
    concentration
        Of the Dirichlet distributions that weights are drawn from, in turn. Below 1, draws favour few spaces.
    subsets
        Whether to try every subset of the spaces (at most 10 spaces).
    random_state
        Seed of the draws, or a generator to draw one from.
    cv
        Number of blocks, or a contiguous split of `lpact.splits`. Segments (stories, runs) are the ``groups`` of `fit`.
    gap
        Rows left out of training on both sides of every held-out block.
    metric
        Validation score by which settings are chosen: ``"r2"``, ``"pearson"`` or ``"spearman"``.
    form
        Decompose the Gram matrix of columns (``"primal"``) or of rows (``"kernel"``), or the smaller one.
    device
        ``"cpu"`` (NumPy), ``"torch"`` (torch on the CPU), ``"cuda"``, ``"cuda:N"`` or ``"mps"``.
    precision
        Of the large products: ``"float64"`` or ``"float32"``.
    memory_bytes
        Limit of the working memory, in addition to input and output arrays; None for 2 GiB.

    Attributes
    ----------
    coef_
        Weights in raw units, [t, p], or [p] where ``y`` is [n]; columns as in ``X``.
    intercept_
        [t], or a number where ``y`` is [n]; so are the next three.
    alpha_
        Chosen penalty.
    lag_
        Index of the chosen lag; 0 unless fitted by `fit_lags`.
    best_score_
        Mean validation score of the choice, NaN where undefined; R² as in scikit-learn, around the mean of the
        validation block. It is the best of many: use `nested_scores` to report.
    gamma_
        Chosen weights of the spaces, in the order of ``spaces_``: [t, number of spaces], or [number of spaces].
    spaces_
        Columns of every feature space, by its name.
    search_
        Mean over targets of the best validation score so far, one for each of the weights that were tried.
    unpenalised_coef_
        Weights of the unpenalised columns, [t, m] or [m].
    n_features_in_
        Number of features p.
    feature_names_in_
        Names of the features, [p]; only if ``X`` is a data frame whose column names are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from lpact.estimators import BandedRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((120, 6))
    >>> y = X[:, :2] @ [1.0, -1.0] + 0.1 * rng.standard_normal(120)
    >>> model = BandedRidge(spaces=["sound"] * 2 + ["meaning"] * 4, draws=20, cv=4).fit(X, y)
    >>> list(model.spaces_)
    ['sound', 'meaning']
    >>> bool(model.gamma_[0] > 0.9)
    True
    """

    gamma_: FloatArray
    spaces_: dict[Hashable, IntArray]
    search_: FloatArray

    def __init__(
        self,
        spaces: Sequence[Hashable] | Mapping[Hashable, Any] | None = None,
        *,
        alphas: Sequence[float] = (1.0, 10.0, 100.0, 1000.0, 10000.0),
        draws: int = 1000,
        patience: int = 50,
        min_gain: float = 1e-4,
        concentration: Sequence[float] = (0.1, 1.0),
        subsets: bool = True,
        random_state: Any = 0,
        cv: int | Split = 5,
        gap: int = 0,
        metric: Literal["r2", "pearson", "spearman"] = "r2",
        form: Literal["auto", "primal", "kernel"] = "auto",
        device: str = "cpu",
        precision: Literal["float64", "float32"] = "float64",
        memory_bytes: int | None = None,
    ) -> None:
        self.spaces = spaces
        self.alphas = alphas
        self.draws = draws
        self.patience = patience
        self.min_gain = min_gain
        self.concentration = concentration
        self.subsets = subsets
        self.random_state = random_state
        self.cv = cv
        self.gap = gap
        self.metric = metric
        self.form = form
        self.device = device
        self.precision = precision
        self.memory_bytes = memory_bytes

    def nested_readout(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        metrics: Sequence[str] = METRICS,
        keep: Sequence[str] = (),
        groups: ArrayLike | None = None,
        unpenalised: ArrayLike | None = None,
    ) -> BandedReadout:
        """The whole readout of `nested_scores`: choices and scores in every block.

        ``keep`` may name ``"predictions"`` and ``"weights"``; weights are on the columns of the spaces side by side.
        A single response [n] counts as one target.
        """
        return self._nested(self._checked(X, y, groups, unpenalised), metrics, keep)

    def _fit(self, problem: Problem) -> RidgeFit:
        spaces = self._spaces(problem)
        fit = cross_validated_banded_ridge(
            _parts(problem.features, spaces),
            problem.responses,
            problem.folds,
            self._grid(),
            unpenalised=problem.unpenalised,
            form=self.form,
            compute=problem.compute,
        )
        self.spaces_ = spaces
        self.gamma_ = problem.by_target(fit.gamma.T)
        self.search_ = fit.search
        weights = np.empty_like(fit.weights)
        weights[np.concatenate(list(spaces.values()))] = fit.weights  # back to the columns of X
        return replace(fit, weights=weights)

    def _nested(
        self, problem: Problem, metrics: Sequence[str], keep: Sequence[str]
    ) -> BandedReadout:
        return nested_banded_ridge(
            _parts(problem.features, self._spaces(problem)),
            problem.responses,
            problem.folds,
            self._grid(),
            unpenalised=problem.unpenalised,
            metrics=metrics,
            keep=keep,
            form=self.form,
            compute=problem.compute,
        )

    def _grid(self) -> BandedGrid:
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31)
        return BandedGrid(
            tuple(float(alpha) for alpha in np.atleast_1d(self.alphas)),
            draws=self.draws,
            patience=self.patience,
            min_gain=self.min_gain,
            concentration=tuple(float(c) for c in np.atleast_1d(self.concentration)),
            subsets=self.subsets,
            metric=self.metric,
            seed=int(seed),
        )

    def _spaces(self, problem: Problem) -> dict[Hashable, IntArray]:
        """Columns of every feature space."""
        n_features = problem.features.shape[1]
        if self.spaces is None:
            return {"all": np.arange(n_features)}
        if isinstance(self.spaces, Mapping):
            return _of_mapping(self.spaces, n_features, problem.names)
        labels = self.spaces.tolist() if isinstance(self.spaces, np.ndarray) else list(self.spaces)
        if len(labels) != n_features:
            raise ValueError(
                f"spaces must name the space of each of {n_features} features, got {len(labels)} labels"
            )
        return {
            name: np.array([i for i, label in enumerate(labels) if label == name])
            for name in dict.fromkeys(labels)
        }


def _of_mapping(
    spaces: Mapping[Hashable, Any], n_features: int, names: tuple[str, ...] | None
) -> dict[Hashable, IntArray]:
    """Columns by number, for spaces that list them by number or by name."""
    found: dict[Hashable, IntArray] = {}
    places = {name: i for i, name in enumerate(names or ())}
    for space, columns in spaces.items():
        if isinstance(columns, slice):
            found[space] = np.arange(n_features)[columns]
            continue
        listed = [columns] if isinstance(columns, str) else list(columns)
        unknown = [c for c in listed if isinstance(c, str) and c not in places]
        if unknown:
            raise ValueError(f"the space {space!r} names an unknown column: {unknown[0]!r}")
        found[space] = np.array(
            [places[c] if isinstance(c, str) else int(c) for c in listed], dtype=np.int64
        )
    everything = np.concatenate([np.zeros(0, dtype=np.int64), *found.values()])
    if sorted(everything.tolist()) != list(range(n_features)):
        raise ValueError(f"spaces must hold each of {n_features} features once")
    return found


def _parts(features: FloatArray, spaces: Mapping[Hashable, IntArray]) -> list[FloatArray]:
    """Columns of every space; without a copy where they lie side by side."""
    parts = []
    for columns in spaces.values():
        side_by_side = len(columns) > 0 and bool((np.diff(columns) == 1).all())
        place = slice(columns[0], columns[-1] + 1) if side_by_side else columns
        parts.append(features[:, place])
    return parts
