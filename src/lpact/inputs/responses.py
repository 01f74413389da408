"""Responses of a subject, read from any dataset on its event grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from lpact.config import DatasetConfig, GridConfig
from lpact.datasets.base import ITEM, Dataset, RecordingId, Stimulus, Units
from lpact.errors import InputError, did_you_mean
from lpact.grid import EventGrid
from lpact.grid.words import times_s
from lpact.inputs.grid_cache import OnGrid, put_on_grid
from lpact.math.types import FloatArray, IntArray
from lpact.responses import Responses
from lpact.responses.read import STIMULUS, stack_presentations

ALL_SESSIONS = "all"
"""Session of responses that were read from several."""


def read_responses(
    dataset: Dataset,
    config: DatasetConfig | None = None,
    *,
    subject: str,
    session: str | None = None,
    lag_ms: float | None = None,
) -> Responses:
    """Read a subject's responses to every event of the grid; events are the stimuli.

    Parameters
    ----------
    dataset
        An opened dataset.
    config
        Its table of the study file: preprocessing and event grid. By default, words at the default lags.
    subject, session
        Whose recordings; without a session, those of all sessions.
    lag_ms
        Lag of the response, one of the grid's; None: the grid's reference lag.

    Returns
    -------
    Responses
        Events of the same stimulus in several runs or sessions are repetitions. An event that a run does not hold,
        and a unit that is unusable in a run, are NaN there. Regions, coordinates, words and stories are kept.
    """
    entry = config or DatasetConfig(name="data", reader="memory")
    ids = _recordings(dataset, subject, session)
    read = [_read(dataset, recording_id, entry, lag_ms) for recording_id in ids]
    found = [part for part in read if part is not None]
    if not found:
        raise InputError(
            "no recording has samples, units and words",
            where=f"subject '{subject}'",
            got=", ".join(map(str, ids)),
            expected="at least one of each",
            remedy="check the recordings with `lpact datasets check`",
        )
    units = _all_units([grid.units for _, grid, _ in found])
    runs = [pl.DataFrame(values, schema=list(grid.units.ids)) for _, grid, values in found]
    rows = pl.concat(runs, how="diagonal").to_numpy()
    events = pl.concat(
        pl.DataFrame(
            {
                STIMULUS: _event_ids(stimulus, grid, entry.grid),
                "onset_s": grid.onset_s,
                "group": stimulus.words["story_id"].gather(grid.first_word),
            }
        )
        for stimulus, grid, _ in found
    )
    values, first = stack_presentations(rows, list(events[STIMULUS]), where=f"subject '{subject}'")
    kept = events[first]
    sessions = sorted({recording_id.session for recording_id in ids})
    return Responses(
        values,
        tuple(kept[STIMULUS]),
        units.ids,
        subject=subject,
        session=sessions[0] if len(sessions) == 1 else ALL_SESSIONS,
        regions=units.regions,
        coordinates_mm=units.coordinates_mm,
        coordinate_frame=units.coordinate_frame,
        comparable_units=units.comparable,
        onset_s=None if any(s.lacks("onset_s") for s, *_ in found) else kept["onset_s"].to_numpy(),
        groups=tuple(kept["group"]),
        words=_words(found, entry.grid),
    )


_Part = tuple[Stimulus, EventGrid, FloatArray]


def _recordings(dataset: Dataset, subject: str, session: str | None) -> list[RecordingId]:
    known = dataset.recording_ids()
    ids = [r for r in known if r.subject == subject and session in (None, r.session)]
    if not ids:
        raise InputError(
            "the dataset has no such recordings",
            where=dataset.info.source,
            got=f"subject '{subject}'" + (f", session '{session}'" if session else ""),
            expected=f"a subject and session among {len(known)} recordings",
            remedy=did_you_mean(subject, {r.subject for r in known}),
        )
    return ids


def _read(
    dataset: Dataset, recording_id: RecordingId, entry: DatasetConfig, lag_ms: float | None
) -> _Part | None:
    """A recording's grid and its responses [n_events, n_units] at a lag; None for an empty recording."""
    stimulus = dataset.stimulus(recording_id.stimulus)
    placed: OnGrid = put_on_grid(dataset, recording_id, stimulus, entry)
    grid = placed.grid
    if grid is None:
        return None
    lag = grid.reference_lag
    if lag_ms is not None:
        if lag_ms not in grid.lags_ms:
            raise InputError(
                f"there is no response at a lag of {lag_ms:g} ms",
                where=placed.where,
                got=f"lag_ms={lag_ms:g}",
                expected=f"one of {', '.join(f'{known:g}' for known in grid.lags_ms)}",
                remedy="choose one of these, or add it to the grid's lags_ms",
            )
        lag = grid.lags_ms.index(lag_ms)
    values = grid.responses[lag].copy()
    values[:, np.setdiff1d(np.arange(values.shape[1]), placed.usable)] = np.nan
    return stimulus, grid, values


def _all_units(each: Sequence[Units]) -> Units:
    """Units of all runs; a unit of several runs is described by the first."""
    first: dict[str, tuple[Units, int]] = {}
    for units in each:
        for i, unit in enumerate(units.ids):
            first.setdefault(unit, (units, i))
    unknown = np.full(3, np.nan)
    places = [
        unknown if units.coordinates_mm is None else units.coordinates_mm[i]
        for units, i in first.values()
    ]
    located = any(units.coordinates_mm is not None for units in each)
    return Units(
        tuple(first),
        tuple(units.regions[i] for units, i in first.values()),
        np.array(places) if located else None,
        each[0].coordinate_frame,
        all(units.comparable for units in each),
    )


def _event_ids(stimulus: Stimulus, grid: EventGrid, config: GridConfig) -> list[str]:
    """Names that the same event has in every run: item ids if there are, else positions in the stimulus."""
    if config.events == "trs":
        return [f"{stimulus.id}/{onset_s:.3f}s" for onset_s in grid.onset_s]
    if config.events == "sentences":
        return [f"{stimulus.id}/sentence{sentence}" for sentence in grid.sentence]
    if ITEM in stimulus.words.columns:
        return stimulus.words[ITEM].gather(grid.first_word).to_list()
    return [f"{stimulus.id}/word{word}" for word in grid.first_word]


def _rows(stimulus: Stimulus, grid: EventGrid, event: int) -> IntArray:
    """Words of an event; for filtered TRs, the words that begin in them."""
    if grid.weights is None:
        return np.arange(grid.first_word[event], grid.stop_word[event])
    onset_s, _ = times_s(stimulus.words)
    edges = grid.onset_s[event], grid.offset_s[event]
    return np.arange(*np.searchsorted(onset_s, edges, side="left"))


def _words(found: Sequence[_Part], config: GridConfig) -> pl.DataFrame | None:
    """Words of all events, each event's from the first run that has it; None for items that are not words."""
    if any(stimulus.lacks("word") for stimulus, *_ in found):
        return None
    tables, seen = [], set[str]()
    for stimulus, grid, _ in found:
        ids = _event_ids(stimulus, grid, config)
        new = [i for i, name in enumerate(ids) if name not in seen]
        seen.update(ids)
        slices = [_rows(stimulus, grid, i) for i in new]
        owners = [ids[i] for i, words in zip(new, slices, strict=True) for _ in words]
        rows = np.concatenate([np.empty(0, dtype=np.int64), *slices])
        words = stimulus.words.drop(stimulus.unknown)[rows]
        tables.append(words.insert_column(0, pl.Series(STIMULUS, owners, dtype=pl.String)))
    return pl.concat(tables, how="diagonal")
