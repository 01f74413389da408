"""Times of two contenders, taken in turns so that a machine's moods hit both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class Seconds:
    """Time on the wall, and of the processor: with one thread the same, but for other work on the machine."""

    wall: float
    cpu: float

    def times(self, factor: float) -> Seconds:
        """As many times as long."""
        return Seconds(self.wall * factor, self.cpu * factor)


@dataclass(frozen=True)
class Timed(Generic[A, B]):
    """Medians of both, and what the last runs returned."""

    ours: Seconds
    peer: Seconds
    our_result: A
    peer_result: B


def stopwatch(work: Callable[[], A]) -> tuple[Seconds, A]:
    """Time that ``work`` takes, and its result."""
    wall, cpu = perf_counter(), process_time()
    result = work()
    return Seconds(perf_counter() - wall, process_time() - cpu), result


def middle(times: list[Seconds]) -> Seconds:
    """Medians."""
    return Seconds(median(t.wall for t in times), median(t.cpu for t in times))


def in_turns(ours: Callable[[], A], peer: Callable[[], B], repeats: int) -> Timed[A, B]:
    """Run both ``repeats`` times, one after the other, and take medians."""
    our_times, peer_times = [], []
    for _ in range(repeats):
        seconds, our_result = stopwatch(ours)
        our_times.append(seconds)
        seconds, peer_result = stopwatch(peer)
        peer_times.append(seconds)
    return Timed(middle(our_times), middle(peer_times), our_result, peer_result)
