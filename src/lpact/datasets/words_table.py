"""Words and items from TSV and CSV tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from lpact.datasets._files.strict import (
    MISSING,
    NUMBER_PATTERN,
    CsvFile,
    ErrorType,
    TsvFile,
    read_text,
)
from lpact.datasets.base import ITEM, WORD_COLUMNS
from lpact.errors import StimulusError


def read_delimited(path: Path, error: ErrorType) -> TsvFile:
    """Open a table by its suffix: ``.tsv`` has tabs and no quotes, ``.csv`` commas and quotes."""
    if path.suffix.lower() not in (".tsv", ".csv"):
        raise error(
            "the format of a table is unknown",
            where=str(path),
            got=f"the suffix '{path.suffix}'",
            expected=".tsv (tabs) or .csv (commas)",
            remedy="rename the file, or save it as one of the two",
        )
    return (TsvFile if path.suffix.lower() == ".tsv" else CsvFile)(path, error)


def word_columns(
    table: TsvFile, names: Mapping[str, str], *, seconds: float = 1.0, items: bool = False
) -> pl.DataFrame:
    """Read all columns of a table of words; ``names`` maps known columns to those of the file.

    Times are multiplied by ``seconds``. Sentence ids of ``items`` may be texts.
    """
    columns = {}
    for ours, theirs in names.items():
        kind = WORD_COLUMNS.get(ours, pl.String)
        if kind == pl.Float64:
            columns[ours] = pl.Series(table.numbers(theirs), dtype=kind) * seconds
        elif kind == pl.Int64 and not items:
            columns[ours] = pl.Series(table.integers(theirs), dtype=kind)
        else:
            columns[ours] = pl.Series(table.text(theirs), dtype=pl.String)
    used = set(names.values())
    columns |= {name: _other_column(table, name) for name in table.columns if name not in used}
    return pl.DataFrame(columns)


def _other_column(table: TsvFile, column: str) -> pl.Series:
    """A column of whole numbers, of numbers (null if missing), or else of texts."""
    cells = table.cells(column)
    given = [cell for cell in cells if cell not in MISSING]
    if not given or not all(map(NUMBER_PATTERN.fullmatch, given)):
        return pl.Series(cells, dtype=pl.String)
    if len(given) == len(cells) and all(cell.lstrip("+-").isdigit() for cell in cells):
        return pl.Series(table.integers(column), dtype=pl.Int64)
    numbers = table.numbers_or_nan(column)
    return pl.Series([None if math.isnan(x) else x for x in numbers], dtype=pl.Float64)


def read_words_file(path: Path, required: tuple[str, ...] = ("word",)) -> pl.DataFrame:
    """Read a TSV file of words or items whose known columns have lpact's names."""
    table = TsvFile(path, StimulusError)
    table.require(required)
    known = [name for name in table.columns if name in (ITEM, *WORD_COLUMNS)]
    return word_columns(table, {name: name for name in known}).select(table.columns)


def read_transcripts(path: Path, stories: list[str]) -> dict[str, str]:
    """Read the stories as running text: a file for one story, or a folder with ``<story>.txt`` for each."""
    if path.is_dir():
        return {file.stem: read_text(file, StimulusError) for file in sorted(path.glob("*.txt"))}
    if len(stories) != 1:
        raise StimulusError(
            "several stories need one transcript each",
            where=str(path),
            got=f"one file for {len(stories)} stories ({', '.join(stories[:3])} …)",
            expected="a folder with <story>.txt for each story",
            remedy="put the transcripts into a folder, and give its path",
        )
    return {stories[0]: read_text(path, StimulusError)}
