"""Answers that are lost with their worker, and errors of workers: nothing hangs, and nothing finished is run again."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from cluster_jobs import Kept, Logged, Numbers, task
from dask_here import DaskHere, end

import lpact
from lpact.analyses.base import Task
from lpact.config import RunConfig
from lpact.errors import RunError
from lpact.inputs.workspace import Workspace
from lpact.run.executors.choose import open_executor
from lpact.run.executors.dask import client as on_dask
from lpact.run.executors.dask.client import OnDask
from lpact.run.executors.dask.handed import Handed, Waiting
from lpact.run.records import TaskFailure, TaskRecord
from lpact.store import TaskStore

pytestmark = pytest.mark.stress
distributed = pytest.importorskip("distributed", reason="tool missing: distributed")

STUDY = {
    "name": "nothing",
    "datasets": [{"name": "sim", "reader": "simulated"}],
    "models": [{"name": "integrated", "layers": [1]}],
}


def workspace(cluster: DaskHere, patience_s: float = 60.0) -> Workspace:
    settings = RunConfig(cluster=cluster.address, patience_s=patience_s)
    return Workspace(lpact.load_study(STUDY).config, settings)


def wait_for_workers(executor, n: int) -> None:
    end_by = time.monotonic() + 60
    while len(executor._crowd._fit) < n:
        assert time.monotonic() < end_by, "workers did not come in time"
        executor._crowd.refresh(now=True)
        time.sleep(0.05)


def before_the_first_answer(executor, act: Callable[[], None]) -> None:
    """Have something happen when an answer is asked for, at the last moment."""
    ask, done = executor._client.scheduler.gather, []

    async def gather(**question):
        if not done:
            done.append(True)
            act()
        return await ask(**question)

    executor._client.scheduler.gather = gather


def processes(log: Path) -> list[int]:
    return [int(line.split()[1]) for line in log.read_text().splitlines()]


def test_the_only_worker_dies_with_its_answer(tmp_path):
    """What it has kept is finished; for the rest there is nobody, and that is said."""
    ended, tasks = [], [task(Logged(str(tmp_path / "log"))), task(Numbers(1, 60.0))]

    def run_on(cluster: DaskHere) -> None:
        only, store = cluster.worker("only"), TaskStore.at(tmp_path / "s")
        with open_executor(workspace(cluster, 1.0), store, 1) as executor:
            before_the_first_answer(executor, lambda: end(only))
            ended.extend(executor.run(tasks))

    with (
        DaskHere(tmp_path / "dask") as cluster,
        pytest.raises(RunError, match="the cluster has no workers"),
    ):
        run_on(cluster)
    assert [(type(e), e.key) for e in ended] == [(TaskRecord, tasks[0].key)]


def test_what_is_kept_is_not_run_again(tmp_path):
    """A worker dies before it was asked for its answer; another one dies before it can give any."""
    log, store, lost = tmp_path / "log", TaskStore.at(tmp_path / "s"), list[Task]()
    one, kept = task(Logged(str(log))), task(Kept())
    with DaskHere(tmp_path / "dask") as cluster:
        cluster.worker("a", nanny=True)
        cluster.worker("b", nanny=True)
        with open_executor(workspace(cluster), store, 1, lost=lost.extend) as executor:
            wait_for_workers(executor, 2)
            before_the_first_answer(executor, lambda: os.kill(processes(log)[0], signal.SIGKILL))
            ended = [*executor.run([one]), *executor.run([kept])]
    assert [type(e) for e in ended] == [TaskRecord, TaskRecord]
    assert len(processes(log)) == 1
    assert lost == [kept], "a result that is there was not lost"
    assert all(store.fault(t.key) is None for t in (one, kept))


def test_an_answer_that_is_lost_is_made_again_and_waited_for_quietly(tmp_path, monkeypatch):
    log, store, lost, watched = tmp_path / "log", TaskStore.at(tmp_path / "s"), [], Counter()
    one = task(Logged(str(log)))
    watch = distributed.Future.add_done_callback

    def count(future, tell):
        watched[future.key] += 1
        watch(future, tell)

    monkeypatch.setattr(distributed.Future, "add_done_callback", count)
    with DaskHere(tmp_path / "dask") as cluster:
        first = cluster.worker("a")
        with open_executor(workspace(cluster), store, 1, lost=lost.extend) as executor:
            read = executor._inbox.read

            def lose(seconds):
                arrived = read(seconds)
                if arrived.ended and first.poll() is None:
                    end(first)
                    store.remove(one.key)
                    cluster.worker("b")
                    while arrived.ended[0].status == "finished":
                        time.sleep(0.01)
                    assert arrived.ended[0].status == "lost"
                return arrived

            executor._inbox.read = lose
            (ended,) = executor.run([one])
    assert isinstance(ended, TaskRecord)
    assert lost == [one]
    assert len(set(processes(log))) == 2
    assert set(watched.values()) == {1}, "a future that is lost ends at once, again and again"
    assert store.fault(one.key) is None


def test_nothing_is_handed_out_beside_a_suspect(monkeypatch):
    """Tasks that come back meanwhile wait: one that killed its worker would have the suspect given up."""
    suspect, other = task(Numbers(0)), task(Numbers(1))
    executor = object.__new__(OnDask)
    executor._crowd = SimpleNamespace(permitted=None, n_threads=2, somebody=lambda: "tcp://a:1")
    executor._handed, executor._waiting = {}, Waiting()
    monkeypatch.setattr(
        executor,
        "_submit",
        lambda tasks, bound, alone=False: executor._handed.update(
            {tasks[0].key: Handed(tasks, None, frozenset(bound or ()), alone, False)}
        ),
    )
    executor._waiting.put_back([suspect], alone=True)
    executor._hand_out()
    executor._waiting.put_back([other], alone=False)
    executor._hand_out()
    assert list(executor._handed) == [suspect.key]
    assert executor._handed.pop(suspect.key).bound == {"tcp://a:1"}
    executor._hand_out()
    assert list(executor._handed) == [other.key]


def test_an_odd_error_holds_up_no_other_task(tmp_path, monkeypatch):
    """One worker is at work all the while, and cannot be asked whether it is to blame."""
    log, flag, ended = str(tmp_path / "log"), tmp_path / "flag", []
    long, odd = task(Logged(log, 0, flag=str(flag))), task(Logged(log, 1))
    short = [task(Logged(log, n)) for n in range(2, 14)]
    pack = on_dask.packed
    monkeypatch.setattr(
        on_dask, "packed", lambda tasks: b"no pickle" if odd in tasks else pack(tasks)
    )
    with DaskHere(tmp_path / "dask") as cluster:
        cluster.worker("a")
        cluster.worker("b")
        with open_executor(workspace(cluster), TaskStore.at(tmp_path / "s"), 1) as executor:
            wait_for_workers(executor, 2)
            for one in executor.run([long, odd, *short]):
                ended.append(one)
                if {e.key for e in ended} >= {t.key for t in short}:
                    flag.touch()
    assert {e.key for e in ended if isinstance(e, TaskRecord)} == {t.key for t in [long, *short]}
    (failed,) = [e for e in ended if isinstance(e, TaskFailure)]
    assert failed.key == odd.key
    assert "UnpicklingError" in failed.what
