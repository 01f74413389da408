"""Every table, declared once."""

from __future__ import annotations

from lpact.analyses.lpact.tables import (
    assay_brain,
    assay_stimulus,
    audit,
    calibration,
    causal,
    ceilings,
    claim_audit,
    decisions,
    media,
    power,
    predictive,
    relational,
    robustness,
)
from lpact.errors import TableError, did_you_mean
from lpact.tables import preregistration
from lpact.tables._declare import CLAIM_KEY, CONTEXT_KEY, RECORDING_KEY, Column, DType, Table

RUN_TABLES: dict[str, Table] = {
    table.name: table
    for module in (
        audit,
        media,
        predictive,
        relational,
        causal,
        ceilings,
        decisions,
        assay_brain,
        assay_stimulus,
    )
    for table in module.TABLES
}
"""Tables that ``lpact run`` writes."""

ALL_TABLES: dict[str, Table] = RUN_TABLES | {
    table.name: table
    for module in (preregistration, claim_audit, robustness, calibration, power)
    for table in module.TABLES
}
"""The same, one that a run writes where it was preregistered, and those that other commands make: ``claims``,
``robustness``, ``calibrate`` and ``power``."""

__all__ = [
    "ALL_TABLES",
    "CLAIM_KEY",
    "CONTEXT_KEY",
    "RECORDING_KEY",
    "RUN_TABLES",
    "Column",
    "DType",
    "Table",
    "find_table",
]


def find_table(name: str) -> Table:
    """Return the declaration of ``name``; the folder may be left out where that is unambiguous."""
    if name in ALL_TABLES:
        return ALL_TABLES[name]
    short = {full.split("/", 1)[1]: full for full in ALL_TABLES}
    if name in short:
        return ALL_TABLES[short[name]]
    raise TableError(
        f"there is no table named '{name}'",
        got=name,
        expected="a table of docs/reference/tables.md",
        remedy=did_you_mean(name, ALL_TABLES if "/" in name else short),
    )
