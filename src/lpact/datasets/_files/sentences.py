"""Sentences of words tables that do not number them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpact.math.types import IntArray

_CLOSING = "\"'\u201d\u2019)]}\u00bb"
_ENDS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f")
_ABBREVIATIONS = frozenset(
    ("mr.", "mrs.", "ms.", "dr.", "st.", "jr.", "sr.", "prof.", "vs.", "etc.", "e.g.", "i.e.")
)


def sentences_by_punctuation(words: Sequence[str], stories: Sequence[str]) -> IntArray:
    """Number sentences 0, 1, …: a new one begins after a word that ends one, and with every story.

    A word ends a sentence if, without closing quotes and brackets, it ends in a full stop, an exclamation or question
    mark or an ellipsis, and is not a common abbreviation or a single initial.
    """
    numbers = np.zeros(len(words), dtype=np.int64)
    for i in range(1, len(words)):
        new = stories[i] != stories[i - 1] or ends_sentence(words[i - 1])
        numbers[i] = numbers[i - 1] + new
    return numbers


def ends_sentence(word: str) -> bool:
    """Whether a written word ends its sentence."""
    bare = word.rstrip(_CLOSING)
    if not bare.endswith(_ENDS):
        return False
    initial = len(bare) == 2 and bare[0].isupper() and bare[1] == "." and bare[0] != "I"
    return not initial and bare.lower() not in _ABBREVIATIONS


def sentences_by_pauses(
    onset_s: Sequence[float], offset_s: Sequence[float], stories: Sequence[str], pause_s: float
) -> IntArray:
    """Number sentences 0, 1, … where words carry no punctuation: a new one begins after a pause of ``pause_s``."""
    numbers = np.zeros(len(onset_s), dtype=np.int64)
    for i in range(1, len(onset_s)):
        new = stories[i] != stories[i - 1] or onset_s[i] - offset_s[i - 1] >= pause_s
        numbers[i] = numbers[i - 1] + new
    return numbers
