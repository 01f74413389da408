"""Universal Dependencies of a stimulus' words: from columns of its words table, or from an installed pipeline.

The columns ``head``, ``deprel`` and ``upos`` are those of CoNLL-U: ``head`` is the position of the head in the
sentence, from 1, and 0 for the root. A row of the words table is a word, with or without punctuation. Pipelines are
named ``spacy:<pipeline or folder>`` or ``stanza:<language or folder>``; nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets.base import SourceFile, Stimulus
from lpact.errors import ConfigError, StimulusError
from lpact.features.mechanisms import Missing, Parse
from lpact.grid.words import slices
from lpact.math.dependencies import ROOT, depths, unrooted
from lpact.math.types import IntArray
from lpact.store import sha256_file

HEAD, RELATION, UPOS = "head", "deprel", "upos"
PUNCTUATION = "punct"
RELABELLED = {"relcl": "acl:relcl"}
"""Labels of spaCy's English pipelines that are not of Universal Dependencies, and that a mechanism needs."""


def read_parse(stimulus: Stimulus, parser: str | None, *, where: str = "the parser of the study") -> Parse | Missing:
    """Return the Universal Dependencies of a checked stimulus' words.

    Without a ``parser``, they are the columns ``head`` and ``deprel``. A pipeline replaces these: it parses each
    sentence separately, its words joined by blanks. ``where`` is the option that names the parser, for messages.
    """
    if parser is None:
        return parse_from_columns(stimulus)
    return parse_with(stimulus, open_pipeline(parser, where=where))


# --- Columns of the words table -------------------------------------------------------------------


def has_columns(stimulus: Stimulus) -> bool:
    """Whether the words table has a parse."""
    return {HEAD, RELATION} <= set(stimulus.words.columns)


def parse_from_columns(stimulus: Stimulus) -> Parse | Missing:
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
    return Parse(
        head=_heads(stimulus),
        relation=_labels(stimulus, RELATION),
        upos=_labels(stimulus, UPOS) if UPOS in stimulus.words.columns else None,
        where=f"{stimulus.where}, columns '{HEAD}' and '{RELATION}'",
    )


def _heads(stimulus: Stimulus) -> IntArray:
    """The row of every word's head."""
    _check_filled(stimulus, HEAD, "a position in the sentence: 1, 2, …, and 0 for its root")
    heads = stimulus.words[HEAD].cast(pl.Int64).to_numpy()
    sentence, words = stimulus.words["sentence_id"], stimulus.words["word"]
    first, stop = slices(stimulus.words, "sentence_id")
    length = stop - first
    start, n_words = np.repeat(first, length), np.repeat(length, length)
    if (outside := (heads < 0) | (heads > n_words)).any():
        row = int(np.argmax(outside))
        expected = f"0 (root) to {n_words[row]}, the words of sentence {sentence[row]}"
        raise _wrong(stimulus, HEAD, row, str(heads[row]), expected)
    n_roots = np.add.reduceat(heads == 0, first, dtype=np.int64) if heads.size else heads
    if (wrong := n_roots != 1).any():
        number = int(np.argmax(wrong))
        roots = np.flatnonzero(heads[first[number] : stop[number]] == 0)
        row = int(first[number] + (roots[1] if roots.size else 0))
        raise _wrong(
            stimulus,
            HEAD,
            row,
            f"{roots.size} words with head 0 in sentence {sentence[row]}",
            "one word with head 0 per sentence",
            what="a sentence does not have exactly one root",
            remedy="correct the heads; two sentences need two values of 'sentence_id'",
        )
    head = np.where(heads == 0, ROOT, start + heads - 1)
    if (lost := unrooted(head)).any():
        row = int(np.argmax(lost))
        for _ in range(head.size):  # a word that never reaches a root leads to the cycle
            row = int(head[row])
        cycle = [row]
        while (row := int(head[row])) != cycle[0]:
            cycle.append(row)
        raise _wrong(
            stimulus,
            HEAD,
            min(cycle),
            f"{words[min(cycle)]!r}, whose heads lead back to it",
            "heads that lead to the root",
            what="the heads of a sentence form a cycle",
            remedy="correct one of these heads",
        )
    return head


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
            f"the column '{name}' of the words table does not contain {noun}",
            where=f"{stimulus.where}, column '{name}'",
            got=f"{column.dtype}, such as {column[0]!r} for {stimulus.words['word'][0]!r}",
            expected=expected,
            remedy=f"write {noun}, every cell filled",
        )
    empty = column.is_null() | (column.cast(pl.String).str.strip_chars() == "").fill_null(True)
    if empty.any():
        raise _wrong(stimulus, name, int(empty.arg_true()[0]), "nothing", expected)


def _wrong(
    stimulus: Stimulus,
    column: str,
    row: int,
    got: str,
    expected: str,
    *,
    what: str = "",
    remedy: str = "correct the cell; the columns are those of CoNLL-U, positions counted in the sentence",
) -> StimulusError:
    where = f"{stimulus.where}, column '{column}', row {row + 1}, word {stimulus.words['word'][row]!r}"
    what = what or f"'{column}' of a word is not valid"
    return StimulusError(what, where=where, got=got, expected=expected, remedy=remedy)


# --- From the tokens of a pipeline to words ---------------------------------------------------------


class Token(NamedTuple):
    """One token of a pipeline in a text: characters [start, stop), and the index of its head (−1: root)."""

    start: int
    stop: int
    head: int
    relation: str
    upos: str


class SentenceTree(NamedTuple):
    """One tree over the words of a sentence; ``head`` counts words from 0, −1 for the root."""

    head: IntArray
    relation: tuple[str, ...]
    upos: tuple[str, ...]


class NoToken(Exception):
    """No token touches the word with this index."""


class Pipeline(NamedTuple):
    """An opened pipeline: ``tokens`` gives the tokens of each text; ``where`` names it with its version."""

    where: str
    tokens: Callable[[Sequence[str]], Iterator[list[Token]]]


def parse_with(stimulus: Stimulus, pipeline: Pipeline) -> Parse:
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
            heads, relations, tags = collapse(spans, tokens)
        except NoToken as error:
            raise _wrong(
                stimulus,
                "word",
                begin + int(error.args[0]),
                f"only tokens outside it, from {pipeline.where}",
                "at least one token per word",
                what="the parser finds no token in a word",
                remedy="correct the word, leave it out, or give the parse in columns 'head' and 'deprel'",
            ) from None
        head[begin:end] = np.where(heads == ROOT, ROOT, heads + begin)
        relation += relations
        upos += tags
    known = tuple(tag or "X" for tag in upos) if set(upos) - {"", "X"} else None
    where = pipeline.where
    if has_columns(stimulus):
        where += f", in place of the columns '{HEAD}' and '{RELATION}' of {stimulus.where}"
    return Parse(head, tuple(relation), known, where)


def spans_of(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Return the words joined by single blanks, and the characters [start, stop) of each."""
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return " ".join(words), spans


def collapse(spans: Sequence[tuple[int, int]], tokens: Sequence[Token]) -> SentenceTree:
    """Return one tree over words from a tree over tokens.

    A token belongs to the first word that it touches; further words that it spans depend on that word as ``goeswith``.
    Of several tokens in a word, the one nearest to the root represents it (the first of equals), unless it is
    punctuation: the word's head is the word of its head. Words cannot form a cycle, since heads are nearer to the root.
    Of several roots, the later ones depend on the first as ``parataxis``.

    ``spans`` are the characters [start, stop) of each word. Raises `NoToken` if no token touches a word, and
    ``ValueError`` if heads of tokens form a cycle.
    """
    owner, shared = _owners(spans, tokens)
    # Punctuation represents a word only where there is nothing else.
    content = {w for w, t in zip(owner, tokens, strict=True) if t.relation != PUNCTUATION}
    strong = [
        word != ROOT and (token.relation != PUNCTUATION or word not in content)
        for word, token in zip(owner, tokens, strict=True)
    ]
    given = np.array([token.head for token in tokens], dtype=np.int64)
    if unrooted(given).any():
        raise ValueError("the heads of the tokens form a cycle")
    head = given.copy()
    for index in range(head.size):  # the nearest strong token above
        while head[index] != ROOT and not strong[head[index]]:
            head[index] = given[head[index]]
    depth, top = depths(head), [ROOT] * len(spans)
    for index, word in enumerate(owner):
        if strong[index] and (top[word] == ROOT or depth[index] < depth[top[word]]):
            top[word] = index
    heads = np.full(len(spans), ROOT, dtype=np.int64)
    relation, upos = ["goeswith"] * len(spans), ["X"] * len(spans)
    for word, token in enumerate(top):
        if token == ROOT:
            if word not in shared:
                raise NoToken(word)
            heads[word] = shared[word]
            continue
        heads[word] = owner[head[token]] if head[token] != ROOT else ROOT
        relation[word], upos[word] = tokens[token].relation, tokens[token].upos
    root, *later_roots = np.flatnonzero(heads == ROOT).tolist() or [ROOT]
    for later in later_roots:
        heads[later], relation[later] = root, "parataxis"
    return SentenceTree(heads, tuple(relation), tuple(upos))


def _owners(spans: Sequence[tuple[int, int]], tokens: Sequence[Token]) -> tuple[list[int], dict[int, int]]:
    """Return the first word that each token touches (−1: none), and for other words touched, that first word."""
    owner, shared = [ROOT] * len(tokens), {}
    starts, stops = [start for start, _ in spans], [stop for _, stop in spans]
    for index, token in enumerate(tokens):
        near = range(bisect_right(stops, token.start), bisect_left(starts, token.stop))
        first, *others = [word for word in near if starts[word] < stops[word]] or [ROOT]
        owner[index] = first
        shared.update(dict.fromkeys(others, first))
    return owner, shared


# --- Pipelines ---------------------------------------------------------------------------------------


def open_pipeline(parser: str, *, where: str) -> Pipeline:
    """Open the pipeline that ``parser`` names; `ConfigError` if it is unknown or not installed."""
    kind, _, name = parser.partition(":")
    if kind not in _OPENERS or not name:
        raise ConfigError(
            f"there is no parser named '{parser}'",
            where=where,
            got=parser,
            expected="'spacy:' and a pipeline's name or folder, or 'stanza:' and a language or folder",
            remedy="name the pipeline, such as 'spacy:en_core_web_sm' or 'stanza:en'",
        )
    return _OPENERS[kind](name, where)


def spacy_tokens(doc: Any) -> list[Token]:
    """Return the tokens of a ``spacy.tokens.Doc``; relations in lower case, as in UD."""
    found = []
    for token in doc:
        relation = token.dep_.lower()
        found.append(
            Token(
                start=token.idx,
                stop=token.idx + len(token.text),
                head=ROOT if token.head.i == token.i else token.head.i,
                relation=RELABELLED.get(relation, relation),
                upos=token.pos_,
            )
        )
    return found


@lru_cache(maxsize=1)
def _open_spacy(name: str, where: str) -> Pipeline:
    spacy = _require("spaCy", "spacy", where)
    try:
        nlp = spacy.load(name, exclude=["ner", "lemmatizer", "textcat"])
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the spaCy pipeline '{name}' cannot be opened",
            where=where,
            got=f"{type(error).__name__}: {error}",
            expected="the name of an installed pipeline, or its folder with 'config.cfg'",
            remedy=f"install it: `python -m spacy download {name}`",
        ) from error

    def tokens(texts: Sequence[str]) -> Iterator[list[Token]]:
        for text, doc in zip(texts, nlp.pipe(texts), strict=True):
            if text and not doc.has_annotation("DEP"):
                raise ConfigError(
                    f"the spaCy pipeline '{name}' does not parse",
                    where=where,
                    got="components " + (", ".join(nlp.pipe_names) or "none"),
                    expected="a pipeline with a dependency parser",
                    remedy="name a pipeline that has the component 'parser'",
                )
            yield spacy_tokens(doc)

    return Pipeline(f"spaCy {spacy.__version__}, pipeline '{name}'", tokens)


def stanza_tokens(document: Any) -> list[Token]:
    """Return the words of a ``stanza.Document`` as tokens, its sentences one after the other.

    The words of a multi-word token ("du" → "de", "le") share the token's characters.
    """
    found: list[Token] = []
    for sentence in document.sentences:
        before = len(found)
        found.extend(
            Token(
                start=token.start_char,
                stop=token.end_char,
                head=ROOT if word.head == 0 else before + word.head - 1,
                relation=word.deprel.lower(),
                upos=word.upos or "",
            )
            for token in sentence.tokens
            for word in token.words
        )
    return found


@lru_cache(maxsize=1)
def _open_stanza(name: str, where: str) -> Pipeline:
    stanza = _require("Stanza", "stanza", where)
    folder = Path(name)
    place = {"lang": folder.name, "dir": str(folder.parent)} if folder.is_dir() else {"lang": name}
    try:
        nlp = stanza.Pipeline(
            **place,
            processors="tokenize,mwt,pos,lemma,depparse",
            tokenize_no_ssplit=True,
            download_method=None,
            verbose=False,
        )
    except Exception as error:  # Stanza's own errors derive from Exception
        raise ConfigError(
            f"the Stanza pipeline '{name}' cannot be opened",
            where=where,
            got=f"{type(error).__name__}: {error}".strip(),
            expected="a language whose models are installed, or the folder of that language inside "
            "Stanza's folder of models, which contains 'resources.json'",
            remedy=f"download the models: `python -c \"import stanza; stanza.download('{place['lang']}')\"`",
        ) from error

    def tokens(texts: Sequence[str]) -> Iterator[list[Token]]:
        yield from map(stanza_tokens, nlp.bulk_process(list(texts)) if texts else ())

    return Pipeline(f"Stanza {stanza.__version__}, '{name}'", tokens)


def _require(title: str, package: str, where: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        remedy = f"`pip install {package}`, and the pipeline that you name"
        raise ConfigError(f"{title} is not installed", where=where, remedy=remedy) from error


_OPENERS: dict[str, Callable[[str, str], Pipeline]] = {"spacy": _open_spacy, "stanza": _open_stanza}


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
