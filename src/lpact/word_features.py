"""Features of a words table, without a study."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from lpact.datasets._folder_dataset import read_transcripts, read_words_file
from lpact.errors import ConfigError, StimulusError, did_you_mean
from lpact.features.language.extraction import Extraction
from lpact.features.language.feature_set import FeatureSet
from lpact.features.language.model_files import find_model, require
from lpact.features.language.settings import KNOWN_CONTEXTS, ReadingOptions, is_context
from lpact.features.language.text import read_stories
from lpact.run.progress import reporter
from lpact.validation import validate_model

if TYPE_CHECKING:
    from rich.console import Console


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True)
class Words:
    """A words table and where it came from."""

    frame: pl.DataFrame
    where: str

    @property
    def stories(self) -> list[str]:
        """Story ids in order, or one name where the table has none."""
        if "story_id" not in self.frame.columns:
            return ["story"]
        return [str(s) for s in self.frame["story_id"].unique(maintain_order=True)]


def as_words(words: str | Path | pl.DataFrame) -> Words:
    """A words table from a TSV file, or a data frame with a column ``word``."""
    if isinstance(words, pl.DataFrame):
        if "word" not in words.columns:
            raise ConfigError(
                "the words table has no words",
                where="argument 'words'",
                got=f"columns {words.columns}",
                expected="a column 'word'",
                remedy="rename the column that holds the words",
            )
        return Words(words, "words of the data frame")
    return Words(read_words_file(Path(words)), str(words))


def plan_features(
    model: str | Path,
    words: str | Path | pl.DataFrame,
    out: str | Path,
    *,
    contexts: str | Sequence[str] = ("full",),
    name: str | None = None,
    transcripts: str | Path | Mapping[str, str] | None = None,
    **options: Any,
) -> Extraction:
    """What `extract_features` would do: its ``sets``, which of them exist, and an `estimate`."""
    table = as_words(words)
    if isinstance(transcripts, str | Path):
        transcripts = read_transcripts(Path(transcripts), table.stories)
    if options.get("device", "auto") == "auto":
        options["device"] = "cuda" if require("torch").cuda.is_available() else "cpu"
    reading = validate_model(ReadingOptions, options, where="extraction", what="options of the extraction are")
    listed = _contexts(contexts)
    if table.frame.is_empty():
        raise StimulusError(
            "the words table has no words",
            where=table.where,
            got="no rows",
            expected="one row per word",
            remedy="check that this is the right file",
        )
    name = _checked_name(name or default_name(str(model)))
    folder = find_model(str(model), revision=reading.revision)
    stories = read_stories(table.frame, where=table.where, transcripts=transcripts, joiner=reading.joiner)
    return Extraction(folder, stories, reading, out=Path(out), name=name, contexts=listed, where=table.where)


def extract_features(
    model: str | Path,
    words: str | Path | pl.DataFrame,
    out: str | Path,
    *,
    contexts: str | Sequence[str] = ("full",),
    name: str | None = None,
    transcripts: str | Path | Mapping[str, str] | None = None,
    progress: bool = False,
    console: Console | None = None,
    **options: Any,
) -> list[FeatureSet]:
    """Read a text with a language model: hidden states of every layer, surprisal and entropy for every word.

    Parameters
    ----------
    model
        A folder, a GGUF file, a hub name, or ``lpact-tiny``.
    words
        A TSV file or data frame with a column ``word``, and optionally ``story_id`` and ``sentence_id``.
    out
        Folder for feature sets. Existing sets of the same model, text and options are not computed again.
    contexts
        Any of full, sentence_reset, reversed, shuffled, untrained, static, and fixed-N for N words before each word; a
        list, or a text with commas; ``all`` means those without a number.
    name
        Folder of the model's sets inside ``out``; default: the model's own name.
    transcripts
        Running text of each story, by story id, or a folder of ``<story>.txt``, or a file for one story; the model
        reads it in place of the joined words.
    progress, console
        Whether and where to show progress.
    options
        Those of the model source ``transformers``: pooling, window_tokens, stride_tokens, precision …; ``device`` is
        ``auto`` here, a GPU where there is one.

    Returns
    -------
    sets
        One for each context and draw, in the given order.
    """
    extraction = plan_features(model, words, out, contexts=contexts, name=name, transcripts=transcripts, **options)
    with reporter(show=progress, console=console) as report:
        return extraction.run(report)


def _contexts(contexts: str | Sequence[str]) -> list[str]:
    """Contexts one by one, each once, with ``all`` expanded."""
    given = contexts.split(",") if isinstance(contexts, str) else contexts
    named = [context.strip() for context in given if context.strip()]
    listed = [c for name in named for c in (KNOWN_CONTEXTS if name == "all" else (name,))]
    unknown = [context for context in listed if not is_context(context)]
    if unknown or not listed:
        raise ConfigError(
            f"there is no context '{unknown[0]}'" if unknown else "no context is given",
            where="contexts",
            got=unknown[0] if unknown else "none",
            expected=", ".join(KNOWN_CONTEXTS) + ", fixed-N",
            remedy=did_you_mean(unknown[0], (*KNOWN_CONTEXTS, "fixed-10")) if unknown else "name one",
        )
    return list(dict.fromkeys(listed))


def default_name(model: str) -> str:
    """A folder name for a model: the last part of a path, or a hub name without its slash."""
    path = Path(model)
    plain = path.resolve().name if path.exists() else model.replace("/", "--")
    return plain.removesuffix(".gguf")


def _checked_name(name: str) -> str:
    """A name that stays inside the output folder."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            "the name cannot be used for a folder",
            where="name",
            got=name,
            expected="letters, digits, '.', '_' and '-', the first a letter or digit",
            remedy="choose one with `--name`, or the argument 'name'",
        )
    return name
