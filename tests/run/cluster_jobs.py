"""Small jobs for tests of executors; workers of a cluster import them too."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl

from lpact.analyses.base import Task
from lpact.validation import json_digest


@dataclass(frozen=True)
class Numbers:
    """Numbers that depend on BLAS, from a seed."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()

    seed: int
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return f"numbers/{self.seed}"

    def run(self, workspace, results):
        time.sleep(self.seconds)
        values = np.random.default_rng(self.seed).normal(size=(40, 40))
        return {"numbers": pl.DataFrame({"value": (values @ values.T).sum(axis=0)})}


@dataclass(frozen=True)
class Total:
    """The sum of others' numbers."""

    code: ClassVar[tuple[str, ...]] = ()

    needs: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"total/{len(self.needs)}"

    def run(self, workspace, results):
        parts = [results.load(key, ["numbers"])["numbers"]["value"].sum() for key in self.needs]
        return {"total": pl.DataFrame({"total": [sum(parts)]})}


@dataclass(frozen=True)
class Deadly:
    """Kills its process, as the system does when memory is short: always, or while ``flag`` does not exist."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()

    flag: str = ""

    @property
    def name(self) -> str:
        return "deadly/once" if self.flag else "deadly/always"

    def run(self, workspace, results):
        if not self.flag or not Path(self.flag).exists():
            if self.flag:
                Path(self.flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"numbers": pl.DataFrame({"value": [1.0]})}


@dataclass(frozen=True)
class Logged:
    """Adds a line with its process to a file, then takes some time, and sums up what it ``needs``.

    ``flag``: it waits for that file, for as long as a test may take. ``deadly``: it kills its process at last.
    """

    code: ClassVar[tuple[str, ...]] = ()

    log: str
    number: int = 0
    seconds: float = 0.0
    needs: tuple[str, ...] = ()
    flag: str = ""
    deadly: bool = False

    @property
    def name(self) -> str:
        return f"logged/{self.number}"

    def run(self, workspace, results):
        with Path(self.log).open("a") as log:
            log.write(f"{self.number} {os.getpid()}\n")
        end_by = time.monotonic() + 60
        while self.flag and not Path(self.flag).exists():
            assert time.monotonic() < end_by, "nobody has raised the flag"
            time.sleep(0.05)
        time.sleep(self.seconds)
        if self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        parts = [results.load(key, ["numbers"])["numbers"]["value"].sum() for key in self.needs]
        return {"numbers": pl.DataFrame({"value": [float(self.number), *parts]})}


@dataclass(frozen=True)
class Wrong:
    """Raises an error."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        return "wrong/one"

    def run(self, workspace, results):
        raise ValueError("planted")


@dataclass(frozen=True)
class Threads:
    """How many threads the libraries of a worker use."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        return "threads/one"

    def run(self, workspace, results):
        from threadpoolctl import threadpool_info

        rows = [(p["user_api"], p["num_threads"]) for p in threadpool_info()]
        return {"threads": pl.DataFrame(rows, schema=["api", "n"], orient="row")}


def task(job):
    """A task whose key is of the job alone."""
    return Task(job, json_digest([type(job).__name__, vars(job)]))
