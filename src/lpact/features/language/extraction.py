"""From words and a model to feature sets on disk: planned, estimated, interruptible, resumed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from lpact.errors import FeatureError
from lpact.features.language._keys import describe, key_of
from lpact.features.language.contexts import Reading, readings, stretches
from lpact.features.language.extra import require
from lpact.features.language.feature_set import FeatureSet, FeatureSetWriter, open_set
from lpact.features.language.folder import Checksums, ModelFolder
from lpact.features.language.loading import LanguageModel, load_model
from lpact.features.language.passes import (
    ReadSequence,
    Rows,
    batches,
    onto,
    read_causal,
    read_masked,
    read_static,
    to_host,
)
from lpact.features.language.settings import DRAWN, WORD_BY_WORD, ReadingOptions
from lpact.features.language.text import Story
from lpact.features.language.tokens import WordTokens, tokenise
from lpact.features.language.windows import Window, cut, tail
from lpact.features.models import STATIC, UNTRAINED, ExtractionCost, Progress
from lpact.math.seeding import keyed_rng
from lpact.math.types import IntArray

T = TypeVar("T")

PASSAGES_AT_A_TIME = 512
"""Passages that the tokenizer gets together."""
BLOCK_BYTES = 64 * 2**20
BLOCK_BATCHES = 16
"""A block of words ends when its states fill so many bytes, or its tokens so many batches."""
FEWEST_BLOCK_WORDS = 128
"""A story that ends ends its block too, unless it is that short."""
PENDING_BLOCKS = 2
"""Blocks that wait to be written while the model goes on."""


@dataclass(frozen=True)
class PlannedSet:
    """One feature set that is wanted: where it belongs, and what is there of it."""

    context: str
    draw: int
    key: str
    about: dict[str, Any]
    path: Path
    n_words: int

    @property
    def n_done(self) -> int:
        """Words of it that are on disk now."""
        found = open_set(self.path)
        return found.n_done if found is not None and found.key == self.key else 0

    @property
    def complete(self) -> bool:
        """Whether it is all there."""
        return self.n_done == self.n_words


class Extraction:
    """Feature sets of one model for one words table, under the folder ``out``."""

    def __init__(
        self,
        folder: ModelFolder,
        stories: Sequence[Story],
        options: ReadingOptions,
        *,
        out: Path,
        name: str,
        contexts: Sequence[str],
        where: str,
    ) -> None:
        self.folder, self.stories, self.options = folder, list(stories), options
        self.where = where
        for context, story in product(contexts, self.stories):
            stretches(context, story)  # raises before anything is computed
        self._checksums = Checksums(out)
        self._model: tuple[int | None, LanguageModel] | None = None
        self._story_tokens: dict[int, WordTokens] = {}
        self.n_words = sum(len(s.words) for s in self.stories)
        self.sets = [
            self._planned(out / name, context, draw)
            for context in contexts
            for draw in range(options.draws(context))
        ]

    def _planned(self, parent: Path, context: str, draw: int) -> PlannedSet:
        checksums = self._checksums.of(self.folder.files)
        about = describe(self.folder, self.options, checksums, self.stories, context, draw)
        key = key_of(about)
        suffix = f"_draw-{draw}" if context in DRAWN else ""
        path = parent / f"{context}{suffix}-{key[:12]}"
        return PlannedSet(context, draw, key, about, path, self.n_words)

    @property
    def unfinished(self) -> list[PlannedSet]:
        """Sets that are not complete."""
        return [s for s in self.sets if not s.complete]

    def model(self) -> LanguageModel:
        """The model, loaded."""
        return self._load(None)

    def estimate(self) -> ExtractionCost:
        """Count what is left, and time one batch of it."""
        wanted = self.unfinished
        if not wanted:
            return ExtractionCost()
        model = self._load(None)
        tokens = sum(self._n_tokens(model, s) for s in wanted)
        rate = _tokens_per_second(model, self._batch_tokens(model))
        per_word = (model.n_layers + 1) * model.width * _item_size(model)
        n_static = sum(s.context == STATIC for s in wanted)
        n_bytes = self.n_words * per_word * (len(wanted) - n_static)
        n_words = sum(s.n_words - s.n_done for s in wanted)
        return ExtractionCost(len(wanted), n_words, tokens, tokens / rate, n_bytes)

    def run(self, progress: Progress) -> list[FeatureSet]:
        """Compute what is not there; finished blocks of words are kept whatever happens."""
        for planned in self.sets:
            if planned.complete:
                continue
            model = self._load(planned.draw if planned.context == UNTRAINED else None)
            draw = f", draw {planned.draw}" if self.options.draws(planned.context) > 1 else ""
            progress.stage(f"{self.folder.name}, {planned.context}{draw}", planned.n_words)
            self._extract(model, planned, progress)
        return [self.open(s) for s in self.sets]

    def open(self, planned: PlannedSet) -> FeatureSet:
        """A set as it is on disk now."""
        found = open_set(planned.path)
        if found is None or found.key != planned.key:
            raise FeatureError(
                "features have not been extracted",
                where=str(planned.path),
                got="nothing",
                expected=f"features in context '{planned.context}'",
                remedy="run the extraction",
            )
        return found

    def _load(self, seed: int | None) -> LanguageModel:
        """The model, or the same architecture with the random weights of a draw; one is kept."""
        if self._model is None or self._model[0] != seed:
            self._model = None
            number = None
            if seed is not None:
                number = int(keyed_rng(seed, "untrained weights").integers(2**31))
            self._model = (seed, load_model(self.folder, self.options, seed=number))
        return self._model[1]

    def _batch_tokens(self, model: LanguageModel) -> int:
        default = 2048 if model.device == "cpu" else 32768
        return self.options.batch_tokens or default

    def _one_by_one(self, model: LanguageModel) -> bool:
        return self.options.future == "hidden" and model.kind == "masked"

    def _by_word(self, model: LanguageModel, context: str) -> bool:
        """Whether a passage of its own is read for every word."""
        if context == STATIC:
            return False
        fresh = context in WORD_BY_WORD or self.options.words_before(context) is not None
        return fresh or self._one_by_one(model)

    def _extract(self, model: LanguageModel, planned: PlannedSet, progress: Progress) -> None:
        torch = require("torch")
        width = model.embed(torch.zeros((1, 1), dtype=torch.long, device=model.device)).shape[-1]
        static = planned.context == STATIC
        shape = (
            (1, self.n_words, width) if static else (model.n_layers + 1, self.n_words, model.width)
        )
        half = model.dtype == "float16" and self.options.pooling != "sum"
        with (
            ahead(self._blocks(model, planned)) as blocks,
            FeatureSetWriter(
                planned.path,
                key=planned.key,
                about=planned.about | self._told(model),
                shape=shape,
                dtype="float16" if half else "float32",
            ) as writer,
            torch.inference_mode(),
            ThreadPoolExecutor(1, "lpact-features") as pool,
        ):
            start = writer.n_done
            progress.advance(start)
            pending: list[Future[int]] = []
            for block in blocks:
                # Blocks end elsewhere if batches have another size; sequences do not.
                left = [s for s in block if s.rows[0] >= start]
                if not left:
                    continue
                rows = self._read_block(model, planned, left)
                before = pending[-1] if pending else None
                pending.append(pool.submit(_write, writer, rows, self._place(planned), before))
                while len(pending) > PENDING_BLOCKS:
                    progress.advance(pending.pop(0).result())
            for written in pending:
                progress.advance(written.result())
            writer.commit()

    def _told(self, model: LanguageModel) -> dict[str, Any]:
        """What a reader of the features wants to know, beside what they depend on."""
        return {
            "model": self.folder.name,
            "model_kind": model.kind,
            "words": self.where,
            "device": model.device,
            "transformers": str(require("transformers").__version__),
            "torch": str(require("torch").__version__),
        }

    def _place(self, planned: PlannedSet) -> str:
        return f"model '{self.folder.name}', context '{planned.context}', {self.where}"

    def _blocks(self, model: LanguageModel, planned: PlannedSet) -> Iterator[list[ReadSequence]]:
        """Sequences in the order of their words, in blocks that depend on text and options alone."""
        per_word = (model.n_layers + 1) * model.width * 4
        room = BLOCK_BYTES if model.device == "cpu" else 2 * BLOCK_BYTES
        most_words = max(FEWEST_BLOCK_WORDS, room // per_word)
        most_tokens = BLOCK_BATCHES * self._batch_tokens(model)
        block: list[ReadSequence] = []
        n_words = n_tokens = 0
        for story in self.stories:
            for sequence in self._sequences(model, planned, story):
                block.append(sequence)
                n_words += len(sequence.rows)
                n_tokens += len(sequence.ids)
                if n_words >= most_words or n_tokens >= most_tokens:
                    yield block
                    block, n_words, n_tokens = [], 0, 0
            if n_words >= FEWEST_BLOCK_WORDS:
                yield block
                block, n_words, n_tokens = [], 0, 0
        if block:
            yield block

    def _tokens(self, model: LanguageModel, story: Story) -> WordTokens:
        """Tokens of a whole story; they are the same in every context, and kept."""
        if story.first_row not in self._story_tokens:
            rows = [story.first_row]
            (own,) = tokenise(model.tokenizer, [story.passage], where=self.where, rows=rows)
            self._story_tokens[story.first_row] = own
        return self._story_tokens[story.first_row]

    def _sequences(
        self, model: LanguageModel, planned: PlannedSet, story: Story
    ) -> Iterator[ReadSequence]:
        own = self._tokens(model, story)
        passages = readings(
            planned.context,
            planned.draw,
            story,
            own,
            self.options,
            one_by_one=self._one_by_one(model) and planned.context != STATIC,
            room=model.word_room(self.options),
        )
        by_word = self._by_word(model, planned.context)
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
                yield from self._windows(model, reading, tokens, by_word=by_word)

    def _windows(
        self, model: LanguageModel, reading: Reading, tokens: WordTokens, *, by_word: bool
    ) -> Iterator[ReadSequence]:
        """Sequences of a passage, the model's own tokens around each."""
        where = f"{self.where}, row {int(reading.rows[reading.first]) + 1}"
        if by_word:
            last = tail(tokens, room=model.word_room(self.options), where=where)
            yield _framed(model, reading, tokens, last)
            return
        limits = model.limits(self.options)
        whole = (0, len(reading.passage.starts))
        # Where the future is seen, half of what the stride leaves is for the words after.
        overhang = limits.stride // 2 if model.kind == "masked" else 0
        for window in cut(
            tokens, whole, room=limits.room, stride=limits.stride, where=where, overhang=overhang
        ):
            yield _framed(model, reading, tokens, window)

    def _read_block(
        self, model: LanguageModel, planned: PlannedSet, block: list[ReadSequence]
    ) -> Rows:
        torch = require("torch")
        first_row = int(block[0].rows[0])
        hidden: Any = None
        surprisal: Any = None
        entropy: Any = None
        n_rows = sum(len(s.rows) for s in block)
        for numbers in batches(block, self._batch_tokens(model)):
            part = [block[i] for i in numbers]
            rows = self._read(model, planned, part)
            place = np.concatenate([s.rows for s in part]) - first_row
            if hidden is None:
                shape = (rows.hidden.shape[0], n_rows, rows.hidden.shape[2])
                hidden = torch.empty(shape, dtype=rows.hidden.dtype, device=rows.hidden.device)
                surprisal = torch.empty(n_rows, dtype=torch.float64, device=rows.surprisal.device)
                entropy = torch.empty_like(surprisal)
            hidden[:, onto(place, hidden.device)] = rows.hidden
            surprisal[onto(place, surprisal.device)] = rows.surprisal
            entropy[onto(place, entropy.device)] = rows.entropy
        return Rows(hidden, surprisal, entropy)

    def _read(self, model: LanguageModel, planned: PlannedSet, part: list[ReadSequence]) -> Rows:
        pooling = self.options.pooling
        if planned.context == STATIC:
            return read_static(model, part, pooling)
        if model.kind == "causal":
            return read_causal(model, part, pooling)
        return read_masked(
            model,
            part,
            pooling,
            future_seen=self.options.future == "seen",
            batch_tokens=self._batch_tokens(model),
        )

    def _n_tokens(self, model: LanguageModel, planned: PlannedSet) -> int:
        """Tokens that a set still takes through the model, about, without making its passages."""
        if planned.context == STATIC:
            return 0
        total = sum(
            self._n_stretch_tokens(model, planned.context, self._tokens(model, story), first, stop)
            for story in self.stories
            for first, stop in stretches(planned.context, story)
        )
        return int(total * (1.0 - planned.n_done / max(1, planned.n_words)))

    def _n_stretch_tokens(
        self, model: LanguageModel, context: str, own: WordTokens, first: int, stop: int
    ) -> int:
        """Tokens through the model for the words ``first … stop − 1`` that share a context."""
        added = len(model.start) + len(model.end)
        begin, end = own.first[first:stop], own.last[first:stop] + 1
        if self._by_word(model, context):
            most = self.options.words_before(context)
            n_words = np.arange(stop - first)
            reach = n_words if most is None else np.minimum(n_words, most)
            sizes = np.minimum(end - begin[n_words - reach], model.word_room(self.options)) + added
            probes = end - begin + 1 if model.kind == "masked" else 0
            return int((sizes * (1 + probes)).sum())
        limits = model.limits(self.options)
        n_tokens = int(end[-1] - begin[0])
        n_windows = 1 + max(0, -(-(n_tokens - limits.room) // limits.stride))
        size = min(n_tokens, limits.room) + added
        # Every token of a masked model that sees the future is masked in a copy of its window.
        return size * n_windows * (1 + (n_tokens // n_windows if model.kind == "masked" else 0))


@contextmanager
def ahead(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """An iterator whose next item is made by another thread while the last one is worked on."""
    with ThreadPoolExecutor(1, "lpact-ahead") as pool:
        end = object()
        coming = [pool.submit(next, items, end)]

        def one_by_one() -> Iterator[T]:
            while (item := coming.pop().result()) is not end:
                coming.append(pool.submit(next, items, end))
                yield cast(T, item)

        yield one_by_one()


def _framed(
    model: LanguageModel, reading: Reading, tokens: WordTokens, window: Window
) -> ReadSequence:
    """Tokens of a window, the model's own around them."""
    before = len(model.start)
    words = slice(window.first, window.last)
    shift = before - window.begin
    own = tokens.ids[window.begin : window.stop]
    _check_known(model, own)
    return ReadSequence(
        ids=np.concatenate([model.start, own, model.end]).astype(np.int64),
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
        f"the tokenizer of the model '{model.folder.name}' is not its own",
        where=str(model.folder.path),
        got=f"token {unknown} ({model.tokenizer.convert_ids_to_tokens(unknown)!r})",
        expected=f"tokens 0 to {model.n_vectors - 1}, for which the weights hold vectors",
        remedy="fetch weights and tokenizer of the same model",
    )


def _write(writer: FeatureSetWriter, rows: Rows, where: str, before: Future[int] | None) -> int:
    """Bring a block to the disk, unless the block before it failed; returns the number of its words."""
    if before is not None:
        before.result()
    torch = require("torch")
    hidden = rows.hidden.float() if rows.hidden.dtype == torch.bfloat16 else rows.hidden
    values = to_host(hidden)
    if not torch.isfinite(hidden).all():
        raise FeatureError(
            "the model's states are not finite",
            where=where,
            got="values that overflow or are undefined",
            expected="finite numbers",
            remedy='compute in another precision: precision = "float32"',
        )
    writer.append(values, to_host(rows.surprisal), to_host(rows.entropy))
    writer.commit_if_due()
    return int(values.shape[1])


def _item_size(model: LanguageModel) -> int:
    return 2 if model.dtype == "float16" else 4


def _tokens_per_second(model: LanguageModel, batch_tokens: int) -> float:
    """Speed of one batch, after one to warm up."""
    torch = require("torch")
    length = min(256, model.most_tokens or 256)
    n_rows = max(1, batch_tokens // length)
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
