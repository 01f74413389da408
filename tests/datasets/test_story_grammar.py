"""The grammar that wrote the stories of simulated studies: bits are surprisal, and the shipped stories are its own."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from lpact.datasets.simulated.prose import read_stories, unigrams, word_type
from story_grammar import write_prose, write_story
from story_grammar.grammar import Narrator
from story_grammar.writer import RandomChooser
from write_stories import story as written_story


def test_the_grammar_writes_the_stories_that_are_shipped() -> None:
    for i in (0, 159):
        written = written_story(i).with_columns(story=pl.lit(0, pl.Int64))
        assert_frame_equal(read_stories([i], 40), written, check_dtypes=False)


class Recorder:
    """Draws at random and notes every choice with the word it belongs to."""

    def __init__(self, seed: int) -> None:
        self.inner = RandomChooser(np.random.default_rng(seed))
        self.picks: list[tuple[int, int]] = []

    def pick(self, weights: Sequence[float], word: int) -> int:
        index = self.inner.pick(weights, word)
        self.picks.append((word, index))
        return index


class WordDoneError(Exception):
    pass


class Path:
    """Repeats noted choices, then takes the first open one at a word and lists the others."""

    def __init__(self, noted: list[int], word: int, own: list[int], others: list[list[int]]):
        self.noted, self.word, self.own, self.others = noted, word, own, others
        self.taken: list[int] = []
        self.n_picks = 0
        self.probability = 1.0

    def pick(self, weights: Sequence[float], word: int) -> int:
        if word > self.word:
            raise WordDoneError
        self.n_picks += 1
        if self.n_picks <= len(self.noted):
            return self.noted[self.n_picks - 1]
        if len(self.taken) < len(self.own):
            index = self.own[len(self.taken)]
        else:
            index, *rest = (i for i, weight in enumerate(weights) if weight > 0)
            self.others += [[*self.taken, i] for i in rest]
        self.taken.append(index)
        self.probability *= weights[index] / sum(weights)
        return index


def next_words(noted: list[int], word: int) -> list[tuple[str, float]]:
    """Every way to write a word after the choices of the words before, with its probability."""
    found, paths = [], [[]]
    while paths:
        path = Path(noted, word, paths.pop(), paths)
        narrator = Narrator(path)
        with contextlib.suppress(WordDoneError):
            while True:
                narrator.write_sentence()
        token = narrator.tokens[word]
        found.append((token.form + token.mark, path.probability))
    return found


def test_every_choice_shows_in_its_word_so_that_bits_are_the_surprisal() -> None:
    rng = np.random.default_rng(1)
    for seed in range(8):
        recorder = Recorder(seed)
        tokens = write_story(recorder, 10)
        for word in rng.integers(0, len(tokens), 12).tolist():
            noted = [index for at, index in recorder.picks if at < word]
            ways = next_words(noted, word)
            forms = dict(ways)
            assert len(forms) == len(ways), "two ways to the same word"
            assert sum(forms.values()) == pytest.approx(1.0)
            token = tokens[word]
            assert token.bits == pytest.approx(-math.log2(forms[token.form + token.mark]), abs=1e-9)


def test_bits_agree_with_how_often_a_word_comes_next() -> None:
    """Draws of a first sentence: ``A young girl named Mira lived in a small village near the sea.``"""
    chooser = RandomChooser(np.random.default_rng(2))
    drawn = [write_story(chooser, 1) for _ in range(4000)]
    for place in range(5):
        after: dict[tuple[str, ...], list[tuple[str, float]]] = {}
        for story in drawn:
            before = tuple(token.form for token in story[:place])
            after.setdefault(before, []).append((story[place].form, story[place].bits))
        for nexts in after.values():
            for form, bits in set(nexts):
                expected = 2.0**-bits
                found = sum(form == other for other, _ in nexts) / len(nexts)
                spread = math.sqrt(expected * (1.0 - expected) / len(nexts))
                assert abs(found - expected) <= 4.5 * spread
    tense = [story[5].form for story in drawn]
    assert abs(tense.count("lived") / 4000 - 0.6) < 0.035


def test_unigrams_are_those_of_another_sample() -> None:
    other = write_prose(np.random.default_rng(5), n_stories=200, n_sentences=20)
    counts: dict[str, int] = {}
    for word in other.word:
        counts[word_type(word)] = counts.get(word_type(word), 0) + 1
    probability = unigrams()
    assert sum(probability.values()) == pytest.approx(1.0)
    assert counts.keys() <= probability.keys()
    top = list(probability)[:60]
    ratio = [counts[word] / len(other.word) / probability[word] for word in top]
    assert max(abs(np.log(ratio))) < 0.35
