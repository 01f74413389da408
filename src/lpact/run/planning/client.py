"""What is left to one process when all tasks are done: ceilings put to use, the decision, and the tables on disk.

Tables of stand-ins under the names of the study's first contexts are decided and written to a scratch folder; the rest
is in proportion to the rows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median

import polars as pl

from lpact.analyses.lpact.gates import NEEDED, decide
from lpact.analyses.lpact.levels import ceiling, predictive
from lpact.analyses.lpact.levels.audit_record import ContextOffer, DatasetAudit, RecordingSummary
from lpact.analyses.lpact.tables.ceilings import (
    BRAIN_CEILING,
    NORMALIZED_PREDICTIVE,
    NORMALIZED_SCORES,
)
from lpact.analyses.lpact.tables.predictive import CONTROL_DELTAS, CONTROL_NULLS
from lpact.analyses.lpact.tables.relational import PROFILE_DELTAS
from lpact.config import StudyConfig
from lpact.datasets.base import RecordingId
from lpact.run.audit import StudyAudit
from lpact.run.planning.calibrate import Calibrated
from lpact.run.planning.probes import Frames, clocked, noise_patterns
from lpact.run.planning.shapes import FEWEST_EVENTS, Shape, context_shape, recording_shape
from lpact.run.planning.stand_in import make_stand_in
from lpact.store import TaskStore, concat, write_table
from lpact.store.bundle import pack
from lpact.tables import RUN_TABLES, find_table

MOST_CONTEXTS = 24
MOST_RECORDINGS = 8
MOST_NUMBERS = 4_000_000
"""Responses of the recordings that ceilings are timed on; longer ones are taken in proportion."""

MOST_AUDIT_ROWS = 2000
FILE_BYTES = 3000
"""Of a table's two files, whatever is in them."""

LEAST_SECONDS = 0.002


@dataclass(frozen=True)
class ClientCosts:
    """What the process that was started does by itself, and what tasks leave on disk."""

    ceiling_seconds: tuple[float, ...]
    decision_seconds: float
    tables_seconds: float
    save_seconds: float
    context_bytes: int
    brain_bytes: int
    ceiling_bytes: int
    table_bytes: Mapping[str, int]
    frame_bytes: Mapping[str, int]


def client_costs(
    config: StudyConfig,
    audit: StudyAudit,
    calibrated: Calibrated,
    rows: Mapping[str, int],
    n_contexts: int,
) -> ClientCosts:
    """Time the parts on stand-ins, and take the whole in proportion."""
    sample = _sample(audit)
    ceilings = [_ceilings(config, audit, name) for name in audit.datasets]
    frames: dict[str, list[pl.DataFrame]] = {BRAIN_CEILING.name: [c.table for c in ceilings]}
    context_kept = brain_kept = _Kept()
    brained: set[tuple[str, RecordingId]] = set()
    for dataset, recording, offer in sample:
        shape = context_shape(config, dataset, recording, offer)
        probe = calibrated.probes[calibrated.stands_for[shape]]
        own = _relabelled(probe.context, dataset.config.name, recording.id, offer)
        brain = _relabelled(probe.brain, dataset.config.name, recording.id, offer)
        if not context_kept.n_bytes:
            context_kept, brain_kept = _kept(own), _kept(brain)
        if (dataset.config.name, recording.id) not in brained:
            brained.add((dataset.config.name, recording.id))
            own |= brain
        for name, frame in own.items():
            frames.setdefault(name, []).append(frame)
    measured, joining = clocked(lambda: _measured(audit, frames), cpu=True)
    decided, decision = clocked(
        lambda: decide(measured, gates=config.gates, primary_metric=config.readout.primary_metric),
        cpu=True,
    )
    written = _write(measured | decided)
    needed = {table.name for table in NEEDED}
    reading = n_contexts * context_kept.load
    to_decide = len(needed & context_kept.tables)
    return ClientCosts(
        tuple(c.seconds for c in ceilings),
        (decision + joining) * max(1.0, n_contexts / max(1, len(sample))) + reading * to_decide,
        _in_all(written, rows) + reading * (len(context_kept.tables) - to_decide),
        context_kept.save,
        context_kept.n_bytes,
        brain_kept.n_bytes,
        sum(c.n_bytes for c in ceilings),
        {
            name: _grown(w.n_bytes, w.n_rows, rows.get(name, 0), FILE_BYTES)
            for name, w in written.items()
        },
        {name: _grown(w.held, w.n_rows, rows.get(name, 0), 0) for name, w in written.items()},
    )


def _sample(audit: StudyAudit) -> list[tuple[DatasetAudit, RecordingSummary, ContextOffer]]:
    """Contexts of the study's first claims, with several recordings each."""
    found: list[tuple[DatasetAudit, RecordingSummary, ContextOffer]] = []
    share = max(1, MOST_CONTEXTS // max(1, len(audit.datasets)))
    for dataset in audit.datasets.values():
        by_id = {r.id: r for r in islice(dataset.recordings, MOST_RECORDINGS)}
        claims: dict[tuple[str, int], list[ContextOffer]] = {}
        for offer in dataset.contexts:
            if offer.recording in by_id:
                claims.setdefault((offer.model, offer.layer), []).append(offer)
        offers = [offer for of_claim in claims.values() for offer in of_claim][:share]
        found += [(dataset, by_id[offer.recording], offer) for offer in offers]
    return found


def _relabelled(
    frames: Frames, dataset: str, recording: RecordingId, offer: ContextOffer
) -> Frames:
    """Tables of a stand-in under a context's name."""
    names = {
        "dataset": dataset,
        "subject": recording.subject,
        "session": recording.session,
        "run": recording.run,
        "stimulus": recording.stimulus,
        "model": offer.model,
        "layer": offer.layer,
    }
    return {
        name: frame.with_columns(
            pl.lit(value, dtype=frame.schema[column]).alias(column)
            for column, value in names.items()
            if column in frame.columns
        )
        for name, frame in frames.items()
    }


@dataclass(frozen=True)
class _Kept:
    """A finished task: bytes on disk, seconds to keep it, seconds to read one of its tables again, and their names."""

    n_bytes: int = 0
    save: float = 0.0
    load: float = 0.0
    tables: frozenset[str] = frozenset()


def _kept(frames: Frames) -> _Kept:
    with tempfile.TemporaryDirectory(prefix="lpact-plan-") as folder:
        store, key = TaskStore.at(Path(folder)), "stand-in"
        start = time.perf_counter()
        n_bytes = store.save(key, frames)
        saved = time.perf_counter() - start
        _, load = clocked(lambda: [store.load(key, [name]) for name in frames], cpu=True)
        return _Kept(n_bytes, saved, load / len(frames), frozenset(frames))


@dataclass(frozen=True)
class _Ceilings:
    table: pl.DataFrame
    seconds: float
    n_bytes: int


def _ceilings(config: StudyConfig, audit: StudyAudit, name: str) -> _Ceilings:
    """Reliability of a few recordings of noise; more are taken in proportion to their pairs."""
    dataset = audit.datasets[name]
    some = dataset.recordings[:MOST_RECORDINGS]
    most = max((r.n_events for r in some), default=1)
    part = min(1.0, MOST_NUMBERS / max(1, sum(r.n_events * len(r.unit_ids) for r in some)))
    brains = [
        _brain(config, recording_shape(config, dataset, r), r, int(part * most)) for r in some
    ]
    table, seconds = clocked(
        lambda: ceiling.run(config=config, dataset=name, brains=brains), cpu=True
    )
    n, own = len(dataset.recordings), max(1, len(some))
    n_bytes = len(pack("stand-in", {BRAIN_CEILING.name: table})) * max(1, n) // own
    return _Ceilings(table, seconds / part * (n * (n + 1)) / (own * (own + 1)), n_bytes)


def _brain(
    config: StudyConfig, shape: Shape, recording: RecordingSummary, most_events: int
) -> ceiling.BrainOnGrid:
    few = max(FEWEST_EVENTS * shape.n_folds, most_events)
    small = replace(shape, n_lags=1, n_events=min(shape.n_events, few))
    own = make_stand_in(config, small, recording.id)
    patterns = noise_patterns(config, own).matrices
    grid = own.prepared.grid
    return ceiling.BrainOnGrid(
        id=recording.id,
        unit_ids=recording.unit_ids,
        onset_s=grid.onset_s,
        first_word=grid.first_word,
        comparable=recording.comparable,
        responses=own.prepared.reference,
        patterns=patterns,
        halves=(patterns, patterns),
    )


def _measured(audit: StudyAudit, frames: Mapping[str, Sequence[pl.DataFrame]]) -> Frames:
    """All tables that tasks and the audit give, as they are before the decision."""
    measured: Frames = dict(audit.tables)
    for name, table in RUN_TABLES.items():
        if name.split("/")[0] in MEASURED_FOLDERS and name not in LATER:
            measured[name] = concat(table.measured(), frames.get(name, []))
    measured[CONTROL_NULLS.name] = predictive.correct(measured[CONTROL_NULLS.name])
    reliability = measured[BRAIN_CEILING.name]
    measured[NORMALIZED_SCORES.name] = ceiling.normalize_relational(
        reliability, measured[PROFILE_DELTAS.name]
    )
    measured[NORMALIZED_PREDICTIVE.name] = ceiling.normalize_predictive(
        reliability, measured[CONTROL_DELTAS.name]
    )
    return measured


MEASURED_FOLDERS = {"predictive", "relational", "causal", "ceilings"}
LATER = {
    "predictive/predictive_failure_modes",
    NORMALIZED_SCORES.name,
    NORMALIZED_PREDICTIVE.name,
}
"""Tables that are made of others."""


@dataclass(frozen=True)
class _Written:
    n_rows: int
    seconds: float
    n_bytes: int
    held: int


def _write(frames: Frames) -> dict[str, _Written]:
    """Every table in a scratch folder: seconds, bytes of both files, and bytes in memory."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="lpact-plan-") as folder:
        for name, frame in frames.items():
            some = frame.head(MOST_AUDIT_ROWS) if name.startswith("audits/") else frame
            start = time.perf_counter()
            files = write_table(some, find_table(name), Path(folder))
            seconds = time.perf_counter() - start
            n_bytes = sum(file.stat().st_size for file in files)
            found[name] = _Written(some.height, seconds, n_bytes, int(some.estimated_size()))
    return found


def _grown(size: int, n_rows: int, planned: int, fixed: int) -> int:
    """Size of a table with as many rows as planned; ``fixed`` is there whatever the rows."""
    if not n_rows:
        return min(size, fixed)
    return int(min(size, fixed) + max(0, size - fixed) * planned / n_rows)


def _in_all(written: Mapping[str, _Written], rows: Mapping[str, int]) -> float:
    """Seconds to write all tables: some for every file, the rest in proportion to rows."""
    small = [w.seconds for w in written.values() if w.n_rows < SMALL_TABLE]
    fixed = median(small) if small else LEAST_SECONDS
    total = 0.0
    for name, table in written.items():
        more = max(0.0, table.seconds - fixed) * rows.get(name, 0) / max(1, table.n_rows)
        total += fixed + more
    return total


SMALL_TABLE = 50
"""Rows of a table whose writing takes the time of opening and closing its files."""
