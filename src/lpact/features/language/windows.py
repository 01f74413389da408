"""Long passages, cut into windows that a model can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    label: Callable[[int], str] | None = None,
) -> Iterator[Window]:
    """Yield windows of at most ``room`` tokens in which the words ``words[0] … words[1] − 1`` are read, each once.

    A window holds at least ``room − stride`` tokens before the first word that it is read for, or all that there are.
    It begins at a word or in a stretch of no word; amid a word only where the first word that it is read for would not
    fit otherwise. Without ``overhang``, the window of a word depends on the tokens up to that word alone.
    ``overhang``: tokens after the last word that stay in the window, where the model may see them. ``label`` names a
    word in messages.
    """
    done, stop_word = words
    end = min(len(tokens.ids), int(tokens.last[stop_word - 1]) + 1 + overhang)
    while done < stop_word:
        before = max(0, int(tokens.first[done]) - (room - stride))
        begin = _word_start(tokens, before)
        if tokens.last[done] >= begin + room:
            begin = before
        if tokens.last[done] >= begin + room:
            size = int(tokens.last[done] - tokens.first[done]) + 1
            raise FeatureError(
                "a word does not fit into the window that a model reads",
                where=where if label is None else f"{where}, {label(done)}",
                got=f"{size} tokens, after {room - stride} tokens of context, in a window of {room}",
                expected="at least one whole word a window",
                remedy=f"raise stride_tokens to at least {size}, and window_tokens with it; a model that cannot read "
                "so many tokens at once cannot read the word: split it into several rows",
            )
        reach = begin + room if end <= begin + room else begin + room - overhang
        last = int(np.searchsorted(tokens.last, reach, side="left"))
        last = min(max(last, done + 1), stop_word)
        yield Window(
            begin, min(end, int(tokens.last[last - 1]) + 1 + overhang, begin + room), done, last
        )
        done = last


def tail(tokens: WordTokens, *, room: int, where: str) -> Window:
    """The window of at most ``room`` tokens that is read for a passage's last word.

    It ends with that word, and begins with the passage, or else with the first word from which on all fits.
    """
    n_words, stop = len(tokens.first), int(tokens.last[-1]) + 1
    if stop <= room:
        return Window(0, stop, n_words - 1, n_words)
    first = int(np.searchsorted(tokens.first, stop - room, side="left"))
    if first == n_words:
        raise FeatureError(
            "a word does not fit into the passage that a model reads for it",
            where=where,
            got=f"{stop - int(tokens.first[-1])} tokens, where there is room for {room}",
            expected="at least the word itself",
            remedy="raise word_context_tokens, and window_tokens if that is less",
        )
    return Window(int(tokens.first[first]), stop, n_words - 1, n_words)


def _word_start(tokens: WordTokens, token: int) -> int:
    """The token itself, or the first of the word that it is amid."""
    word = int(np.searchsorted(tokens.first, token, side="right")) - 1
    amid = word >= 0 and token <= tokens.last[word]
    return int(tokens.first[word]) if amid else token
