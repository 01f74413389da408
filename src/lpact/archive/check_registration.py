"""Whether a run followed its preregistration: compared again from the copy that it keeps, cell by cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from lpact.analyses.lpact.gates.wording import count
from lpact.archive.apart import ShortError
from lpact.archive.bounded_json import read_bounded
from lpact.archive.check_tables import ExaminedRun, SealedTables
from lpact.archive.frames import frame_problems
from lpact.archive.model import Problem
from lpact.errors import LPactError
from lpact.run.preregistration import REGISTRATION_NAME, check_run, read_registration
from lpact.tables import PREREGISTRATION_ITEMS

_BY_ITEM = replace(PREREGISTRATION_ITEMS, key=("item_group", "item"))
"""The table by what was registered: whether that was followed is one of the cells that may differ."""
_SHORT = "was not compared again: tables were not read, for want of memory or time"


def check_registration(root: Path, tables: SealedTables) -> tuple[list[Problem], list[str]]:
    """Problems of the stored comparison, and what was done, in sentences.

    What only the run itself can know, such as the registration that it was given, comes from the stored table.
    """
    name, path = PREREGISTRATION_ITEMS.name, root / REGISTRATION_NAME
    compared, kept = name in tables.names, path.is_symlink() or path.exists()
    if not compared and not kept:
        return [], []
    if not compared:
        what = "is there, but no table says whether the run followed it"
        return [Problem("registration", REGISTRATION_NAME, what)], []
    if not kept or path.is_symlink():
        what = "cannot be compared again: the run has no copy of its registration"
        return [Problem("registration", name, what)], []
    stored = tables(name)
    if stored is None and name in tables.short:
        return [Problem("limit", name, _SHORT)], []
    if stored is None:
        what = "cannot be compared again: there is no readable table"
        return [Problem("registration", name, what)], []
    try:
        read_bounded(path, what="the registration cannot be read")
        again = check_run(read_registration(path), ExaminedRun(tables))
    except ShortError:
        return [Problem("limit", name, _SHORT)], []
    except LPactError as error:
        what = f"cannot be compared again: {error.what}: {error.got}"
        return [Problem("registration", name, what)], []
    except (ValueError, LookupError, TypeError, pl.exceptions.PolarsError) as error:
        what = f"cannot be compared again: {type(error).__name__}: {str(error).splitlines()[:1]}"
        return [Problem("registration", name, what)], []
    problems = frame_problems(_BY_ITEM, again, stored, kind="registration")
    return problems, [f"The preregistration was compared again: {count(again.height, 'item')}."]
