"""Words of a generic BIDS dataset: a table of its own on the stimulus' clock, or rows of a run's events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.sentences import (
    ends_sentence,
    sentences_by_pauses,
    sentences_by_punctuation,
)
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import CsvFile, TsvFile
from lpact.datasets._finding import Finding
from lpact.datasets._fmri.sentences import sentences_by_rule
from lpact.datasets.base import Stimulus
from lpact.errors import StimulusError
from lpact.math.types import FloatArray, IntArray

ONSET, OFFSET = ("onset_s", "onset"), ("offset_s", "offset")
TAKEN = (*ONSET, *OFFSET, "duration", "sentence_id", "story_id", "word", "trial_type")


def read_words_table(
    folder: SourceFolder, path: Path, stimulus_id: str, *, pause_s: float
) -> Stimulus:
    """Read a table with ``word``, ``onset`` and ``offset`` (or ``duration``); sentences and stories if it has them."""
    table = (CsvFile if path.suffix == ".csv" else TsvFile)(path, StimulusError)
    return _stimulus(folder, table, range(table.n_rows), stimulus_id, "word", 0.0, pause_s)


def read_word_events(
    folder: SourceFolder,
    path: Path,
    stimulus_id: str,
    *,
    kind: str,
    column: str,
    onset_s: float,
    pause_s: float,
) -> Stimulus:
    """Read the rows of an events file whose ``trial_type`` is ``kind``; times count from ``onset_s`` on."""
    table = TsvFile(path, StimulusError)
    table.require(("onset", "duration", "trial_type", column))
    rows = [row for row, cell in enumerate(table.cells("trial_type")) if cell == kind]
    if not rows:
        raise StimulusError(
            "the events hold no words",
            where=f"{path}, column 'trial_type'",
            got="trial_type " + ", ".join(sorted(set(table.cells("trial_type")))[:8]),
            expected=f"rows with trial_type '{kind}'",
            remedy="fix the option word_event, or name a table of words in the option words",
        )
    return _stimulus(folder, table, rows, stimulus_id, column, onset_s, pause_s)


def _stimulus(
    folder: SourceFolder,
    table: TsvFile,
    rows: Sequence[int],
    stimulus_id: str,
    column: str,
    start_s: float,
    pause_s: float,
) -> Stimulus:
    table.require((column,))
    onset_s, offset_s = _times(table)
    where = folder.where(table.path)
    timed = [row for row in rows if np.isfinite(onset_s[row]) and np.isfinite(offset_s[row])]
    findings: list[Finding] = []
    if len(timed) < len(rows):
        first = next(row for row in rows if row not in timed)
        findings.append(
            Finding(
                field="onset",
                reason=Reason.SOURCE_ROWS_LEFT_OUT,
                severity="excluded",
                where=where,
                found=f"{len(rows) - len(timed)} of {len(rows)} words without times; first: line {table.line(first)}",
                expected="times of every word",
                remedy="the words are left out; add their times to keep them",
            )
        )
    cells = table.text(column) if len(rows) == table.n_rows else table.cells(column)
    words = [cells[row] for row in timed]
    stories = [stimulus_id] * len(timed)
    if "story_id" in table.columns:
        stories = [table.text("story_id")[row] for row in timed]
    onsets, offsets = onset_s[timed] - start_s, offset_s[timed] - start_s
    if "sentence_id" in table.columns:
        sentences = np.array(table.integers("sentence_id"), dtype=np.int64)[timed]
    else:
        sentences, found = _sentences(words, stories, onsets, offsets, pause_s)
        findings.append(_by_rule(where, found))
    others: dict[str, Any] = {}
    for name in table.columns:
        if name not in (*TAKEN, column):
            values = table.values(name) if len(rows) == table.n_rows else table.cells(name)
            others[name] = [values[row] for row in timed]
    frame = pl.DataFrame(
        {
            "word": words,
            "onset_s": onsets,
            "offset_s": offsets,
            "sentence_id": sentences,
            "story_id": stories,
            **others,
        },
        schema_overrides={"word": pl.String, "story_id": pl.String},
    )
    return Stimulus(id=stimulus_id, words=frame, where=where, findings=tuple(findings))


def _times(table: TsvFile) -> tuple[FloatArray, FloatArray]:
    """Return onsets and offsets in seconds, NaN where a cell says that there is none."""
    onset = next((name for name in ONSET if name in table.columns), "onset")
    table.require((onset,))
    onset_s = np.array(table.numbers_or_nan(onset), dtype=np.float64)
    offset = next((name for name in OFFSET if name in table.columns), None)
    if offset is not None:
        return onset_s, np.array(table.numbers_or_nan(offset), dtype=np.float64)
    if "duration" not in table.columns:
        table.require(("offset",))
    return onset_s, onset_s + np.array(table.numbers_or_nan("duration"), dtype=np.float64)


def _sentences(
    words: list[str], stories: list[str], onset_s: FloatArray, offset_s: FloatArray, pause_s: float
) -> tuple[IntArray, str]:
    if any(ends_sentence(word) for word in words):
        return sentences_by_punctuation(words, stories), "no column 'sentence_id'; punctuation"
    by_pause = sentences_by_pauses(onset_s.tolist(), offset_s.tolist(), stories, pause_s)
    return by_pause, f"no column 'sentence_id', no punctuation; pauses of {pause_s:g} s"


def _by_rule(where: str, found: str) -> Finding:
    return sentences_by_rule(
        where,
        found,
        expected="a column 'sentence_id' of whole numbers",
        remedy="add the column where the rule is not good enough",
    )
