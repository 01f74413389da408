"""Progress of a run: a bar on terminals, plain lines elsewhere, nothing when switched off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

SECONDS_BETWEEN_LINES = 5.0


class Reporter(Protocol):
    """What a run tells while it works."""

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""
        ...

    def advance(self, steps: int = 1) -> None:
        """Some steps of the stage are done."""
        ...


class Silent:
    """Tells nothing."""

    def stage(self, name: str, total: int) -> None:
        """Do nothing."""

    def advance(self, steps: int = 1) -> None:
        """Do nothing."""


class _Bar:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=0, visible=False)

    def stage(self, name: str, total: int) -> None:
        self._task = self._progress.add_task(name, total=total)

    def advance(self, steps: int = 1) -> None:
        self._progress.advance(self._task, steps)


class _Lines:
    """One line at the start and end of a stage, and every few seconds in between."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._name, self._total, self._done = "", 0, 0
        self._started = self._told = time.monotonic()

    def stage(self, name: str, total: int) -> None:
        self._name, self._total, self._done = name, total, 0
        self._started = self._told = time.monotonic()
        self._tell()

    def advance(self, steps: int = 1) -> None:
        self._done += steps
        now = time.monotonic()
        if self._done == self._total or now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            self._tell()

    def _tell(self) -> None:
        elapsed = time.monotonic() - self._started
        left = ""
        if 0 < self._done < self._total:
            left = f", about {elapsed / self._done * (self._total - self._done):.0f} s left"
        self._console.print(
            f"{self._name}: {self._done}/{self._total} ({elapsed:.0f} s{left})", highlight=False
        )


@contextmanager
def reporter(*, show: bool, console: Console | None = None) -> Iterator[Reporter]:
    """The reporter that suits the console."""
    console = console or Console(stderr=True)
    if not show:
        yield Silent()
    elif console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console) as progress:
            yield _Bar(progress)
    else:
        yield _Lines(console)
