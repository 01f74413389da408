"""What a run will compute, before it computes anything: claims, tasks and rows, what they cost, and whether that fits.

An outline describes a study whose data or models are missing: what it needs, and where to get it.

Work is counted by analyses and divided by the speed of this machine. That is a first estimate; progress corrects it by
the pace of the first tasks.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from lpact.analyses.base import StageWork, analyses_of
from lpact.analyses.explanation import Block
from lpact.config import DatasetConfig, LanguageModelConfig, Role, RunConfig, SharedConfig, StudyConfig
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS, role_of
from lpact.datasets.catalogue import Download
from lpact.errors import RunError
from lpact.features.models import NO_COST, ExtractionCost, ModelPlace
from lpact.inputs.workspace import build_source
from lpact.run.audit import StudyAudit, check_device, wanted_contexts
from lpact.run.conductor import Measuring
from lpact.run.machine import Limits, held_bytes, machine_limits
from lpact.run.progress import AUDIT, DECISION, FEATURES, REPORT, TABLES
from lpact.tables import MODEL_FILES, find_table
from lpact.wording import counted, size

FACTOR = 2
"""First estimates are right up to about this factor."""
WORKER_START_S = 2.0
"""Until a worker process has loaded its libraries."""
TASK_S = 0.01
"""To send a task to its worker and store its result."""
TABLE_S, ROW_S = 0.008, 5e-6
"""To write a table in both formats, and each of its rows."""
TABLE_BYTES, CELL_BYTES = 3_000, 12
"""A table's two files without rows, and one value in them."""
DECISION_S, DECISION_COPIES = 0.2, 7
"""To decide, and copies of the tables in memory meanwhile."""
WRITE_COPIES = 7
"""Copies of the largest table in memory while it is put together, sorted and written."""
REPORT_S, CLAIM_S = 8.0, 0.03
"""To draw all figures, and for each claim."""
REPORT_BYTES, REPORT_PEAK_BYTES, AS_TEXT = 12_000_000, 150_000_000, 1.75
"""Figures and page on disk, and drawing libraries in memory; tables as CSV and LaTeX, over those of the run."""
MEMORY_SHARE = 0.9
"""Share of the machine's memory that a run may be expected to use."""
RETAINED_SHARE = 0.7
"""Share of the memory of its tasks that a process still holds afterwards."""


@dataclass(frozen=True)
class StageCost:
    """One stage: tasks, seconds with one worker, memory peak of a process, bytes on disk.

    ``shared`` stages have tasks for workers; the others run in the first process. ``longest`` is the time of the
    longest task. Seconds are NaN if they are unknown before the first tasks are finished.
    """

    stage: str
    n_tasks: int
    seconds: float
    peak_bytes: int
    disk_bytes: int
    longest: float = 0.0
    shared: bool = False

    def seconds_with(self, workers: int) -> float:
        """Expected wall time with ``workers`` processes."""
        if not self.shared or math.isnan(self.seconds):
            return self.seconds
        rounds = -(-self.n_tasks // workers)
        even = self.seconds * rounds / max(1, self.n_tasks)
        return min(self.seconds, max(self.seconds / workers, even, self.longest))


@cache
def operations_per_second(size: int = 384, seconds: float = 0.05) -> float:
    """Floating-point operations per second of one core, from matrix products for about 0.05 s."""
    matrix = np.random.default_rng(0).standard_normal((size, size))
    best = math.inf
    with threadpool_limits(1):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            matrix @ matrix
            best = min(best, time.perf_counter() - start)
    return 2.0 * size**3 / best


def task_cost(stage: str, n_tasks: int, work: StageWork | None, held: int) -> StageCost:
    """Cost of a stage of tasks; ``held`` are the bytes that a process has in memory before."""
    if work is None:
        return StageCost(stage, n_tasks, math.nan, held, 0, shared=True)
    speed = operations_per_second()
    return StageCost(
        stage,
        n_tasks,
        work.operations / speed + TASK_S * n_tasks,
        held + work.peak_bytes,
        work.disk_bytes,
        work.longest / speed + TASK_S,
        shared=True,
    )


def closing_costs(
    rows: Mapping[str, int], n_claims: int, list_bytes: int, held: int
) -> tuple[StageCost, StageCost, StageCost]:
    """Decision, tables and report; ``list_bytes`` of the tables are in lists."""
    n_rows = sum(rows.values())
    cells = [n * len(find_table(name).columns) for name, n in rows.items()]
    disk = len(rows) * TABLE_BYTES + CELL_BYTES * sum(cells) + list_bytes
    peak = held + DECISION_COPIES * disk // 2
    largest = held + WRITE_COPIES * CELL_BYTES * max(cells, default=0) + 2 * list_bytes
    writing = TABLE_S * len(rows) + 2 * ROW_S * n_rows
    drawing = REPORT_S + CLAIM_S * n_claims
    report = REPORT_BYTES + int(AS_TEXT * disk)
    return (
        StageCost(DECISION, 1, DECISION_S + ROW_S * n_rows, peak, 0),
        StageCost(TABLES, len(rows), writing, max(peak, largest), disk),
        StageCost(REPORT, 1, drawing, peak + REPORT_PEAK_BYTES, report),
    )


def busy_workers(stages: Sequence[StageCost], workers: int) -> int:
    """How many of ``workers`` processes ever have a task; a run starts no more."""
    return max(1, min(workers, max((s.n_tasks for s in stages if s.shared), default=1)))


def memory_with(stages: Sequence[StageCost], workers: int) -> int:
    """Expected memory of all processes together."""
    workers = busy_workers(stages, workers)
    own = max((s.peak_bytes for s in stages if not s.shared), default=0)
    least = min((s.peak_bytes for s in stages if s.peak_bytes), default=0)
    if workers > 1:
        # Processes without a task hold what they have loaded.
        return own + max(_memory_of(s, workers, least) for s in stages if s.shared)
    shared = max((s.peak_bytes for s in stages if s.shared), default=0)
    return max(own + int(RETAINED_SHARE * max(0, shared - least)), shared)


def _memory_of(stage: StageCost, workers: int, idle: int = 0) -> int:
    """Memory of all processes in a stage."""
    busy = min(workers, stage.n_tasks) if stage.shared else 1
    return busy * stage.peak_bytes + (workers - busy) * idle


_Problem = tuple[str, str, str, str]
"""What is wrong, what was found, what was expected, and advice."""


@dataclass(frozen=True)
class Plan:
    """Sizes and costs of a study."""

    config: StudyConfig
    audit: StudyAudit
    """The study, and what its sources allow."""
    rows: Mapping[str, int]
    """Rows of every table; names in ``at_most`` are bounds, because the number depends on results."""
    at_most: frozenset[str]
    claims: Mapping[str, tuple[str, ...]]
    """Ids of the claims of each analysis."""
    tasks: Mapping[str, int]
    """Number of tasks of each stage, in their order."""
    stages: tuple[StageCost, ...]
    """Cost of each stage with one worker."""
    extraction: ExtractionCost = NO_COST
    """Features that must be extracted from language models first."""

    @property
    def n_claims(self) -> int:
        """Claims of all analyses."""
        return sum(map(len, self.claims.values()))

    @property
    def n_tasks(self) -> int:
        """Tasks of all stages."""
        return sum(self.tasks.values())

    @property
    def impossible(self) -> tuple[str, ...]:
        """What the sources do not allow, with the reason, of all analyses."""
        return tuple(what for own in self.audit.of.values() for what in own.impossible)

    @property
    def disk_bytes(self) -> int:
        """What a run writes, with features and report."""
        return self.disk_with()

    def disk_with(self, *, report: bool = True) -> int:
        """The same, with or without the report."""
        return sum(stage.disk_bytes for stage in self._stages(report))

    def seconds_with(self, workers: int, *, report: bool = True) -> float:
        """Expected wall time with ``workers`` processes; NaN if a stage has no estimate."""
        start = WORKER_START_S if workers > 1 else 0.0
        return start + sum(stage.seconds_with(workers) for stage in self._stages(report))

    def busy_workers(self, workers: int) -> int:
        """How many of ``workers`` processes ever have a task; a run starts no more."""
        return busy_workers(self.stages, workers)

    def memory_with(self, workers: int, *, report: bool = True) -> int:
        """Expected memory of all processes together."""
        return memory_with(self._stages(report), workers)

    def expected(self, workers: int) -> dict[str, float]:
        """Seconds of every stage of a run, for its progress; empty if a stage has no estimate.

        The audit is over when a run begins, and the report is made of the finished run.
        """
        expected = {
            stage.stage: stage.seconds_with(workers) for stage in self._stages(report=False) if stage.stage != AUDIT
        }
        if any(map(math.isnan, expected.values())):
            return {}
        if workers > 1 and self.tasks:
            expected[next(iter(self.tasks))] += WORKER_START_S
        return expected

    def refusal(
        self,
        *,
        workers: int,
        out: Path,
        features: Path,
        limits: Limits | None = None,
        report: bool = True,
    ) -> RunError | None:
        """Why the run does not fit this machine, with advice; None if it fits."""
        limits, stages = limits or machine_limits(out, features), self._stages(report)
        extracted = sum(s.disk_bytes for s in stages if s.stage == FEATURES)
        drawn = sum(s.disk_bytes for s in stages if s.stage == REPORT)
        total = self.disk_with(report=report)
        found = [self._memory_problem(stages, limits, workers)]
        if limits.one_disk:
            found.append(_disk_problem(total, drawn, limits.out, out, "--out"))
        else:
            found.append(_disk_problem(total - extracted, drawn, limits.out, out, "--out"))
            found.append(_disk_problem(extracted, 0, limits.features, features, "run.features"))
        problems = [problem for problem in found if problem is not None]
        if not problems:
            return None
        what, got, expected, remedy = zip(*problems, strict=True)
        return RunError(
            "this run does not fit: " + " and ".join(what),
            where=str(out),
            got="; ".join(got),
            expected="; ".join(expected),
            remedy="; ".join((*remedy, "or use `lpact run --anyway`")),
        )

    def _memory_problem(self, stages: Sequence[StageCost], limits: Limits, workers: int) -> _Problem | None:
        needed = memory_with(stages, workers)
        if limits.memory is None or needed <= MEMORY_SHARE * limits.memory:
            return None
        allowed = int(MEMORY_SHARE * limits.memory)
        workers = busy_workers(stages, workers)
        largest = max(stages, key=lambda s: _memory_of(s, workers))
        most = min(workers - 1, limits.cores or workers)
        fitting = next((n for n in range(most, 0, -1) if memory_with(stages, n) <= allowed), 0)
        if fitting:
            fits = size(memory_with(stages, fitting))
            advice = f"use --workers {fitting}, which needs about {fits}"
        elif largest.shared:
            advice = (
                f"lower readout.memory_gib (now {self.config.readout.memory_gib:g}), use fewer units "
                '(preprocess.channels or grid.units = "regions"), or use a machine with more memory'
            )
        else:
            options = [o for own in analyses_of(self.config).values() for o in own.size_options]
            lower = f"lower {' or '.join(dict.fromkeys(options))}, " if options else ""
            advice = f"{lower}divide the study, or use a machine with more memory"
        return (
            "memory is short",
            f"about {size(needed)} of memory with {counted(workers, 'worker')}, most of it in the stage "
            f"'{largest.stage}', where one process needs {size(largest.peak_bytes)}",
            f"at most {size(allowed)} of this machine's {size(limits.memory)}",
            advice,
        )

    def _stages(self, report: bool) -> tuple[StageCost, ...]:
        return tuple(stage for stage in self.stages if report or stage.stage != REPORT)

    def __repr__(self) -> str:
        return f"Plan({self.config.name!r}, n_claims={self.n_claims}, n_tasks={self.n_tasks})"

    def _repr_html_(self) -> str:
        from lpact.report.notebook import plan_html

        return plan_html(self)


def make_plan(config: StudyConfig, audit: StudyAudit, extraction: ExtractionCost = NO_COST) -> Plan:
    """Count what a study will compute, and estimate what it costs."""
    check_device(config)
    rows = {name: table.height for name, table in audit.tables.items()}
    at_most: set[str] = set()
    tasks: Counter[str] = Counter()
    costs: list[StageCost] = []
    list_bytes, held = 0, held_bytes()
    for name, analysis in analyses_of(config).items():
        own = audit.of[name]
        rows |= own.rows
        at_most |= own.at_most
        work = analysis.work(config, own)
        list_bytes += analysis.list_bytes(config, own)
        measuring = Measuring(config, audit, analysis)
        for stage in measuring.stages:
            n, label = len(stage.tasks), measuring.label(stage)
            tasks[label] += n
            costs.append(task_cost(label, n, work.get(stage.name), held))
    rows[MODEL_FILES.name] += audit.sets_to_come
    claims = {name: own.claims for name, own in audit.of.items()}
    stages = (
        StageCost(AUDIT, audit.n_recordings, audit.seconds, audit.peak_bytes, 0),
        StageCost(FEATURES, extraction.n_sets, extraction.seconds, held, extraction.n_bytes),
        *costs,
        *closing_costs(rows, sum(map(len, claims.values())), list_bytes, held),
    )
    return Plan(
        config=config,
        audit=audit,
        rows=dict(sorted(rows.items())),
        at_most=frozenset(at_most),
        claims=claims,
        tasks=dict(tasks),
        stages=stages,
        extraction=extraction,
    )


def _disk_problem(needed: int, report: int, free: int | None, folder: Path, option: str) -> _Problem | None:
    if free is None or needed <= free:
        return None
    advice = f"free {size(needed - free)}, or choose a folder on another disk with {option}"
    if report and needed - report <= free:
        advice += "; or skip the report (--no-report)"
    return (
        "the disk is too full",
        f"about {size(needed)} to write for {folder}",
        f"at most {size(free)}, the free space",
        advice,
    )


@dataclass(frozen=True)
class DatasetOutline:
    """One dataset of the study. ``missing`` says what is missing, if anything."""

    name: str
    reader: str
    role: Role
    folder: Path | None
    missing: str
    extra: str
    download: Download | None


@dataclass(frozen=True)
class ModelOutline:
    """One model of the study. ``missing`` says what is missing, if anything."""

    name: str
    source: str
    layers: tuple[int, ...]
    contexts: tuple[str, ...]
    missing: str


@dataclass(frozen=True)
class Outline:
    """What a study needs: ``controls`` with their draws, and ``blocks`` that each analysis shows, by name."""

    datasets: tuple[DatasetOutline, ...]
    models: tuple[ModelOutline, ...]
    controls: Mapping[str, int]
    blocks: Mapping[str, list[Block]]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing, so that the study can be planned in full."""
        return self.n_missing == 0

    @property
    def n_missing(self) -> int:
        """Number of datasets and models that are missing."""
        datasets = sum(bool(d.missing) for d in self.datasets)
        return datasets + sum(bool(m.missing) for m in self.models)


def outline_study(config: StudyConfig, run: RunConfig) -> Outline:
    """Look for datasets and models without opening them."""
    analyses = analyses_of(config)
    has_controls = any("controls" in own.uses for own in analyses.values())
    return Outline(
        datasets=tuple(_dataset(entry, run.paths.get(entry.name)) for entry in config.datasets),
        models=tuple(_model(model, run, wanted_contexts(config)) for model in config.models),
        controls=control_draws(config) if has_controls else {},
        blocks={name: own.outline(config) for name, own in analyses.items()},
    )


def _dataset(entry: DatasetConfig, path: str | None) -> DatasetOutline:
    reader = DATASETS.get(entry.reader, where=f"dataset '{entry.name}'")
    folder = None if path is None else Path(os.path.normpath(path))
    missing = ""
    if reader.needs_path and folder is None:
        missing = f"no folder is given: [run.paths] {entry.name}"
    elif reader.needs_path and folder is not None and not folder.is_dir():
        missing = f"{folder} does not exist"
    about = (folder, missing, reader.extra, reader.download)
    return DatasetOutline(entry.name, entry.reader, role_of(entry), *about)


def _model(model: LanguageModelConfig, run: RunConfig, contexts: tuple[str, ...]) -> ModelOutline:
    source, folder = build_source(model), run.models.get(model.name)
    source.at(ModelPlace(None if folder is None else Path(folder), Path(run.features)))
    missing = source.absent(model.name)
    return ModelOutline(model.name, model.source, model.layers, contexts, missing)


def control_draws(config: SharedConfig) -> dict[str, int]:
    """Draws of every control, if the dataset and the model allow it."""
    return {name: config.controls.draws if CONTROLS.get(name).random else 1 for name in config.controls.include}
