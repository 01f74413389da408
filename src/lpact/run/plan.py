"""What a run will compute, before it computes anything: claims, tasks and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lpact.analyses.base import analyses_of
from lpact.config import StudyConfig
from lpact.features.models import NO_COST, ExtractionCost
from lpact.run.audit import StudyAudit, check_device
from lpact.run.collect import Measuring
from lpact.tables import MODEL_FILES


@dataclass(frozen=True)
class Plan:
    """Sizes of a study.

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
    extraction
        Features that language models must give first.
    """

    config: StudyConfig
    audit: StudyAudit
    rows: Mapping[str, int]
    at_most: frozenset[str]
    claims: Mapping[str, tuple[str, ...]]
    tasks: Mapping[str, int]
    extraction: ExtractionCost = NO_COST

    @property
    def n_claims(self) -> int:
        """Claims of all analyses."""
        return sum(map(len, self.claims.values()))

    @property
    def n_tasks(self) -> int:
        """Tasks of all stages."""
        return sum(self.tasks.values())

    def _repr_html_(self) -> str:
        from lpact.report.notebook import plan_html

        return plan_html(self)


def make_plan(config: StudyConfig, audit: StudyAudit, extraction: ExtractionCost = NO_COST) -> Plan:
    """Count what a study will compute."""
    check_device(config)
    rows = Counter({name: table.height for name, table in audit.tables.items()})
    tasks: Counter[str] = Counter()
    at_most: set[str] = set()
    for name, analysis in analyses_of(config).items():
        own = audit.of[name]
        rows |= Counter(own.rows)
        at_most |= own.at_most
        for stage in Measuring(config, audit, analysis).stages:
            tasks[stage.name] += len(stage.tasks)
    rows[MODEL_FILES.name] += audit.sets_to_come
    return Plan(
        config=config,
        audit=audit,
        rows=dict(sorted(rows.items())),
        at_most=frozenset(at_most),
        claims={name: own.claims for name, own in audit.of.items()},
        tasks=dict(tasks),
        extraction=extraction,
    )
