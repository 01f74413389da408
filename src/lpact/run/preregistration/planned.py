"""Claims and rows that a run will have, counted from sizes alone: unlike for a plan, nothing is timed."""

from __future__ import annotations

from lpact.config import StudyConfig
from lpact.run.audit import StudyAudit
from lpact.run.planning.rows import AT_MOST, count_study
from lpact.run.preregistration.content import Claim, TableRows


def planned_claims(config: StudyConfig, audit: StudyAudit) -> list[Claim]:
    """Every claim that a run will judge."""
    places = {
        (name, offer.model, offer.layer): dataset.confirmatory
        for name, dataset in audit.datasets.items()
        for offer in dataset.contexts
    }
    return [
        Claim(
            dataset=dataset,
            model=model,
            layer=layer,
            mechanism=mechanism,
            confirmatory=confirmatory,
        )
        for (dataset, model, layer), confirmatory in places.items()
        for mechanism in config.mechanisms.include
    ]


def planned_rows(config: StudyConfig, audit: StudyAudit) -> list[TableRows]:
    """Rows that every table of the run will have, or can have at most."""
    return [
        TableRows(table=name, n_rows=n_rows, at_most=name in AT_MOST)
        for name, n_rows in count_study(config, audit).rows.items()
    ]
