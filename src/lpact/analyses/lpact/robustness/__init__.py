"""What the verdicts depend on, from stored tables alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.robustness.analysis import (
    READS,
    READS_DECIDED,
    READS_IF_THERE,
    robustness,
    uncertainty_tables,
)
from lpact.analyses.lpact.robustness.cost import RobustnessCost, robustness_cost
from lpact.analyses.lpact.robustness.verdict import Finding, findings, integrated_counts

__all__ = [
    "READS",
    "READS_DECIDED",
    "READS_IF_THERE",
    "Finding",
    "RobustnessCost",
    "findings",
    "integrated_counts",
    "robustness",
    "robustness_cost",
    "tables_for_report",
    "uncertainty_tables",
]

MOST_DECIDED_AGAIN = 20_000
"""Claims that a report decides again at most; a thousand take about a second."""


def tables_for_report(
    config: LPactConfig, tables: Mapping[str, pl.DataFrame], tell: Callable[[str], None]
) -> dict[str, pl.DataFrame]:
    """Uncertainty of the verdicts; and, unless that takes minutes, the verdicts under other thresholds and data."""
    cost = robustness_cost({table.name: tables[table.name] for table in READS})
    again = cost.n_claim_decisions <= MOST_DECIDED_AGAIN
    wanted = [
        *(READS if again else READS_DECIDED),
        *(t for t in READS_IF_THERE if t.name in tables),
    ]
    read = {table.name: tables[table.name] for table in wanted}
    metric, seed = config.readout.primary_metric, config.seed
    if again:
        return robustness(read, gates=config.gates, primary_metric=metric, seed=seed, tell=tell)
    return uncertainty_tables(
        read, gates=config.gates, primary_metric=metric, seed=seed, as_decided=True
    )
