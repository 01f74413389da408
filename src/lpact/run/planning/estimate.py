"""Time, memory and disk of every stage, from a short calibration on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lpact.analyses.lpact.gates import NEEDED
from lpact.config import StudyConfig
from lpact.features.models import ExtractionCost
from lpact.run.audit import StudyAudit
from lpact.run.memory import held_bytes
from lpact.run.planning.brains import recording_shapes, time_brains
from lpact.run.planning.calibrate import Calibrated, calibrate
from lpact.run.planning.client import ClientCosts, client_costs
from lpact.run.planning.controls import ControlTimes, control_times, largest_signal_bytes
from lpact.run.planning.costs import StageCost
from lpact.run.planning.memory import context_bytes, input_bytes, recording_bytes
from lpact.run.planning.report import report_cost
from lpact.run.planning.shapes import Shape, context_shapes
from lpact.run.stages import (
    AUDIT,
    BRAINS,
    CEILINGS,
    CONTROLS,
    DECISION,
    FEATURES,
    LEVELS,
    REPORT,
    TABLES,
)

BRAIN_COPIES = 2
"""Of a recording's responses and patterns, while its patterns are computed."""

DECIDING_COPIES = 7
"""Copies of the measured tables in memory while they are joined, sorted, checked and decided."""

WRITING_COPIES = 3
"""Copies of the table that is being written."""

GRID_AGAIN_S = 1.0
"""A recording that takes longer to prepare is kept on its grid, and is not prepared again."""

CONTROL_BYTES = 20_000
"""What a positive control leaves on disk, about."""


@dataclass(frozen=True)
class Estimate:
    """Costs by stage, and whether sizes were too large to be timed as they are."""

    stages: tuple[StageCost, ...]
    extrapolated: bool


def estimate(
    config: StudyConfig,
    audit: StudyAudit,
    extraction: ExtractionCost,
    rows: Mapping[str, int],
    n_claims: int,
) -> Estimate:
    """Calibrate, and add up."""
    held = held_bytes()
    shapes = context_shapes(config, audit)
    calibrated = calibrate(config, shapes)
    n_contexts = sum(shapes.values())
    client = client_costs(config, audit, calibrated, rows, n_contexts)
    times = control_times(config, audit) if config.assay.enabled else None
    signal = largest_signal_bytes(audit)
    looking = held + int(max((input_bytes(shape) for shape in shapes), default=0)) + signal
    worker = held + max(context_bytes(config, shapes), signal)
    frames = client.frame_bytes
    deciding = held + DECIDING_COPIES * sum(frames.get(table.name, 0) for table in NEEDED)
    writing = deciding + WRITING_COPIES * max(frames.values(), default=0)
    n_recordings = sum(len(dataset.recordings) for dataset in audit.datasets.values())
    again = min(audit.preparing, GRID_AGAIN_S * n_recordings)
    report = report_cost(client.table_bytes, n_claims)
    stages = (
        StageCost(AUDIT, _n_looked_at(audit), audit.seconds, looking, _grid_bytes(audit)),
        StageCost(FEATURES, extraction.n_sets, extraction.seconds, held, extraction.n_bytes),
        _brains(config, audit, client, again, held + signal),
        _levels(calibrated, client, shapes, again, worker),
        StageCost(
            CEILINGS,
            sum(bool(dataset.recordings) for dataset in audit.datasets.values()),
            sum(client.ceiling_seconds) + again,
            worker,
            client.ceiling_bytes,
            max(client.ceiling_seconds, default=0.0),
        ),
        _controls(times, again, worker),
        StageCost(DECISION, 1, client.decision_seconds, deciding, 0),
        StageCost(
            TABLES, len(rows), client.tables_seconds, writing, sum(client.table_bytes.values())
        ),
        StageCost(REPORT, 1, report.seconds, deciding + report.peak_bytes, report.disk_bytes),
    )
    return Estimate(stages, calibrated.extrapolated)


def _n_looked_at(audit: StudyAudit) -> int:
    return sum(len(dataset.recordings) for dataset in audit.datasets.values())


def _grid_bytes(audit: StudyAudit) -> int:
    """Recordings that took long to prepare are kept; they are, as soon as a study has been planned."""
    n_recordings = _n_looked_at(audit)
    if not n_recordings or audit.preparing / n_recordings <= GRID_AGAIN_S:
        return 0
    return 8 * sum(
        r.n_events * r.n_lags * len(r.unit_ids)
        for dataset in audit.datasets.values()
        for r in dataset.recordings
    )


def _brains(
    config: StudyConfig, audit: StudyAudit, client: ClientCosts, again: float, before: int
) -> StageCost:
    shapes = recording_shapes(config, audit)
    peak = before + BRAIN_COPIES * int(max(map(recording_bytes, shapes), default=0.0))
    times = time_brains(config, shapes)
    each = {shape: times.seconds(shape) + client.save_seconds for shape in shapes}
    n = sum(shapes.values())
    seconds = sum(each[shape] * n_alike for shape, n_alike in shapes.items())
    longest = max(each.values(), default=0.0)
    return StageCost(BRAINS, n, seconds + again, peak, n * client.brain_bytes, longest)


def _levels(
    calibrated: Calibrated,
    client: ClientCosts,
    shapes: Mapping[Shape, int],
    again: float,
    worker: int,
) -> StageCost:
    each = {shape: calibrated.seconds(shape) + client.save_seconds for shape in shapes}
    n_contexts = sum(shapes.values())
    return StageCost(
        LEVELS,
        n_contexts,
        sum(each[shape] * n for shape, n in shapes.items()) + again,
        worker,
        n_contexts * client.context_bytes,
        max(each.values(), default=0.0),
    )


def _controls(times: ControlTimes | None, again: float, worker: int) -> StageCost:
    if times is None:
        return StageCost(CONTROLS, 0, 0.0, 0, 0)
    seconds = times.seconds + again
    return StageCost(
        CONTROLS, times.n_tasks, seconds, worker, CONTROL_BYTES * times.n_tasks, times.longest
    )


def assay_seconds(config: StudyConfig, audit: StudyAudit) -> float:
    """Time of the positive controls alone, brain patterns included, with one worker."""
    shapes = recording_shapes(config, audit)
    brains = time_brains(config, shapes)
    seconds = sum(brains.seconds(shape) * n for shape, n in shapes.items())
    return seconds + control_times(config, audit).seconds
