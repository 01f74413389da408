"""Installed parsing pipelines: ``spacy:<pipeline or folder>``, ``stanza:<language or folder>``.

A pipeline turns texts into lists of plain tokens. Nothing is downloaded: an error says what to install.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from lpact.errors import ConfigError, did_you_mean
from lpact.features.parsing.collapse import Token
from lpact.math.dependencies import ROOT

Tokenise: TypeAlias = Callable[[Sequence[str]], Iterator[list[Token]]]

RELABELLED = {"relcl": "acl:relcl"}
"""Labels of spaCy's English pipelines that are not of Universal Dependencies, and that a mechanism asks for."""


@dataclass(frozen=True)
class Pipeline:
    """An opened pipeline: ``tokens`` gives the tokens of each text; ``where`` names it with its version."""

    where: str
    tokens: Tokenise


def open_pipeline(parser: str, *, where: str) -> Pipeline:
    """Open the pipeline that ``parser`` names; `ConfigError` if it is unknown or not installed."""
    kind, _, name = parser.partition(":")
    if kind not in _OPENERS or not name:
        raise ConfigError(
            f"there is no parser named '{parser}'",
            where=where,
            got=parser,
            expected="'spacy:' and a pipeline's name or folder, or 'stanza:' and a language or folder",
            remedy=did_you_mean(kind, _OPENERS)
            if kind not in _OPENERS
            else f"name the pipeline, such as '{_EXAMPLES[kind]}'",
        )
    return _OPENERS[kind](name, where)


# --- spaCy ---------------------------------------------------------------------------------------


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


# --- Stanza --------------------------------------------------------------------------------------


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
            "Stanza's folder of models, beside 'resources.json'",
            remedy="download the models: "
            f"`python -c \"import stanza; stanza.download('{place['lang']}')\"`",
        ) from error

    def tokens(texts: Sequence[str]) -> Iterator[list[Token]]:
        documents: Iterable[Any] = nlp.bulk_process(list(texts)) if texts else ()
        for document in documents:
            yield stanza_tokens(document)

    return Pipeline(f"Stanza {stanza.__version__}, '{name}'", tokens)


def _require(title: str, package: str, where: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        remedy = f"`pip install {package}`, and the pipeline that you name"
        raise ConfigError(f"{title} is not installed", where=where, remedy=remedy) from error


_OPENERS: dict[str, Callable[[str, str], Pipeline]] = {"spacy": _open_spacy, "stanza": _open_stanza}
_EXAMPLES = {"spacy": "spacy:en_core_web_sm", "stanza": "stanza:en"}
