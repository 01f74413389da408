"""Word-level latents: what a brain or a model can know about each word.

All are standardised over the words of their stimulus. Contextual latents of prose are functions of the text, so any
reader of the text can know them: ``context`` is true surprisal, the discourse state's first dimension, clause depth,
and further dimensions of that state, up to the number of dimensions; ``private`` is a mean of fixed random vectors of
the three words before, in the same sentence, made uncorrelated with ``context``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.datasets.simulated.options import MECHANISMS, SimulatedOptions
from lpact.datasets.simulated.prose import MECHANISMS as OF_THE_TEXT
from lpact.datasets.simulated.prose import word_type
from lpact.datasets.simulated.streams import ar1, standardise
from lpact.datasets.simulated.words import Vocabulary, Words
from lpact.math.seeding import keyed_rng
from lpact.math.types import BoolArray, FloatArray, IntArray

CONTEXT_AUTOCORRELATION = 0.2
N_DRIFTS = 2
N_NUISANCES = 3
RETENTION = 0.9
MIN_DISCOURSE_DIMS = 4
PRIVATE_SPAN = 3


@dataclass(frozen=True)
class ContextualLatents:
    """Latents that need the words before: lost when the context is cut, reversed or shuffled.

    ``context`` and ``private`` are [n_words, n_context_dims]; ``mechanisms`` is [n_words, 6], in
    the order of `MECHANISMS`.
    """

    context: FloatArray
    private: FloatArray
    mechanisms: FloatArray

    @property
    def relational_drive(self) -> FloatArray:
        """c(w), the one scalar that relational units share: the mean direction of ``context``."""
        return standardise(self.context.sum(axis=1))

    @property
    def predictive_drive(self) -> FloatArray:
        """e(w), the scalar of the predictive truth: the mean direction of ``private``."""
        return standardise(self.private.sum(axis=1))


@dataclass(frozen=True)
class Drifts:
    """Slow courses d_k(t) = cos(π p + φ_k1) + cos(2π p + φ_k2), p(t) ∈ [0, 1] in each story.

    Every story has the same courses, with periods of one and two stories. They are standardised
    over the words; between stories, p keeps the last story's 1.
    """

    phases: FloatArray
    story_start_s: FloatArray
    story_end_s: FloatArray
    mean: FloatArray
    sd: FloatArray

    def at(self, times_s: FloatArray) -> FloatArray:
        """Return the drifts at ``times_s``, [n_times, N_DRIFTS]."""
        return (self._raw(times_s) - self.mean) / self.sd

    def _raw(self, times_s: FloatArray) -> FloatArray:
        story = np.maximum(np.searchsorted(self.story_start_s, times_s, side="right") - 1, 0)
        length_s = (self.story_end_s - self.story_start_s)[story]
        place = np.clip((times_s - self.story_start_s[story]) / length_s, 0.0, 1.0)[:, None]
        slow = np.cos(np.pi * place + self.phases[0])
        total: FloatArray = slow + np.cos(2.0 * np.pi * place + self.phases[1])
        return total


@dataclass(frozen=True)
class Latents:
    """All latents of one stimulus.

    ``lexical`` is [n_words, n_lexical_dims]; ``nuisances`` is [n_words, N_NUISANCES]: word length, log
    frequency and position in the sentence.
    """

    lexical: FloatArray
    contextual: ContextualLatents
    drifts: Drifts
    nuisances: FloatArray

    @property
    def lexical_drive(self) -> FloatArray:
        """l(w), the scalar of the lexical truth: the mean direction of ``lexical``."""
        return standardise(self.lexical.sum(axis=1))


def make_contextual(words: Words, options: SimulatedOptions, rng: np.random.Generator) -> ContextualLatents:
    """Draw contextual latents; another generator gives an independent draw for the same words."""
    shape = (words.n_words, options.n_context_dims)
    context = standardise(ar1(rng, *shape, CONTEXT_AUTOCORRELATION))
    private = standardise(ar1(rng, *shape, CONTEXT_AUTOCORRELATION))
    return ContextualLatents(context, private, _make_mechanisms(words, rng))


def _make_mechanisms(words: Words, rng: np.random.Generator) -> FloatArray:
    """Six scalars distributed like the mechanisms they are named after, but exactly uncorrelated over words.

    Surprisal is skewed and correlates by about 0.2 with −log frequency; integration is a count;
    syntactic boundaries grow at phrase ends, discourse boundaries at sentence starts.
    """
    n = words.n_words
    rarity = standardise(-words.log_frequency)
    phrase_end = (words.from_end == 0) | (rng.random(n) < 0.2)
    new_topic = (words.position == 0) & (rng.random(n) < 0.5)
    raw = {
        "surprisal": 0.2 * rarity + np.sqrt(0.96) * standardise(rng.gamma(2.0, size=n)),
        "semantic_transition": rng.beta(2.0, 3.0, n),
        "dependency_integration": rng.poisson(1.5, n).astype(np.float64),
        "syntactic_boundary": (0.5 + 1.0 * phrase_end) * rng.gamma(3.0, size=n),
        "discourse_boundary": (0.5 + 1.5 * new_topic) * rng.gamma(3.0, size=n),
        "context_update": rng.lognormal(0.0, 0.5, n),
    }
    return _decorrelate(standardise(np.column_stack([raw[name] for name in MECHANISMS])))


def _decorrelate(columns: FloatArray) -> FloatArray:
    """Symmetric whitening Z C^(−1/2): the uncorrelated columns that are nearest to ``columns``."""
    variance, axes = np.linalg.eigh(columns.T @ columns / len(columns))
    whitened: FloatArray = columns @ (axes / np.sqrt(variance)) @ axes.T
    return whitened


def make_latents(words: Words, vocabulary: Vocabulary, options: SimulatedOptions, rng: np.random.Generator) -> Latents:
    """Make all latents of one stimulus; contextual ones of prose are read from the text."""
    lexical = standardise(vocabulary.vectors[words.type_index])
    if words.prose is None:
        contextual = make_contextual(words, options, rng)
    else:
        contextual = ContextualLatents(*read_contextual(words.prose, options.n_context_dims))
    return Latents(
        lexical=lexical,
        contextual=contextual,
        drifts=_make_drifts(words, rng),
        nuisances=standardise(np.column_stack([words.length, words.log_frequency, words.position]).astype(np.float64)),
    )


def _make_drifts(words: Words, rng: np.random.Generator) -> Drifts:
    first = np.flatnonzero(np.diff(words.story, prepend=-1))
    last = np.append(first[1:] - 1, words.n_words - 1)
    raw = Drifts(
        phases=rng.uniform(0.0, 2.0 * np.pi, (2, N_DRIFTS)),
        story_start_s=words.onset_s[first],
        story_end_s=words.onset_s[last],
        mean=np.zeros(N_DRIFTS),
        sd=np.ones(N_DRIFTS),
    )
    at_words = raw.at(words.onset_s)
    return Drifts(raw.phases, raw.story_start_s, raw.story_end_s, at_words.mean(axis=0), at_words.std(axis=0))


def read_contextual(prose: pl.DataFrame, n_dims: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``context`` and ``private``, [n_words, n_dims], and ``mechanisms``, [n_words, 6].

    All columns are standardised over the words; one that does not vary is 0.
    """
    discourse = discourse_state(prose, max(n_dims, MIN_DISCOURSE_DIMS))
    bits, depth = (prose[name].cast(pl.Float64).to_numpy() for name in ("bits", "depth"))
    columns = [bits, discourse[:, 0], depth, *discourse.T[1:]]
    context = standardise(np.column_stack(columns[:n_dims]))
    private = _private(prose, n_dims)
    private -= context @ np.linalg.lstsq(context, private, rcond=None)[0]
    return context, standardise(private), _mechanisms(prose, discourse)


def discourse_state(prose: pl.DataFrame, n_dims: int) -> FloatArray:
    """Return d(w), [n_words, n_dims]."""
    vectors: dict[str, FloatArray] = {"": np.zeros(n_dims)}
    state = np.zeros((prose.height, n_dims))
    now = np.zeros(n_dims)
    begins = _begins(prose["story"].to_numpy())
    for row, names in enumerate(prose.select("person", "place").iter_rows()):
        for name in names:
            if name not in vectors:
                vectors[name] = keyed_rng(0, "prose", "discourse", name).standard_normal(n_dims)
        now = RETENTION * now * (not begins[row])
        now = now + (1.0 - RETENTION) * (vectors[names[0]] + vectors[names[1]])
        state[row] = now
    return state


def _private(prose: pl.DataFrame, n_dims: int) -> FloatArray:
    types = [word_type(word) for word in prose["word"]]
    table = {name: keyed_rng(0, "prose", "private", name).standard_normal(n_dims) for name in set(types)}
    vectors = np.stack([table[name] for name in types])
    sentence = prose["sentence"].to_numpy()
    total, count = np.zeros_like(vectors), np.zeros(len(vectors))
    for lag in range(1, PRIVATE_SPAN + 1):
        same = np.append(np.zeros(lag, bool), sentence[lag:] == sentence[:-lag])
        total[lag:] += vectors[:-lag] * same[lag:, None]
        count += same
    mean: FloatArray = total / np.maximum(count, 1.0)[:, None]
    return standardise(mean)


def _mechanisms(prose: pl.DataFrame, discourse: FloatArray) -> FloatArray:
    begins = _begins(prose["story"].to_numpy())[:, None]
    before = np.where(begins, 0.0, np.roll(discourse, 1, axis=0))
    update = np.linalg.norm(discourse - before, axis=1)
    raw = {name: prose[name].cast(pl.Float64).to_numpy() for name in ("bits", *OF_THE_TEXT)}
    raw |= {"surprisal": raw["bits"], "context_update": update}
    return standardise(np.column_stack([raw[name] for name in MECHANISMS]))


def _begins(ids: IntArray) -> BoolArray:
    """Return at which rows a new id begins."""
    return np.append(True, np.diff(ids) != 0)
