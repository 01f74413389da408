"""Reader of a user's own arrays, from a plain folder.

::

    dataset.toml                        source, version, licence
    stimuli/<stimulus>/
        words.tsv                       word, onset_s, offset_s, sentence_id, story_id; more if any
        items.tsv                       in its place, for items that are not words or have no times: item;
                                        optional word, onset_s, offset_s, sentence_id, story_id; more if any
        mechanisms.tsv                  optional: one column per mechanism, one line per word
        envelope.npy, envelope.toml     optional: [n_samples]; sampling_rate_hz, start_s
        transcripts/<story_id>.txt      optional: each story as running text, which language models then read
        audio.<any>, video.<any>        optional: the media themselves
        audio.toml                      optional, with audio: start_s; without it, 0
        features/<model>/<context>/
            layer-<k>.npy               [n_words, n_columns]
            layer-<k>_draw-<d>.npy      the same for contexts with several draws (no draw means 0)
    recordings/<any name>/
        recording.toml                  subject, session, run, stimulus (texts), and either
                                        sampling_rate_hz and start_s, or lags_ms (a list);
                                        optional physical_unit, coordinate_frame (texts), comparable_units
                                        (true or false: is a unit of one name the same place in all subjects?)
        neural.npy                      [n_samples, n_units], or [n_lags, n_words, n_units]
        units.tsv                       unit, region; optional x_mm, y_mm, z_mm

TSV files are UTF-8 with a header line, cells between tabs, and no quoting. Times are seconds on one
clock, that of the words; sample 0 of a signal, envelope or audio is at ``start_s``. Sentence ids are whole
numbers that run on over stories. Extra columns of ``words.tsv`` are kept: numbers, or texts where no
cell is a number. ``<context>`` is full, sentence_reset, reversed, shuffled, untrained or static.
Arrays hold integers or floating-point numbers. Names (folders, subject, session, run) are made of
letters, digits, ``.``, ``_`` and ``-``. Links may not lead out of the folder; names that
start with a dot, and files beside ``dataset.toml``, are ignored.

Opening finds every file and reads the TOML files; words, mechanisms and arrays are read when asked
for; a big time series is read a few units at a time, and other big arrays are mapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lpact.datasets._files.npy import load_npy
from lpact.datasets._files.source_folder import sha256
from lpact.datasets._files.strict import read_text
from lpact.datasets.base import (
    Dataset,
    DatasetReader,
    FeatureKey,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
)
from lpact.datasets.catalogue import Expected
from lpact.datasets.folder.layout import FolderLayout, RecordingFiles, find_layout
from lpact.datasets.folder.read import (
    RecordingHeader,
    read_audio_start,
    read_envelope,
    read_header,
    read_info,
    read_mechanisms,
    read_signal,
    read_table,
    read_units,
)
from lpact.datasets.validate import check_recording, check_recording_ids, check_stimulus
from lpact.errors import FeatureError, InputError, RecordingError, StimulusError, did_you_mean
from lpact.math.types import FloatArray


@dataclass(frozen=True)
class FolderFeatures:
    """Feature sets of one stimulus, one file each."""

    paths: dict[FeatureKey, Path]
    stimulus_where: str

    def keys(self) -> Sequence[FeatureKey]:
        """Return what is on offer."""
        return list(self.paths)

    def load(self, key: FeatureKey) -> FloatArray:
        """Return the features [n_words, n_columns] as they are stored."""
        if key not in self.paths:
            raise FeatureError(
                "the folder does not hold these features",
                where=self.stimulus_where,
                got=str(key),
                expected=f"one of {len(self.paths)} feature sets on offer",
                remedy="add the file features/<model>/<context>/layer-<k>_draw-<d>.npy",
            )
        return load_npy(self.paths[key], FeatureError)

    def where(self, key: FeatureKey) -> str:
        """Return the file of a feature set."""
        return str(self.paths[key]) if key in self.paths else self.stimulus_where


class FolderDataset(Dataset):
    """An opened folder."""

    def __init__(self, layout: FolderLayout, *, name: str) -> None:
        self._layout = layout
        self._name = name
        self.info = read_info(layout.dataset_toml)
        headers = [read_header(files, layout.stimuli) for files in layout.recordings]
        found = list(zip(layout.recordings, headers, strict=True))
        names = [str(header.id) for header in headers]
        clashing = [files.folder.name for files, header in found if names.count(str(header.id)) > 1]
        check_recording_ids(
            [header.id for header in headers],
            where=f"{layout.root / 'recordings'}: {', '.join(clashing)}",
        )
        self._recordings: dict[RecordingId, tuple[RecordingFiles, RecordingHeader]] = {
            header.id: (files, header) for files, header in found
        }

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self._recordings)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Read one recording."""
        if recording_id not in self._recordings:
            raise RecordingError(
                "the folder has no such recording",
                where=str(self._layout.root / "recordings"),
                got=f"{recording_id} with stimulus '{recording_id.stimulus}'",
                expected="one of recording_ids()",
                remedy=did_you_mean(str(recording_id), [str(known) for known in self._recordings]),
            )
        found, header = self._recordings[recording_id]
        recording = Recording(
            recording_id,
            read_signal(found, header),
            read_units(found, header),
            self._where(found.folder),
        )
        check_recording(recording)
        return recording

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one stimulus; features are read when they are loaded."""
        if stimulus_id not in self._layout.stimuli:
            raise StimulusError(
                "the folder has no such stimulus",
                where=str(self._layout.root / "stimuli"),
                got=stimulus_id,
                expected="one of the folders in stimuli/",
                remedy=did_you_mean(stimulus_id, self._layout.stimuli),
            )
        found = self._layout.stimuli[stimulus_id]
        where = self._where(found.table)
        words, unknown = read_table(found, stimulus_id)
        stimulus = Stimulus(
            id=stimulus_id,
            words=words,
            unknown=unknown,
            where=where,
            features=FolderFeatures(found.features, where) if found.features else None,
            mechanisms=read_mechanisms(found),
            envelope=read_envelope(found),
            media={kind: self._relative(path) for kind, path in found.media.items()},
            media_root=self._layout.root,
            audio_start_s=read_audio_start(found),
            transcripts={
                story: read_text(path, StimulusError) for story, path in found.transcripts.items()
            },
        )
        check_stimulus(stimulus)
        return stimulus

    def source_files(self) -> list[SourceFile]:
        """Return every file of the layout with its checksum, by path."""
        return [
            SourceFile(relative, path.stat().st_size, sha256(path), self.info.licence, path)
            for relative, path in sorted(
                (self._relative(path), path) for path in self._layout.all_files()
            )
        ]

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._layout.root).as_posix()

    def _where(self, path: Path) -> str:
        """Name a part of the dataset in tables, which must not depend on where the folder lies."""
        return f"dataset '{self._name}', {self._relative(path)}"


class Folder(DatasetReader):
    """A user's own arrays in a plain folder; the module's docstring describes the layout."""

    name = "folder"
    summary = "your own arrays, words and features from a plain folder of NPY, TSV and TOML files"
    layout = (
        Expected("source, version and licence", ("dataset.toml",)),
        Expected("words or items", ("stimuli/*/words.tsv", "stimuli/*/items.tsv")),
        Expected("mechanisms, one value per word", ("stimuli/*/mechanisms.tsv",), needed=False),
        Expected("running text of the stories", ("stimuli/*/transcripts/*.txt",), needed=False),
        Expected("stimulus audio", ("stimuli/*/audio.*",), needed=False),
        Expected("acoustic envelope", ("stimuli/*/envelope.npy",), needed=False),
        Expected("features of models", ("stimuli/*/features/*/*/*.npy",), needed=False),
        Expected("headers of recordings", ("recordings/*/recording.toml",)),
        Expected("neural data", ("recordings/*/neural.npy",)),
        Expected("units", ("recordings/*/units.tsv",)),
    )

    def open(self, *, name: str, path: Path | None, seed: int) -> FolderDataset:  # noqa: ARG002
        """Open the folder ``path``."""
        if path is None or not path.is_dir():
            raise InputError(
                "the dataset's folder is not given" if path is None else "there is no such folder",
                where=f"dataset '{name}'",
                got="no path" if path is None else str(path),
                expected="a folder with dataset.toml, stimuli/ and recordings/",
                remedy=f'give it in the study file: [run.paths] {name} = "…"',
            )
        return FolderDataset(find_layout(path.resolve()), name=name)
