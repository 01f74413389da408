"""Reader of a user's own array files with a words table: NumPy, HDF5, Zarr, NWB and MATLAB.

The folder holds any files under any names, and one table, ``recordings.toml``, that says what they are::

    [dataset]
    source = "…"
    version = "1.0"
    licence = "CC-BY-4.0"

    [[stimuli]]
    id = "talk"
    words = "talk.csv"
    columns = { word = "text", onset_s = "start", offset_s = "end", sentence_id = "sentence" }

    [defaults]                          # for every recording that does not say otherwise
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

`docs/how-to/datasets/arrays.md` explains every key. Opening reads the table alone; a big array is read a few units at
a time, where its format allows it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets.arrays.recording import data_files, load
from lpact.datasets.arrays.table import ArraysTable, RecordingEntry, read_table
from lpact.datasets.arrays.times import Clock, bad_spans, confounds, word_times
from lpact.datasets.arrays.words import read_stimulus, transcript_files
from lpact.datasets.base import (
    Dataset,
    DatasetInfo,
    DatasetReader,
    Epochs,
    Recording,
    RecordingId,
    Signal,
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


def _unsaid(table: ArraysTable, where: str) -> tuple[Finding, ...]:
    """A note where nobody says whether units of one name are one place in all subjects."""
    unsaid = {e.id.subject for e in table.recordings if e.comparable_units is None}
    if len({entry.id.subject for entry in table.recordings}) < 2 or not unsaid:
        return ()
    return (
        Finding(
            field="comparable_units",
            reason=Reason.UNITS_TAKEN_AS_COMPARABLE,
            severity="note",
            where=where,
            found=f"nothing said for {len(unsaid)} subject(s)",
            expected="comparable_units = true (sensors, regions) or false (implanted electrodes)",
            remedy="say it under [defaults]; ceilings pair units of the same name between subjects",
        ),
    )


class ArraysDataset(Dataset):
    """An opened folder of arrays."""

    def __init__(self, folder: SourceFolder, table: ArraysTable, path: Path) -> None:
        self._folder = folder
        self._path = path
        about = table.dataset
        self.info = DatasetInfo(about.source, about.version, about.licence)
        check_recording_ids(
            [entry.id for entry in table.recordings], where=f"{path}, [[recordings]]"
        )
        self._recordings = {entry.id: entry for entry in table.recordings}
        self._stimuli = {entry.id: entry for entry in table.stimuli}
        self._read: dict[str, Stimulus] = {}
        self.findings = _unsaid(table, folder.where(path))

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
                expected="one of recording_ids()",
                remedy=did_you_mean(str(recording_id), [str(known) for known in self._recordings]),
            )
        entry = self._recordings[recording_id]
        loaded = load(entry, self._folder)
        recording = Recording(
            recording_id,
            loaded.signal,
            loaded.units,
            self._folder.where(self._folder.root / entry.path(entry.file)),
            findings=loaded.findings,
        )
        check_recording(recording)
        signal = loaded.signal
        if isinstance(signal, TimeSeries):
            recording = self._timed(recording, signal, entry)
        else:
            self._check_epochs(signal, entry)
        if not loaded.bad:
            return recording
        kept = [unit for unit in range(len(loaded.units.ids)) if unit not in loaded.bad]
        left: Signal = (
            replace(signal, values=take_units(signal.values, kept))
            if isinstance(signal, TimeSeries)
            else replace(signal, values=signal.values[..., kept])
        )
        return replace(recording, signal=left, units=recording.units.take(kept))

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one stimulus."""
        if stimulus_id not in self._stimuli:
            raise StimulusError(
                "the table has no such stimulus",
                where=str(self._path),
                got=stimulus_id,
                expected="the id of one of [[stimuli]]",
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

    def _timed(self, recording: Recording, signal: TimeSeries, entry: RecordingEntry) -> Recording:
        """Add what tables beside the array say about its time."""
        clock = Clock(signal.sampling_rate_hz, signal.start_s, signal.n_samples)
        words = self.stimulus(entry.stimulus).words
        onsets, findings = word_times(entry, self._folder, clock, words)
        return replace(
            recording,
            word_onsets_s=onsets,
            bad_spans=bad_spans(entry, self._folder),
            confounds=confounds(entry, self._folder, clock),
            findings=(*recording.findings, *findings),
        )

    def _check_epochs(self, signal: Epochs, entry: RecordingEntry) -> None:
        n_words = self.stimulus(entry.stimulus).words.height
        if signal.values.shape[1] != n_words:
            raise RecordingError(
                "the word axis of an array and the words table do not match",
                where=str(self._folder.root / entry.path(entry.file)),
                got=f'{signal.values.shape[1]} words (axes "{entry.axes}")',
                expected=f"{n_words} words of the stimulus '{entry.stimulus}'",
                remedy="correct 'axes', or cut the epochs again from this words table",
            )


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
