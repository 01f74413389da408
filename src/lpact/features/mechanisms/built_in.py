"""Mechanisms from a language model, and from a dependency parse."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.features.language.text import check_filled
from lpact.features.mechanisms import Mechanism, MechanismInputs, Missing, Parse, WordValues, begins
from lpact.grid.words import slices
from lpact.math.columns import standard_columns
from lpact.math.dependencies import ROOT, clause_starts, closing_subtrees, integration_cost
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.registry import PluginOptions


class Surprisal(Mechanism):
    """−log2 p(word | words before), in bits (Hale 2001; Levy 2008)."""

    name = "surprisal"
    summary = "how unexpected the word is: its negative log probability given the words before"
    reads_parse = False
    needs = "a language model's word probabilities"

    def compute(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Return the language model's surprisal, in bits."""
        if isinstance(inputs.language, Missing):
            return inputs.language
        return inputs.language.surprisal()


class TransitionOptions(PluginOptions):
    """Options of `semantic_transition`."""

    context_words: Annotated[int, Field(ge=1)] = 10
    """Words before the word, in the same story, that make up its context."""
    layer: Annotated[int, Field(ge=0)] | None = None
    """Layer whose states are compared; none: static vectors of the words."""


class SemanticTransition(Mechanism):
    """1 − r(v_i, mean of v_{i−K} … v_{i−1}), r over dimensions (Frank & Willems 2017; Broderick et al. 2018).

    v are vectors of the words, K is `context_words` or as many as the story has. The first word of a story has no
    context and a constant vector no direction: r = 0, so the value is 1.
    """

    name = "semantic_transition"
    summary = "how far meaning moves from the words before to this word"
    reads_parse = False
    needs = "semantic vectors of the words, from a language model"
    Options = TransitionOptions

    def compute(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Compare each word's vector with the mean of those before it."""
        options = cast(TransitionOptions, self.options)
        if isinstance(inputs.language, Missing):
            return inputs.language
        vectors = states_of(inputs.language, options.layer)
        if isinstance(vectors, Missing):
            return vectors
        first, stop = slices(inputs.stimulus.words, "story_id")
        return transitions(vectors, first, stop, options.context_words)


def transitions(vectors: FloatArray, first: IntArray, stop: IntArray, context_words: int) -> FloatArray:
    """Return 1 − r of each row of [n, width] with the mean of up to ``context_words`` rows before it, [n].

    ``first`` and ``stop`` are the rows of each story.
    """
    values = np.ones(vectors.shape[0])
    for begin, end in zip(first.tolist(), stop.tolist(), strict=True):
        story = vectors[begin:end]
        n_before = np.minimum(np.arange(end - begin), context_words)
        # Plain sums, not differences of running ones: these would leave rounding where all vectors are zero.
        context = np.zeros_like(story)
        for lag in range(1, min(context_words, end - begin - 1) + 1):
            context[lag:] += story[:-lag]
        context /= np.maximum(n_before, 1)[:, None]
        values[begin:end] = 1.0 - row_correlations(story, context)
    return values


class UpdateOptions(PluginOptions):
    """Options of `context_update`."""

    of: Literal["state", "prediction"] = "state"
    """What the word changes: `state` (hidden state of the model) or `prediction` (entropy of the next token)."""
    layer: Annotated[int, Field(ge=0)] | None = None
    """Layer whose states are compared under `state`; none: the last layer."""


class ContextUpdate(Mechanism):
    """Change of a language model's state or prediction from the word before to this word.

    `state`: 1 − r(h_i, h_{i−1}), r over dimensions of the hidden state (after Rabovsky et al. 2018); 1 for the
    first word of a story. `prediction`: max(0, H_{i−1} − H_i) in bits, H the entropy of the next token after a
    word (Hale 2006; Frank 2013); 0 for the first word of a story.
    """

    name = "context_update"
    summary = "how much the word changes the representation of the context"
    reads_parse = False
    needs = "a language model's hidden states or entropy"
    Options = UpdateOptions

    def compute(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Compare each word's state or entropy with that of the word before."""
        options = cast(UpdateOptions, self.options)
        if isinstance(inputs.language, Missing):
            return inputs.language
        story_begins = begins(inputs.stimulus, "story_id")
        if options.of == "prediction":
            entropy = inputs.language.entropy()
            return entropy if isinstance(entropy, Missing) else reductions(entropy, story_begins)
        layers = inputs.language.layers
        if options.layer is None and not layers:
            where = inputs.language.where
            return Missing(Reason.MECHANISM_NOT_OFFERED, f"{where} has no hidden states")
        layer = max(layers) if options.layer is None else options.layer
        states = states_of(inputs.language, layer)
        return states if isinstance(states, Missing) else changes(states, story_begins)


def changes(states: FloatArray, story_begins: BoolArray) -> FloatArray:
    """Return 1 − r of each row of [n, width] with the row before it, 1 where a story begins, [n]."""
    values = np.ones(states.shape[0])
    values[1:] = 1.0 - row_correlations(states[1:], states[:-1])
    values[story_begins] = 1.0
    return values


def reductions(entropy: FloatArray, story_begins: BoolArray) -> FloatArray:
    """Return max(0, H_{i−1} − H_i) of [n] entropies, 0 where a story begins, [n]."""
    values = np.zeros(entropy.shape[0])
    values[1:] = np.maximum(entropy[:-1] - entropy[1:], 0.0)
    values[story_begins] = 0.0
    return values


def states_of(language: WordValues, layer: int | None) -> FloatArray | Missing:
    """Return the hidden states of a layer (None: static vectors), [n_words, width], in double precision."""
    if layer is not None and layer not in language.layers:
        offered = ", ".join(map(str, language.layers)) or "none"
        return Missing(Reason.MECHANISM_NOT_OFFERED, f"{language.where} has no layer {layer} (available: {offered})")
    states = language.states(layer)
    return states if isinstance(states, Missing) else np.asarray(states, dtype=np.float64)


def row_correlations(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return Pearson's r over columns of each row of ``a`` with the same row of ``b``, [n].

    Both are [n, width]. A row that is constant over columns has no correlation: 0.
    """
    if 0 in a.shape:
        return np.zeros(a.shape[0])
    (z_a, _), (z_b, _) = standard_columns(a.T), standard_columns(b.T)
    return np.asarray(np.clip(np.einsum("ji,ji->i", z_a, z_b) / a.shape[1], -1.0, 1.0))


NOT_COUNTED = ("punct", "root")


class DependencyIntegration(Mechanism):
    """Σ |i − h_i| over dependencies whose later end is the word (Gibson 2000; Temperley 2007).

    i is a word, h_i its head; distances are in words. `punct` and `root` are not counted.
    """

    name = "dependency_integration"
    summary = "cost of linking the word to earlier words that it depends on or that depend on it"
    reads_language = False
    needs = "a dependency parse"

    def compute(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Sum the lengths of the dependencies that end at each word."""
        parse = inputs.parse
        if isinstance(parse, Missing):
            return parse
        counted = [label.partition(":")[0] not in NOT_COUNTED for label in parse.relation]
        return integration_cost(parse.head, np.array(counted, dtype=np.bool_))


class SyntacticBoundary(Mechanism):
    """Number of phrases that close at the word (Nelson et al. 2017; Brennan & Pylkkänen 2017).

    A phrase is a word with everything below it in the dependency tree, two words or more; it closes at its last word.
    """

    name = "syntactic_boundary"
    summary = "how many constituents the word closes"
    reads_language = False
    needs = "a dependency parse"

    def compute(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Count the subtrees whose last word is each word."""
        if isinstance(inputs.parse, Missing):
            return inputs.parse
        return closing_subtrees(inputs.parse.head).astype(np.float64)


PARAGRAPH = "paragraph_id"
CONJUNCT = "conj"
VERBAL = ("VERB", "AUX")
PREDICATE_MARKS = ("nsubj", "csubj", "expl", "cop", "aux")
"""Relations that only a predicate governs: its subject, copula or auxiliary."""

Unit = Literal["story", "paragraph", "sentence", "clause"]


class BoundaryOptions(PluginOptions):
    """Options of `discourse_boundary`."""

    units: Annotated[tuple[Unit, ...], Field(min_length=1)] = ("story", "paragraph", "sentence", "clause")
    """Units that are counted. `clause` needs a parse; `paragraph` counts where the words table has a column
    `paragraph_id`.
    """
    clauses: tuple[str, ...] = ("parataxis", "advcl", "acl", "ccomp")
    """Relations, subtypes included, whose words head a discourse unit, in addition to roots and the clauses coordinated
    with such heads.
    """


class DiscourseBoundary(Mechanism):
    """Number of units among story, paragraph, sentence and clause that begin at the word.

    Clauses are elementary discourse units after Carlson & Marcu (2001): main clauses, and those that are adverbial,
    relative, reported, inserted or coordinated; not clauses that serve as subject or infinitival complement. A clause
    begins at the first word that is its own, not an inner clause's.
    """

    name = "discourse_boundary"
    summary = "whether, or how strongly, a new discourse segment begins at the word"
    reads_language = False
    needs = "a dependency parse (or its option `units` without `clause`)"
    Options = BoundaryOptions

    def compute(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Count the units that begin at each word."""
        options = cast(BoundaryOptions, self.options)
        stimulus = inputs.stimulus
        if "sentence" in options.units and (lacking := stimulus.lacks("sentence_id")):
            return Missing(Reason.MECHANISM_NOT_OFFERED, lacking)
        count = np.zeros(stimulus.words.height)
        if "clause" in options.units:
            if isinstance(inputs.parse, Missing):
                return inputs.parse
            count += clause_starts(inputs.parse.head, clause_heads(inputs.parse, options.clauses))
        if "story" in options.units:
            count += begins(stimulus, "story_id")
        if "paragraph" in options.units and PARAGRAPH in stimulus.words.columns:
            check_filled(stimulus.words, PARAGRAPH, stimulus.where)
            count += begins(stimulus, PARAGRAPH) | begins(stimulus, "story_id")
        if "sentence" in options.units:
            count += begins(stimulus, "sentence_id")
        return count


def clause_heads(parse: Parse, clauses: tuple[str, ...]) -> BoolArray:
    """Return which words head an elementary discourse unit, [n_words].

    Roots and words whose relation (before any ``:``) is in ``clauses``; then words coordinated with such a head, if
    they are predicates: a verb, or a word with subject, copula or auxiliary. Without parts of speech, every word
    that is coordinated with such a head counts.
    """
    relation = np.array([label.partition(":")[0] for label in parse.relation], dtype=np.str_)
    is_clause: BoolArray = (parse.head == ROOT) | np.isin(relation, clauses)
    predicate = np.ones(relation.size, dtype=np.bool_)
    if parse.upos is not None:
        predicate = np.isin(np.array(parse.upos, dtype=np.str_), VERBAL)
        predicate[parse.head[np.isin(relation, PREDICATE_MARKS) & (parse.head != ROOT)]] = True
    joined = (relation == CONJUNCT) & predicate & (parse.head != ROOT)
    # A conjunct of a conjunct is found in the next round.
    while (new := joined & ~is_clause & is_clause[parse.head]).any():
        is_clause = is_clause | new
    return is_clause
