"""The functions that a Dask worker runs. They import the rest of lpact when they are called.

A worker that has not run a task yet has not loaded Polars, so it can still be limited to one thread.
"""

from __future__ import annotations

import os
from typing import Any


def look(code: str, briefing: bytes) -> Any:
    """Whether this worker can run tasks of a study: `Fit`, or text that says why not."""
    return _worker().look(code, briefing)


def take(code: str, briefing: bytes, task: bytes, needs: dict[str, bytes]) -> Any:
    """Run a task: its record and, if the worker does not see the client's results, the result itself."""
    return _worker().take(code, briefing, task, needs)


def _worker() -> Any:
    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from lpact.run.executors import worker

    return worker
