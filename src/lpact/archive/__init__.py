"""Runs that are frozen, checked and shared: lock, verify, export.

``lock.json`` holds checksums of every file of a run, its configuration, inputs and software, facts of every table and
the unit order of every recording, and one digest over all of it. `verify_run` holds a run against it and makes
decisions, labels and report again from the tables alone. `export_run` writes one archive that another group can verify.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpact.archive.archive import opened_run
    from lpact.archive.export import Exported, export_run
    from lpact.archive.lock import LockedRun, lock_run
    from lpact.archive.lockfile import Lock, read_lock
    from lpact.archive.model import Problem, Verification
    from lpact.archive.rows import RowChange, row_changes
    from lpact.archive.verify import verify_run

__all__ = [
    "Exported",
    "Lock",
    "LockedRun",
    "Problem",
    "RowChange",
    "Verification",
    "export_run",
    "lock_run",
    "opened_run",
    "read_lock",
    "row_changes",
    "verify_run",
]

_HOMES = {
    "Exported": "export",
    "Lock": "lockfile",
    "LockedRun": "lock",
    "Problem": "model",
    "RowChange": "rows",
    "Verification": "model",
    "export_run": "export",
    "lock_run": "lock",
    "opened_run": "archive",
    "read_lock": "lockfile",
    "row_changes": "rows",
    "verify_run": "verify",
}


def __getattr__(name: str) -> Any:
    """Import names on first use: a process that only reads tables needs little of this."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(f"lpact.archive.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'lpact.archive' has no attribute '{name}'")
