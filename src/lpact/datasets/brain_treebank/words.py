"""Words of a Brain Treebank film, from its features table."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.strict import MISSING, CsvFile
from lpact.datasets._finding import Finding
from lpact.datasets.base import WORD_COLUMNS
from lpact.errors import StimulusError
from lpact.math.types import BoolArray, FloatArray, IntArray

NEEDED = ("text", "start", "end", "sentence", "is_onset")
_TRUE = ("1", "1.0", "True", "true")
_FALSE = ("0", "0.0", "False", "false", *MISSING)
_EXAMPLES = 5


def read_words(path: Path, where: str, movie: str) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
    """Return the film's words in order of their onsets, and what was left out, sorted or corrected.

    ``onset_s`` and ``offset_s`` are ``start`` and ``end`` in film time. A sentence begins where ``is_onset`` says so or
    the text of ``sentence`` changes. Where speakers overlap, sorting by onset tears sentences apart: each part then
    counts as a sentence. Other columns keep their names; ``source_row`` is the row in the table, from 0, and ``upos``
    repeats ``pos``.
    """
    table = CsvFile(path, StimulusError)
    table.require(NEEDED)
    findings: list[Finding] = []
    onset_s, offset_s = (np.array(table.numbers_or_nan(column)) for column in ("start", "end"))
    texts = np.array([cell.strip() for cell in table.cells("text")], dtype=object)
    sentence = _sentences(table)
    # "nan" is how a missing text was once written; with a time, it is a word.
    empty = np.array(
        [
            not text or (text in MISSING and math.isnan(start))
            for text, start in zip(texts, onset_s, strict=True)
        ],
        dtype=np.bool_,
    )
    untimed = ~(np.isfinite(onset_s) & (onset_s >= 0))
    kept = np.flatnonzero(~(empty | untimed))
    if kept.size < texts.size:
        findings.append(_left_out(where, texts, empty, untimed))
    ended = _ends(where, onset_s, offset_s, kept, findings)
    order = kept[np.argsort(onset_s[kept], kind="stable")]
    if not np.array_equal(order, kept):
        findings.append(_sorted(where, onset_s, kept, texts))
    parts = np.cumsum(np.diff(sentence[order], prepend=sentence[order][:1]) != 0).astype(np.int64)
    n_sentences = np.unique(sentence[order]).size
    if order.size and int(parts[-1]) + 1 > n_sentences:
        findings.append(_torn(where, int(parts[-1]) + 1 - n_sentences))
    columns: dict[str, object] = {
        "word": [str(text) for text in texts[order]],
        "onset_s": onset_s[order],
        "offset_s": ended[order],
        "sentence_id": parts,
        "story_id": [movie] * order.size,
        "source_row": order,
        "space_after": ["no" if glued else "yes" for glued in _glued(table, sentence, order)],
    }
    words = pl.DataFrame(columns, schema_overrides=WORD_COLUMNS)
    return words.with_columns(_annotations(table, order, set(columns))), tuple(findings)


def _sentences(table: CsvFile) -> IntArray:
    """Number the sentences of the table's rows."""
    onsets, texts = table.cells("is_onset"), table.cells("sentence")
    numbers = np.zeros(table.n_rows, dtype=np.int64)
    for row, cell in enumerate(onsets):
        if cell not in _TRUE and cell not in _FALSE:
            raise table.wrong("is_onset", row, "1 or 0, True or False")
        if row:
            begins = cell in _TRUE or texts[row] != texts[row - 1]
            numbers[row] = numbers[row - 1] + begins
    return numbers


def _glued(table: CsvFile, sentence: IntArray, order: IntArray) -> list[bool]:
    """Whether a word and the next one are written together in their sentence, as in ``gon`` and ``na``."""
    texts, written = table.cells("text"), table.cells("sentence")
    ends: dict[int, int] = {}
    starts: dict[int, int] = {}
    at = 0
    for row in range(table.n_rows):
        if row == 0 or sentence[row] != sentence[row - 1]:
            at = 0
        found = written[row].find(texts[row].strip(), at) if texts[row].strip() else -1
        if found >= 0:
            starts[row], ends[row] = found, found + len(texts[row].strip())
            at = ends[row]
    glued = [False] * order.size
    for place, (row, following) in enumerate(
        zip(order[:-1].tolist(), order[1:].tolist(), strict=True)
    ):
        together = following == row + 1 and bool(sentence[row] == sentence[following])
        glued[place] = together and row in ends and starts.get(following) == ends[row]
    return glued


def _annotations(table: CsvFile, order: IntArray, taken: set[str]) -> list[pl.Series]:
    """Return the table's other columns: numbers where every cell is one or missing, else texts."""
    columns = []
    for name in table.columns:
        if name in ("text", "start", "end", "index", "row"):
            continue
        cells = table.cells(name)
        clear = f"source_{name}" if name in taken else name
        columns.append(_typed(clear, [cells[row] for row in order.tolist()]))
        if name == "pos":
            columns.append(columns[-1].alias("upos"))
    return columns


def _typed(name: str, cells: list[str]) -> pl.Series:
    try:
        numbers = [None if cell in MISSING else float(cell) for cell in cells]
    except ValueError:
        return pl.Series(name, [cell or None for cell in cells], dtype=pl.String)
    return pl.Series(name, numbers, dtype=pl.Float64)


def _ends(
    where: str, onset_s: FloatArray, offset_s: FloatArray, kept: IntArray, findings: list[Finding]
) -> FloatArray:
    """Return offsets; a word whose end is missing or before its start ends where it begins."""
    wrong = ~(offset_s[kept] >= onset_s[kept])
    ended: FloatArray = offset_s.copy()
    ended[kept[wrong]] = onset_s[kept[wrong]]
    if wrong.any():
        findings.append(
            Finding(
                field="end",
                reason=Reason.SOURCE_ROWS_MENDED,
                severity="note",
                where=where,
                found=f"{int(wrong.sum())} words without an end, or with one before the start; first: "
                f"line {int(kept[wrong][0]) + 2}",
                expected="end ≥ start",
                remedy="none is needed: these words end where they begin",
            )
        )
    return ended


def _left_out(
    where: str, texts: npt.NDArray[np.object_], empty: BoolArray, untimed: BoolArray
) -> Finding:
    rows = np.flatnonzero(empty | untimed)
    first = ", ".join(f"line {row + 2} {texts[row]!r}" for row in rows[:_EXAMPLES].tolist())
    return Finding(
        field="words",
        reason=Reason.SOURCE_ROWS_LEFT_OUT,
        severity="excluded",
        where=where,
        found=f"{rows.size} of {texts.size} rows: {int(untimed.sum())} without a start, "
        f"{int(empty.sum())} without a text; {first}" + (" …" if rows.size > _EXAMPLES else ""),
        expected="a text and a start ≥ 0 s",
        remedy="none is needed: these words are left out",
    )


def _sorted(
    where: str, onset_s: FloatArray, kept: IntArray, texts: npt.NDArray[np.object_]
) -> Finding:
    falling = np.flatnonzero(np.diff(onset_s[kept]) < 0)
    row = int(kept[falling[0] + 1])
    return Finding(
        field="start",
        reason=Reason.SOURCE_ROWS_SORTED,
        severity="note",
        where=where,
        found=f"{falling.size} words that begin before the row above; first: line {row + 2} {texts[row]!r}",
        expected="rows in order of 'start'",
        remedy="none is needed: words are in order of their onsets",
    )


def _torn(where: str, n_parts: int) -> Finding:
    return Finding(
        field="sentence",
        reason=Reason.SOURCE_ROWS_MENDED,
        severity="note",
        where=where,
        found=f"overlapping speakers interrupt sentences {n_parts} times",
        expected="one sentence after the other",
        remedy="none is needed: each part counts as a sentence of its own",
    )
