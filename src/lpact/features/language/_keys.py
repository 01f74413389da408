"""What features depend on, as a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lpact.features.language.folder import ModelFolder, declared_kind
from lpact.features.language.loading import resolve_precision
from lpact.features.language.settings import WORD_BY_WORD, ReadingOptions
from lpact.features.language.text import Story
from lpact.features.models import SENTENCE_RESET, STATIC, UNTRAINED
from lpact.validation import config_digest

EXTRACTION_VERSION = 1
"""Goes up whenever the same inputs give other numbers."""


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
    files: dict[str, Any] = {
        path.name: checksums[path] for path in folder.files if path not in folder.weights
    }
    # Random weights need the architecture alone; a GGUF file holds that and more.
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
    what |= {
        "window_tokens": options.window_tokens,
        "stride_tokens": options.stride_tokens,
    }
    by_word = context in WORD_BY_WORD or options.words_before(context) is not None
    causal = surely_causal(folder, options)
    if by_word or not causal:
        what["word_context_tokens"] = options.word_context_tokens
    if not causal:
        what["future"] = options.future
    if options.words_before(context) is not None:
        what["context_words"] = options.words_before(context)
    return what


def key_of(what: Mapping[str, Any]) -> str:
    """SHA-256 of a description."""
    return config_digest(what)


def surely_causal(folder: ModelFolder, options: ReadingOptions) -> bool:
    """Whether a model is causal by option or configuration; one that does not say is none."""
    if options.kind != "auto":
        return options.kind == "causal"
    return declared_kind(folder.config.get("architectures") or ()) == "causal"
