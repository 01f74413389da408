"""Small tables of levels 1, 2 and 4, with numbers that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from lpact.store.frames import frame
from lpact.tables import Table

CONTEXT = {"dataset": "d", "subject": "1", "session": "1", "run": "1", "model": "m", "layer": 1}
_DEFAULTS = {"str": "", "int": 0, "float": None, "bool": False}
_OWN = {**CONTEXT, "metric": "pearson", "reason": "ok", "confirmatory": True, "draw": 0}


def table(declared: Table, rows: Iterable[dict[str, Any]]) -> dict[str, pl.DataFrame]:
    """The table by name; columns that a row does not give have a plain value."""
    made = []
    for row in rows:
        plain: dict[str, Any] = {}
        for column in declared.columns:
            kind = str(column.dtype)
            default = [] if kind.startswith("list") else _DEFAULTS[kind]
            if default is None and not column.nullable:
                default = 0.0
            plain[column.name] = row.get(column.name, _OWN.get(column.name, default))
        assert set(row) <= set(plain), set(row) - set(plain)
        made.append(plain)
    return {declared.name: frame(declared, made)}
