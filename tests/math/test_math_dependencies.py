"""Dependency trees against plain walks up and down them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpact.math.dependencies import (
    ROOT,
    clause_starts,
    closing_subtrees,
    depths,
    integration_cost,
    unrooted,
)


@st.composite
def forests(draw):
    """Random forests: any order of words, so that many trees are not projective."""
    n = draw(st.integers(0, 14))
    order = draw(st.permutations(range(n)))
    head = np.full(n, ROOT, dtype=np.int64)
    for position, word in enumerate(order):
        choice = draw(st.integers(-1, position - 1)) if position else -1
        head[word] = order[choice] if choice >= 0 else ROOT
    return head


def masks(n):
    return st.lists(st.booleans(), min_size=n, max_size=n).map(lambda x: np.array(x, dtype=bool))


def ancestors(head, word):
    """The word and every head above it, from below."""
    path = [word]
    while head[path[-1]] != ROOT:
        path.append(int(head[path[-1]]))
    return path


def members(head, top):
    return [word for word in range(len(head)) if top in ancestors(head, word)]


@given(head=forests())
def test_depths_match_walks_from_every_word(head):
    assert depths(head).tolist() == [len(ancestors(head, w)) - 1 for w in range(head.size)]


@given(head=forests())
def test_closing_subtrees_match_their_count(head):
    below = [members(head, top) for top in range(head.size)]
    expected = [sum(len(words) >= 2 and max(words) == word for words in below) for word in range(head.size)]
    assert closing_subtrees(head).tolist() == expected


@given(data=st.data(), head=forests())
def test_integration_cost_matches_a_loop_over_pairs(data, head):
    counted = data.draw(masks(head.size))
    expected = [0.0] * head.size
    for a in range(head.size):
        for b in range(a):
            linked = (head[a] == b and counted[a]) or (head[b] == a and counted[b])
            expected[a] += (a - b) if linked else 0
    cost = integration_cost(head, counted)
    assert cost.dtype == np.float64
    assert cost.tolist() == expected


@given(data=st.data(), head=forests())
def test_clauses_begin_at_their_first_own_word(data, head):
    is_clause = data.draw(masks(head.size))
    own = {}
    for word in range(head.size):
        above = [w for w in ancestors(head, word) if is_clause[w]]
        if above:
            own.setdefault(above[0], []).append(word)
    expected = sorted(min(words) for words in own.values())
    assert np.flatnonzero(clause_starts(head, is_clause)).tolist() == expected
    assert len(set(expected)) == is_clause.sum()  # one beginning a clause


@settings(deadline=None)
@given(st.lists(st.integers(-1, 7), min_size=8, max_size=8))
def test_words_that_reach_no_root_are_found(heads):
    head = np.array(heads, dtype=np.int64)
    lost = []
    for word in range(8):
        at, steps = word, 0
        while at != ROOT and steps <= 8:
            at, steps = heads[at], steps + 1
        lost.append(at != ROOT)
    assert unrooted(head).tolist() == lost
    if any(lost):
        for refuse in (depths, closing_subtrees):
            with pytest.raises(ValueError, match="form a cycle"):
                refuse(head)
        with pytest.raises(ValueError, match="form a cycle"):
            clause_starts(head, np.zeros(8, dtype=bool))


def test_a_sentence_worked_by_hand():
    # The dog that I saw barked loudly: det, nsubj, obj, nsubj, acl:relcl, root, advmod.
    head = np.array([1, 5, 4, 4, 1, -1, 5])
    counted = np.ones(7, dtype=bool)
    # "saw" ends that–saw (2), I–saw (1) and dog–saw (3); "barked" ends dog–barked (4).
    assert integration_cost(head, counted).tolist() == [0, 1, 0, 0, 6, 4, 1]
    # "saw" closes [that I saw] and [the dog that I saw]; "loudly" closes the sentence.
    assert closing_subtrees(head).tolist() == [0, 0, 0, 0, 2, 0, 1]
    clause = np.array([0, 0, 0, 0, 1, 1, 0], dtype=bool)
    assert clause_starts(head, clause).tolist() == [1, 0, 1, 0, 0, 0, 0]


def test_crossing_dependencies_close_at_their_outermost_word():
    # A hearing is scheduled on the issue today: "on the issue" hangs on "hearing", across the verb.
    head = np.array([1, 3, 3, -1, 6, 6, 1, 3])
    assert closing_subtrees(head).tolist() == [0, 0, 0, 0, 0, 0, 2, 1]


def test_deep_and_flat_trees_are_no_trouble():
    n = 3000
    chain = np.arange(-1, n - 1)
    assert depths(chain)[-1] == n - 1
    assert closing_subtrees(chain)[-1] == n - 1
    flat = np.where(np.arange(n) == 0, ROOT, 0)
    assert closing_subtrees(flat)[-1] == 1
    assert integration_cost(flat, np.ones(n, dtype=bool)).sum() == n * (n - 1) / 2
