"""Mechanisms: one scalar per word that a language process would compute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from lpact.codes import Reason
from lpact.datasets.base import Stimulus
from lpact.datasets.validate import check_word_values
from lpact.grid.words import slices
from lpact.math.columns import standard_columns
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.registry import Plugin, Registry


@dataclass(frozen=True)
class Missing:
    """Why a nuisance feature, mechanism, control or strip cannot be made here."""

    reason: Reason
    detail: str


@dataclass(frozen=True)
class WordValues:
    """A language model's values for the words of a stimulus in full context; ``where`` names the model.

    ``surprisal()`` is −log2 p(word | words before), ``entropy()`` that of the next token after each word, [n_words] in
    bits. ``states(layer)`` returns the hidden states of one of ``layers``, [n_words, width], or the static vectors
    (None).
    """

    where: str
    layers: tuple[int, ...]
    surprisal: Callable[[], FloatArray | Missing]
    entropy: Callable[[], FloatArray | Missing]
    states: Callable[[int | None], FloatArray | Missing]


@dataclass(frozen=True)
class Parse:
    """Universal Dependencies of the words of a stimulus, [n_words] each.

    ``head`` is the row of each word's head in the words table, −1 for the root of a sentence; ``upos`` is None if
    parts of speech are unknown; ``where`` names the columns or the pipeline.
    """

    head: IntArray
    relation: tuple[str, ...]
    upos: tuple[str, ...] | None
    where: str


NO_LANGUAGE = Missing(Reason.MECHANISM_NOT_OFFERED, "no model of the study reads text")
NO_PARSE = Missing(
    Reason.MECHANISM_NOT_OFFERED, "the words table has no columns 'head' and 'deprel', and no parser is named"
)


@dataclass(frozen=True)
class MechanismInputs:
    """Everything that a mechanism may use: the stimulus, a language model's view of it, and its parse."""

    stimulus: Stimulus
    language: WordValues | Missing = NO_LANGUAGE
    parse: Parse | Missing = NO_PARSE


class Mechanism(Plugin, ABC):
    """A registered mechanism. ``summary`` describes the quantity.

    ``reads_language`` and ``reads_parse`` say what it needs beyond the stimulus; nothing else is computed for it.
    ``needs`` names this in messages. Where the dataset has values of the mechanism's name, these are used instead.
    """

    needs: ClassVar[str] = ""
    reads_language: ClassVar[bool] = True
    reads_parse: ClassVar[bool] = True

    @abstractmethod
    def compute(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Return one finite value per word, [n_words], or why there is none."""


BUILT_IN = {
    "context_update": "built_in:ContextUpdate",
    "dependency_integration": "built_in:DependencyIntegration",
    "discourse_boundary": "built_in:DiscourseBoundary",
    "semantic_transition": "built_in:SemanticTransition",
    "surprisal": "built_in:Surprisal",
    "syntactic_boundary": "built_in:SyntacticBoundary",
}

MECHANISMS: Registry[Mechanism] = Registry("mechanism", "lpact.features.mechanisms:Mechanism", package=__name__)


def begins(stimulus: Stimulus, column: str) -> BoolArray:
    """Return at which words a new story or sentence begins, [n_words]."""
    starts = np.zeros(stimulus.words.height, dtype=np.bool_)
    starts[slices(stimulus.words, column)[0]] = True
    return starts


def mechanism_matrix(
    names: Sequence[str],
    inputs: MechanismInputs,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[FloatArray, tuple[str, ...], dict[str, Missing]]:
    """Return the mechanisms of every word, [n_words, n_available], their names, and those that are missing.

    Columns are in the order of ``names``. Raises `StimulusError` unless a mechanism has one finite value per word.
    """
    stimulus = inputs.stimulus
    columns: dict[str, FloatArray] = {}
    missing: dict[str, Missing] = {}
    for name in names:
        own = (options or {}).get(name)
        mechanism = MECHANISMS.build(name, own, where="option 'mechanisms.include'")
        if name in stimulus.mechanisms:
            values: FloatArray | Missing = np.asarray(stimulus.mechanisms[name], dtype=np.float64)
        else:
            values = mechanism.compute(inputs)
        if isinstance(values, Missing):
            needed = "one value per word" + (mechanism.needs and f", or {mechanism.needs}")
            place = f"stimulus '{stimulus.id}' ({stimulus.where})"
            detail = f"{place} has no values of '{name}'; needed: {needed}; but: {values.detail}"
            missing[name] = Missing(values.reason, detail)
        else:
            check_word_values(name, values, stimulus)
            columns[name] = values
    empty = np.empty((stimulus.words.height, 0))
    matrix = np.column_stack([empty, *columns.values()])
    return matrix, tuple(columns), missing


def mechanism_correlations(matrix: FloatArray, names: Sequence[str]) -> list[tuple[str, str, float]]:
    """Return Pearson's r of every pair of columns as (a, b, r); nan where a column does not vary.

    ``matrix`` is [n_words or n_events, n_mechanisms], finite; ``names`` are its columns.
    """
    if len(matrix) == 0:
        return [(a, b, float("nan")) for a, b in combinations(names, 2)]
    z, varies = standard_columns(matrix)
    r = np.where(varies[:, None] & varies, z.T @ z / len(z), np.nan)
    pairs = combinations(range(len(names)), 2)
    return [(names[i], names[j], float(r[i, j])) for i, j in pairs]
