"""Sentences of a block, with their offsets in the file, as normalised words in which rules search."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from lpact.analyses.lpact.claim_audit.readers import (
    CITATION,
    CITED_AUTHOR,
    JOINER,
    OPAQUE,
    Block,
    BlockKind,
)

_ABBREVIATION = re.compile(
    r"al|e\.g|i\.e|cf|vs|figs?|eqs?|secs?|tab|nos?|vol|pp?|refs?|approx|ca|resp|dr|mrs?|ms|prof|st|inc|eds?|suppl|appx?|"
    r"ch|viz|incl|excl|max|min|avg|dept|univ|est",
    re.IGNORECASE,
)
"""Words that end in a full stop without ending a sentence."""
_LONGEST_ABBREVIATION = 20
_END = re.compile(
    rf"[.!?]+[\"'”’)\]»]*(?:\s*{CITATION})?(?=\s+[\"'“‘(\[]?(?:[A-Z0-9{CITED_AUTHOR}{OPAQUE}])|\s*\Z)"
)


@dataclass(frozen=True)
class Sentence:
    """A sentence: its kind of block, its start and end in the file, and its text, markup blanked."""

    kind: BlockKind
    start: int
    end: int
    text: str


def split_sentences(block: Block) -> Iterator[Sentence]:
    """Split a block; abbreviations, initials and decimals do not end a sentence."""
    text, begin = block.text, 0
    length = len(text.rstrip())
    ends = [
        m.end()
        for m in _END.finditer(text)
        if not (m[0][0] == "." and m.end() < length and _is_abbreviation(text, m.start()))
    ]
    for end in (*ends, len(text)):
        piece = text[begin:end]
        if re.search(r"[^\W\d_]", piece):
            start = block.start + begin + len(piece) - len(piece.lstrip())
            said = piece.strip().replace(JOINER, "")
            yield Sentence(block.kind, start, block.start + begin + len(piece.rstrip()), said)
        begin = end


def _is_abbreviation(text: str, stop: int) -> bool:
    """Whether the full stop at ``stop`` belongs to a word."""
    found = re.search(r"[\w.]+\Z", text[max(0, stop - _LONGEST_ABBREVIATION) : stop])
    if found is None:
        return False
    word = found[0]
    initial = len(word) == 1 and word.isupper() and word != "I"
    return initial or _ABBREVIATION.fullmatch(word) is not None


# --- Words -----------------------------------------------------------------------------------------

_YEAR = r"(?:1[89]|20)\d\d[a-z]?"
_NAME = r"[A-Z][\w’'-]+"
_NO_AUTHOR = (
    r"(?!(?:Llama|Mistral|Pythia|Bert|Falcon|Gemma|Qwen|Bloom|Claude|Gemini|Mamba|Transformers?|Brains?|Cortex|Models?|"
    r"Machines?|Humans?|People|Listeners|Networks?|Both|This|That|It|We|Here|Which|These|Those|Evidence|Nobody|"
    r"Everyone|Logic|Results|Data|Prediction|Stripping|Level|Layers?|Table|Figure|Podcast|Silicon)\b)"
)
_REPORTS = (
    r"(?= (?:have |had |has |also |recently |once |both |later )*(?:argu|claim|conclud|assert|contend|maintain|wr[io]t|"
    r"propos|report|find |found |show|suggest|hold |held |demonstrat|describ|believ|interpret|stat|postulat|insist|"
    r"observ|note|call|see |saw |take |took |read |warn|object|disput|den[iy]))"
)
_AUTHORS = re.compile(
    rf"{_NAME}(?:(?:,? (?:and|&) {_NAME})?\s*[(\[]{_YEAR}(?:[,;] ?{_YEAR})*[)\]]"
    rf"|,? et al\.?(?:,?\s*[(\[]{_YEAR}[)\]]|,? {_YEAR})?|,? and (?:colleagues|co-?workers|collaborators))(?!\w)"
    rf"|{_NO_AUTHOR}[A-Z][a-z][\w’'-]+,? (?:and|&) {_NO_AUTHOR}[A-Z][a-z]\w+{_REPORTS}"
    rf"|(?<=[Ii]t was ){_NO_AUTHOR}[A-Z][a-z]+(?= who )"
    rf"|{_NO_AUTHOR}[A-Z][a-z]+(?= (?:has |had |once |famously )*"
    r"(?:argue[sd]|contend(?:s|ed)|claimed|asserted|wrote|writes|maintain(?:s|ed)) )"
)
_PARENTHESIS = re.compile(rf"\([^()]*{_YEAR}[^()]*\)|\[\d+(?:\s*[,;–-]\s*\d+)*\]")
_HYPHENS = str.maketrans(dict.fromkeys("‐‑‒–", "-") | {"’": "'", "‘": "'", "—": ";"})
_WORD = re.compile(rf"[{CITED_AUTHOR}{OPAQUE}]|\d+(?:[.,]\d+)*|\w+(?:[-'./_]\w+)*|[;:,?!%()]|--+")
_SPLIT = {
    CITED_AUTHOR: ("citedauthor",),
    OPAQUE: ("opaque",),
    "cannot": ("can", "not"),
    "can't": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
}
_QUOTES = (
    re.compile(r"“[^”]*”"),
    re.compile(r"‘(?:[^’]|’(?=\w))*’"),
    re.compile(r'"[^"]*"'),
    re.compile(r"«[^»]*»|„[^“”]*[“”]"),
    re.compile(r"(?<![\w'])'(?=\w)(?:[^']|'(?=\w))*?(?<=[\w.,!?])'(?!\w)"),
)


@dataclass(frozen=True)
class Words:
    """The words of a sentence.

    ``line`` holds all words in lower case, each followed by one space; punctuation marks are words. ``starts`` are
    their offsets in ``line``, ``quoted`` says which are in quotation marks.
    """

    line: str
    quoted: tuple[bool, ...]
    starts: tuple[int, ...]

    def index(self, offset: int) -> int:
        """Number of the word at an offset of ``line``."""
        return bisect_right(self.starts, offset) - 1


def quotations(text: str) -> list[tuple[int, int]]:
    """Start and end of text in quotation marks: “…”, "…", ‘…’, '…', «…», „…“."""
    return [match.span() for pattern in _QUOTES for match in pattern.finditer(text)]


def read_words(text: str, quoted: list[tuple[int, int]]) -> Words:
    """Normalise a sentence.

    Citations in brackets are left out, cited authors become one word, hyphens and quotes are unified, possessives and
    contracted negations become words.
    """
    for pattern, sign in ((_AUTHORS, CITED_AUTHOR), (_PARENTHESIS, CITATION)):
        text = pattern.sub(lambda m, s=sign: s + " " * (len(m[0]) - 1), text)  # type: ignore[misc]
    words: list[str] = []
    inside: list[bool] = []
    for match in _WORD.finditer(text.translate(_HYPHENS)):
        parts = _parts(match[0])
        words += parts
        inside += [any(a <= match.start() < b for a, b in quoted)] * len(parts)
    starts = [0, *accumulate(len(word) + 1 for word in words)][: len(words)]
    return Words("".join(f"{word} " for word in words), tuple(inside), tuple(starts))


def _parts(word: str) -> tuple[str, ...]:
    """The normalised words of one written word."""
    word = word.lower().strip("_")
    if word in _SPLIT:
        return _SPLIT[word]
    if word.endswith("n't"):
        return (word[:-3], "not")
    if word.endswith("'s"):
        return (word[:-2], "'s")
    return (";",) if word.startswith("--") else (word,)
