"""How far a run is and when it will end: the plan's estimate, corrected by the pace so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

from lpact.run.stages import FEATURES, FIRST, LAST

Clock = Callable[[], float]

_LATE = 0.1
"""Work that is overdue is expected to take this share of its waiting time still."""
_DAMPING = 0.02
"""Share of the whole expected time that must be seen before its pace counts for half."""


@dataclass(frozen=True)
class Estimate:
    """Share of the work that is done and seconds that are left; None where nothing is known yet.

    ``stage_left`` is what is left of the present stage.
    """

    fraction: float | None
    seconds_left: float | None
    stage_left: float | None = None


class StageProgress:
    """Counts and times of one stage. ``done`` includes what was ``resumed`` and what ``failed``.

    ``known_left`` is what is left according to the plan, if it is known.
    """

    def __init__(self, name: str, total: int, now: float) -> None:
        self.name = name
        self.total = total
        self.done = self.resumed = self.failed = 0
        self.known_left: float | None = None
        self._began = now
        self._before = 0.0
        self._last = 0.0
        self._ended: float | None = None

    def begin_again(self, total: int, now: float) -> None:
        """Start the same stage again; its time goes on."""
        self._before = self.seconds(now)
        self.total, self._began, self._last, self._ended = total, now, 0.0, None
        self.done = self.resumed = self.failed = 0

    def advance(self, steps: int, now: float) -> None:
        """Some steps are done."""
        self.done += steps
        self._last = now - self._began

    def end(self, now: float) -> None:
        """The stage is over."""
        if self._ended is None:
            self._ended = now

    @property
    def computed(self) -> int:
        """Steps that were done in this run."""
        return self.done - self.resumed

    @property
    def steps_left(self) -> int:
        """Steps that are not done; never negative, whatever the total was said to be."""
        return max(self.total - self.done, 0)

    def seconds(self, now: float) -> float:
        """Time spent in the stage."""
        return self._before + (now if self._ended is None else self._ended) - self._began

    def step_seconds(self, expected: float | None = None, weight: int = 1) -> float | None:
        """Time of one step: what was seen, and what was ``expected`` as if ``weight`` steps had shown it."""
        if expected is not None:
            return (self._last + weight * expected) / (self.computed + weight)
        return self._last / self.computed if self.computed > 0 else None

    def seconds_left(self, now: float, step: float | None) -> float | None:
        """Time that is left when a step takes ``step``, less what has passed since the last one."""
        if self.steps_left == 0:
            return 0.0
        if step is None:
            return None
        waited = max(now - self._began - self._last, 0.0)
        return max(step * self.steps_left - waited, _LATE * waited)


class ProgressModel:
    """Overall progress of a run.

    ``expected`` holds the seconds of whole stages, as wall time with ``workers`` processes. Stages are weighed by it;
    the pace of what was computed in this run corrects it. What was resumed counts as done and not as fast.
    """

    def __init__(
        self, expected: Mapping[str, float], *, workers: int = 1, clock: Clock = time.monotonic
    ) -> None:
        self.clock = clock
        self.expected = {
            name: float(value)
            for name, value in expected.items()
            if value >= 0.0 and isfinite(value)
        }
        self.stages: dict[str, StageProgress] = {}
        self.current: StageProgress | None = None
        self._workers = max(workers, 1)
        self._shown = 0.0

    def stage(self, name: str, total: int) -> StageProgress:
        """A stage begins, and the one before ends."""
        now = self.clock()
        self.end_stage()
        if name in self.stages:
            self.stages[name].begin_again(total, now)
        else:
            self.stages[name] = StageProgress(name, total, now)
        self.current = self.stages[name]
        return self.current

    def end_stage(self) -> None:
        """The present stage ends."""
        if self.current is not None:
            self.current.end(self.clock())
            self.current = None

    def advance(self, steps: int = 1) -> None:
        """Some steps of the stage are done."""
        if self.current is not None:
            self.current.advance(steps, self.clock())

    def resumed(self, n: int) -> None:
        """Some steps of the stage were done by an earlier run."""
        if self.current is not None:
            self.current.done += n
            self.current.resumed += n

    def estimate(self) -> Estimate:
        """How far the run is. The share that is done never shrinks, and is less than 1 while a run goes on."""
        now = self.clock()
        whole, left = self._planned(now)
        if self.current is not None and not self._is_feature_set(self.current.name):
            own_whole, own_left = self._present(self.current, now)
            if own_left is None:
                return Estimate(self._shown if self.expected else None, None)
            whole, left = whole + own_whole, left + own_left
        if not self.expected:
            return Estimate(None, None)
        if whole > 0.0:
            self._shown = max(self._shown, min(1.0 - left / whole, 0.999))
        return Estimate(self._shown, left)

    def _planned(self, now: float) -> tuple[float, float]:
        """Whole time and time left of all stages but the present one."""
        pace = self._pace(now)
        whole = left = 0.0
        for name, expected in self.expected.items():
            stage = self.stages.get(name)
            if stage is None and not self._passed(name):
                spent, at_least = self._feature_sets(now) if name == FEATURES else (0.0, 0.0)
                to_come = max(expected * pace - spent, at_least)
                whole += spent + to_come
                left += to_come
            elif stage is not None and stage is not self.current:
                whole += self._whole(stage, expected * pace, now)
        return whole, left

    def _present(self, stage: StageProgress, now: float) -> tuple[float, float | None]:
        """Whole time and time left of the present stage."""
        step = self.step_seconds(stage, now)
        left = stage.seconds_left(now, step)
        if left is None and self.expected and stage.name not in self.expected:
            # A short stage that plans leave out.
            left = 0.0
        return max((step or 0.0) * stage.total, left or 0.0), left

    def step_seconds(self, stage: StageProgress, now: float) -> float | None:
        """Time of one step of the present stage."""
        expected = self.expected.get(stage.name)
        if expected is None or stage.total <= 0:
            return stage.step_seconds()
        pace = self._pace(now, without=stage)
        return stage.step_seconds(expected * pace / stage.total, self._workers)

    def _whole(self, stage: StageProgress, expected: float, now: float) -> float:
        """Time of a finished stage as if nothing had been resumed, so that its weight is that of its work."""
        if stage.resumed == 0:
            return stage.seconds(now)
        if stage.computed <= 0:
            return expected
        return stage.seconds(now) * stage.done / stage.computed

    def _pace(self, now: float, without: StageProgress | None = None) -> float:
        """Seen time by expected time, near 1 until enough has been seen."""
        total = sum(self.expected.values())
        seen = planned = _DAMPING * total
        for name, stage in self.stages.items():
            expected = self.expected.get(name, 0.0)
            if stage is without or expected <= 0.0 or stage.total <= 0 or stage.computed <= 0:
                continue
            step = stage.step_seconds() if stage is self.current else None
            seen += stage.seconds(now) if step is None else step * stage.computed
            planned += expected * stage.computed / stage.total
        return seen / planned if planned > 0.0 else 1.0

    def _passed(self, name: str) -> bool:
        """Whether a stage that has not begun will not come any more: a later one has begun."""
        order = list(self.expected)
        return any(stage in self.stages for stage in order[order.index(name) + 1 :])

    def _is_feature_set(self, name: str) -> bool:
        """Whether a stage is part of a planned one: feature sets are extracted one by one, under their own names."""
        return FEATURES in self.expected and name not in (*self.expected, *FIRST, *LAST)

    def _feature_sets(self, now: float) -> tuple[float, float]:
        """Time spent on feature sets, and what the present one takes still."""
        sets = [stage for name, stage in self.stages.items() if self._is_feature_set(name)]
        spent = sum(stage.seconds(now) for stage in sets)
        if self.current is None or self.current not in sets:
            return spent, 0.0
        return spent, self.current.seconds_left(now, self.current.step_seconds()) or 0.0
