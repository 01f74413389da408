"""Spans of words in a transcript: letters by alignment, then adjacent punctuation."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from lpact.errors import StimulusError
from lpact.features.language._align import Aligner, NotFoundError
from lpact.features.language._fold import BLANKS, LETTERS, SIGNS, Stream, as_written, fold, stream
from lpact.math.types import IntArray

Stretch: TypeAlias = tuple[int, int]
"""Characters ``[start, end)`` of a text."""

SHOWN = 40
"""Characters of the transcript that a message shows on either side."""


def word_spans(
    words: Sequence[str], text: str, *, where: str, first_row: int = 0
) -> tuple[IntArray, IntArray, list[Stretch]]:
    """Return starts and ends of the words, [n words] each, and the stretches that are in no word."""
    cells = [as_written(word.strip(BLANKS)) for word in words]
    letters = [fold(cell) for cell in cells]
    n_letters = np.array([len(piece) for piece in letters], dtype=np.int64)
    first = np.cumsum(n_letters) - n_letters
    text_stream = stream(text)
    at = _letter_places(letters, first, n_letters, text, text_stream, words, where, first_row)
    starts = np.zeros(len(cells), dtype=np.int64)
    ends = np.zeros(len(cells), dtype=np.int64)
    following = _next_letter(at, first, n_letters, len(text))
    reached = 0
    for i, cell in enumerate(cells):
        if n_letters[i]:
            core = int(at[first[i]]), int(at[first[i] + n_letters[i] - 1]) + 1
            start, end = _with_punctuation(cell, text, *core, low=reached)
        else:
            found = _find_signs(cell, text, reached, int(following[i]))
            if found is None:
                raise _missing(words[i], first_row + i, text, reached, where, signs=True)
            start, end = found
        starts[i], ends[i] = start, end
        reached = max(reached, end)
    return starts, ends, _skipped(text, text_stream, at, starts, ends)


def _letter_places(
    letters: Sequence[str],
    first: IntArray,
    n_letters: IntArray,
    text: str,
    text_stream: Stream,
    words: Sequence[str],
    where: str,
    first_row: int,
) -> IntArray:
    """Return the character of the transcript that each letter of the words is found at."""
    joined = "".join(letters)
    word_start = np.zeros(len(joined) + 1, dtype=np.bool_)
    word_start[first[n_letters > 0]] = True
    try:
        segments = Aligner(joined, word_start, text, text_stream).segments()
    except NotFoundError as error:
        i = int(np.searchsorted(first + n_letters, error.at_word, side="right"))
        place = len(text)
        if error.at_text < text_stream.at.size:
            place = int(text_stream.at[error.at_text])
        raise _missing(words[i], first_row + i, text, place, where) from None
    found = np.zeros(len(joined), dtype=np.int64)
    for c, p, n in segments:
        found[c : c + n] = text_stream.at[p : p + n]
    return found


def _next_letter(at: IntArray, first: IntArray, n_letters: IntArray, n_text: int) -> IntArray:
    """Return, for every word, the character of the next word that has letters."""
    following = np.full(len(first), n_text, dtype=np.int64)
    after = n_text
    for i in range(len(first) - 1, -1, -1):
        following[i] = after
        if n_letters[i]:
            after = int(at[first[i]])
    return following


def _with_punctuation(cell: str, text: str, start: int, end: int, *, low: int) -> Stretch:
    """Widen a span over marks of its last letter, and over punctuation that the cell has too."""
    before, after = _around(cell)
    while end < len(text) and not LETTERS[text[end]] and unicodedata.category(text[end])[0] == "M":
        end += 1
    previous = ""
    while end < len(text) and not LETTERS[text[end]] and (sign := SIGNS[text[end]]):
        if sign == "-" == previous:
            end += 1
            continue
        if not after.startswith(sign):
            break
        after, previous, end = after[len(sign) :], sign, end + 1
    previous = ""
    while start > low and not LETTERS[text[start - 1]] and (sign := SIGNS[text[start - 1]]):
        if sign == "-" == previous:
            start -= 1
            continue
        if not before.endswith(sign):
            break
        before, previous, start = before[: -len(sign)], sign, start - 1
    return start, end


def _around(cell: str) -> tuple[str, str]:
    """Return the signs before the first and after the last letter of a cell, runs of dashes as one."""
    lettered = [k for k, character in enumerate(cell) if LETTERS[character]]
    return _signs(cell[: lettered[0]]), _signs(cell[lettered[-1] + 1 :])


def _signs(text: str) -> str:
    signs = ""
    for character in text:
        sign = SIGNS[character]
        if not (sign == "-" and signs.endswith("-")):
            signs += sign
    return signs


def _find_signs(cell: str, text: str, low: int, high: int) -> Stretch | None:
    """Find a cell without letters in ``text[low:high]``, at its first place."""
    wanted = _signs(cell) or cell
    signs: list[str] = []
    spans: list[Stretch] = []
    for k in range(low, high):
        character = text[k]
        if LETTERS[character]:
            sign = "\0"
        elif not (sign := SIGNS[character]):
            if signs and unicodedata.category(character)[0] in "MC":
                spans[-1] = (spans[-1][0], k + 1)
            continue
        if sign == "-" and signs and signs[-1] == "-":
            spans[-1] = (spans[-1][0], k + 1)
            continue
        for piece in sign:
            signs.append(piece)
            spans.append((k, k + 1))
    place = "".join(signs).find(wanted)
    if place < 0:
        return None
    return spans[place][0], spans[place + len(wanted) - 1][1]


def _skipped(
    text: str, text_stream: Stream, at: IntArray, starts: IntArray, ends: IntArray
) -> list[Stretch]:
    """Return text with letters between words, without blanks at its ends."""
    used = np.zeros(len(text), dtype=np.bool_)
    used[at] = True
    unused = text_stream.at[~used[text_stream.at]]
    gap = np.unique(np.searchsorted(ends, unused, side="right"))
    stretches = []
    for i in gap.tolist():
        start = int(ends[i - 1]) if i else 0
        end = int(starts[i]) if i < len(starts) else len(text)
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip(BLANKS))
        stretches.append((start, start + len(piece.strip(BLANKS))))
    return stretches


def _missing(
    word: str, row: int, text: str, place: int, where: str, *, signs: bool = False
) -> StimulusError:
    around = text[max(place - SHOWN, 0) : place] + "⟨here⟩" + text[place : place + SHOWN]
    return StimulusError(
        f"the word {word!r} is not in the transcript where it should be",
        where=f"{where}, row {row + 1}, word {word!r}",
        got=repr(around) + ("" if place < len(text) else ", where the transcript ends"),
        expected="the same signs between the words before and after it"
        if signs
        else "every word of the table, in order; case, accents, punctuation and spaces may differ",
        remedy="correct the word or the transcript there (numbers must be written alike), "
        "or leave the transcript out",
    )
