"""Held-out R² of ridge regression with leave-one-out penalties, as scikit-learn's `RidgeCV` computes it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from lpact.math.ridge import Compute, LeaveOneOutRidge, Targets, leave_one_out_ridge
from lpact.math.types import FloatArray, IntArray
from lpact.measures.base import TARGET_CONSTANT, Score
from lpact.measures.fitted import FittedUnits
from lpact.registry import PluginOptions
from lpact.splits import Split


class LinearR2Options(PluginOptions):
    """Options of `linear_r2`."""

    alphas: tuple[Annotated[float, Field(gt=0.0)], ...] = Field(tuple(10.0**i for i in range(-9, 10)), min_length=1)
    """Penalties to choose from."""
    penalty: Literal["population", "unit"] = "population"
    """Which units share a penalty: those of a population, or every unit has its own."""
    baseline: Literal["test", "training"] = "test"
    """Mean that an R² of 0 predicts: of the scored stimuli, as in scikit-learn, or of the training stimuli."""


class LinearR2(FittedUnits):
    """R² of held-out responses predicted by ridge regression, w = argmin ‖Y − Xw‖² + α‖w‖², at leave-one-out penalties.

    `fit` chooses, on the training stimuli, the α with the least squared leave-one-out error over all units of a
    population. These are the numbers of scikit-learn's ``RidgeCV(alphas).fit(X, Y)`` for every population and, of
    `score`, ``r2_score(multioutput="raw_values")``: R² = 1 − Σ (y − ŷ)² / Σ (y − ȳ)², with ȳ the mean of the scored
    stimuli. With ``baseline = "training"``, ȳ is the mean of the training stimuli, as in `LinearPredictivity`. Columns
    are centred, not standardised. R² is not clipped; where nothing is shared it is below 0 on average.

    Leave-one-out takes stimuli as independent: penalties are too small where neighbours in time resemble each other,
    for which `LinearPredictivity` has blocks. One fit takes any number of populations (regions, subjects) and shares
    the decomposition of X among them.

    Parameters
    ----------
    options
        Options of the plug-in, or those as keywords.
    populations
        A label for every unit of Y; units with the same label share a penalty. By default Y is one population.
    compute
        Device, precision and memory.
    """

    name = "linear_r2"
    summary = "held-out ridge R² (leave-one-out penalty)"
    correctable = False
    zero_at_chance: ClassVar[bool] = False
    invariances = frozenset({"offset", "permutation", "rotation"})
    Options: ClassVar[type[PluginOptions]] = LinearR2Options
    options: LinearR2Options

    def __init__(
        self,
        options: Any = None,
        *,
        populations: npt.ArrayLike | None = None,
        compute: Compute | None = None,
        **values: Any,
    ) -> None:
        super().__init__(options, **values)
        self.populations, self.compute = populations, compute or Compute()

    def fit(self, X: npt.ArrayLike, Y: npt.ArrayLike, populations: npt.ArrayLike | None = None) -> Self:
        """Choose penalties on training stimuli, X [n, p] and Y [n, t]; ``populations`` replace those of the measure."""
        self._labels = self.populations if populations is None else populations
        return super().fit(X, Y)

    def cross_validate(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        split: Split,
        populations: npt.ArrayLike | None = None,
    ) -> Score:
        """Fit on the training rows of every fold and score its test rows; the mean over folds, weighted by test rows.

        ``populations`` replace those of the measure.
        """
        own = copy(self)
        own.populations = self.populations if populations is None else populations
        return super(LinearR2, own).cross_validate(X, Y, split)

    def hold(self, Y: npt.ArrayLike) -> Targets:
        """Finite responses [n, t] on the device, for `score_held`."""
        labels = self._shared(self.populations, np.shape(Y)[1])
        return Targets(Y, labels, compute=self.compute)

    def score_held(self, X: FloatArray, targets: Targets, train: IntArray, test: IntArray) -> Score:
        """Fit on some rows of finite X [n, p] and of targets, and score others, as `fit` and `score` do.

        Many sources can share targets, which are then on the device once.
        """
        ridge = leave_one_out_ridge(X[train], targets.at(train), self.options.alphas)
        around = None
        if self.options.baseline == "training":
            around = targets.at(train).centred(np.arange(targets.n_columns))[1]
        value = ridge.test_r2(X[test], targets.at(test), around)
        return Score(value, np.where(np.isnan(value), TARGET_CONSTANT, ""))

    def training_score(self) -> Score:
        """Leave-one-out R² of the training stimuli at the chosen penalties, around their mean.

        It takes one more product, and no fold: enough to choose a layer. The penalty was chosen on the same errors.
        """
        return self._of_units(LeaveOneOutRidge.loo_r2)

    @property
    def alphas(self) -> FloatArray:
        """The penalty of every unit [t]; NaN where training leaves it undefined."""
        return self._of_units(lambda ridge: ridge.alphas).value

    def pairwise(self, Y: FloatArray, split: Split | None = None, lagged: FloatArray | None = None) -> FloatArray:
        """Value of every unit (row) with every unit (column), each pair with its own penalty."""
        own = copy(self)
        own.options = self.options.model_copy(update={"penalty": "unit"})
        return super(LinearR2, own).pairwise(Y, split, lagged)

    def _of_units(self, values_of: Callable[[LeaveOneOutRidge], FloatArray]) -> Score:
        reason = self._trained()
        value = values_of(self._ridge) if (reason == "").any() else np.nan
        return Score(np.where(reason == "", value, np.nan), reason)

    def _shared(self, labels: npt.ArrayLike | None, n_units: int) -> npt.ArrayLike | None:
        """Labels of units that share a penalty."""
        if self.options.penalty == "unit":
            return None
        return np.zeros(n_units) if labels is None else labels

    def _learn(self, x: FloatArray, y: FloatArray) -> str:
        labels = self._shared(self._labels, y.shape[1])
        self._ridge = leave_one_out_ridge(x, y, self.options.alphas, labels, compute=self.compute)
        return ""

    def _predicted(self, x: FloatArray) -> FloatArray:
        return self._ridge.predict(x)

    def _held_out(self, x: FloatArray, y: FloatArray) -> FloatArray:
        around = np.zeros(y.shape[1]) if self.options.baseline == "training" else None
        return self._ridge.test_r2(x, y, around)
