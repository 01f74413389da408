"""Contextual latents of prose: functions of the text, so that whoever has read it can know them.

``context`` holds, in this order, up to the number of dimensions: true surprisal, the discourse state's first
dimension, clause depth, further dimensions of the discourse state. The discourse state is a slow vector
of who and where the story is about ::

    d(w) = 0.9 d(w − 1) + 0.1 (v[person last mentioned at w] + v[place of the scene at w])

from 0 at the start of a story, with a fixed random vector v for every person and place.

``private`` is what the words just before were: the mean over the three words before, in the same
sentence, of a fixed random vector of their types; made uncorrelated with ``context`` by regression.

``mechanisms`` mean what their names say, and correlate as they do in language:

- ``surprisal``: true surprisal in bits;
- ``semantic_transition``: 1 − r of a fixed random vector of the word's type and the mean of those of
  the ten words before it;
- ``dependency_integration``: Σ |i − h_i| over the dependencies whose later end is the word;
- ``syntactic_boundary``: subtrees of two or more words whose last word it is;
- ``discourse_boundary``: units among story, paragraph, sentence and clause that begin at the word;
- ``context_update``: ‖d(w) − d(w − 1)‖, how much the word changes the discourse state.
"""

from __future__ import annotations

import numpy as np

from lpact.datasets.simulated.options import MECHANISMS
from lpact.datasets.simulated.prose import Prose, word_type
from lpact.math.dependencies import clause_starts, closing_subtrees, integration_cost
from lpact.math.seeding import keyed_rng
from lpact.math.types import BoolArray, FloatArray, IntArray

RETENTION = 0.9
MIN_DISCOURSE_DIMS = 4
PRIVATE_SPAN = 3
MEANING_DIMS = 16
TRANSITION_SPAN = 10
CLAUSAL = ("root", "advcl", "acl", "ccomp")
PREDICATE_MARKS = ("nsubj", "expl", "cop", "aux")


def read_contextual(prose: Prose, n_dims: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``context`` and ``private``, [n_words, n_dims], and ``mechanisms``, [n_words, 6].

    All columns are standardised over the words; one that does not vary is 0.
    """
    discourse = discourse_state(prose, max(n_dims, MIN_DISCOURSE_DIMS))
    columns = [prose.bits, discourse[:, 0], prose.depth.astype(np.float64), *discourse.T[1:]]
    context = _standardise(np.column_stack(columns[:n_dims]))
    private = _private(prose, n_dims)
    private -= context @ np.linalg.lstsq(context, private, rcond=None)[0]
    return context, _standardise(private), _mechanisms(prose, discourse)


def discourse_state(prose: Prose, n_dims: int) -> FloatArray:
    """Return d(w), [n_words, n_dims]."""
    vectors: dict[str, FloatArray] = {"": np.zeros(n_dims)}
    state = np.zeros((len(prose.word), n_dims))
    now = np.zeros(n_dims)
    begins = _begins(prose.story)
    for row, names in enumerate(zip(prose.person, prose.place, strict=True)):
        for name in names:
            if name not in vectors:
                vectors[name] = keyed_rng(0, "prose", "discourse", name).standard_normal(n_dims)
        now = RETENTION * now * (not begins[row])
        now = now + (1.0 - RETENTION) * (vectors[names[0]] + vectors[names[1]])
        state[row] = now
    return state


def _private(prose: Prose, n_dims: int) -> FloatArray:
    vectors = _type_vectors(prose, "private", n_dims)
    total, count = np.zeros_like(vectors), np.zeros(len(vectors))
    for lag in range(1, PRIVATE_SPAN + 1):
        same = np.append(np.zeros(lag, bool), prose.sentence[lag:] == prose.sentence[:-lag])
        total[lag:] += vectors[:-lag] * same[lag:, None]
        count += same
    mean: FloatArray = total / np.maximum(count, 1.0)[:, None]
    return _standardise(mean)


def _type_vectors(prose: Prose, what: str, n_dims: int) -> FloatArray:
    """Return a fixed random vector of every word's type, [n_words, n_dims]."""
    types = [word_type(word) for word in prose.word]
    table = {name: keyed_rng(0, "prose", what, name).standard_normal(n_dims) for name in set(types)}
    return np.stack([table[name] for name in types])


def _mechanisms(prose: Prose, discourse: FloatArray) -> FloatArray:
    begins = _begins(prose.story)
    first = np.searchsorted(prose.sentence, prose.sentence)
    head = np.where(prose.head == 0, -1, first + prose.head - 1)
    before = np.where(begins[:, None], 0.0, np.roll(discourse, 1, axis=0))
    counted = np.ones(len(head), dtype=np.bool_)
    starts = (
        begins.astype(np.float64)
        + _begins(prose.paragraph)
        + _begins(prose.sentence)
        + clause_starts(head, clause_heads(prose, head))
    )
    raw = {
        "surprisal": prose.bits,
        "semantic_transition": _transitions(
            _type_vectors(prose, "meaning", MEANING_DIMS), prose.story
        ),
        "dependency_integration": integration_cost(head, counted),
        "syntactic_boundary": closing_subtrees(head).astype(np.float64),
        "discourse_boundary": starts,
        "context_update": np.linalg.norm(discourse - before, axis=1),
    }
    return _standardise(np.column_stack([raw[name] for name in MECHANISMS]))


def clause_heads(prose: Prose, head: IntArray) -> BoolArray:
    """Return which words head a main, adverbial, relative, reported or coordinated clause, [n_words].

    ``head`` is the row of each word's head, −1 for a root.
    """
    relation = np.array([label.partition(":")[0] for label in prose.deprel])
    predicate = np.array(prose.upos) == "VERB"
    predicate[head[np.isin(relation, PREDICATE_MARKS)]] = True
    heads: BoolArray = np.isin(relation, CLAUSAL) | ((relation == "conj") & predicate)
    return heads


def _transitions(vectors: FloatArray, story: IntArray) -> FloatArray:
    """Return 1 − r of each row with the mean of up to ten rows before it in its story; 1 at its start."""
    values = np.ones(len(vectors))
    for row in range(1, len(vectors)):
        low = max(row - TRANSITION_SPAN, int(np.searchsorted(story, story[row])))
        context = vectors[low:row].mean(axis=0) if low < row else np.zeros(vectors.shape[1])
        a, b = vectors[row] - vectors[row].mean(), context - context.mean()
        scale = float(np.linalg.norm(a) * np.linalg.norm(b))
        values[row] = 1.0 - (float(a @ b) / scale if scale > 0.0 else 0.0)
    return values


def _begins(ids: IntArray) -> BoolArray:
    """Return at which rows a new id begins."""
    starts: BoolArray = np.append(True, np.diff(ids) != 0)
    return starts


def _standardise(values: FloatArray) -> FloatArray:
    """Return columns with mean 0 and standard deviation 1; zeros where one does not vary."""
    centred = values - values.mean(axis=0)
    sd = centred.std(axis=0)
    scaled: FloatArray = centred / np.where(sd > 1e-9, sd, np.inf)
    return scaled
