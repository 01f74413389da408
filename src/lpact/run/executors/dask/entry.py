"""The two functions that a Dask worker is asked to run. They import the rest of lpact when they are called.

A worker that never ran a task has not loaded Polars yet, and can still be kept to one thread.
"""

from __future__ import annotations

import os
from typing import Any


def look(code: str, briefing: bytes) -> Any:
    """Say whether this worker can take tasks of a run: `Fit` or `Unfit`."""
    _one_thread()
    from lpact.run.executors.dask import worker

    return worker.look(code, briefing)


def take(code: str, briefing: bytes, tasks: bytes, parcels: dict[str, bytes]) -> Any:
    """Run tasks: `Done` for each, or `Lacking`; `Unfit` where none can be run here."""
    _one_thread()
    from lpact.run.executors.dask import worker

    return worker.take(code, briefing, tasks, parcels)


def _one_thread() -> None:
    """For libraries that are loaded from now on; those that are there are limited before each task."""
    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
