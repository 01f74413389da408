"""What small nested fits share: rows of all training sets, and statistics of the responses on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from lpact.math.ridge.columns import tame
from lpact.math.ridge.compute import Compute
from lpact.math.ridge.responses import CARRIED
from lpact.math.ridge.rows import cut, nested_sets, nested_validation
from lpact.math.ridge.small_scores import block_ranks
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray, IntArray

LONGEST = 256
"""Terms of a product at most. Longer sums would be cut in places that depend on the number of BLAS threads."""


class NotSmall(Exception):
    """A fit needs the care, or the room, of the large engine."""


@dataclass(frozen=True)
class Plan:
    """Rows of a nested readout. Training sets come as pairs of blocks left out, then as single blocks.

    Attributes
    ----------
    rows, runs
        Of every set: its training rows, and the same as contiguous runs of `LONGEST` rows at most.
    pieces, member
        Pieces that all sets are made of, and [S, pieces] which of them a set has.
    spans, slot
        Distinct ranges of validation rows, and [pairs, 2] which of them choose for the smaller and for the larger block
        of a pair; −1 where too few rows are left.
    into
        [F, pairs · 2]: 1 where a slot chooses for an outer block.
    """

    folds: BlockedFolds
    rows: tuple[IntArray, ...]
    runs: tuple[tuple[slice, ...], ...]
    pieces: tuple[slice, ...]
    member: FloatArray
    n_train: FloatArray
    spans: tuple[slice, ...]
    slot: IntArray
    into: FloatArray

    @property
    def n_pairs(self) -> int:
        """Training sets that choose settings."""
        return len(self.slot)

    @property
    def n_sets(self) -> int:
        """All training sets."""
        return len(self.rows)


@lru_cache(maxsize=32)
def plan_of(folds: BlockedFolds) -> Plan:
    """The plan of a nested readout over these blocks."""
    sets = nested_sets(folds.n_blocks)
    cuts = cut(folds, sets)
    member = np.zeros((len(sets), len(cuts.slices)))
    for i, held in enumerate(sets):
        member[i, list(cuts.members[held])] = 1.0
    validation = nested_validation(folds)
    spans: list[slice] = []
    slot = np.full((len(validation), 2), -1)
    into = np.zeros((folds.n_blocks, len(validation), 2))
    for i, parts in enumerate(validation.values()):
        for j, (outer, rows) in enumerate(parts):
            if rows.stop > rows.start:
                if rows not in spans:
                    spans.append(rows)
                slot[i, j] = spans.index(rows)
                into[outer, i, j] = 1.0
    rows_of = tuple(cuts.rows(held) for held in sets)
    return Plan(
        folds,
        rows_of,
        tuple(_runs(rows) for rows in rows_of),
        cuts.slices,
        member,
        np.array([len(rows) for rows in rows_of], dtype=np.float64),
        tuple(spans),
        slot,
        into.reshape(folds.n_blocks, -1),
    )


def _runs(rows: IntArray) -> tuple[slice, ...]:
    """Contiguous runs of rows, none longer than `LONGEST`."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    runs = [(int(run[0]), int(run[-1]) + 1) for run in np.split(rows, breaks)]
    return tuple(
        slice(first, min(first + LONGEST, stop))
        for start, stop in runs
        for first in range(start, stop, LONGEST)
    )


class SmallResponses:
    """Responses as rows [q, n] with q = n_lags · t, tame, and what every training set and span needs of them.

    Attributes
    ----------
    rows
        [q + 1, n]: the responses, and a last row of ones, so that products with features hold their sums.
    mean
        [S, q] over the training rows.
    still
        [S, q]: responses that are constant on the training rows.
    spans
        For every span, [q + 1, r]: the responses less their mean there, and ones.
    span_mean, span_total
        [spans, q]: mean and centred sum of squares, NaN where constant.
    """

    def __init__(self, responses: FloatArray, plan: Plan) -> None:
        self.n_lags, n_rows, self.n_targets = responses.shape
        raw = np.asarray(responses).transpose(1, 0, 2).reshape(n_rows, -1)
        y = tame(Compute().open(), raw, self.n_lags, "responses").values.T
        self.plan = plan
        self.n_columns = len(y)
        self.rows: FloatArray = np.concatenate([y, np.ones((1, n_rows))])
        sums = np.stack([y[:, piece].sum(axis=1) for piece in plan.pieces])
        squares = np.stack([np.einsum("qr,qr->q", y[:, p], y[:, p]) for p in plan.pieces])
        low = np.stack([y[:, piece].min(axis=1) for piece in plan.pieces])
        high = np.stack([y[:, piece].max(axis=1) for piece in plan.pieces])
        self.mean: FloatArray = plan.member @ sums / plan.n_train[:, None]
        self.still: BoolArray = _over(plan, low, high)
        carried = plan.n_train[:, None] * self.mean**2 > (1.0 - 1.0 / CARRIED) * (
            plan.member @ squares
        )
        if (carried & ~self.still).any():
            raise NotSmall
        self.spans, means, totals = [], [], []
        for rows in plan.spans:
            part = y[:, rows]
            means.append(part.mean(axis=1))
            centred = part - means[-1][:, None]
            total = np.einsum("qr,qr->q", centred, centred)
            totals.append(np.where(part.min(axis=1) == part.max(axis=1), np.nan, total))
            self.spans.append(np.concatenate([centred, np.ones((1, part.shape[1]))]))
        none = np.zeros((0, self.n_columns))
        self.span_mean: FloatArray = np.stack(means) if means else none
        self.span_total: FloatArray = np.stack(totals) if totals else none

    @cached_property
    def shift(self) -> FloatArray:
        """Mean on every slot's rows less the training mean, [pairs, 2, q]."""
        plan = self.plan
        shift: FloatArray = self.span_mean[plan.slot] - self.mean[: plan.n_pairs, None]
        return shift

    @cached_property
    def _ranks(self) -> FloatArray:
        """Ranks of every response within every block, [q, n]."""
        return block_ranks(self.rows[:-1], self.plan.folds)

    def ranks(self, columns: IntArray) -> FloatArray:
        """Ranks within blocks of the columns [F, t] that every block has, [t, n]."""
        folds = self.plan.folds
        parts = [self._ranks[own, folds.rows(block)] for block, own in enumerate(columns)]
        return np.concatenate(parts, axis=1)


def _over(plan: Plan, low: FloatArray, high: FloatArray) -> BoolArray:
    """Whether smallest and largest value over the pieces of every set are the same, [S, columns]."""
    members = plan.member.astype(bool)
    return np.stack([high[own].max(axis=0) == low[own].min(axis=0) for own in members])
