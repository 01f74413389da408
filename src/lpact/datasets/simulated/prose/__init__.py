"""Short English stories with parse and true surprisal, written by the stochastic grammar in ``tools/story_grammar``.

``bits`` is exactly −log2 p(word | all words of the story before), where a word includes its punctuation mark: no model
can do better on average. The parse is Universal Dependencies; punctuation marks are parts of words and have no arcs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

import numpy as np
import polars as pl

from lpact.math.types import FloatArray, IntArray

STORIES, FREQUENCIES = "stories.tsv.gz", "frequencies.tsv"
N_STORIES, SENTENCES_PER_STORY = 160, 40
"""Stories in the file, and sentences of each."""

MECHANISMS = (
    "semantic_transition",
    "dependency_integration",
    "syntactic_boundary",
    "discourse_boundary",
)
"""Mechanisms that the file has for every word; ``tools/story_grammar/mechanisms.py`` defines them."""


@dataclass(frozen=True)
class Prose:
    """Stories in order; all are [n_words].

    ``sentence`` and ``paragraph`` count from 0 and run on over stories. ``head`` is the place of a
    word's head in its sentence, from 1; 0 for the root. ``depth`` counts the embedded clauses around a
    word. ``person`` and ``place`` name who was mentioned last and where the scene is, once the word
    is known; empty before the first. ``mechanisms`` are those of `MECHANISMS`, before standardisation.
    """

    word: tuple[str, ...]
    story: IntArray
    sentence: IntArray
    paragraph: IntArray
    head: IntArray
    deprel: tuple[str, ...]
    upos: tuple[str, ...]
    bits: FloatArray
    depth: IntArray
    person: tuple[str, ...]
    place: tuple[str, ...]
    mechanisms: Mapping[str, FloatArray] = field(default_factory=dict)


def read_stories(stories: Sequence[int], n_sentences: int) -> Prose:
    """Return the first ``n_sentences`` sentences of these stories, in this order."""
    shown = _every_story().filter(pl.col("sentence") < n_sentences)
    words = shown.partition_by("story", maintain_order=True)
    chosen = pl.concat([words[story] for story in stories])
    story = np.repeat(np.arange(len(stories)), [words[story].height for story in stories])
    paragraph = chosen["paragraph"].to_numpy()
    begins = (np.diff(paragraph, prepend=0) != 0) | (np.diff(story, prepend=0) != 0)
    return Prose(
        word=tuple(chosen["word"]),
        story=story,
        sentence=story * n_sentences + chosen["sentence"].to_numpy(),
        paragraph=np.cumsum(begins),
        head=chosen["head"].to_numpy(),
        deprel=tuple(chosen["deprel"]),
        upos=tuple(chosen["upos"]),
        bits=chosen["bits"].to_numpy(),
        depth=chosen["depth"].to_numpy(),
        person=tuple(chosen["person"]),
        place=tuple(chosen["place"]),
        mechanisms={name: chosen[name].cast(pl.Float64).to_numpy() for name in MECHANISMS},
    )


@cache
def _every_story() -> pl.DataFrame:
    with resources.files(__name__).joinpath(STORIES).open("rb") as file:
        return pl.read_csv(file, separator="\t", quote_char=None).with_columns(
            pl.col(pl.String).fill_null("")
        )


def stories_digest() -> str:
    """Return the SHA-256 of the file of stories."""
    return hashlib.sha256(resources.files(__name__).joinpath(STORIES).read_bytes()).hexdigest()


def word_type(word: str) -> str:
    """Return the type of a word: lower case, without its punctuation mark."""
    return word.rstrip(".,").lower()


@cache
def unigrams() -> dict[str, float]:
    """Probability of every word type, the most frequent one first, in a million words of such stories."""
    text = resources.files(__name__).joinpath(FREQUENCIES).read_text(encoding="utf-8")
    counts = {name: int(count) for name, count in (line.split("\t") for line in text.splitlines())}
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}
