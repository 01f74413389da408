"""Where a stimulus' parse comes from: its columns, or a pipeline that the user names."""

from __future__ import annotations

import numpy as np

from lpact.datasets.base import Stimulus
from lpact.errors import StimulusError
from lpact.features.availability import Missing
from lpact.features.parsing.collapse import NoToken, SentenceParse, Token, collapse, spans_of
from lpact.features.parsing.columns import HEAD, RELATION, has_columns, parse_from_columns
from lpact.features.parsing.pipelines import Pipeline, open_pipeline
from lpact.features.parsing.words import WordParse
from lpact.grid.words import slices
from lpact.math.dependencies import ROOT

__all__ = ["WordParse", "read_parse"]


def read_parse(
    stimulus: Stimulus, parser: str | None, *, where: str = "the parser of the study"
) -> WordParse | Missing:
    """Return the Universal Dependencies of a checked stimulus' words.

    Parameters
    ----------
    stimulus
        Words with their sentences. Every sentence is parsed as a text of its own, its words joined by blanks.
    parser
        None: the columns ``head`` and ``deprel`` of the words table, Missing where there are none. Otherwise
        ``spacy:<pipeline or folder>`` or ``stanza:<language or folder>``; it goes before the columns.
    where
        Option that names the parser, for messages.

    Raises
    ------
    ConfigError
        If the named parser is unknown or not installed.
    StimulusError
        If the columns are not a parse, or if a pipeline finds nothing in a word.
    """
    if parser is None:
        return parse_from_columns(stimulus)
    return parse_with(stimulus, open_pipeline(parser, where=where))


def parse_with(stimulus: Stimulus, pipeline: Pipeline) -> WordParse:
    """Return the parse that an opened pipeline makes of the words."""
    words = stimulus.words["word"].to_list()
    first, stop = (edges.tolist() for edges in slices(stimulus.words, "sentence_id"))
    texts, spans = [], []
    for begin, end in zip(first, stop, strict=True):
        text, of_words = spans_of(words[begin:end])
        texts.append(text)
        spans.append(of_words)
    head = np.full(len(words), ROOT, dtype=np.int64)
    relation: list[str] = []
    upos: list[str] = []
    for begin, end, of_words, tokens in zip(
        first, stop, spans, pipeline.tokens(texts), strict=True
    ):
        tree = _collapse(stimulus, pipeline, begin, of_words, tokens)
        head[begin:end] = np.where(tree.head == ROOT, ROOT, tree.head + begin)
        relation += tree.relation
        upos += tree.upos
    instead = ""
    if has_columns(stimulus):
        instead = f", in place of the columns '{HEAD}' and '{RELATION}' of {stimulus.where}"
    return WordParse(head, tuple(relation), _known(upos), pipeline.where + instead)


def _collapse(
    stimulus: Stimulus,
    pipeline: Pipeline,
    begin: int,
    spans: list[tuple[int, int]],
    tokens: list[Token],
) -> SentenceParse:
    try:
        return collapse(spans, tokens)
    except NoToken as error:
        row = begin + error.word
        raise StimulusError(
            "the parser finds no token in a word",
            where=f"{stimulus.where}, column 'word', row {row + 1}, "
            f"word {stimulus.words['word'][row]!r}",
            got=f"tokens beside it only, from {pipeline.where}",
            expected="at least one token a word",
            remedy="mend the word, leave it out, or give the parse in columns 'head' and 'deprel'",
        ) from None


def _known(upos: list[str]) -> tuple[str, ...] | None:
    """Return the parts of speech, X where one is unknown; None where all are."""
    return tuple(tag or "X" for tag in upos) if any(tag not in ("", "X") for tag in upos) else None
