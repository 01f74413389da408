"""Long passages, cut into windows that a model can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lpact.errors import FeatureError
from lpact.features.language.tokens import WordTokens


@dataclass(frozen=True)
class Window:
    """Tokens ``begin … stop − 1`` of a passage, read for its words ``first … last − 1``."""

    begin: int
    stop: int
    first: int
    last: int


def cut(
    tokens: WordTokens,
    words: tuple[int, int],
    *,
    room: int,
    stride: int,
    where: str,
    overhang: int = 0,
) -> Iterator[Window]:
    """Yield windows of at most ``room`` tokens in which the words ``words[0] … words[1] − 1`` are read, each once.

    A window begins at a word, and holds at least ``room − stride`` tokens before the first word that it is read for, or
    all that there are; more, where the words that are left need less room. ``overhang``: tokens after the last word
    that stay in the window, where the model may see them.
    """
    done, stop_word = words
    n_tokens = len(tokens.ids)
    while done < stop_word:
        needed_before = room - stride
        before = int(tokens.first[done]) - needed_before
        # The last window begins as early as what is left allows.
        fitting = int(tokens.last[stop_word - 1]) + 1 + min(overhang, n_tokens) - room
        begin = _word_start(tokens, before, side="right")
        if fitting <= 0:
            begin = 0
        elif (early := _word_start(tokens, fitting, side="left")) < begin:
            begin = early
        last = int(np.searchsorted(tokens.last, begin + room, side="left"))
        last = min(last, stop_word)
        if last <= done:
            size = int(tokens.last[done] - tokens.first[done]) + 1
            raise FeatureError(
                "a word does not fit into the window that a model reads",
                where=f"{where}, word {done} of the passage",
                got=f"{size} tokens, after {needed_before} tokens of context, in a window of {room}",
                expected="at least one whole word a window",
                remedy="raise window_tokens, or lower stride_tokens' share of it",
            )
        stop = min(n_tokens, int(tokens.last[last - 1]) + 1 + overhang, begin + room)
        yield Window(begin, stop, done, last)
        done = last


def _word_start(tokens: WordTokens, token: int, *, side: str) -> int:
    """First token of the last word that starts at or before ``token`` (right), or of the first from it on (left)."""
    if token <= 0:
        return 0
    if side == "right":
        return int(tokens.first[np.searchsorted(tokens.first, token, side="right") - 1])
    place = int(np.searchsorted(tokens.first, token, side="left"))
    return int(tokens.first[min(place, len(tokens.first) - 1)])
