"""Stimuli of a folder of arrays: any TSV or CSV table of words becomes a words table."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.sentences import sentences_by_pauses, sentences_by_punctuation
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import (
    MISSING,
    NUMBER_PATTERN,
    CsvFile,
    ErrorType,
    TsvFile,
    read_text,
)
from lpact.datasets._finding import Finding
from lpact.datasets.arrays.table import StimulusEntry
from lpact.datasets.base import ITEM, WORD_COLUMNS, Stimulus, items_table
from lpact.errors import StimulusError, did_you_mean

_MEDIA = ("audio", "video")


def read_delimited(path: Path, error: ErrorType) -> TsvFile:
    """Open a table by its suffix: ``.tsv`` has tabs and no quoting, ``.csv`` commas and quotes."""
    if path.suffix.lower() == ".tsv":
        return TsvFile(path, error)
    if path.suffix.lower() == ".csv":
        return CsvFile(path, error)
    raise error(
        "the format of a table is not known",
        where=str(path),
        got=f"the suffix '{path.suffix}'",
        expected=".tsv (tabs) or .csv (commas)",
        remedy="rename the file, or save it as one of the two",
    )


def read_stimulus(entry: StimulusEntry, folder: SourceFolder) -> Stimulus:
    """Read one stimulus."""
    path = folder.file(entry.table, StimulusError)
    where = folder.where(path)
    unknown: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    if entry.items is None:
        words, findings = read_words(entry, path, where)
    else:
        words, unknown = read_items(entry, path)
    media = {}
    for kind in _MEDIA:
        if name := getattr(entry, kind):
            media[kind] = folder.relative(folder.file(name, StimulusError))
    return Stimulus(
        id=entry.id,
        words=words,
        where=where,
        mechanisms={name: _mechanism(words, name, path) for name in entry.mechanisms},
        media=media,
        media_root=folder.root,
        audio_start_s=entry.audio_start_s,
        transcripts={
            file.stem: read_text(file, StimulusError)
            for file in transcript_files(entry, folder, set(words["story_id"]))
        },
        findings=findings,
        unknown=unknown,
    )


def read_items(entry: StimulusEntry, path: Path) -> tuple[pl.DataFrame, frozenset[str]]:
    """Return a table of items as a words table, and which of its columns are unknown."""
    table = read_delimited(path, StimulusError)
    names = _names(entry, table, (ITEM, *WORD_COLUMNS))
    if ITEM not in names:
        table.require([ITEM])
    columns = {}
    for ours, theirs in names.items():
        numbers = WORD_COLUMNS.get(ours) == pl.Float64
        columns[ours] = pl.Series(table.numbers(theirs) if numbers else table.text(theirs))
        if numbers and entry.times_in == "ms":
            columns[ours] = columns[ours] * 0.001
    used = set(names.values())
    columns |= {name: _other(table, name) for name in table.columns if name not in used}
    return items_table(pl.DataFrame(columns), entry.id)


def read_words(
    entry: StimulusEntry, path: Path, where: str
) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
    """Return the words table, with the columns that lpact knows first, and notes on what was made up."""
    table = read_delimited(path, StimulusError)
    names = _names(entry, table, tuple(WORD_COLUMNS))
    needed = [name for name in ("word", "onset_s", "offset_s") if name not in names]
    if entry.sentences == "column" and "sentence_id" not in names:
        needed.append("sentence_id")
    if needed:
        raise StimulusError(
            f"the words table has no column '{needed[0]}'",
            where=f"{path}, line 1",
            got="columns " + ", ".join(table.columns),
            expected=f"a column for each of {', '.join(WORD_COLUMNS)}",
            remedy='number the sentences, or choose sentences = "punctuation" or "pauses"'
            if needed[0] == "sentence_id"
            else f'say which column it is: columns = {{ {needed[0]} = "…" }}',
        )
    scale = 0.001 if entry.times_in == "ms" else 1.0
    words = table.text(names["word"])
    onset_s = scale * np.array(table.numbers(names["onset_s"]), dtype=np.float64)
    offset_s = scale * np.array(table.numbers(names["offset_s"]), dtype=np.float64)
    stories = table.text(names["story_id"]) if "story_id" in names else [entry.id] * len(words)
    findings: tuple[Finding, ...] = ()
    if entry.sentences == "column":
        sentences = np.array(table.integers(names["sentence_id"]), dtype=np.int64)
    else:
        if entry.pause_s is None:
            sentences = sentences_by_punctuation(words, stories)
        else:
            sentences = sentences_by_pauses(
                onset_s.tolist(), offset_s.tolist(), stories, entry.pause_s
            )
        findings = (_by_rule(entry, where, sentences.size and int(sentences[-1]) + 1),)
    columns = {
        "word": pl.Series(words, dtype=pl.String),
        "onset_s": pl.Series(onset_s, dtype=pl.Float64),
        "offset_s": pl.Series(offset_s, dtype=pl.Float64),
        "sentence_id": pl.Series(sentences, dtype=pl.Int64),
        "story_id": pl.Series(stories, dtype=pl.String),
    }
    used = set(names.values())
    for column in table.columns:
        if column not in used:
            columns[column] = _other(table, column)
    return pl.DataFrame(columns), findings


def transcript_files(entry: StimulusEntry, folder: SourceFolder, stories: set[str]) -> list[Path]:
    """Return the texts of the stories; each is named after one."""
    if entry.transcripts is None:
        return []
    parent = folder.file(entry.transcripts, StimulusError)
    files = folder.glob(f"{folder.relative(parent)}/*.txt", StimulusError)
    for file in files:
        if file.stem not in stories:
            raise StimulusError(
                "a transcript belongs to no story",
                where=str(file),
                got=file.name,
                expected="<story_id>.txt for stories of the words table",
                remedy=did_you_mean(file.stem, stories),
            )
    return files


def _names(entry: StimulusEntry, table: TsvFile, known: tuple[str, ...]) -> dict[str, str]:
    """Which column of the file is which of those that are known."""
    for ours, theirs in entry.columns.items():
        if ours not in known:
            raise StimulusError(
                f"'{ours}' is no column that can be named",
                where=f"{table.path}, columns",
                got=ours,
                expected="one of " + ", ".join(known),
                remedy=did_you_mean(ours, known),
            )
        table.require([theirs])
        if ours != theirs and ours in table.columns:
            raise StimulusError(
                f"two columns would be '{ours}'",
                where=f"{table.path}, line 1",
                got=f"columns '{ours}' and '{theirs}'",
                expected="one",
                remedy=f"leave '{ours}' out of columns, or rename the column of that name",
            )
    return {
        name: entry.columns.get(name, name)
        for name in known
        if name in entry.columns or name in table.columns
    }


def _other(table: TsvFile, column: str) -> pl.Series:
    """A column that is kept: whole numbers, numbers (null where there is none), or texts as they are written."""
    cells = table.cells(column)
    given = [cell for cell in cells if cell not in MISSING]
    if not given or not all(NUMBER_PATTERN.fullmatch(cell) for cell in given):
        return pl.Series(cells, dtype=pl.String)
    if len(given) == len(cells) and all(cell.lstrip("+-").isdigit() for cell in cells):
        return pl.Series(table.integers(column), dtype=pl.Int64)
    numbers = table.numbers_or_nan(column)
    return pl.Series([None if math.isnan(x) else x for x in numbers], dtype=pl.Float64)


def _mechanism(words: pl.DataFrame, name: str, path: Path) -> np.ndarray:
    if name not in words.columns or not words[name].dtype.is_numeric():
        raise StimulusError(
            f"the mechanism '{name}' is not a column of numbers",
            where=f"{path}, column '{name}'",
            got=f"dtype {words[name].dtype}" if name in words.columns else "no such column",
            expected="one number per word",
            remedy=did_you_mean(name, words.columns),
        )
    return words[name].cast(pl.Float64).fill_null(math.nan).to_numpy()


def _by_rule(entry: StimulusEntry, where: str, n_sentences: int) -> Finding:
    rule = "punctuation" if entry.pause_s is None else f"pauses of {entry.pause_s:g} s"
    return Finding(
        field="sentence_id",
        reason=Reason.SENTENCES_BY_RULE,
        severity="note",
        where=where,
        found=f"{n_sentences} sentences by {rule}",
        expected="sentences as the source numbers them",
        remedy="add a column sentence_id to keep your own",
    )
