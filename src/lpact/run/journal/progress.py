"""Progress of a run: bars on terminals, plain lines elsewhere, nothing when switched off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from lpact.run.journal.model import Clock, Estimate, StageProgress

SECONDS_BETWEEN_LINES = 5.0
MOST_SECONDS_BETWEEN_LINES = 60.0
_LINES = 100
"""A long run prints about this many lines: the time between two grows with it."""
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


class Reporter(Protocol):
    """What a run reports to while it works."""

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""
        ...

    def advance(self, steps: int = 1) -> None:
        """Some steps of the stage are done."""
        ...


@runtime_checkable
class Overall(Reporter, Protocol):
    """A reporter that also shows how far the whole run is."""

    def resumed(self, n: int) -> None:
        """Some steps of the stage were done before; they say nothing about speed."""
        ...

    def overall(self, estimate: Estimate) -> None:
        """How far the whole run is."""
        ...

    def say(self, text: str) -> None:
        """Show a sentence."""
        ...


class Silent:
    """Reports nothing."""

    def stage(self, name: str, total: int) -> None:
        """Do nothing."""

    def advance(self, steps: int = 1) -> None:
        """Do nothing."""


class Several:
    """Reports to each of several reporters."""

    def __init__(self, *reporters: Reporter) -> None:
        self._reporters = reporters

    def stage(self, name: str, total: int) -> None:
        """Begin a stage."""
        for one in self._reporters:
            one.stage(name, total)

    def advance(self, steps: int = 1) -> None:
        """Count steps."""
        for one in self._reporters:
            one.advance(steps)


def plain(text: str) -> str:
    """Text in which every character that a terminal would obey is spelt out."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def time_left(seconds: float) -> str:
    """``about 12 s left``, in units that a reader can act on."""
    if seconds < 2 * _MINUTE:
        return f"about {seconds:.0f} s left"
    if seconds < 2 * _HOUR:
        return f"about {seconds / _MINUTE:.0f} min left"
    return f"about {seconds / _HOUR:.1f} h left"


def clock_time(seconds_left: float, now: datetime | None = None) -> str:
    """Local time at which something ends; with its date where that is not today."""
    now = now or datetime.now().astimezone()
    if seconds_left > 1000 * _DAY:
        return "in years"
    end = now + timedelta(seconds=seconds_left)
    return end.strftime("%H:%M" if end.date() == now.date() else "%Y-%m-%d %H:%M")


def _ends(estimate: Estimate) -> str:
    if estimate.seconds_left is None or estimate.fraction == 1.0:
        return ""
    return f"{time_left(estimate.seconds_left)}, ends {clock_time(estimate.seconds_left)}"


class _Name(ProgressColumn):
    """Name of a stage, whatever is in it."""

    def render(self, task: Task) -> Text:
        return Text(plain(task.description))


class _Amount(ProgressColumn):
    """Steps of a stage, or percent of the whole run."""

    def render(self, task: Task) -> Text:
        if "estimate" in task.fields:
            return Text(_percent(task.fields["estimate"]))
        total = f"/{int(task.total)}" if task.total else ""
        return Text(f"{int(task.completed)}{total}")


class _Left(ProgressColumn):
    """What is left; for the whole run also the time of its end."""

    def render(self, task: Task) -> Text:
        if "estimate" in task.fields:
            return Text(_ends(task.fields["estimate"]))
        return Text(_stage_left(task.fields["progress"], time.monotonic()))


def _columns() -> tuple[ProgressColumn, ...]:
    """The bar gives way where a terminal is narrow; words and numbers stay on one line."""
    name, amount, elapsed, left = (Column(no_wrap=True) for _ in range(4))
    return (
        _Name(name),
        BarColumn(bar_width=None, table_column=Column(max_width=40)),
        _Amount(amount),
        TimeElapsedColumn(elapsed),
        _Left(left),
    )


def _percent(estimate: Estimate) -> str:
    # Rounded down: 100 % is said of nothing that is not finished.
    return "" if estimate.fraction is None else f"{int(100 * estimate.fraction)} %"


def _stage_left(stage: StageProgress, now: float) -> str:
    if stage.done <= 0 or stage.steps_left == 0:
        return ""
    left = stage.known_left
    if left is None:
        left = stage.seconds_left(now, stage.step_seconds())
    return "" if left is None else time_left(left)


class _Bar:
    """One bar for the present stage, above it one for the whole run where that is known.

    Finished stages become lines when there is a bar for the whole run, and stay as bars when there is none.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._overall: TaskID | None = None
        self._stage: StageProgress | None = None

    def stage(self, name: str, total: int) -> None:
        if self._overall is not None and self._task is not None and self._stage is not None:
            seconds = self._stage.seconds(time.monotonic())
            self._progress.remove_task(self._task)
            self.say(f"{self._stage.name}: {self._stage.done} in {seconds:.0f} s")
        self._stage = StageProgress(name, total, time.monotonic())
        self._task = self._progress.add_task(name, total=total, progress=self._stage)

    def advance(self, steps: int = 1) -> None:
        if self._task is not None and self._stage is not None:
            self._stage.advance(steps, time.monotonic())
            self._progress.advance(self._task, steps)

    def resumed(self, n: int) -> None:
        if self._task is not None and self._stage is not None:
            self._stage.done += n
            self._stage.resumed += n
            self._progress.advance(self._task, n)

    def overall(self, estimate: Estimate) -> None:
        if self._stage is not None:
            self._stage.known_left = estimate.stage_left
        if estimate.fraction is None:
            return
        if self._overall is None:
            self._overall = self._progress.add_task("overall", total=1.0, estimate=estimate)
        self._progress.update(self._overall, completed=estimate.fraction, estimate=estimate)

    def say(self, text: str) -> None:
        self._progress.console.print(Text(plain(text)))


class _Lines:
    """One line at the start and end of a stage, and every few seconds in between."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._stage: StageProgress | None = None
        self._estimate: Estimate | None = None
        self._started = self._shown_at = clock()

    def stage(self, name: str, total: int) -> None:
        self._stage = StageProgress(name, total, self._clock())
        self._show(self._clock())

    def advance(self, steps: int = 1) -> None:
        if self._stage is not None:
            self._stage.advance(steps, self._clock())
            self._show_sometimes(self._stage)

    def resumed(self, n: int) -> None:
        if self._stage is not None:
            self._stage.done += n
            self._stage.resumed += n
            self._show_sometimes(self._stage)

    def overall(self, estimate: Estimate) -> None:
        self._estimate = estimate
        if self._stage is not None:
            self._stage.known_left = estimate.stage_left
        now = self._clock()
        if self._stage is not None and now - self._shown_at >= MOST_SECONDS_BETWEEN_LINES:
            self._show(now)

    def say(self, text: str) -> None:
        # As it is: no markup, no colour for numbers, no line broken at a width that a file does not have.
        self._console.print(plain(text), markup=False, highlight=False, emoji=False, soft_wrap=True)

    def _show_sometimes(self, stage: StageProgress) -> None:
        now = self._clock()
        between = max(SECONDS_BETWEEN_LINES, (now - self._started) / _LINES)
        if stage.done == stage.total or now - self._shown_at >= min(
            between, MOST_SECONDS_BETWEEN_LINES
        ):
            self._show(now)

    def _show(self, now: float) -> None:
        self._shown_at = now
        stage = self._stage
        if stage is None:
            return
        left = _stage_left(stage, now)
        line = f"{stage.name}: {stage.done}/{stage.total} ({stage.seconds(now):.0f} s"
        line += f", {left})" if left else ")"
        if self._estimate is not None and self._estimate.fraction is not None:
            parts = (f"overall {_percent(self._estimate)}", _ends(self._estimate))
            line += "; " + ", ".join(part for part in parts if part)
        self.say(line)


@contextmanager
def reporter(*, show: bool, console: Console | None = None) -> Iterator[Reporter]:
    """The reporter that suits the console."""
    console = console or Console(stderr=True)
    if not show:
        yield Silent()
    elif console.is_terminal:
        with Progress(*_columns(), console=console) as progress:
            yield _Bar(progress)
    else:
        yield _Lines(console)
