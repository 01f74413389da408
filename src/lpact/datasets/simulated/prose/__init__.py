"""Short English stories with parse and true surprisal, written by the stochastic grammar in ``tools/story_grammar``.

``bits`` is exactly −log2 p(word | all words of the story before), where a word includes its punctuation mark: no model
can do better on average. The parse is Universal Dependencies; punctuation marks are parts of words and have no arcs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources

import polars as pl

STORIES, FREQUENCIES = "stories.tsv.gz", "frequencies.tsv"
N_STORIES, SENTENCES_PER_STORY = 160, 40
"""Stories in the file, and sentences of each."""

IDS = ("sentence", "paragraph", "story")
MECHANISMS = ("semantic_transition", "dependency_integration", "syntactic_boundary", "discourse_boundary")
"""Mechanisms that the file has for every word; ``tools/story_grammar/mechanisms.py`` defines them."""


def read_stories(stories: Sequence[int], n_sentences: int) -> pl.DataFrame:
    """Return the words of the first ``n_sentences`` sentences of these stories, in this order.

    ``story``, ``sentence`` and ``paragraph`` count from 0 and run on over stories. ``head`` is the place of a word's
    head in its sentence, from 1; 0 for the root. ``depth`` counts the embedded clauses around a word. ``person`` and
    ``place`` name who was mentioned last and where the scene is, once the word is known; empty before the first. The
    columns `MECHANISMS` are not standardised.
    """
    shown = _every_story().filter(pl.col("sentence") < n_sentences)
    words = shown.partition_by("story", maintain_order=True)
    text = pl.concat([words[story] for story in stories])
    of_story = pl.col("story").alias("of_story")
    ids = [pl.struct(of_story, name).rle_id().cast(pl.Int64).alias(name) for name in IDS]
    return text.with_columns(ids)


@cache
def _every_story() -> pl.DataFrame:
    with resources.files(__name__).joinpath(STORIES).open("rb") as file:
        return pl.read_csv(file, separator="\t", quote_char=None).with_columns(pl.col(pl.String).fill_null(""))


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
