"""Checks that every dataset passes before it is analysed.

What cannot be analysed raises an error; what is left out, or kept with a note, is a `Finding`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from lpact.codes import Reason
from lpact.datasets.base import (
    WORD_COLUMNS,
    Envelope,
    Epochs,
    Finding,
    Findings,
    Recording,
    RecordingId,
    Stimulus,
    TimeSeries,
)
from lpact.errors import InputError, RecordingError, StimulusError, did_you_mean
from lpact.math.types import FloatArray

OVERLAP_TOLERANCE_S = 1e-6
"""Overlap of words that counts as rounding."""


def check_recording(recording: Recording) -> None:
    """Raise `RecordingError` unless signal, units and timing fit together.

    A time series is [n_samples, n_units], epochs are [n_lags, n_words, n_units]; either may be empty.
    """
    _raise_first(_recording_problems(recording), recording.where)


def _raise_first(problems: Iterable[tuple[str, object, str]], where: str) -> None:
    """Raise for the first of (what is wrong, found, expected)."""
    for what, got, expected in problems:
        raise RecordingError(what, where=where, got=got, expected=expected, remedy="correct the source")


def _recording_problems(recording: Recording) -> Iterator[tuple[str, object, str]]:
    signal, units = recording.signal, recording.units
    shape, dtype = signal.values.shape, signal.values.dtype
    n, mm = len(units.ids), units.coordinates_mm
    for name, count in Counter(units.ids).items():
        if not name.strip():
            yield "a unit has no name", f"unit number {units.ids.index(name) + 1}", "a name"
        if count > 1:
            yield f"the unit '{name}' is listed more than once", name, "unique ids"
    if len(units.regions) != n:
        yield "regions and units do not match", f"{len(units.regions)} regions", f"{n}"
    if mm is not None and mm.shape != (n, 3):
        yield "coordinates and units do not match", f"shape {mm.shape}", f"shape ({n}, 3)"
    if dtype.kind not in "fiu":
        yield "the neural values are not real numbers", dtype, "real numbers"
    axes = ("samples", "units") if isinstance(signal, TimeSeries) else ("lags", "words", "units")
    if len(shape) != len(axes):
        expected = f"{len(axes)} axes: {', '.join(axes)}"
        yield "the neural values have the wrong number of axes", f"shape {shape}", expected
    if shape[-1] != n:
        found = f"{shape[-1]} columns (shape {shape})"
        expected = f"{n} columns, one per unit, in the same order"
        yield "the neural values and the units do not match", found, expected
    if isinstance(signal, TimeSeries):
        rate, start = signal.sampling_rate_hz, signal.start_s
        if not 0 < rate < np.inf:
            yield "the sampling rate is not positive", f"{rate} Hz", "above 0 Hz"
        if not np.isfinite(start):
            yield "the start of the recording is not finite", f"{start} s", "a time"
        return
    lags = signal.lags_ms
    if len(lags) != shape[0]:
        found, expected = f"{len(lags)} lags, values of shape {shape}", f"{shape[0]} lags"
        yield "the epochs and their lags do not match", found, expected
    for lag in lags:
        if not np.isfinite(lag) or lags.count(lag) > 1:
            yield "a lag is repeated or not finite", f"{lag} ms", "distinct, finite lags"


def check_recording_ids(ids: Iterable[RecordingId], *, where: str) -> None:
    """Raise `InputError` if two recordings share subject, session and run."""
    remedy = "give each its own run or session, or remove the duplicate"
    check_unique(map(str, ids), where=where, remedy=remedy, error=InputError)


def check_unique(names: Iterable[str], *, where: str, remedy: str, error: type[InputError] = RecordingError) -> None:
    """Raise ``error`` if a name is listed more than once."""
    for name, count in Counter(names).items():
        if count > 1:
            raise error(
                f"'{name}' is listed more than once",
                where=where,
                got=f"'{name}' {count} times",
                expected="every name once",
                remedy=remedy,
            )


def check_word_onsets(recording: Recording, stimulus: Stimulus) -> None:
    """Raise `RecordingError` unless a recording's own word times fit the stimulus' words."""
    onsets_s = recording.word_onsets_s
    if onsets_s is None:
        return
    n_words = stimulus.words.height
    known = onsets_s[np.isfinite(onsets_s)]
    falls = np.flatnonzero(np.diff(known) < 0)
    problems = []
    if onsets_s.shape != (n_words,) or isinstance(recording.signal, Epochs):
        what = "a recording's word times do not fit the words"
        found = f"times of shape {onsets_s.shape} for a {type(recording.signal).__name__}"
        problems.append((what, found, f"one time for each of {n_words} words of a time series"))
    elif np.isinf(onsets_s).any() or falls.size:
        what = "a recording's word times decrease or are infinite"
        found = f"{known[falls[0] + 1]} s after {known[falls[0]]} s" if falls.size else "inf"
        expected = "times in the order of the words; NaN for a word that is missing"
        problems.append((what, found, expected))
    _raise_first(problems, recording.where)


def unit_findings(recording: Recording, *, gaps_allowed: bool = False) -> tuple[list[int], list[Finding]]:
    """Return the indices of usable units, and one finding for every other unit; see `UnitScan`."""
    scan = UnitScan(recording, gaps_allowed=gaps_allowed)
    signal = recording.signal
    if isinstance(signal, TimeSeries):
        for indices, block in signal.blocks():
            scan.add(indices, block)
    else:
        scan.add(range(signal.values.shape[-1]), signal.values)
    return scan.result()


class UnitScan:
    """Finds the usable units of a recording, block by block.

    A unit is unusable if a value is not finite, or if all values are equal. With ``gaps_allowed``, only
    finite values count. Units without any value are usable.
    """

    def __init__(self, recording: Recording, *, gaps_allowed: bool = False) -> None:
        self._recording = recording
        self._gaps_allowed = gaps_allowed
        self._usable: dict[int, bool] = {}
        self._findings = Findings(recording.where)

    def add(self, indices: range, block: npt.NDArray[Any]) -> None:
        """Scan a block of units, [..., n_indices]."""
        if block.size == 0:
            self._usable |= dict.fromkeys(indices, True)
            return
        axes = tuple(range(block.ndim - 1))
        low, high = block.min(axis=axes), block.max(axis=axes)
        for place, index in enumerate(indices):
            values = block[..., place]
            smallest, largest = float(low[place]), float(high[place])
            finite = bool(np.isfinite(smallest) and np.isfinite(largest))
            if not finite and self._gaps_allowed:
                kept = values[np.isfinite(values)]
                finite = kept.size > 0
                smallest, largest = (kept.min(), kept.max()) if finite else (0.0, 0.0)
            constant = finite and smallest == largest
            self._usable[index] = finite and not constant
            if not self._usable[index]:
                self._findings.excluded(
                    self._recording.units.ids[index],
                    Reason.CONSTANT_UNIT if constant else Reason.NON_FINITE_NEURAL,
                    _describe(values),
                    "a signal that varies" if constant else "finite values",
                    "the unit is left out; fix it in the source to keep it",
                )

    def usable_in(self, indices: range) -> npt.NDArray[np.bool_]:
        """Whether each unit of a scanned block is usable."""
        return np.array([self._usable[index] for index in indices])

    def result(self) -> tuple[list[int], list[Finding]]:
        """Return the indices of usable units, and one finding for every other unit."""
        return [index for index, usable in self._usable.items() if usable], self._findings


def _describe(unit_values: npt.NDArray[Any]) -> str:
    bad = np.argwhere(~np.isfinite(unit_values))
    if len(bad) == 0:
        return f"the value {unit_values.flat[0]} throughout"
    first = tuple(int(i) for i in bad[0])
    place = f"sample {first[0]}" if len(first) == 1 else f"lag {first[0]}, word {first[1]}"
    return f"{len(bad)} of {unit_values.size} values not finite; first: {unit_values[first]} at {place} (from 0)"


def check_stimulus(stimulus: Stimulus) -> None:
    """Raise `StimulusError` unless words, mechanisms and envelope are well-formed.

    Words have the columns of `WORD_COLUMNS` without nulls, finite onsets ≥ 0 in rising order, and offsets not before
    onsets. Stories and sentences are contiguous, and a sentence belongs to one story. Mechanisms have one finite value
    per word. There may be no words.
    """
    _check_columns(stimulus)
    _check_rows(stimulus)
    for name, values in stimulus.mechanisms.items():
        check_word_values(name, values, stimulus)
    problem = _envelope_problem(stimulus.envelope) if stimulus.envelope is not None else ""
    if problem or not np.isfinite(stimulus.audio_start_s):
        raise StimulusError(
            "the acoustic envelope or the start of the audio is not valid",
            where=f"{stimulus.where}, {'envelope' if problem else 'audio'}",
            got=problem or f"start {stimulus.audio_start_s} s",
            expected="finite values on one axis, a rate above 0 Hz and a finite start",
            remedy="correct it, or leave it out",
        )


def check_word_values(name: str, values: FloatArray, stimulus: Stimulus) -> None:
    """Raise `StimulusError` unless a mechanism has one finite value per word."""
    n_words = stimulus.words.height
    where = f"{stimulus.where}, mechanism '{name}'"
    if values.shape != (n_words,):
        raise StimulusError(
            f"the mechanism '{name}' does not have one value per word",
            where=where,
            got=f"shape {values.shape}",
            expected=f"shape ({n_words},), one per word of stimulus '{stimulus.id}'",
            remedy="give one value per word of this table; if the words have changed, compute the mechanism again",
        )
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise StimulusError(
            f"the mechanism '{name}' contains values that are not finite",
            where=f"{where}, word {row} ('{stimulus.words['word'][row]}')",
            got=f"{values[row]} ({int(bad.sum())} such values)",
            expected="a finite number for every word",
            remedy="correct these values, or leave the mechanism out",
        )


def overlap_findings(stimulus: Stimulus) -> list[Finding]:
    """Return one note if words start before the previous one has ended, beyond rounding."""
    words = stimulus.words
    onset_s, offset_s = words["onset_s"].to_numpy(), words["offset_s"].to_numpy()
    overlapping = onset_s[1:] < offset_s[:-1] - OVERLAP_TOLERANCE_S
    if not overlapping.any():
        return []
    row = int(np.argmax(overlapping)) + 1
    example = (
        f"row {row + 1}, {words['word'][row]!r} starts at {onset_s[row]:g} s, "
        f"{words['word'][row - 1]!r} ends at {offset_s[row - 1]:g} s"
    )
    findings = Findings(stimulus.where)
    findings.note(
        "offset_s",
        Reason.WORDS_OVERLAP,
        f"{int(overlapping.sum())} overlapping word(s); first: {example}",
        "every word starts after the previous one has ended",
        "check the alignment; the words are kept as they are",
    )
    return findings


def _check_columns(stimulus: Stimulus) -> None:
    schema = stimulus.words.schema
    for column, dtype in WORD_COLUMNS.items():
        where = f"{stimulus.where}, column '{column}'"
        if column not in schema:
            raise StimulusError(
                f"the words table has no column '{column}'",
                where=where,
                got="columns " + ", ".join(schema),
                expected="columns " + ", ".join(WORD_COLUMNS),
                remedy=f"add the column; in this table, {did_you_mean(column, schema)}",
            )
        if schema[column] != dtype:
            raise StimulusError(
                f"the column '{column}' of the words table has the wrong type",
                where=where,
                got=str(schema[column]),
                expected=str(dtype()),
                remedy=f"cast the column to {dtype()}",
            )


def _check_rows(stimulus: Stimulus) -> None:
    """Check the words table row by row: (column, problem, affected rows, what was found)."""
    words = stimulus.words
    for column in WORD_COLUMNS:
        if (missing := words[column].is_null()).any():
            raise _word_error(stimulus, column, int(missing.arg_true()[0]), "is empty", "nothing")
    onset, offset = words["onset_s"].to_numpy(), words["offset_s"].to_numpy()
    sentence, story = words["sentence_id"], words["story_id"]
    spans = (sentence.eq(sentence.shift(1)) & story.ne(story.shift(1))).fill_null(False)
    time = "is not a finite time ≥ 0 s"
    for column, problem, bad, got in (
        ("onset_s", time, ~((onset >= 0) & (onset < np.inf)), "{onset} s"),
        ("offset_s", time, ~((offset >= 0) & (offset < np.inf)), "{offset} s"),
        ("offset_s", "is before its onset", offset < onset, "offset {offset} s, onset {onset} s"),
        ("onset_s", "breaks the order of their onsets", np.diff(onset, prepend=0.0) < 0, "{onset} s after {before} s"),
        ("story_id", "returns after another story", _returns(story), "{story!r}"),
        ("sentence_id", "returns after another sentence", _returns(sentence), "{sentence}"),
        (
            "sentence_id",
            "continues from one story into the next",
            spans.to_numpy(),
            "sentence {sentence} in stories {last!r} and {story!r}",
        ),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            facts = {"onset": onset[row], "offset": offset[row], "before": onset[row - 1]}
            facts |= {"story": story[row], "last": story[row - 1], "sentence": sentence[row]}
            raise _word_error(stimulus, column, row, problem, got.format(**facts))


def _returns(ids: pl.Series) -> npt.NDArray[np.bool_]:
    """Rows where an id begins for a second time."""
    starts = ids.ne(ids.shift(1)).fill_null(True)
    again = ~pl.DataFrame([ids, starts.alias("starts")]).filter("starts")[ids.name].is_first_distinct()
    found = np.zeros(len(ids), dtype=np.bool_)
    found[starts.arg_true().filter(again).to_numpy()] = True
    return found


def _envelope_problem(envelope: Envelope) -> str:
    if envelope.values.ndim != 1:
        return f"shape {envelope.values.shape}"
    if (bad := ~np.isfinite(envelope.values)).any():
        return f"{envelope.values[np.argmax(bad)]} at sample {np.argmax(bad)} (from 0)"
    if not 0 < envelope.sampling_rate_hz < np.inf or not np.isfinite(envelope.start_s):
        return f"sampling rate {envelope.sampling_rate_hz} Hz, start {envelope.start_s} s"
    return ""


def _word_error(stimulus: Stimulus, column: str, row: int, problem: str, got: str) -> StimulusError:
    return StimulusError(
        f"'{column}' of a word {problem}",
        where=f"{stimulus.where}, column '{column}', row {row + 1}, word {stimulus.words['word'][row]!r}",
        got=got,
        expected="complete rows in order of time; stories and sentences in consecutive rows, with unique ids",
        remedy="correct the words table; features and mechanisms follow its order",
    )
