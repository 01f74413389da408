"""Tokens of words, by the characters that both cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.errors import FeatureError
from lpact.features.language.transcript import Passage, blank_mask
from lpact.math.types import BoolArray, IntArray

SHOWN = 30
"""Characters of the text that a message shows on either side."""


@dataclass(frozen=True)
class WordTokens:
    """The tokens of a passage and of its words.

    ``ids`` is [n tokens]. Word i has the tokens ``first[i]`` to ``last[i]``, inclusive. Its surprisal counts from
    ``lead[i]``: tokens of blanks alone just before it are predicted as part of it. All three are [n words].
    """

    ids: IntArray
    first: IntArray
    last: IntArray
    lead: IntArray


def match_tokens(
    passage: Passage,
    ids: npt.ArrayLike,
    offsets: npt.ArrayLike,
    *,
    where: str,
    rows: Sequence[int] | IntArray | None = None,
) -> WordTokens:
    """Return the tokens of every word of a passage.

    A token belongs to a word if both cover a character that is not blank: a token over two words belongs to both,
    and all tokens that are bytes of one character belong to its word. A token of blanks belongs to none. A word without
    a token is a `FeatureError`.

    ``offsets`` are the characters ``[start, end)`` of each token, [n tokens, 2]. For messages, ``where`` names the
    tokenizer, and ``rows`` is the row of every word in the words table, from 0.
    """
    token_ids = np.asarray(ids, dtype=np.int64).reshape(-1)
    start, end = _without_blanks(passage.text, np.asarray(offsets, dtype=np.int64).reshape(-1, 2))
    solid = np.flatnonzero(start < end)
    if (np.diff(start[solid]) < 0).any() or (np.diff(end[solid]) < 0).any():
        raise FeatureError(
            "the tokenizer's offsets are not in reading order",
            where=where,
            got=f"{len(token_ids)} tokens, some of which go back",
            remedy="use a tokenizer that keeps the order of characters",
        )
    first = np.searchsorted(end[solid], passage.starts, side="right")
    last = np.searchsorted(start[solid], passage.ends, side="left") - 1
    if (bare := first > last).any():
        i = int(np.argmax(bare))
        raise _no_token(passage, i, where, i if rows is None else int(rows[i]))
    first, last = solid[first], solid[last]
    return WordTokens(token_ids, first, last, _leads(first, last, start < end))


def tokenise(
    tokenizer: Any,
    passages: Sequence[Passage],
    *,
    where: str,
    rows: Sequence[Sequence[int] | IntArray] | None = None,
) -> list[WordTokens]:
    """Return the tokens of every passage, whole and without special tokens.

    ``tokenizer`` is a fast tokenizer of transformers; ``rows`` are those of `match_tokens`, for each passage.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise FeatureError(
            "the tokenizer has no character offsets",
            where=where,
            got=type(tokenizer).__name__,
            remedy="save it as a fast tokenizer (tokenizer.json) with transformers, and use that folder",
        )
    if not passages:
        return []
    encoded = tokenizer(
        [passage.text for passage in passages],
        add_special_tokens=False,
        return_offsets_mapping=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        padding=False,
        truncation=False,
        split_special_tokens=True,
        verbose=False,
    )
    blanks: dict[int, bool] = {}
    matched = []
    for i, passage in enumerate(passages):
        ids = np.array(encoded["input_ids"][i], dtype=np.int64)
        offsets = np.array(encoded["offset_mapping"][i], dtype=np.int64).reshape(-1, 2)
        _free_prefixes(tokenizer, ids, offsets, blanks)
        own = None if rows is None else rows[i]
        matched.append(match_tokens(passage, ids, offsets, where=where, rows=own))
    return matched


def _without_blanks(text: str, offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the tokens' characters without blanks at their ends; start ≥ end where nothing is left."""
    solid = np.flatnonzero(~blank_mask(text))
    start = np.append(solid, len(text))[np.searchsorted(solid, offsets[:, 0])]
    end = np.append(0, solid + 1)[np.searchsorted(solid, offsets[:, 1])]
    empty = offsets[:, 0] >= offsets[:, 1]
    return np.where(empty, offsets[:, 0], start), np.where(empty, offsets[:, 0], end)


def _leads(first: IntArray, last: IntArray, solid: BoolArray) -> IntArray:
    """Return the first token after the last one before ``first`` that is not blank or is a word's."""
    taken = np.full(len(solid), -1, dtype=np.int64)
    taken[solid] = np.flatnonzero(solid)
    before = np.concatenate(([-1], np.maximum.accumulate(taken)))[first]
    lead = before + 1
    lead[1:] = np.minimum(np.maximum(lead[1:], last[:-1] + 1), first[1:])
    return lead


def _free_prefixes(
    tokenizer: Any, ids: IntArray, offsets: IntArray, blanks: dict[int, bool]
) -> None:
    """Empty the offsets of a blank that the tokenizer itself has put before a text, in place.

    The offsets of such a token cover the first character of the next token. ``blanks`` caches which ids are blank.
    """
    sharing = np.flatnonzero(offsets[1:, 0] < offsets[:-1, 1])
    for token in np.unique(ids[sharing]).tolist():
        if token not in blanks:
            blanks[token] = not tokenizer.decode([token]).strip()
        if blanks[token]:
            mine = sharing[ids[sharing] == token]
            offsets[mine, 1] = offsets[mine, 0]


def _no_token(passage: Passage, i: int, where: str, row: int) -> FeatureError:
    start, end = int(passage.starts[i]), int(passage.ends[i])
    word = passage.text[start:end]
    codes = " ".join(f"U+{ord(character):04X}" for character in word[:8])
    return FeatureError(
        f"the tokenizer gives no token to the word {word!r}",
        where=f"{where}, row {row + 1}, word {word!r} ({codes})",
        got="no token over its characters in "
        + repr(passage.text[max(start - SHOWN, 0) : end + SHOWN]),
        remedy="correct or leave out the word (the tokenizer drops these characters), or use another model",
    )
