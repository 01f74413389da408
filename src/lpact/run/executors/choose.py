"""The way to run tasks that suits a run's settings."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lpact.analyses.base import Task
from lpact.inputs.workspace import Workspace
from lpact.run.executors.base import Executor, Setup
from lpact.run.executors.here import Here
from lpact.run.executors.processes import Processes
from lpact.run.machine import usable_cores
from lpact.store import Results, TaskStore


def _ignore(_: list[Task]) -> None:
    """Do nothing."""


def _unnoted(event: str, **fields: str | int | float) -> None:
    """Do nothing."""


def too_many_workers(workers: int) -> str:
    """What is wrong with so many processes on this machine, in words; empty where nothing is."""
    n_cores = usable_cores()
    if workers <= n_cores:
        return ""
    return (
        f"{workers} workers on {n_cores} core(s): each keeps a core busy, so that more workers than cores take turns, "
        f"need more memory and finish no sooner; `--workers {n_cores}` is enough"
    )


@contextmanager
def open_executor(
    workspace: Workspace,
    results: Results,
    workers: int,
    *,
    lost: Callable[[list[Task]], None] = _ignore,
    note: Callable[..., None] = _unnoted,
) -> Iterator[Executor]:
    """The cluster that the run's settings name, processes of this machine, or this process where one is enough.

    Results that are kept in memory stay with the process that made them, so that these are computed here. ``lost`` is
    called with tasks whose process died, ``note`` with other events: a name, and ``what`` in words.
    """
    if not isinstance(results, TaskStore):
        yield Here(workspace, results)
        return
    if workspace.run.cluster:
        from lpact.run.executors.dask.client import OnDask
        from lpact.run.executors.dask.connect import open_client

        with (
            open_client(workspace.run) as client,
            OnDask(client, workspace, results, lost=lost, note=note) as cluster,
        ):
            yield cluster
        return
    if workers == 1:
        yield Here(workspace, results)
        return
    with Processes(Setup.of(workspace, results), workers, lost) as processes:
        yield processes


@contextmanager
def scratch_results() -> Iterator[TaskStore]:
    """A temporary store of results."""
    with tempfile.TemporaryDirectory(prefix="lpact-") as folder:
        yield TaskStore.at(Path(folder))
