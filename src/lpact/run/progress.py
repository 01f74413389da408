"""Progress of a run: its stages and how far they are, shown as bars on terminals and as lines elsewhere.

Stages that every run has are named here; analyses add their own between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from lpact.wording import about, plain

if TYPE_CHECKING:
    from lpact.run.executors.local import TaskFailure, TaskRecord

AUDIT = "source audit"
FEATURES = "features"
DECISION = "decision"
TABLES = "tables"
REPORT = "report"

FIRST = (AUDIT, FEATURES)
LAST = (DECISION, TABLES, REPORT)


Clock = Callable[[], float]

SECONDS_BETWEEN_LINES = 5.0
MOST_SECONDS_BETWEEN_LINES = 60.0
_LINES = 100
"""A long run prints about this many lines: the time between two grows with it."""
_LATE = 0.1
"""Overdue work is expected to take this share of its waiting time still."""
_DAMPING = 0.02
"""Share of the expected time of a run after which the observed pace counts for half."""


@dataclass(frozen=True)
class Estimate:
    """Share of the run that is done and seconds left, of the run and of its current stage; None if unknown."""

    fraction: float | None
    seconds_left: float | None
    stage_left: float | None = None


class Reporter:
    """What a run reports to while it works; this one shows nothing."""

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""

    def advance(self, steps: int = 1) -> None:
        """Some steps of the stage are done."""

    def resumed(self, n: int) -> None:
        """Some steps were done by an earlier attempt; they say nothing about speed."""
        self.advance(n)

    def finished(self, record: TaskRecord) -> None:
        """A task is finished."""
        del record
        self.advance()

    def failed(self, failure: TaskFailure) -> None:
        """A task ended with an error."""
        del failure
        self.advance()

    def note(self, event: str, **fields: str | int | float) -> None:
        """Something else happened; ``what`` says it in words."""

    def overall(self, estimate: Estimate) -> None:
        """How far the whole run is."""

    def say(self, text: str) -> None:
        """Show a sentence."""


class StageProgress:
    """Counts and times of one stage; ``done`` includes what was ``resumed`` and what ``failed``."""

    def __init__(self, name: str, total: int, now: float) -> None:
        self.name = name
        self._before = 0.0
        self.begin(total, now)

    def begin(self, total: int, now: float) -> None:
        """Begin the stage, or begin it again; its time goes on."""
        self.total, self._began, self._last = total, now, 0.0
        self.done = self.resumed = self.failed = 0
        self._ended: float | None = None

    def advance(self, steps: int, now: float) -> None:
        """Some steps are done."""
        self.done += steps
        self._last = now - self._began

    def resume(self, steps: int) -> None:
        """Some steps were done by an earlier attempt."""
        self.done += steps
        self.resumed += steps

    def end(self, now: float) -> None:
        """The stage ends."""
        if self._ended is None:
            self._before = self.seconds(now)
            self._ended = now

    def seconds(self, now: float) -> float:
        """Time spent in the stage."""
        return self._before + (now - self._began if self._ended is None else 0.0)

    def seconds_left(self, now: float, expected: float | None = None) -> float | None:
        """Time left at the pace of the steps so far, or at the ``expected`` time of the whole stage."""
        steps, computed = max(self.total - self.done, 0), self.done - self.resumed
        if steps == 0:
            return 0.0
        if computed > 0:
            step = self._last / computed
        elif expected is not None:
            step = expected / self.total
        else:
            return None
        waited = max(now - self._began - self._last, 0.0)
        return max(step * steps - waited, _LATE * waited)


class RunProgress:
    """Progress of a whole run.

    ``expected`` holds the seconds of each stage as wall time. Stages are weighted by it, and the pace of what was
    computed in this attempt corrects it.
    """

    def __init__(self, expected: Mapping[str, float], *, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self.expected = {n: float(s) for n, s in expected.items() if s >= 0.0 and isfinite(s)}
        self.stages: dict[str, StageProgress] = {}
        self.current: StageProgress | None = None
        self._shown = 0.0

    def stage(self, name: str, total: int) -> StageProgress:
        """A stage begins, and the one before ends."""
        self.end_stage()
        if name in self.stages:
            self.stages[name].begin(total, self.clock())
        else:
            self.stages[name] = StageProgress(name, total, self.clock())
        self.current = self.stages[name]
        return self.current

    def end_stage(self) -> None:
        """The current stage ends."""
        if self.current is not None:
            self.current.end(self.clock())
            self.current = None

    def stage_left(self) -> float | None:
        """Seconds left of the current stage."""
        if self.current is None:
            return None
        expected = self.expected.get(self.current.name)
        return self.current.seconds_left(self.clock(), expected)

    def estimate(self) -> Estimate:
        """How far the run is; the share that is done never shrinks, and is below 1 while the run continues."""
        stage_left, whole = self.stage_left(), sum(self.expected.values())
        if whole <= 0.0:
            return Estimate(None, None, stage_left)
        pace, done, left = self._pace(), 0.0, 0.0
        for name, seconds in self.expected.items():
            stage = self.stages.get(name)
            if stage is not None and stage is self.current:
                share = stage.done / stage.total if stage.total else 0.0
                left += stage_left or 0.0
            elif stage is not None or self._passed(name):
                share = 1.0
            else:
                spent = self._on_feature_sets() if name == FEATURES else 0.0
                share = min(spent / seconds, 1.0) if seconds else 1.0
                left += max(seconds * pace - spent, 0.0)
            done += seconds * share
        self._shown = max(self._shown, min(done / whole, 0.999))
        return Estimate(self._shown, left, stage_left)

    def _pace(self) -> float:
        """Observed time over expected time, near 1 until enough was observed."""
        now = self.clock()
        seen = planned = _DAMPING * sum(self.expected.values())
        for name, stage in self.stages.items():
            computed, seconds = stage.done - stage.resumed, self.expected.get(name, 0.0)
            if computed > 0 and stage.total > 0 and seconds > 0.0:
                seen += stage.seconds(now)
                planned += seconds * computed / stage.total
        return seen / planned if planned > 0.0 else 1.0

    def _passed(self, name: str) -> bool:
        """Whether a stage that has not begun is skipped: a later one has begun."""
        order = list(self.expected)
        return any(later in self.stages for later in order[order.index(name) + 1 :])

    def _on_feature_sets(self) -> float:
        """Seconds spent on sets of features, which are extracted one by one under their own names."""
        own = (*self.expected, *FIRST, *LAST)
        return sum(s.seconds(self.clock()) for name, s in self.stages.items() if name not in own)


def time_left(seconds: float) -> str:
    """``about 12 s left``, in a readable unit."""
    return f"{about(seconds)} left"


def clock_time(seconds_left: float, now: datetime | None = None) -> str:
    """Local time at which something ends, with the date if that is not today."""
    now = now or datetime.now().astimezone()
    if seconds_left > 1000 * 86400:
        return "in years"
    end = now + timedelta(seconds=seconds_left)
    return end.strftime("%H:%M" if end.date() == now.date() else "%Y-%m-%d %H:%M")


def _percent(estimate: Estimate) -> str:
    # Rounded down: only what is finished is 100 %.
    return "" if estimate.fraction is None else f"{int(100 * estimate.fraction)} %"


def _ends(estimate: Estimate) -> str:
    if estimate.seconds_left is None or estimate.fraction == 1.0:
        return ""
    return f"{time_left(estimate.seconds_left)}, ends {clock_time(estimate.seconds_left)}"


class _Shown(Reporter):
    """A reporter that shows the current stage and the estimate of the whole run."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._stage: StageProgress | None = None
        self._estimate: Estimate | None = None

    def stage(self, name: str, total: int) -> None:
        self._stage = StageProgress(name, total, self._clock())

    def advance(self, steps: int = 1) -> None:
        if self._stage is not None:
            self._stage.advance(steps, self._clock())
            self._show(self._stage)

    def resumed(self, n: int) -> None:
        if self._stage is not None:
            self._stage.resume(n)
            self._show(self._stage)

    def _show(self, stage: StageProgress) -> None:
        raise NotImplementedError

    def _stage_left(self, stage: StageProgress) -> str:
        if stage.done <= 0 or stage.done >= stage.total:
            return ""
        known = None if self._estimate is None else self._estimate.stage_left
        left = stage.seconds_left(self._clock()) if known is None else known
        return "" if left is None else time_left(left)


class _Bars(_Shown):
    """One bar for the current stage, and above it one for the whole run if its duration is known.

    Finished stages become lines if there is a bar for the whole run, and stay as bars if there is none.
    """

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress
        self._bar: TaskID | None = None
        self._overall: TaskID | None = None

    def stage(self, name: str, total: int) -> None:
        if self._overall is not None and self._bar is not None and self._stage is not None:
            self._progress.remove_task(self._bar)
            self.say(f"{self._stage.name}: {self._stage.done} in {self._stage.seconds(self._clock()):.0f} s")
        super().stage(name, total)
        self._bar = self._progress.add_task(plain(name), total=total, amount="0", left="")
        self._show(self._stage)

    def overall(self, estimate: Estimate) -> None:
        self._estimate = estimate
        if estimate.fraction is not None:
            shown: dict[str, Any] = {"amount": _percent(estimate), "left": _ends(estimate)}
            if self._overall is None:
                self._overall = self._progress.add_task("overall", total=1.0, **shown)
            self._progress.update(self._overall, completed=estimate.fraction, **shown)
        self._show(self._stage)

    def say(self, text: str) -> None:
        self._progress.console.print(Text(plain(text)))

    def _show(self, stage: StageProgress | None) -> None:
        if stage is not None and self._bar is not None:
            amount = f"{stage.done}/{stage.total}" if stage.total else str(stage.done)
            left = self._stage_left(stage)
            self._progress.update(self._bar, completed=stage.done, amount=amount, left=left)


class _Lines(_Shown):
    """One line at the start and end of a stage, and every few seconds in between."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        super().__init__(clock)
        self._console = console
        self._started = self._shown_at = clock()

    def stage(self, name: str, total: int) -> None:
        super().stage(name, total)
        self._print()

    def overall(self, estimate: Estimate) -> None:
        self._estimate = estimate
        if self._clock() - self._shown_at >= MOST_SECONDS_BETWEEN_LINES:
            self._print()

    def say(self, text: str) -> None:
        # No markup, no colour, and no line breaks at a width that a file does not have.
        self._console.print(plain(text), markup=False, highlight=False, emoji=False, soft_wrap=True)

    def _show(self, stage: StageProgress) -> None:
        now = self._clock()
        between = max(SECONDS_BETWEEN_LINES, (now - self._started) / _LINES)
        due = now - self._shown_at >= min(between, MOST_SECONDS_BETWEEN_LINES)
        if due or stage.done == stage.total:
            self._print()

    def _print(self) -> None:
        self._shown_at = now = self._clock()
        if (stage := self._stage) is None:
            return
        left = self._stage_left(stage)
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
        yield Reporter()
    elif console.is_terminal:

        def text(field: str) -> TextColumn:
            return TextColumn(f"{{task.{field}}}", markup=False, table_column=Column(no_wrap=True))

        columns = (
            text("description"),
            BarColumn(bar_width=None, table_column=Column(max_width=40)),
            text("fields[amount]"),
            TimeElapsedColumn(Column(no_wrap=True)),
            text("fields[left]"),
        )
        with Progress(*columns, console=console) as progress:
            yield _Bars(progress)
    else:
        yield _Lines(console)
