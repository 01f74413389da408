"""Training sets as unions of contiguous pieces of rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, pairwise
from typing import TypeAlias

import numpy as np

from lpact.math.splits import BlockedFolds
from lpact.math.types import IntArray

Held: TypeAlias = frozenset[int]
"""Blocks that a training set leaves out. The set of outer block o and validation block i is that of i and o."""


@dataclass(frozen=True)
class Pieces:
    """Disjoint contiguous pieces of rows, and which of them every training set consists of.

    Cutting at all edges of all training sets lets each be *added up* from pieces. Nothing is ever subtracted, which
    would leave rounding where a feature varies outside a training set only.
    """

    slices: tuple[slice, ...]
    members: dict[Held, tuple[int, ...]]
    n_rows: dict[Held, int]
    n_all: int
    _rows: dict[Held, IntArray] = field(default_factory=dict)

    def rows(self, held: Held) -> IntArray:
        """Rows of a training set; not to be written to."""
        if held not in self._rows:
            parts = [
                np.arange(self.slices[i].start, self.slices[i].stop) for i in self.members[held]
            ]
            self._rows[held] = np.concatenate(parts)
            self._rows[held].flags.writeable = False
        return self._rows[held]


def cut(folds: BlockedFolds, sets: Iterable[Held]) -> Pieces:
    """Cut the rows so that every training set in ``sets`` is a union of pieces."""
    return _cut(folds, tuple(sets))


@lru_cache(maxsize=64)
def _cut(folds: BlockedFolds, sets: tuple[Held, ...]) -> Pieces:
    ranges = {held: _ranges(folds.train_rows(*held)) for held in sets}
    edges = sorted({edge for parts in ranges.values() for part in parts for edge in part})
    slices = [slice(start, stop) for start, stop in pairwise(edges)]
    members: dict[Held, tuple[int, ...]] = {}
    for held, parts in ranges.items():
        members[held] = tuple(
            i
            for i, piece in enumerate(slices)
            if any(start <= piece.start and piece.stop <= stop for start, stop in parts)
        )
    used = sorted({i for pieces in members.values() for i in pieces})
    place = {old: new for new, old in enumerate(used)}
    return Pieces(
        tuple(slices[i] for i in used),
        {held: tuple(place[i] for i in pieces) for held, pieces in members.items()},
        {held: sum(stop - start for start, stop in parts) for held, parts in ranges.items()},
        folds.n_rows,
    )


def nested_sets(n_blocks: int) -> list[Held]:
    """Training sets of a nested readout: every pair of blocks left out, then every block."""
    pairs = [frozenset(pair) for pair in combinations(range(n_blocks), 2)]
    return pairs + [frozenset({block}) for block in range(n_blocks)]


def nested_validation(folds: BlockedFolds) -> dict[Held, list[tuple[int, slice]]]:
    """For every pair of blocks left out: each as outer block, with the rows of the other that may choose for it."""
    return {
        held: [
            (outer, folds.validation_rows(inner, outer))
            for outer, inner in (sorted(held), sorted(held, reverse=True))
        ]
        for held in nested_sets(folds.n_blocks)
        if len(held) == 2
    }


def _ranges(rows: IntArray) -> list[tuple[int, int]]:
    """Ends of the contiguous runs of increasing row numbers."""
    if len(rows) == 0:
        raise ValueError("a training set is empty: fewer blocks or a smaller gap leave it rows")
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    starts = [int(rows[0]), *(int(rows[b]) for b in breaks)]
    stops = [*(int(rows[b - 1]) + 1 for b in breaks), int(rows[-1]) + 1]
    return list(zip(starts, stops, strict=True))
