"""Parses of Le Petit Prince: constituency trees for sentences, and dependencies as one head per word.

The dependencies are those of a parser that propagates heads over conjuncts and relative clauses, so that some words
have several. One tree is kept: a root's head is 0; a conjunct keeps its ``conj`` head; any other word keeps the head
that is listed first. Where that leaves words in a cycle, the first of them that has a head outside takes that one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lpact.datasets._files.strict import read_text
from lpact.errors import StimulusError

_LEAF = re.compile(r"([^\s()]+)\s*\)")
_RELATION = re.compile(r"(\S+?)\((.+)-([0-9]+), (.+)-([0-9]+)\)")
_FUSED = "\u00a0"
"""Stands between words that the parser took for one."""


@dataclass(frozen=True)
class Token:
    """One word of a parse: ``head`` is its head's position in the sentence, counted from 1; 0 for the root.

    ``n_heads`` counts the heads in the file; ``parted`` marks a word that the parser took for a part of the one before.
    """

    form: str
    head: int
    relation: str
    n_heads: int = 1
    parted: bool = False


def read_tree_lengths(path: Path) -> list[int]:
    """Return the words of every sentence, from a file with one bracketed tree per line."""
    lines = [line for line in read_text(path, StimulusError).split("\n") if line.strip()]
    for number, line in enumerate(lines, start=1):
        if line.count("(") != line.count(")") or not _LEAF.search(line):
            raise StimulusError(
                "a line is not a bracketed tree",
                where=f"{path}, line {number}",
                got=line[:80],
                expected="one tree per line, such as (S (NP (PRP it)) (VP (VBD looked)))",
                remedy="download the file again",
            )
    return [len(_LEAF.findall(line)) for line in lines]


def read_dependencies(path: Path) -> list[list[Token]]:
    """Return the sentences of a file with one ``relation(head-i, word-j)`` a line, sentences apart by an empty line."""
    sentences: list[list[Token]] = []
    edges: list[tuple[int, str, int, str]] = []
    for number, line in enumerate([*read_text(path, StimulusError).split("\n"), ""], start=1):
        if not line.strip():
            if edges:
                sentences.append(_one_tree(edges, f"{path}, sentence that ends in line {number}"))
            edges = []
            continue
        found = _RELATION.fullmatch(line.strip())
        if found is None:
            raise StimulusError(
                "a line is not a dependency",
                where=f"{path}, line {number}",
                got=line[:80],
                expected="relation(head-i, word-j)",
                remedy="download the file again",
            )
        relation, _, head, form, position = found.groups()
        edges.append((int(position), form, int(head), relation))
    return sentences


def _one_tree(edges: Sequence[tuple[int, str, int, str]], where: str) -> list[Token]:
    """Return one head per word; raises where words are missing or no tree is in the edges."""
    forms = {position: form for position, form, _, _ in edges}
    n = len(forms)
    heads: dict[int, list[tuple[int, str]]] = {position: [] for position in forms}
    for position, _, head, relation in edges:
        if head != position:
            heads[position].append((head, relation))
    for options in heads.values():
        options.sort(key=lambda option: (option[0] != 0, not option[1].startswith("conj")))
    chosen: dict[int, tuple[int, str]] = {}
    if sorted(forms) == list(range(1, n + 1)):
        chosen = _climb(heads)
    if len(chosen) < n or sum(head == 0 for head, _ in chosen.values()) != 1:
        raise StimulusError(
            "the dependencies of a sentence do not hold a tree",
            where=where,
            got=" ".join(forms[position] for position in sorted(forms))[:80],
            expected="words 1, 2, …, one of them the root, and a way from every word to it",
            remedy="download the file again",
        )
    tokens = [Token(forms[i], *chosen[i], max(1, len(heads[i]))) for i in sorted(forms)]
    return _parted(tokens)


def _climb(heads: dict[int, list[tuple[int, str]]]) -> dict[int, tuple[int, str]]:
    """Attach every word to the root's tree by its best head; by another one only where the best lead into a cycle."""
    chosen: dict[int, tuple[int, str]] = {}
    waiting = sorted(heads)
    while waiting:
        best = [i for i in waiting if heads[i] and (heads[i][0][0] in chosen or not heads[i][0][0])]
        if best:
            chosen.update({i: heads[i][0] for i in best})
        else:
            other = [(i, h) for i in waiting for h in heads[i] if h[0] in chosen]
            other.sort(key=lambda option: not _on_cycle(option[0], heads))
            if not other:
                return {}
            chosen[other[0][0]] = other[0][1]
        waiting = [i for i in waiting if i not in chosen]
    return chosen


def _on_cycle(word: int, heads: dict[int, list[tuple[int, str]]]) -> bool:
    """Whether best heads lead from a word back to itself."""
    above = word
    for _ in heads:
        above = heads[above][0][0] if above and heads[above] else 0
        if above == word:
            return True
    return False


def _parted(tokens: list[Token]) -> list[Token]:
    """Part tokens that hold several words: later words are ``dep`` of the first, which keeps the token's head."""
    first: list[int] = []
    n_words = 0
    for token in tokens:
        first.append(n_words + 1)
        n_words += token.form.count(_FUSED) + 1
    parted: list[Token] = []
    for i, token in enumerate(tokens):
        form, *later = token.form.split(_FUSED)
        head = first[token.head - 1] if token.head else 0
        parted.append(Token(form, head, token.relation, token.n_heads))
        parted += [Token(word, first[i], "dep", parted=True) for word in later]
    return parted


def without(sentence: Sequence[Token], left_out: Sequence[int]) -> list[Token]:
    """Return a sentence without the words at these positions (from 0).

    Words below one that is left out go to its head. Where that is the root, the first of them becomes the root.
    """
    heads = [token.head - 1 for token in sentence]
    relations = [token.relation for token in sentence]
    for gone in left_out:
        below = [i for i, head in enumerate(heads) if head == gone]
        above = heads[gone]
        if above < 0 and below:
            relations[below[0]] = "root"
            heads[below[0]] = -1
            above, below = below[0], below[1:]
        for i in below:
            heads[i] = above
        heads[gone] = -2
    kept = [i for i in range(len(sentence)) if i not in left_out]
    place = {old: new for new, old in enumerate(kept)}
    return [
        Token(
            sentence[i].form,
            place[heads[i]] + 1 if heads[i] >= 0 else 0,
            relations[i],
            sentence[i].n_heads,
            sentence[i].parted,
        )
        for i in kept
    ]
