"""Writes any dataset into the layout that the ``folder`` reader reads."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from lpact.datasets._files.strict import NAME_PATTERN, typed_column
from lpact.datasets.base import ITEM, WORD_COLUMNS, Dataset, Recording, Stimulus, TimeSeries
from lpact.datasets.folder import COORDINATE_COLUMNS, MEDIA
from lpact.errors import InputError


def write_folder(dataset: Dataset, path: str | Path) -> None:
    """Write ``dataset`` into the new or empty folder ``path``, completely or not at all.

    Reading it back with the ``folder`` reader gives identical words, arrays and ids.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(
            "the target of a dataset is taken",
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
    lines = [f"{key} = {_toml_value(value)}\n" for key, value in values.items()]
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def _toml_value(value: _Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # DEL is the one control character that JSON does not escape and TOML forbids.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return "[" + ", ".join(repr(float(item)) for item in value) + "]"
    return repr(float(value))


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
