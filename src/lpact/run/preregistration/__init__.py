"""Preregistration: what a study will do, frozen before its outcomes are known; and whether a run then did it.

::

    record.py     what is registered, and its file
    earlier.py    making one, unless results exist already; under which registration results were made
    compare.py    a run compared with a registration, item by item
"""

from __future__ import annotations

from lpact.run.preregistration.compare import check_run, run_items
from lpact.run.preregistration.earlier import (
    leave_note,
    look_for_results,
    register,
    reused_results,
    study_tasks,
)
from lpact.run.preregistration.record import (
    REGISTRATION_NAME,
    Registration,
    read_registration,
    refuse_other_digest,
    refuse_taken,
    write_registration,
)

__all__ = [
    "REGISTRATION_NAME",
    "Registration",
    "check_run",
    "leave_note",
    "look_for_results",
    "read_registration",
    "refuse_other_digest",
    "refuse_taken",
    "register",
    "reused_results",
    "run_items",
    "study_tasks",
    "write_registration",
]
