"""Words in a transcript: found by their letters, in order; the transcript may contain more than the words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TypeAlias

import numpy as np

from lpact.errors import StimulusError
from lpact.math.types import BoolArray, IntArray

Stretch: TypeAlias = tuple[int, int]
"""Characters ``[start, end)`` of a text."""

ANCHOR = 24
"""Letters that must agree in a row after a stretch that is in no word."""
MOST_ANCHOR = 80
"""The same after a very long stretch: one letter more for every 20 that are skipped."""
REWIND = 64
"""Letters before a disagreement within which a stretch may have begun."""
SHOWN = 40
"""Characters of the transcript that a message shows on either side."""

BLANKS = "".join(c for c in map(chr, range(0x3001)) if c.isspace()) + "\u200b\u2060\ufeff"
"""Characters that separate words and are not seen: white space, zero-width space, joiner, BOM."""

_BLANK_CODES = np.array(sorted(map(ord, BLANKS)))
_DASHES = frozenset("-‐‑‒–—―−⸺⸻")
_SINGLE_QUOTES = frozenset("'`´‘’‚‛′‹›ʹʻʼʽˈ")
_DOUBLE_QUOTES = frozenset('"“”„‟″«»〝〞')
_SPELLED_BRACKETS = dict(zip(("-lrb-", "-rrb-", "-lsb-", "-rsb-", "-lcb-", "-rcb-"), "()[]{}", strict=True))
"""Brackets as treebanks spell them (``-LRB-``)."""
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
_BRACKETS = re.compile(
    r"\[[^\[\]]{0,400}\]|\([^()]{0,400}\)|\{[^{}]{0,400}\}|<[^<>]{0,400}>|\*[^*\n]{1,120}\*"
    r"|（[^（）]{0,400}）|［[^［］]{0,400}］|【[^【】]{0,400}】"
)
_LABEL = re.compile(
    r"(?:^|[\])}>）］】])[ \t]*([^\s:：\[\](){}<>]+(?:[ \t]+[^\s:：\[\](){}<>]+){0,3}"
    r"[ \t]*(?:\([^()\n]{0,60}\)|\[[^\[\]\n]{0,60}\])?[ \t]*[:：])",
    re.MULTILINE,
)
_CAPITALS = re.compile(r"^[^\n]{1,60}$", re.MULTILINE)


@dataclass(frozen=True)
class Passage:
    """A text and the characters ``[starts, ends)`` of its words, [n words] each, in reading order."""

    text: str
    starts: IntArray
    ends: IntArray

    def words(self) -> list[str]:
        """Return every word as it is written in the text."""
        spans = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.text[start:end] for start, end in spans]


def locate(words: Sequence[str], text: str, *, where: str, first_row: int = 0) -> tuple[Passage, list[Stretch]]:
    """Find every word, in order, in a transcript; return the passage and the stretches that are in no word.

    Only letters and digits count: case, accents, punctuation, spaces and Unicode form may differ. A word's span is
    from its first to its last letter, with adjacent punctuation that the cell has too. A word without letters (``--``)
    is found between its neighbours. Stretches in no word are stage directions and names of speakers; one that is
    neither in brackets nor a label is accepted only if the next 24 letters of the words follow it. A missing word is a
    `StimulusError`; rows count from ``first_row``.
    """
    cells = [_SPELLED_BRACKETS.get(w.strip(BLANKS).lower(), w.strip(BLANKS)) for w in words]
    letters = ["".join(map(_letters, cell)) for cell in cells]
    n_letters = np.array([len(own) for own in letters], dtype=np.int64)
    stop = np.cumsum(n_letters)
    first = stop - n_letters
    stream = _stream(text)
    begins = np.zeros(int(n_letters.sum()) + 1, dtype=np.bool_)
    begins[first[n_letters > 0]] = True
    try:
        at = stream.at[_Aligner("".join(letters), begins, text, stream).places()]
    except _NotFound as error:
        at_word, at_text = error.args
        i = int(np.searchsorted(stop, at_word, side="right"))
        place = int(stream.at[at_text]) if at_text < stream.at.size else len(text)
        expected = "every word of the table, in order; case, accents, punctuation and spaces may differ"
        raise _missing(words[i], first_row + i, text, place, where, expected) from None
    # The next letter of any word after each word.
    following = np.append(at, len(text))[stop]
    starts, ends = np.zeros_like(first), np.zeros_like(first)
    reached = 0
    for i, cell in enumerate(cells):
        if n_letters[i]:
            core = int(at[first[i]]), int(at[stop[i] - 1]) + 1
            found: Stretch | None = _with_punctuation(cell, text, *core, low=reached)
        else:
            found = _find_signs(cell, text, reached, int(following[i]))
        if found is None:
            expected = "the same signs between the words before and after it"
            raise _missing(words[i], first_row + i, text, reached, where, expected)
        starts[i], ends[i] = found
        reached = max(reached, found[1])
    return Passage(text, starts, ends), _skipped(text, stream, at, starts, ends)


def _missing(word: str, row: int, text: str, place: int, where: str, expected: str) -> StimulusError:
    around = text[max(place - SHOWN, 0) : place] + "⟨here⟩" + text[place : place + SHOWN]
    return StimulusError(
        f"the word {word!r} is not in the transcript where it should be",
        where=f"{where}, row {row + 1}, word {word!r}",
        got=repr(around) + ("" if place < len(text) else ", where the transcript ends"),
        expected=expected,
        remedy="correct the word or the transcript there (numbers must be written alike), or leave the transcript out",
    )


def _skipped(text: str, stream: _Stream, at: IntArray, starts: IntArray, ends: IntArray) -> list[Stretch]:
    """Return text with letters between words, without blanks at its ends."""
    unused = np.setdiff1d(stream.at, at)
    stretches = []
    for i in np.unique(np.searchsorted(ends, unused, side="right")).tolist():
        start = int(ends[i - 1]) if i else 0
        piece = text[start : int(starts[i]) if i < len(starts) else len(text)]
        start += len(piece) - len(piece.lstrip(BLANKS))
        stretches.append((start, start + len(piece.strip(BLANKS))))
    return stretches


# --- Spelling that does not count -------------------------------------------------------------------


@cache
def _letters(character: str) -> str:
    """What is compared of a character: its letters and digits after NFKD and case folding, or nothing."""
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    kept = []
    for piece in apart:
        if piece in _SINGLE_QUOTES or piece == "\u0640":  # tatweel only stretches a line
            continue
        if unicodedata.category(piece) in ("Mn", "Mc"):
            # Accents, nukta, Hebrew and Arabic points are often left out; other marks are parts of letters.
            place = unicodedata.combining(piece)
            optional = place == 7 or 10 <= place <= 36 or place >= 200
            if not optional and not _is_variation(piece):
                kept.append(piece)
        elif piece.isalnum():
            kept.append("i" if piece == "ı" else piece)
    return "".join(kept)


@cache
def _sign(character: str) -> str:
    """What is compared of a character that is no letter: dashes are equal, and so are quotes."""
    if character in _DASHES:
        return "-"
    if character in _DOUBLE_QUOTES:
        return "''"
    if character in _SINGLE_QUOTES:
        return "'"
    unseen = character in BLANKS or unicodedata.category(character) == "Cf"
    return "" if unseen or _is_variation(character) else unicodedata.normalize("NFKD", character)


def _is_variation(character: str) -> bool:
    return 0xFE00 <= ord(character) <= 0xFE0F


@cache
def _breaks(character: str) -> bool:
    """Whether a word may start after this character, which is no letter."""
    kind = unicodedata.category(character)
    inner = character in _SINGLE_QUOTES or kind[0] == "M" or character == "\u00ad"
    return not inner and (character in BLANKS or kind != "Cf")


def _code_points(text: str) -> IntArray:
    encoded = text.encode("utf-32-le", "surrogatepass")
    return np.frombuffer(encoded, dtype="<u4").astype(np.int64)


def blank_mask(text: str) -> BoolArray:
    """Return which characters are blank, [len(text)]."""
    return np.isin(_code_points(text), _BLANK_CODES)


@dataclass(frozen=True)
class _Stream:
    """The letters of a text: ``at`` is the character each came from, ``unit`` where words may start, [n letters].

    A word may start after a character that is neither letter, mark nor apostrophe, and at every character of a script
    that is written without spaces.
    """

    letters: str
    at: IntArray
    unit: BoolArray


def _stream(text: str) -> _Stream:
    pieces = [_letters(character) for character in text]
    at = np.repeat(np.arange(len(text)), [len(piece) for piece in pieces])
    breaks = [not piece and _breaks(c) for piece, c in zip(pieces, text, strict=True)]
    before = np.cumsum(np.array(breaks, dtype=np.int64))[at]
    codes = _code_points(text)[at]
    unspaced = np.zeros(at.size, dtype=np.bool_)
    for low, high in _UNSPACED:
        unspaced |= (codes >= low) & (codes <= high)
    unit = np.ones(at.size, dtype=np.bool_)
    unit[1:] = before[1:] > before[:-1]
    apart = (unspaced[1:] | unspaced[:-1]) & (at[1:] != at[:-1]) & ~unit[1:]
    for k in np.flatnonzero(apart) + 1:
        unit[k] = not unicodedata.category(text[at[k]]).startswith("M")
    return _Stream("".join(pieces), at, unit)


# --- Letters of words in letters of the transcript -------------------------------------------------


class _NotFound(Exception):
    """The words' letters from the first argument on are not in the transcript at letter of the second."""


class _Aligner:
    """Finds every letter of the words, in order, in a transcript.

    ``letters`` are those of all words in a row, ``begins`` says which of them begin a word. They agree with the
    transcript's in a row as long as they can. Where they part, some stretch of the transcript is in no word. It begins
    and ends where words of both begin. A stretch that looks like a stage direction (in brackets) or a speaker's name
    (before a colon, or a line in capitals) is left out if the next word follows it; any other stretch only if at least
    `ANCHOR` letters do.
    """

    def __init__(self, letters: str, begins: BoolArray, text: str, stream: _Stream) -> None:
        self.letters, self.begins, self.ends = letters, begins, begins.copy()
        self.ends[-1] = True
        self.text, self.unit = stream.letters, stream.unit
        self.brackets = dict(_in_letters(_BRACKETS.finditer(text), stream))
        self.marked = _marked(text, stream)
        kept = np.ones(len(self.text), dtype=np.bool_)
        for start, stops in self.marked.items():
            kept[start : max(stops)] = False
        plain = np.flatnonzero(kept)
        self.views = [(self.text, np.arange(len(self.text)))]
        if plain.size < len(self.text):
            self.views.append(("".join([self.text[i] for i in plain]), plain))

    def places(self) -> IntArray:
        """Return the transcript's letter of each letter of the words."""
        found = np.zeros(len(self.letters), dtype=np.int64)
        c = p = 0
        while True:
            n = _agree(self.letters, c, self.text, p)
            done = c + n == len(self.letters) and self._between_words(p + n)
            landing = self._after_mark(c, p, n) or (not done and self._after_anchor(c, p, n))
            stop = landing[0] if landing else c + n
            found[c:stop] = np.arange(p, p + stop - c)
            if not landing:
                if done:
                    return found
                # Blame the word at the start of the transcript's word in which the letters part.
                while n > 0 and not self._between_words(p + n):
                    n -= 1
                raise _NotFound(c + n, p + n)
            c, p = landing

    def _starts(self, c: int, p: int, n: int) -> list[tuple[int, int]]:
        """Where a stretch may begin, the latest first: a word starts on both sides."""
        starts: list[tuple[int, int]] = []
        for k in range(min(n, len(self.text) - p - 1), -1, -1):
            if starts and n - k > REWIND:
                break
            if self.begins[c + k] and self.unit[p + k]:
                starts.append((c + k, p + k))
        return starts

    def _after_mark(self, c: int, p: int, n: int) -> tuple[int, int] | None:
        best: tuple[int, int] | None = None
        most = 0
        for c1, p1 in self._starts(c, p, n):
            inside = p + n < self.brackets.get(p1, 0)  # the letters part inside brackets
            n_word = int(np.argmax(self.ends[c1 + 1 :])) + 1
            for q in self._mark_ends(p1):
                reach = _agree(self.letters, c1, self.text, q, REWIND + ANCHOR)
                if (c1 + reach > c + n or inside) and reach > most and reach >= n_word:
                    best, most = (c1, q), reach
        return best

    def _mark_ends(self, p: int) -> Iterator[int]:
        """Ends of one or several marked stretches in a row that begin at letter ``p``."""
        seen, queue = {p}, [p]
        while queue:
            for stop in self.marked.get(queue.pop(0), ()):
                if stop not in seen:
                    seen.add(stop)
                    queue.append(stop)
                    yield stop

    def _between_words(self, p: int) -> bool:
        return p == len(self.text) or bool(self.unit[p])

    def _after_anchor(self, c: int, p: int, n: int) -> tuple[int, int] | None:
        """The nearest place from which enough letters agree."""
        found = [
            (q - p1, (c1, q))
            for c1, p1 in self._starts(c, p, n)
            if (q := self._anchored(c1, p1, beyond=c + n)) is not None
        ]
        return min(found, key=lambda one: one[0])[1] if found else None

    def _anchored(self, c: int, p: int, *, beyond: int) -> int | None:
        """First letter after ``p`` from which enough of the words' letters from ``c`` on agree.

        The last few letters must be whole words at exactly one place.
        """
        last = len(self.letters) - c < ANCHOR
        views = (self._agreeing(view, at, c, p, beyond) for view, at in self.views)
        found = [places for view in views if (places := list(islice(view, 1 + last)))]
        if last:
            return next((places[0] for places in found if len(places) == 1), None)
        return min((places[0] for places in found), default=None)

    def _agreeing(self, view: str, at: IntArray, c: int, p: int, beyond: int) -> Iterator[int]:
        """Letters after ``p`` from which enough of the words' letters agree with a view of the transcript."""
        left = len(self.letters) - c
        anchor = self.letters[c : c + ANCHOR]
        i = view.find(anchor, int(np.searchsorted(at, p + 1)))
        while i >= 0:
            q = int(at[i])
            if left < ANCHOR:
                enough = self._between_words(int(at[i + left - 1]) + 1)
            else:
                reach = _agree(self.letters, c, view, i, MOST_ANCHOR + REWIND)
                needed = min(max(ANCHOR, (q - p) // 20), MOST_ANCHOR, left)
                enough = reach >= needed and c + reach > beyond
            if enough and self.unit[q]:
                yield q
            i = view.find(anchor, i + 1)


def _agree(a: str, i: int, b: str, j: int, most: int | None = None) -> int:
    """Return how many characters of ``a[i:]`` and ``b[j:]`` agree in a row, at most ``most``."""
    left = min(len(a) - i, len(b) - j, len(a) if most is None else most)
    n, step, grows = 0, 32, True
    while n < left:
        step = min(step, left - n)
        if a[i + n : i + n + step] == b[j + n : j + n + step]:
            n += step
            step = 2 * step if grows else step
        elif step == 1:
            break
        else:
            step, grows = step // 2, False
    return n


def _marked(text: str, stream: _Stream) -> dict[int, list[int]]:
    """Return stretches that look like no speech, in letters: ends (exclusive) by first letter."""
    kinds = [_in_letters(_BRACKETS.finditer(text), stream), _in_letters(_LABEL.finditer(text), stream, group=1)]
    if any(character.islower() for character in text):
        capitals = (match for match in _CAPITALS.finditer(text) if match.group().isupper())
        kinds.append(_in_letters(capitals, stream))
    ends: dict[int, list[int]] = {}
    for start, stop in (pair for kind in kinds for pair in kind):
        ends.setdefault(start, []).append(stop)
    return ends


def _in_letters(matches: Iterable[re.Match[str]], stream: _Stream, *, group: int = 0) -> list[tuple[int, int]]:
    """Return the matches' starts and ends, counted in letters; those without letters are left out."""
    spans = np.array([match.span(group) for match in matches], dtype=np.int64).reshape(-1, 2)
    return [(a, b) for a, b in np.searchsorted(stream.at, spans).tolist() if b > a]


# --- Punctuation -----------------------------------------------------------------------------------


def _with_punctuation(cell: str, text: str, start: int, end: int, *, low: int) -> Stretch:
    """Widen a span over marks of its last letter, and over punctuation that the cell has too."""
    lettered = [k for k, character in enumerate(cell) if _letters(character)]
    before, after = _signs(cell[: lettered[0]]), _signs(cell[lettered[-1] + 1 :])
    while end < len(text) and not _letters(text[end]) and unicodedata.category(text[end])[0] == "M":
        end += 1
    end += _n_shared((text[k] for k in range(end, len(text))), after)
    start -= _n_shared((text[k] for k in range(start - 1, low - 1, -1)), before[::-1])
    return start, end


def _n_shared(characters: Iterable[str], signs: str) -> int:
    """Return how many characters have these signs; a run of dashes counts as one sign."""
    n, previous = 0, ""
    for character in characters:
        sign = _sign(character)
        if _letters(character) or not sign:
            break
        if not sign == "-" == previous:
            if not signs.startswith(sign):
                break
            signs, previous = signs[len(sign) :], sign
        n += 1
    return n


def _signs(text: str) -> str:
    return re.sub("-+", "-", "".join(map(_sign, text)))


def _find_signs(cell: str, text: str, low: int, high: int) -> Stretch | None:
    """Find a cell without letters in ``text[low:high]``, at its first place."""
    wanted = _signs(cell) or cell
    signs = ""
    spans: list[Stretch] = []
    for k in range(low, high):
        character = text[k]
        sign = "\0" if _letters(character) else _sign(character)
        attached = not sign and unicodedata.category(character)[0] in "MC"
        if spans and (attached or (sign == "-" and signs.endswith("-"))):
            spans[-1] = (spans[-1][0], k + 1)
        else:
            signs += sign
            spans += [(k, k + 1)] * len(sign)
    place = signs.find(wanted)
    return None if place < 0 else (spans[place][0], spans[place + len(wanted) - 1][1])
