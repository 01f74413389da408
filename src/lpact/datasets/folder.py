"""A plain folder of TOML, TSV and NPY files: the reader of a user's own arrays, and a writer of any dataset.

docs/how-to/bring-your-own-arrays.md describes the layout. Opening finds every file and reads the TOML files; a big time
series is read a few units at a time, and other big arrays are mapped.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
from pydantic import model_validator

from lpact.datasets._files import stored as stored_arrays
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.stored import load_npy, stored_npy
from lpact.datasets._files.strict import (
    NAME_PATTERN,
    About,
    ErrorType,
    M,
    Name,
    Text,
    TextTable,
    read_text,
    read_toml,
    typed_column,
    validate_toml,
)
from lpact.datasets._folder_dataset import FolderDataset, read_words_file
from lpact.datasets.base import (
    ITEM,
    WORD_COLUMNS,
    Dataset,
    DatasetInfo,
    Envelope,
    Epochs,
    FeatureKey,
    OfferedFeatures,
    Recording,
    RecordingId,
    Signal,
    Stimulus,
    TimeSeries,
    Units,
    items_table,
)
from lpact.datasets.catalogue import optional, required
from lpact.datasets.validate import check_recording_ids
from lpact.errors import FeatureError, InputError, RecordingError, StimulusError, did_you_mean, require_known
from lpact.math.types import FloatArray
from lpact.registry import PluginOptions
from lpact.validation import Strict

CONTEXTS = ("full", "sentence_reset", "reversed", "shuffled", "untrained", "static")
STIMULUS_FILES = (*("words.tsv", "items.tsv", "mechanisms.tsv"), *("envelope.npy", "envelope.toml", "audio.toml"))
RECORDING_FILES = ("recording.toml", "neural.npy", "units.tsv")
MEDIA = ("audio", "video")
COORDINATE_COLUMNS = ("x_mm", "y_mm", "z_mm")
_UNIT_COLUMNS = ("unit", "region", *COORDINATE_COLUMNS)
_NAME = NAME_PATTERN.pattern
_NUMBER = "(0|[1-9][0-9]{0,5})"
_FEATURES = re.compile(rf"features/({_NAME})/({'|'.join(CONTEXTS)})/layer-{_NUMBER}(?:_draw-{_NUMBER})?\.npy")
_LAYOUT = {
    "stimuli": (
        re.compile("|".join(map(re.escape, STIMULUS_FILES))),
        re.compile(rf"({'|'.join(MEDIA)})\.[^/]+"),
        re.compile(r"transcripts/[^/]+\.txt"),
        _FEATURES,
    ),
    "recordings": (re.compile("|".join(map(re.escape, RECORDING_FILES))),),
}
"""Files of each stimulus and recording, relative to its folder."""


class _Clock(Strict):
    """``envelope.toml``."""

    sampling_rate_hz: float
    start_s: float


class _AudioStart(Strict):
    """``audio.toml``."""

    start_s: float


class _Header(Strict):
    """``recording.toml``."""

    subject: Name
    session: Name
    run: Name
    stimulus: Name
    sampling_rate_hz: float | None = None
    start_s: float | None = None
    lags_ms: tuple[float, ...] | None = None
    physical_unit: Text | None = None
    coordinate_frame: Text | None = None
    comparable_units: bool = True

    @model_validator(mode="after")
    def _one_kind(self) -> _Header:
        given = {key for key in ("sampling_rate_hz", "start_s", "lags_ms") if getattr(self, key) is not None}
        if given not in ({"sampling_rate_hz", "start_s"}, {"lags_ms"}):
            raise ValueError("give sampling_rate_hz and start_s (time series), or lags_ms (epochs)")
        return self

    @property
    def id(self) -> RecordingId:
        """Identity of the recording."""
        return RecordingId(self.subject, self.session, self.run, self.stimulus)


Files = dict[str, Path]
"""Files of one stimulus or recording, by their path relative to its folder."""


def _find(folder: SourceFolder, kind: str, error: ErrorType) -> dict[str, Files]:
    """Find the files of every stimulus or recording; a name outside the layout is an error."""
    found: dict[str, Files] = {}
    for path in folder.glob(f"{kind}/**/*", error):
        parent, _, name = path.relative_to(folder.root / kind).as_posix().partition("/")
        files = found.setdefault(parent, {})
        if name and not path.is_dir():
            files[name] = path
        fits = any(pattern.fullmatch(name) for pattern in _LAYOUT[kind]) or path.is_dir()
        if not fits or not NAME_PATTERN.fullmatch(parent):
            raise _not_in_layout(path, kind, FeatureError if "features/" in name else error)
    return found


def _not_in_layout(path: Path, kind: str, error: ErrorType) -> InputError:
    known = STIMULUS_FILES if kind == "stimuli" else RECORDING_FILES
    expected = "files " + ", ".join(known) + " in folders named with letters, digits, '.', '_' and '-'"
    if error is FeatureError:
        known, expected = CONTEXTS, "features/<model>/<context>/layer-<number>[_draw-<number>].npy"
    near = [did_you_mean(n, known) for n in (path.name, path.parent.name) if n not in known]
    return error(
        "a file is not part of the layout",
        where=str(path),
        got=path.name,
        expected=expected,
        remedy="rename or remove it; " + next((hint for hint in near if "mean" in hint), near[0]),
    )


def _check_stimulus_files(files: Files, folder: SourceFolder, home: str) -> None:
    pair = ("envelope.npy", "envelope.toml")
    needed = ["items.tsv" if "items.tsv" in files else "words.tsv"]
    needed += [name for name in pair if any(name in files for name in pair)]
    for name in needed:
        folder.file(f"{home}/{name}", StimulusError)
    for kind in MEDIA:
        media = [name for name in files if name.startswith(f"{kind}.") and name != "audio.toml"]
        if kind == "audio" and "audio.toml" in files and not media:
            folder.file(f"{home}/audio.wav", StimulusError)
        if len(media) > 1:
            raise StimulusError(
                f"a stimulus has several {kind} files",
                where=str(folder.root / home),
                got=", ".join(media),
                remedy="keep one",
            )
    if "words.tsv" in files and "items.tsv" in files:
        raise StimulusError(
            "a stimulus has a table of words and a table of items",
            where=str(folder.root / home),
            remedy="keep words.tsv if the items are words, else items.tsv",
        )


def _toml(model: type[M], path: Path, error: ErrorType) -> M:
    return validate_toml(model, read_toml(path, error), path, error)


def offered_features(files: Files) -> dict[FeatureKey, OfferedFeatures]:
    """Return the feature sets among the files of a stimulus, by path relative to its folder."""
    found: dict[FeatureKey, OfferedFeatures] = {}
    for name, path in files.items():
        if match := _FEATURES.fullmatch(name):
            key = FeatureKey(match[1], int(match[3]), match[2], int(match[4] or 0))
            if key in found:
                raise FeatureError(
                    "two files hold the same features",
                    where=str(path),
                    got=f"{Path(found[key].where).name} and {path.name}",
                    remedy="remove one of them",
                )
            found[key] = OfferedFeatures(str(path), partial(load_npy, path, FeatureError))
    return found


def _signal(path: Path, header: _Header) -> Signal:
    """Read ``neural.npy``; a big time series is read a few units at a time."""
    unit = header.physical_unit or ""
    if header.sampling_rate_hz is None or header.start_s is None:
        return Epochs(load_npy(path, RecordingError), header.lags_ms or (), unit)
    stored = stored_npy(path, RecordingError)
    if stored.n_bytes >= stored_arrays.STREAM_BYTES and len(stored.shape) == 2:
        series = stored_arrays.StoredSeries(stored, unit_axis=1)
        return TimeSeries(series, header.sampling_rate_hz, header.start_s, unit)
    values = load_npy(path, RecordingError)
    return TimeSeries(values, header.sampling_rate_hz, header.start_s, unit)


def _units(path: Path, header: _Header) -> Units:
    table = TextTable(path, RecordingError)
    table.require(("unit", "region"))
    check_known_columns(table, _UNIT_COLUMNS)
    return Units(
        tuple(table.text("unit")),
        tuple(table.text("region")),
        read_coordinates(table),
        header.coordinate_frame or "",
        header.comparable_units,
    )


def check_known_columns(table: TextTable, known: Sequence[str]) -> None:
    """Raise for a column that is not known."""
    for column in table.columns:
        where = f"{table.path}, line 1, column '{column}'"
        require_known(column, known, "column of units", where=where, error=RecordingError)


def read_coordinates(table: TextTable) -> FloatArray | None:
    """Read x, y and z of units in mm, [n_units, 3]; None if the table has none."""
    if not any(column in table.columns for column in COORDINATE_COLUMNS):
        return None
    table.require(COORDINATE_COLUMNS)
    axes = [table.numbers_or_nan(column) for column in COORDINATE_COLUMNS]
    return np.array(axes, dtype=np.float64).T


def _mechanisms(files: Files) -> dict[str, FloatArray]:
    if "mechanisms.tsv" not in files:
        return {}
    table = TextTable(files["mechanisms.tsv"], StimulusError)
    return {name: np.array(table.numbers(name), dtype=np.float64) for name in table.columns}


def _envelope(files: Files) -> Envelope | None:
    if "envelope.npy" not in files:
        return None
    clock = _toml(_Clock, files["envelope.toml"], StimulusError)
    values = load_npy(files["envelope.npy"], StimulusError)
    return Envelope(values, clock.sampling_rate_hz, clock.start_s)


class Folder(FolderDataset[PluginOptions, tuple[_Header, Files]]):
    """A user's own arrays in a plain folder; see docs/how-to/bring-your-own-arrays.md."""

    name = "folder"
    summary = "your own arrays, words and features from a plain folder of NPY, TSV and TOML files"
    layout = (
        required("source, version and licence", "dataset.toml"),
        required("words or items", "stimuli/*/words.tsv", "stimuli/*/items.tsv"),
        optional("mechanisms, one value per word", "stimuli/*/mechanisms.tsv"),
        optional("running text of the stories", "stimuli/*/transcripts/*.txt"),
        optional("stimulus audio", "stimuli/*/audio.*"),
        optional("acoustic envelope", "stimuli/*/envelope.npy"),
        optional("features of models", "stimuli/*/features/*/*/*.npy"),
        required("headers of recordings", "recordings/*/recording.toml"),
        required("neural data", "recordings/*/neural.npy"),
        required("units", "recordings/*/units.tsv"),
    )
    contents = "a folder with dataset.toml, stimuli/ and recordings/"

    def _open(self) -> None:
        folder = self.folder
        about, *_ = map(folder.file, ("dataset.toml", "stimuli", "recordings"))
        self.info = DatasetInfo(**dict(_toml(About, about, InputError)))
        self._stimuli = _find(folder, "stimuli", StimulusError)
        self._features: dict[str, dict[FeatureKey, OfferedFeatures]] = {}
        for name, found in self._stimuli.items():
            _check_stimulus_files(found, folder, f"stimuli/{name}")
            self._features[name] = offered_features(found)
        recordings = {}
        for name, found in _find(folder, "recordings", RecordingError).items():
            for file in RECORDING_FILES:
                folder.file(f"recordings/{name}/{file}", RecordingError)
            recordings[name] = (self._header(found["recording.toml"]), found)
        ids = [str(header.id) for header, _ in recordings.values()]
        clashing = [name for name, own in zip(recordings, ids, strict=True) if ids.count(own) > 1]
        where = f"{folder.root / 'recordings'}: {', '.join(clashing)}"
        check_recording_ids([header.id for header, _ in recordings.values()], where=where)
        self.recordings = {header.id: (header, found) for header, found in recordings.values()}

    def _header(self, path: Path) -> _Header:
        header = _toml(_Header, path, RecordingError)
        where, known = f"{path}, key 'stimulus'", self._stimuli
        require_known(header.stimulus, known, "stimulus", where=where, error=RecordingError)
        return header

    def _recording(self, recording_id: RecordingId, files: tuple[_Header, Files]) -> Recording:
        header, paths = files
        signal, units = _signal(paths["neural.npy"], header), _units(paths["units.tsv"], header)
        where = self.folder.where(paths["neural.npy"].parent)
        return Recording(recording_id, signal, units, where)

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        files = self._stimuli[stimulus_id]
        unknown: frozenset[str] = frozenset()
        if "words.tsv" in files:
            words = read_words_file(files["words.tsv"], tuple(WORD_COLUMNS))
        else:
            words, unknown = items_table(read_words_file(files["items.tsv"], (ITEM,)), stimulus_id)
        where = self.folder.where(files.get("words.tsv") or files["items.tsv"])
        media = {Path(name).stem: path for name, path in files.items() if name != "audio.toml"}
        return Stimulus(
            id=stimulus_id,
            words=words,
            unknown=unknown,
            where=where,
            features=self._features[stimulus_id],
            mechanisms=_mechanisms(files),
            envelope=_envelope(files),
            media={kind: self.folder.relative(media[kind]) for kind in MEDIA if kind in media},
            media_root=self.folder.root,
            audio_start_s=_toml(_AudioStart, files["audio.toml"], StimulusError).start_s
            if "audio.toml" in files
            else 0.0,
            transcripts={
                path.stem: read_text(path, StimulusError)
                for name, path in files.items()
                if name.startswith("transcripts/")
            },
        )

    def _paths(self) -> Iterator[Path]:
        yield self.folder.root / "dataset.toml"
        for files in (*self._stimuli.values(), *(files for _, files in self.recordings.values())):
            yield from files.values()


# --- Writing ---------------------------------------------------------------------------------------------------------


def write_folder(dataset: Dataset, path: str | Path) -> None:
    """Write ``dataset`` into the new or empty folder ``path``, completely or not at all.

    Reading it back with the ``folder`` reader gives identical words, arrays and ids.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(
            "the target of a dataset exists already",
            where=str(path),
            got="a folder that is not empty" if path.is_dir() else "a file",
            remedy="choose another folder, or empty this one",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-", suffix=".partial") as holder:
        work = Path(holder) / "dataset"
        work.mkdir()
        _write_toml(work / "dataset.toml", vars(dataset.info))
        ids = dataset.recording_ids()
        (work / "stimuli").mkdir()
        (work / "recordings").mkdir()
        for stimulus_id in sorted({recording_id.stimulus for recording_id in ids}):
            _write_stimulus(dataset.stimulus(stimulus_id), work / "stimuli")
        for recording_id in ids:
            _write_recording(dataset.recording(recording_id), work / "recordings")
        if path.exists():
            path.rmdir()
        os.rename(work, path)


def _write_stimulus(stimulus: Stimulus, parent: Path) -> None:
    folder = parent / _name(stimulus.id, stimulus.where)
    folder.mkdir()
    _check_text_columns(stimulus)
    words = stimulus.words.drop(stimulus.unknown)
    if stimulus.unknown and ITEM not in words.columns:
        words = words.insert_column(0, stimulus.words["word"].alias(ITEM))
    table = "items.tsv" if stimulus.unknown else "words.tsv"
    _write_tsv(folder / table, words.to_dict(as_series=False), stimulus.where)
    if stimulus.mechanisms:
        mechanisms = {name: values.tolist() for name, values in stimulus.mechanisms.items()}
        _write_tsv(folder / "mechanisms.tsv", mechanisms, stimulus.where)
    if stimulus.envelope is not None:
        clock = dict(vars(stimulus.envelope))
        np.save(folder / "envelope.npy", clock.pop("values"), allow_pickle=False)
        _write_toml(folder / "envelope.toml", clock)
    for kind in stimulus.media:
        _copy_medium(kind, stimulus.media_path(kind), folder, stimulus.where)
    for story, text in stimulus.transcripts.items():
        path = folder / "transcripts" / f"{_name(story, stimulus.where)}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    if "audio" in stimulus.media and stimulus.audio_start_s:
        _write_toml(folder / "audio.toml", {"start_s": stimulus.audio_start_s})
    for key, features in stimulus.features.items():
        context_folder = folder / "features" / _name(key.model, stimulus.where) / key.context
        context_folder.mkdir(parents=True, exist_ok=True)
        draw = f"_draw-{key.draw}" if key.draw else ""
        target = context_folder / f"layer-{key.layer}{draw}.npy"
        np.save(target, features.load(), allow_pickle=False)


def _check_text_columns(stimulus: Stimulus) -> None:
    """Refuse extra columns of texts that would be read back as numbers."""
    for column in stimulus.words.select(pl.col(pl.String).exclude(ITEM, *WORD_COLUMNS)):
        if typed_column(column.drop_nulls().to_list()).dtype != pl.String:
            raise InputError(
                "a column of texts holds only numbers",
                where=f"{stimulus.where}, column '{column.name}'",
                got=repr(column.drop_nulls()[0]),
                remedy="make the column numeric, or prefix its texts",
            )


def _copy_medium(kind: str, medium: Path, folder: Path, where: str) -> None:
    if kind not in MEDIA or not medium.is_file() or not medium.suffix:
        raise InputError(
            "a medium of a stimulus cannot be copied",
            where=where,
            got=f"{kind}: {medium}",
            expected=f"{' or '.join(MEDIA)}: an existing file with a suffix",
            remedy="open the dataset where its media are",
        )
    shutil.copyfile(medium, folder / f"{kind}{medium.suffix}")


def _write_recording(recording: Recording, parent: Path) -> None:
    recording_id, signal, units = recording.id, recording.signal, recording.units
    _check_representable(recording)
    folder = parent / _name(str(recording_id), recording.where)
    folder.mkdir()
    header: dict[str, _Value] = dict(vars(recording_id))
    if isinstance(signal, TimeSeries):
        header |= {"sampling_rate_hz": signal.sampling_rate_hz, "start_s": signal.start_s}
        values = signal.read(range(signal.values.shape[1]))
    else:
        header["lags_ms"] = signal.lags_ms
        values = signal.values
    about = {"physical_unit": signal.physical_unit, "coordinate_frame": units.coordinate_frame}
    header |= {key: value for key, value in about.items() if value}
    if not units.comparable:
        header["comparable_units"] = False
    _write_toml(folder / "recording.toml", header)
    np.save(folder / "neural.npy", values, allow_pickle=False)
    columns: dict[str, Sequence[object]] = {"unit": units.ids, "region": units.regions}
    if units.coordinates_mm is not None:
        axes = units.coordinates_mm.T.tolist()
        known = [["n/a" if math.isnan(mm) else mm for mm in axis] for axis in axes]
        columns |= dict(zip(COORDINATE_COLUMNS, known, strict=True))
    _write_tsv(folder / "units.tsv", columns, recording.where)


def _check_representable(recording: Recording) -> None:
    """Raise `InputError` for what this layout cannot store."""
    extra = {
        "its own word times": recording.word_onsets_s is not None,
        "spans marked as bad": bool(recording.bad_spans),
        "confounds": recording.confounds is not None,
    }
    if found := [what for what, there in extra.items() if there]:
        raise InputError(
            "a recording has more than a plain folder can hold",
            where=recording.where,
            got=", ".join(found),
            remedy="use the reader 'arrays', whose recordings.toml can name these",
        )


def _name(name: str, where: str) -> str:
    if not NAME_PATTERN.fullmatch(name):
        raise InputError(
            "a name cannot be the name of a folder",
            where=where,
            got=repr(name),
            expected="letters, digits, '.', '_' and '-'; at most 80",
            remedy="rename it in the source",
        )
    return name


_Value: TypeAlias = str | bool | float | tuple[float, ...]


def _write_toml(path: Path, values: Mapping[str, _Value]) -> None:
    # Values as in JSON; DEL is the one control character that JSON does not escape and TOML forbids.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False, default=float)}\n" for key, value in values.items()]
    path.write_text("".join(lines).replace("\x7f", "\\u007f"), encoding="utf-8", newline="\n")


def _write_tsv(path: Path, columns: Mapping[str, Sequence[object]], where: str) -> None:
    cells = [[_cell(value, name, where) for value in column] for name, column in columns.items()]
    lines = ["\t".join(columns), *("\t".join(row) for row in zip(*cells, strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _cell(value: object, column: str, where: str) -> str:
    if isinstance(value, str) and value and not any(c in value for c in "\t\n\r\0"):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    raise InputError(
        "a value cannot be written into a TSV cell",
        where=f"{where}, column '{column}'",
        got=repr(value),
        expected="a finite number, or a text that is not empty and has no tab, line break or NUL",
        remedy="correct the value, or leave the column out",
    )
