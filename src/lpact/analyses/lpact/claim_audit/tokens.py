"""A sentence as normalised words: one string in which rules search, and the way back to the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from lpact.analyses.lpact.claim_audit.blocks import CITATION, CITED_AUTHOR, OPAQUE

AUTHOR_WORD, OPAQUE_WORD = "citedauthor", "opaque"
"""What stands for a cited author, and for code or mathematics, among the words."""

_YEAR = r"(?:1[89]|20)\d\d[a-z]?"
_NAME = r"[A-Z][\w’'-]+"
_NO_AUTHOR = (
    r"(?!(?:Llama|Mistral|Pythia|Bert|Falcon|Gemma|Qwen|Bloom|Claude|Gemini|Mamba|Transformers?|Brains?|"
    r"Cortex|Models?|"
    r"Machines?|Humans?|People|Listeners|Networks?|Both|This|That|It|We|Here|Which|These|Those|Evidence|Nobody|"
    r"Everyone|Logic|Results|Data|Prediction|Stripping|Level|Layers?|Table|Figure|Podcast|Silicon)\b)"
)
_REPORTS = (
    r"(?= (?:have |had |has |also |recently |once |both |later )*(?:argu|claim|conclud|assert|contend|"
    r"maintain|wr[io]t|"
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

    Attributes
    ----------
    line
        All words in lower case, each followed by one space; punctuation marks are words.
    spans
        Place of each word in the sentence.
    quoted
        Whether each word stands in quotation marks.
    """

    line: str
    spans: tuple[tuple[int, int], ...]
    quoted: tuple[bool, ...]
    starts: tuple[int, ...]

    def index(self, place: int) -> int:
        """Number of the word at a place of ``line``."""
        return bisect_right(self.starts, place) - 1


def quotations(text: str) -> list[tuple[int, int]]:
    """Stretches in quotation marks: “…”, "…", ‘…’, '…', «…», „…“."""
    return [match.span() for pattern in _QUOTES for match in pattern.finditer(text)]


def read_words(text: str, quoted: list[tuple[int, int]]) -> Words:
    """Normalise a sentence.

    Citations in brackets are left out, cited authors become one word, hyphens and quotes are made alike,
    possessives and contracted negations are split off.
    """
    for pattern, sign in ((_AUTHORS, CITED_AUTHOR), (_PARENTHESIS, CITATION)):
        text = pattern.sub(lambda m, s=sign: s + " " * (len(m[0]) - 1), text)  # type: ignore[misc]
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    for match in _WORD.finditer(text.translate(_HYPHENS)):
        for word in _parts(match[0]):
            words.append(word)
            spans.append(match.span())
    starts = [0, *accumulate(len(word) + 1 for word in words)][: len(words)]
    inside = tuple(any(a <= start < b for a, b in quoted) for start, _ in spans)
    return Words("".join(f"{word} " for word in words), tuple(spans), inside, tuple(starts))


def _parts(word: str) -> tuple[str, ...]:
    """The normalised words that one written word holds."""
    if word == CITED_AUTHOR:
        return (AUTHOR_WORD,)
    if word == OPAQUE:
        return (OPAQUE_WORD,)
    word = word.lower().strip("_")
    if word in _SPLIT:
        return _SPLIT[word]
    if word.endswith("n't"):
        return (word[:-3], "not")
    if word.endswith("'s"):
        return (word[:-2], "'s")
    if word.startswith("--"):
        return (";",)
    return (word,)
