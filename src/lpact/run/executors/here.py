"""Tasks one after the other, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lpact.analyses.base import Task
from lpact.inputs.workspace import Workspace
from lpact.run.executors.base import Ended, perform
from lpact.run.executors.threads import OneThread
from lpact.store import Results


class Here:
    """Runs tasks in this process, on one BLAS thread."""

    workers = 1

    def __init__(self, workspace: Workspace, results: Results) -> None:
        self._workspace = workspace
        self._results = results

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Run one task after the other."""
        one_thread = OneThread()
        try:
            for task in tasks:
                one_thread.hold()
                yield perform(task, self._workspace, self._results)
        finally:
            one_thread.restore()
