"""Datasets of arrays in Python.

`memory_dataset` turns `Responses` and features into recordings and stimuli. `write_folder` writes them to a temporary
folder for the reader ``folder``, so that worker processes, checksums and resuming work as for any other dataset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from lpact.datasets._folder_dataset import UNKNOWN
from lpact.datasets.base import (
    ITEM,
    Dataset,
    DatasetInfo,
    Epochs,
    FeatureKey,
    OfferedFeatures,
    Recording,
    RecordingId,
    Signal,
    SourceFile,
    Stimulus,
    TimeSeries,
    Units,
    items_table,
)
from lpact.datasets.folder import Folder
from lpact.errors import ConfigError, InputError
from lpact.math.types import FloatArray
from lpact.responses import Responses
from lpact.responses.read import STIMULUS, some

STIMULI = "stimuli"
"""Id of the one stimulus of an in-memory dataset, with all its items."""


class MemoryDataset(Dataset):
    """Recordings and stimuli that are in memory."""

    def __init__(self, recordings: Sequence[Recording], stimuli: Sequence[Stimulus]) -> None:
        self._recordings = {recording.id: recording for recording in recordings}
        self._stimuli = {stimulus.id: stimulus for stimulus in stimuli}
        self.info = DatasetInfo("arrays in memory", "unversioned", "not stated")

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self._recordings)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Return one recording."""
        return self._recordings[recording_id]

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Return one stimulus."""
        return self._stimuli[stimulus_id]

    def source_files(self) -> list[SourceFile]:
        """Return no file: a run reads the folder that the arrays are written to."""
        return []


class Memory(Folder):
    """Arrays in Python; see `lpact.audit`."""

    name = "memory"
    summary = "arrays in Python (`lpact.audit`); not for study files"
    needs_path = False

    def open(self, *, name: str, path: Path | None, seed: int) -> Dataset:
        """Open the folder of the arrays; without one, raise `ConfigError`."""
        if path is None:
            raise ConfigError(
                "the reader 'memory' is for arrays in Python, not for study files",
                where=f"dataset '{name}', option 'reader'",
                remedy="call lpact.audit(features=…, responses=…); or save the arrays in a folder, and use the reader "
                "'folder' or 'arrays'",
            )
        return super().open(name=name, path=path, seed=seed)


def memory_dataset(
    responses: Sequence[Responses],
    words: pl.DataFrame | None = None,
    *,
    features: Mapping[FeatureKey, FloatArray] | None = None,
    mechanisms: Mapping[str, FloatArray] | None = None,
) -> MemoryDataset:
    """Make a dataset of responses to the same stimuli, one recording per subject, session and repetition.

    ``responses`` are one per subject and session; with a sampling rate, they are time series on the clock of the words.
    ``words`` is a table of words or items, one row per stimulus, or with a column ``stimulus_id`` for the stimulus of
    each word; without it, that of the first responses, or else the stimuli as items. The column, or else the first
    responses, define the stimuli and their order; those that a subject lacks are missing. ``features`` and
    ``mechanisms`` have one row, or value, per row of the words table.
    """
    _check_subjects(responses)
    first = responses[0]
    words = words if words is not None else first.words
    if first.sampling_rate_hz is None:
        order = first.stimulus_ids
        if words is not None and STIMULUS in words.columns:
            order = tuple(dict.fromkeys(words[STIMULUS].drop_nulls().cast(pl.String)))
        responses = [_in_order(own, order) for own in responses]
    table, unknown = _stimulus_table(responses[0], words)
    stimulus = Stimulus(
        STIMULI,
        table,
        "words in memory",
        features={
            key: OfferedFeatures(
                f"features of '{key.model}', layer {key.layer}, context '{key.context}'", partial(np.asarray, values)
            )
            for key, values in (features or {}).items()
        },
        mechanisms=dict(mechanisms or {}),
        unknown=unknown,
    )
    recordings = [recording for own in responses for recording in _recordings(own)]
    return MemoryDataset(recordings, [stimulus])


def with_lags(datasets: Sequence[MemoryDataset], lags_ms: Sequence[float]) -> MemoryDataset:
    """One dataset of epochs, from datasets of the same subjects and stimuli at one lag each.

    Where a recording is missing at a lag, its responses are NaN.
    """
    found = [{own: data.recording(own) for own in data.recording_ids()} for data in datasets]
    made = []
    for each in sorted({own for recordings in found for own in recordings}):
        parts = [recordings.get(each) for recordings in found]
        first = next(own for own in parts if own is not None)
        missing = np.full(first.signal.values.shape, np.nan)
        values = [missing if own is None else np.asarray(own.signal.values) for own in parts]
        signal = Epochs(np.concatenate(values), tuple(lags_ms), first.signal.physical_unit)
        made.append(replace(first, signal=signal))
    return MemoryDataset(made, [datasets[0].stimulus(STIMULI)])


def _check_subjects(responses: Sequence[Responses]) -> None:
    own, n = Counter((own.subject, own.session) for own in responses).most_common(1)[0]
    if n > 1:
        raise InputError(
            "several responses have the same subject and session",
            where="responses",
            got=f"{n} with subject '{own[0]}', session '{own[1]}'",
            remedy="name them, as in Responses.from_numpy(values, subject='02'); presentations of the same stimuli "
            "are repetitions, [n_stimuli, n_repetitions, n_units]",
        )
    for each in responses:
        if not np.isfinite(each.values).any():
            raise InputError(
                "responses have no values",
                where=each.where,
                got=f"shape {each.values.shape}, " + ("all NaN" if each.values.size else "empty"),
                remedy="correct the array, or leave this subject out",
            )


def _in_order(own: Responses, order: tuple[str, ...]) -> Responses:
    extra = [name for name in own.stimulus_ids if name not in set(order)]
    if extra:
        raise InputError(
            "subjects have different stimuli, or stimuli without words",
            where=own.where,
            got=some(extra),
            expected="stimuli of the words table, or else of the first subject; some may be missing",
            remedy="add them to the words, put a subject with all stimuli first, or use select(stimuli=…); "
            "if the rows of a labelled table are in order already, give it as a plain array",
        )
    return own if own.stimulus_ids == order else own.reindex(order)


def _recordings(responses: Responses) -> list[Recording]:
    """One recording per repetition that has any value."""
    n_units = responses.n_units
    units = Units(
        responses.unit_ids,
        responses.regions or (UNKNOWN,) * n_units,
        responses.coordinates_mm,
        responses.coordinate_frame,
        responses.comparable_units,
    )
    made = []
    for repetition in range(responses.n_repetitions):
        values = responses.values[:, repetition]
        if not np.isfinite(values).any():
            continue
        recording_id = RecordingId(responses.subject, responses.session, str(repetition + 1), STIMULI)
        signal: Signal = Epochs(values[None], (0.0,), responses.physical_unit)
        if responses.sampling_rate_hz is not None:
            start_s = 0.0 if responses.onset_s is None else float(responses.onset_s[0])
            signal = TimeSeries(values, responses.sampling_rate_hz, start_s, responses.physical_unit)
        made.append(Recording(recording_id, signal, units, f"arrays in memory, {recording_id}"))
    return made


def _stimulus_table(first: Responses, words: pl.DataFrame | None) -> tuple[pl.DataFrame, frozenset[str]]:
    """The words table, completed from what the responses know, and which columns are unknown."""
    if first.sampling_rate_hz is not None:
        if words is None:
            raise InputError(
                "a continuous recording needs words with their times",
                where=first.where,
                got="a sampling rate, and no words",
                remedy="give words=… with the columns 'word' and 'onset_s', or leave the sampling rate out",
            )
        return items_table(words.drop(STIMULUS, strict=False), STIMULI)
    ids = pl.Series(ITEM, first.stimulus_ids, dtype=pl.String)
    if words is None:
        words = pl.DataFrame([ids])
    elif STIMULUS in words.columns:
        words = _by_stimulus(first, words)
        if words.height != first.n_stimuli:
            return items_table(words, STIMULI)
    elif words.height != first.n_stimuli:
        raise InputError(
            "the words and the responses do not match",
            where=first.where,
            got=f"{words.height} words, responses to {first.n_stimuli} stimuli",
            expected="one row of words per row of the responses",
            remedy=f"add a column '{STIMULUS}' if stimuli have several words, or a sampling rate if the responses "
            "are a continuous recording",
        )
    if ITEM not in words.columns:
        words = words.insert_column(0, ids)
    if "onset_s" not in words.columns and first.onset_s is not None:
        words = words.with_columns(pl.Series("onset_s", first.onset_s))
    if "story_id" not in words.columns and first.groups is not None:
        words = words.with_columns(pl.Series("story_id", first.groups))
    return items_table(words, STIMULI)


def _by_stimulus(first: Responses, words: pl.DataFrame) -> pl.DataFrame:
    """Words of the stimuli; where a stimulus has several, it is a sentence."""
    if words[STIMULUS].null_count():
        raise InputError(
            "words belong to no stimulus",
            where=f"words, column '{STIMULUS}'",
            got=f"{words[STIMULUS].null_count()} of {words.height} words",
            remedy="leave these words out; only continuous recordings may have them",
        )
    if words.height == first.n_stimuli:
        return words.rename({STIMULUS: ITEM}).with_columns(pl.col(ITEM).cast(pl.String))
    place = {name: i for i, name in enumerate(first.stimulus_ids)}
    owners = words[STIMULUS].cast(pl.String)
    sentence = pl.Series("sentence_id", [place[name] for name in owners], dtype=pl.Int64)
    return words.drop(STIMULUS).with_columns(sentence)
