"""The stochastic grammar that wrote the stories of `lpact.datasets.simulated.prose`, with parse and true surprisal.

A story has a setting, up to four people, things, scenes at places and a weather, which persist: what
comes next depends on the whole story so far. Its words are written from left to right, and every
choice of the grammar shows in the word at which it is made. So ``bits``, the −log2 of the probability
of the choices made at a word, is exactly −log2 p(word | all words of the story before), where a word
includes its punctuation mark. No model can do better on average. How many sentences a story has is
not part of the grammar: going on costs no bits.

The parse is Universal Dependencies; punctuation marks are parts of words and have no arcs.
"""

from __future__ import annotations

import numpy as np

from story_grammar.grammar import Narrator
from story_grammar.prose import Prose
from story_grammar.writer import Chooser, RandomChooser, Token

__all__ = ["Prose", "join", "write_prose", "write_story"]


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


def _run_on(stories: list[list[int]]) -> np.ndarray:
    """Number ids that start from 0 in every story through all of them."""
    start, joined = 0, []
    for ids in stories:
        joined += [start + i for i in ids]
        start += ids[-1] + 1
    return np.array(joined, dtype=np.int64)
