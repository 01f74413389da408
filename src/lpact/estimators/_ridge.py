"""Ridge and banded ridge regression with scikit-learn's interface, over contiguous blocks of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, check_X_y, validate_data

from lpact.errors import SplitError
from lpact.math.ridge import (
    METRICS,
    PER_TARGET,
    SHARED,
    BandedFit,
    BandedGrid,
    Compute,
    Readout,
    RidgeFit,
    RidgeGrid,
    Selection,
    cross_validated_banded_ridge,
    cross_validated_ridge,
    nested_banded_ridge,
    nested_ridge,
)
from lpact.math.ridge.grid import Metric
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray
from lpact.splits import Split, contiguous, grouped

ArrayLike: TypeAlias = Any
"""An array, a list, or a data frame that scikit-learn can read."""

_FLOATS = [np.float64, np.float32]
_CHECKS = {"dtype": _FLOATS, "ensure_min_samples": 2}


@dataclass(frozen=True)
class Problem:
    """Checked input of a readout."""

    features: FloatArray  # [n, p]
    responses: FloatArray  # [n_lags, n, t]
    unpenalised: FloatArray | None  # [n, m]
    folds: BlockedFolds
    compute: Compute
    single: bool  # y is [n]: results have no target axis
    names: tuple[str, ...]  # of the features, if X is a data frame

    def by_target(self, values: Any) -> Any:
        """Values [t, …], without the first axis where y is [n]."""
        values = np.asarray(values)
        if not self.single:
            return values
        return values[0] if values.ndim > 1 else values[0].item()


class BlockedEstimator(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """A linear readout whose settings are chosen over contiguous blocks of rows."""

    alphas: Sequence[float]
    cv: int | Split
    gap: int
    metric: Metric
    device: str
    precision: Literal["float64", "float32"]
    memory_bytes: int | None
    alpha_: FloatArray | float
    lag_: IntArray | int
    best_score_: FloatArray | float
    coef_: FloatArray
    intercept_: FloatArray | float
    unpenalised_coef_: FloatArray
    n_features_in_: int
    form: Literal["auto", "primal", "kernel"]
    _fit_all: ClassVar[Callable[..., Any]]
    _fit_nested: ClassVar[Callable[..., Any]]

    @abstractmethod
    def _grid(self) -> RidgeGrid | BandedGrid:
        """The candidate settings."""

    def _design(self, problem: Problem) -> Any:
        """Features as the solvers take them."""
        return problem.features

    @abstractmethod
    def _set_choice(self, problem: Problem, fit: Any) -> RidgeFit:
        """Set the attributes of the chosen settings, and return the fit with weights on the columns of X."""

    def _solve(self, solver: Callable[..., Any], problem: Problem, **options: Any) -> Any:
        return solver(
            self._design(problem),
            problem.responses,
            problem.folds,
            self._grid(),
            unpenalised=problem.unpenalised,
            form=self.form,
            compute=problem.compute,
            **options,
        )

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        unpenalised: ArrayLike | None = None,
    ) -> Self:
        """Choose settings with every block as validation block in turn, then fit on all rows.

        Parameters
        ----------
        X
            Features [n, p], rows in the order in which they were recorded.
        y
            Responses [n] or [n, t].
        groups
            [n]: segment of every row (story, run), each contiguous. Segments replace ``cv`` as blocks.
        unpenalised
            [n, m]: columns whose weights are not penalised, such as nuisance features. An intercept is always included.
            `predict` and `score` need them, too.
        """
        return self._set(self._problem(X, y, groups, unpenalised, lags=False, fitting=True))

    def fit_lags(
        self,
        X: ArrayLike,
        responses: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        unpenalised: ArrayLike | None = None,
    ) -> Self:
        """Choose a lag as well, then fit as in `fit`.

        ``responses`` is [n_lags, n, t]: the response to every row at each candidate lag. `predict` then returns every
        target at its own lag, whose index is in ``lag_``. Nested scores and predictions accept [n_lags, n, t] as well.
        """
        problem = self._problem(X, responses, groups, unpenalised, lags=True, fitting=True)
        return self._set(problem)

    def predict(self, X: ArrayLike, *, unpenalised: ArrayLike | None = None) -> FloatArray:
        """Predictions [n] or [n, t], like the responses, for features [n, p]."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=_FLOATS)
        out: FloatArray = X @ self.coef_.T + self.intercept_
        own = _unpenalised(unpenalised, X)
        needed, given = self.unpenalised_coef_.shape[-1], 0 if own is None else own.shape[1]
        if needed != given:
            raise ValueError(f"fitted with {needed} unpenalised columns, got {given}")
        return out if own is None else out + own @ self.unpenalised_coef_.T

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        unpenalised: ArrayLike | None = None,
    ) -> float:
        """R² of the predictions, averaged over targets, as in `sklearn.metrics.r2_score`."""
        predicted = self.predict(X, unpenalised=unpenalised)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def nested_scores(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        metric: str | None = None,
        groups: ArrayLike | None = None,
        unpenalised: ArrayLike | None = None,
    ) -> FloatArray | float:
        """Score of every target on rows that were used neither for the weights nor for the choice of settings.

        Every block is predicted from the others, with settings chosen on the others: the leak-free score of the whole
        procedure. Needs at least three blocks. The estimator is not changed, and need not be fitted.

        Parameters are those of `fit`; ``y`` may be [n_lags, n, t]. ``metric`` is ``"pearson"``, ``"spearman"`` or
        ``"r2"``, around the training mean; None for the estimator's ``metric`` (``"r2"`` for ``"pooled_r2"``). Returns
        [t], or a number where ``y`` is [n]; NaN where the response is constant.
        """
        if metric is None:  # scores of held-out rows are pooled in any case
            metric = "r2" if self.metric == "pooled_r2" else self.metric
        problem, readout = self._nested(X, y, groups, unpenalised, metrics=(metric,))
        scores: FloatArray | float = problem.by_target(readout.scores(metric))
        return scores

    def nested_predictions(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        unpenalised: ArrayLike | None = None,
    ) -> FloatArray:
        """Prediction of every row by the readout of `nested_scores`, [n] or [n, t]."""
        keep = ("predictions",)
        problem, readout = self._nested(X, y, groups, unpenalised, metrics=(), keep=keep)
        predicted: FloatArray = readout.predicted
        return predicted[:, 0] if problem.single else predicted

    def nested_readout(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        metrics: Sequence[str] = METRICS,
        keep: Sequence[str] = (),
        groups: ArrayLike | None = None,
        unpenalised: ArrayLike | None = None,
    ) -> Readout:
        """The whole readout of `nested_scores`: choices and scores in every block.

        ``keep`` may name ``"predictions"`` and ``"weights"``; those of `BandedRidge` are on the columns of the spaces
        side by side. A single response [n] counts as one target.
        """
        readout: Readout
        _, readout = self._nested(X, y, groups, unpenalised, metrics=metrics, keep=keep)
        return readout

    def _nested(self, X: ArrayLike, y: ArrayLike, *data: Any, **options: Any) -> tuple[Problem, Any]:
        problem = self._problem(X, y, *data, lags=np.ndim(y) == 3)
        return problem, self._solve(type(self)._fit_nested, problem, **options)

    def _set(self, problem: Problem) -> Self:
        fit = self._set_choice(problem, self._solve(type(self)._fit_all, problem))
        self.alpha_ = problem.by_target(np.atleast_1d(self.alphas).astype(float)[fit.alpha])
        self.lag_ = problem.by_target(fit.lag)
        self.best_score_ = problem.by_target(fit.score)
        self.coef_ = problem.by_target(fit.weights.T)
        self.unpenalised_coef_ = problem.by_target(fit.nuisance_weights.T)
        self.intercept_ = problem.by_target(fit.intercept)
        return self

    def _problem(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None,
        unpenalised: ArrayLike | None,
        *,
        lags: bool,
        fitting: bool = False,
    ) -> Problem:
        """Checked input, responses [n_lags, n, t] if ``lags``; sets the names and number of features if ``fitting``."""
        names = tuple(getattr(X, "columns", ()))
        both = {"multi_output": True, "y_numeric": True, **_CHECKS}
        if lags:
            if fitting:
                X = validate_data(self, X, **_CHECKS)
            else:
                X = check_array(X, input_name="X", estimator=self, **_CHECKS)
            y = check_array(y, input_name="y", dtype=_FLOATS, ensure_2d=False, allow_nd=True)
            if y.ndim != 3 or y.shape[1] != len(X):
                raise ValueError(f"responses must be [n_lags, {len(X)}, t], got shape {y.shape}")
        elif fitting:
            X, y = validate_data(self, X, y, **both)
        else:
            X, y = check_X_y(X, y, estimator=self, **both)
        if y.dtype not in _FLOATS:
            y = y.astype(np.float64)
        responses = y if y.ndim == 3 else y.reshape(1, len(y), -1)
        compute = Compute(self.device, self.precision)
        if self.memory_bytes is not None:
            compute = replace(compute, memory_bytes=self.memory_bytes)
        folds, own = self._folds(len(X), groups), _unpenalised(unpenalised, X)
        return Problem(X, responses, own, folds, compute, y.ndim == 1, names)

    def _folds(self, n_rows: int, groups: ArrayLike | None) -> BlockedFolds:
        if isinstance(self.cv, Split):
            if groups is not None:
                raise ValueError("pass blocks as cv or as groups, not both")
            if self.gap not in (0, self.cv.gap):
                raise ValueError(f"the split has a gap of {self.cv.gap}; set the gap in the split")
            if not self.cv.contiguous:
                raise ValueError(f"cv must hold out contiguous rows, got a {self.cv.kind} split")
            return self.cv.blocks()[1]
        if groups is not None:
            if np.shape(groups) != (n_rows,):
                raise ValueError(f"groups must be [{n_rows}], got shape {np.shape(groups)}")
            return _folds_of(grouped, groups, gap=self.gap)
        if not isinstance(self.cv, Integral) or isinstance(self.cv, bool):
            raise ValueError(f"cv must be a number of blocks or a split of lpact.splits, got {self.cv!r}")
        return _folds_of(contiguous, n_rows, int(self.cv), gap=self.gap)


class NestedRidge(BlockedEstimator):
    """Ridge regression that chooses penalty and principal components over contiguous blocks of rows.

    Neighbouring rows of a recording are correlated, so validation rows must not lie between training rows: rows are cut
    into contiguous blocks, with an embargo of ``gap`` rows around the held-out ones. Features are standardised on
    training rows only. `fit` chooses with every block as validation block in turn, and fits on all rows;
    `nested_scores` measures how well the whole procedure predicts unseen rows.

    Parameters
    ----------
    alphas
        Ridge penalties, positive, on the sum of squares of standardised features' weights.
    components
        Numbers of principal components of the standardised features, 0 for all features.
    cv
        Number of blocks, or a contiguous split of `lpact.splits`. Segments (stories, runs) are the ``groups`` of `fit`.
    gap
        Rows left out of training on both sides of every held-out block.
    metric
        Validation score by which settings are chosen: ``"r2"``, ``"pearson"``, ``"spearman"`` or ``"pooled_r2"``; see
        `lpact.math.ridge.RidgeGrid`.
    selection
        Choose settings per ``"target"``, ``"shared"`` by all targets, or by a `lpact.math.ridge.Selection`: groups of
        targets, and a level for each setting.
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
        Weights in raw units, [t, p], or [p] where ``y`` is [n].
    intercept_
        [t], or a number where ``y`` is [n]; so are the next four.
    alpha_
        Chosen penalty.
    components_
        Chosen number of principal components, 0 for all features.
    lag_
        Index of the chosen lag; 0 unless fitted by `fit_lags`.
    best_score_
        Mean validation score of the choice, NaN where undefined; R² as in scikit-learn, around the mean of the
        validation block. It is the best of several: use `nested_scores` to report.
    unpenalised_coef_
        Weights of the unpenalised columns, [t, m] or [m].
    n_features_in_
        Number of features p.
    feature_names_in_
        Names of the features, [p]; only if ``X`` is a data frame whose column names are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from lpact.estimators import NestedRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((120, 4))
    >>> y = X @ [1.0, 0.0, 0.0, -1.0] + 0.1 * rng.standard_normal(120)
    >>> NestedRidge(cv=4, gap=2).fit(X, y).coef_.round(1) + 0.0
    array([ 1.,  0.,  0., -1.])
    """

    components_: IntArray | int
    _fit_all = staticmethod(cross_validated_ridge)
    _fit_nested = staticmethod(nested_ridge)

    def __init__(
        self,
        alphas: Sequence[float] = (1.0, 10.0, 100.0, 1000.0, 10000.0),
        *,
        components: Sequence[int] = (0,),
        cv: int | Split = 5,
        gap: int = 0,
        metric: Metric = "r2",
        selection: Literal["target", "shared"] | Selection = "target",
        form: Literal["auto", "primal", "kernel"] = "auto",
        device: str = "cpu",
        precision: Literal["float64", "float32"] = "float64",
        memory_bytes: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.components = components
        self.cv = cv
        self.gap = gap
        self.metric = metric
        self.selection = selection
        self.form = form
        self.device = device
        self.precision = precision
        self.memory_bytes = memory_bytes

    def _set_choice(self, problem: Problem, fit: RidgeFit) -> RidgeFit:
        self.components_ = problem.by_target(fit.components)
        return fit

    def _grid(self) -> RidgeGrid:
        known: dict[Any, Selection] = {"target": PER_TARGET, "shared": SHARED}
        selection = self.selection
        if not isinstance(selection, Selection):
            if selection not in known:
                expected = f"{', '.join(known)}, or a Selection"
                raise ValueError(f"unknown selection {selection!r}; known: {expected}")
            selection = known[selection]
        return RidgeGrid(
            tuple(float(alpha) for alpha in np.atleast_1d(self.alphas)),
            tuple(int(k) for k in np.atleast_1d(self.components)),
            self.metric,
            selection,
        )


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
    cv, gap, metric, form, device, precision, memory_bytes
        As in `NestedRidge`.

    Attributes
    ----------
    coef_
        Weights in raw units, [t, p], or [p] where ``y`` is [n]; columns as in ``X``.
    gamma_
        Chosen weights of the spaces, in the order of ``spaces_``: [t, number of spaces], or [number of spaces].
    spaces_
        Columns of every feature space, by its name.
    search_
        Mean over targets of the best validation score so far, one for each of the weights that were tried.
    intercept_, alpha_, lag_, best_score_, unpenalised_coef_, n_features_in_, feature_names_in_
        As in `NestedRidge`.

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
    _fit_all = staticmethod(cross_validated_banded_ridge)
    _fit_nested = staticmethod(nested_banded_ridge)

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
        metric: Metric = "r2",
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

    def _design(self, problem: Problem) -> list[FloatArray]:
        return [problem.features[:, columns] for columns in self._spaces(problem).values()]

    def _set_choice(self, problem: Problem, fit: BandedFit) -> RidgeFit:
        self.spaces_ = self._spaces(problem)
        self.gamma_ = problem.by_target(fit.gamma.T)
        self.search_ = fit.search
        weights = np.empty_like(fit.weights)
        weights[np.concatenate(list(self.spaces_.values()))] = fit.weights  # to the columns of X
        return replace(fit, weights=weights)

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
            raise ValueError(f"spaces must name the space of each of {n_features} features, got {len(labels)} labels")
        found: dict[Hashable, list[int]] = {}
        for i, label in enumerate(labels):
            found.setdefault(label, []).append(i)
        return {name: np.array(columns) for name, columns in found.items()}


def _folds_of(make: Callable[..., Split], *args: Any, gap: int) -> BlockedFolds:
    """Folds of a split; scikit-learn expects a `ValueError` where there are none."""
    try:
        return make(*args, gap=gap).folds
    except SplitError as error:
        raise ValueError(str(error)) from None


def _unpenalised(columns: ArrayLike | None, X: FloatArray) -> FloatArray | None:
    """Checked columns [n, m], or None."""
    if columns is None:
        return None
    checked: FloatArray = check_array(columns, input_name="unpenalised", dtype=_FLOATS)
    check_consistent_length(X, checked)
    return checked


def _of_mapping(spaces: Mapping[Hashable, Any], n_features: int, names: tuple[str, ...]) -> dict[Hashable, IntArray]:
    """Columns by number, for spaces that list them by number or by name."""
    found: dict[Hashable, IntArray] = {}
    places = {name: i for i, name in enumerate(names)}
    for space, columns in spaces.items():
        if isinstance(columns, slice):
            columns = range(n_features)[columns]
        listed = [columns] if isinstance(columns, str) else list(columns)
        unknown = [c for c in listed if isinstance(c, str) and c not in places]
        if unknown:
            raise ValueError(f"the space {space!r} names an unknown column: {unknown[0]!r}")
        numbers = [places[c] if isinstance(c, str) else int(c) for c in listed]
        found[space] = np.array(numbers, dtype=np.int64)
    if sorted(i for columns in found.values() for i in columns) != list(range(n_features)):
        raise ValueError(f"spaces must contain each of {n_features} features once")
    return found
