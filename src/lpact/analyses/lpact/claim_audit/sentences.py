"""Sentences of a block, with their places in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lpact.analyses.lpact.claim_audit.blocks import (
    CITATION,
    CITED_AUTHOR,
    JOINER,
    OPAQUE,
    Block,
    BlockKind,
)

ABBREVIATIONS = frozenset(
    [
        "al",
        "e.g",
        "i.e",
        "cf",
        "vs",
        "fig",
        "figs",
        "eq",
        "eqs",
        "sec",
        "secs",
        "tab",
        "no",
        "nos",
        "vol",
        "pp",
        "p",
        "ref",
        "refs",
        "approx",
        "ca",
        "resp",
        "dr",
        "mr",
        "mrs",
        "ms",
        "prof",
        "st",
        "inc",
        "ed",
        "eds",
        "suppl",
        "app",
        "appx",
        "ch",
        "viz",
        "incl",
        "excl",
        "max",
        "min",
        "avg",
        "dept",
        "univ",
        "est",
    ]
)
"""Words that end in a full stop without ending a sentence."""

_CLOSERS = "\"'”’)\\]»"
_END = re.compile(
    rf"[.!?]+[{_CLOSERS}]*(?:\s*{CITATION})?(?=\s+[\"'“‘(\[]?(?:[A-Z0-9{CITED_AUTHOR}{OPAQUE}])|\s*\Z)"
)
_WORD_BEFORE = re.compile(r"([\w.]+)\Z")


@dataclass(frozen=True)
class Sentence:
    """A sentence: its kind of block, place of its first character, and its text on one line, markup blanked."""

    kind: BlockKind
    start: int
    end: int
    text: str


def split_sentences(block: Block) -> Iterator[Sentence]:
    """Split a block; abbreviations, initials and decimals do not end a sentence."""
    begin = 0
    text = block.text
    length = len(text.rstrip())
    for match in _END.finditer(text):
        inside = match.end() < length
        if match[0][0] == "." and inside and _is_abbreviation(text, match.start()):
            continue
        yield from _sentence(block, begin, match.end())
        begin = match.end()
    yield from _sentence(block, begin, len(text))


_LONGEST_ABBREVIATION = 20
"""Characters before a full stop that are looked at."""


def _is_abbreviation(text: str, stop: int) -> bool:
    """Whether the full stop at ``stop`` belongs to a word."""
    found = _WORD_BEFORE.search(text[max(0, stop - _LONGEST_ABBREVIATION) : stop])
    if found is None:
        return False
    word = found[1].lower()
    initial = len(word) == 1 and found[1].isupper() and found[1] != "I"
    return initial or word in ABBREVIATIONS


def _sentence(block: Block, begin: int, end: int) -> Iterator[Sentence]:
    piece = block.text[begin:end]
    if not re.search(r"[^\W\d_]", piece):
        return
    lead = len(piece) - len(piece.lstrip())
    start = block.start + begin + lead
    said = piece.strip().replace(JOINER, "")
    yield Sentence(block.kind, start, block.start + begin + len(piece.rstrip()), said)
