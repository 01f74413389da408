"""Ridge regression whose penalty is chosen by leave-one-out, for very many targets.

Let X and y be centred by their training means, X = U diag(σ) Vᵀ and s_k(a) = a / (σ_k² + a). Leaving row i out, and
centring and fitting without it, the residual of row i is

    e_i(a) = [y⊥ + U diag(s) Uᵀy]_i / d_i(a),    d_i(a) = h_i + Σ_k U_ik² s_k,    h_i = 1 − 1/n − Σ_k U_ik²,

with y⊥ = y − UUᵀy, which X cannot explain at any penalty. Where X explains everything (n − 1 axes), h and y⊥ are set
to exactly zero: numerator and denominator are then both proportional to a, and tiny penalties lose no digits.

With e = E(a) y, targets Y that share a penalty need only

    Σ e² = ‖E(a) Y‖² = ⟨E(a)ᵀE(a), YYᵀ⟩,

n² numbers for every set of targets in place of n × t residuals for every penalty. No weights are made: predictions of m
rows are an [m, n] matrix times Y, one for every penalty that was chosen.

References: Rifkin & Lippert (2007), MIT-CSAIL-TR-2007-025; scikit-learn's `RidgeCV`, whose numbers these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lpact.math.columns import as_matrix
from lpact.math.ridge._arrays import check_finite
from lpact.math.ridge._axes import leading_axes
from lpact.math.ridge.compute import Array, Backend, Compute, TooLittleMemory
from lpact.math.ridge.grid import first_best
from lpact.math.types import FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)
_TILE = 4096
"""Targets at a time: a constant, so that no number depends on the memory."""
_KERNELS = 8
"""Populations whose YYᵀ are multiplied with all EᵀE at a time."""
_LARGEST_MAPS = 2**30
"""Bytes of all EᵀE above which residuals are computed one target at a time instead."""
_LARGEST_NORM = 1e5
"""‖EᵀE‖ above which products would cost the residuals too many digits: rounding stays far below ties of scores."""


class _Design:
    """Training rows X [n, p], decomposed once: axes U [n, k] and eigenvalues σ² [k], both in the best precision.

    Axes with eigenvalues below rounding are left out, as if their penalty were infinite: with a singular X and tiny
    penalties this is the pseudo-inverse.
    """

    def __init__(self, be: Backend, x: FloatArray) -> None:
        n, p = x.shape
        self.be, self.n = be, n
        wide = be.wide(x)
        self.mean = be.wide(be.sums(wide, 0) / n)
        centred = wide - self.mean
        if n <= p:
            self.values, axes = leading_axes(be, centred @ centred.T, n, 0.0, p, n - 1)
            self._to_axes: tuple[Array, ...] = (centred.T, axes)
        else:
            axes, singular, right = be.svd(centred)
            rank = int((singular > n * _EPS * singular[0]).sum())
            self.values, axes = singular[:rank] ** 2, axes[:, :rank]
            self._to_axes = (right[:, :rank] * be.wide(singular[:rank]),)
        # Rounding turns axes of small eigenvalues towards the constant, which h would show at tiny penalties.
        self.axes = axes - be.wide(be.sums(axes, 0) / n)
        self._squares = be.host(self.axes) ** 2
        beyond = 1.0 - 1.0 / n - self._squares.sum(axis=1)
        self._beyond = np.where(beyond > 4 * n * _EPS, beyond, 0.0)  # h [n]
        self.explains_all = not self._beyond.any()

    def shrinkage(self, alphas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shrinkage s [A, k] and d [A, n] of every penalty."""
        s = alphas[:, None] / (self.values + alphas[:, None])
        return s, self._beyond + s @ self._squares.T

    def unexplained(self, rows: Array, coordinates: Array) -> Array | float:
        """y⊥ of targets [q, n] with their coordinates in the axes [q, k]; zero where h is."""
        if self.explains_all:
            return 0.0
        be = self.be
        left = rows - coordinates @ be.narrow(self.axes).T
        return left * be.narrow((self._beyond > 0.0).astype(np.float64))

    def residual_map(self, alpha: float) -> Array:
        """Eᵀ [n, n]: targets [q, n] times it are their leave-one-out residuals."""
        be = self.be
        (s,), (d,) = self.shrinkage(np.array([alpha]))
        total = (self.axes * be.wide(s)) @ self.axes.T
        if not self.explains_all:
            left = np.eye(self.n) - 1.0 / self.n - be.host(self.axes @ self.axes.T)
            total = total + be.wide(left * (self._beyond > 0.0)).T
        return total / be.wide(d)

    def prediction_map(self, x: FloatArray) -> Callable[[float], Array]:
        """For rows x [m, p] and a penalty, [n, m]: targets [q, n] times it are their predictions."""
        scores = self.be.wide(x) - self.mean
        for matrix in self._to_axes:
            scores = scores @ matrix
        return lambda alpha: self.axes @ (scores / self.be.wide(self.values + alpha)).T


class Targets:
    """Responses [n, t] on a device, of which many fits take rows; in memory they are not copied.

    What depends on the rows alone is kept: means, and products YYᵀ of populations where memory allows.

    Parameters
    ----------
    responses
        Finite; training and test rows.
    populations
        A label for every column: columns with the same label share a penalty. Every column has its own if there are
        none.
    compute
        Device, precision and memory of all fits.
    """

    def __init__(
        self,
        responses: npt.ArrayLike,
        populations: npt.ArrayLike | None = None,
        *,
        compute: Compute | None = None,
    ) -> None:
        y = as_matrix(responses, "responses")
        check_finite(Backend("float64"), y, "responses")
        self.compute = compute or Compute()
        self.be = self.compute.open()
        self._by_column, self._kept = self.be.wide(y.T), np.arange(len(y))
        self._parts: dict[bytes, Targets] = {}
        self._products: dict[int, tuple[Array, FloatArray]] = {}
        self._n_bytes = [0]  # of all products, also those of parts
        self.labels = None if populations is None else np.asarray(populations)
        if self.labels is not None and self.labels.shape != (self.n_columns,):
            raise ValueError(f"populations must label each of {self.n_columns} columns, got shape {self.labels.shape}")

    @property
    def n_rows(self) -> int:
        """Rows n."""
        return len(self._kept)

    @property
    def n_columns(self) -> int:
        """Targets t."""
        return int(self._by_column.shape[0])

    def at(self, rows: IntArray) -> Targets:
        """Some of the rows."""
        key = rows.tobytes()
        if key not in self._parts:
            own = self._parts[key] = copy(self)
            own._kept = self._kept[rows]
            own._parts, own._products = {}, {}
            own.__dict__.pop("means", None)
        return self._parts[key]

    @cached_property
    def means(self) -> FloatArray:
        """Mean of every target; of a constant exactly its value."""
        made = np.empty(self.n_columns)
        for columns in _tiles(np.arange(self.n_columns)):
            own = self._taken(columns)
            low, high = self.be.minmax(own, 1)
            made[columns] = np.where(low == high, low, self.be.sums(own, 1) / self.n_rows)
        return made

    def centred(self, columns: IntArray) -> tuple[Array, FloatArray]:
        """Targets as rows [q, n] less their means, in the best precision, and the means; constants are exactly zero."""
        mean = self.means[columns]
        return self._taken(columns) - self.be.wide(mean[:, None]), mean

    def products(self, sets: list[IntArray], room: int) -> Iterator[tuple[slice, Array, FloatArray]]:
        """Some of the sets, the YYᵀ of each as a row [k, n²], and Σ (y − ȳ)² [k].

        They are kept if those of all parts are at most ``room`` bytes.
        """
        be, n = self.be, self.n_rows
        for first in range(0, len(sets), _KERNELS):
            part = slice(first, first + _KERNELS)
            if first not in self._products:
                kernels = [_kernel(self, own) for own in sets[part]]
                total = np.array([be.host(kernel.diagonal()).sum() for kernel in kernels])
                made = be.concatenate([kernel.reshape(1, -1) for kernel in kernels], 0), total
                n_bytes = 8 * len(kernels) * n * n
                if self._n_bytes[0] + n_bytes > room:
                    yield part, *made
                    continue
                self._n_bytes[0] += n_bytes
                self._products[first] = made
            yield part, *self._products[first]

    def _taken(self, columns: IntArray) -> Array:
        return self.be.take(self.be.take(self._by_column, columns, 0), self._kept, 1)


@dataclass(frozen=True, eq=False)
class LeaveOneOutRidge:
    """Ridge regression of all targets at their chosen penalties; made by `leave_one_out_ridge`.

    It keeps the training responses, not a copy, and no weights.

    Attributes
    ----------
    alphas
        The penalty of every target [t].
    """

    alphas: FloatArray
    _design: _Design
    _targets: Targets

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """Predictions [m, t] of rows X [m, p]."""
        x = self._rows(X)
        predicted = np.empty((len(x), len(self.alphas)))
        for columns, own in self._predictions(x):
            predicted[:, columns] = own
        return predicted

    def test_r2(self, X: npt.ArrayLike, Y: npt.ArrayLike | Targets, baseline: FloatArray | None = None) -> FloatArray:
        """R² [t] of test rows, X [m, p] and Y [m, t], without all predictions at once; NaN where Y is constant.

        The ``baseline`` [t] is what an R² of 0 predicts: by default the mean of the test rows, as in scikit-learn's
        ``r2_score(multioutput="raw_values")``.
        """
        x, be = self._rows(X), self._design.be
        y = Y if isinstance(Y, Targets) else Targets(Y, compute=self._targets.compute)
        if (y.n_rows, y.n_columns) != (len(x), len(self.alphas)):
            raise ValueError(f"test responses must be [{len(x)}, {len(self.alphas)}], got {(y.n_rows, y.n_columns)}")
        scores = np.empty(len(self.alphas))
        for columns, _, mean, product in self._mapped(self._design.prediction_map(x)):
            own, middle = y.centred(columns)
            constant = be.host(be.row_dots(own, own)) == 0.0
            left = own - be.wide(product) - be.wide((mean - middle)[:, None])
            if baseline is not None:
                own = own - be.wide((baseline[columns] - middle)[:, None])
            found = _r2(be.row_dots(left, left), be.row_dots(own, own), be)
            scores[columns] = np.where(constant, np.nan, found)
        return scores

    def loo_r2(self) -> FloatArray:
        """Leave-one-out R² [t] at the chosen penalty, 1 − Σ e² / Σ (y − ȳ)²; NaN where a target is constant."""
        be, scores = self._design.be, np.empty(len(self.alphas))
        for columns, rows, _, product in self._mapped(self._design.residual_map):
            scores[columns] = _r2(be.row_dots(product, product), be.row_dots(rows, rows), be)
        return scores

    def _rows(self, X: npt.ArrayLike) -> FloatArray:
        x, p = as_matrix(X, "features"), len(self._design.mean)
        if x.shape[1] != p:
            raise ValueError(f"features must have {p} columns as in training, got {x.shape[1]}")
        return x

    def _predictions(self, x: FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Targets, and their predictions [m, q]."""
        for columns, _, mean, product in self._mapped(self._design.prediction_map(x)):
            yield columns, self._design.be.host(product).T + mean

    def _mapped(self, map_of: Callable[[float], Array]) -> Iterator[tuple[IntArray, Array, FloatArray, Array]]:
        """Targets, their centred rows [q, n], means [q], and the rows times the map of their penalty."""
        be = self._design.be
        for alpha in np.unique(self.alphas):
            to = be.narrow(map_of(float(alpha)))
            for columns in _tiles(np.flatnonzero(self.alphas == alpha)):
                rows, mean = self._targets.centred(columns)
                rows = be.narrow(rows)
                yield columns, rows, mean, rows @ to


def leave_one_out_ridge(
    X: npt.ArrayLike,
    Y: npt.ArrayLike | Targets,
    alphas: Sequence[float] | FloatArray,
    populations: npt.ArrayLike | None = None,
    *,
    compute: Compute | None = None,
) -> LeaveOneOutRidge:
    """Fit a ridge with intercept to every column of Y [n, t], at the penalty with the least leave-one-out error.

    The numbers are those of scikit-learn's ``RidgeCV(alphas)`` for every population, or with
    ``alpha_per_target=True``; it is the first of penalties whose leave-one-out R² is the same to
    `Compute.tie_tolerance` that is chosen. X [n, p] is centred, not scaled.

    Parameters
    ----------
    X, Y
        Training rows. Y may be `Targets`, with populations and settings of their own.
    alphas
        Penalties a > 0 of ‖Y − Xw‖² + a ‖w‖².
    populations, compute
        As in `Targets`. Penalties of populations are chosen in double precision wherever the device has it. Raises
        `TooLittleMemory` where the arrays do not fit; no number depends on the limit.
    """
    x = as_matrix(X, "features")
    y = Y if isinstance(Y, Targets) else Targets(Y, populations, compute=compute)
    compute, be, (n, t) = y.compute, y.be, (y.n_rows, y.n_columns)
    penalties = np.asarray(alphas, dtype=np.float64)
    if len(x) != n or n < 2:
        raise ValueError(f"features and responses must have the same rows, at least 2, got {len(x)} and {n}")
    if penalties.ndim != 1 or not len(penalties) or not (penalties > 0.0).all():
        raise ValueError(f"alphas must be a list of positive numbers, got {alphas}")
    host = Backend("float64")
    check_finite(host, x, "features")
    by_products = y.labels is not None and t > n and 8 * len(penalties) * n * n <= _LARGEST_MAPS
    n_squares = 4 + (len(penalties) + _KERNELS if by_products else 0)
    fixed, per_target = 8 * (3 * x.size + n_squares * n * n), 8 * 6 * n
    room = compute.memory_bytes - fixed - per_target * min(t, _TILE)
    if room < 0:
        raise TooLittleMemory(compute.memory_bytes, fixed, per_target * min(t, _TILE))
    design = _Design(be, x)
    if y.labels is None:
        errors, total = _squared_errors(design, y, np.arange(t), penalties)
        chosen = first_best(_r2(errors, total, host), compute.tie_tolerance)
        return LeaveOneOutRidge(penalties[chosen], design, y)
    names, member = np.unique(y.labels, return_inverse=True)
    sets = [np.flatnonzero(member == i) for i in range(len(names))]
    if by_products:
        errors, total = _errors_by_products(design, y, sets, penalties, room)
    else:
        errors, total = _errors_by_targets(design, y, sets, penalties)
    chosen = first_best(_r2(errors, total, host), compute.tie_tolerance)
    return LeaveOneOutRidge(penalties[chosen][member], design, y)


def _squared_errors(
    design: _Design, y: Targets, targets: IntArray, alphas: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Σ e² of every penalty and target [A, q], and Σ (y − ȳ)² [q]."""
    be = design.be
    s, d = design.shrinkage(alphas)
    axes = be.narrow(design.axes)
    weights = [(be.narrow(own), be.narrow(1.0 / by_row)) for own, by_row in zip(s, d, strict=True)]
    errors, total = np.empty((len(alphas), len(targets))), np.empty(len(targets))
    for part in _tiles(np.arange(len(targets))):
        rows = be.narrow(y.centred(targets[part])[0])
        total[part] = be.host(be.row_dots(rows, rows))
        coordinates = rows @ axes
        left = design.unexplained(rows, coordinates)
        for a, (own, by_row) in enumerate(weights):
            residuals = (coordinates * own) @ axes.T
            residuals += left
            residuals *= by_row
            errors[a, part] = be.host(be.row_dots(residuals, residuals))
    return errors, total


def _errors_by_targets(
    design: _Design, y: Targets, sets: list[IntArray], alphas: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Σ e² of every penalty and set of targets [A, G], and Σ (y − ȳ)² [G], from residuals."""
    found = [_squared_errors(design, y, own, alphas) for own in sets]
    return np.stack([e.sum(axis=1) for e, _ in found], 1), np.array([t.sum() for _, t in found])


def _errors_by_products(
    design: _Design, y: Targets, sets: list[IntArray], alphas: FloatArray, room: int
) -> tuple[FloatArray, FloatArray]:
    """The same from YYᵀ and EᵀE; from residuals at penalties where ‖EᵀE‖ is too large for that."""
    be, n = design.be, design.n
    maps, small = be.wide(np.empty((len(alphas), n * n))), np.empty(len(alphas), dtype=np.bool_)
    for a, alpha in enumerate(alphas):
        to = design.residual_map(float(alpha))
        maps[a] = (to @ to.T).reshape(-1)
        small[a] = be.host(be.row_dots(maps[a], maps[a])) <= _LARGEST_NORM**2
    errors, total = np.empty((len(alphas), len(sets))), np.empty(len(sets))
    for part, kernels, squares in y.products(sets, room):
        total[part] = squares
        errors[:, part] = be.host(maps @ kernels.T)
    if not small.all():
        errors[~small] = _errors_by_targets(design, y, sets, alphas[~small])[0]
    return errors, total


def _kernel(y: Targets, targets: IntArray) -> Array:
    """YYᵀ [n, n] of centred targets."""
    kernel: Array = 0.0
    for columns in _tiles(targets):
        rows, _ = y.centred(columns)
        kernel = kernel + rows.T @ rows
    return kernel


def _tiles(targets: IntArray) -> Iterator[IntArray]:
    for first in range(0, len(targets), _TILE):
        yield targets[first : first + _TILE]


def _r2(errors: Array, total: Array, be: Backend) -> FloatArray:
    """1 − errors / total, NaN where the total is zero."""
    left, whole = be.host(errors), be.host(total)
    share: FloatArray = np.divide(left, whole, out=np.full(left.shape, np.nan), where=whole > 0.0)
    return 1.0 - share
