"""The parse of a stimulus: from columns of its words table, or from an installed pipeline.

The columns ``head``, ``deprel`` and ``upos`` are those of CoNLL-U: ``head`` is the position of the head in the
sentence, from 1, and 0 for the root. A row of the words table is a word, with or without punctuation.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets.base import SourceFile, Stimulus
from lpact.errors import StimulusError
from lpact.features.availability import Missing
from lpact.features.parsing.collapse import NoToken, collapse, spans_of
from lpact.features.parsing.pipelines import Pipeline, open_pipeline
from lpact.grid.words import slices
from lpact.math.dependencies import ROOT, unrooted
from lpact.math.types import IntArray
from lpact.store import sha256_file

HEAD, RELATION, UPOS = "head", "deprel", "upos"


@dataclass(frozen=True)
class WordParse:
    """Universal Dependencies of the words of a stimulus, [n_words] each.

    ``head`` is the row of each word's head in the words table, −1 for the root of a sentence. ``where`` names the
    columns or the pipeline.
    """

    head: IntArray
    relation: tuple[str, ...]
    upos: tuple[str, ...] | None
    where: str


def read_parse(
    stimulus: Stimulus, parser: str | None, *, where: str = "the parser of the study"
) -> WordParse | Missing:
    """Return the Universal Dependencies of a checked stimulus' words.

    Parameters
    ----------
    stimulus
        Words with their sentences. Each sentence is parsed separately, its words joined by blanks.
    parser
        None: the columns ``head`` and ``deprel``, Missing without them. Otherwise ``spacy:<pipeline or folder>`` or
        ``stanza:<language or folder>``, which replaces the columns.
    where
        Option that names the parser, for messages.
    """
    if parser is None:
        return parse_from_columns(stimulus)
    return parse_with(stimulus, open_pipeline(parser, where=where))


def parse_with(stimulus: Stimulus, pipeline: Pipeline) -> WordParse:
    """Return the parse of the words by an open pipeline."""
    words = stimulus.words["word"].to_list()
    first, stop = (edges.tolist() for edges in slices(stimulus.words, "sentence_id"))
    sentences = [spans_of(words[begin:end]) for begin, end in zip(first, stop, strict=True)]
    head = np.full(len(words), ROOT, dtype=np.int64)
    relation: list[str] = []
    upos: list[str] = []
    found = pipeline.tokens([text for text, _ in sentences])
    for begin, end, (_, spans), tokens in zip(first, stop, sentences, found, strict=True):
        try:
            tree = collapse(spans, tokens)
        except NoToken as error:
            raise StimulusError(
                "the parser finds no token in a word",
                where=_place(stimulus, "word", begin + error.word),
                got=f"only tokens beside it, from {pipeline.where}",
                expected="at least one token per word",
                remedy="correct the word, leave it out, or give the parse in columns 'head' and 'deprel'",
            ) from None
        head[begin:end] = np.where(tree.head == ROOT, ROOT, tree.head + begin)
        relation += tree.relation
        upos += tree.upos
    known = tuple(tag or "X" for tag in upos) if set(upos) - {"", "X"} else None
    where = pipeline.where
    if has_columns(stimulus):
        where += f", in place of the columns '{HEAD}' and '{RELATION}' of {stimulus.where}"
    return WordParse(head, tuple(relation), known, where)


def has_columns(stimulus: Stimulus) -> bool:
    """Whether the words table has a parse."""
    return {HEAD, RELATION} <= set(stimulus.words.columns)


def parse_from_columns(stimulus: Stimulus) -> WordParse | Missing:
    """Return the parse of the words table; Missing without ``head`` and ``deprel``.

    Raises `StimulusError` if heads are not whole numbers inside their sentence, if a sentence does not have exactly one
    root, if heads form a cycle, or if a label is missing.
    """
    if not has_columns(stimulus):
        absent = [f"'{c}'" for c in (HEAD, RELATION) if c not in stimulus.words.columns]
        return Missing(
            Reason.MECHANISM_NOT_OFFERED,
            f"no parse: the words table of stimulus '{stimulus.id}' ({stimulus.where}) has no column "
            f"{' and no column '.join(absent)}, and no parser is named",
        )
    _check_filled(stimulus, HEAD, "a position in the sentence: 1, 2, …, and 0 for its root")
    heads = stimulus.words[HEAD].cast(pl.Int64).to_numpy()
    first, stop = slices(stimulus.words, "sentence_id")
    length = stop - first
    start, n_words = np.repeat(first, length), np.repeat(length, length)
    if (outside := (heads < 0) | (heads > n_words)).any():
        row = int(np.argmax(outside))
        sentence = stimulus.words["sentence_id"][row]
        expected = f"0 (root) to {n_words[row]}, the words of sentence {sentence}"
        raise _wrong(stimulus, HEAD, row, str(heads[row]), expected)
    _check_roots(stimulus, heads, first)
    head = np.where(heads == 0, ROOT, start + heads - 1)
    _check_cycles(stimulus, head)
    return WordParse(
        head=head,
        relation=_labels(stimulus, RELATION),
        upos=_labels(stimulus, UPOS) if UPOS in stimulus.words.columns else None,
        where=f"{stimulus.where}, columns '{HEAD}' and '{RELATION}'",
    )


def _labels(stimulus: Stimulus, name: str) -> tuple[str, ...]:
    _check_filled(stimulus, name, "a label of Universal Dependencies")
    return tuple(stimulus.words[name].to_list())


def _check_filled(stimulus: Stimulus, name: str, expected: str) -> None:
    """Raise unless every cell of a column is filled, and of the right type."""
    column = stimulus.words[name]
    fits = column.dtype.is_integer() if name == HEAD else column.dtype == pl.String
    if not fits and column.len() > 0:
        noun = "whole numbers" if name == HEAD else "text"
        raise StimulusError(
            f"the column '{name}' of the words table does not hold {noun}",
            where=f"{stimulus.where}, column '{name}'",
            got=f"{column.dtype}, such as {column[0]!r} for {stimulus.words['word'][0]!r}",
            expected=expected,
            remedy=f"write {noun}, every cell filled",
        )
    empty = column.is_null() | (column.cast(pl.String).str.strip_chars() == "").fill_null(True)
    if empty.any():
        raise _wrong(stimulus, name, int(empty.arg_true()[0]), "nothing", expected)


def _check_roots(stimulus: Stimulus, heads: IntArray, first: IntArray) -> None:
    n_roots = np.add.reduceat(heads == 0, first, dtype=np.int64) if heads.size else heads
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
            expected="one word with head 0 per sentence",
            remedy="correct the heads; two sentences need two values of 'sentence_id'",
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
    raise StimulusError(
        "the heads of a sentence form a cycle",
        where=_place(stimulus, HEAD, path[0]),
        got=" → ".join(repr(stimulus.words["word"][i]) for i in path),
        expected="heads that lead to the root",
        remedy="correct one of these heads",
    )


def _wrong(stimulus: Stimulus, column: str, row: int, got: str, expected: str) -> StimulusError:
    return StimulusError(
        f"'{column}' of a word is not valid",
        where=_place(stimulus, column, row),
        got=got,
        expected=expected,
        remedy="correct the cell; the columns are those of CoNLL-U, positions counted in the sentence",
    )


def _place(stimulus: Stimulus, column: str, row: int) -> str:
    word = stimulus.words["word"][row]
    return f"{stimulus.where}, column '{column}', row {row + 1}, word {word!r}"


def parser_files(parser: str | None) -> list[SourceFile]:
    """Return the files of a parser, so that a run can tell its versions apart.

    A folder is listed file by file; an installed pipeline, and its library, by the package's list of files.
    """
    if parser is None:
        return []
    kind, _, name = parser.partition(":")
    found = [f for f in (_package(kind), _package(name)) if f is not None]
    folder = Path(name)
    if folder.is_dir():
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            place = path.relative_to(folder).as_posix()
            found.append(SourceFile(place, path.stat().st_size, sha256_file(path), parser))
    return found


def _package(name: str) -> SourceFile | None:
    try:
        package = importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    listed = (package.read_text("RECORD") or "").encode()
    digest = hashlib.sha256(listed).hexdigest()
    return SourceFile(f"package {name} {package.version}", len(listed), digest, name)
