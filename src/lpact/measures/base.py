"""What a measure is: fitted on training stimuli, scored on held-out ones."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from lpact.errors import InputError
from lpact.math.columns import mean_of_finite, standard_columns
from lpact.math.types import FloatArray
from lpact.registry import Plugin, Registry
from lpact.splits import Split
from lpact.validation import PLUGIN_OPTIONS, validate_model

Invariance = Literal["offset", "scale", "column_scale", "permutation", "rotation"]

SOURCE_MISSING = "the source has missing values"
SOURCE_CONSTANT = "the source is constant"
TARGET_MISSING = "the target has missing values"
TARGET_CONSTANT = "the target is constant"
TOO_FEW = "too few stimuli"
UNDEFINED = "the measure is undefined for these stimuli"


@dataclass(frozen=True)
class Score:
    """Values of a measure, and why some are undefined.

    Attributes
    ----------
    value
        [t], one per target unit, or [] for a population; NaN where undefined.
    reason
        Same shape; empty where the value is defined.
    by_fold
        [n_folds, t] or [n_folds], where the score was cross-validated; NaN where a fold has no value.
    combined
        How ``value`` was made from folds: ``"pooled"``, one score of the predictions of all folds together, both
        predicted and observed as deviations from the mean of their fold's training rows, or
        ``"mean of folds"``, weighted by test rows; None where the score was not cross-validated. The two are not
        comparable: a pooled score also counts differences between folds, which a mean of folds leaves out.
    """

    value: FloatArray
    reason: npt.NDArray[np.str_]
    by_fold: FloatArray | None = None
    combined: Literal["pooled", "mean of folds"] | None = None

    def __repr__(self) -> str:
        defined = self.value[~np.isnan(self.value)]
        shown = f"{np.median(defined):.4g}" if defined.size else "nan"
        if self.value.ndim:
            shown = f"median {shown} of {self.value.size} units, {self.n_undefined} undefined"
        folds = "" if self.by_fold is None else f", {len(self.by_fold)} folds, {self.combined}"
        return f"Score({shown}{folds})"

    @property
    def n_undefined(self) -> int:
        """Number of undefined values."""
        return int(np.isnan(self.value).sum())

    def __float__(self) -> float:
        return float(self.value)


class Measure(Plugin, ABC):
    """A measure of how a source X [n, p] relates to a target Y [n, t], over the same n stimuli.

    A new measure overrides `values` (NaN for a constant unit), and `fit` where it has something to fit. Measures that
    compare representations override `prepare` and `compare` instead, so that each representation is prepared once, and
    `prepare_trials` where they make more of repetitions than their mean.
    `to_units` and `pairwise` may be overridden with faster ways to the same numbers.

    Attributes
    ----------
    scope
        ``"unit"``: one number per unit of Y. ``"population"``: one number for all of Y.
    symmetric
        Whether X and Y can change places.
    needs_fit
        Whether `fit` must come before `score`.
    invariances
        Changes of X (and of Y, where the measure is symmetric) that change no value: ``"offset"``, a constant added to
        every column; ``"scale"``, one positive factor; ``"column_scale"``, a positive factor per column;
        ``"permutation"``, columns in another order; ``"rotation"``, an orthogonal map of the columns.
    fewest_stimuli
        With fewer the value is undefined.
    local
        Whether neighbourhoods of stimuli are compared, rather than all pairs.
    correctable
        Whether the value is a correlation (or a cosine), which the noise correction of `lpact.ceilings` can divide by
        reliabilities. Fitted measures are corrected only if they have a ``predict``.
    from_readout
        Whether `cross_validate` is the nested ridge readout, which chooses among lags of Y and which an analysis may
        have fitted already.
    zero_at_chance
        Whether independent representations have a value of 0 on average.
    behavioural
        Whether it compares answers of observers, with the same columns, rather than representations.
    needs_trials
        Whether it needs single trials of at least one side.
    """

    scope: ClassVar[Literal["unit", "population"]]
    symmetric: ClassVar[bool]
    needs_fit: ClassVar[bool] = False
    invariances: ClassVar[frozenset[Invariance]] = frozenset()
    fewest_stimuli: ClassVar[int] = 3
    local: ClassVar[bool] = False
    correctable: ClassVar[bool] = True
    from_readout: ClassVar[bool] = False
    zero_at_chance: ClassVar[bool] = True
    behavioural: ClassVar[bool] = False
    needs_trials: ClassVar[bool] = False

    def __init__(self, options: Any = None, **values: Any) -> None:
        if options is None:
            where = f"measure '{self.name}': options"
            options = validate_model(self.Options, values, where=where, what=PLUGIN_OPTIONS)
        super().__init__(options)

    def fit(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> Self:
        """Fit on training stimuli, X [n, p] and Y [n, t]; most measures have nothing to fit. Returns itself."""
        matrices(X, Y)
        return self

    def score(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> Score:
        """Score held-out stimuli, X [n, p] and Y [n, t].

        A column of X with a missing value leaves nothing defined; a column of Y with one leaves its own value
        undefined, or that of the whole population.
        """
        x, y = matrices(X, Y)
        if len(x) < self.fewest_stimuli:
            return self.undefined(y.shape[1], TOO_FEW)
        if not np.isfinite(x).all():
            return self.undefined(y.shape[1], SOURCE_MISSING)
        missing = ~np.isfinite(y).all(axis=0)
        if self.scope == "population" and missing.any():
            return self.undefined(1, TARGET_MISSING)
        # A unit with missing values is made constant, which leaves its value undefined.
        value = np.asarray(self.values(x, np.where(missing, 0.0, y)))
        return self.explained(value, x, y)

    def values(self, X: FloatArray, Y: FloatArray) -> FloatArray | float:
        """Values [t], or one number for a population, for finite X [n, p] and Y [n, t]; NaN where undefined."""
        return self.compare(self.prepare(X), self.prepare(Y))

    def prepare(self, X: FloatArray) -> Any:
        """What `compare` needs of one representation [n, p], to be reused for many comparisons: an RDM, a kernel."""
        return X

    def prepare_trials(self, trials: FloatArray) -> Any:
        """What `compare` needs of repetitions [n, r, p]; by default `prepare` of their mean.

        A missing trial is NaN, and the mean is that of the others; every stimulus needs one of every unit.
        """
        return self.prepare(mean_of_finite(trials, 1))

    def compare_all(self, prepared: Sequence[Any]) -> FloatArray:
        """Values of all pairs of k prepared representations of the same stimuli, one number each: [k, k]."""
        return np.array([[self.compare(a, b) for b in prepared] for a in prepared])

    def mean_of(self, prepared: Sequence[Any]) -> Any:
        """The mean of prepared representations of several subjects, as `compare` takes it; None if there is none."""
        del prepared
        return None

    def compare(self, source: Any, target: Any) -> FloatArray | float:
        """Values of two prepared representations of the same stimuli."""
        if type(self).values is not Measure.values:  # prepare leaves representations as they are
            return self.values(source, target)
        raise NotImplementedError(f"measure '{self.name}' overrides neither values nor compare")

    def to_units(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Value of X [n, p] with every unit of Y [n, t], one unit at a time: [t].

        For measures of scope ``"population"`` the columns of X are standardised first: features have no common unit.
        """
        if self.scope == "unit":
            return np.asarray(self.values(X, Y))
        z, varies = standard_columns(X)
        if not varies.any():
            return np.full(Y.shape[1], np.nan)
        source = self.prepare(z[:, varies])
        return np.array([self.compare(source, self.prepare(unit[:, None])) for unit in Y.T])

    def pairwise(self, Y: FloatArray, split: Split | None = None, lagged: FloatArray | None = None) -> FloatArray:
        """Value of every unit (row) with every unit (column) of Y [n, N]: [N, N].

        A fitted measure needs a ``split``. ``lagged`` [n_lags, n, N] is the target at candidate lags, which
        `from_readout` measures choose from.
        """
        columns = [Y[:, [i]] for i in range(Y.shape[1])]
        if not self.needs_fit:
            return np.stack([self.to_units(column, Y) for column in columns])
        if split is None:
            what, expected = f"the measure '{self.name}' must be fitted", "a split of lpact.splits"
            raise InputError(what, where="Measure.pairwise", got="no split", expected=expected)
        target = lagged if self.from_readout and lagged is not None else Y
        return np.stack([self.cross_validate(column, target, split).value for column in columns])

    def cross_validate(self, X: npt.ArrayLike, Y: npt.ArrayLike, split: Split) -> Score:
        """Fit on the training rows of every fold and score its test rows; the mean over folds, weighted by test rows.

        Folds without a value are left out of the mean; they are NaN in ``by_fold``. A fold without training rows is an
        error, as in `Split.check`.
        """
        x, y = matrices(X, Y)
        check_rows(x, split)
        return mean_of_folds([copy(self).fit(x[a], y[a]).score(x[b], y[b]) for a, b in split], split)

    def undefined(self, n_units: int, reason: str) -> Score:
        """A score without any value."""
        shape = (n_units,) if self.scope == "unit" else ()
        return Score(np.full(shape, np.nan), np.full(shape, reason))

    def explained(self, value: FloatArray, x: FloatArray, y: FloatArray) -> Score:
        """Values with the reason for each NaN, found in X and Y [n, t]."""
        if not np.isnan(value).any():
            return Score(value, np.full(value.shape, "", dtype="<U1"))
        missing, constant = ~np.isfinite(y).all(axis=0), y.max(axis=0) == y.min(axis=0)
        if self.scope == "population":
            missing, constant = np.asarray(missing.any()), np.asarray(constant.all())
        source_constant = (x.max(axis=0) == x.min(axis=0)).all()
        reason = np.select(
            [~np.isnan(value), missing, constant, np.broadcast_to(source_constant, value.shape)],
            ["", TARGET_MISSING, TARGET_CONSTANT, SOURCE_CONSTANT],
            UNDEFINED,
        )
        return Score(value, reason)


def mean_of_folds(scores: Sequence[Score], split: Split) -> Score:
    """Mean of the scores of all folds, weighted by test rows; folds without a value are left out, and are NaN."""
    by_fold = np.stack([score.value for score in scores])
    weight = np.array([len(test) for _, test in split], dtype=np.float64)
    weight = np.where(np.isnan(by_fold), 0.0, weight.reshape(-1, *[1] * (by_fold.ndim - 1)))
    total = np.where(np.isnan(by_fold), 0.0, by_fold * weight).sum(axis=0)
    value = np.full(total.shape, np.nan)
    np.divide(total, weight.sum(axis=0), out=value, where=weight.sum(axis=0) > 0)
    reason = np.where(np.isnan(value), scores[0].reason, "")
    return Score(value, reason, by_fold, "mean of folds")


def matrices(X: npt.ArrayLike, Y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """X [n, p] and Y [n, t] in double, of the same stimuli; a vector is one column."""
    made = []
    for name, given in (("X", X), ("Y", Y)):
        matrix = np.asarray(given, dtype=np.float64)
        matrix = matrix[:, None] if matrix.ndim == 1 else matrix
        if matrix.ndim != 2 or 0 in matrix.shape:
            what, got = f"{name} is not a matrix of stimuli × columns", f"shape {matrix.shape}"
            expected = "at least one row and one column"
            raise InputError(what, where="measure", got=got, expected=expected)
        made.append(matrix)
    x, y = made
    if len(x) != len(y):
        what, got = "X and Y have different numbers of stimuli", f"{len(x)} and {len(y)} rows"
        expected = "one row per stimulus in both, in the same order"
        raise InputError(what, where="measure", got=got, expected=expected)
    return x, y


def check_rows(x: FloatArray, split: Split) -> None:
    """Raise `InputError` where a split is of another type or number of rows; check the split itself."""
    where = "Measure.cross_validate"
    if not isinstance(split, Split):
        what, got, expected = (
            "the split is not a Split",
            type(split).__name__,
            "a Split of lpact.splits",
        )
        remedy = "use lpact.splits: contiguous(n, k) is KFold(k), grouped(groups) is LeaveOneGroupOut()"
        raise InputError(what, where=where, got=got, expected=expected, remedy=remedy)
    if split.n_rows != len(x):
        got = f"{split.n_rows} rows in the split, {len(x)} in X"
        raise InputError("the split is for another number of stimuli", where=where, got=got)
    split.check()


MEASURES: Registry[Measure] = Registry("measure", "lpact.measures.base:Measure", package="lpact.measures")
