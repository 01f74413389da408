"""Parses of the Natural Stories: Universal Dependencies and Penn trees whose tokens name the words they are part of.

A token is named ``<story>.<word>`` (the whole word), ``<story>.<word>.<part>``, or ``<story>.<word>.word`` (the word
without the punctuation at its ends).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpact.datasets._files.strict import read_text
from lpact.errors import StimulusError
from lpact.math.dependencies import ROOT, depths, unrooted
from lpact.math.types import IntArray

Code = tuple[int, int]
"""Story and word, both from 1."""

PUNCTUATION = "punct"
"""Relation of punctuation; commas that stand for "and" have others, and are known by their signs."""

_TOKEN = re.compile(r"TokenId=([0-9]+)\.([0-9]+)(?:\.(?:[0-9]+|word))?")
_LEAF = re.compile(r"(.+)/([0-9]+)\.([0-9]+)(?:\.(?:[0-9]+|word))?", re.DOTALL)
_PENN = re.compile(r"\(|\)|[^\s()]+")
_TRACE = "-NONE-"

_UPOS = {
    "CC": "CCONJ", "CD": "NUM", "DT": "DET", "EX": "PRON", "FW": "X", "IN": "ADP", "JJ": "ADJ", "JJR": "ADJ",
    "JJS": "ADJ", "LS": "X", "MD": "AUX", "NN": "NOUN", "NNS": "NOUN", "NNP": "PROPN", "NNPS": "PROPN", "PDT": "DET",
    "POS": "PART", "PRP": "PRON", "PRP$": "PRON", "RB": "ADV", "RBR": "ADV", "RBS": "ADV", "RP": "ADP", "SYM": "SYM",
    "TO": "PART", "UH": "INTJ", "VB": "VERB", "VBD": "VERB", "VBG": "VERB", "VBN": "VERB", "VBP": "VERB",
    "VBZ": "VERB", "WDT": "PRON", "WP": "PRON", "WP$": "PRON", "WRB": "ADV",
}  # fmt: skip
"""Universal part of speech of every Penn tag that is not punctuation, by the tag alone."""


@dataclass(frozen=True)
class Dependencies:
    """One tree over the words of each sentence, [n_words] each; ``head`` counts from 1 in the sentence, 0 is its root.

    ``tag`` is the Penn tag, ``upos`` follows from it.
    """

    sentence: IntArray
    head: IntArray
    relation: tuple[str, ...]
    tag: tuple[str, ...]
    upos: tuple[str, ...]


@dataclass(frozen=True)
class _Token:
    line: int
    place: int
    code: Code
    tag: str
    head: int
    relation: str
    weak: bool


def read_dependencies(path: Path, codes: Sequence[Code]) -> Dependencies | str:
    """Return the dependencies of all words, or why they do not cover them.

    Of the tokens in a word, the one nearest to the root stands for it (the first of equals), but punctuation only where
    there is nothing else; the head of the word is the word of that token's head, and punctuation that stands for no
    word is passed over on the way up. Heads then lie nearer to the root, so words form no cycle. Where a sentence has
    several roots, the later ones hang on the first as ``parataxis``. A word that two sentences share is in the first.
    """
    row_of = {code: row for row, code in enumerate(codes)}
    n_words = len(codes)
    sentence = np.full(n_words, -1, dtype=np.int64)
    head = np.zeros(n_words, dtype=np.int64)
    relation, tag = [""] * n_words, [""] * n_words
    for number, tokens in enumerate(_sentences(path)):
        top = _tops(path, tokens)
        for token in tokens:
            if token.code not in row_of:
                raise _wrong(
                    path,
                    token.line,
                    f"TokenId of word {token.code[1]} of story {token.code[0]}",
                    "words that words.tsv has",
                )
        own = sorted(row_of[code] for code in top if sentence[row_of[code]] == -1)
        place = {codes[row]: i + 1 for i, row in enumerate(own)}
        for row in own:
            token = top[codes[row]]
            sentence[row] = number
            above = _above(token, tokens, top)
            head[row] = place.get(above.code, 0) if above is not None else 0
            relation[row], tag[row] = token.relation, token.tag
        for later in [row for row in own if head[row] == 0][1:]:
            head[later] = next(i + 1 for i, row in enumerate(own) if head[row] == 0)
            relation[later] = "parataxis"
    if (missing := np.flatnonzero(sentence == -1)).size:
        story, word = codes[int(missing[0])]
        return f"{missing.size} of {n_words} words; first: word {word} of story {story}"
    upos = tuple(_UPOS.get(name, "PUNCT" if not name[:1].isalpha() else "X") for name in tag)
    return Dependencies(sentence, head, tuple(relation), tuple(tag), upos)


def read_constituents(path: Path, codes: Sequence[Code]) -> tuple[IntArray, IntArray] | str:
    """Return how many phrases open before and close after every word, [n_words] each, or why they cannot be had.

    A phrase is a bracket of the tree with at least one word in it, other than the label of a single word and ``ROOT``;
    traces are no words.
    """
    row_of = {code: row for row, code in enumerate(codes)}
    opening, closing = (np.zeros(len(codes), dtype=np.int64) for _ in range(2))
    seen: set[int] = set()
    stack: list[tuple[str, list[int], bool]] = []
    label_next = False
    for symbol in _PENN.findall(read_text(path, StimulusError)):
        if symbol == "(":
            stack.append(("", [], False))
            label_next = True
        elif symbol == ")":
            if not stack:
                return "a closing bracket too many"
            label, rows, is_leaf = stack.pop()
            if rows and not is_leaf and label != "ROOT":
                opening[rows[0]] += 1
                closing[rows[-1]] += 1
            if stack:
                stack[-1][1].extend(rows)
            label_next = False
        elif label_next:
            stack[-1] = (symbol, [], False)
            label_next = False
        else:
            label, rows, _ = stack[-1]
            leaf = _LEAF.fullmatch(symbol)
            if label != _TRACE:
                row = row_of.get((int(leaf[2]), int(leaf[3]))) if leaf else None
                if row is None:
                    return f"the leaf '{symbol}' is no word of words.tsv"
                rows.append(row)
                seen.add(row)
            stack[-1] = (label, rows, True)
    if stack:
        return f"{len(stack)} brackets are never closed"
    if len(seen) != len(codes):
        return f"{len(codes) - len(seen)} of {len(codes)} words are in no tree"
    return opening, closing


def _sentences(path: Path) -> list[list[_Token]]:
    sentences: list[list[_Token]] = [[]]
    for line, text in enumerate(read_text(path, StimulusError).splitlines(), start=1):
        if not text.strip():
            sentences.append([])
            continue
        cells = text.split("\t")
        match = _TOKEN.fullmatch(cells[9]) if len(cells) == 10 else None
        if match is None or not cells[0].isdigit() or not cells[6].isdigit():
            raise _wrong(
                path, line, repr(text[:80]), "ten cells with tabs between; the last TokenId=<code>"
            )
        code = (int(match[1]), int(match[2]))
        if int(cells[0]) != len(sentences[-1]) + 1:
            raise _wrong(path, line, f"token {cells[0]}", f"token {len(sentences[-1]) + 1}")
        place, tag, head, relation = int(cells[0]) - 1, cells[4], int(cells[6]) - 1, cells[7]
        weak = relation == PUNCTUATION or not any(sign.isalnum() for sign in cells[1])
        sentences[-1].append(_Token(line, place, code, tag, head, relation, weak))
    return [tokens for tokens in sentences if tokens]


def _tops(path: Path, tokens: list[_Token]) -> dict[Code, _Token]:
    """Return the token that stands for each word."""
    head = np.array([token.head for token in tokens], dtype=np.int64)
    if (head >= len(tokens)).any() or unrooted(head).any():
        raise _wrong(path, tokens[0].line, "heads that lead to no root", "a tree over the sentence")
    depth = depths(head)
    top: dict[Code, _Token] = {}
    for token in tokens:
        best = top.get(token.code)
        rank = (token.weak, depth[token.place])
        if best is None or rank < (best.weak, depth[best.place]):
            top[token.code] = token
    return top


def _above(token: _Token, tokens: list[_Token], top: dict[Code, _Token]) -> _Token | None:
    """Return the nearest token above that can stand for its word, None above the root."""
    place = token.head
    while place != ROOT:
        above = tokens[place]
        if not above.weak or top[above.code].weak:
            return above
        place = above.head
    return None


def _wrong(path: Path, line: int, got: str, expected: str) -> StimulusError:
    return StimulusError(
        "a line of a parse is not valid",
        where=f"{path}, line {line}",
        got=got,
        expected=expected,
        remedy="download the file again, or take it out of the folder to do without",
    )
