"""Arguments of `Responses` from the objects of other libraries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from lpact.errors import InputError, did_you_mean, require_known
from lpact.math.types import FloatArray, IntArray
from lpact.math.windows import mean_slices, nearest_sample, window_samples

STIMULUS = "stimulus_id"
"""Column of a words table with the stimulus of each word."""

POOLED = "pooled"
"""Subject of units that come from several subjects."""

EVENT = "event"
"""Selects the names of MNE's events as stimulus ids."""

_SHOWN = 5
_TR_EDGE_TOLERANCE = 1e-6
"""In TRs: far above rounding error, far below any word's timing error."""

Arguments = dict[str, Any]


def as_polars(frame: Any) -> pl.DataFrame:
    """A pandas or Polars table, or a mapping of columns, as a new Polars table; an index is left out."""
    if isinstance(frame, pl.DataFrame):
        return frame.clone()
    if hasattr(frame, "columns") and hasattr(frame, "dtypes"):
        return pl.DataFrame({str(name): _plain_column(frame[name]) for name in frame.columns})
    if isinstance(frame, Mapping):
        return pl.DataFrame(dict(frame))
    raise InputError(
        "this is not a table",
        got=type(frame).__name__,
        remedy="give a pandas or Polars data frame, or a mapping of columns",
    )


def _plain_column(series: Any) -> Any:
    """A pandas column as Polars reads it; missing values are null (NaN in columns of numbers)."""
    values = series.to_numpy()
    if values.dtype.kind in "biuf":
        return values
    return [None if missing else value for value, missing in zip(series, series.isna(), strict=True)]


def require(table: pl.DataFrame, columns: Sequence[str], where: str) -> None:
    """Raise `InputError` unless the table has these columns."""
    for column in columns:
        require_known(column, table.columns, "column", where=where)


def numbers(values: npt.ArrayLike, where: str, name: str) -> FloatArray:
    """A read-only array of floats, copied if it is writeable; raises `InputError` unless it has real numbers."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"'{name}' are not real numbers",
            where=where,
            got=f"dtype {array.dtype}",
            remedy="convert them to numbers; mark missing values with NaN",
        )
    if array.dtype != np.float64 or array.flags.writeable:
        array = array.astype(np.float64)
        array.setflags(write=False)
    return array


def texts(values: Sequence[Any] | npt.NDArray[Any] | pl.Series) -> tuple[str, ...]:
    """Names as a tuple of texts."""
    return tuple(str(value) for value in values)


def places(known: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Index of each wanted name among those that are known."""
    index = {name: i for i, name in enumerate(known)}
    return [index[name] for name in wanted]


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"'{name}'" for name in names[:_SHOWN]) + more


def stack_presentations(
    values: FloatArray, ids: Sequence[str], labels: Sequence[Any] | None = None, *, where: str
) -> tuple[FloatArray, list[int]]:
    """Stack presentations [n_presentations, n_units] of the same stimulus as its repetitions.

    ``ids`` and ``labels`` are the stimulus and the repetition of each presentation; without labels, repetitions are
    counted in order. Returns [n_stimuli, n_repetitions, n_units], stimuli in order of appearance, NaN for repetitions
    that a stimulus lacks; and the row of each stimulus' first presentation.
    """
    repetition = _repetitions(ids, labels)
    if labels is not None:
        _refuse_repeated(zip(ids, labels, strict=True), where)
    first = _first_rows(ids)
    stimuli = places(list(first), ids)
    stacked = np.full((len(first), repetition.max(initial=-1) + 1, values.shape[1]), np.nan)
    stacked[stimuli, repetition] = values
    return stacked, list(first.values())


def _repetitions(ids: Sequence[str], labels: Sequence[Any] | None) -> IntArray:
    """Number of each presentation among those of its stimulus, or the rank of its label."""
    if labels is not None:
        return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64)
    counted = pl.DataFrame({"id": ids}).select(pl.int_range(pl.len()).over("id"))
    return counted.to_series().to_numpy()


def _first_rows(ids: Sequence[str]) -> dict[str, int]:
    """Row in which each id first appears, in that order."""
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        first.setdefault(name, row)
    return first


def _refuse_repeated(cells: Any, where: str) -> None:
    cell, n = max(Counter(cells).items(), key=lambda item: item[1], default=((), 0))
    if n > 1:
        raise InputError(
            "two rows give the same value",
            where=where,
            got=f"{n} rows for {', '.join(repr(part) for part in cell)}",
            remedy="name the column of repetitions, repetition='…', or read several subjects with Responses.by_subject",
        )


# Tables


def from_table(
    table: pl.DataFrame,
    stimulus: str,
    unit: str | Sequence[str],
    value: str,
    named: Mapping[str, str],
    metadata: Sequence[str],
) -> dict[str, Arguments]:
    """Read a long (``unit`` is a column) or wide (``unit`` lists columns) table, by subject.

    ``named`` maps group, onset, region, subject, session and repetition to columns.
    """
    where = "Responses.from_pandas"
    if "region" in named and not isinstance(unit, str):
        raise InputError(
            "a wide table has no column with regions",
            where=where,
            got=f"region='{named['region']}' with one column per unit",
            remedy="give a list, regions=[…], instead of region='…'",
        )
    own = [unit, value] if isinstance(unit, str) else list(unit)
    require(table, [stimulus, *own, *named.values(), *metadata], where)
    ids = texts(table[stimulus])
    first = _first_rows(ids)
    if table[stimulus].dtype.is_numeric():
        first = dict(sorted(first.items(), key=lambda item: table[stimulus][item[1]]))
    rows = list(first.values())
    shared: Arguments = {"stimulus_ids": tuple(first)}
    if "group" in named:
        shared["groups"] = texts(_constant(table, ids, named["group"], rows, where))
    if "onset" in named:
        shared["onset_s"] = _floats(table, named["onset"], where)[rows]
    if metadata:
        columns = [_constant(table, ids, name, rows, where) for name in metadata]
        shared["metadata"] = pl.DataFrame(columns)
    if "subject" not in named:
        return {"": shared | _cells(table, stimulus, unit, value, named, list(first), where)}
    parts = table.partition_by(named["subject"], maintain_order=True)
    by_subject = {str(part[named["subject"]][0]): part for part in parts}
    return {
        name: {"subject": name} | shared | _cells(part, stimulus, unit, value, named, list(first), where)
        for name, part in by_subject.items()
    }


def _cells(
    table: pl.DataFrame,
    stimulus: str,
    unit: str | Sequence[str],
    value: str,
    named: Mapping[str, str],
    stimuli: Sequence[str],
    where: str,
) -> Arguments:
    """Values [n_stimuli, n_repetitions, n_units] and units of one subject's rows."""
    ids = texts(table[stimulus])
    labels = table[named["repetition"]].to_list() if "repetition" in named else None
    found: Arguments = {}
    if isinstance(unit, str):
        units = texts(table[unit])
        repetition = _repetitions(ids, labels or [0] * len(ids))
        _refuse_repeated(zip(ids, units, repetition.tolist(), strict=True), where)
        columns = _first_rows(units)
        cells: FloatArray = _floats(table, value, where)
        at: Any = places(list(columns), units)
        if "region" in named:
            regions = _constant(table, units, named["region"], list(columns.values()), where)
            found["regions"] = texts(regions)
    else:
        repetition = _repetitions(ids, labels)
        _refuse_repeated(zip(ids, repetition.tolist(), strict=True), where)
        columns = {name: i for i, name in enumerate(unit)}
        cells = np.column_stack([_floats(table, name, where) for name in unit])
        at = slice(None)
    values = np.full((len(stimuli), repetition.max(initial=-1) + 1, len(columns)), np.nan)
    values[places(stimuli, ids), repetition, at] = cells
    if "session" in named:
        found["session"] = _only(texts(table[named["session"]]), named["session"], where)
    return found | {"values": values, "unit_ids": tuple(columns)}


def _floats(table: pl.DataFrame, column: str, where: str) -> FloatArray:
    """A column of numbers, NaN where there is none."""
    if not (table[column].dtype.is_numeric() or table[column].dtype in (pl.Boolean, pl.Null)):
        raise InputError(
            f"the column '{column}' does not contain numbers",
            where=where,
            got=str(table[column].dtype),
            remedy="convert the column, or name another one",
        )
    return table[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _constant(table: pl.DataFrame, keys: Sequence[str], column: str, rows: list[int], where: str) -> pl.Series:
    """A column's value for each key, which must be the same in all rows of the key."""
    varying = _varying(table[column], keys)
    if varying is not None:
        raise InputError(
            f"the column '{column}' is not the same in all rows of '{varying}'",
            where=where,
            remedy="correct the column, or leave it out",
        )
    return table[column].gather(rows)


def _varying(column: pl.Series, keys: Sequence[str]) -> str | None:
    """A key with several values in a column, if there is one."""
    pairs = pl.DataFrame({"key": list(keys), "value": column}).unique(maintain_order=True)
    repeated = pairs.filter(pl.col("key").is_duplicated())
    return None if repeated.is_empty() else str(repeated["key"][0])


def _only(values: Sequence[str], column: str, where: str) -> str:
    names = list(dict.fromkeys(values))
    if len(names) != 1:
        raise InputError(
            f"'{column}' has several values",
            where=where,
            got=some(names) if names else "no rows",
            remedy="use Responses.by_subject for a table, or select one subject first",
        )
    return names[0]


# xarray


def from_assembly(assembly: Any, stimulus: str, names: Mapping[str, str | None], time_bin: int | None) -> Arguments:
    """Read a `DataArray` presentation × neuroid (× time_bin); see `Responses.from_xarray`."""
    where = "Responses.from_xarray"
    coordinates = {str(name): assembly[name] for name in assembly.coords}
    if stimulus not in coordinates or coordinates[stimulus].ndim != 1:
        raise InputError(
            f"the assembly has no coordinate '{stimulus}' along its presentations",
            where=where,
            got="coordinates " + ", ".join(coordinates),
            remedy=f"name it with stimulus='…'; {did_you_mean(stimulus, coordinates)}",
        )
    (rows,) = coordinates[stimulus].dims
    others = [dim for dim in assembly.dims if dim != rows]
    columns = next(
        (dim for dim in others if dim == "neuroid" or _along(coordinates, names["unit"], dim)),
        others[0] if len(others) == 1 else None,
    )
    if columns is None or len(others) > 2:
        raise InputError(
            "the dimension of the units is not clear",
            where=where,
            got=f"dimensions {', '.join(map(str, assembly.dims))}",
            expected="presentation × neuroid, or presentation × neuroid × time_bin",
            remedy="name a coordinate of the units: unit='…'",
        )
    for dim in others:
        if dim != columns:
            assembly = assembly.isel({dim: _time_bin(assembly.sizes[dim], dim, time_bin, where)})
    matrix = numbers(assembly.transpose(rows, columns).values, where, "values")
    known = {
        role: _values(coordinates[name])
        for role, name in names.items()
        if name in coordinates and (coordinates[name].ndim or role == "subject")
    }
    ids = texts(_values(coordinates[stimulus]))
    values, first = stack_presentations(matrix, ids, known.get("repetition"), where=where)
    units = known.get("unit", [f"u{i}" for i in range(matrix.shape[1])])
    found: Arguments = {"values": values, "unit_ids": texts(units)}
    found["stimulus_ids"] = tuple(ids[row] for row in first)
    if "region" in known:
        found["regions"] = texts(known["region"])
    if names["subject"] is None:
        found |= {"subject": POOLED, "comparable_units": False}
    elif "subject" in known:
        found["subject"] = _only(texts(known["subject"]), str(names["subject"]), where)
    if "group" in known:
        found["groups"] = tuple(str(known["group"][row]) for row in first)
    metadata = _metadata(coordinates, rows, ids, first, {stimulus, *names.values()})
    return found | ({"metadata": metadata} if metadata.width else {})


def _along(coordinates: Mapping[str, Any], name: str | None, dim: Any) -> bool:
    return name is not None and name in coordinates and coordinates[name].dims == (dim,)


def _values(coordinate: Any) -> list[Any]:
    return list(np.atleast_1d(coordinate.values).tolist())


def _time_bin(n: int, dim: Any, chosen: int | None, where: str) -> int:
    if not (n == 1 if chosen is None else -n <= chosen < n):
        raise InputError(
            f"one of the bins of '{dim}' must be chosen",
            where=where,
            got=f"{n} bins, time_bin={chosen}",
            remedy=f"give time_bin from 0 to {n - 1}, or average first: assembly.mean('{dim}')",
        )
    return chosen or 0


def _metadata(
    coordinates: Mapping[str, Any],
    rows: Any,
    ids: Sequence[str],
    first: list[int],
    used: set[str | None],
) -> pl.DataFrame:
    """Other plain coordinates of the presentations that do not vary within a stimulus."""
    columns = []
    for name, coordinate in coordinates.items():
        if name in used or coordinate.dims != (rows,) or coordinate.dtype.kind not in "biufUO":
            continue
        column = pl.Series(name, _values(coordinate), strict=False)
        if column.dtype != pl.Object and _varying(column, ids) is None:
            columns.append(column.gather(first))
    return pl.DataFrame(columns)


# MNE


def _channels(picked: Any) -> Arguments:
    """Channels of a `Raw` or `Epochs` as units, with their positions if known."""
    metres = np.array([channel["loc"][:3] for channel in picked.info["chs"]], dtype=np.float64)
    metres[~metres.any(axis=1)] = np.nan
    found: Arguments = {"unit_ids": tuple(picked.ch_names)}
    if np.isfinite(metres).any():
        found |= {"coordinates_mm": metres * 1000.0, "coordinate_frame": "head"}
    return found


def from_epochs(epochs: Any, stimulus: str | None, window_s: tuple[float, float] | None, picks: Any) -> Arguments:
    """Average epochs over a window; see `Responses.from_mne_epochs`."""
    where = "Responses.from_mne_epochs"
    picked = epochs.copy().pick(picks)
    found = _channels(picked)
    if window_s is not None:
        picked = picked.load_data().crop(*window_s)
    values = picked.get_data(copy=False).mean(axis=2)
    table = None if epochs.metadata is None else as_polars(epochs.metadata)
    if stimulus == EVENT:
        of_code = {code: name for name, code in epochs.event_id.items()}
        ids = tuple(of_code[code] for code in epochs.events[:, 2].tolist())
    elif stimulus is not None:
        require(pl.DataFrame() if table is None else table, [stimulus], f"{where}, metadata")
        ids = texts(table[stimulus]) if table is not None else ()
    else:
        ids = tuple(f"e{number}" for number in epochs.selection.tolist())
    found["values"], first = stack_presentations(values, ids, where=where)
    found["stimulus_ids"] = tuple(ids[row] for row in first)
    found["onset_s"] = epochs.events[first, 0] / float(epochs.info["sfreq"])
    if table is None:
        return found
    kept = [name for name in table.columns if _varying(table[name], ids) is None]
    if kept:
        found["metadata"] = table.select(kept)[first]
    if "word" in kept:
        found["words"] = found["metadata"].with_columns(pl.col("word").cast(pl.String))
    return found


def from_raw(raw: Any, words: pl.DataFrame, lag_s: float, window_s: float, picks: Any) -> Arguments:
    """Average a continuous recording after each word; see `Responses.from_mne_raw`."""
    where = "Responses.from_mne_raw"
    require(words, ["word", "onset_s"], where)
    picked = raw.copy().pick(picks)
    found = _channels(picked)
    series = picked.get_data().T
    rate_hz = float(raw.info["sfreq"])
    onset_s = _floats(words, "onset_s", where)
    known = np.where(np.isfinite(onset_s), onset_s, -np.inf).clip(min=-1e9)
    starts = nearest_sample(known + lag_s, start_s=0.0, sampling_rate_hz=rate_hz)
    lengths = window_samples(np.full(onset_s.shape, window_s), sampling_rate_hz=rate_hz)
    inside = (starts >= 0) & (starts + lengths <= len(series))
    values = np.full((words.height, 1, series.shape[1]), np.nan)
    values[inside, 0] = mean_slices(series, starts[inside], lengths[inside])
    ids = tuple(f"w{row}" for row in range(words.height))
    found |= {"values": values, "stimulus_ids": ids, "onset_s": onset_s, "words": words}
    return found


# nilearn


def from_scans(
    runs: npt.ArrayLike | Sequence[npt.ArrayLike],
    tr_s: float,
    start_s: float,
    words: pl.DataFrame | None,
) -> Arguments:
    """Stack runs [n_scans, n_units] as repetitions of their scans; see `Responses.from_nilearn`."""
    where = "Responses.from_nilearn"
    each = list(runs) if isinstance(runs, list | tuple) and np.ndim(runs[0]) == 2 else [runs]
    arrays = [numbers(run, where, "runs") for run in each]  # type: ignore[arg-type]
    if any(array.ndim != 2 or array.shape != arrays[0].shape for array in arrays):
        raise InputError(
            "runs are not matrices of one shape",
            where=where,
            got=", ".join(str(array.shape) for array in arrays),
            remedy="give [n_scans, n_units] for every run, cut to the scans that they share",
        )
    if not (np.isfinite(tr_s) and tr_s > 0):
        what = "the repetition time is not positive"
        raise InputError(what, where=where, got=f"tr_s={tr_s}", remedy="give the TR in seconds")
    values = np.stack(arrays, axis=1)
    ids = [f"scan{i}" for i in range(values.shape[0])]
    found: Arguments = {
        "values": values,
        "stimulus_ids": ids,
        "onset_s": start_s + tr_s * np.arange(len(ids)),
        "sampling_rate_hz": 1.0 / tr_s,
    }
    if words is not None:
        require(words, ["word", "onset_s"], where)
        scan = np.floor((_floats(words, "onset_s", where) - start_s) / tr_s + _TR_EDGE_TOLERANCE)
        of_scan = [ids[int(i)] if 0 <= i < len(ids) else None for i in scan]
        found["words"] = words.insert_column(0, pl.Series(STIMULUS, of_scan, dtype=pl.String))
    return found
