"""Dependency trees as arrays.

``head`` is [n]: the row of each word's head, −1 for a root. A table of sentences is a forest; all trees are processed
at once, level by level.
"""

from __future__ import annotations

import numpy as np

from lpact.math.types import BoolArray, FloatArray, IntArray

ROOT = -1
"""Head of a word that has none."""


def unrooted(head: IntArray) -> BoolArray:
    """Return which words never reach a root: those on a cycle or below one, [n]."""
    ancestor = head.copy()
    # Each round doubles the distance: after ⌈log2 n⌉ rounds it exceeds any path without a cycle.
    for _ in range(int(np.ceil(np.log2(max(head.size, 1)))) + 1):
        ancestor = np.where(ancestor == ROOT, ROOT, ancestor[ancestor])
    endless: BoolArray = ancestor != ROOT
    return endless


def depths(head: IntArray) -> IntArray:
    """Return the number of heads above every word (0 for a root), [n]; ValueError if heads form a cycle."""
    if unrooted(head).any():
        raise ValueError("the heads form a cycle")
    depth = np.zeros(head.size, dtype=np.int64)
    ancestor = head
    while (above := ancestor != ROOT).any():
        depth += above
        ancestor = np.where(above, head[ancestor], ROOT)
    return depth


def integration_cost(head: IntArray, counted: BoolArray) -> FloatArray:
    """Return the summed length of the dependencies that each word completes, [n].

    The dependency of word i on head h is completed at max(i, h) and has length |i − h|::

        cost_w = Σ |i − h_i|  over i with counted_i, h_i ≥ 0 and max(i, h_i) = w
    """
    rows = np.flatnonzero(counted & (head != ROOT))
    heads = head[rows]
    cost = np.zeros(head.size)
    np.add.at(cost, np.maximum(rows, heads), np.abs(rows - heads))
    return cost


def closing_subtrees(head: IntArray) -> IntArray:
    """Return the number of subtrees of two or more words whose last row is this word, [n]; ValueError on a cycle.

    A subtree of a non-projective tree has gaps; its last row is that of its outermost word.
    """
    depth, last = depths(head), np.arange(head.size)
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero(depth == level)
        np.maximum.at(last, head[rows], last[rows])
    has_dependents = np.isin(np.arange(head.size), head)
    return np.bincount(last[has_dependents], minlength=head.size).astype(np.int64)


def clause_starts(head: IntArray, is_clause: BoolArray) -> BoolArray:
    """Return at which words a clause begins, [n].

    Every word belongs to the nearest clause at or above it (``is_clause`` marks the heads of clauses), and to no other.
    A clause begins at the first word that belongs to it, so that no two clauses begin at the same word. ValueError on
    a cycle.
    """
    if unrooted(head).any():
        raise ValueError("the heads form a cycle")
    owner = np.arange(head.size)
    while (searching := (owner != ROOT) & ~is_clause[owner]).any():
        owner = np.where(searching, head[owner], owner)
    owned = np.flatnonzero(owner != ROOT)
    starts = np.zeros(head.size, dtype=np.bool_)
    starts[owned[np.unique(owner[owned], return_index=True)[1]]] = True
    return starts
