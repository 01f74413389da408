"""What a run will compute, before it computes anything: claims, tasks and rows, and about what they cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lpact.analyses.base import StageWork, analyses_of
from lpact.config import StudyConfig
from lpact.errors import RunError
from lpact.features.models import NO_COST, ExtractionCost
from lpact.run import fit
from lpact.run.audit import StudyAudit, check_device
from lpact.run.collect import Measuring
from lpact.run.costs import StageCost, closing_costs, task_cost
from lpact.run.machine import Limits, held_bytes, machine_limits
from lpact.run.stages import AUDIT, FEATURES, REPORT, TABLES
from lpact.tables import MODEL_FILES

WORKER_START_S = 2.0
"""Until a worker process has loaded its libraries."""


@dataclass(frozen=True)
class Plan:
    """Sizes and costs of a study.

    Attributes
    ----------
    config, audit
        The study, and what its sources allow.
    rows
        Rows of every table; a name in ``at_most`` marks a bound, where the count depends on results.
    claims
        Ids of the claims of each analysis.
    tasks
        Number of tasks of each stage, in their order.
    stages
        Cost of each stage with one worker, estimated from counts and the speed of this machine.
    extraction
        Features that language models must give first.
    """

    config: StudyConfig
    audit: StudyAudit
    rows: Mapping[str, int]
    at_most: frozenset[str]
    claims: Mapping[str, tuple[str, ...]]
    tasks: Mapping[str, int]
    stages: tuple[StageCost, ...]
    extraction: ExtractionCost = NO_COST

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
        """What a run writes, features and report included, before its working folder is removed."""
        return self.disk_with()

    def disk_with(self, *, report: bool = True) -> int:
        """The same, with or without the report."""
        stages = self._stages(report)
        return fit.disk_of_run(stages) + fit.disk_of_features(stages)

    def seconds_with(self, workers: int, *, report: bool = True) -> float:
        """Expected wall time with ``workers`` processes; NaN where a stage has no estimate."""
        start = WORKER_START_S if workers > 1 else 0.0
        return start + sum(stage.seconds_with(workers) for stage in self._stages(report))

    def memory_with(self, workers: int, *, report: bool = True) -> int:
        """Expected memory of all processes together, at most."""
        return fit.memory_with(self._stages(report), workers)

    def expected(self, workers: int) -> dict[str, float]:
        """Seconds of every stage of a run, for its progress; empty where a stage has no estimate.

        The audit is over when a run begins, and the report is made of the finished run.
        """
        expected = {
            stage.stage: stage.seconds_with(workers)
            for stage in self._stages(report=False)
            if stage.stage != AUDIT
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
        """Why the run does not fit this machine, with advice; None where it fits.

        ``limits`` are those of the machine unless they are given.
        """
        return fit.refusal(
            self._stages(report),
            limits or machine_limits(out, features),
            workers=workers,
            out=out,
            features=features,
            memory_gib=self.config.readout.memory_gib,
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
    more_bytes, held = 0, held_bytes()
    for name, analysis in analyses_of(config).items():
        own = audit.of[name]
        rows |= own.rows
        at_most |= own.at_most
        work = analysis.work(config, own)
        more_bytes += work.get(TABLES, StageWork(0.0)).disk_bytes
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
        *closing_costs(rows, sum(map(len, claims.values())), more_bytes, held),
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
