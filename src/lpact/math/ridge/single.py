"""Readouts from one feature at a time, for many features at once and without a prediction.

With one column x, standardised on n training rows, ridge has one weight for every response y. With training means m, μ
and sums over the training rows,

    prediction − μ = (x − m) w g(a),    w = Σ(x − m)(y − μ) / Σ(x − m)²,    g(a) = n / (n + a).

On held-out rows h let P = Σ(x − x̄)², D = Σ(x − x̄)(y − ȳ), T = Σ(y − ȳ)² be sums around the means of these rows, and
δ(a) = ȳ − μ − (x̄ − m) w g(a). Then, as for any readout,

    R² = (2 g w D − g² w² P − n_h δ²) / T,    Pearson = w D / √(w² P T),

and the pooled held-out scores follow from the same sums. So all that is needed are means, P, T and D of runs of rows.
They are made once for pieces of rows, one matrix product each, and two runs A, B are joined by

    Σ_AB (x − x̄)(y − ȳ) = Σ_A + Σ_B + (n_A n_B / n_AB) (x̄_A − x̄_B)(ȳ_A − ȳ_B),

where nothing cancels. Training sets are at most three runs of pieces.

References: Hoerl & Kennard (1970), Technometrics 12:55–67; Chan, Golub & LeVeque (1983), Am. Stat. 37:242–247 (joining
sums of squares).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, pairwise

import numpy as np

from lpact.math.ridge.axes import varying_columns
from lpact.math.ridge.columns import tame
from lpact.math.ridge.compute import Array, Compute, NumpyBackend
from lpact.math.ridge.grid import RidgeGrid, Selection
from lpact.math.ridge.nested import nested_ridge
from lpact.math.ridge.results import METRICS
from lpact.math.ridge.rows import Held, cut, nested_sets
from lpact.math.ridge.select import mean_scores, select
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray, IntArray

_CARRIED = 1e10
"""n·mean² over the centred sum of squares above which a column has lost digits to its offset."""

_ROUNDING = 1e-12
"""Correlations on training rows that are smaller are zero: their sign is that of rounding."""

_CHUNK_BYTES = 64 * 2**20
"""Columns at a time: what stays near the processor."""


def single_column_readouts(
    columns: Array,
    responses: Array,
    folds: BlockedFolds,
    grid: RidgeGrid,
    *,
    metric: str = "pearson",
    compute: Compute | None = None,
) -> FloatArray:
    """Held-out score of every response from every column alone, each with its own nested choice of lag and penalty.

    Row i is ``nested_ridge(columns[:, [i]], responses, folds, grid).scores(metric)``, to rounding. Numbers of
    components are immaterial with one column. Everything runs in double on the host. A column that does not correlate
    with a response on training rows (whole numbers can do that) predicts the mean, by definition and not by rounding.

    What sums cannot settle is left to `nested_ridge`, column by column: Spearman correlations, and columns whose
    offset over some rows is 1e5 times their spread.

    Parameters
    ----------
    columns
        [n, N], finite.
    responses
        [n_lags, n, t], one layer per candidate lag. Must be finite.
    folds
        Outer blocks; every other block validates. At least three.
    grid
        Penalties and how to choose.
    metric
        Held-out score: ``"pearson"``, ``"r2"`` or ``"spearman"``, around the training mean, blocks pooled.
    compute
        Memory to stay under. Device and precision are those of what is left to `nested_ridge`.

    Returns
    -------
    scores
        [N, t]; NaN where undefined.
    """
    compute = compute or Compute()
    be = NumpyBackend("float64")
    x, y = be.wide(columns), be.wide(responses)
    _check(x, y, folds, metric)
    scores = np.full((x.shape[1], y.shape[2]), np.nan)
    if scores.size == 0:
        return scores
    left = np.zeros(scores.shape[0], dtype=np.bool_)
    if "spearman" in (metric, grid.metric):
        left[:] = True
    else:
        plan = _plan(folds)
        chunks = _chunks(plan, x, y, grid, compute.memory_bytes)
        left[:] = not chunks
        for targets, parts in chunks:
            observed = _targets(be, y[:, :, targets], plan)
            for part in parts:
                chunk = _Chunk(plan, _columns(be, x[:, part], plan), observed)
                scores[part, targets] = chunk.scores(grid, metric, compute.tie_tolerance)
                left[part] |= chunk.odd
    for i in np.flatnonzero(left):
        readout = nested_ridge(x[:, [i]], y, folds, grid, metrics=(metric,), compute=compute)
        scores[i] = readout.scores(metric)
    return scores


def _check(x: FloatArray, y: FloatArray, folds: BlockedFolds, metric: str) -> None:
    if metric not in METRICS:
        raise ValueError(f"unknown metric '{metric}'; known: {', '.join(METRICS)}")
    if x.ndim != 2 or len(x) != folds.n_rows:
        raise ValueError(f"columns must be [{folds.n_rows}, N] as the folds say, got {x.shape}")
    if y.ndim != 3 or y.shape[1] != folds.n_rows:
        raise ValueError(
            f"responses must be [n_lags, {folds.n_rows}, t] as the folds say, got {y.shape}"
        )
    if folds.n_blocks < 3:
        raise ValueError("nested selection needs at least three blocks")


@dataclass(frozen=True)
class _Plan:
    """Which rows are added up.

    Attributes
    ----------
    pieces
        Contiguous pieces of which training sets and held-out rows are unions.
    training
        Runs of pieces, first and one past the last, of every training set.
    validation
        Of every pair of blocks: for which outer block it chooses, and the run of pieces it validates on.
    tests
        Run of every block.
    held_out
        All runs that are held out somewhere.
    """

    pieces: tuple[slice, ...]
    training: dict[Held, list[tuple[int, int]]]
    validation: dict[Held, list[tuple[int, tuple[int, int]]]]
    tests: list[tuple[int, int]]
    held_out: list[tuple[int, int]]


def _plan(folds: BlockedFolds) -> _Plan:
    sets = nested_sets(folds.n_blocks)
    coarse = cut(folds, sets)
    tests = [folds.rows(block) for block in range(folds.n_blocks)]
    validation = {
        held: [
            (outer, folds.validation_rows(inner, outer))
            for outer, inner in (sorted(held), sorted(held, reverse=True))
        ]
        for held in sets
        if len(held) == 2
    }
    validation = {
        held: [(outer, rows) for outer, rows in parts if rows.stop > rows.start]
        for held, parts in validation.items()
    }
    whole = [*coarse.slices, *tests, *(rows for parts in validation.values() for _, rows in parts)]
    edges = sorted({edge for rows in whole for edge in (rows.start, rows.stop)})

    def run(rows: slice) -> tuple[int, int]:
        return bisect_left(edges, rows.start), bisect_left(edges, rows.stop)

    training: dict[Held, list[tuple[int, int]]] = {}
    for held, members in coarse.members.items():
        runs: list[tuple[int, int]] = []
        for first, last in (run(coarse.slices[i]) for i in members):
            if runs and runs[-1][1] == first:
                first = runs.pop()[0]
            runs.append((first, last))
        training[held] = runs
    by_run = {
        held: [(outer, run(rows)) for outer, rows in parts] for held, parts in validation.items()
    }
    test_runs = [run(rows) for rows in tests]
    return _Plan(
        tuple(slice(start, stop) for start, stop in pairwise(edges)),
        training,
        by_run,
        test_runs,
        sorted({*test_runs, *(rows for parts in by_run.values() for _, rows in parts)}),
    )


def _chunks(
    plan: _Plan, x: FloatArray, y: FloatArray, grid: RidgeGrid, memory_bytes: int
) -> list[tuple[slice, list[slice]]]:
    """Targets at a time, and columns at a time for these; none where the memory is too little.

    Targets that choose together stay together.
    """
    n, n_columns = x.shape
    n_lags, _, n_targets = y.shape
    n_blocks, n_alphas = len(plan.tests), len(grid.alphas)
    runs = 3 * len(plan.pieces) + len(plan.held_out) + 12
    per_pair = 8 * (n_lags * (runs + n_alphas * (2 * n_blocks + 6)) + 10 * n_blocks)
    per_target = 8 * 4 * n * n_lags
    step = (memory_bytes // 2) // per_target
    step = min(n_targets, step, (memory_bytes // 2) // (per_pair + 32 * n))
    if step == 0 or (step < n_targets and not grid.selection.alone):
        return []
    per_column = per_pair * step + 32 * n
    width = min(memory_bytes // 2, max(_CHUNK_BYTES, per_column)) // per_column
    parts = [slice(i, min(i + width, n_columns)) for i in range(0, n_columns, width)]
    return [
        (slice(start, min(start + step, n_targets)), parts) for start in range(0, n_targets, step)
    ]


@dataclass(frozen=True)
class _Side:
    """Mean, centred sum of squares, smallest and largest value of columns over some rows, in tame units."""

    mean: FloatArray
    power: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def distinct(self) -> BoolArray:
        """Which columns vary, exactly."""
        differs: BoolArray = self.low != self.high
        return differs

    def joined(self, other: _Side, n: int, n_other: int) -> _Side:
        """Over the rows of both, of which there are n and n_other."""
        share = n_other / (n + n_other)
        apart = other.mean - self.mean
        return _Side(
            self.mean + share * apart,
            self.power + other.power + (n * share) * apart**2,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def shaped(self, *shape: int) -> _Side:
        """The same in another shape."""
        return _Side(
            self.mean.reshape(shape),
            self.power.reshape(shape),
            self.low.reshape(shape),
            self.high.reshape(shape),
        )


@dataclass(frozen=True)
class _Sums:
    """What is known of n rows: features [N, 1], responses [L, 1, t], and D [L, N, t]."""

    n: int
    x: _Side
    y: _Side
    cross: FloatArray

    def joined(self, other: _Sums) -> _Sums:
        """Over the rows of both."""
        both = self.n * other.n / (self.n + other.n)
        cross = (both * (other.x.mean - self.x.mean)) * (other.y.mean - self.y.mean)
        cross += self.cross
        cross += other.cross
        return _Sums(
            self.n + other.n,
            self.x.joined(other.x, self.n, other.n),
            self.y.joined(other.y, self.n, other.n),
            cross,
        )


@dataclass(frozen=True)
class _Pieces:
    """Tame columns, piece by piece: values less the piece's mean, and what is known of them.

    ``offset`` is the tame columns' offset in tame units.
    """

    centred: list[FloatArray]
    sides: list[_Side]
    offset: FloatArray


def _columns(be: NumpyBackend, values: FloatArray, plan: _Plan) -> _Pieces:
    """Features: centred [N, r] each, the rest [N, 1]."""
    found = _in_pieces(be, values, 1, plan)
    shape = (values.shape[1], 1)
    return _Pieces(
        [np.ascontiguousarray(part.T) for part in found.centred],
        [side.shaped(*shape) for side in found.sides],
        found.offset.reshape(shape),
    )


def _targets(be: NumpyBackend, values: FloatArray, plan: _Plan) -> _Pieces:
    """Responses: centred [L, r, t] each, the rest [L, 1, t]."""
    n_lags, n, n_targets = values.shape
    joined = values.transpose(1, 0, 2).reshape(n, n_lags * n_targets)
    found = _in_pieces(be, joined, n_lags, plan)
    shape = (n_lags, 1, n_targets)
    return _Pieces(
        [part.reshape(-1, n_lags, n_targets).transpose(1, 0, 2) for part in found.centred],
        [side.shaped(*shape) for side in found.sides],
        found.offset.reshape(shape),
    )


def _in_pieces(be: NumpyBackend, values: FloatArray, n_layers: int, plan: _Plan) -> _Pieces:
    """Columns [n, q], centred [r, q] each. A constant is centred to zero, exactly."""
    tamed = tame(be, values, n_layers)
    centred, sides = [], []
    for piece in plan.pieces:
        part = tamed.values[piece]
        low, high = be.minmax(part, 0)
        mean = np.where(low == high, low, be.sums(part, 0) / len(part))
        part = part - mean
        centred.append(part)
        sides.append(_Side(mean, np.einsum("rq,rq->q", part, part), low, high))
    return _Pieces(centred, sides, tamed.offset * tamed.factor)


class _Chunk:
    """Some columns against some targets: sums over every piece, joined to runs."""

    def __init__(self, plan: _Plan, columns: _Pieces, targets: _Pieces) -> None:
        self.plan = plan
        self.x_offset = columns.offset
        self.pieces = [
            _Sums(piece.stop - piece.start, x_side, y_side, x @ y)
            for piece, x, y, x_side, y_side in zip(
                plan.pieces,
                columns.centred,
                targets.centred,
                columns.sides,
                targets.sides,
                strict=True,
            )
        ]
        self.from_start = list(accumulate(self.pieces[:-1], _Sums.joined))
        self.to_end = list(accumulate(self.pieces[:0:-1], _Sums.joined))[::-1]
        self.between: tuple[int, int, _Sums] | None = None
        self.held_out = {run: self._run(*run) for run in plan.held_out}
        self.odd: BoolArray = np.zeros(len(self.x_offset), dtype=np.bool_)
        for sums in self.held_out.values():
            self._watch(sums)

    def _run(self, first: int, last: int) -> _Sums:
        """Pieces ``first`` to ``last`` − 1."""
        if first == 0:
            return self.from_start[last - 1]
        if last == len(self.pieces):
            return self.to_end[first - 1]
        known = self.between
        if known is not None and known[0] == first and known[1] <= last:
            sums, done = known[2], known[1]
        else:
            sums, done = self.pieces[first], first + 1
        for piece in self.pieces[done:last]:
            sums = sums.joined(piece)
        self.between = first, last, sums
        return sums

    def _watch(self, sums: _Sums) -> None:
        """Notice columns whose offset is too large for their spread."""
        far = sums.n * sums.x.mean**2 > _CARRIED * sums.x.power
        self.odd |= (far & sums.x.distinct)[:, 0]

    def _train(self, held: Held) -> tuple[_Sums, FloatArray]:
        """A training set and its weights w [L, N, t], zero where the column does not vary or does not correlate."""
        train = reduce(_Sums.joined, (self._run(*run) for run in self.plan.training[held]))
        self._watch(train)
        x, y = train.x, train.y
        varying = varying_columns(x.power / train.n, x.mean + self.x_offset, x.distinct, train.n)
        weights = train.cross / np.where(varying, x.power, np.inf)
        least = _ROUNDING * np.sqrt(x.power) * np.sqrt(y.power)
        weights[np.abs(train.cross) <= least] = 0.0
        return train, weights

    def scores(self, grid: RidgeGrid, metric: str, tolerance: float) -> FloatArray:
        """Held-out scores [N, t]; not to be used for columns that are found ``odd`` on the way."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            inner = self._inner_scores(grid)
            choices = [_chosen(own, grid.selection, tolerance) for own in inner]
            return self._pooled(choices, np.asarray(grid.alphas), metric)

    def _inner_scores(self, grid: RidgeGrid) -> FloatArray:
        """Mean validation score for every outer block, [F, L, A, N, t]; A = 1 where penalties do not matter."""
        alphas = np.asarray(grid.alphas)
        correlates = grid.metric == "pearson"
        n_lags, n_columns, n_targets = self.pieces[0].cross.shape
        n_alphas = 1 if correlates else len(alphas)
        shape = (len(self.plan.tests), n_lags, n_alphas, n_columns, n_targets)
        total, count = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        for held, parts in self.plan.validation.items():
            if not parts:
                continue
            train, weights = self._train(held)
            shrinkage = train.n / (train.n + alphas)
            for outer, run in parts:
                block = self.held_out[run]
                found = (
                    _pearson(block, weights)
                    if correlates
                    else _r2(train, block, weights, shrinkage)
                )
                finite = np.isfinite(found)
                found[~finite] = 0.0
                total[outer] += found
                count[outer] += finite
        return mean_scores(total, count)

    def _pooled(
        self, choices: list[tuple[IntArray, IntArray]], alphas: FloatArray, metric: str
    ) -> FloatArray:
        """Held-out score over all blocks [N, t], each at its chosen lag and penalty."""
        shape = self.pieces[0].cross.shape[1:]
        every = np.arange(shape[1])
        rows, lean, ahead = [], [], []
        yy, zz, yz = (np.zeros(shape) for _ in range(3))
        for outer, (lag, alpha) in enumerate(choices):
            train, by_lag = self._train(frozenset({outer}))
            test = self.held_out[self.plan.tests[outer]]
            weights = _at(by_lag, lag) * (train.n / (train.n + alphas))[alpha]
            rows.append(test.n)
            lean.append((test.y.mean - train.y.mean)[lag, 0, every])
            ahead.append((test.x.mean - train.x.mean) * weights)
            yy += test.y.power[lag, 0, every]
            zz += test.x.power * weights**2
            yz += _at(test.cross, lag) * weights
        n = np.array(rows, dtype=np.float64)[:, None, None]
        y_mean, z_mean = np.stack(lean), np.stack(ahead)  # of every block, [F, N, t]
        if metric == "r2":
            error = yy - 2.0 * yz + zz + (n * (y_mean - z_mean) ** 2).sum(axis=0)
            spread = yy + (n * y_mean**2).sum(axis=0)
            varies = (yy > 0.0) | (y_mean.min(axis=0) != y_mean.max(axis=0))
            return np.where(varies, 1.0 - error / spread, np.nan)
        y_mean -= (n * y_mean).sum(axis=0) / n.sum()
        z_mean -= (n * z_mean).sum(axis=0) / n.sum()
        power = (yy + (n * y_mean**2).sum(axis=0)) * (zz + (n * z_mean**2).sum(axis=0))
        r = (yz + (n * y_mean * z_mean).sum(axis=0)) / np.sqrt(power)
        return np.where(power > 0.0, np.clip(r, -1.0, 1.0), np.nan)


def _pearson(block: _Sums, weights: FloatArray) -> FloatArray:
    """Correlation with the prediction on held-out rows, the same for every penalty: [L, 1, N, t]."""
    total = np.where(block.y.distinct, block.y.power, np.nan)
    power = weights**2 * block.x.power
    r = weights * block.cross / np.sqrt(power * total)
    return np.where(power > 0.0, r, np.nan)[:, None]


def _r2(train: _Sums, block: _Sums, weights: FloatArray, shrinkage: FloatArray) -> FloatArray:
    """R² of every penalty on held-out rows, [L, A, N, t]."""
    total = np.where(block.y.distinct, block.y.power, np.nan)
    linear = 2.0 * weights * block.cross
    power = weights**2 * block.x.power
    ahead = weights * (block.x.mean - train.x.mean)
    lean = block.y.mean - train.y.mean
    out = np.empty((weights.shape[0], len(shrinkage), *weights.shape[1:]))
    for i, g in enumerate(shrinkage):
        bias = lean - g * ahead
        bias *= bias
        bias *= block.n
        into = out[:, i]
        np.multiply(power, -g, out=into)
        into += linear
        into *= g
        into -= bias
        into /= total
    return out


def _at(values: Array, lag: IntArray) -> Array:
    """Values [L, N, t] at the lag of every pair, [N, t]."""
    return np.take_along_axis(values, lag[None], axis=0)[0]


def _chosen(
    scores: FloatArray, selection: Selection, tolerance: float
) -> tuple[IntArray, IntArray]:
    """Lag and penalty of every pair, [N, t] each, from [L, A, N, t]."""
    n_lags, n_alphas, *shape = scores.shape
    if selection.alone:
        choice = select(scores.reshape(n_lags, 1, n_alphas, -1), selection, tolerance)
        return choice.lag.reshape(shape), choice.alpha.reshape(shape)
    by_column = [select(scores[:, None, :, i], selection, tolerance) for i in range(shape[0])]
    return np.stack([c.lag for c in by_column]), np.stack([c.alpha for c in by_column])
