"""Words written from left to right by weighted choices, each charged to the word that shows it.

The grammar decides nothing before the word that shows the decision: at every word, different
choices give different words. The choices made so far can then be read off the words so far, and the
bits that were spent on a word are its surprisal, exactly::

    bits(w) = Σ over the choices at w of −log2 p(choice) = −log2 p(w | all words before in the story)

A word includes its punctuation mark.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

T = TypeVar("T")

HEAD = -1


class Chooser(Protocol):
    """Where choices come from. ``word`` is the index in the story of the word that shows it."""

    def pick(self, weights: Sequence[float], word: int) -> int:
        """Return the index of one of the ``weights``, which are not all 0."""
        ...


@dataclass(frozen=True)
class RandomChooser:
    """Choices at random, in proportion to their weights."""

    rng: np.random.Generator

    def pick(self, weights: Sequence[float], word: int) -> int:  # noqa: ARG002
        """Draw one index; a choice without alternatives draws nothing."""
        possible = [index for index, weight in enumerate(weights) if weight > 0.0]
        if len(possible) == 1:
            return possible[0]
        left = float(self.rng.random()) * sum(weights)
        for index in possible:
            left -= weights[index]
            if left < 0.0:
                return index
        return possible[-1]


@dataclass(eq=False)
class Token:
    """One word of a story. ``head`` is None for the root; ``depth`` counts clauses around it."""

    form: str
    upos: str
    bits: float
    sentence: int
    paragraph: int
    depth: int
    person: str
    place: str
    mark: str = ""
    head: Token | None = None
    deprel: str = ""

    def attach(self, head: Token | None, deprel: str) -> None:
        """Make this word a dependent of ``head``; None makes it the root."""
        self.head, self.deprel = head, deprel


class Word(NamedTuple):
    """A word of a phrase; ``head`` is an index in the phrase, or `HEAD` for the phrase's own head."""

    form: str
    upos: str
    deprel: str = ""
    head: int = HEAD


@cache
def words(text: str) -> tuple[Word, ...]:
    """Parse ``form/upos/deprel/head`` words: ``the/DET/det key/NOUN``; the one without a deprel is the head."""
    parsed = []
    for word in text.split(" "):
        form, upos, *more = word.split("/")
        head = int(more[1]) if len(more) > 1 else HEAD
        parsed.append(Word(form, upos, more[0] if more else "", head))
    return tuple(parsed)


@dataclass(frozen=True)
class Phrase(Generic[T]):
    """A phrase that may be written, and its meaning."""

    weight: float
    words: tuple[Word, ...]
    meaning: T


class Writer:
    """Writes words; keeps the bits that were spent since the last one."""

    def __init__(self, chooser: Chooser) -> None:
        self.tokens: list[Token] = []
        self.sentence = 0
        self.paragraph = 0
        self.depth = 0
        self.person = ""
        self.place_name = ""
        self.sentence_start = 0
        self.chooser = chooser
        self._bits = 0.0

    @property
    def n_in_sentence(self) -> int:
        """Words of the sentence so far."""
        return len(self.tokens) - self.sentence_start

    def choose(self, weights: Mapping[T, float]) -> T:
        """Choose a key; the next word shows which."""
        choice, bits = self._choose(weights, len(self.tokens))
        self._bits += bits
        return choice

    def mark(self, weights: Mapping[str, float]) -> str:
        """Choose the punctuation mark of the last word (empty: none), charged to that word."""
        assert self._bits == 0.0, "a choice for the next word was made before this word's mark"
        mark, bits = self._choose(weights, len(self.tokens) - 1)
        self.tokens[-1].bits += bits
        self.tokens[-1].mark = mark
        return mark

    def word(self, form: str, upos: str) -> Token:
        """Write a word; a capital is added at the start of a sentence."""
        first = self.n_in_sentence == 0
        token = Token(
            form=form[0].upper() + form[1:] if first else form,
            upos=upos,
            bits=self._bits,
            sentence=self.sentence,
            paragraph=self.paragraph,
            depth=self.depth,
            person=self.person,
            place=self.place_name,
        )
        self._bits = 0.0
        self.tokens.append(token)
        return token

    def phrase(self, options: Sequence[Phrase[T]]) -> tuple[Token, T]:
        """Write one of the phrases word by word; return its head and meaning.

        Phrases share their beginnings: each word is chosen with the summed weight of the phrases
        that go on with it, so that no word says more than it shows.
        """
        alive = [option for option in options if option.weight > 0.0]
        written: list[Token] = []
        while True:
            n = len(written)
            totals: dict[str, float] = {}
            for option in alive:
                form = option.words[n].form if n < len(option.words) else ""
                totals[form] = totals.get(form, 0.0) + option.weight
            form = self.choose(totals)
            alive = [o for o in alive if (o.words[n].form if n < len(o.words) else "") == form]
            if not form:
                break
            written.append(self.word(form, alive[0].words[n].upos))
            if all(len(option.words) == n + 1 for option in alive):
                break
        (chosen,) = alive
        return self._link(written, chosen.words), chosen.meaning

    def end_sentence(self) -> None:
        """Start a new sentence."""
        self.sentence += 1
        self.sentence_start = len(self.tokens)

    def _choose(self, weights: Mapping[T, float], word: int) -> tuple[T, float]:
        values = list(weights.values())
        index = self.chooser.pick(values, word)
        bits = math.log2(sum(values)) - math.log2(values[index])
        return list(weights)[index], max(bits, 0.0)

    @staticmethod
    def _link(written: list[Token], words: tuple[Word, ...]) -> Token:
        top = next(token for token, word in zip(written, words, strict=True) if not word.deprel)
        for token, word in zip(written, words, strict=True):
            token.upos = word.upos
            if word.deprel:
                token.attach(top if word.head == HEAD else written[word.head], word.deprel)
        return top
