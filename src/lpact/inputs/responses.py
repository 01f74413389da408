"""Responses of a subject, read from any dataset on its event grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from lpact.config import DatasetConfig, GridConfig
from lpact.datasets.base import ITEM, Dataset, RecordingId, Stimulus, Units
from lpact.errors import InputError, did_you_mean, require_known
from lpact.grid import EventGrid
from lpact.grid.words import times_s
from lpact.inputs.grid_cache import Place, put_on_grid
from lpact.inputs.prepare import Placed, average_regions
from lpact.math.types import IntArray
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
        Events of the same stimulus in several runs or sessions are repetitions. An event that a run lacks,
        and a unit that is unusable in a run, are NaN there. Regions, coordinates, words and stories are kept.
    """
    entry = config or DatasetConfig(name="data", reader="memory")
    recordings = place_recordings(dataset, entry, subject=subject, session=session)
    return stack_recordings(recordings, entry, lag_ms)


def place_recordings(
    dataset: Dataset,
    entry: DatasetConfig,
    *,
    subject: str,
    session: str | None = None,
    place: Place = put_on_grid,
    keep_constant: bool = False,
) -> list[Placed]:
    """Read a subject's recordings on their event grids, with NaN for units that are unusable; empty ones are left out.

    ``place`` puts a recording on its grid, or reads a cached one. With ``keep_constant`` units that do not vary keep
    their values, as answers do: an alternative that is never chosen is one.
    """
    ids = _recordings(dataset, subject, session)
    found = []
    for recording_id in ids:
        stimulus = dataset.stimulus(recording_id.stimulus)
        placed = place(dataset, recording_id, stimulus, entry)
        if placed.grid is None:
            continue
        grid, usable = placed.grid, list(placed.usable)
        if entry.grid.units == "regions":
            own = np.ascontiguousarray(grid.responses[..., usable])
            grid = average_regions(replace(grid, responses=own, units=grid.units.take(usable)))
        elif len(usable) < len(grid.units.ids) and not keep_constant:
            responses = np.full_like(grid.responses, np.nan)
            responses[..., usable] = grid.responses[..., usable]
            grid = replace(grid, responses=responses)
        found.append(Placed(entry.name, recording_id, grid, stimulus))
    if not found:
        raise InputError(
            "no recording has samples, units and words",
            where=f"subject '{subject}'",
            got=", ".join(map(str, ids)),
            expected="at least one of each",
            remedy="check the recordings with `lpact datasets check`",
        )
    return found


def stack_recordings(recordings: Sequence[Placed], entry: DatasetConfig, lag_ms: float | None = None) -> Responses:
    """Responses of one subject at a lag: events of the same stimulus in several recordings are repetitions."""
    subject = recordings[0].id.subject
    units = _all_units([own.grid.units for own in recordings])
    runs = [pl.DataFrame(own.grid.responses[_lag(own, lag_ms)], schema=list(own.grid.units.ids)) for own in recordings]
    rows = pl.concat(runs, how="diagonal").to_numpy()
    events = pl.concat(
        pl.DataFrame(
            {
                STIMULUS: event_ids(own, entry.grid),
                "onset_s": own.grid.onset_s,
                "group": own.stimulus.words["story_id"].gather(own.grid.first_word),
            }
        )
        for own in recordings
    )
    values, first = stack_presentations(rows, list(events[STIMULUS]), where=f"subject '{subject}'")
    kept = events[first]
    sessions = sorted({own.id.session for own in recordings})
    timed = not any(own.stimulus.lacks("onset_s") for own in recordings)
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
        onset_s=kept["onset_s"].to_numpy() if timed else None,
        groups=tuple(kept["group"]),
        words=_words(recordings, entry.grid),
    )


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


def _lag(own: Placed, lag_ms: float | None) -> int:
    """Index of a lag of the grid; without one, of its reference lag."""
    grid = own.grid
    if lag_ms is None:
        return grid.reference_lag
    known, where = [f"{known:g}" for known in grid.lags_ms], f"recording {own.id}, argument lag_ms"
    require_known(f"{lag_ms:g}", known, "lag in ms", where=where)
    return grid.lags_ms.index(lag_ms)


def _all_units(each: Sequence[Units]) -> Units:
    """Units of all runs; a unit of several runs is described by the first."""
    first: dict[str, tuple[Units, int]] = {}
    for units in each:
        for i, unit in enumerate(units.ids):
            first.setdefault(unit, (units, i))
    unknown = np.full(3, np.nan)
    places = [unknown if units.coordinates_mm is None else units.coordinates_mm[i] for units, i in first.values()]
    located = any(units.coordinates_mm is not None for units in each)
    return Units(
        tuple(first),
        tuple(units.regions[i] for units, i in first.values()),
        np.array(places) if located else None,
        each[0].coordinate_frame,
        all(units.comparable for units in each),
    )


def event_ids(own: Placed, config: GridConfig) -> list[str]:
    """Names that the same event has in every run: item ids if there are, else positions in the stimulus."""
    stimulus, grid = own.stimulus, own.grid
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


def _words(found: Sequence[Placed], config: GridConfig) -> pl.DataFrame | None:
    """Words of all events, each event's from the first run that has it; None for items that are not words."""
    if any(own.stimulus.lacks("word") for own in found):
        return None
    tables, seen = [], set[str]()
    for own in found:
        stimulus, grid = own.stimulus, own.grid
        ids = event_ids(own, config)
        new = [i for i, name in enumerate(ids) if name not in seen]
        seen.update(ids)
        slices = [_rows(stimulus, grid, i) for i in new]
        owners = [ids[i] for i, words in zip(new, slices, strict=True) for _ in words]
        rows = np.concatenate([np.empty(0, dtype=np.int64), *slices])
        words = stimulus.words.drop(stimulus.unknown)[rows]
        tables.append(words.insert_column(0, pl.Series(STIMULUS, owners, dtype=pl.String)))
    return pl.concat(tables, how="diagonal")
