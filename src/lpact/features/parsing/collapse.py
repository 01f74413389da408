"""From a pipeline's tokens to words: matched by character offsets, collapsed to one tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lpact.math.dependencies import ROOT, depths, unrooted
from lpact.math.types import IntArray

PUNCTUATION = "punct"


class Token(NamedTuple):
    """One token of a pipeline in a text: characters [start, stop), and the index of its head (−1: root)."""

    start: int
    stop: int
    head: int
    relation: str
    upos: str


@dataclass(frozen=True)
class SentenceParse:
    """One tree over the words of a sentence; ``head`` counts words from 0, −1 for the root."""

    head: IntArray
    relation: tuple[str, ...]
    upos: tuple[str, ...]


class NoToken(Exception):
    """A word that no token touches; ``word`` is its index."""

    def __init__(self, word: int) -> None:
        self.word = word
        super().__init__(f"no token touches word {word}")


def spans_of(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Return the words joined by single blanks, and the characters [start, stop) of each."""
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return " ".join(words), spans


def collapse(spans: Sequence[tuple[int, int]], tokens: Sequence[Token]) -> SentenceParse:
    """Return one tree over words from a tree over tokens.

    A token belongs to the first word that it touches; further words that it spans depend on that word as ``goeswith``.
    Of several tokens in a word, the one nearest to the root represents it (the first of equals), unless it is
    punctuation: the word's head is the word of its head. Words cannot form a cycle, since heads are nearer to the root.
    Of several roots, the later ones depend on the first as ``parataxis``.

    ``spans`` are the characters [start, stop) of each word. Raises `NoToken` if no token touches a word, and
    ``ValueError`` if heads of tokens form a cycle.
    """
    owner, shared = _owners(spans, tokens)
    strong = _strong(owner, tokens)
    given = np.array([token.head for token in tokens], dtype=np.int64)
    if unrooted(given).any():
        raise ValueError("the heads of the tokens form a cycle")
    head = _over_weak(given, strong)
    top = _tops(len(spans), owner, strong, depths(head))
    heads = np.full(len(spans), ROOT, dtype=np.int64)
    relation, upos = ["goeswith"] * len(spans), ["X"] * len(spans)
    for word, token in enumerate(top):
        if token == ROOT:
            if word not in shared:
                raise NoToken(word)
            heads[word] = shared[word]
            continue
        heads[word] = owner[head[token]] if head[token] != ROOT else ROOT
        relation[word], upos[word] = tokens[token].relation, tokens[token].upos
    root, *later_roots = np.flatnonzero(heads == ROOT).tolist() or [ROOT]
    for later in later_roots:
        heads[later], relation[later] = root, "parataxis"
    return SentenceParse(heads, tuple(relation), tuple(upos))


def _owners(
    spans: Sequence[tuple[int, int]], tokens: Sequence[Token]
) -> tuple[IntArray, dict[int, int]]:
    """Return the first word that each token touches (−1: none), and for other words touched, that first word."""
    starts, stops = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    owner = np.full(len(tokens), ROOT, dtype=np.int64)
    shared: dict[int, int] = {}
    for index, token in enumerate(tokens):
        first = int(np.searchsorted(stops, token.start, side="right"))
        last = int(np.searchsorted(starts, token.stop, side="left"))
        touched = [word for word in range(first, last) if spans[word][0] < spans[word][1]]
        if touched:
            owner[index] = touched[0]
            shared.update(dict.fromkeys(touched[1:], touched[0]))
    return owner, shared


def _strong(owner: IntArray, tokens: Sequence[Token]) -> list[bool]:
    """Which tokens may represent their word: all but punctuation beside others, and tokens outside words."""
    content = {
        int(word)
        for word, token in zip(owner, tokens, strict=True)
        if token.relation != PUNCTUATION
    }
    return [
        bool(word != ROOT and (token.relation != PUNCTUATION or int(word) not in content))
        for word, token in zip(owner, tokens, strict=True)
    ]


def _over_weak(head: IntArray, strong: list[bool]) -> IntArray:
    """Return the nearest strong token above each token, −1 where there is none."""
    above = head.copy()
    for index in range(head.size):
        while above[index] != ROOT and not strong[above[index]]:
            above[index] = head[above[index]]
    return above


def _tops(n_words: int, owner: IntArray, strong: list[bool], depth: IntArray) -> list[int]:
    """Return the strong token of each word that is nearest to the root, −1 for a word without tokens."""
    top = [ROOT] * n_words
    for index, word in enumerate(owner):
        if strong[index] and (top[word] == ROOT or depth[index] < depth[top[word]]):
            top[word] = index
    return top
