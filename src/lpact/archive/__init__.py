"""Runs to keep and to share: lock, verify, export and compare them.

``lock.json`` holds the checksum of every file of a run, its configuration, inputs and software, facts of every table,
and one digest of all of it. `verify_run` compares a run with it, and decides it again from the tables alone.
`export_run` writes one archive that another group can verify. `diff_runs` names the claims of two runs that differ.
"""

from __future__ import annotations

from lpact.archive.diff import Comparison as Comparison, diff_runs as diff_runs
from lpact.archive.export import Exported as Exported, export_run as export_run
from lpact.archive.lock import (
    Lock as Lock,
    LockedRun as LockedRun,
    lock_run as lock_run,
    read_lock as read_lock,
)
from lpact.archive.problems import Problem as Problem, Verification as Verification
from lpact.archive.verify import verify_run as verify_run
from lpact.archive.zipped import opened_run as opened_run
