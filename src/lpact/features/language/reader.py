"""What a model reads for each word: passages by context, windows, batches and cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from lpact.errors import ConfigError, FeatureError
from lpact.features.language.language_model import (
    LanguageModel,
    ReadSequence,
    Rows,
    batches,
    onto,
    read_causal,
    read_masked,
    read_static,
)
from lpact.features.language.model_files import require
from lpact.features.language.settings import WORD_BY_WORD, ReadingOptions
from lpact.features.language.text import Story, WordTokens, tokenise
from lpact.features.language.transcript import Passage
from lpact.features.models import REVERSED, SENTENCE_RESET, SHUFFLED, STATIC
from lpact.math.seeding import keyed_rng
from lpact.math.types import IntArray

PASSAGES_AT_A_TIME = 512
"""Passages per call of the tokenizer."""
BLOCK_BYTES = 64 * 2**20
BLOCK_BATCHES = 16
"""Largest block of words: bytes of its states, and batches of its tokens."""
FEWEST_BLOCK_WORDS = 128
"""A block ends with its story, unless it has fewer words."""


@dataclass
class StoryReader:
    """A model and the stories of one words table; ``where`` names the table in messages."""

    model: LanguageModel
    stories: Sequence[Story]
    options: ReadingOptions
    where: str
    _story_tokens: dict[int, WordTokens] = field(default_factory=dict)

    @property
    def batch_tokens(self) -> int:
        """Most tokens of one pass."""
        return self.options.batch_tokens or (2048 if self.model.device == "cpu" else 32768)

    def blocks(self, context: str, draw: int) -> Iterator[list[ReadSequence]]:
        """Yield sequences in the order of their words, in blocks that depend only on text and options."""
        self._check_context(context)
        model = self.model
        per_word = (model.n_layers + 1) * model.width * 4
        room = BLOCK_BYTES if model.device == "cpu" else 2 * BLOCK_BYTES
        most_words = max(FEWEST_BLOCK_WORDS, room // per_word)
        most_tokens = BLOCK_BATCHES * self.batch_tokens
        block: list[ReadSequence] = []
        n_words = n_tokens = 0
        for story in self.stories:
            for sequence in self._sequences(context, draw, story):
                block.append(sequence)
                n_words += len(sequence.rows)
                n_tokens += len(sequence.ids)
                if n_words >= most_words or n_tokens >= most_tokens:
                    yield block
                    block, n_words, n_tokens = [], 0, 0
            if n_words >= (FEWEST_BLOCK_WORDS if model.device == "cpu" else most_words // 2):
                yield block
                block, n_words, n_tokens = [], 0, 0
        if block:
            yield block

    def read(self, context: str, block: list[ReadSequence]) -> Rows:
        """Rows of a block, in the order of its words."""
        first_row, n_rows = int(block[0].rows[0]), sum(len(s.rows) for s in block)
        whole: Rows | None = None
        for numbers in batches(block, self.batch_tokens):
            part = [block[i] for i in numbers]
            rows = self._pass(context, part)
            place = np.concatenate([s.rows for s in part]) - first_row
            if whole is None:
                n_layers, _, width = rows.hidden.shape
                hidden = rows.hidden.new_empty((n_layers, n_rows, width))
                whole = Rows(hidden, *(rows.surprisal.new_empty(n_rows) for _ in range(2)))
            whole.hidden[:, onto(place, whole.hidden.device)] = rows.hidden
            on = onto(place, whole.surprisal.device)
            whole.surprisal[on], whole.entropy[on] = rows.surprisal, rows.entropy
        assert whole is not None
        return whole

    def n_tokens(self, context: str) -> int:
        """Estimate the tokens that a context passes through the model."""
        if context == STATIC:
            return 0
        return sum(
            self._n_stretch_tokens(context, self._tokens(story), first, stop)
            for story in self.stories
            for first, stop in stretches(context, story)
        )

    def tokens_per_word(self) -> list[int]:
        """Number of tokens of every word."""
        own = [self._tokens(story) for story in self.stories]
        return [n for tokens in own for n in (tokens.last - tokens.first + 1).tolist()]

    def unknown_words(self) -> list[int]:
        """Rows of the words table with characters that the tokenizer does not know."""
        unknown = self.model.tokenizer.unk_token_id
        if unknown is None:
            return []
        rows = []
        for story in self.stories:
            own = self._tokens(story)
            counts = np.concatenate([[0], np.cumsum(own.ids == unknown)])
            found = np.flatnonzero(counts[own.last + 1] > counts[own.first])
            rows += (story.first_row + found).tolist()
        return rows

    def tokens_per_second(self) -> float:
        """Speed of one batch, after one to warm up."""
        torch, model = require("torch"), self.model
        length = min(256, model.most_tokens or 256)
        n_rows = max(1, self.batch_tokens // length)
        seconds = []
        with torch.inference_mode():
            for rows in (1, n_rows):
                ids = torch.zeros((rows, length), dtype=torch.long, device=model.device)
                start = time.perf_counter()
                model.forward(ids, [length] * rows, 0)
                if model.device.startswith("cuda"):
                    torch.cuda.synchronize()
                seconds.append(time.perf_counter() - start)
        return n_rows * length / max(seconds[-1], 1e-6)

    def _check_context(self, context: str) -> None:
        """Raise `ConfigError` if passages for one word are shorter than min_context_tokens."""
        least, most = self.options.min_context_tokens, self.options.words_before(context)
        if not least or not self._by_word(context):
            return
        room = self.model.word_room(self.options)
        if most is not None or room <= least:
            raise ConfigError(
                f"the context '{context}' does not have so many tokens before every word",
                where="option 'min_context_tokens'",
                got=least,
                expected=f"0, since {most} words are read before each word"
                if most is not None
                else f"fewer than the {room} tokens of a passage for one word",
                remedy="lower it, leave it out, or raise word_context_tokens and window_tokens",
            )

    def _by_word(self, context: str) -> bool:
        """Whether every word has its own passage."""
        if context == STATIC:
            return False
        fresh = context in WORD_BY_WORD or self.options.words_before(context) is not None
        return fresh or (self.options.future == "hidden" and self.model.kind == "masked")

    def _tokens(self, story: Story) -> WordTokens:
        """Tokens of a whole story, cached: they are the same in every context."""
        if story.first_row not in self._story_tokens:
            rows = story.first_row + np.arange(len(story.words))
            (self._story_tokens[story.first_row],) = self._tokenise([story.passage], [rows])
        return self._story_tokens[story.first_row]

    def _tokenise(self, passages: Sequence[Passage], rows: Sequence[IntArray]) -> list[WordTokens]:
        return tokenise(self.model.tokenizer, passages, where=self.where, rows=rows)

    def _sequences(self, context: str, draw: int, story: Story) -> Iterator[ReadSequence]:
        """What the model reads for a story, in the order of its words."""
        if self._by_word(context):
            yield from self._word_sequences(context, draw, story)
            return
        room, stride = self.model.limits(self.options)
        # If the model sees the future, half of the stride is for the words after.
        overhang = stride // 2 if self.model.kind == "masked" else 0
        for first, stop in stretches(context, story):
            rows = story.first_row + np.arange(first, stop)
            tokens = self._tokens(story)
            if (first, stop) != (0, len(story.words)):
                (tokens,) = self._tokenise([story.piece(first, stop)], [rows])
            for window in cut(
                tokens,
                room=room,
                stride=stride,
                overhang=overhang,
                place=lambda word, first=first: self._place(story, first + word),  # type: ignore[misc]
            ):
                yield _framed(self.model, rows, tokens, window)

    def _word_sequences(self, context: str, draw: int, story: Story) -> Iterator[ReadSequence]:
        """One passage per word: the word, and before it as many words as the context allows and the model can read."""
        room = self.model.word_room(self.options)
        spans = [
            (self._begin(context, story, first, word, room), word)
            for first, stop in stretches(context, story)
            for word in range(first, stop)
        ]
        for at in range(0, len(spans), PASSAGES_AT_A_TIME):
            chunk = spans[at : at + PASSAGES_AT_A_TIME]
            made = [word_passage(context, draw, story, begin, word) for begin, word in chunk]
            passages, orders = zip(*made, strict=True)
            rows = [story.first_row + order for order in orders]
            matched = self._tokenise(passages, rows)
            for (begin, word), own, tokens in zip(chunk, rows, matched, strict=True):
                while len(tokens.ids) > room and begin < word:
                    # Rearranging made it too long: the farthest words go.
                    begin += _n_farthest(own, tokens, len(tokens.ids) - room)
                    passage, order = word_passage(context, draw, story, begin, word)
                    own = story.first_row + order
                    (tokens,) = self._tokenise([passage], [own])
                window = tail(tokens, room=room, where=self._place(story, word))
                yield _framed(self.model, own, tokens, window)

    def _begin(self, context: str, story: Story, first: int, word: int, room: int) -> int:
        """The first word of a word's passage: everything up to ``word`` fits into ``room`` tokens."""
        tokens, most = self._tokens(story), self.options.words_before(context)
        from_token = int(tokens.last[word]) + 1 - room
        reach = min(word, int(np.searchsorted(tokens.first, from_token, side="left")))
        if most is None:
            return max(first, reach)
        begin = max(first, word - most)
        if reach > begin:
            raise ConfigError(
                f"{most} words before each word are more than the model can read at once",
                where=self._place(story, word),
                got=f"words with more than the {room} tokens of a passage for one word",
                remedy="choose fewer words, or raise window_tokens (and word_context_tokens, if it is set)",
            )
        return begin

    def _place(self, story: Story, word: int) -> str:
        return f"{self.where}, row {story.first_row + word + 1} ('{story.words[word][:40]}')"

    def _pass(self, context: str, part: list[ReadSequence]) -> Rows:
        pooling = self.options.pooling
        if context == STATIC:
            return read_static(self.model, part, pooling)
        if self.model.kind == "causal":
            return read_causal(self.model, part, pooling)
        return read_masked(
            self.model, part, pooling, future_seen=self.options.future == "seen", batch_tokens=self.batch_tokens
        )

    def _n_stretch_tokens(self, context: str, own: WordTokens, first: int, stop: int) -> int:
        """Tokens through the model for the words ``first … stop − 1`` that share a context."""
        model = self.model
        added = len(model.start) + len(model.end)
        begin, end = own.first[first:stop], own.last[first:stop] + 1
        if self._by_word(context):
            most = self.options.words_before(context)
            word = np.arange(stop - first)
            reach = word if most is None else np.minimum(word, most)
            sizes = np.minimum(end - begin[word - reach], model.word_room(self.options)) + added
            probes = end - begin + 1 if model.kind == "masked" else 0
            return int((sizes * (1 + probes)).sum())
        room, stride = model.limits(self.options)
        n_tokens = int(end[-1] - begin[0])
        n_windows = 1 + max(0, -(-(n_tokens - room) // stride))
        size = min(n_tokens, room) + added
        # Every token of a masked model that sees the future is masked in a copy of its window.
        return size * n_windows * (1 + (n_tokens // n_windows if model.kind == "masked" else 0))


def _framed(model: LanguageModel, rows: IntArray, tokens: WordTokens, window: Window) -> ReadSequence:
    """Tokens of a window, the model's own around them."""
    before = len(model.start)
    words = slice(window.first, window.last)
    shift = before - window.begin
    own = tokens.ids[window.begin : window.stop]
    ids = np.concatenate([model.start, own, model.end]).astype(np.int64)
    if (unknown := int(ids.max())) >= model.n_vectors:
        raise FeatureError(
            f"the tokenizer of the model '{model.folder.name}' does not fit its weights",
            where=str(model.folder.path),
            got=f"token {unknown} ({model.tokenizer.convert_ids_to_tokens(unknown)!r})",
            expected=f"tokens 0 to {model.n_vectors - 1}",
            remedy="fetch weights and tokenizer of the same model",
        )
    return ReadSequence(
        ids=ids,
        rows=rows[words],
        first=tokens.first[words] + shift,
        last=tokens.last[words] + shift,
        lead=np.maximum(tokens.lead[words] + shift, before),
    )


def word_passage(context: str, draw: int, story: Story, begin: int, word: int) -> tuple[Passage, IntArray]:
    """The passage of a word and the words before it from ``begin`` on, and the order of these words; it is last."""
    before = np.arange(begin, word)
    if context == REVERSED:
        before = before[::-1]
    elif context == SHUFFLED:
        rng = keyed_rng(draw, "shuffled context", story.id, word)
        before = before[rng.permutation(len(before))]
    order = np.append(before, word)
    in_order = context not in WORD_BY_WORD
    return (story.piece(begin, word + 1) if in_order else story.arranged(order)), order


def _n_farthest(rows: IntArray, tokens: WordTokens, n_tokens: int) -> int:
    """Number of the farthest words before the last one that have at least ``n_tokens`` tokens, or all of them."""
    sizes = (tokens.last - tokens.first + 1)[:-1][np.argsort(rows[:-1])]
    return min(int(np.searchsorted(np.cumsum(sizes), n_tokens)) + 1, len(sizes))


def stretches(context: str, story: Story) -> list[tuple[int, int]]:
    """Words that share a context: sentences where it is cut at their starts, else the whole story."""
    if context != SENTENCE_RESET:
        return [(0, len(story.words))]
    if story.sentence is None:
        raise ConfigError(
            "the context 'sentence_reset' needs sentences",
            where=f"story '{story.id}', column 'sentence_id' of the words table",
            got="no such column",
            remedy="add the column, or leave the context out",
        )
    edges = np.flatnonzero(np.diff(story.sentence)) + 1
    return list(pairwise([0, *edges.tolist(), len(story.words)]))


@dataclass(frozen=True)
class Window:
    """Tokens ``begin … stop − 1`` of a passage, read for its words ``first … last − 1``."""

    begin: int
    stop: int
    first: int
    last: int


def cut(
    tokens: WordTokens, *, room: int, stride: int, overhang: int = 0, place: Callable[[int], str]
) -> Iterator[Window]:
    """Yield windows of at most ``room`` tokens that read every word once.

    A window has at least ``room − stride`` tokens before its first word, or all of them. It begins within a word only
    if its first word would not fit otherwise. ``overhang`` is the number of tokens after the last word that the model
    may see; without it, the window of a word depends only on tokens up to it. ``place`` names a word in messages.
    """
    done, stop_word = 0, len(tokens.first)
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
                where=place(done),
                got=f"{size} tokens, after {room - stride} tokens of context, in a window of {room}",
                remedy=f"raise stride_tokens to at least {size}, and window_tokens with it, or split the word",
            )
        reach = begin + room if end <= begin + room else begin + room - overhang
        last = int(np.searchsorted(tokens.last, reach, side="left"))
        last = min(max(last, done + 1), stop_word)
        yield Window(begin, min(end, int(tokens.last[last - 1]) + 1 + overhang, begin + room), done, last)
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
    """The token itself, or the first of the word that it is inside."""
    word = int(np.searchsorted(tokens.first, token, side="right")) - 1
    inside = word >= 0 and token <= tokens.last[word]
    return int(tokens.first[word]) if inside else token
