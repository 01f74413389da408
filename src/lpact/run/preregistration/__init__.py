"""Preregistration: what a study will do, frozen before outcomes are looked at; and whether a run then did it.

::

    content.py    what is registered, and the same of a finished run
    record.py     the file: canonical JSON, its digest, its time
    earlier.py    whether results were there already
    noted.py      what runs say beside their results: from which data these are made
    own_tasks.py  the study's own tasks: whether results are there, and under which registration they were made
    register.py   from a study's sources to a registration; nothing is fitted
    check.py      a run held against a registration, item by item
"""

from __future__ import annotations

from lpact.run.preregistration.check import check, check_run, run_items
from lpact.run.preregistration.earlier import look_for_results
from lpact.run.preregistration.noted import NotedFirst, leave_note
from lpact.run.preregistration.own_tasks import TakenOver, study_tasks, taken_over
from lpact.run.preregistration.record import (
    REGISTRATION_NAME,
    Registration,
    read_registration,
    refuse_other_digest,
    refuse_taken,
    write_registration,
)
from lpact.run.preregistration.register import register

__all__ = [
    "REGISTRATION_NAME",
    "NotedFirst",
    "Registration",
    "TakenOver",
    "check",
    "check_run",
    "leave_note",
    "look_for_results",
    "read_registration",
    "refuse_other_digest",
    "refuse_taken",
    "register",
    "run_items",
    "study_tasks",
    "taken_over",
    "write_registration",
]
