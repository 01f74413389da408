"""What a run will compute, before it computes anything: rows and claims, and what every stage will take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from lpact.config import StudyConfig
from lpact.errors import RunError
from lpact.features.models import NO_COST, ExtractionCost
from lpact.inputs.prepare import check_device
from lpact.run.audit import StudyAudit
from lpact.run.planning import fit
from lpact.run.planning.costs import SHARED_OUT, StageCost
from lpact.run.planning.estimate import Estimate, estimate
from lpact.run.planning.machine import Limits, machine_limits
from lpact.run.planning.rows import AT_MOST, count_study
from lpact.run.stages import AUDIT, BRAINS, REPORT

WORKER_START_S = 2.0
"""Until a worker process has loaded its libraries."""


@dataclass(frozen=True)
class Plan:
    """Sizes of a study.

    ``rows`` is exact for every table; a name in ``at_most`` marks a bound, where the count depends on results. What
    stages cost is estimated when it is first asked for, by a short calibration on this machine: the study's own
    computations on noise of the same size. Nothing of the study's data enters it but sizes.
    """

    config: StudyConfig
    rows: Mapping[str, int]
    at_most: frozenset[str]
    n_subject_runs: int
    n_contexts: int
    n_claims: int
    n_fits: int
    config_digest: str
    audit: StudyAudit
    extraction: ExtractionCost = NO_COST

    @cached_property
    def estimate(self) -> Estimate:
        """Costs of all stages; the calibration takes some seconds."""
        return estimate(self.config, self.audit, self.extraction, self.rows, self.n_claims)

    def take(self, known: Estimate) -> None:
        """Use an estimate that was made before, in place of a calibration."""
        vars(self)["estimate"] = known

    @property
    def stages(self) -> tuple[StageCost, ...]:
        """Costs by stage, in their order, with one worker."""
        return self.estimate.stages

    @property
    def seconds(self) -> float:
        """Expected time with one worker, features and report included."""
        return self.seconds_with(1)

    @property
    def peak_bytes(self) -> int:
        """The most memory of one process."""
        return max(stage.peak_bytes for stage in self.stages)

    @property
    def disk_bytes(self) -> int:
        """What a run writes, features and report included, before its working folder is removed."""
        return self.disk_with()

    def disk_with(self, *, report: bool = True) -> int:
        """The same, with or without the report."""
        stages = self._stages(report)
        return fit.disk_of_run(stages) + fit.disk_of_features(stages)

    def seconds_with(self, workers: int, *, report: bool = True) -> float:
        """Expected wall time with ``workers`` processes."""
        start = WORKER_START_S if workers > 1 else 0.0
        return start + sum(stage.seconds_with(workers) for stage in self._stages(report))

    def _stages(self, report: bool) -> tuple[StageCost, ...]:
        return tuple(stage for stage in self.stages if report or stage.stage != REPORT)

    def expected(self, workers: int) -> dict[str, float]:
        """Seconds of every stage where they have been estimated; progress alone is not worth a calibration."""
        if "estimate" not in vars(self):
            return {}
        # The audit is over by then, and the report is made of the finished run.
        expected = {
            stage.stage: stage.seconds_with(workers)
            for stage in self.stages
            if stage.stage not in (AUDIT, REPORT)
        }
        if workers > 1:
            expected[BRAINS] += WORKER_START_S  # the first stage with tasks
        return expected

    def memory_with(self, workers: int, *, report: bool = True) -> int:
        """Expected memory of all processes together, at most."""
        return fit.memory_with(self._stages(report), workers)

    def refusal(
        self,
        *,
        workers: int,
        out: Path,
        features: Path,
        limits: Limits | None = None,
        report: bool = True,
    ) -> RunError | None:
        """Why the run cannot fit into this machine, with advice; None where it can.

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

    @property
    def controls(self) -> pl.DataFrame:
        """Availability of every control, with reasons."""
        return self.audit.tables["audits/lpact_control_availability"]


def make_plan(config: StudyConfig, audit: StudyAudit, extraction: ExtractionCost = NO_COST) -> Plan:
    """Count what a study will compute; nothing is timed yet."""
    check_device(config.readout)
    counts = count_study(config, audit)
    return Plan(
        config=config,
        rows=counts.rows,
        at_most=AT_MOST,
        n_subject_runs=sum(len(d.recordings) for d in audit.datasets.values()),
        n_contexts=sum(len(d.contexts) for d in audit.datasets.values()),
        n_claims=counts.n_claims,
        n_fits=counts.n_fits,
        config_digest=config.digest(),
        audit=audit,
        extraction=extraction,
    )


__all__ = ["SHARED_OUT", "Plan", "StageCost", "make_plan"]
