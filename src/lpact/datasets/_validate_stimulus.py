"""Checks of a stimulus: words, mechanisms, envelope. Rows are counted from 1 in messages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from lpact.codes import Reason
from lpact.datasets._finding import Finding
from lpact.datasets.base import WORD_COLUMNS, Envelope, Stimulus
from lpact.errors import StimulusError, did_you_mean

OVERLAP_TOLERANCE_S = 1e-6
"""Words may overlap by this much without a note: rounding of onsets and offsets."""


def check_stimulus(stimulus: Stimulus) -> None:
    """Raise `StimulusError` unless words, mechanisms and envelope are well-formed.

    Words have the columns of `WORD_COLUMNS` without gaps, finite onsets ≥ 0 in rising order, and
    offsets not before onsets. Stories and sentences are contiguous, a sentence lies in one story.
    Mechanisms have one finite value per word. A stimulus without words is well-formed.
    """
    _check_columns(stimulus)
    _check_times(stimulus)
    for column in ("story_id", "sentence_id"):
        _check_contiguous(stimulus, column)
    _check_sentences_in_stories(stimulus)
    _check_mechanisms(stimulus)
    if stimulus.envelope is not None:
        _check_envelope(stimulus, stimulus.envelope)
    if not np.isfinite(stimulus.audio_start_s):
        raise StimulusError(
            "the audio's start is not a time",
            where=f"{stimulus.where}, audio",
            got=f"{stimulus.audio_start_s} s",
            expected="a finite time of the audio's first sample, on the clock of the words",
            remedy="fix the start, or leave it out",
        )


def overlap_findings(stimulus: Stimulus) -> list[Finding]:
    """Return one note if words start before the previous one has ended, beyond rounding."""
    words = stimulus.words
    onset_s, offset_s = words["onset_s"].to_numpy(), words["offset_s"].to_numpy()
    overlapping = onset_s[1:] < offset_s[:-1] - OVERLAP_TOLERANCE_S
    if not overlapping.any():
        return []
    row = _first(overlapping) + 1
    example = (
        f"row {row + 1}, {words['word'][row]!r} starts at {onset_s[row]:g} s, "
        f"{words['word'][row - 1]!r} ends at {offset_s[row - 1]:g} s"
    )
    return [
        Finding(
            field="offset_s",
            reason=Reason.WORDS_OVERLAP,
            severity="note",
            where=stimulus.where,
            found=f"{int(overlapping.sum())} overlapping word(s); first: {example}",
            expected="every word starts after the previous one has ended",
            remedy="check the alignment; the words are kept as they are",
        )
    ]


def _check_columns(stimulus: Stimulus) -> None:
    schema = stimulus.words.schema
    for column, dtype in WORD_COLUMNS.items():
        if column not in schema:
            raise StimulusError(
                f"the words table has no column '{column}'",
                where=f"{stimulus.where}, column '{column}'",
                got="columns " + ", ".join(schema),
                expected="columns " + ", ".join(WORD_COLUMNS),
                remedy=f"add the column; in this table, {did_you_mean(column, schema)}",
            )
        if schema[column] != dtype:
            raise StimulusError(
                f"the column '{column}' of the words table has the wrong type",
                where=f"{stimulus.where}, column '{column}'",
                got=str(schema[column]),
                expected=str(dtype()),
                remedy=f"cast the column to {dtype()}",
            )
    for column in WORD_COLUMNS:
        missing = stimulus.words[column].is_null()
        if missing.any():
            raise _word_error(
                stimulus,
                column,
                _first(missing),
                "has no value",
                got="nothing",
                expected="a value in every row",
                remedy="fill the cell, or leave the word out",
            )


def _check_times(stimulus: Stimulus) -> None:
    onset_s = stimulus.words["onset_s"].to_numpy()
    offset_s = stimulus.words["offset_s"].to_numpy()
    for column, times_s in (("onset_s", onset_s), ("offset_s", offset_s)):
        bad = ~np.isfinite(times_s) | (times_s < 0)
        if bad.any():
            row = _first(bad)
            raise _word_error(
                stimulus,
                column,
                row,
                "is not a time",
                got=f"{times_s[row]} s",
                expected="a finite time ≥ 0 s",
                remedy="put the words on the recording's clock, with a zero before the first word",
            )
    if (early := offset_s < onset_s).any():
        row = _first(early)
        raise _word_error(
            stimulus,
            "offset_s",
            row,
            "is before its onset",
            got=f"offset {offset_s[row]} s, onset {onset_s[row]} s",
            expected="offset ≥ onset",
            remedy="fix the word's times",
        )
    if (falling := np.diff(onset_s) < 0).any():
        row = _first(falling) + 1
        raise _word_error(
            stimulus,
            "onset_s",
            row,
            "is before the previous word's",
            got=f"{onset_s[row]} s after {onset_s[row - 1]} s",
            expected="words in the order of their onsets",
            remedy="sort the words, and every feature and mechanism with them",
        )


def _check_contiguous(stimulus: Stimulus, column: str) -> None:
    ids = stimulus.words[column]
    run_starts = ids.ne(ids.shift(1)).fill_null(True)
    run_ids = ids.filter(run_starts)
    again = ~run_ids.is_first_distinct()
    if again.any():
        row = int(run_starts.arg_true().filter(again)[0])
        raise _word_error(
            stimulus,
            column,
            row,
            "comes back after another one",
            got=repr(ids[row]),
            expected="all words of a story, and of a sentence, in consecutive rows",
            remedy="give every story and sentence its own id; sentences are numbered over stories",
        )


def _check_sentences_in_stories(stimulus: Stimulus) -> None:
    sentence, story = stimulus.words["sentence_id"], stimulus.words["story_id"]
    spanning = (sentence.eq(sentence.shift(1)) & story.ne(story.shift(1))).fill_null(False)
    if spanning.any():
        row = _first(spanning)
        raise _word_error(
            stimulus,
            "sentence_id",
            row,
            "runs on from one story into the next",
            got=f"sentence {sentence[row]} in stories {story[row - 1]!r} and {story[row]!r}",
            expected="every sentence in one story",
            remedy="number sentences over stories",
        )


def _check_mechanisms(stimulus: Stimulus) -> None:
    n_words = stimulus.words.height
    for name, values in stimulus.mechanisms.items():
        if values.shape != (n_words,):
            raise StimulusError(
                f"the mechanism '{name}' does not have one value per word",
                where=f"{stimulus.where}, mechanism '{name}'",
                got=f"shape {values.shape}",
                expected=f"shape ({n_words},)",
                remedy="compute the mechanism again from this words table",
            )
        if (bad := ~np.isfinite(values)).any():
            row = _first(bad)
            raise _word_error(
                stimulus,
                name,
                row,
                "is not finite",
                got=f"{values[row]} ({int(bad.sum())} such values)",
                expected="finite numbers",
                remedy="fix the mechanism, or leave it out",
            )


def _check_envelope(stimulus: Stimulus, envelope: Envelope) -> None:
    problem = _envelope_problem(envelope)
    if problem is not None:
        found, expected = problem
        raise StimulusError(
            "the acoustic envelope is malformed",
            where=f"{stimulus.where}, envelope",
            got=found,
            expected=expected,
            remedy="compute the envelope again, or leave it out",
        )


def _envelope_problem(envelope: Envelope) -> tuple[str, str] | None:
    if envelope.values.ndim != 1:
        return f"shape {envelope.values.shape}", "one axis: samples"
    if (bad := ~np.isfinite(envelope.values)).any():
        return f"{envelope.values[_first(bad)]} at sample {_first(bad)} (from 0)", "finite numbers"
    if not (np.isfinite(envelope.sampling_rate_hz) and envelope.sampling_rate_hz > 0):
        return f"sampling rate {envelope.sampling_rate_hz} Hz", "a finite rate above 0 Hz"
    if not np.isfinite(envelope.start_s):
        return f"start {envelope.start_s} s", "a finite start"
    return None


def _word_error(
    stimulus: Stimulus,
    column: str,
    row: int,
    problem: str,
    *,
    got: str,
    expected: str,
    remedy: str,
) -> StimulusError:
    return StimulusError(
        f"'{column}' of a word {problem}",
        where=f"{stimulus.where}, column '{column}', row {row + 1}, "
        f"word {stimulus.words['word'][row]!r}",
        got=got,
        expected=expected,
        remedy=remedy,
    )


def _first(mask: npt.NDArray[np.bool_] | pl.Series) -> int:
    return int(np.flatnonzero(np.asarray(mask))[0])
