"""Stories as texts for a model, with the place of every word in them, and the tokens of every word.

The text of a story is its words joined, or its transcript. In a transcript, words are found by letters and digits
only: case, accents, punctuation, spaces, Unicode form and split contractions make no difference. Tokens belong to the
words whose characters they cover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from lpact.errors import FeatureError, StimulusError, did_you_mean
from lpact.features.language.transcript import BLANKS, Passage, Stretch, blank_mask, locate
from lpact.math.types import BoolArray, IntArray

_YES = frozenset(("yes", "true", "1"))
_NO = frozenset(("no", "false", "0"))
ONE_STORY = "story"
"""Id of the story of a words table without the column ``story_id``."""


@dataclass(frozen=True)
class Story:
    """One document: the words ``first_row …`` of a words table.

    ``sentence`` is the sentence of each word, or None. ``joiner`` separates rearranged words. ``skipped`` are stretches
    ``[start, end)`` of a transcript that are in no word.
    """

    id: str
    first_row: int
    words: tuple[str, ...]
    sentence: IntArray | None
    passage: Passage
    joiner: str
    skipped: tuple[Stretch, ...] = ()

    def piece(self, start: int, stop: int) -> Passage:
        """Return the story's own text from word ``start`` to word ``stop`` (exclusive)."""
        starts, ends = self.passage.starts[start:stop], self.passage.ends[start:stop]
        first = int(starts[0])
        return Passage(self.passage.text[first : int(ends[-1])], starts - first, ends - first)

    def arranged(self, order: IntArray) -> Passage:
        """Return the words at these indices, in this order, separated by the joiner.

        Each word keeps the punctuation around it; the last one only that before it, since the rest would be read after
        it.
        """
        before, after, lengths = self._pieces
        cells = self._cells
        *others, last = order.tolist()
        text = "".join(before[i] + cells[i] + after[i] for i in others) + before[last] + cells[last]
        places = np.concatenate([[0], np.cumsum(lengths[order[:-1]])]).astype(np.int64)
        starts = places + np.array([len(before[i]) for i in order.tolist()], dtype=np.int64)
        return Passage(text, starts, starts + (self.passage.ends - self.passage.starts)[order])

    @cached_property
    def _cells(self) -> list[str]:
        return self.passage.words()

    @cached_property
    def _pieces(self) -> tuple[list[str], list[str], IntArray]:
        """Text before each word (signs that touch it) and after it (up to the next word, with the joiner)."""
        text, starts, ends = self.passage.text, self.passage.starts, self.passage.ends
        between = [text[e:s] for e, s in zip(ends[:-1], starts[1:], strict=True)]
        before, after = [], []
        for gap in [text[: starts[0]], *between, text[ends[-1] :]]:
            blanks = [i for i, c in enumerate(gap) if c.isspace()]
            cut = blanks[-1] + 1 if blanks else len(gap)
            before.append(gap[cut:])
            signs = gap[:cut].rstrip()
            blank = gap[len(signs) : cut]
            after.append(signs + (self.joiner if blank in ("", self.joiner) else " "))
        before, after = before[:-1], after[1:]
        sizes = [len(b) + len(a) for b, a in zip(before, after, strict=True)]
        return before, after, np.array(sizes, dtype=np.int64) + ends - starts


def read_stories(
    words: pl.DataFrame,
    *,
    where: str,
    transcripts: Mapping[str, str] | None = None,
    joiner: str = " ",
) -> list[Story]:
    """Return the stories of a words table, in its order.

    ``words`` has the column ``word`` and may have ``story_id`` (without it, all words are one story), ``sentence_id``,
    and ``space_after`` (yes or no) or Universal Dependencies' ``misc`` (``SpaceAfter=No``). ``where`` is the table's
    name in messages. Words are joined by ``joiner`` unless the table says otherwise; ``transcripts``, the text of every
    story by its id, replace the joined words.
    """
    cells = _cells(words, where)
    bounds = _bounds(words, where)
    if transcripts is not None:
        _check_transcripts([story for story, _, _ in bounds], transcripts, where)
    sentence = _sentences(words, where)
    after = separators(words, joiner=joiner, where=where) if transcripts is None else []
    stories = []
    for story, start, stop in bounds:
        skipped: list[Stretch] = []
        if transcripts is None:
            passage = _join_cells(cells[start:stop], after[start:stop])
        else:
            passage, skipped = locate(
                cells[start:stop], transcripts[story], where=f"{where}, transcript of story '{story}'", first_row=start
            )
        stories.append(
            Story(
                id=story,
                first_row=start,
                words=tuple(cells[start:stop]),
                sentence=None if sentence is None else sentence[start:stop],
                passage=passage,
                joiner=joiner,
                skipped=tuple(skipped),
            )
        )
    return stories


def _join_cells(cells: Sequence[str], after: Sequence[str]) -> Passage:
    """Join cells; a span leaves out blanks at the ends of its cell."""
    starts, ends, pieces, at = [], [], [], 0
    for cell, blank in zip(cells, [*after[:-1], ""], strict=True):
        bare = cell.lstrip(BLANKS)
        starts.append(at + len(cell) - len(bare))
        ends.append(at + len(cell.rstrip(BLANKS)))
        pieces += [cell, blank]
        at += len(cell) + len(blank)
    return Passage("".join(pieces), np.array(starts, np.int64), np.array(ends, np.int64))


def _cells(words: pl.DataFrame, where: str) -> list[str]:
    if "word" not in words.columns:
        raise StimulusError(
            "the words table has no column 'word'",
            where=where,
            got="columns " + ", ".join(words.columns),
            remedy=did_you_mean("word", words.columns),
        )
    cells = words["word"].cast(pl.String)
    empty = (cells.fill_null("").str.strip_chars(BLANKS) == "").arg_true()
    if len(empty):
        raise StimulusError(
            "a word is empty",
            where=f"{where}, column 'word', row {empty[0] + 1}",
            got=repr(cells[empty[0]]),
            remedy="fill the cell, or leave the row out",
        )
    return cells.to_list()


def _bounds(words: pl.DataFrame, where: str) -> list[tuple[str, int, int]]:
    """Return id, first row and stop of every story."""
    if words.height == 0:
        return []
    if "story_id" not in words.columns:
        return [(ONE_STORY, 0, words.height)]
    check_filled(words, "story_id", where)
    runs = words["story_id"].cast(pl.String).rle()
    ids, stop = runs.struct.field("value"), runs.struct.field("len").cum_sum().to_list()
    again = (~ids.is_first_distinct()).arg_true()
    if len(again):
        raise StimulusError(
            "a story returns after another one",
            where=f"{where}, column 'story_id', row {stop[again[0] - 1] + 1}",
            got=repr(ids[again[0]]),
            remedy="sort the words, or give every story its own id",
        )
    return list(zip(ids, [0, *stop[:-1]], stop, strict=True))


def _sentences(words: pl.DataFrame, where: str) -> IntArray | None:
    if "sentence_id" not in words.columns:
        return None
    check_filled(words, "sentence_id", where)
    column = words["sentence_id"]
    codes = column if column.dtype.is_integer() else column.rle_id()
    return codes.cast(pl.Int64).to_numpy()


def check_filled(words: pl.DataFrame, column: str, where: str) -> None:
    """Raise `StimulusError` if a cell of a column is empty."""
    missing = words[column].is_null().arg_true()
    if len(missing):
        raise StimulusError(
            f"'{column}' of a word has no value",
            where=f"{where}, column '{column}', row {missing[0] + 1}, word {words['word'][missing[0]]!r}",
            got="nothing",
            remedy="fill the cell, or leave the column out",
        )


def _check_transcripts(stories: Sequence[str], transcripts: Mapping[str, str], where: str) -> None:
    what = [f"there is a transcript of story '{s}', which has no words" for s in transcripts if s not in stories]
    what += [f"there is no transcript of story '{s}'" for s in stories if s not in transcripts]
    if what:
        raise StimulusError(
            what[0],
            where=where,
            got="transcripts of " + (", ".join(f"'{s}'" for s in transcripts) or "no story"),
            expected="one for each of the stories " + ", ".join(f"'{s}'" for s in stories[:12]),
            remedy="give every story a transcript, named by its id, or no story",
        )


def separators(words: pl.DataFrame, *, joiner: str, where: str) -> list[str]:
    """Return the text after every word, [n words].

    It is ``joiner``; nothing after ``space_after = no`` or ``SpaceAfter=No`` in ``misc``; and the joiner, or else a
    space, after ``space_after = yes``.
    """
    after = [joiner] * words.height
    if "misc" in words.columns:
        for row, cell in enumerate(words["misc"].cast(pl.String).to_list()):
            if cell is not None and "SpaceAfter=No" in cell.split("|"):
                after[row] = ""
    if "space_after" in words.columns:
        for row, cell in enumerate(words["space_after"].cast(pl.String).to_list()):
            if cell is None or not cell.strip():
                continue
            value = cell.strip().lower()
            if value not in _YES | _NO:
                raise StimulusError(
                    "'space_after' of a word is neither yes nor no",
                    where=f"{where}, column 'space_after', row {row + 1}, word {words['word'][row]!r}",
                    got=repr(cell),
                    expected="yes, no, true, false, 1, 0, or nothing",
                    remedy="fix the cell, or leave the column out",
                )
            after[row] = "" if value in _NO else joiner or " "
    return after


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


def _free_prefixes(tokenizer: Any, ids: IntArray, offsets: IntArray, blanks: dict[int, bool]) -> None:
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
        got="no token over its characters in " + repr(passage.text[max(start - SHOWN, 0) : end + SHOWN]),
        remedy="correct or leave out the word (the tokenizer drops these characters), or use another model",
    )
