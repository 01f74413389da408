"""Reader of a user's own array files with a words table: NumPy, HDF5, Zarr, NWB and MATLAB.

The folder has files of any names, and one table, ``recordings.toml``, that describes them::

    [dataset]
    source = "…"
    version = "1.0"
    licence = "CC-BY-4.0"

    [[stimuli]]
    id = "talk"
    words = "talk.csv"
    columns = { word = "text", onset_s = "start", offset_s = "end", sentence_id = "sentence" }

    [defaults]                          # for recordings that do not give these keys
    axes = "time,unit"
    stimulus = "talk"
    physical_unit = "µV"

    [[recordings]]
    subject = "01"
    file = "sub-01.h5"
    key = "ecog/data"
    sampling_rate_key = "ecog/data@rate"
    units = "sub-01_units.tsv"
    triggers = "sub-01_triggers.tsv"

`docs/how-to/datasets/arrays.md` explains every key. Opening reads only the table; a big array is read a few units at
a time if its format allows it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets.arrays.recording import data_files, load
from lpact.datasets.arrays.table import ArraysTable, read_table
from lpact.datasets.arrays.times import Clock, bad_spans, confounds, word_times
from lpact.datasets.arrays.words import read_stimulus, transcript_files
from lpact.datasets.base import (
    Dataset,
    DatasetInfo,
    DatasetReader,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
    TimeSeries,
)
from lpact.datasets.catalogue import Expected
from lpact.datasets.series import take_units
from lpact.datasets.validate import check_recording, check_recording_ids, check_stimulus
from lpact.errors import RecordingError, StimulusError, did_you_mean
from lpact.registry import PluginOptions

TABLE = "recordings.toml"


class ArraysDataset(Dataset):
    """An opened folder of arrays."""

    def __init__(self, folder: SourceFolder, table: ArraysTable, path: Path) -> None:
        self._folder = folder
        self._path = path
        about = table.dataset
        self.info = DatasetInfo(about.source, about.version, about.licence)
        ids = [entry.id for entry in table.recordings]
        check_recording_ids(ids, where=f"{path}, [[recordings]]")
        self._recordings = {entry.id: entry for entry in table.recordings}
        self._stimuli = {entry.id: entry for entry in table.stimuli}
        self._read: dict[str, Stimulus] = {}
        undeclared = {e.id.subject for e in table.recordings if e.comparable_units is None}
        if undeclared and len({own.subject for own in ids}) > 1:
            note = Finding(
                field="comparable_units",
                reason=Reason.UNITS_TAKEN_AS_COMPARABLE,
                severity="note",
                where=folder.where(path),
                found=f"not set for {len(undeclared)} subject(s)",
                expected="comparable_units = true (sensors, regions) or false (implanted electrodes)",
                remedy="set it under [defaults]; ceilings pair units of the same name between subjects",
            )
            self.findings = (note,)

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self._recordings)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Open one recording; a big array is not read yet."""
        if recording_id not in self._recordings:
            raise RecordingError(
                "the table has no such recording",
                where=str(self._path),
                got=f"{recording_id} with stimulus '{recording_id.stimulus}'",
                remedy=did_you_mean(str(recording_id), [str(known) for known in self._recordings]),
            )
        entry = self._recordings[recording_id]
        signal, units, bad, findings = load(entry, self._folder)
        path = self._folder.root / entry.path(entry.file)
        where = self._folder.where(path)
        recording = Recording(recording_id, signal, units, where, findings=findings)
        check_recording(recording)
        words = self.stimulus(entry.stimulus).words
        if isinstance(signal, TimeSeries):
            clock = Clock(signal.sampling_rate_hz, signal.start_s, signal.n_samples)
            onsets, more = word_times(entry, self._folder, clock, words)
            recording = replace(
                recording,
                word_onsets_s=onsets,
                bad_spans=bad_spans(entry, self._folder),
                confounds=confounds(entry, self._folder, clock),
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

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one stimulus."""
        if stimulus_id not in self._stimuli:
            raise StimulusError(
                "the table has no such stimulus",
                where=str(self._path),
                got=stimulus_id,
                remedy=did_you_mean(stimulus_id, self._stimuli),
            )
        if stimulus_id not in self._read:
            stimulus = read_stimulus(self._stimuli[stimulus_id], self._folder)
            check_stimulus(stimulus)
            self._read[stimulus_id] = stimulus
        return self._read[stimulus_id]

    def source_files(self) -> list[SourceFile]:
        """Return every file that the table names, with its checksum, by path."""
        files = [self._path]
        for stimulus in self._stimuli.values():
            named = (stimulus.table, stimulus.audio, stimulus.video)
            files += [self._folder.file(name, StimulusError) for name in named if name]
            if stimulus.transcripts:
                stories = set(self.stimulus(stimulus.id).words["story_id"])
                files += transcript_files(stimulus, self._folder, stories)
        for entry in self._recordings.values():
            tables = (entry.units, entry.word_onsets, entry.triggers)
            for name in (entry.file, *tables, entry.bad_spans, entry.confounds):
                if name:
                    path = self._folder.file(entry.path(name), RecordingError)
                    files += data_files(path, self._folder)
        return self._folder.source_files(files, self.info.licence)


class Arrays(DatasetReader):
    """A user's own array files; the module's docstring shows the table that describes them."""

    name = "arrays"
    summary = "your own NumPy, HDF5, Zarr, NWB or MATLAB files with a words table, described by one TOML table"
    layout = (Expected("the table of recordings, and every file that it names", (TABLE,)),)

    class Options(PluginOptions):
        """Options of the reader."""

        table: str = Field(
            TABLE, min_length=1, description="The table's name, for folders that hold several."
        )

    def open(self, *, name: str, path: Path | None, seed: int) -> ArraysDataset:  # noqa: ARG002
        """Open the folder ``path``."""
        assert isinstance(self.options, self.Options)
        folder = SourceFolder(path, name=name, expected=f"a folder with {TABLE}")
        table = folder.file(self.options.table)
        return ArraysDataset(folder, read_table(table), table)
