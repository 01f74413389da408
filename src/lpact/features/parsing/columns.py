"""Parses from the columns ``head``, ``deprel`` and ``upos`` of a words table.

They mean what they mean in CoNLL-U: ``head`` is the position of the head in the sentence, counted from 1, and 0 for its
root. A row of the words table is a word, whether or not it carries punctuation.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets.base import Stimulus
from lpact.errors import StimulusError
from lpact.features.availability import Missing
from lpact.features.parsing.words import WordParse
from lpact.grid.words import slices
from lpact.math.dependencies import ROOT, unrooted
from lpact.math.types import BoolArray, IntArray

HEAD, RELATION, UPOS = "head", "deprel", "upos"


def has_columns(stimulus: Stimulus) -> bool:
    """Whether the words table brings a parse."""
    return {HEAD, RELATION} <= set(stimulus.words.columns)


def parse_from_columns(stimulus: Stimulus) -> WordParse | Missing:
    """Return the parse that the words table brings; Missing without ``head`` and ``deprel``.

    Raises
    ------
    StimulusError
        If heads are not whole numbers inside their sentence, if a sentence has not exactly one root, if heads form
        a cycle, or if a label is missing.
    """
    if not has_columns(stimulus):
        absent = [f"'{c}'" for c in (HEAD, RELATION) if c not in stimulus.words.columns]
        return Missing(
            Reason.MECHANISM_NOT_OFFERED,
            f"no parse: the words table of stimulus '{stimulus.id}' ({stimulus.where}) has no column "
            f"{' and no column '.join(absent)}, and no parser is named",
        )
    heads = _positions(stimulus)
    first, stop = slices(stimulus.words, "sentence_id")
    length = stop - first
    start, n_words = np.repeat(first, length), np.repeat(length, length)
    _check_range(stimulus, heads, n_words)
    _check_roots(stimulus, heads, first)
    head = np.where(heads == 0, ROOT, start + heads - 1)
    _check_cycles(stimulus, head)
    return WordParse(
        head=head,
        relation=_labels(stimulus, RELATION),
        upos=_labels(stimulus, UPOS) if UPOS in stimulus.words.columns else None,
        where=f"{stimulus.where}, columns '{HEAD}' and '{RELATION}'",
    )


def _positions(stimulus: Stimulus) -> IntArray:
    column = stimulus.words[HEAD]
    if not column.dtype.is_integer() and column.len() > 0:
        raise StimulusError(
            f"the column '{HEAD}' of the words table does not hold whole numbers",
            where=f"{stimulus.where}, column '{HEAD}'",
            got=f"{column.dtype}, such as {column[0]!r} for {stimulus.words['word'][0]!r}",
            expected="positions in the sentence: 1, 2, …, and 0 for its root",
            remedy="write the positions as whole numbers, every cell filled",
        )
    if column.null_count():
        raise _wrong(stimulus, HEAD, column.is_null(), "nothing", "a whole number in every row")
    return column.cast(pl.Int64).to_numpy()


def _labels(stimulus: Stimulus, name: str) -> tuple[str, ...]:
    column = stimulus.words[name]
    if column.dtype != pl.String and column.len() > 0:
        raise StimulusError(
            f"the column '{name}' of the words table does not hold text",
            where=f"{stimulus.where}, column '{name}'",
            got=str(column.dtype),
            expected="a label of Universal Dependencies in every row",
            remedy="write the labels as text",
        )
    empty = column.is_null() | (column.cast(pl.String).str.strip_chars() == "").fill_null(True)
    if empty.any():
        raise _wrong(stimulus, name, empty, "nothing", "a label of Universal Dependencies")
    return tuple(column.to_list())


def _check_range(stimulus: Stimulus, heads: IntArray, n_words: IntArray) -> None:
    outside = (heads < 0) | (heads > n_words)
    if outside.any():
        row = int(np.argmax(outside))
        expected = f"0 (root) to {n_words[row]}, the words of sentence "
        expected += str(stimulus.words["sentence_id"][row])
        raise _wrong(stimulus, HEAD, outside, str(heads[row]), expected)


def _check_roots(stimulus: Stimulus, heads: IntArray, first: IntArray) -> None:
    if not heads.size:
        return
    n_roots = np.add.reduceat(heads == 0, first, dtype=np.int64)
    if (wrong := n_roots != 1).any():
        sentence = int(np.argmax(wrong))
        row = int(first[sentence])
        if n_roots[sentence] > 1:
            row = int(np.flatnonzero(heads[row:] == 0)[1]) + row
        raise StimulusError(
            "a sentence does not have exactly one root",
            where=_place(stimulus, HEAD, row),
            got=f"{n_roots[sentence]} words with head 0 in sentence "
            f"{stimulus.words['sentence_id'][row]}",
            expected="one word with head 0 a sentence",
            remedy="mend the heads; two sentences need two values of 'sentence_id'",
        )


def _check_cycles(stimulus: Stimulus, head: IntArray) -> None:
    lost = unrooted(head)
    if not lost.any():
        return
    # Climbing far enough from a word that never reaches a root ends on the cycle itself.
    row = int(np.argmax(lost))
    for _ in range(head.size):
        row = int(head[row])
    cycle = [row]
    while (above := int(head[cycle[-1]])) != row:
        cycle.append(above)
    turn = cycle.index(min(cycle))
    path = [*cycle[turn:], *cycle[:turn], cycle[turn]]
    words = " → ".join(repr(stimulus.words["word"][i]) for i in path)
    raise StimulusError(
        "the heads of a sentence form a cycle",
        where=_place(stimulus, HEAD, path[0]),
        got=words,
        expected="heads that lead to the root",
        remedy="mend one of these heads",
    )


def _wrong(
    stimulus: Stimulus, column: str, bad: BoolArray | pl.Series, got: str, expected: str
) -> StimulusError:
    row = int(np.flatnonzero(np.asarray(bad))[0])
    return StimulusError(
        f"'{column}' of a word is not valid",
        where=_place(stimulus, column, row),
        got=got,
        expected=expected,
        remedy="mend the cell; the columns are those of CoNLL-U, positions counted in the sentence",
    )


def _place(stimulus: Stimulus, column: str, row: int) -> str:
    word = stimulus.words["word"][row]
    return f"{stimulus.where}, column '{column}', row {row + 1}, word {word!r}"
