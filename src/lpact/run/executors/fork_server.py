"""A process that imports what tasks need while the main process still audits; workers then start as its copies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import BaseContext

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
}
"""Environment of a worker process: sums in another order would differ in their last digits."""

_started: list[bool] = []


def start() -> None:
    """Start it, once per program: later pools of the same program would inherit its modules.

    Without it (in a script or notebook, on Windows) every worker imports for itself.
    """
    if _started or "forkserver" not in multiprocessing.get_all_start_methods():
        return
    from multiprocessing import forkserver

    forkserver.set_forkserver_preload(["lpact.run.executors.preload"])
    with one_thread_environment(), interrupts_ignored():
        forkserver.ensure_running()
    _started.append(True)


def context() -> BaseContext:
    """How worker processes start; never by a fork of the main process, whose Polars threads may keep locks."""
    return multiprocessing.get_context("forkserver" if _started else "spawn")


@contextmanager
def one_thread_environment() -> Iterator[None]:
    """Processes that start in this block have `ONE_THREAD`."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        os.environ.update({name: value for name, value in before.items() if value is not None})
        for name in (name for name, value in before.items() if value is None):
            os.environ.pop(name, None)


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Processes that start in this block ignore Ctrl-C, which the main process handles."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
