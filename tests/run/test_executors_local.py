"""Tasks in this process and in several: the same results, errors told, and processes that die are replaced."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

import lpact
from lpact.analyses.base import Task
from lpact.errors import LPactError, RunError
from lpact.inputs.workspace import Workspace
from lpact.run.executors import local
from lpact.run.executors.local import (
    MOST_DEATHS,
    InProcess,
    Processes,
    Setup,
    TaskFailure,
    TaskRecord,
    open_executor,
    scratch_results,
)
from lpact.store import MemoryTasks, TaskStore

STUDY = {
    "name": "executors",
    "datasets": [{"name": "sim", "reader": "simulated"}],
    "models": [{"name": "integrated", "layers": [1]}],
}


@dataclass(frozen=True)
class Act:
    """A job that does what its name says; ``folder`` is where it leaves marks."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()

    name: str
    folder: str

    def run(self, workspace: Workspace, results: Any) -> dict[str, pl.DataFrame]:
        act = self.name.partition(" ")[0]
        if act == "raise":
            raise ValueError(f"{self.name}: it is \x1b[31mred[/red]")
        if act == "refuse":
            raise LPactError("it is refused", where="a job", remedy="do not ask")
        if act == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        mark = Path(self.folder) / self.name
        if act == "once" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if act == "kept" and not mark.exists():
            # The result is kept, and the process dies before it can say so.
            mark.touch()
            results.save(key(self.name), frames(self.name))
            os.kill(os.getpid(), signal.SIGKILL)
        elif act == "kept":
            raise AssertionError("a result that was kept is computed again")
        assert workspace.config.name == "executors"
        return frames(self.name)


def key(name: str) -> str:
    return f"key of {name}"


def frames(name: str) -> dict[str, pl.DataFrame]:
    return {"t": pl.DataFrame({"name": [name]})}


@pytest.fixture(autouse=True)
def _jobs_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes find this module."""
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])]))


@pytest.fixture
def workspace() -> Workspace:
    return Workspace(lpact.load_study(STUDY).config)


@pytest.fixture
def store(tmp_path: Path) -> TaskStore:
    return TaskStore(tmp_path / "tasks")


def tasks(folder: Path, *names: str) -> list[Task]:
    return [Task(Act(name, str(folder)), key(name)) for name in names]


def test_the_way_is_chosen_by_workers_and_results(workspace, store) -> None:
    with open_executor(workspace, store, 1) as executor:
        assert isinstance(executor, InProcess)
    with open_executor(workspace, MemoryTasks(), 2) as executor:
        assert isinstance(executor, InProcess)
    with scratch_results() as results, open_executor(workspace, results, 1):
        folder = results.root  # type: ignore[attr-defined]
        results.save("k", {})
        assert folder.exists()
    assert not folder.exists()


def test_errors_are_told_and_the_others_go_on(workspace, store, tmp_path) -> None:
    ended = list(InProcess(workspace, store).run(tasks(tmp_path, "a", "raise", "refuse", "b")))
    assert [type(e) for e in ended] == [TaskRecord, TaskFailure, TaskFailure, TaskRecord]
    assert isinstance(ended[0], TaskRecord)
    assert isinstance(ended[1], TaskFailure)
    assert isinstance(ended[2], TaskFailure)
    assert ended[1].what == "ValueError: raise: it is \x1b[31mred[/red]"
    assert "Traceback" in ended[1].trace
    assert ended[1].key == key("raise")
    assert ended[2].what.startswith("it is refused")
    assert ended[0].n_bytes > 0
    assert ended[0].worker.endswith(f":{os.getpid()}")
    assert store.load(key("b"))["t"].equals(frames("b")["t"])
    assert store.fault(key("raise")) == ""


def test_an_interruption_is_no_error_of_a_task(workspace, store) -> None:
    class Stop(Act):
        def run(self, workspace: Workspace, results: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(InProcess(workspace, store).run([Task(Stop("stop", ""), "k")]))


@pytest.mark.slow
def test_processes_that_die_are_replaced_and_the_guilty_task_is_named(workspace, store, tmp_path) -> None:
    """One task always kills its process, one does so once, and one dies with its result already kept."""
    lost: list[list[str]] = []
    names = ["a", "b", "raise", "once", "kept", "c", "die", "d"]
    with Processes(workspace, store, 1, lambda dead: lost.append([t.name for t in dead])) as executor:
        ended = {e.task: e for e in executor.run(iter(tasks(tmp_path, *names)))}
    assert sorted(ended) == sorted(names)
    failed = {name: e for name, e in ended.items() if isinstance(e, TaskFailure)}
    assert set(failed) == {"raise", "die"}
    assert "worker processes die when they run this task alone" in failed["die"].what
    assert lost.count(["die"]) == MOST_DEATHS
    for name in names:
        expected = "" if name in failed else None
        assert store.fault(key(name)) == expected
    workers = {e.worker for e in ended.values() if isinstance(e, TaskRecord)}
    assert f":{os.getpid()}" not in "".join(workers)


@pytest.mark.slow
def test_workers_that_die_while_nothing_runs_are_replaced(workspace, store, tmp_path) -> None:
    """The task that comes next was never begun, and is not said to be lost."""
    lost: list[list[Task]] = []
    with Processes(workspace, store, 1, lost.append) as executor:
        (first,) = executor.run(iter(tasks(tmp_path, "a")))
        assert isinstance(first, TaskRecord)
        os.kill(int(first.worker.rpartition(":")[2]), signal.SIGKILL)
        end_by = time.monotonic() + 60
        while not executor._pool._broken:  # type: ignore[union-attr]
            assert time.monotonic() < end_by, "the death was not noticed"
            time.sleep(0.05)
        (second,) = executor.run(iter(tasks(tmp_path, "b")))
        assert isinstance(second, TaskRecord)
        assert second.worker != first.worker
    assert lost == [[]]
    assert not executor._deaths


def test_a_process_with_other_code_of_a_plugin_computes_nothing(workspace, store, tmp_path, monkeypatch) -> None:
    base = "lpact.run.executors.local.plugin_code"
    monkeypatch.setattr(base, lambda _: (("control mine", "a" * 64),))
    setup = Setup.of(workspace)
    monkeypatch.setattr(base, lambda _: (("control mine", "b" * 64),))
    monkeypatch.setattr(local, "_worker", [(workspace, store, setup.other_software())])
    with pytest.raises(RunError, match=f"control mine is {'b' * 16} there and {'a' * 16} here"):
        local._perform(tasks(tmp_path, "a")[0])
    assert store.fault(key("a")) == ""
