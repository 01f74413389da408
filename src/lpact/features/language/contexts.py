"""What a model reads for each word: passages by context, and windows of long passages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lpact.errors import ConfigError, FeatureError
from lpact.features.language.settings import WORD_BY_WORD, ReadingOptions
from lpact.features.language.text import Passage, Story
from lpact.features.language.tokens import WordTokens
from lpact.features.models import REVERSED, SENTENCE_RESET, SHUFFLED
from lpact.math.seeding import keyed_rng
from lpact.math.types import IntArray


@dataclass(frozen=True)
class Reading:
    """A passage, read for its words ``first …``; ``rows`` are the rows of all its words in the words table.

    ``begin`` is the farthest word of the story in a passage that is read for one word.
    """

    passage: Passage
    first: int
    rows: IntArray
    tokens: WordTokens | None = None
    begin: int = 0


def readings(
    context: str,
    draw: int,
    story: Story,
    tokens: WordTokens,
    options: ReadingOptions,
    *,
    one_by_one: bool,
    room: int,
) -> Iterator[Reading]:
    """Yield the passages of a story in the order of its words.

    ``tokens`` are those of the whole story; they determine how many words fit into ``room`` tokens. ``one_by_one``
    reads a passage for every word, the word last.
    """
    most = options.words_before(context)
    row = story.first_row
    if context not in WORD_BY_WORD and most is None and not one_by_one:
        for first, stop in stretches(context, story):
            whole = (first, stop) == (0, len(story.words))
            passage = story.passage if whole else story.piece(first, stop)
            yield Reading(passage, 0, row + np.arange(first, stop), tokens if whole else None)
        return
    for first, stop in stretches(context, story):
        for word in range(first, stop):
            begin = max(first, _reach(tokens, word, room))
            if most is not None:
                if begin > max(first, word - most):
                    raise _too_many_words(story, word, most, room)
                begin = max(first, word - most)
            yield word_reading(context, draw, story, begin, word)


def _too_many_words(story: Story, word: int, most: int, room: int) -> ConfigError:
    return ConfigError(
        f"{most} words before each word are more than the model can read at once",
        where=f"story '{story.id}', row {story.first_row + word + 1} ('{story.words[word]}')",
        got=f"words with more than the {room} tokens of a passage for one word",
        remedy="choose fewer words, or raise window_tokens (and word_context_tokens, if it is set)",
    )


def word_reading(context: str, draw: int, story: Story, begin: int, word: int) -> Reading:
    """The passage of a word and the words before it from ``begin`` on."""
    order = _order(context, draw, story, begin, word)
    in_order = context not in WORD_BY_WORD
    passage = story.piece(begin, word + 1) if in_order else story.arranged(order)
    return Reading(passage, word - begin, story.first_row + order, begin=begin)


def nearer(reading: Reading, tokens: WordTokens, room: int) -> int:
    """The word to begin with so that a passage of too many ``tokens`` fits: the farthest words go, the nearest stay."""
    over = len(tokens.ids) - room
    by_distance = np.argsort(reading.rows[:-1])
    sizes = (tokens.last - tokens.first + 1)[:-1][by_distance]
    n_dropped = int(np.searchsorted(np.cumsum(sizes), over)) + 1
    return reading.begin + min(n_dropped, len(sizes))


def _order(context: str, draw: int, story: Story, begin: int, word: int) -> IntArray:
    """The words ``begin … word`` as the context has them; ``word`` is last."""
    before = np.arange(begin, word)
    if context == REVERSED:
        before = before[::-1]
    elif context == SHUFFLED:
        before = _shuffled(before, draw, story, word)
    return np.append(before, word)


def _shuffled(before: IntArray, draw: int, story: Story, word: int) -> IntArray:
    order = keyed_rng(draw, "shuffled context", story.id, word).permutation(len(before))
    shuffled: IntArray = before[order]
    return shuffled


def _reach(tokens: WordTokens, word: int, room: int) -> int:
    """First word from which on everything up to ``word`` fits into ``room`` tokens; ``word`` itself at least."""
    from_token = int(tokens.last[word]) + 1 - room
    return min(word, int(np.searchsorted(tokens.first, from_token, side="left")))


def stretches(context: str, story: Story) -> list[tuple[int, int]]:
    """Words that share a context: sentences where it is cut at their starts, else the whole story."""
    n_words = len(story.words)
    if context != SENTENCE_RESET:
        return [(0, n_words)]
    if story.sentence is None:
        raise ConfigError(
            "the context 'sentence_reset' needs sentences",
            where=f"story '{story.id}', column 'sentence_id' of the words table",
            got="no such column",
            remedy="add the column, or leave the context out",
        )
    edges = np.flatnonzero(np.diff(story.sentence)) + 1
    bounds = [0, *edges.tolist(), n_words]
    return list(pairwise(bounds))


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
    """Yield windows of at most ``room`` tokens that read the words ``words[0] … words[1] − 1``, each once.

    A window has at least ``room − stride`` tokens before its first word, or all of them. It begins within a word only
    if its first word would not fit otherwise. ``overhang`` is the number of tokens after the last word that the model
    may see; without it, the window of a word depends only on tokens up to it. ``label`` names a word in messages.
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
                remedy=f"raise stride_tokens to at least {size}, and window_tokens with it, or split the word",
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
            got=f"{stop - int(tokens.first[-1])} tokens; there is room for {room}",
            remedy="raise word_context_tokens, and window_tokens if that is less",
        )
    return Window(int(tokens.first[first]), stop, n_words - 1, n_words)


def _word_start(tokens: WordTokens, token: int) -> int:
    """The token itself, or the first of the word that it is amid."""
    word = int(np.searchsorted(tokens.first, token, side="right")) - 1
    amid = word >= 0 and token <= tokens.last[word]
    return int(tokens.first[word]) if amid else token
