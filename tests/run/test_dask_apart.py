"""Workers that do not share the client's file system.

They run in a mount namespace of their own, in which other file systems lie over the client's folders: the same paths,
other files, as on another machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster_jobs import Logged, Numbers, Total, task
from dask_here import DaskHere

import lpact
from dataset_writers.arrays import write_arrays
from lpact.config import RunConfig
from lpact.errors import RunError
from lpact.inputs.workspace import Workspace
from lpact.run.executors.local import InProcess, TaskFailure, TaskRecord, open_executor
from lpact.store import TaskStore

pytestmark = pytest.mark.stress
pytest.importorskip("distributed", reason="tool missing: distributed")

NUMBERS = [task(Numbers(i)) for i in range(12)]
TOTAL = task(Total(tuple(t.key for t in NUMBERS)))
MODEL = {"name": "integrated", "layers": [1]}


@dataclass
class Apart:
    """A cluster with one worker, which sees nothing of ``hidden`` and another copy of ``changed``."""

    cluster: DaskHere
    root: Path

    def settings(self, **more) -> RunConfig:
        features = str(self.root / "hidden" / "features")
        return RunConfig(cluster=self.cluster.address, patience_s=60.0, features=features, **more)

    def workspace(self, data: str = "", model=MODEL) -> Workspace:
        dataset = {"name": "mine", "reader": "arrays" if data else "simulated"}
        study = {"name": "nothing", "datasets": [dataset], "models": [model]}
        paths = {"mine": str(self.root / data)} if data else {}
        return Workspace(
            lpact.load_study({**study, "run": {"paths": paths}}).config,
            self.settings(paths=paths),
        )


@pytest.fixture(scope="module")
def apart(tmp_path_factory) -> Iterator[Apart]:
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("tool missing: unshare (or the right to mount)")
    root = tmp_path_factory.mktemp("apart")
    for name in ("hidden/features", "hidden/results"):
        (root / name).mkdir(parents=True)
    (root / "hidden" / "features" / "one").write_text("of the client alone")
    write_arrays(root / "same", formats=["npy"])
    write_arrays(root / "changed", formats=["npy"])
    for name in ("same", "changed"):
        shutil.copytree(root / name, root / f"copy-of-{name}")
    words = root / "copy-of-changed" / "talk.csv"
    words.write_text(words.read_text().replace("word1", "Word1", 1))
    mounts = f"mount --bind {root}/copy-of-same {root}/same && mount --bind {root}/copy-of-changed {root}/changed"
    with DaskHere(root / "dask") as cluster:
        cluster.worker("far", before=hiding(root / "hidden", mounts))
        yield Apart(cluster, root)


def hiding(folder: Path, *more: str) -> tuple[str, ...]:
    """What a command is run by that sees nothing of a folder."""
    mounts = " && ".join([f"mount -t tmpfs none {folder}", *more, 'exec "$@"'])
    return ("unshare", "-m", "sh", "-c", mounts, "sh")


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, bytes]:
    """Results of an undisturbed run in this process, by name."""
    store = TaskStore(tmp_path_factory.mktemp("here"))
    here = InProcess(Workspace(lpact.load_study({**STUDY}).config), store)
    assert len([*here.run(NUMBERS), *here.run([TOTAL])]) == 13
    return files(store.root)


STUDY = {
    "name": "nothing",
    "datasets": [{"name": "sim", "reader": "simulated"}],
    "models": [MODEL],
}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_results_come_back_through_the_scheduler(apart, expected):
    store = TaskStore(apart.root / "hidden" / "results")
    with open_executor(apart.workspace(), store, 1) as executor:
        ended = [*executor.run(NUMBERS), *executor.run([TOTAL])]
    assert all(isinstance(e, TaskRecord) for e in ended)
    assert files(store.root) == expected


def test_a_copy_of_the_sources_must_be_the_same(apart):
    store = TaskStore(apart.root / "hidden" / "results")
    with open_executor(apart.workspace("same"), store, 1) as executor:
        assert [type(e) for e in executor.run(NUMBERS[:1])] == [TaskRecord]
    with pytest.raises(RunError) as error, open_executor(apart.workspace("changed"), store, 1):
        pass
    told = str(error.value)
    assert "worker tcp://" in told
    assert "a file of dataset 'mine' has changed since the audit" in told
    assert str(apart.root / "changed") in told


def test_features_must_be_complete_on_the_worker(apart):
    pytest.importorskip("transformers", reason="tool missing: transformers")
    model = {
        "name": "tiny",
        "source": "transformers",
        "layers": [1],
        "options": {"model": "lpact-tiny"},
    }
    store = TaskStore(apart.root / "hidden" / "results")
    with (
        pytest.raises(RunError, match=r"features of model 'tiny' .* are not complete in .*hidden"),
        open_executor(apart.workspace("same", model), store, 1),
    ):
        pass


def test_a_worker_that_is_killed_loses_nothing_of_the_others(apart, tmp_path):
    slow = [task(Numbers(i, 0.3)) for i in range(20)]
    total = task(Total(tuple(t.key for t in slow)))
    here = TaskStore(tmp_path / "here")
    done = InProcess(Workspace(lpact.load_study(STUDY).config), here)
    assert len([*done.run(slow), *done.run([total])]) == 21
    (tmp_path / "there").mkdir()
    there, lost, ended = TaskStore(tmp_path / "there"), [], []
    with DaskHere(tmp_path / "dask") as cluster:
        for name in ("one", "two"):
            cluster.worker(name, before=hiding(there.root))
        settings = RunConfig(cluster=cluster.address, patience_s=60.0)
        workspace = Workspace(lpact.load_study(STUDY).config, settings)
        with open_executor(workspace, there, 1, lost=lost.extend) as executor:
            until(lambda: _both_are_fit(executor))
            for one in executor.run(slow):
                ended.append(one)
                if len(ended) == 5:
                    os.kill(int(one.worker.rpartition(":")[2]), signal.SIGKILL)
            ended += executor.run([total])
    assert all(isinstance(e, TaskRecord) for e in ended)
    assert sorted(e.key for e in ended) == sorted(t.key for t in [*slow, total])
    assert lost
    assert files(there.root) == files(here.root)


@pytest.fixture(scope="module")
def lonely(apart, tmp_path_factory) -> Iterator[tuple[Workspace, TaskStore]]:
    """One worker that does not see the results and is started again when it dies; a result that tasks may need."""
    folder = tmp_path_factory.mktemp("lonely")
    (folder / "results").mkdir()
    store = TaskStore(folder / "results")
    config = lpact.load_study(STUDY).config
    assert len(list(InProcess(Workspace(config), store).run(NUMBERS[:1]))) == 1
    with DaskHere(folder / "dask") as cluster:
        cluster.worker("far", before=hiding(store.root), nanny=True)
        yield Workspace(config, RunConfig(cluster=cluster.address, patience_s=60.0)), store


def test_the_last_worker_may_die_and_come_back(lonely, tmp_path):
    workspace, store = lonely
    log, flag, lost = tmp_path / "log", tmp_path / "flag", []
    one = task(Logged(str(log), needs=(NUMBERS[0].key,), flag=str(flag)))

    def kill() -> None:
        until(log.exists)
        os.kill(int(log.read_text().split()[1]), signal.SIGKILL)
        flag.touch()

    with open_executor(workspace, store, 1, lost=lost.extend) as executor:
        killing = threading.Thread(target=kill)
        killing.start()
        (ended,) = executor.run([one])
        killing.join()
    assert isinstance(ended, TaskRecord)
    assert lost == [one]
    assert len(log.read_text().splitlines()) == 2


def test_a_task_that_kills_every_worker_is_given_up_though_it_is_sent_what_it_needs(lonely, tmp_path):
    workspace, store = lonely
    log, lost = tmp_path / "log", []
    deadly = task(Logged(str(log), needs=(NUMBERS[0].key,), deadly=True))
    with open_executor(workspace, store, 1, lost=lost.extend) as executor:
        (ended,) = executor.run([deadly])
    assert isinstance(ended, TaskFailure)
    assert "the last while the task ran alone" in ended.what
    # Two that Dask allows here, and the one of its own; each is told of once.
    assert len(log.read_text().splitlines()) == 3
    assert lost == [deadly] * 3


def _both_are_fit(executor) -> bool:
    executor._refresh(now=True)
    return len(executor._fit) == 2


def until(true, seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end_by = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end_by, "it did not happen in time"
        time.sleep(0.05)
