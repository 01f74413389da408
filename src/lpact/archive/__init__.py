"""Runs to keep and to share: lock, verify, export and compare them.

``lock.json`` holds the checksum of every file of a run, its configuration, inputs and software, facts of every table,
and one digest of all of it. `verify_run` compares a run with it, and decides it again from the tables alone.
`export_run` writes one archive that another group can verify. `diff_runs` names the claims of two runs that differ.
"""

from __future__ import annotations

from lpact.archive.diff import Comparison, diff_runs
from lpact.archive.lock import Lock, LockedRun, lock_run, read_lock
from lpact.archive.problems import Problem, Verification
from lpact.archive.verify import verify_run
from lpact.archive.zipped import Exported, export_run, opened_run

__all__ = [
    "Comparison",
    "Exported",
    "Lock",
    "LockedRun",
    "Problem",
    "Verification",
    "diff_runs",
    "export_run",
    "lock_run",
    "opened_run",
    "read_lock",
    "verify_run",
]
