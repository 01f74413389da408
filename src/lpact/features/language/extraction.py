"""From words and a model to feature sets on disk: planned, estimated and resumable."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lpact.datasets.fetch import Progress
from lpact.datasets.series import ahead
from lpact.errors import FeatureError
from lpact.features.language.feature_set import RECORD, FeatureSet, FeatureSetWriter, open_set
from lpact.features.language.language_model import LanguageModel, Rows, load_model, resolve_precision, to_host
from lpact.features.language.model_files import Checksums, ModelFolder, declared_kind, require
from lpact.features.language.reader import StoryReader, stretches
from lpact.features.language.settings import DRAWN, WORD_BY_WORD, ReadingOptions
from lpact.features.language.text import Story, WordTokens
from lpact.features.models import SENTENCE_RESET, STATIC, UNTRAINED, ExtractionCost
from lpact.math.seeding import keyed_rng
from lpact.validation import json_digest

EXTRACTION_VERSION = 1
"""Raised whenever the same inputs give other numbers."""
SHOWN_WORDS = 5
"""Words that a note lists as examples."""


@dataclass(frozen=True)
class PlannedSet:
    """One feature set to extract, and its folder."""

    context: str
    draw: int
    key: str
    about: dict[str, Any]
    path: Path
    n_words: int

    @property
    def n_done(self) -> int:
        """Words that are on disk now."""
        found = open_set(self.path)
        return found.n_done if found is not None and found.key == self.key else 0

    @property
    def complete(self) -> bool:
        """Whether all words are on disk."""
        return self.n_done == self.n_words


class LoadedModel:
    """Keeps one model in memory: the trained one, or one with random weights."""

    def __init__(self, folder: ModelFolder, options: ReadingOptions) -> None:
        self._folder, self._options = folder, options
        self._kept: tuple[int | None, LanguageModel] | None = None

    def model(self, draw: int | None) -> LanguageModel:
        """The trained model (None), or one with the random weights of a draw."""
        if self._kept is None or self._kept[0] != draw:
            self._kept = None
            rng = None if draw is None else keyed_rng(draw, "untrained weights")
            seed = None if rng is None else int(rng.integers(2**31))
            self._kept = (draw, load_model(self._folder, self._options, seed=seed))
        return self._kept[1]


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
        loaded: LoadedModel | None = None,
    ) -> None:
        self.folder, self.stories, self.options = folder, list(stories), options
        self.where, self._parent = where, out / name
        for context, story in product(contexts, self.stories):
            stretches(context, story)  # raises before anything is computed
        self.checksums = Checksums(out)
        self._loaded = loaded or LoadedModel(folder, options)
        self._story_tokens: dict[int, WordTokens] = {}
        self.n_words = sum(len(s.words) for s in self.stories)
        self.sets = [self._planned(context, draw) for context in contexts for draw in range(options.draws(context))]

    def _planned(self, context: str, draw: int) -> PlannedSet:
        checksums = self.checksums.of(self.folder.files)
        about = describe(self.folder, self.options, checksums, self.stories, context, draw)
        key = json_digest(about)
        suffix = f"_draw-{draw}" if context in DRAWN else ""
        path = self._parent / f"{context}{suffix}-{key[:12]}"
        return PlannedSet(context, draw, key, about, path, self.n_words)

    @property
    def unfinished(self) -> list[PlannedSet]:
        """Sets that are not complete."""
        return [s for s in self.sets if not s.complete]

    def model(self) -> LanguageModel:
        """The model, loaded."""
        return self._loaded.model(None)

    def estimate(self) -> ExtractionCost:
        """Count the remaining work, and time one batch."""
        wanted = self.unfinished
        if not wanted:
            return ExtractionCost()
        reader, model = self._reader(None), self.model()
        tokens = sum(int(reader.n_tokens(s.context) * (1.0 - s.n_done / max(1, s.n_words))) for s in wanted)
        rate = reader.tokens_per_second()
        per_word = (model.n_layers + 1) * model.width * (2 if model.dtype == "float16" else 4)
        n_static = sum(s.context == STATIC for s in wanted)
        n_bytes = self.n_words * per_word * (len(wanted) - n_static)
        n_words = sum(s.n_words - s.n_done for s in wanted)
        return ExtractionCost(len(wanted), n_words, tokens, tokens / rate, n_bytes)

    def run(self, progress: Progress) -> list[FeatureSet]:
        """Compute what is missing; finished blocks of words are kept."""
        for planned in self.sets:
            if planned.complete:
                continue
            reader = self._reader(planned.draw if planned.context == UNTRAINED else None)
            draw = f", draw {planned.draw}" if self.options.draws(planned.context) > 1 else ""
            progress.stage(f"{self.folder.name}, {planned.context}{draw}", planned.n_words)
            self._extract(reader, planned, progress)
            self._check_model(planned)
        return [self.open(s) for s in self.sets]

    def open(self, planned: PlannedSet) -> FeatureSet:
        """A set as it is on disk now."""
        found = open_set(planned.path)
        if found is None or found.key != planned.key:
            raise FeatureError("features have not been extracted", where=str(planned.path), remedy="run the extraction")
        return found

    def _reader(self, draw: int | None) -> StoryReader:
        """The model with the stories; for a draw, the same architecture with random weights."""
        model = self._loaded.model(draw)
        return StoryReader(model, self.stories, self.options, self.where, self._story_tokens)

    def _extract(self, reader: StoryReader, planned: PlannedSet, progress: Progress) -> None:
        torch, model = require("torch"), reader.model
        width = model.embed(torch.zeros((1, 1), dtype=torch.long, device=model.device)).shape[-1]
        static = planned.context == STATIC
        shape = (1, self.n_words, width) if static else (model.n_layers + 1, self.n_words, model.width)
        half = model.dtype == "float16" and self.options.pooling != "sum"
        with (
            ahead(reader.blocks(planned.context, planned.draw)) as blocks,
            FeatureSetWriter(
                planned.path,
                key=planned.key,
                about=planned.about | self._facts(reader),
                shape=shape,
                dtype="float16" if half else "float32",
                checksums=self.checksums,
            ) as writer,
            torch.inference_mode(),
            ThreadPoolExecutor(1, "lpact-features") as pool,
        ):
            where = f"model '{self.folder.name}', context '{planned.context}', {self.where}"
            start = writer.n_done
            progress.advance(start)
            writing: Future[int] | None = None
            for block in blocks:
                # Blocks end elsewhere if batches have another size; sequences do not.
                left = [s for s in block if s.rows[0] >= start]
                if not left:
                    continue
                rows = reader.read(planned.context, left)
                n_written = 0 if writing is None else writing.result()
                writing = pool.submit(_write, writer, rows, where)
                progress.advance(n_written)
            if writing is not None:
                progress.advance(writing.result())

    def _check_model(self, planned: PlannedSet) -> None:
        """Raise, and discard the set, if the model's files have changed."""
        if self._planned(planned.context, planned.draw).key == planned.key:
            return
        (planned.path / RECORD).unlink(missing_ok=True)
        raise FeatureError(
            "the model's files changed while features were extracted",
            where=str(self.folder.path),
            got="other weights, tokenizer or configuration than at the start",
            remedy="run the extraction again, with the current files",
        )

    def skipped_text(self) -> tuple[int, str]:
        """Number of stretches of transcripts that are in no word, and the first of them."""
        found = [story.passage.text[start:end].strip() for story in self.stories for start, end in story.skipped]
        return len(found), found[0][:60] if found else ""

    def _facts(self, reader: StoryReader) -> dict[str, Any]:
        """Facts about the extraction that the features do not depend on."""
        model, (room, stride) = reader.model, reader.model.limits(self.options)
        rows = reader.unknown_words()
        words = [word for story in self.stories for word in story.words]
        n_skipped, skipped = self.skipped_text()
        return {
            "room_tokens": room,
            "stride_of_room": stride,
            "tokens_per_word": reader.tokens_per_word(),
            "n_unknown_words": len(rows),
            "unknown_words": list(dict.fromkeys(words[row] for row in rows))[:SHOWN_WORDS],
            "n_skipped_stretches": n_skipped,
            "skipped_stretch": skipped,
            "model": self.folder.name,
            "model_kind": model.kind,
            "words": self.where,
            "device": model.device,
            "transformers": str(require("transformers").__version__),
            "torch": str(require("torch").__version__),
        }


def _write(writer: FeatureSetWriter, rows: Rows, where: str) -> int:
    """Write a block; return the number of its words."""
    torch = require("torch")
    hidden = rows.hidden.float() if rows.hidden.dtype == torch.bfloat16 else rows.hidden
    values = to_host(hidden)
    overflow = [torch.isinf(bits).any() for bits in (rows.surprisal, rows.entropy)]
    if not torch.isfinite(hidden).all() or any(overflow):
        raise FeatureError(
            "the model's numbers are not finite",
            where=where,
            got="values that overflow or are undefined",
            remedy='compute in another precision: precision = "float32"',
        )
    writer.append(values, to_host(rows.surprisal), to_host(rows.entropy))
    return int(values.shape[1])


def text_digest(stories: Sequence[Story], *, sentences: bool) -> str:
    """Hash of the stories' ids, texts and word spans, and of where sentences begin if that matters."""
    digest = hashlib.sha256()
    for story in stories:
        passage = story.passage
        for part in (story.id, passage.text, story.joiner):
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(f"{len(encoded)}:".encode() + encoded)
        digest.update(passage.starts.astype("<i8").tobytes())
        digest.update(passage.ends.astype("<i8").tobytes())
        if sentences and story.sentence is not None:
            digest.update((np.diff(story.sentence) != 0).tobytes())
    return digest.hexdigest()


def describe(
    folder: ModelFolder,
    options: ReadingOptions,
    checksums: Mapping[Path, str],
    stories: Sequence[Story],
    context: str,
    draw: int,
) -> dict[str, Any]:
    """Everything that the numbers of one set depend on, as plain values."""
    files: dict[str, Any] = {path.name: checksums[path] for path in folder.files if path not in folder.weights}
    # Random weights need the architecture alone; a GGUF file contains more than that.
    if context != UNTRAINED or folder.gguf is not None:
        files["weights"] = sorted(checksums[path] for path in folder.weights)
    what: dict[str, Any] = {
        "version": EXTRACTION_VERSION,
        "context": context,
        "draw": draw,
        "files": files,
        "revision": folder.revision,
        "kind": options.kind,
        "pooling": options.pooling,
        "precision": resolve_precision(folder, options),
        "text": text_digest(stories, sentences=context == SENTENCE_RESET),
    }
    if context == STATIC:
        return what
    what |= {"window_tokens": options.window_tokens, "stride_tokens": options.stride_tokens}
    by_word = context in WORD_BY_WORD or options.words_before(context) is not None
    causal = surely_causal(folder, options)
    if by_word or not causal:
        what["word_context_tokens"] = options.word_context_tokens
    if not causal:
        what["future"] = options.future
    if options.words_before(context) is not None:
        what["context_words"] = options.words_before(context)
    return what


def surely_causal(folder: ModelFolder, options: ReadingOptions) -> bool:
    """Whether a model is causal by option or configuration; one that does not say is none."""
    if options.kind != "auto":
        return options.kind == "causal"
    return declared_kind(folder.config.get("architectures") or ()) == "causal"
