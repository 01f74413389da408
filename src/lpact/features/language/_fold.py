"""Spelling that does not count: text reduced to its letters and digits, in one form."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lpact.math.types import BoolArray, IntArray

BLANKS = "".join(c for c in map(chr, range(0x3001)) if c.isspace()) + "\u200b\u2060\ufeff"
"""Characters that separate words and are not seen: white space, zero-width space, joiner, BOM."""

_DASHES = frozenset("-‐‑‒–—―−⸺⸻")
_SINGLE_QUOTES = frozenset("'`´‘’‚‛′‹›ʹʻʼʽˈ")
_DOUBLE_QUOTES = frozenset('"“”„‟″«»〝〞')
_INNER = _SINGLE_QUOTES | {"\u00ad"}
_SPELLED_BRACKETS = {
    "-lrb-": "(",
    "-rrb-": ")",
    "-lsb-": "[",
    "-rsb-": "]",
    "-lcb-": "{",
    "-rcb-": "}",
}
_BLANK_CODES = np.array(sorted(map(ord, BLANKS)))
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x312F),  # CJK radicals and punctuation, kana, bopomofo
    (0x3190, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # half-width kana
    (0x1B000, 0x1B16F),
    (0x20000, 0x3FFFF),
)


class _Memo(dict[str, str]):
    """A function of one character, remembered."""

    def __init__(self, function: Callable[[str], str]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, character: str) -> str:
        value = self[character] = self._function(character)
        return value


def _is_dropped_mark(mark: str) -> bool:
    """Accents, nukta, Hebrew and Arabic points: often left out. Other marks are letters' parts."""
    place = unicodedata.combining(mark)
    return place == 7 or 10 <= place <= 36 or place >= 200


def _letters(character: str) -> str:
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    kept = []
    for piece in apart:
        if piece in _SINGLE_QUOTES or piece == "\u0640":  # tatweel only stretches a line
            continue
        kind = unicodedata.category(piece)
        if kind in ("Mn", "Mc"):
            if not _is_dropped_mark(piece) and not 0xFE00 <= ord(piece) <= 0xFE0F:
                kept.append(piece)
        elif piece.isalnum():
            kept.append("i" if piece == "ı" else piece)
    return "".join(kept)


def _sign(character: str) -> str:
    if character in _DASHES:
        return "-"
    if character in _DOUBLE_QUOTES:
        return "''"
    if character in _SINGLE_QUOTES:
        return "'"
    if character in BLANKS or unicodedata.category(character) == "Cf":
        return ""
    if 0xFE00 <= ord(character) <= 0xFE0F:
        return ""
    return unicodedata.normalize("NFKD", character)


LETTERS = _Memo(_letters)
"""What is compared of a character: its letters and digits after NFKD and case folding, or nothing."""

SIGNS = _Memo(_sign)
"""What is compared of a character that is no letter: dashes are equal, and so are quotes."""


def blank_mask(text: str) -> BoolArray:
    """Return which characters are blank, [len(text)]."""
    return np.isin(code_points(text), _BLANK_CODES)


def code_points(text: str) -> IntArray:
    """Return the code point of every character."""
    encoded = text.encode("utf-32-le", "surrogatepass")
    return np.frombuffer(encoded, dtype="<u4").astype(np.int64)


def fold(text: str) -> str:
    """Return the letters and digits of a text, without case, accents and Unicode form."""
    return "".join([LETTERS[character] for character in text])


def as_written(cell: str) -> str:
    """Return a cell with a bracket that treebanks spell out (``-LRB-``) as the bracket itself."""
    return _SPELLED_BRACKETS.get(cell.lower(), cell)


@dataclass(frozen=True)
class Stream:
    """The letters of a text: ``at`` is the character each came from, ``unit`` where words may start.

    A word may start after a character that is neither letter, mark nor apostrophe, and at every
    character of a script that is written without spaces.
    """

    letters: str
    at: IntArray
    unit: BoolArray


def stream(text: str) -> Stream:
    """Reduce a text to its letters; all arrays are [n letters]."""
    pieces = [LETTERS[character] for character in text]
    at = np.repeat(np.arange(len(text)), np.fromiter(map(len, pieces), np.int64, len(pieces)))
    if at.size == 0:
        return Stream("", at, np.zeros(0, dtype=np.bool_))
    breaks = np.fromiter(
        (not piece and _breaks(c) for piece, c in zip(pieces, text, strict=True)),
        np.int64,
        len(pieces),
    )
    before = np.cumsum(breaks)[at]
    codes = code_points(text)[at]
    unspaced = np.zeros(at.size, dtype=np.bool_)
    for low, high in _UNSPACED:
        unspaced |= (codes >= low) & (codes <= high)
    unit = np.ones(at.size, dtype=np.bool_)
    unit[1:] = before[1:] > before[:-1]
    apart = unspaced[1:] | unspaced[:-1]
    apart &= at[1:] != at[:-1]
    for k in np.flatnonzero(apart & ~unit[1:]):
        unit[k + 1] = not unicodedata.category(text[at[k + 1]]).startswith("M")
    return Stream("".join(pieces), at, unit)


def _breaks(character: str) -> bool:
    return (
        character not in _INNER
        and unicodedata.category(character)[0] != "M"
        and (character in BLANKS or unicodedata.category(character) != "Cf")
    )
