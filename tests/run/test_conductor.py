"""Stages of tasks: what is there is taken, what is damaged is made again, errors are collected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from lpact.analyses.base import Task
from lpact.errors import RunError
from lpact.math.ridge import Compute, RidgeGrid, nested_ridge
from lpact.math.splits import contiguous_folds
from lpact.run.conductor import MOST_SHOWN, Conductor
from lpact.run.executors.local import TaskFailure, perform
from lpact.run.progress import Reporter
from lpact.store import TaskStore


@dataclass(frozen=True)
class Add:
    """Adds one to what another task gave; ``needs`` are keys."""

    code: ClassVar[tuple[str, ...]] = ()

    name: str
    needs: tuple[str, ...] = ()
    broken: bool = False

    def run(self, workspace: Any, results: TaskStore) -> dict[str, pl.DataFrame]:
        if self.broken:
            raise RuntimeError(f"{self.name} is [bold]broken[/bold]")
        total = sum(results.load(key)["t"]["x"].item() for key in self.needs)
        return {"t": pl.DataFrame({"x": [total + 1]})}


def task(name: str, *needs: Task, broken: bool = False) -> Task:
    return Task(Add(name, tuple(t.key for t in needs), broken), f"key of {name}")


class Here:
    """Runs tasks one after the other, and remembers them."""

    workers = 1

    def __init__(self, results: TaskStore) -> None:
        self.results = results
        self.ran: list[str] = []

    def run(self, tasks: Iterator[Task]) -> Iterator[Any]:
        for one in tasks:
            self.ran.append(one.name)
            yield perform(one, None, self.results)  # type: ignore[arg-type]


class Told(Reporter):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[object, ...]] = []

    def stage(self, name: str, total: int) -> None:
        self.lines.append(("stage", name, total))

    def resumed(self, n: int) -> None:
        self.lines.append(("resumed", n))

    def finished(self, record: Any) -> None:
        self.lines.append(("finished", record.task))

    def failed(self, failure: TaskFailure) -> None:
        self.lines.append(("failed", failure.task))

    def note(self, event: str, **fields: str | float) -> None:
        self.lines.append((event, fields["task"], fields["key"]))


@pytest.fixture
def store(tmp_path: Path) -> TaskStore:
    return TaskStore(tmp_path)


def conductor(store: TaskStore) -> tuple[Conductor, Here, Told]:
    executor, told = Here(store), Told()
    return Conductor(store, executor, told), executor, told


def value(store: TaskStore, one: Task) -> int:
    return int(store.load(one.key)["t"]["x"].item())


def test_results_feed_later_stages_and_are_taken_next_time(store) -> None:
    a, b = task("a"), task("b")
    c = task("c", a, b)
    first, executor, told = conductor(store)
    first.run("one", [a, b])
    first.run("two", [c])
    first.check()
    assert executor.ran == ["a", "b", "c"]
    assert value(store, c) == 3
    assert told.lines == [
        ("stage", "one", 2),
        ("resumed", 0),
        ("finished", "a"),
        ("finished", "b"),
        ("stage", "two", 1),
        ("resumed", 0),
        ("finished", "c"),
    ]
    second, executor, told = conductor(store)
    d = task("d", c)
    second.run("one", [a, b])
    second.run("two", [c, d])
    assert executor.ran == ["d"]
    assert told.lines == [
        ("stage", "one", 2),
        ("resumed", 2),
        ("stage", "two", 2),
        ("resumed", 1),
        ("finished", "d"),
    ]


def test_a_damaged_result_is_named_and_made_again(store) -> None:
    a, b = task("a"), task("b")
    first, _, _ = conductor(store)
    first.run("one", [a, b])
    store.path(a.key).write_bytes(b"damaged")
    second, executor, told = conductor(store)
    second.run("one", [a, b])
    assert executor.ran == ["a"]
    assert ("damaged_result", "a", a.key) in told.lines
    assert value(store, a) == 1


class Rewritten(TaskStore):
    """A shared place, where another run puts a whole result the moment after a damaged one was looked at."""

    def fault(self, key: str) -> str | None:
        found = super().fault(key)
        if found:
            self.save(key, {"t": pl.DataFrame({"x": [41]})})
        return found


def test_a_result_that_another_run_has_just_mended_is_not_removed(tmp_path: Path) -> None:
    store = Rewritten(tmp_path)
    a = task("a", broken=True)
    store.path(a.key).parent.mkdir()
    store.path(a.key).write_bytes(b"damaged")
    one, executor, told = conductor(store)
    one.run("one", [a])
    assert ("damaged_result", "a", a.key) in told.lines
    assert executor.ran == ["a"]
    assert value(store, a) == 41


def test_errors_are_collected_and_who_needs_them_waits(store) -> None:
    good, bad = task("good"), task("bad", broken=True)
    waits, goes = task("waits", good, bad), task("goes", good)
    last = task("last", waits)
    one, executor, told = conductor(store)
    one.run("one", [bad, good])
    one.run("two", [waits, goes])
    one.run("three", [last])
    assert executor.ran == ["bad", "good", "goes"]
    assert ("failed", "bad") in told.lines
    with pytest.raises(RunError, match=r"1 task\(s\) failed, and the run is not published") as caught:
        one.check()
    said = str(caught.value)
    assert "[bad, key key of bad]" in said
    assert "RuntimeError: bad is [bold]broken[/bold]" in said
    assert "2 more waited for these" in said
    assert (store.fault(good.key), store.fault(goes.key)) == (None, None)
    assert (store.fault(bad.key), store.fault(waits.key), store.fault(last.key)) == ("", "", "")
    # Mended: what was missing is computed, and nothing else.
    mended = Task(Add("bad"), bad.key)
    two, executor, _ = conductor(store)
    two.run("one", [mended, good])
    two.run("two", [waits, goes])
    two.run("three", [last])
    two.check()
    assert executor.ran == ["bad", "waits", "last"]


def test_an_error_shows_the_first_failures_and_counts_the_rest(store) -> None:
    bad = [task(f"bad{i}", broken=True) for i in range(MOST_SHOWN + 3)]
    one, _, _ = conductor(store)
    one.run("one", bad)
    with pytest.raises(RunError, match=rf"{len(bad)} task\(s\) failed") as caught:
        one.check()
    assert "and 3 more" in str(caught.value)
    assert f"bad{MOST_SHOWN - 1} is" in str(caught.value)
    assert f"bad{MOST_SHOWN} is" not in str(caught.value)
    assert "`lpact status` lists the first failed tasks, log.jsonl has all" in str(caught.value)


@dataclass(frozen=True)
class Cramped:
    """A job whose readout has no room."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()

    name: str

    def run(self, workspace: Any, results: TaskStore) -> dict[str, pl.DataFrame]:
        rng = np.random.default_rng(0)
        design, responses = rng.normal(size=(60, 5)), rng.normal(size=(1, 60, 2))
        folds, grid = contiguous_folds(60, 3), RidgeGrid((1.0,))
        nested_ridge(design, responses, folds, grid, compute=Compute(memory_bytes=1000))
        raise AssertionError("it has room")


def test_one_cause_is_told_once_and_in_terms_of_the_study_file(store) -> None:
    one, _, _ = conductor(store)
    one.run("one", [Task(Cramped(f"readout/{i}"), f"key of {i}") for i in range(MOST_SHOWN + 3)])
    with pytest.raises(RunError, match=rf"{MOST_SHOWN + 3} task\(s\) failed") as caught:
        one.check()
    said = str(caught.value)
    assert "[readout/0, key key of 0]" in said
    assert f"[readout/{MOST_SHOWN - 1}, key key of {MOST_SHOWN - 1}]" in said
    assert "and 3 more with the same error:" in said
    assert said.count("option 'readout.memory_gib'") == 1
    assert said.count("9.31e-07") == 1  # the 1,000 bytes that were given, in GiB


def test_the_disks_errors_end_the_stage(store, monkeypatch) -> None:
    """No other task would fare better."""

    def full(*_: object) -> None:
        raise RunError("a file cannot be written", remedy="free disk space")

    monkeypatch.setattr("lpact.store.tasks.atomic_write_bytes", full)
    one, executor, _ = conductor(store)
    with pytest.raises(RunError, match="cannot be written"):
        one.run("one", [task("a"), task("b")])
    assert executor.ran == ["a"]
