"""Stimuli of a folder of arrays: any TSV or CSV table of words becomes a words table."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.sentences import sentences_by_pauses, sentences_by_punctuation
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import TsvFile, read_text
from lpact.datasets._finding import Finding
from lpact.datasets.arrays.table import StimulusEntry
from lpact.datasets.base import ITEM, WORD_COLUMNS, Stimulus, items_table
from lpact.datasets.words_table import read_delimited, word_columns
from lpact.errors import StimulusError, did_you_mean


def read_stimulus(entry: StimulusEntry, folder: SourceFolder) -> Stimulus:
    """Read one stimulus."""
    path = folder.file(entry.table, StimulusError)
    where = folder.where(path)
    table = read_delimited(path, StimulusError)
    seconds = 0.001 if entry.times_in == "ms" else 1.0
    unknown: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    if entry.items is None:
        words, findings = _words(entry, table, seconds, where)
    else:
        names = _names(entry, table, (ITEM, *WORD_COLUMNS))
        if ITEM not in names:
            table.require([ITEM])
        items = word_columns(table, names, seconds=seconds, items=True)
        words, unknown = items_table(items, entry.id)
    media = {"audio": entry.audio, "video": entry.video}
    return Stimulus(
        id=entry.id,
        words=words,
        where=where,
        mechanisms={name: _mechanism(words, name, path) for name in entry.mechanisms},
        media={
            kind: folder.relative(folder.file(name, StimulusError))
            for kind, name in media.items()
            if name
        },
        media_root=folder.root,
        audio_start_s=entry.audio_start_s,
        transcripts={
            file.stem: read_text(file, StimulusError)
            for file in transcript_files(entry, folder, set(words["story_id"]))
        },
        findings=findings,
        unknown=unknown,
    )


def _words(
    entry: StimulusEntry, table: TsvFile, seconds: float, where: str
) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
    """Return the words table, known columns first, and a note on sentences that a rule numbered."""
    names = _names(entry, table, tuple(WORD_COLUMNS))
    needed = ["word", "onset_s", "offset_s"]
    if entry.sentences == "column":
        needed.append("sentence_id")
    else:
        names.pop("sentence_id", None)
    if lacking := [name for name in needed if name not in names]:
        raise StimulusError(
            f"the words table has no column '{lacking[0]}'",
            where=f"{table.path}, line 1",
            got="columns " + ", ".join(table.columns),
            expected=f"a column for each of {', '.join(WORD_COLUMNS)}",
            remedy='number the sentences, or choose sentences = "punctuation" or "pauses"'
            if lacking[0] == "sentence_id"
            else f'name the column: columns = {{ {lacking[0]} = "…" }}',
        )
    words = word_columns(table, names, seconds=seconds)
    if "story_id" not in names:
        words = words.with_columns(story_id=pl.lit(entry.id, dtype=pl.String))
    findings: tuple[Finding, ...] = ()
    if entry.sentences != "column":
        texts, stories = words["word"].to_list(), words["story_id"].to_list()
        times = words["onset_s"].to_list(), words["offset_s"].to_list()
        sentences = (
            sentences_by_punctuation(texts, stories)
            if entry.pause_s is None
            else sentences_by_pauses(*times, stories, entry.pause_s)
        )
        words = words.with_columns(sentence_id=pl.Series(sentences, dtype=pl.Int64))
        rule = "punctuation" if entry.pause_s is None else f"pauses of {entry.pause_s:g} s"
        findings = (
            Finding(
                field="sentence_id",
                reason=Reason.SENTENCES_BY_RULE,
                severity="note",
                where=where,
                found=f"{sentences.size and int(sentences[-1]) + 1} sentences by {rule}",
                expected="sentences as the source numbers them",
                remedy="add a column sentence_id to keep your own",
            ),
        )
    return words.select(*WORD_COLUMNS, pl.exclude(*WORD_COLUMNS)), findings


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
    """Map known columns to those of the file."""
    for ours, theirs in entry.columns.items():
        if ours not in known:
            raise StimulusError(
                f"'{ours}' is not a column of a words table",
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
                remedy=f"leave '{ours}' out of columns, or rename the column of that name",
            )
    return {
        name: entry.columns.get(name, name)
        for name in known
        if name in entry.columns or name in table.columns
    }


def _mechanism(words: pl.DataFrame, name: str, path: Path) -> np.ndarray:
    if name not in words.columns or not words[name].dtype.is_numeric():
        raise StimulusError(
            f"the mechanism '{name}' is not a column of numbers",
            where=f"{path}, column '{name}'",
            got=f"dtype {words[name].dtype}" if name in words.columns else "no such column",
            remedy=did_you_mean(name, words.columns),
        )
    return words[name].cast(pl.Float64).fill_null(math.nan).to_numpy()
