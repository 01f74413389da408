"""Mechanisms that follow from the text of a story."""

from __future__ import annotations

import numpy as np

from lpact.datasets.simulated.prose import word_type
from lpact.math.dependencies import clause_starts, closing_subtrees, integration_cost
from lpact.math.seeding import keyed_rng
from lpact.math.types import BoolArray, FloatArray, IntArray
from story_grammar.prose import Prose

MEANING_DIMS = 16
TRANSITION_SPAN = 10
CLAUSAL = ("root", "advcl", "acl", "ccomp")
PREDICATE_MARKS = ("nsubj", "expl", "cop", "aux")


def mechanisms(prose: Prose) -> dict[str, FloatArray]:
    """Return the mechanisms of every word, [n_words] each.

    - ``semantic_transition``: 1 − r of a fixed random vector of the word's type and the mean of those of
      the ten words before it;
    - ``dependency_integration``: Σ |i − h_i| over the dependencies whose later end is the word;
    - ``syntactic_boundary``: subtrees of two or more words whose last word it is;
    - ``discourse_boundary``: units among story, paragraph, sentence and clause that begin at the word.
    """
    first = np.searchsorted(prose.sentence, prose.sentence)
    head = np.where(prose.head == 0, -1, first + prose.head - 1)
    units = (prose.story, prose.paragraph, prose.sentence)
    begins = sum(np.append(1.0, np.diff(ids) != 0) for ids in units)
    types = [word_type(word) for word in prose.word]
    table = {name: keyed_rng(0, "prose", "meaning", name).standard_normal(MEANING_DIMS) for name in set(types)}
    return {
        "semantic_transition": _transitions(np.stack([table[t] for t in types]), prose.story),
        "dependency_integration": integration_cost(head, np.ones(len(head), dtype=np.bool_)),
        "syntactic_boundary": closing_subtrees(head).astype(np.float64),
        "discourse_boundary": begins + clause_starts(head, clause_heads(prose, head)),
    }


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
