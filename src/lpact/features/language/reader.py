"""Reading stories with a model: passages, windows, batches and cost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from lpact.errors import ConfigError, FeatureError
from lpact.features.language.contexts import (
    Reading,
    Window,
    cut,
    nearer,
    readings,
    stretches,
    tail,
    word_reading,
)
from lpact.features.language.extra import require
from lpact.features.language.loading import LanguageModel
from lpact.features.language.passes import (
    ReadSequence,
    Rows,
    batches,
    onto,
    read_causal,
    read_masked,
    read_static,
)
from lpact.features.language.settings import WORD_BY_WORD, ReadingOptions
from lpact.features.language.text import Story
from lpact.features.language.tokens import WordTokens, tokenise
from lpact.features.models import STATIC
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
        self._check_promise(context)
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
        torch = require("torch")
        first_row = int(block[0].rows[0])
        hidden: Any = None
        surprisal: Any = None
        entropy: Any = None
        n_rows = sum(len(s.rows) for s in block)
        for numbers in batches(block, self.batch_tokens):
            part = [block[i] for i in numbers]
            rows = self._pass(context, part)
            place = np.concatenate([s.rows for s in part]) - first_row
            if hidden is None:
                shape = (rows.hidden.shape[0], n_rows, rows.hidden.shape[2])
                hidden = torch.empty(shape, dtype=rows.hidden.dtype, device=rows.hidden.device)
                surprisal = torch.empty(
                    n_rows, dtype=rows.surprisal.dtype, device=rows.surprisal.device
                )
                entropy = torch.empty_like(surprisal)
            hidden[:, onto(place, hidden.device)] = rows.hidden
            surprisal[onto(place, surprisal.device)] = rows.surprisal
            entropy[onto(place, entropy.device)] = rows.entropy
        return Rows(hidden, surprisal, entropy)

    def n_tokens(self, context: str) -> int:
        """Estimate the tokens that a context passes through the model."""
        if context == STATIC:
            return 0
        return sum(
            self._n_stretch_tokens(context, self._tokens(story), first, stop)
            for story in self.stories
            for first, stop in stretches(context, story)
        )

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

    def _check_promise(self, context: str) -> None:
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

    def _hides_future(self) -> bool:
        return self.options.future == "hidden" and self.model.kind == "masked"

    def _by_word(self, context: str) -> bool:
        """Whether every word has its own passage."""
        if context == STATIC:
            return False
        fresh = context in WORD_BY_WORD or self.options.words_before(context) is not None
        return fresh or self._hides_future()

    def _tokens(self, story: Story) -> WordTokens:
        """Tokens of a whole story, cached: they are the same in every context."""
        if story.first_row not in self._story_tokens:
            rows = [story.first_row]
            (own,) = tokenise(self.model.tokenizer, [story.passage], where=self.where, rows=rows)
            self._story_tokens[story.first_row] = own
        return self._story_tokens[story.first_row]

    def _sequences(self, context: str, draw: int, story: Story) -> Iterator[ReadSequence]:
        model = self.model
        passages = readings(
            context,
            draw,
            story,
            self._tokens(story),
            self.options,
            one_by_one=self._hides_future() and context != STATIC,
            room=model.word_room(self.options),
        )
        by_word = self._by_word(context)
        while chunk := list(islice(passages, PASSAGES_AT_A_TIME)):
            fresh = [r for r in chunk if r.tokens is None]
            matched = iter(
                tokenise(
                    model.tokenizer,
                    [r.passage for r in fresh],
                    where=self.where,
                    rows=[r.rows for r in fresh],
                )
            )
            for reading in chunk:
                tokens = reading.tokens or next(matched)
                if by_word:
                    reading, tokens = self._fitting(context, draw, story, reading, tokens)
                for window in self._windows(context, reading, tokens):
                    yield _framed(model, reading, tokens, window)

    def _fitting(
        self, context: str, draw: int, story: Story, reading: Reading, tokens: WordTokens
    ) -> tuple[Reading, WordTokens]:
        """A passage for one word, without its farthest words if rearranging made it too long."""
        room = self.model.word_room(self.options)
        while len(tokens.ids) > room and reading.first > 0:
            begin, word = nearer(reading, tokens, room), reading.begin + reading.first
            reading = word_reading(context, draw, story, begin, word)
            (tokens,) = tokenise(
                self.model.tokenizer, [reading.passage], where=self.where, rows=[reading.rows]
            )
        return reading, tokens

    def _windows(self, context: str, reading: Reading, tokens: WordTokens) -> Iterator[Window]:
        """Windows of a passage."""
        cells = reading.passage.words()

        def label(word: int) -> str:
            return f"row {int(reading.rows[word]) + 1} ('{cells[word][:40]}')"

        if self._by_word(context):
            where = f"{self.where}, {label(reading.first)}"
            yield tail(tokens, room=self.model.word_room(self.options), where=where)
            return
        limits = self.model.limits(self.options)
        whole = (0, len(reading.passage.starts))
        # If the model sees the future, half of the stride is for the words after.
        overhang = limits.stride // 2 if self.model.kind == "masked" else 0
        yield from cut(
            tokens,
            whole,
            room=limits.room,
            stride=limits.stride,
            where=self.where,
            overhang=overhang,
            label=label,
        )

    def _pass(self, context: str, part: list[ReadSequence]) -> Rows:
        pooling = self.options.pooling
        if context == STATIC:
            return read_static(self.model, part, pooling)
        if self.model.kind == "causal":
            return read_causal(self.model, part, pooling)
        return read_masked(
            self.model,
            part,
            pooling,
            future_seen=self.options.future == "seen",
            batch_tokens=self.batch_tokens,
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
        limits = model.limits(self.options)
        n_tokens = int(end[-1] - begin[0])
        n_windows = 1 + max(0, -(-(n_tokens - limits.room) // limits.stride))
        size = min(n_tokens, limits.room) + added
        # Every token of a masked model that sees the future is masked in a copy of its window.
        return size * n_windows * (1 + (n_tokens // n_windows if model.kind == "masked" else 0))


def _framed(
    model: LanguageModel, reading: Reading, tokens: WordTokens, window: Window
) -> ReadSequence:
    """Tokens of a window, the model's own around them."""
    before = len(model.start)
    words = slice(window.first, window.last)
    shift = before - window.begin
    own = tokens.ids[window.begin : window.stop]
    ids = np.concatenate([model.start, own, model.end]).astype(np.int64)
    _check_known(model, ids)
    return ReadSequence(
        ids=ids,
        rows=reading.rows[words],
        first=tokens.first[words] + shift,
        last=tokens.last[words] + shift,
        lead=np.maximum(tokens.lead[words] + shift, before),
    )


def _check_known(model: LanguageModel, ids: IntArray) -> None:
    """Raise `FeatureError` for a token that the model has no vector for."""
    if ids.max() < model.n_vectors:
        return
    unknown = int(ids.max())
    raise FeatureError(
        f"the tokenizer of the model '{model.folder.name}' does not fit its weights",
        where=str(model.folder.path),
        got=f"token {unknown} ({model.tokenizer.convert_ids_to_tokens(unknown)!r})",
        expected=f"tokens 0 to {model.n_vectors - 1}",
        remedy="fetch weights and tokenizer of the same model",
    )
