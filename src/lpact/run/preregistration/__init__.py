"""Preregistration: what a study will do, frozen before its outcomes are known; and whether a run then did it.

::

    record.py     what is registered, and its file
    earlier.py    whether results exist already, and under which registration they were made
    compare.py    a run compared with a registration, item by item
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from lpact.config import StudyConfig
from lpact.run.audit import StudyAudit, provenance
from lpact.run.preregistration.compare import check_run, run_items
from lpact.run.preregistration.earlier import (
    leave_note,
    look_for_results,
    look_into_store,
    pairs_of,
    refuse_results,
    reused_results,
    study_tasks,
)
from lpact.run.preregistration.record import (
    REGISTRATION_NAME,
    Registration,
    new_registration,
    planned_content,
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


def register(
    config: StudyConfig,
    audit: StudyAudit,
    *,
    runs: Iterable[Path] = (),
    kept: str = "",
    after_the_fact: bool = False,
    now: datetime | None = None,
) -> Registration:
    """Freeze what a study will do, from its sources and sizes; nothing is fitted.

    ``runs`` are folders of finished or interrupted runs to search for results, ``kept`` is the study's own store of
    results (``[run] tasks``). Results of the same datasets and models are a `RunError`, unless the registration is made
    ``after_the_fact``, which it then says.
    """
    made_from = provenance(config, audit)
    pairs = pairs_of(made_from.config)
    earlier = [found for run in runs for found in look_for_results(run, made_from.inputs, pairs)]
    if kept:
        earlier += look_into_store(kept, config, audit, made_from)
    if not after_the_fact:
        refuse_results(earlier)
    content = planned_content(
        config, audit, made_from, after_the_fact=after_the_fact, earlier_runs=tuple(earlier)
    )
    return new_registration(content, now)
