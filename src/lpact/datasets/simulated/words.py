"""Words of a simulated stimulus: vocabulary, sentences, timing, acoustic envelope."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.datasets.base import Envelope
from lpact.datasets.simulated.options import WORDS_PER_SENTENCE, SimulatedOptions
from lpact.datasets.simulated.prose import N_STORIES, read_stories, unigrams, word_type
from lpact.datasets.simulated.streams import Streams
from lpact.math.types import FloatArray, IntArray

FIRST_ONSET_S = 1.0
ENVELOPE_RATE_HZ = 50.0
N_HASH_BITS = 16
_CONSONANTS = "bdfgklmnprstvz"
_VOWELS = "aeiou"


@dataclass(frozen=True)
class Vocabulary:
    """Word types, the most frequent one first.

    ``probability`` follows Zipf–Mandelbrot, p(r) ∝ 1 / (r + 2.7), or is the prose's own; ``vectors``
    is [n_types, n_lexical_dims]; ``hashes`` is [n_types, 16] of ±1, a function of the spelling.
    """

    spelling: tuple[str, ...]
    length: IntArray
    probability: FloatArray
    vectors: FloatArray
    hashes: FloatArray


def make_vocabulary(options: SimulatedOptions, streams: Streams) -> Vocabulary:
    """Return the dataset's vocabulary."""
    rng = streams.rng("vocabulary")
    if options.text == "prose":
        unigram = unigrams()
        return _vocabulary(options, rng, tuple(unigram), np.array(list(unigram.values())))
    n_types = options.vocabulary_size
    rank = np.arange(1, n_types + 1)
    weight = 1.0 / (rank + 2.7)
    mean_extra_letters = 1.0 + 4.0 * np.log(rank) / np.log(n_types)
    spelling: dict[str, None] = {}
    for n_letters in 2 + rng.poisson(mean_extra_letters):
        word = _spell(rng, int(n_letters))
        while word in spelling:
            word += _spell(rng, 1)
        spelling[word] = None
    return _vocabulary(options, rng, tuple(spelling), weight / weight.sum())


def _vocabulary(
    options: SimulatedOptions,
    rng: np.random.Generator,
    spelling: tuple[str, ...],
    probability: FloatArray,
) -> Vocabulary:
    return Vocabulary(
        spelling=spelling,
        length=np.array([len(word) for word in spelling], dtype=np.int64),
        probability=probability,
        vectors=rng.standard_normal((len(spelling), options.n_lexical_dims)),
        hashes=np.stack([_hash_bits(word) for word in spelling]),
    )


def _spell(rng: np.random.Generator, n_letters: int) -> str:
    picks = rng.integers(0, len(_CONSONANTS) * len(_VOWELS), n_letters)
    letters = [_VOWELS if i % 2 else _CONSONANTS for i in range(n_letters)]
    return "".join(alphabet[pick % len(alphabet)] for alphabet, pick in zip(letters, picks, strict=True))


def _hash_bits(word: str) -> FloatArray:
    digest = np.frombuffer(hashlib.sha256(word.encode()).digest()[: N_HASH_BITS // 8], dtype=np.uint8)
    return 2.0 * np.unpackbits(digest).astype(np.float64) - 1.0


@dataclass(frozen=True)
class Words:
    """Words of one stimulus in order; every array is [n_words].

    ``sentence`` and ``story`` count from 0 and sentences run on over stories; ``position`` is the
    word's place in its sentence, ``from_end`` its distance from the sentence's last word. ``prose``
    has the words as they are written, with their parse, if they are prose.
    """

    type_index: IntArray
    sentence: IntArray
    story: IntArray
    position: IntArray
    from_end: IntArray
    onset_s: FloatArray
    offset_s: FloatArray
    log_frequency: FloatArray
    length: IntArray
    prose: pl.DataFrame | None = None

    @property
    def n_words(self) -> int:
        """Number of words."""
        return len(self.type_index)

    @property
    def end_s(self) -> float:
        """End of the last word."""
        return float(self.offset_s[-1])

    def frame(self, vocabulary: Vocabulary) -> pl.DataFrame:
        """Return the words table, with the natural logarithm of each type's probability.

        Prose adds ``paragraph_id`` (running on over stories), the parse ``head`` (from 1 in the
        sentence, 0 for the root), ``deprel`` and ``upos``, and ``true_surprisal_bits``.
        """
        prose = self.prose
        frame = pl.DataFrame(
            {
                "word": [vocabulary.spelling[i] for i in self.type_index],
                "onset_s": self.onset_s,
                "offset_s": self.offset_s,
                "sentence_id": self.sentence,
                "story_id": [f"story{story + 1:02d}" for story in self.story],
                "log_frequency": self.log_frequency,
            }
        )
        if prose is None:
            return frame
        return frame.with_columns(
            prose["word"],
            prose["paragraph"].alias("paragraph_id"),
            prose["head"],
            prose["deprel"],
            prose["upos"],
            prose["bits"].alias("true_surprisal_bits"),
        )


def make_words(options: SimulatedOptions, vocabulary: Vocabulary, streams: Streams, stimulus_id: str) -> Words:
    """Return the words of one stimulus; no two stimuli of a dataset have a story in common.

    A word of n letters lasts 0.1 s + 35 ms · n, ± 20 %. Pauses are uniform: 20–80 ms between words,
    0.4–0.7 s between sentences, 2–3 s between stories.
    """
    rng = streams.rng("words", stimulus_id)
    if options.text == "prose":
        order = streams.rng("stories").permutation(N_STORIES).tolist()
        first = (int(stimulus_id.removeprefix("stimulus")) - 1) * options.n_stories
        chosen = order[first : first + options.n_stories]
        prose = read_stories(chosen, options.sentences_per_story)
        rank = {word: index for index, word in enumerate(vocabulary.spelling)}
        types = np.array([rank[word_type(word)] for word in prose["word"]], dtype=np.int64)
        sentence, story = prose["sentence"].to_numpy(), prose["story"].to_numpy()
        return _time(vocabulary, types, sentence, story, rng, prose)
    n_sentences = options.n_stories * options.sentences_per_story
    low, high = WORDS_PER_SENTENCE
    sizes = rng.integers(low, high + 1, n_sentences)
    sentence = np.repeat(np.arange(n_sentences), sizes)
    story = sentence // options.sentences_per_story
    types = rng.choice(len(vocabulary.spelling), size=len(sentence), p=vocabulary.probability)
    return _time(vocabulary, types, sentence, story, rng)


def _time(
    vocabulary: Vocabulary,
    type_index: IntArray,
    sentence: IntArray,
    story: IntArray,
    rng: np.random.Generator,
    prose: pl.DataFrame | None = None,
) -> Words:
    """Put words on a clock."""
    sizes = np.bincount(sentence)
    n_words = len(sentence)
    first_row = np.repeat(np.cumsum(sizes) - sizes, sizes)
    position = np.arange(n_words) - first_row
    length = vocabulary.length[type_index]
    duration_s = (0.1 + 0.035 * length) * rng.uniform(0.8, 1.2, n_words)
    pause_s = rng.uniform(0.02, 0.08, n_words)
    sentence_end = position == sizes[sentence] - 1
    story_end = np.append(np.diff(story) > 0, True)
    pause_s[sentence_end] = rng.uniform(0.4, 0.7, int(sentence_end.sum()))
    pause_s[story_end] = rng.uniform(2.0, 3.0, int(story_end.sum()))
    onset_s = FIRST_ONSET_S + np.concatenate([[0.0], np.cumsum(duration_s + pause_s)[:-1]])
    return Words(
        type_index=type_index,
        sentence=sentence,
        story=story,
        position=position,
        from_end=sizes[sentence] - 1 - position,
        onset_s=onset_s,
        offset_s=onset_s + duration_s,
        log_frequency=np.log(vocabulary.probability[type_index]),
        length=length,
        prose=prose,
    )


def make_envelope(words: Words, duration_s: float, rng: np.random.Generator) -> Envelope:
    """Return an envelope at 50 Hz: one sin² bump per word, with random loudness, on a noise floor."""
    times_s = np.arange(int(np.ceil(duration_s * ENVELOPE_RATE_HZ))) / ENVELOPE_RATE_HZ
    loudness = rng.lognormal(0.0, 0.3, words.n_words)
    row = np.maximum(np.searchsorted(words.onset_s, times_s, side="right") - 1, 0)
    phase = (times_s - words.onset_s[row]) / (words.offset_s - words.onset_s)[row]
    speaking = (phase >= 0) & (phase <= 1)
    bumps = np.where(speaking, loudness[row] * np.sin(np.pi * phase) ** 2, 0.0)
    floor = 0.02 * np.abs(rng.standard_normal(len(times_s)))
    return Envelope(bumps + floor, ENVELOPE_RATE_HZ)
