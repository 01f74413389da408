"""What reaches the client from the cluster, in other threads: workers that are gone, tasks that ended, answers."""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass, field
from typing import Any

from lpact.run.executors.dask.ask import Fetch

TOGETHER_S = 1.0
"""Seconds for which answers are asked for together after the ones before: each question takes time."""


@dataclass(frozen=True)
class Death:
    """A worker that is gone. ``keys`` are what it was given and had not finished; ``expected``: it was told to go."""

    address: str
    keys: frozenset[str]
    expected: bool


@dataclass
class Arrived:
    """What has come since the last look. ``missing`` are keys whose answers are lost."""

    deaths: list[Death] = field(default_factory=list)
    ended: list[Any] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


class Inbox:
    """Gathers what comes; nothing that reads it waits for longer than it says."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._come: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._wanted: list[str] = []
        self._under_way: list[Fetch] = []
        self._asked_at = 0.0

    def open(self) -> None:
        """Hear of everything that happens on the cluster."""
        self._client.subscribe_topic("all", self._hear)

    def close(self) -> None:
        """Hear of nothing any more."""
        self.forget()
        if self._client.status == "running":
            self._client.unsubscribe_topic("all")

    def watch(self, future: Any) -> None:
        """Tell when a future has ended, once."""
        future.add_done_callback(self._come.put)

    def want(self, key: str) -> None:
        """Ask for an answer, with the next question."""
        self._wanted.append(key)

    def forget(self) -> None:
        """Ask for nothing any more."""
        self._wanted.clear()
        for fetch in self._under_way:
            fetch.cancel()
        self._under_way.clear()

    def read(self, seconds: float) -> Arrived:
        """What has come; nothing if that takes longer than some seconds."""
        self._ask()
        arrived = Arrived()
        try:
            self._sort(self._come.get(timeout=seconds), arrived)
            while True:
                self._sort(self._come.get_nowait(), arrived)
        except queue.Empty:
            return arrived

    def _sort(self, one: Any, arrived: Arrived) -> None:
        if isinstance(one, Death):
            arrived.deaths.append(one)
        elif not isinstance(one, Fetch):
            arrived.ended.append(one)
        elif one in self._under_way:
            self._under_way.remove(one)
            answers, missing = one.found()
            arrived.answers.update(answers)
            arrived.missing += sorted(missing)
            self._wanted += [k for k in one.keys if k not in answers and k not in missing]

    def _ask(self) -> None:
        """One question at a time, unless it takes long: then a worker that is lost does not hold up the others."""
        late = time.monotonic() - self._asked_at > TOGETHER_S
        if self._wanted and (late or not self._under_way):
            fetch = Fetch(self._client, self._wanted)
            self._wanted = []
            self._under_way.append(fetch)
            self._asked_at = time.monotonic()
            fetch.when_over(self._come.put)

    def _hear(self, event: tuple[float, Any]) -> None:
        """Called by Dask about everything that happens on the cluster."""
        told = event[1]
        if isinstance(told, dict) and told.get("action") == "remove-worker":
            keys = frozenset(told.get("processing-tasks", ()))
            self._come.put(Death(told.get("worker", ""), keys, bool(told.get("expected"))))
