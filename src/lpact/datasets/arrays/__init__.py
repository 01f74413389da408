"""Reader of a user's own array files with a words table, described by one table, ``recordings.toml``.

docs/how-to/datasets/arrays.md explains every key. Opening reads only the table; a big array is read a few units at a
time if its format allows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from glob import escape
from pathlib import Path

import numpy as np
import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import TextTable, read_text
from lpact.datasets._folder_dataset import FolderDataset, sentences_by_rule, word_columns
from lpact.datasets.arrays.recording import bad_spans, confounds, data_files, load, word_times
from lpact.datasets.arrays.table import RecordingEntry, StimulusEntry, read_table
from lpact.datasets.base import (
    ITEM,
    WORD_COLUMNS,
    DatasetInfo,
    Finding,
    Findings,
    Recording,
    RecordingId,
    Stimulus,
    TimeSeries,
    items_table,
)
from lpact.datasets.catalogue import required
from lpact.datasets.series import take_units
from lpact.datasets.validate import check_recording
from lpact.errors import RecordingError, StimulusError, did_you_mean, require_known
from lpact.registry import PluginOptions

TABLE = "recordings.toml"


def read_stimulus(entry: StimulusEntry, folder: SourceFolder) -> Stimulus:
    """Read one stimulus."""
    path = folder.file(entry.table, StimulusError)
    where = folder.where(path)
    table = TextTable(path, StimulusError)
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
        media={kind: folder.relative(folder.file(name, StimulusError)) for kind, name in media.items() if name},
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
    entry: StimulusEntry, table: TextTable, seconds: float, where: str
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
    findings = Findings(where)
    if entry.sentences != "column":
        sentences = sentences_by_rule(
            words["word"].to_list(),
            words["onset_s"].to_numpy(),
            words["offset_s"].to_numpy(),
            words["story_id"].to_list(),
            entry.pause_s,
            findings,
            "add a column sentence_id to keep your own",
        )
        words = words.with_columns(sentence_id=pl.Series(sentences, dtype=pl.Int64))
    return words.select(*WORD_COLUMNS, pl.exclude(*WORD_COLUMNS)), tuple(findings)


def transcript_files(entry: StimulusEntry, folder: SourceFolder, stories: set[str]) -> list[Path]:
    """Return the texts of the stories; each is named after one."""
    if entry.transcripts is None:
        return []
    parent = folder.file(entry.transcripts, StimulusError)
    files = folder.glob(f"{escape(folder.relative(parent))}/*.txt", StimulusError)
    for file in files:
        require_known(file.stem, stories, "story", where=str(file), error=StimulusError)
    return files


def _names(entry: StimulusEntry, table: TextTable, known: tuple[str, ...]) -> dict[str, str]:
    """Map known columns to those of the file."""
    for ours, theirs in entry.columns.items():
        where = f"{table.path}, columns"
        require_known(ours, known, "column of a words table", where=where, error=StimulusError)
        table.require([theirs])
        if ours != theirs and ours in table.columns:
            raise StimulusError(
                f"two columns would be '{ours}'",
                where=f"{table.path}, line 1",
                got=f"columns '{ours}' and '{theirs}'",
                remedy=f"leave '{ours}' out of columns, or rename the column of that name",
            )
    return {name: entry.columns.get(name, name) for name in known if name in entry.columns or name in table.columns}


def _mechanism(words: pl.DataFrame, name: str, path: Path) -> np.ndarray:
    if name not in words.columns or not words[name].dtype.is_numeric():
        raise StimulusError(
            f"the mechanism '{name}' is not a column of numbers",
            where=f"{path}, column '{name}'",
            got=f"dtype {words[name].dtype}" if name in words.columns else "no such column",
            remedy=did_you_mean(name, words.columns),
        )
    return words[name].cast(pl.Float64).fill_null(math.nan).to_numpy()


class ArraysOptions(PluginOptions):
    """Options of the reader."""

    table: str = Field(TABLE, min_length=1)
    """The table's name, for folders with several."""


class Arrays(FolderDataset["ArraysOptions", RecordingEntry]):
    """A user's own array files; docs/how-to/datasets/arrays.md explains the table."""

    name = "arrays"
    summary = "your own NumPy, HDF5, Zarr, NWB or MATLAB files with a words table, described by one TOML table"
    layout = (required("the table of recordings, and every file that it names", TABLE),)
    Options = ArraysOptions
    contents = f"a folder with {TABLE}"

    def _open(self) -> None:
        folder, options = self.folder, self.options
        self._table = folder.file(options.table)
        table = read_table(self._table)
        self.info = DatasetInfo(**dict(table.dataset))
        pairs = ((entry.id, entry) for entry in table.recordings)
        self._set_recordings(pairs, where=f"{self._table}, [[recordings]]")
        self._stimuli = {entry.id: entry for entry in table.stimuli}
        undeclared = {e.subject for e in table.recordings if e.comparable_units is None}
        if undeclared and len({entry.subject for entry in table.recordings}) > 1:
            findings = Findings(folder.where(self._table))
            findings.note(
                "comparable_units",
                Reason.UNITS_TAKEN_AS_COMPARABLE,
                f"not set for {len(undeclared)} subject(s)",
                "comparable_units = true (sensors, regions) or false (implanted electrodes)",
                "set it under [defaults]; ceilings pair units of the same name between subjects",
            )
            self.findings = tuple(findings)

    def _recording(self, recording_id: RecordingId, entry: RecordingEntry) -> Recording:
        signal, units, bad, findings = load(entry, self.folder)
        path = self.folder.root / entry.path(entry.file)
        recording = Recording(recording_id, signal, units, self.folder.where(path), findings=findings)
        check_recording(recording)
        words = self.stimulus(entry.stimulus).words
        if isinstance(signal, TimeSeries):
            onsets, more = word_times(entry, self.folder, signal, words)
            recording = replace(
                recording,
                word_onsets_s=onsets,
                bad_spans=bad_spans(entry, self.folder),
                confounds=confounds(entry, self.folder, signal.n_samples),
                findings=(*findings, *more),
            )
        elif signal.values.shape[1] != words.height:
            raise RecordingError(
                "the word axis of an array and the words table do not match",
                where=str(path),
                got=f'{signal.values.shape[1]} words (axes "{entry.axes}")',
                expected=f"{words.height} words of the stimulus '{entry.stimulus}'",
                remedy="correct 'axes', or cut the epochs again from this words table",
            )
        if not bad:
            return recording
        kept = [unit for unit in range(len(units.ids)) if unit not in bad]
        left = replace(signal, values=take_units(signal.values, kept))  # type: ignore[arg-type]
        return replace(recording, signal=left, units=units.take(kept))

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        return read_stimulus(self._stimuli[stimulus_id], self.folder)

    def _paths(self) -> Iterator[Path]:
        yield self._table
        for stimulus in self._stimuli.values():
            for name in filter(None, (stimulus.table, stimulus.audio, stimulus.video)):
                yield self.folder.file(name, StimulusError)
            if stimulus.transcripts:
                stories = set(self._stimulus(stimulus.id).words["story_id"])
                yield from transcript_files(stimulus, self.folder, stories)
        for entry in self.recordings.values():
            tables = (entry.units, entry.word_onsets, entry.triggers)
            for name in filter(None, (entry.file, *tables, entry.bad_spans, entry.confounds)):
                yield from data_files(self.folder.file(entry.path(name), RecordingError), self.folder)
