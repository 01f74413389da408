"""Words of a BIDS dataset: from a table on the stimulus' clock, or from what recordings' events say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.sentences import (
    ends_sentence,
    sentences_by_pauses,
    sentences_by_punctuation,
)
from lpact.datasets._files.strict import MISSING, NUMBER_PATTERN, CsvFile, TsvFile, is_finite
from lpact.datasets._finding import Finding
from lpact.datasets.base import WORD_COLUMNS
from lpact.datasets.bids.events import Heard, SharedWords
from lpact.errors import StimulusError
from lpact.math.types import FloatArray

SENTENCE_PAUSE_S = 0.5
_EVENT_COLUMNS = ("onset", "duration", "trial_type", "value", "sample", "response_time")
_PLAIN = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True)
class WordOptions:
    """Columns of a words table; an empty name means that there is none."""

    word: str
    onset: str
    offset: str
    sentence: str
    story: str


def words_of_table(
    path: Path, options: WordOptions, *, story: str, where: str
) -> tuple[pl.DataFrame, list[Finding]]:
    """Read a words table (TSV, or CSV by its ending) on the clock of its stimulus."""
    comma = path.suffix.lower() == ".csv"
    table = CsvFile(path, StimulusError) if comma else TsvFile(path, StimulusError)
    wanted = (options.word, options.onset, options.offset)
    table.require((*wanted, *(c for c in (options.sentence, options.story) if c)))
    onset_s = np.array(table.numbers(options.onset))
    offset_s = np.array(table.numbers(options.offset))
    rows = range(table.n_rows)
    used = {*wanted, options.sentence, options.story}
    extra = {column: table.cells(column) for column in table.columns if column not in used}
    return _frame(
        table.text(options.word),
        onset_s,
        offset_s,
        stories=table.text(options.story) if options.story else [story] * len(rows),
        sentences=table.cells(options.sentence) if options.sentence else None,
        extra=extra,
        where=where,
    )


def words_of_events(
    heard: Sequence[Heard],
    shared: SharedWords,
    options: WordOptions,
    *,
    story: str,
    zero_s: float,
    where: str,
) -> tuple[pl.DataFrame, list[Finding]]:
    """Return the words that recordings heard; time 0 is ``zero_s`` on the clock of `SharedWords`."""
    sources = [(heard[i], heard[i].rows[k]) for i, k in shared.origin]
    onset_s = shared.onset_s - zero_s
    length_s = np.array([one.events.duration_s[row] for one, row in sources])
    findings = []
    if (unknown := ~np.isfinite(length_s)).any():
        findings.append(
            Finding(
                field="duration",
                reason=Reason.SOURCE_ROWS_MENDED,
                severity="note",
                where=where,
                found=f"{int(unknown.sum())} word(s) without a duration",
                expected="a duration for every word",
                remedy="none is needed: such a word ends where it begins",
            )
        )
    offset_s = onset_s + np.where(unknown, 0.0, length_s)

    def column(name: str) -> list[str]:
        return [
            one.events.table.cells(name)[row] if name in one.events.table.columns else "n/a"
            for one, row in sources
        ]

    names = {name for one in heard for name in one.events.table.columns}
    used = {options.word, options.sentence, options.story, *_EVENT_COLUMNS}
    frame, more = _frame(
        list(shared.words),
        onset_s,
        offset_s,
        stories=column(options.story) if options.story else [story] * len(sources),
        sentences=column(options.sentence) if options.sentence else None,
        extra={name: column(name) for name in sorted(names - used)},
        where=where,
    )
    return frame, findings + more


def _frame(
    words: list[str],
    onset_s: FloatArray,
    offset_s: FloatArray,
    *,
    stories: list[str],
    sentences: list[str] | None,
    extra: dict[str, list[str]],
    where: str,
) -> tuple[pl.DataFrame, list[Finding]]:
    findings = []
    if sentences is not None:
        labels = list(zip(stories, sentences, strict=True))
        new = [i == 0 or labels[i] != labels[i - 1] for i in range(len(labels))]
        numbers = np.cumsum(new).astype(np.int64) - 1
    elif any(ends_sentence(word) for word in words):
        numbers = sentences_by_punctuation(words, stories)
        findings.append(_by_rule(where, int(numbers[-1]) + 1, "punctuation"))
    else:
        numbers = sentences_by_pauses(
            onset_s.tolist(), offset_s.tolist(), stories, SENTENCE_PAUSE_S
        )
        n_sentences = int(numbers[-1]) + 1 if words else 0
        findings.append(_by_rule(where, n_sentences, f"pauses of {SENTENCE_PAUSE_S:g} s"))
    columns = {
        "word": pl.Series(words, dtype=pl.String),
        "onset_s": pl.Series(onset_s, dtype=pl.Float64),
        "offset_s": pl.Series(offset_s, dtype=pl.Float64),
        "sentence_id": pl.Series(numbers, dtype=pl.Int64),
        "story_id": pl.Series(stories, dtype=pl.String),
    }
    for name, cells in extra.items():
        plain = _PLAIN.sub("_", name).strip("_").lower()
        told = any(cell not in MISSING for cell in cells)
        if told and plain and plain not in WORD_COLUMNS and plain not in columns:
            columns[plain] = _values(name, cells, where)
    return pl.DataFrame(columns), findings


def _values(name: str, cells: list[str], where: str) -> pl.Series:
    """Return numbers where every cell is one or says that there is none (null), texts otherwise."""
    if any(NUMBER_PATTERN.fullmatch(cell) for cell in cells) and all(
        cell in MISSING or NUMBER_PATTERN.fullmatch(cell) for cell in cells
    ):
        for row, cell in enumerate(cells):
            if cell not in MISSING and not is_finite(cell):
                raise StimulusError(
                    f"a cell of column '{name}' is not valid",
                    where=f"{where}, column '{name}', word {row}",
                    got=repr(cell),
                    expected="a finite number",
                    remedy="fix the cell",
                )
        return pl.Series(
            [None if cell in MISSING else float(cell) for cell in cells], dtype=pl.Float64
        )
    return pl.Series(cells, dtype=pl.String)


def _by_rule(where: str, n_sentences: int, rule: str) -> Finding:
    return Finding(
        field="sentence_id",
        reason=Reason.SENTENCES_BY_RULE,
        severity="note",
        where=where,
        found=f"{n_sentences} sentences by {rule}",
        expected="numbered sentences",
        remedy="give the column that numbers them (option 'sentence_column')",
    )
