"""Every table of a run directory, declared once."""

from __future__ import annotations

from lpact.errors import TableError, did_you_mean
from lpact.tables import (
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
from lpact.tables._declare import CLAIM_KEY, CONTEXT_KEY, RECORDING_KEY, Column, DType, Table

ALL_TABLES: dict[str, Table] = {
    table.name: table
    for module in (
        audit,
        media,
        predictive,
        relational,
        causal,
        ceilings,
        decisions,
        claim_audit,
        assay_brain,
        assay_stimulus,
        robustness,
        calibration,
        power,
    )
    for table in module.TABLES
}

__all__ = [
    "ALL_TABLES",
    "CLAIM_KEY",
    "CONTEXT_KEY",
    "RECORDING_KEY",
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
