"""Words of a Brain Treebank film, and their times in a recording by the triggers of its timings table."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.strict import MISSING, TextTable, invalid, typed_column
from lpact.datasets._folder_dataset import words_table
from lpact.datasets.base import Findings
from lpact.datasets.triggers import Mark, TriggerClock
from lpact.errors import RecordingError, StimulusError
from lpact.math.types import BoolArray, FloatArray, IntArray

Clock = Literal["nearest", "next", "linear"]

TRIGGER = "trigger"
ANCHORS = {TRIGGER: Mark.TRIGGER, "pause": Mark.PAUSE, "unpause": Mark.UNPAUSE}
"""Types of rows that tie a sample to a time of the film."""

NO_ANCHORS = ("beginning", "end")
"""Types of rows that belong to the layout but do not anchor the clock."""

_MOST_BACK_S = 0.05
"""Neighbouring words may change places by the jitter of triggers, never by more than this."""

_TRUE = ("1", "1.0", "True", "true")
_FALSE = ("0", "0.0", "False", "false", *MISSING)
_EXAMPLES = 5


def read_words(path: Path, movie: str, findings: Findings) -> pl.DataFrame:
    """Return the film's words in order of their onsets, in film time.

    A sentence begins where ``is_onset`` says so or the text of ``sentence`` changes. Where speakers overlap, sorting by
    onset splits sentences: each part is then a sentence. ``source_row`` is the row in the table, from 0.
    """
    table = TextTable(path, StimulusError)
    table.require(("text", "start", "end", "sentence", "is_onset"))
    onset_s, offset_s = (np.array(table.numbers_or_nan(column)) for column in ("start", "end"))
    texts = [cell.strip() for cell in table.cells("text")]
    sentence = _sentences(table)
    # "nan" is how a missing text was once written; with a time, it is a word.
    pairs = list(zip(texts, onset_s, strict=True))
    empty = np.array([not t or (t in MISSING and math.isnan(s)) for t, s in pairs], dtype=np.bool_)
    untimed = ~(onset_s >= 0)
    gone, kept = np.flatnonzero(empty | untimed), np.flatnonzero(~(empty | untimed))
    if gone.size:
        listed = ", ".join(f"line {row + 2} {texts[row]!r}" for row in gone[:_EXAMPLES].tolist())
        found = f"{gone.size} of {len(texts)} rows: {int(untimed.sum())} without a start, {int(empty.sum())} without a "
        found += f"text; {listed}" + (" …" if gone.size > _EXAMPLES else "")
        expected, remedy = "a text and a start ≥ 0 s", "nothing to do: these words are left out"
        findings.excluded("words", Reason.SOURCE_ROWS_LEFT_OUT, found, expected, remedy)
    wrong = kept[~(offset_s[kept] >= onset_s[kept])]
    offset_s[wrong] = onset_s[wrong]
    if wrong.size:
        found = f"{wrong.size} words without an end, or with one before the start; first: line {wrong[0] + 2}"
        remedy = "nothing to do: these words end where they begin"
        findings.note("end", Reason.SOURCE_VALUES_CORRECTED, found, "end ≥ start", remedy)
    order = kept[np.argsort(onset_s[kept], kind="stable")]
    falling = np.flatnonzero(np.diff(onset_s[kept]) < 0)
    if falling.size:
        row = int(kept[falling[0] + 1])
        found = f"{falling.size} words that begin before the row above; first: line {row + 2} {texts[row]!r}"
        remedy = "nothing to do: words are in order of their onsets"
        expected = "rows in order of 'start'"
        findings.note("start", Reason.SOURCE_ROWS_SORTED, found, expected, remedy)
    parts = np.cumsum(np.diff(sentence[order], prepend=sentence[order][:1]) != 0)
    n_interrupted = len(set(parts.tolist())) - len(set(sentence[order].tolist()))
    if n_interrupted:
        found = f"overlapping speakers interrupt sentences {n_interrupted} times"
        remedy = "nothing to do: each part is a sentence"
        expected = "one sentence after the other"
        findings.note("sentence", Reason.SOURCE_VALUES_CORRECTED, found, expected, remedy)
    columns: dict[str, Any] = {
        "source_row": order,
        "space_after": ["no" if glued else "yes" for glued in _glued(table, sentence, order)],
    }
    words = words_table([texts[row] for row in order], onset_s[order], offset_s[order], parts, movie, columns)
    return words.with_columns(_annotations(table, order, set(words.columns)))


def _sentences(table: TextTable) -> IntArray:
    """Number the sentences of the table's rows."""
    onsets, texts = table.cells("is_onset"), table.cells("sentence")
    for row, cell in enumerate(onsets):
        if cell not in _TRUE and cell not in _FALSE:
            raise table.wrong("is_onset", row, "1 or 0, True or False")
    begins = [row > 0 and (cell in _TRUE or texts[row] != texts[row - 1]) for row, cell in enumerate(onsets)]
    return np.cumsum(begins, dtype=np.int64)


def _glued(table: TextTable, sentence: IntArray, order: IntArray) -> list[bool]:
    """Whether a word and the next one are written together in their sentence, as in ``gon`` and ``na``."""
    texts, written = table.cells("text"), table.cells("sentence")
    spans: dict[int, tuple[int, int]] = {}
    at = 0
    for row in range(table.n_rows):
        word = texts[row].strip()
        if row == 0 or sentence[row] != sentence[row - 1]:
            at = 0
        start = written[row].find(word, at) if word else -1
        if start >= 0:
            at = start + len(word)
            spans[row] = start, at
    glued = [
        following == row + 1
        and bool(sentence[row] == sentence[following])
        and row in spans
        and following in spans
        and spans[row][1] == spans[following][0]
        for row, following in zip(order[:-1].tolist(), order[1:].tolist(), strict=True)
    ]
    return [*glued, False][: order.size]


def _annotations(table: TextTable, order: IntArray, taken: set[str]) -> list[pl.Series]:
    """Return the table's other columns."""
    columns = []
    for name in table.columns:
        if name not in ("text", "start", "end", "index", "row"):
            cells = table.cells(name)
            values = typed_column([cells[row] for row in order.tolist()])
            columns.append(values.alias(f"source_{name}" if name in taken else name))
        if name == "pos":
            columns.append(columns[-1].alias("upos"))
    return columns


def word_times(
    path: Path,
    onset_s: FloatArray,
    *,
    rule: Clock,
    max_gap_s: float,
    n_samples: int | None,
    rate_hz: float,
    findings: Findings,
) -> FloatArray:
    """Return the time of every word on the recording's clock (sample / rate), NaN where it has none.

    Rows of type ``trigger``, ``pause`` and ``unpause`` are anchors: ``index`` is the sample, of ``n_samples``,
    ``movie_time`` the film's time in seconds. `TriggerClock` has the rules. Words between two anchors have no time if
    the film was paused or skipped somewhere between them, and no row says where.
    """
    table = TextTable(path, RecordingError)
    table.require(("type", "index", "movie_time"))
    types = table.cells("type")
    samples = np.array(table.numbers_or_nan("index"))
    movie_s = np.array(table.numbers_or_nan("movie_time"))
    if TRIGGER not in types:
        found = f"{table.n_rows} rows of type " + (", ".join(sorted(set(types))) or "none")
        remedy = "download the timings again, or leave the trial out with the option 'trials'"
        raise invalid(f"{path}, column 'type'", found, f"rows of type '{TRIGGER}'", remedy=remedy)
    anchors = np.array([kind in ANCHORS for kind in types], dtype=np.bool_)
    full = anchors & np.isfinite(samples + movie_s)
    end = np.inf if n_samples is None else n_samples
    outside = np.flatnonzero(full & ((samples < 0) | (samples >= end)))
    if outside.size:
        row = int(outside[0])
        raise RecordingError(
            f"a row of type '{types[row]}' is outside the recording",
            where=f"{path}, line {row + 2}, column 'index'",
            got=f"sample {samples[row]:.15g}",
            expected=f"a sample from 0 to {end - 1:.15g}",
            remedy="check that timings and neural file are of the same trial, and that both are complete",
        )
    rows, contradicting = _in_order(types, np.flatnonzero(full), samples, movie_s)
    kept = np.array(list(rows), dtype=np.int64)
    clock = TriggerClock(
        movie_s[kept],
        samples[kept] / rate_hz,
        rule=rule,
        max_gap_s=max_gap_s,
        marks=list(rows.values()),
        where=str(path),
        labels=[f"line {row + 2}" for row in rows],
    )
    _note_rows(types, anchors & ~full, contradicting, findings)
    times_s = clock.to_recording(onset_s)
    timed = np.isfinite(times_s)
    ordered: FloatArray = times_s.copy()
    ordered[timed] = np.maximum.accumulate(times_s[timed])
    moved_s = np.where(timed, ordered - times_s, 0.0)
    if moved_s.any():
        _note_moved(path, moved_s, findings)
    if not timed.all():
        lost = int(clock.in_break(onset_s).sum())
        findings.note(
            "words",
            Reason.WORDS_WITHOUT_TIME,
            f"{int((~timed).sum())} of {onset_s.size} words, {lost} of them in stretches that the player skipped, "
            "or in which it paused at an unknown place",
            f"a trigger within {max_gap_s:g} s of every word",
            "nothing to do: their events are left out of this recording",
        )
    findings += clock.findings(findings.where)
    return ordered


def _in_order(
    types: list[str], rows: IntArray, samples: FloatArray, movie_s: FloatArray
) -> tuple[dict[int, Mark], list[int]]:
    """Return anchors with their marks, and pauses and unpauses that contradict the rows around them.

    A pause or unpause must be between the last anchor above it and the next trigger below it, by sample and by film
    time. Rows at one sample and film time are one anchor with several marks. A trigger that is out of order stays:
    `TriggerClock` names it.
    """

    def rises(first: int, second: int) -> bool:
        return bool(samples[first] < samples[second] and movie_s[first] <= movie_s[second])

    def same(first: int, second: int) -> bool:
        return bool(samples[first] == samples[second] and movie_s[first] == movie_s[second])

    following: dict[int, int] = {}
    trigger: int | None = None
    for row in reversed(rows.tolist()):
        if trigger is not None:
            following[row] = trigger
        trigger = row if types[row] == TRIGGER else trigger
    kept: dict[int, Mark] = {}
    contradicting: list[int] = []
    last: int | None = None
    for row in rows.tolist():
        mark = ANCHORS[types[row]]
        repeated = mark is Mark.TRIGGER and last is not None and Mark.TRIGGER in kept[last]
        if last is not None and same(last, row) and not repeated:
            # A pause that ends at the very sample at which it began was none.
            ended = Mark.PAUSE if mark is Mark.UNPAUSE else Mark(0)
            kept[last] = (kept[last] & ~ended) | mark
            continue
        below = following.get(row)
        fits = (last is None or rises(last, row)) and (below is None or same(row, below) or rises(row, below))
        if mark is Mark.TRIGGER or fits:
            kept[row] = mark
            last = row
        else:
            contradicting.append(row)
    return kept, contradicting


def _note_rows(types: list[str], empty: BoolArray, contradicting: list[int], findings: Findings) -> None:
    known = (*ANCHORS, *NO_ANCHORS)
    others = Counter(kind for kind in types if kind not in known)
    found = [f"{count} of type {kind!r}" for kind, count in sorted(others.items())]
    lacking = Counter(types[row] for row in np.flatnonzero(empty))
    found += [f"{n} of type {kind!r} without index or movie_time" for kind, n in lacking.items()]
    if contradicting:
        text = f"{len(contradicting)} pauses and unpauses that contradict the triggers around them"
        found.append(f"{text}, the first in line {contradicting[0] + 2}")
    if found:
        findings.note(
            "triggers",
            Reason.SOURCE_ROWS_LEFT_OUT,
            "rows: " + ", ".join(found),
            "rows of type " + ", ".join(known) + ", in order, with index and movie_time",
            "nothing to do: word times come from the other rows; words between two triggers with a pause at an "
            "unknown place between them have none",
        )


def _note_moved(path: Path, moved_s: FloatArray, findings: Findings) -> None:
    most_s = float(moved_s.max())
    if most_s > _MOST_BACK_S:
        raise RecordingError(
            "word times run backwards",
            where=str(path),
            got=f"word {int(np.argmax(moved_s)) + 1} is {1000 * most_s:.1f} ms before an earlier one",
            expected=f"jitter of triggers of at most {1000 * _MOST_BACK_S:g} ms",
            remedy="check the triggers, or use the option clock = 'linear'",
        )
    findings.note(
        "words",
        Reason.SOURCE_VALUES_CORRECTED,
        f"{np.count_nonzero(moved_s)} words before the previous one by jitter of the triggers, "
        f"by {1000 * most_s:.2f} ms at most",
        "words in the order of the film",
        "nothing to do: they begin with the previous word; clock = 'linear' avoids it",
    )
