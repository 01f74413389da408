"""A slow, obviously right nested ridge from scikit-learn parts: one target, one fold, one setting at a time.

Every fit is the pipeline StandardScaler → PCA (where components are asked for) → Ridge on one training set, written
from the definition and sharing no code with what it checks; training and validation rows are worked out here as well.
Where scikit-learn leaves rounding to decide, the oracle decides exactly:

- Columns that do not vary on the training rows are taken out before the pipeline. StandardScaler leaves them in with
  scale 1, and what rounding leaves of x − mean gets a weight near 1e-17, which shows once the column reaches 1e9 in the
  held-out block.
- A response that is constant on the training rows is predicted by that constant, not by a constant plus rounding;
  rows with the same features get the same prediction. Otherwise a correlation with noise of 1e-17 looks like a score.
- Responses are taken relative to their training mean before they are fitted, an exact invariance of a fit with an
  intercept: deviations of 1e-8 keep their digits beside a mean of 1e6.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import sklearn
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

TIE = 1e-9
"""Mean validation scores this close to the best are as good as the best."""

REMEMBERED = 8
"""How many problems keep their fits: tests that differ in form, metric or selection ask for the same ones."""

COARSE_TO_FINE = {"shared": 0, "group": 1, "target": 2}


# --- rows ---------------------------------------------------------------------------------------------------------


def training_rows(folds: Any, *held_out: int) -> np.ndarray:
    """Rows in none of the ``held_out`` blocks and further than the gap from each."""
    kept = []
    for row in range(folds.n_rows):
        far = True
        for block in held_out:
            start, stop = folds.bounds(block)
            distance = max(start - row, row - (stop - 1), 0)  # 0 inside the block
            far &= distance > 0 and distance > folds.gap
        if far:
            kept.append(row)
    return np.array(kept, dtype=int)


def validation_rows(folds: Any, block: int, outer: int) -> np.ndarray:
    """Rows of ``block`` further than the gap from ``outer``; none where more than half are lost."""
    rows = np.arange(*folds.bounds(block))
    left = np.intersect1d(rows, training_rows(folds, outer))
    return left if 2 * len(left) >= len(rows) else left[:0]


# --- one fit ------------------------------------------------------------------------------------------------------


def exact_mean(y: np.ndarray) -> float:
    """Mean that does not depend on the order of the rows: blocks trained on the same values share it exactly."""
    return math.fsum(y) / len(y)


def varies(column: np.ndarray) -> bool:
    """Whether a column varies, by more than rounding: variance > (n eps mean)²."""
    if column.max() == column.min():
        return False
    unit = np.abs(column).max()
    scaled = column / unit
    bound = len(column) * np.finfo(float).eps * abs(scaled.mean())
    return bool(scaled.std() > bound)


def varying(x: np.ndarray) -> np.ndarray:
    """Which columns vary, [p]."""
    return np.array(_varying(np.ascontiguousarray(x, dtype=float).tobytes(), x.shape), dtype=bool)


@lru_cache(maxsize=64)
def _varying(content: bytes, shape: tuple[int, int]) -> list[bool]:
    return [varies(column) for column in np.frombuffer(content).reshape(shape).T]


def pipeline(alpha: float, k: int) -> Pipeline:
    """What every fit without unpenalised columns is."""
    steps: list[tuple[str, Any]] = [("scale", StandardScaler())]
    if k:
        steps.append(("pca", PCA(n_components=k, svd_solver="full")))
    return Pipeline([*steps, ("ridge", Ridge(alpha=alpha, solver="svd"))])


@dataclass
class Fit:
    """One ridge fit: ``mean`` + ``deviation(x)``; weights in raw units."""

    mean: float
    weights: np.ndarray  # [p]
    nuisance_weights: np.ndarray  # [m]
    intercept: float
    _kept: np.ndarray
    _kept_nuisance: np.ndarray
    _deviation: Callable[[np.ndarray, np.ndarray], np.ndarray] | None
    deviations: dict[bytes, np.ndarray] = field(default_factory=dict)  # of rows asked for before

    def deviation(self, x: np.ndarray, nuisance: np.ndarray | None) -> np.ndarray:
        """Predictions less the training mean, [rows]; the same for rows with the same features."""
        if self._deviation is None:
            return np.zeros(len(x))
        nuisance = np.zeros((len(x), 0)) if nuisance is None else nuisance
        kept, kept_nuisance = x[:, self._kept], nuisance[:, self._kept_nuisance]
        _, first, inverse = np.unique(np.hstack([kept, kept_nuisance]), axis=0, return_index=True, return_inverse=True)
        return self._deviation(kept[first], kept_nuisance[first])[inverse.ravel()]


def fit_one(x: np.ndarray, y: np.ndarray, alpha: float, k: int, nuisance: np.ndarray | None = None) -> Fit:
    """Fit one response [n] on features [n, p] at one penalty; k = 0 for all features."""
    nuisance = np.zeros((len(x), 0)) if nuisance is None else nuisance
    kept, kept_nuisance = varying(x), varying(nuisance)
    weights, nuisance_weights = np.zeros(x.shape[1]), np.zeros(nuisance.shape[1])
    if y.max() == y.min() or not (kept.any() or kept_nuisance.any()):
        mean = float(y[0]) if y.max() == y.min() else exact_mean(y)
        return Fit(mean, weights, nuisance_weights, mean, kept, kept_nuisance, None)
    mean = exact_mean(y)
    around = y - mean
    around = around - around.mean()  # what rounding of a large mean leaves is not for the intercept to predict
    parts = _fit_parts(x[:, kept], around, alpha, k, nuisance[:, kept_nuisance])
    weights[kept], nuisance_weights[kept_nuisance], offset, deviation = parts
    return Fit(mean, weights, nuisance_weights, mean + offset, kept, kept_nuisance, deviation)


def _fit_parts(
    x: np.ndarray, y: np.ndarray, alpha: float, k: int, nuisance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """Weights of features and unpenalised columns in raw units, intercept, and the prediction, of columns that vary."""
    k = 0 if k >= min(x.shape) else k  # all axes: a rotation, which a ridge does not notice
    if nuisance.shape[1] == 0:
        before = prepared(x, k)
        ridge = Ridge(alpha=alpha, solver="svd").fit(before.z, y)
        weights = (ridge.coef_ @ before.axes) / before.scale.scale_
        # PCA and Ridge centre once more what is centred already: no term of their own in the intercept.
        offset = float(ridge.intercept_ - weights @ before.scale.mean_)
        return weights, np.zeros(0), offset, lambda new, _: ridge.predict(before.transform(new))
    return _fit_beside(x, y, alpha, k, nuisance)


def _fit_beside(
    x: np.ndarray, y: np.ndarray, alpha: float, k: int, nuisance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """The same with unpenalised columns."""
    # Standardise both; regress features and response on the unpenalised columns over the training rows; ridge what
    # is left on what is left (Frisch and Waugh).
    before_n = prepared(nuisance, 0)
    scale_n, n = before_n.scale, before_n.z
    on_y = np.linalg.lstsq(n, y - y.mean(), rcond=1e-10)[0]
    if x.shape[1] == 0:
        ridge, axes, on_x = None, None, None
    else:
        before_x = prepared(x, 0)
        scale_x, z = before_x.scale, before_x.z
        on_x = np.linalg.lstsq(n, z, rcond=1e-10)[0]
        left = z - n @ on_x
        axes = np.eye(x.shape[1])
        if k and np.abs(left).max() > 0.0:
            axes = PCA(n_components=k, svd_solver="full").fit(left).components_
        ridge = Ridge(alpha=alpha, solver="svd").fit(left @ axes.T, y - n @ on_y)

    def deviation(new: np.ndarray, new_n: np.ndarray) -> np.ndarray:
        new_n = before_n.transform(new_n)
        out = new_n @ on_y
        if ridge is not None:
            out = out + ridge.predict((before_x.transform(new) - new_n @ on_x) @ axes.T)
        return out

    weights = np.zeros(0)
    nuisance_weights = on_y / scale_n.scale_
    offset = 0.0
    if ridge is not None:
        in_z = ridge.coef_ @ axes
        weights = in_z / scale_x.scale_
        nuisance_weights = (on_y - on_x @ in_z) / scale_n.scale_
        offset = float(ridge.intercept_ - weights @ scale_x.mean_)
    offset -= float(nuisance_weights @ scale_n.mean_)
    return weights, nuisance_weights, offset, deviation


class Prepared:
    """The steps of the pipeline before the ridge, fitted to training rows: they know neither response nor penalty."""

    def __init__(self, x: np.ndarray, k: int) -> None:
        self.scale = StandardScaler()
        self.z = self.scale.fit_transform(x)
        self.pca = PCA(n_components=k, svd_solver="full") if k else None
        self.axes = np.eye(x.shape[1])
        if self.pca is not None:
            self.z = self.pca.fit_transform(self.z)
            self.axes = self.pca.components_
        self._seen: dict[bytes, np.ndarray] = {}

    def transform(self, new: np.ndarray) -> np.ndarray:
        """Other rows; those that were asked for before are not worked out again."""
        key = new.tobytes()
        if key not in self._seen:
            z = self.scale.transform(new)
            self._seen[key] = z if self.pca is None else self.pca.transform(z)
        return self._seen[key]


@lru_cache(maxsize=64)
def _prepared(content: bytes, shape: tuple[int, int], k: int) -> Prepared:
    return Prepared(np.frombuffer(content).reshape(shape), k)


def prepared(x: np.ndarray, k: int) -> Prepared:
    """Targets, lags and penalties that are fitted to the same rows share what comes before the ridge."""
    return _prepared(np.ascontiguousarray(x, dtype=float).tobytes(), x.shape, k)


_MEMORY: OrderedDict[bytes, dict[Any, Any]] = OrderedDict()


def remembered(*arrays: np.ndarray | None) -> dict[Any, Any]:
    """Where the fits of a problem are kept; the same numbers in the same shapes are the same problem."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(b"none" if array is None else f"{array.dtype}{array.shape}".encode())
        digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    kept = _MEMORY.setdefault(digest.digest(), {})
    _MEMORY.move_to_end(digest.digest())
    if len(_MEMORY) > REMEMBERED:
        _MEMORY.popitem(last=False)
    return kept


# --- scores -------------------------------------------------------------------------------------------------------


def validation_score(y: np.ndarray, guess: np.ndarray, metric: str) -> float:
    """Score of one setting on one validation block; NaN where it is undefined.

    R² is around the mean of the block itself, as in scikit-learn.
    """
    if y.max() == y.min():
        return np.nan
    unit = np.abs(y).max()  # no metric changes with the unit; squares of 1e160 overflow
    y, guess = y / unit, guess / unit
    if metric == "r2":
        return 1.0 - float(((y - guess) ** 2).sum() / ((y - y.mean()) ** 2).sum())
    return correlation(y, guess, metric)


def correlation(a: np.ndarray, b: np.ndarray, metric: str) -> float:
    """Pearson or Spearman correlation; NaN where either is constant."""
    if a.max() == a.min() or b.max() == b.min():
        return np.nan
    if metric == "spearman":
        a, b = stats.rankdata(a), stats.rankdata(b)
    a, b = (v / np.abs(v).max() for v in (a - a.mean(), b - b.mean()))
    a, b = (v / np.linalg.norm(v) for v in (a - a.mean(), b - b.mean()))
    return float(np.clip(a @ b, -1.0, 1.0))


def held_out_score(observed: np.ndarray, deviation: np.ndarray, baseline: np.ndarray, metric: str) -> float:
    """Score of held-out rows around their training means; NaN where it is undefined."""
    around = observed - baseline
    if observed.max() == observed.min() or np.abs(around).max() == 0.0:
        return np.nan
    unit = np.abs(around).max()
    around, deviation = around / unit, deviation / unit
    if metric == "r2":
        return 1.0 - float(((around - deviation) ** 2).sum() / (around**2).sum())
    return correlation(around, deviation, metric)


def finite_mean(values: Iterable[float]) -> float:
    """Mean of those that are finite; NaN if none is."""
    finite = [v for v in values if np.isfinite(v)]
    return float(np.mean(finite)) if finite else np.nan


# --- selection ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Levels:
    """At which level each setting is chosen; the same fields as the selection of a grid."""

    lag: str = "target"
    components: str = "target"
    alpha: str = "target"
    groups: tuple[int, ...] | None = None


AXES = ("lag", "components", "alpha")


def choose(scores: np.ndarray, levels: Any) -> dict[str, np.ndarray]:
    """Indices of lag, components and penalty of every target, [t] each, from scores [L, K, A, t]."""
    n_targets = scores.shape[-1]
    order = sorted(AXES, key=lambda name: COARSE_TO_FINE[getattr(levels, name)])  # stable
    chosen = {name: np.zeros(n_targets, dtype=int) for name in AXES}

    def pools(name: str, targets: Sequence[int]) -> list[list[int]]:
        level = getattr(levels, name)
        if level == "shared":
            return [list(targets)]
        if level == "target":
            return [[t] for t in targets]
        labels = sorted({levels.groups[t] for t in targets})
        return [[t for t in targets if levels.groups[t] == label] for label in labels]

    def n_values(name: str) -> int:
        return scores.shape[AXES.index(name)]

    def at(fixed: dict[str, int], target: int) -> float:
        return float(scores[(*(fixed[name] for name in AXES), target)])

    def reach(fixed: dict[str, int], open_: list[str], targets: Sequence[int]) -> list[float]:
        """What every target gets once the settings in ``open_`` have been chosen."""
        if not open_:
            return [at(fixed, t) for t in targets]
        got: dict[int, float] = {}
        for pool in pools(open_[0], targets):
            options = [reach({**fixed, open_[0]: v}, open_[1:], pool) for v in range(n_values(open_[0]))]
            means = [finite_mean(option) for option in options]
            best = 0 if np.isnan(means).all() else int(np.nanargmax(means))
            got.update(zip(pool, options[best], strict=True))
        return [got[t] for t in targets]

    def decide(fixed: dict[str, int], open_: list[str], targets: Sequence[int]) -> None:
        if not open_:
            for t in targets:
                for name in AXES:
                    chosen[name][t] = fixed[name]
            return
        name, rest = open_[0], open_[1:]
        for pool in pools(name, targets):
            means = [finite_mean(reach({**fixed, name: v}, rest, pool)) for v in range(n_values(name))]
            pick = 0
            if np.isfinite(means).any():
                pick = next(v for v, m in enumerate(means) if m >= np.nanmax(means) - TIE)
            decide({**fixed, name: pick}, rest, pool)

    decide({}, order, range(n_targets))
    return chosen


# --- the whole ----------------------------------------------------------------------------------------------------


@dataclass
class Nested:
    """Held-out results of the oracle; shapes as in the readout it checks."""

    lag: np.ndarray
    alpha: np.ndarray
    components: np.ndarray
    observed: np.ndarray
    deviation: np.ndarray
    baseline: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    nuisance_weights: np.ndarray
    inner: np.ndarray  # [F, L, K, A, t]
    folds: Any

    @property
    def predicted(self) -> np.ndarray:
        return self.baseline + self.deviation

    def scores(self, metric: str) -> np.ndarray:
        return np.array(
            [
                held_out_score(self.observed[:, t], self.deviation[:, t], self.baseline[:, t], metric)
                for t in range(self.observed.shape[1])
            ]
        )

    def fold_scores(self, metric: str) -> np.ndarray:
        out = np.empty((self.folds.n_blocks, self.observed.shape[1]))
        for block in range(self.folds.n_blocks):
            rows = slice(*self.folds.bounds(block))
            for t in range(out.shape[1]):
                out[block, t] = held_out_score(
                    self.observed[rows, t], self.deviation[rows, t], self.baseline[rows, t], metric
                )
        return out


@dataclass
class CrossValidated:
    """Settings chosen over all blocks and the fit to all rows; shapes as in the fit it checks."""

    lag: np.ndarray
    alpha: np.ndarray
    components: np.ndarray
    score: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    nuisance_weights: np.ndarray
    predicted: np.ndarray  # [n, t] at the rows of the fit
    grid_scores: np.ndarray  # [L, K, A, t]


@dataclass
class _Problem:
    design: Any
    responses: np.ndarray
    grid: Any
    unpenalised: np.ndarray | None
    fits: dict[Any, Any] = field(default_factory=dict)
    designs: dict[bytes, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not callable(self.design):
            self.fits = remembered(self.design, self.responses, self.unpenalised)

    def features(self, train: np.ndarray) -> np.ndarray:
        if not callable(self.design):
            return self.design
        key = train.tobytes()
        if key not in self.designs:
            self.designs[key] = self.design(train)
        return self.designs[key]

    def nuisance(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.unpenalised is None else self.unpenalised[rows]

    def fit(self, train: np.ndarray, lag: int, k: int, alpha: float, target: int) -> Fit:
        """The fit of one setting to one target; the same training rows are not fitted twice."""
        key = (train.tobytes(), lag, k, alpha, target)
        if key not in self.fits:
            y = self.responses[lag, train, target]
            with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
                x = self.features(train)[train]
                self.fits[key] = fit_one(x, y, alpha, k, self.nuisance(train))
        fitted: Fit = self.fits[key]
        return fitted

    def grid_scores(self, splits: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Mean finite validation score of every setting and target, [L, K, A, t]."""
        n_lags, _, n_targets = self.responses.shape
        shape = (n_lags, len(self.grid.components), len(self.grid.alphas), n_targets)
        out = np.empty(shape)
        for lag, i, j, target in np.ndindex(*shape):
            found = []
            for train, validation in splits:
                if len(validation) == 0:
                    continue
                fit = self.fit(train, lag, self.grid.components[i], self.grid.alphas[j], target)
                guess = self.deviation(fit, train, validation)
                truth = self.responses[lag, validation, target]
                if truth.max() == truth.min():
                    continue
                found.append(validation_score(truth - fit.mean, guess, self.grid.metric))
            out[lag, i, j, target] = finite_mean(found)
        return out

    def deviation(self, fit: Fit, train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        key = rows.tobytes()
        if key not in fit.deviations:
            with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
                found = fit.deviation(self.features(train)[rows], self.nuisance(rows))
            fit.deviations[key] = found
        return fit.deviations[key]

    def widths(self) -> tuple[int, int]:
        n = self.responses.shape[1]
        n_nuisance = 0 if self.unpenalised is None else self.unpenalised.shape[1]
        return self.features(np.arange(n)).shape[1], n_nuisance


def _levels(grid: Any) -> Any:
    return getattr(grid, "selection", None) or Levels()


def oracle_nested(
    design: Any,
    responses: np.ndarray,
    folds: Any,
    grid: Any,
    *,
    unpenalised: np.ndarray | None = None,
) -> Nested:
    """Every block predicted from the others, settings chosen on the others."""
    problem = _Problem(design, responses, grid, unpenalised)
    _, n, n_targets = responses.shape
    n_blocks = folds.n_blocks
    p, m = problem.widths()
    lag, alpha, components = (np.zeros((n_blocks, n_targets), dtype=int) for _ in range(3))
    observed, deviation, baseline = (np.empty((n, n_targets)) for _ in range(3))
    weights, nuisance_weights = (
        np.zeros((n_blocks, p, n_targets)),
        np.zeros((n_blocks, m, n_targets)),
    )
    intercept = np.zeros((n_blocks, n_targets))
    inner = []
    for outer in range(n_blocks):
        splits = [
            (training_rows(folds, outer, block), validation_rows(folds, block, outer))
            for block in range(n_blocks)
            if block != outer
        ]
        inner.append(problem.grid_scores(splits))
        chosen = choose(inner[-1], _levels(grid))
        train, rows = training_rows(folds, outer), np.arange(*folds.bounds(outer))
        for t in range(n_targets):
            at, k = int(chosen["lag"][t]), grid.components[chosen["components"][t]]
            fit = problem.fit(train, at, k, grid.alphas[chosen["alpha"][t]], t)
            observed[rows, t] = responses[at, rows, t]
            deviation[rows, t] = problem.deviation(fit, train, rows)
            baseline[rows, t] = fit.mean
            lag[outer, t], alpha[outer, t], components[outer, t] = at, chosen["alpha"][t], k
            weights[outer, :, t], intercept[outer, t] = fit.weights, fit.intercept
            nuisance_weights[outer, :, t] = fit.nuisance_weights
    return Nested(
        lag,
        alpha,
        components,
        observed,
        deviation,
        baseline,
        weights,
        intercept,
        nuisance_weights,
        np.stack(inner),
        folds,
    )


def oracle_cross_validated(
    design: Any,
    responses: np.ndarray,
    folds: Any,
    grid: Any,
    *,
    unpenalised: np.ndarray | None = None,
) -> CrossValidated:
    """Settings chosen with every block as validation block in turn, then one fit to all rows."""
    problem = _Problem(design, responses, grid, unpenalised)
    _, n, n_targets = responses.shape
    splits = [(training_rows(folds, block), np.arange(*folds.bounds(block))) for block in range(folds.n_blocks)]
    scores = problem.grid_scores(splits)
    chosen = choose(scores, _levels(grid))
    p, m = problem.widths()
    rows = np.arange(n)
    score, intercept = np.empty(n_targets), np.empty(n_targets)
    weights, nuisance_weights = np.empty((p, n_targets)), np.empty((m, n_targets))
    predicted = np.empty((n, n_targets))
    for t in range(n_targets):
        at, i, j = (int(chosen[name][t]) for name in AXES)
        fit = problem.fit(rows, at, grid.components[i], grid.alphas[j], t)
        score[t] = scores[at, i, j, t]
        weights[:, t], nuisance_weights[:, t], intercept[t] = (
            fit.weights,
            fit.nuisance_weights,
            fit.intercept,
        )
        predicted[:, t] = fit.mean + problem.deviation(fit, rows, rows)
    return CrossValidated(
        chosen["lag"],
        chosen["alpha"],
        np.asarray(grid.components)[chosen["components"]],
        score,
        weights,
        intercept,
        nuisance_weights,
        predicted,
        scores,
    )


# --- comparison ---------------------------------------------------------------------------------------------------

METRICS = ("pearson", "spearman", "r2")
EXACT = 1e-8


def assert_same_scores(got: np.ndarray, expected: np.ndarray, tolerance: float = EXACT) -> None:
    """Undefined in the same places; elsewhere equal, in relative terms where |score| > 1."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    defined = ~np.isnan(expected)
    np.testing.assert_array_less(
        np.abs(got - expected)[defined] / np.maximum(1.0, np.abs(expected[defined])), tolerance
    )


def assert_close_in_units(got: np.ndarray, expected: np.ndarray, unit: np.ndarray, tolerance: float = EXACT) -> None:
    """|got − expected| < tolerance × unit, unit broadcast; nothing is asked of a digit below rounding."""
    assert got.shape == expected.shape
    rounding = 4.0 * np.finfo(float).eps * np.abs(expected)
    excess = (np.abs(got - expected) - rounding) / np.where(unit > 0.0, unit, 1.0)
    assert np.isfinite(got).all()
    np.testing.assert_array_less(excess, tolerance)


def response_units(responses: np.ndarray) -> np.ndarray:
    """Spread of every target over its lags, [t]; 0 where it is constant."""
    centred = responses - responses.mean(axis=1, keepdims=True)
    spread: np.ndarray = np.abs(centred).max(axis=(0, 1))
    constant = (responses.max(axis=1) == responses.min(axis=1)).all(axis=0)
    return np.where(constant, 0.0, spread)


def assert_same_readout(got: Any, expected: Nested, responses: np.ndarray, tolerance: float = EXACT) -> None:
    """Settings exactly; predictions in units of the target's spread (or of the prediction); all scores."""
    for name in ("lag", "components", "alpha"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name), err_msg=name)
    np.testing.assert_array_equal(got.observed, expected.observed)
    unit = response_units(responses)
    assert_close_in_units(got.baseline, expected.baseline, unit, tolerance)
    assert_close_in_units(got.predicted, expected.predicted, unit + np.abs(expected.deviation), tolerance)
    for metric in METRICS:
        assert_same_scores(got.fold_scores(metric), expected.fold_scores(metric), tolerance)
        clear = [metric != "spearman" or ranks_are_clear(expected, t) for t in range(len(unit))]
        assert_same_scores(got.scores(metric)[clear], expected.scores(metric)[clear], tolerance)


def ranks_are_clear(expected: Nested, target: int) -> bool:
    """Whether rounding cannot decide the pooled ranks of a target.

    It can where values of two blocks, each relative to its own training mean, are equal but for rounding, as those of
    a response that is constant in two blocks of one size.
    """
    folds = expected.folds
    block = np.repeat(np.arange(folds.n_blocks), [np.diff(folds.bounds(b))[0] for b in range(folds.n_blocks)])
    around = (expected.observed - expected.baseline)[:, target]
    unit = np.abs(around).max()
    for values in (around, expected.deviation[:, target]):
        order = np.argsort(values, kind="stable")
        close = np.diff(values[order]) <= 1e-11 * unit
        same = (np.diff(block[order]) == 0) & (np.diff(values[order]) == 0.0)
        both_zero = (values[order][1:] == 0.0) & (values[order][:-1] == 0.0)
        if (close & ~same & ~both_zero).any():
            return False
    return True


def least_memory(run: Callable[[int], Any]) -> int:
    """About the smallest budget in bytes with which ``run(budget)`` does not refuse."""
    budget = 1024
    while budget < 2**31:
        try:
            run(budget)
        except ValueError as error:
            if "memory_bytes" not in str(error):
                raise
            budget = budget * 5 // 4
        else:
            return budget
    raise AssertionError("every budget was refused")


def choice_is_clear(grid_scores: np.ndarray) -> bool:
    """Whether rounding cannot decide between settings, [..., L, K, A, t] at the level of the target.

    It can where a score is about 1e-9 below the best, the edge of a tie, and where scores are so large (a readout
    that meets a huge outlier) that their own rounding exceeds 1e-9.
    """
    flat = grid_scores.reshape(-1, *grid_scores.shape[-4:])
    for block in flat:
        settings = block.reshape(-1, block.shape[-1])
        for column in settings.T:
            finite = column[np.isfinite(column)]
            if len(finite) == 0:
                continue
            below = finite.max() - finite
            noise = 1e-11 + 1e-12 * abs(float(finite.max()))
            if ((below > 0) & (np.abs(below - TIE) < noise)).any():
                return False
            if noise > TIE and (np.sort(below)[1:] < noise).any():
                return False
    return True
