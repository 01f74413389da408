"""Mechanisms from a dependency parse: integration, syntactic and discourse boundaries."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.features.language.text import check_filled
from lpact.features.mechanisms import Mechanism, MechanismInputs, Missing, Parse, begins
from lpact.math.dependencies import ROOT, clause_starts, closing_subtrees, integration_cost
from lpact.math.types import BoolArray, FloatArray
from lpact.registry import PluginOptions

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

    units: Annotated[tuple[Unit, ...], Field(min_length=1)] = (
        "story",
        "paragraph",
        "sentence",
        "clause",
    )
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
