"""Letters of words against letters of a transcript, which may hold more than the words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from lpact.features.language._fold import Stream
from lpact.math.types import BoolArray

ANCHOR = 24
"""Letters that must agree in a row after a stretch that is in no word."""

MOST_ANCHOR = 80
"""The same after a very long stretch: one letter more for every 20 that are left out."""

REWIND = 64
"""Letters before a disagreement within which a stretch may have begun."""

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


class NotFoundError(Exception):
    """The words' letters from ``at_word`` on are not in the transcript at letter ``at_text``."""

    def __init__(self, at_word: int, at_text: int) -> None:
        super().__init__(at_word, at_text)
        self.at_word = at_word
        self.at_text = at_text


class Aligner:
    """Finds every letter of the words, in order, in a transcript.

    Parameters
    ----------
    letters
        Letters of all words in a row.
    word_start
        Which of them begin a word, [n letters].
    text
        The transcript.
    stream
        Its letters.

    The letters agree in a row as long as they can. Where they part, some stretch of the transcript
    is in no word. It begins and ends where words of both begin. A stretch that looks like a stage
    direction (in brackets) or a speaker's name (before a colon, or a line in capitals) is left out
    if the next word follows it; any other stretch only if at least `ANCHOR` letters do.
    """

    def __init__(self, letters: str, word_start: BoolArray, text: str, stream: Stream) -> None:
        self.letters = letters
        self.word_start = word_start
        self.stream = stream
        self.brackets = _in_letters(_BRACKETS.finditer(text), stream)
        self.marked = _marked(text, stream)
        kept = np.ones(len(stream.letters), dtype=np.bool_)
        for start, stops in self.marked.items():
            kept[start : max(stops)] = False
        self.plain_at = np.flatnonzero(kept)
        self.plain = "".join([stream.letters[i] for i in self.plain_at])

    def segments(self) -> list[tuple[int, int, int]]:
        """Return runs that agree: first letter of the words, of the transcript, and length."""
        found: list[tuple[int, int, int]] = []
        c = p = 0
        while True:
            n = agree(self.letters, c, self.stream.letters, p)
            done = c + n == len(self.letters) and self._between_words(p + n)
            landing = self._after_mark(c, p, n) or (not done and self._after_anchor(c, p, n))
            if done and not landing:
                return [*found, (c, p, n)]
            if not landing:
                raise self._not_found(c, p, n)
            if landing[0] > c:
                found.append((c, p, landing[0] - c))
            c, p = landing

    def _starts(self, c: int, p: int, n: int) -> list[tuple[int, int]]:
        """Where a stretch may begin, the latest first: a word starts on both sides."""
        starts: list[tuple[int, int]] = []
        for k in range(n, -1, -1):
            if starts and n - k > REWIND:
                break
            if (
                p + k < len(self.stream.letters)
                and self.word_start[c + k]
                and self.stream.unit[p + k]
            ):
                starts.append((c + k, p + k))
        return starts

    def _after_mark(self, c: int, p: int, n: int) -> tuple[int, int] | None:
        best: tuple[int, int] | None = None
        most = 0
        for c1, p1 in self._starts(c, p, n):
            inside = p + n < self.brackets.get(p1, 0)  # the letters part inside brackets
            for q in self._mark_ends(p1):
                reach = agree(self.letters, c1, self.stream.letters, q, most=REWIND + ANCHOR)
                if (
                    (c1 + reach > c + n or inside)
                    and reach > most
                    and reach >= self._word_length(c1)
                ):
                    best, most = (c1, q), reach
        return best

    def _mark_ends(self, p: int) -> Iterator[int]:
        """Ends of one or several marked stretches in a row that begin at letter ``p``."""
        seen = {p}
        queue = [p]
        while queue:
            for stop in self.marked.get(queue.pop(0), ()):
                if stop not in seen:
                    seen.add(stop)
                    queue.append(stop)
                    yield stop

    def _between_words(self, p: int) -> bool:
        return p == len(self.stream.letters) or bool(self.stream.unit[p])

    def _word_length(self, c: int) -> int:
        stop = c + 1
        while stop < len(self.letters) and not self.word_start[stop]:
            stop += 1
        return stop - c

    def _after_anchor(self, c: int, p: int, n: int) -> tuple[int, int] | None:
        starts = self._starts(c, p, n)
        whole = len(self.stream.letters)
        for window in (512, 8192, 131072, whole):
            best: tuple[int, int] | None = None
            least = whole + 1
            for c1, p1 in starts:
                q = self._anchored(c1, p1, min(p1 + window, whole), beyond=c + n)
                if q is not None and q - p1 < least:
                    best, least = (c1, q), q - p1
            if best is not None or window >= whole:
                return best
        return None

    def _anchored(self, c: int, p: int, stop: int, *, beyond: int) -> int | None:
        """First letter after ``p`` from which enough of the words' letters from ``c`` on agree."""
        left = len(self.letters) - c
        if left < ANCHOR:
            return self._tail(c, p) if stop == len(self.stream.letters) else None
        anchor = self.letters[c : c + ANCHOR]
        q = self.stream.letters.find(anchor, p + 1, stop)
        while q >= 0:
            reach = agree(self.letters, c, self.stream.letters, q, most=MOST_ANCHOR + REWIND)
            if self.stream.unit[q] and self._enough(c, reach, q - p, beyond):
                return q
            q = self.stream.letters.find(anchor, q + 1, stop)
        if self.plain_at.size == len(self.stream.letters):
            return None
        low, high = np.searchsorted(self.plain_at, (p + 1, stop)).tolist()
        i = self.plain.find(anchor, low, high)
        while i >= 0:
            q = int(self.plain_at[i])
            reach = agree(self.letters, c, self.plain, i, most=MOST_ANCHOR + REWIND)
            if self.stream.unit[q] and self._enough(c, reach, q - p, beyond):
                return q
            i = self.plain.find(anchor, i + 1, high)
        return None

    def _enough(self, c: int, reach: int, skipped: int, beyond: int) -> bool:
        needed = min(max(ANCHOR, skipped // 20), MOST_ANCHOR, len(self.letters) - c)
        return reach >= needed and c + reach > beyond

    def _tail(self, c: int, p: int) -> int | None:
        """The last few letters, if they stand as whole words at exactly one place after ``p``."""
        tail = self.letters[c:]
        whole = np.arange(len(self.stream.letters))
        for letters, at in ((self.stream.letters, whole), (self.plain, self.plain_at)):
            places: list[int] = []
            i = letters.find(tail, int(np.searchsorted(at, p + 1)))
            while i >= 0 and len(places) < 2:
                if self.stream.unit[at[i]] and self._between_words(at[i + len(tail) - 1] + 1):
                    places.append(int(at[i]))
                i = letters.find(tail, i + 1)
            if len(places) == 1:
                return places[0]
        return None

    def _not_found(self, c: int, p: int, n: int) -> NotFoundError:
        """Blame the word at the start of the transcript's word in which the letters part."""
        k = n
        while k > 0 and not self._between_words(p + k):
            k -= 1
        return NotFoundError(c + k, p + k)


def agree(a: str, i: int, b: str, j: int, *, most: int | None = None) -> int:
    """Return how many characters of ``a[i:]`` and ``b[j:]`` agree in a row, at most ``most``."""
    left = min(len(a) - i, len(b) - j)
    if most is not None:
        left = min(left, most)
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


def _marked(text: str, stream: Stream) -> dict[int, list[int]]:
    """Return stretches that look like no speech, in letters: ends (exclusive) by first letter."""
    kinds = [
        _in_letters(_BRACKETS.finditer(text), stream),
        _in_letters(_LABEL.finditer(text), stream, group=1),
    ]
    if any(character.islower() for character in text):
        capitals = (match for match in _CAPITALS.finditer(text) if match.group().isupper())
        kinds.append(_in_letters(capitals, stream))
    ends: dict[int, list[int]] = {}
    for kind in kinds:
        for start, stop in kind.items():
            ends.setdefault(start, []).append(stop)
    return ends


def _in_letters(
    matches: Iterable[re.Match[str]], stream: Stream, *, group: int = 0
) -> dict[int, int]:
    """Return the matches' ends by their starts, counted in letters; those without letters are left out."""
    spans = np.array([match.span(group) for match in matches], dtype=np.int64).reshape(-1, 2)
    return {
        start: stop for start, stop in np.searchsorted(stream.at, spans).tolist() if stop > start
    }
