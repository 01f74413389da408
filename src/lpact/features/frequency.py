"""Word frequencies from the lists of the package ``wordfreq`` (Speer, 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lpact.errors import ConfigError, did_you_mean
from lpact.math.types import BoolArray, FloatArray


def list_log_frequency(words: Sequence[str], language: str) -> tuple[FloatArray, BoolArray]:
    """Return the natural log of each word's probability, and which words the list does not have.

    A word is looked up as ``wordfreq`` does: in lower case, without punctuation, split into the list's own tokens.
    Several tokens (``ice-cold``) combine as ``1 / p = 1 / p₁ + 1 / p₂ + …``; numbers are estimated from their shape.
    A word with a token that is not listed, or without any token (punctuation only), is unlisted and gets the floor
    (`list_floor`); no word gets less.

    Returns
    -------
    log_frequency, unlisted
        [n_words] each.
    """
    floor = list_floor(language)
    from wordfreq import word_frequency

    frequency = np.array([word_frequency(word, language) for word in words], dtype=np.float64)
    return np.log(np.maximum(frequency, floor)), frequency == 0.0


@lru_cache(maxsize=8)
def list_floor(language: str) -> float:
    """Return the probability of the rarest word in the list of a language.

    An unknown language, and a package that is not installed, are a `ConfigError`.
    """
    try:
        import wordfreq
        from wordfreq.tokens import tokenize

        known = sorted(wordfreq.available_languages())
        # The package itself would quietly take the nearest language: Dutch for Afrikaans.
        if language in known:
            tokenize("0", language)  # Chinese, Japanese and Korean need more packages
    except ImportError as problem:
        raise ConfigError(
            "word frequencies need a package that is not installed",
            where="option 'nuisance.language'",
            got=f"'{language}': {problem}",
            expected="the package wordfreq, or a column 'log_frequency' in the words table",
            remedy="pip install 'lpact[lm]', and 'wordfreq[cjk]' for Chinese, Japanese and Korean",
        ) from None
    if language not in known:
        raise ConfigError(
            "there is no list of word frequencies for this language",
            where="option 'nuisance.language'",
            got=language,
            expected="one of " + ", ".join(known),
            remedy=f"{did_you_mean(language, known)}; or add a column 'log_frequency' to the words table",
        )
    centibels = wordfreq.get_frequency_list(language)
    rarest = max(index for index, tokens in enumerate(centibels) if tokens)
    return math.pow(10.0, -rarest / 100.0)
