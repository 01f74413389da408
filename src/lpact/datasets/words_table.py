"""Words tables that stand alone, without a recording."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from lpact.datasets._files.strict import read_text
from lpact.datasets.folder.read import read_words
from lpact.errors import StimulusError


def read_words_file(path: Path) -> pl.DataFrame:
    """Read a TSV file with a column ``word``; ``story_id``, ``sentence_id`` and others are kept where it has them."""
    return read_words(path, required=("word",))


def read_transcripts(path: Path, stories: list[str]) -> dict[str, str]:
    """Read what the stories say as running text: a file for one story, or a folder with ``<story>.txt`` for each."""
    if path.is_dir():
        return {file.stem: read_text(file, StimulusError) for file in sorted(path.glob("*.txt"))}
    if len(stories) != 1:
        raise StimulusError(
            "one transcript cannot serve several stories",
            where=str(path),
            got=f"one file for {len(stories)} stories ({', '.join(stories[:3])} …)",
            expected="a folder with <story>.txt for each story",
            remedy="put the transcripts into a folder, and name that",
        )
    return {stories[0]: read_text(path, StimulusError)}
