"""Short English stories from a stochastic grammar of the project's own, with parse and true surprisal.

A story has a setting, up to four people, things, scenes at places and a weather, which persist: what
comes next depends on the whole story so far. Its words are written from left to right, and every
choice of the grammar shows in the word at which it is made. So ``bits``, the −log2 of the probability
of the choices made at a word, is exactly −log2 p(word | all words of the story before), where a word
includes its punctuation mark. No model can expect the words better. How many sentences a story has is
not part of the grammar: nothing is charged for going on.

The parse is Universal Dependencies; punctuation marks are parts of words and have no arcs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from lpact.datasets.simulated.prose.grammar import Narrator
from lpact.datasets.simulated.prose.writer import Chooser, RandomChooser, Token
from lpact.math.types import FloatArray, IntArray

__all__ = ["Prose", "join", "unigrams", "word_type", "write_prose", "write_story"]

FREQUENCIES = "frequencies.tsv"
MARKS = ".,"


@dataclass(frozen=True)
class Prose:
    """Stories in order; all are [n_words].

    ``sentence`` and ``paragraph`` count from 0 and run on over stories. ``head`` is the place of a
    word's head in its sentence, from 1; 0 for the root. ``depth`` counts the embedded clauses around a
    word. ``person`` and ``place`` name who was mentioned last and where the scene is, once the word
    is known; empty before the first.
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


def write_story(chooser: Chooser, n_sentences: int) -> list[Token]:
    """Return the words of one story."""
    narrator = Narrator(chooser)
    for _ in range(n_sentences):
        narrator.write_sentence()
    return narrator.tokens


def write_prose(rng: np.random.Generator, *, n_stories: int, n_sentences: int) -> Prose:
    """Return ``n_stories`` independent stories of ``n_sentences`` sentences."""
    chooser = RandomChooser(rng)
    return join([write_story(chooser, n_sentences) for _ in range(n_stories)])


def join(stories: list[list[Token]]) -> Prose:
    """Return stories as columns."""
    tokens = [token for story in stories for token in story]
    counts = [len(story) for story in stories]
    sentence = _run_on([[token.sentence for token in story] for story in stories])
    paragraph = _run_on([[token.paragraph for token in story] for story in stories])
    first = np.searchsorted(sentence, sentence)
    row = {id(token): index for index, token in enumerate(tokens)}
    head = [0 if t.head is None else row[id(t.head)] - first[i] + 1 for i, t in enumerate(tokens)]
    return Prose(
        word=tuple(token.form + token.mark for token in tokens),
        story=np.repeat(np.arange(len(stories)), counts),
        sentence=sentence,
        paragraph=paragraph,
        head=np.array(head, dtype=np.int64),
        deprel=tuple(token.deprel for token in tokens),
        upos=tuple(token.upos for token in tokens),
        bits=np.array([token.bits for token in tokens]),
        depth=np.array([token.depth for token in tokens], dtype=np.int64),
        person=tuple(token.person for token in tokens),
        place=tuple(token.place for token in tokens),
    )


def word_type(word: str) -> str:
    """Return the type of a word: lower case, without its punctuation mark."""
    return word.rstrip(MARKS).lower()


@cache
def unigrams() -> dict[str, float]:
    """Probability of every word type, the most frequent one first.

    Relative frequencies in a fixed sample of about a million words, which ``tools/train_tiny_model.py
    frequencies`` counts.
    """
    text = resources.files(__name__).joinpath(FREQUENCIES).read_text(encoding="utf-8")
    counts = {name: int(count) for name, count in (line.split("\t") for line in text.splitlines())}
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}


def _run_on(stories: list[list[int]]) -> IntArray:
    """Number ids that start from 0 in every story through all of them."""
    start, joined = 0, []
    for ids in stories:
        joined += [start + i for i in ids]
        start += ids[-1] + 1
    return np.array(joined, dtype=np.int64)
