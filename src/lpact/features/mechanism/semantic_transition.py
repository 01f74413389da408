"""How far a word's meaning lies from that of the words before (Frank & Willems 2017; Broderick et al. 2018)."""

from __future__ import annotations

from typing import Annotated, cast

import numpy as np
from pydantic import Field

from lpact.features.availability import Missing
from lpact.features.mechanism.base import ComputedMechanism, row_correlations, states_of
from lpact.features.mechanisms import MechanismInputs
from lpact.grid.words import slices
from lpact.math.types import FloatArray, IntArray
from lpact.registry import PluginOptions


class TransitionOptions(PluginOptions):
    """Options of `semantic_transition`."""

    context_words: Annotated[int, Field(ge=1)] = Field(
        10, description="Words before the word, in the same story, that make up its context."
    )
    layer: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Layer whose states are compared; none: static vectors of the words."
    )


class SemanticTransition(ComputedMechanism):
    """1 − r(v_i, mean of v_{i−K} … v_{i−1}), r over dimensions (Frank & Willems 2017; Broderick et al. 2018).

    v are vectors of the words, K is `context_words` or as many as the story has. The first word of a story has no
    context and a constant vector no direction: r = 0, so the value is 1.
    """

    name = "semantic_transition"
    summary = "how far meaning moves from the words before to this word"
    reads_parse = False
    needs = "semantic vectors of the words, from a language model"
    Options = TransitionOptions

    def from_inputs(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Compare each word's vector with the mean of those before it."""
        options = cast(TransitionOptions, self.options)
        if isinstance(inputs.language, Missing):
            return inputs.language
        vectors = states_of(inputs.language, options.layer)
        if isinstance(vectors, Missing):
            return vectors
        first, stop = slices(inputs.stimulus.words, "story_id")
        return transitions(vectors, first, stop, options.context_words)


def transitions(
    vectors: FloatArray, first: IntArray, stop: IntArray, context_words: int
) -> FloatArray:
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
