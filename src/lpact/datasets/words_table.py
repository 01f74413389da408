"""Words and items from TSV and CSV tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from lpact.datasets._files.strict import TextTable, read_text, typed_column
from lpact.datasets.base import ITEM, WORD_COLUMNS
from lpact.errors import StimulusError


def word_columns(
    table: TextTable, names: Mapping[str, str], *, seconds: float = 1.0, items: bool = False
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
    columns |= {name: typed_column(table.cells(name)) for name in table.columns if name not in used}
    return pl.DataFrame(columns)


def read_words_file(path: Path, required: tuple[str, ...] = ("word",)) -> pl.DataFrame:
    """Read a TSV file of words or items whose known columns have lpact's names."""
    table = TextTable(path, StimulusError)
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
