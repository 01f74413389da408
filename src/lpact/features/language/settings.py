"""How features are read off a language model."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from lpact.features.models import FULL, REVERSED, SENTENCE_RESET, SHUFFLED, STATIC, UNTRAINED
from lpact.registry import PluginOptions

Pooling = Literal["last", "mean", "sum", "first"]
DEFAULT_WINDOW = 512
"""Longest window that is taken where the study names none, in tokens."""

_FIXED = re.compile(r"fixed-([1-9][0-9]*)")


class ReadingOptions(PluginOptions):
    """What the numbers depend on, in addition to model and text."""

    revision: str = ""
    """Branch, tag or commit of a hub model; empty: the hub's own default."""
    kind: Literal["auto", "causal", "masked"] = "auto"
    """How the model predicts; `auto`: as its configuration says."""
    pooling: Pooling = "last"
    """How the tokens of a word become one row. Static vectors know no context, so that `last` and `first` are the mean
    there.
    """
    window_tokens: Annotated[int, Field(ge=8)] | None = None
    """Most tokens that a model reads at once. Unset: 512, or the model's own limit if that is less."""
    stride_tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens by which the window moves on in a long story. Unset: a quarter of it. Every word is read with at least
    window − stride tokens before it, or all there are.
    """
    min_context_tokens: Annotated[int, Field(ge=0)] = 0
    """Fewest tokens before a word, if the story has them; an error if the window does not allow it."""
    word_context_tokens: Annotated[int, Field(ge=8)] | None = None
    """Most tokens of a passage that is read for one word alone: contexts reversed, shuffled and fixed-N, and every
    context of a masked model that sees no future. Unset: the window, so that a control sees as much as the real
    features do. Less is faster, and makes a weaker control.
    """
    context_words: Annotated[int, Field(ge=1)] | None = None
    """Number of words before each word that features may depend on, in every context. Unset: all."""
    future: Literal["hidden", "seen"] = "hidden"
    """Masked models only: read each word last, after the words before it (`hidden`), or with the words after it as well
    (`seen`).
    """
    joiner: str = Field(" ", max_length=8)
    """Text between two words without a transcript; empty for scripts without blanks."""
    untrained_seeds: Annotated[int, Field(ge=1, le=100)] = 5
    """Random initialisations of the context `untrained`, one per draw."""
    shuffled_draws: Annotated[int, Field(ge=1, le=100)] = 1
    """Random orders of the context `shuffled`, one per draw."""
    device: str = Field("cpu", pattern=r"^(cpu|mps|cuda(:[0-9]+)?)$")
    """Where the model runs: `cpu`, `cuda`, `cuda:N` or `mps`."""
    precision: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    """Of the model's arithmetic. `auto`: float32 on `cpu` and `mps`; on `cuda` half precision, in the kind that the
    model was stored in, or float16. Surprisal is computed from the model's output in float32.
    """
    batch_tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens in one pass through the model. Unset: 2048 on `cpu`, 32768 elsewhere. Changes speed, memory and the last
    digits.
    """

    @model_validator(mode="after")
    def _check(self) -> ReadingOptions:
        window, stride = self.window_tokens, self.stride_tokens
        if window is not None and stride is not None and stride > window:
            raise ValueError("stride_tokens is larger than window_tokens; lower it")
        return self

    def draws(self, context: str) -> int:
        """Number of draws of a context."""
        return {UNTRAINED: self.untrained_seeds, SHUFFLED: self.shuffled_draws}.get(context, 1)

    def words_before(self, context: str) -> int | None:
        """Most words before a word in this context, or None for all."""
        fixed = _FIXED.fullmatch(context)
        if fixed:
            return int(fixed[1])
        return None if context == STATIC else self.context_words


def is_context(name: str) -> bool:
    """Whether there is a context of this name."""
    return name in KNOWN_CONTEXTS or _FIXED.fullmatch(name) is not None


WORD_BY_WORD = (REVERSED, SHUFFLED)
"""Contexts with one passage per word."""
DRAWN = (UNTRAINED, SHUFFLED)
"""Contexts that come in draws."""
KNOWN_CONTEXTS = (FULL, SENTENCE_RESET, *WORD_BY_WORD, STATIC, UNTRAINED)
"""Those of trained weights first: they share one loaded model."""
