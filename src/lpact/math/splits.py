"""Contiguous held-out blocks with an embargo around them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lpact.math.types import IntArray

MOST_KEPT_ROWS = 1_000_000
"""Row numbers of training sets that are kept to be used again."""


@dataclass(frozen=True)
class BlockedFolds:
    """A partition of rows 0 … n−1 into contiguous blocks.

    The training set of held-out blocks h₁ … hₘ is every row that is in none of them and further than ``gap`` rows
    from each. It does not depend on the order of the held-out blocks, so the inner training set of outer block o and
    inner block i is that of outer i and inner o.
    """

    starts: tuple[int, ...]
    n_rows: int
    gap: int = 0

    def __post_init__(self) -> None:
        if self.gap < 0:
            raise ValueError("gap must not be negative")
        if list(self.starts) != sorted(set(self.starts)) or (self.starts and self.starts[0] != 0):
            raise ValueError("block starts must begin at 0 and increase")
        if self.starts and self.starts[-1] >= self.n_rows:
            raise ValueError("the last block is empty")

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.starts)

    def bounds(self, block: int) -> tuple[int, int]:
        """First row and one past the last row of ``block``."""
        stop = self.starts[block + 1] if block + 1 < self.n_blocks else self.n_rows
        return self.starts[block], stop

    def rows(self, block: int) -> slice:
        """Rows of ``block``."""
        return slice(*self.bounds(block))

    def validation_rows(self, block: int, outer: int) -> slice:
        """Rows of ``block`` that may choose settings for ``outer``: those that its embargo leaves.

        None where fewer than half are left: a score of a few rows would weigh as much as that of a whole block.
        """
        start, stop = self.bounds(block)
        outer_start, outer_stop = self.bounds(outer)
        size = stop - start
        if block > outer:
            start = max(start, outer_stop + self.gap)
        else:
            stop = min(stop, outer_start - self.gap)
        return slice(start, stop) if 2 * (stop - start) >= size else slice(start, start)

    def train_rows(self, *held_out: int) -> IntArray:
        """Training rows when the ``held_out`` blocks are left out; not to be written to."""
        key = frozenset(held_out)
        if key in self._train_rows:
            return self._train_rows[key]
        kept = np.ones(self.n_rows, dtype=bool)
        for block in held_out:
            start, stop = self.bounds(block)
            kept[max(0, start - self.gap) : stop + self.gap] = False
        rows = np.flatnonzero(kept)
        rows.flags.writeable = False
        if len(self._train_rows) < MOST_KEPT_ROWS // self.n_rows:
            self._train_rows[key] = rows
        return rows

    @cached_property
    def _train_rows(self) -> dict[frozenset[int], IntArray]:
        return {}

    def test_sizes(self) -> IntArray:
        """Rows of every block."""
        return np.diff([*self.starts, self.n_rows])


def contiguous_folds(n_rows: int, n_blocks: int, *, gap: int = 0) -> BlockedFolds:
    """Cut ``n_rows`` into ``n_blocks`` contiguous blocks whose sizes differ by at most one."""
    if n_blocks < 2 or n_rows < n_blocks:
        raise ValueError(f"cannot cut {n_rows} rows into {n_blocks} blocks")
    sizes = np.full(n_blocks, n_rows // n_blocks)
    sizes[: n_rows % n_blocks] += 1
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return BlockedFolds(tuple(int(s) for s in starts), n_rows, gap)
