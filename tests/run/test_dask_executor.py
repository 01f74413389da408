"""Tasks on a real scheduler and real workers: the same bytes, whatever is lost on the way."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_jobs import Deadly, Logged, Numbers, Threads, Total, Wrong, task
from dask_here import DaskHere, end

import lpact
from lpact.config import RunConfig
from lpact.errors import ConfigError, RunError
from lpact.inputs.workspace import Workspace
from lpact.run.executors import cluster as clusters
from lpact.run.executors.local import (
    InProcess,
    TaskFailure,
    TaskRecord,
    open_executor,
    too_many_workers,
)
from lpact.store import TaskStore
from lpact.study import Study

pytestmark = pytest.mark.stress
pytest.importorskip("distributed", reason="tool missing: distributed")

STUDY = {
    "name": "nothing",
    "datasets": [{"name": "sim", "reader": "simulated"}],
    "models": [{"name": "integrated", "layers": [1]}],
}
NUMBERS = [task(Numbers(i)) for i in range(30)]
TOTAL = task(Total(tuple(t.key for t in NUMBERS)))


def workspace(address: str = "", **settings) -> Workspace:
    return Workspace(lpact.load_study(STUDY).config, RunConfig(cluster=address, patience_s=60.0, **settings))


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but a run's log, which tells of times and machines."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "log.jsonl"
    }


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, bytes]:
    """Results of an undisturbed run in this process."""
    store = TaskStore(tmp_path_factory.mktemp("here"))
    here = InProcess(workspace(), store)
    ended = [*here.run(NUMBERS), *here.run([TOTAL])]
    assert all(isinstance(e, TaskRecord) for e in ended)
    return files(store.root)


@pytest.fixture(scope="module")
def dask(tmp_path_factory) -> Iterator[DaskHere]:
    """A scheduler and two workers that are started again when they die; one has two threads."""
    with DaskHere(tmp_path_factory.mktemp("dask")) as cluster:
        cluster.worker("a", nanny=True)
        cluster.worker("b", "--nthreads=2", nanny=True)
        yield cluster


class Told:
    """What an executor tells."""

    def __init__(self) -> None:
        self.lost_tasks: list[str] = []
        self.notes: list[tuple[str, dict]] = []

    def lost(self, tasks) -> None:
        self.lost_tasks += [t.name for t in tasks]

    def note(self, event, **fields) -> None:
        self.notes.append((event, fields))

    @property
    def events(self) -> set[str]:
        return {event for event, _ in self.notes}


def test_results_are_those_of_this_process(dask, expected, tmp_path):
    store = TaskStore(tmp_path)
    with open_executor(workspace(dask.address), store, 1) as executor:
        assert executor.workers >= 1
        ended = [*executor.run(NUMBERS), *executor.run([TOTAL])]
    assert {e.task for e in ended if isinstance(e, TaskRecord)} == {t.name for t in [*NUMBERS, TOTAL]}
    assert all(not e.worker.endswith(f":{os.getpid()}") for e in ended)
    assert files(tmp_path) == expected


def test_each_task_has_one_thread_and_an_error_is_its_own(dask, tmp_path):
    store = TaskStore(tmp_path)
    with open_executor(workspace(dask.address), store, 1) as executor:
        ended = list(executor.run([task(Wrong()), task(Threads()), NUMBERS[0]]))
    (failed,) = [e for e in ended if isinstance(e, TaskFailure)]
    assert failed.task == "wrong/one"
    assert failed.key == task(Wrong()).key
    assert "planted" in failed.what
    assert len(ended) == 3
    threads = store.load(task(Threads()).key)["threads"]
    assert set(threads["n"]) == {1}


def test_a_worker_that_is_killed_loses_nothing(dask, tmp_path):
    slow = [task(Numbers(i, 0.1)) for i in range(30)]
    here = TaskStore(tmp_path / "here")
    assert len(list(InProcess(workspace(), here).run(slow))) == 30
    told, ended = Told(), []
    there = TaskStore(tmp_path / "there")
    with open_executor(workspace(dask.address), there, 1, lost=told.lost, note=told.note) as executor:
        for one in executor.run(slow):
            ended.append(one)
            if len(ended) == 5:
                os.kill(int(one.worker.rpartition(":")[2]), signal.SIGKILL)
    assert all(isinstance(e, TaskRecord) for e in ended)
    assert sorted(e.key for e in ended) == sorted(t.key for t in slow)
    assert told.lost_tasks
    assert files(there.root) == files(here.root)


def test_a_scheduler_that_dies_ends_the_run_and_keeps_what_is_finished(tmp_path):
    slow = [task(Numbers(i, 0.1)) for i in range(30)]
    store = TaskStore(tmp_path / "s")

    def run_on(dask: DaskHere) -> None:
        with open_executor(workspace(dask.address), store, 1) as executor:
            for n_ended, _ in enumerate(executor.run(slow), start=1):
                if n_ended == 3:
                    end(dask.processes[0])

    with DaskHere(tmp_path / "dask") as dask:
        dask.worker("a")
        with pytest.raises(RunError, match="scheduler of the cluster is gone"):
            run_on(dask)
    assert 3 <= sum(store.fault(t.key) is None for t in slow) < 30


def test_a_task_that_kills_its_workers_is_given_up_alone(dask, tmp_path):
    told = Told()
    deadly = task(Deadly())
    once = task(Deadly(str(tmp_path / "flag")))
    with open_executor(
        workspace(dask.address), TaskStore(tmp_path / "s"), 1, lost=told.lost, note=told.note
    ) as executor:
        ended = list(executor.run([*NUMBERS[:3], deadly, once, *NUMBERS[3:6]]))
    failed = [e for e in ended if isinstance(e, TaskFailure)]
    assert [(f.task, f.key) for f in failed] == [(deadly.name, deadly.key)]
    assert "memory" in failed[0].what
    assert {e.key for e in ended} == {t.key for t in [*NUMBERS[:6], deadly, once]}
    assert told.lost_tasks.count(deadly.name) > 1


def test_a_worker_with_other_code_is_refused(dask, expected, tmp_path):
    package = Path(lpact.__file__).parent
    shutil.copytree(package, tmp_path / "src" / "lpact", ignore=shutil.ignore_patterns("*.pyc"))
    changed = tmp_path / "src" / "lpact" / "codes.py"
    changed.write_text(changed.read_text() + "\n# changed\n")
    path = f"{tmp_path / 'src'}{os.pathsep}{Path(__file__).parent}"
    told, ended, seen = Told(), [], time.monotonic() + 60
    store = TaskStore(tmp_path / "s")
    with open_executor(workspace(dask.address), store, 1, note=told.note) as executor:
        other = dask.worker("changed", env={"PYTHONPATH": path})
        ended += executor.run(NUMBERS[:10])
        while "worker_refused" not in told.events and time.monotonic() < seen:
            ended += executor.run([task(Numbers(1000 + len(ended), 0.2))])
        ended += [*executor.run(NUMBERS[10:]), *executor.run([TOTAL])]
    # One that comes late is left out, and the others go on.
    assert all(isinstance(e, TaskRecord) for e in ended)
    assert expected.items() <= files(tmp_path / "s").items()
    (fields,) = [f for event, f in told.notes if event == "worker_refused"]
    assert "lpact's code is" in fields["what"]
    # One that is there from the start is an error that names it, and both versions.
    with (
        pytest.raises(RunError, match=r"worker tcp://.*lpact's code is \w+ there .* and \w+ here"),
        open_executor(workspace(dask.address), store, 1),
    ):
        pass
    end(other)


CLIENT = """
import sys
sys.path.insert(0, {here!r})
from cluster_jobs import Numbers, task
from test_dask_executor import workspace
from lpact.run.conductor import Conductor
from lpact.run.executors.local import open_executor
from lpact.run.progress import Reporter
from lpact.store import TaskStore
from pathlib import Path

store = TaskStore(Path({store!r}))
with open_executor(workspace({address!r}), store, 1) as executor:
    conductor = Conductor(store, executor, Reporter())
    conductor.run("numbers", [task(Numbers(i, 0.15)) for i in range(60)])
"""


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_client_leaves_nothing_running_and_is_resumed(dask, tmp_path, kind):
    from distributed import Client

    wanted = [task(Numbers(i, 0.15)) for i in range(60)]
    script = CLIENT.format(here=str(Path(__file__).parent), store=str(tmp_path), address=dask.address)
    client = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(list(tmp_path.rglob("*.task"))) > 5)
        client.send_signal(kind)
        assert client.wait(30) != 0
    finally:
        client.kill()
    with Client(dask.address, set_as_default=False) as looking:
        until(lambda: not any(looking.processing().values()))
    done = {path.name for path in tmp_path.rglob("*.task")}
    assert len(done) < 60
    store = TaskStore(tmp_path)
    left = [t for t in wanted if store.fault(t.key) is not None]
    assert len(left) == 60 - len(done)
    with open_executor(workspace(dask.address), store, 1) as executor:
        assert {e.key for e in executor.run(left)} == {t.key for t in left}
    assert all(store.fault(t.key) is None for t in wanted)


def test_a_whole_study_gives_the_same_run(dask, tmp_path, tiny_study):
    options = {"n_subjects": 2, "n_runs": 1, "n_stories": 3, "sentences_per_story": 6, "n_units": 6}
    study = lpact.load_study(
        tiny_study(
            datasets=[{"name": "sim", "reader": "simulated", "options": options}],
            models=[{"name": "integrated", "layers": [1, 2]}],
            controls={"draws": 1, "include": ["circular_shift"]},
            mechanisms={"include": ["surprisal", "context_update"]},
            lpact={"stripping": {"methods": ["feature_zeroing"]}},
        )
    )
    here = study.run(tmp_path / "here", progress=False)
    settings = RunConfig(cluster=dask.address, progress=False)
    there = Study.of(study.config, settings).run(tmp_path / "there")
    assert files(there.root) == files(here.root)
    assert (there.root / "log.jsonl").read_text().count("task_finished") == 2 + 4 + 1


def test_no_workers_is_told_and_then_an_error(tmp_path):
    told = Told()
    with DaskHere(tmp_path / "dask") as empty:
        settings = RunConfig(cluster=empty.address, patience_s=0.5)
        place = Workspace(lpact.load_study(STUDY).config, settings)
        with (
            pytest.raises(RunError, match="no workers") as error,
            open_executor(place, TaskStore(tmp_path / "s"), 1, note=told.note),
        ):
            pass
    assert "patience_s" in str(error.value)
    assert told.events == {"no_workers"}
    assert files(tmp_path / "s") == {}


def test_a_scheduler_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT_S", 0.5)
    with (
        pytest.raises(RunError, match="cannot be reached"),
        open_executor(workspace("tcp://127.0.0.1:9"), TaskStore(tmp_path), 1),
    ):
        pass


def test_a_port_that_is_no_scheduler_ends_with_the_reason(tmp_path, monkeypatch):
    """Something that accepts connections and says nothing: a Dask client alone would wait for ever."""
    monkeypatch.setattr(clusters, "CONNECT_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with (
            pytest.raises(RunError, match="cannot be reached") as error,
            open_executor(workspace(address), TaskStore(tmp_path), 1),
        ):
            pass
    assert time.monotonic() - began < 20
    assert error.value.got == "no scheduler that answers within 1 s"


@pytest.mark.parametrize("answer", [bytes(64), b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n"])
def test_a_port_that_answers_otherwise_ends_with_the_reason(answer, tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT_S", 1.0)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = server.accept()
                peer.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        with (
            pytest.raises(RunError, match="cannot be reached"),
            open_executor(workspace(f"tcp://127.0.0.1:{server.getsockname()[1]}"), TaskStore(tmp_path), 1),
        ):
            pass


def test_a_missing_package_is_named_with_its_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ConfigError, match=r"pip install 'lpact\[dask\]'"),
        open_executor(workspace("tcp://127.0.0.1:9"), TaskStore(tmp_path), 1),
    ):
        pass


def test_more_workers_than_cores_are_told():
    n_cores = len(os.sched_getaffinity(0))
    assert too_many_workers(n_cores) == ""
    assert f"{n_cores + 1} workers on {n_cores} core" in too_many_workers(n_cores + 1)


def processes(log: Path) -> list[int]:
    return [int(line.split()[1]) for line in log.read_text().splitlines()]


def test_an_answer_that_is_lost_with_its_worker(tmp_path, monkeypatch):
    """A worker dies after its task ended and before the client fetched the answer."""
    monkeypatch.setattr(clusters, "ANSWER_S", 1.0)
    log, store = tmp_path / "log", TaskStore(tmp_path / "s")
    one = task(Logged(str(log)))
    with DaskHere(tmp_path / "dask") as cluster:
        first = cluster.worker("a")
        with open_executor(workspace(cluster.address), store, 1) as executor:
            arrived = executor._arrived

            def lose():
                for event in arrived():
                    if not isinstance(event, dict) and first.poll() is None:
                        end(first)
                        cluster.worker("b")
                    yield event

            executor._arrived = lose
            (ended,) = executor.run([one])
    assert isinstance(ended, TaskRecord)
    assert len(set(processes(log))) == 2
    assert store.fault(one.key) is None


def test_workers_that_are_gone_for_too_long_end_the_run(tmp_path):
    tasks = [task(Numbers(i, 0.2)) for i in range(40)]
    store = TaskStore(tmp_path / "s")

    def run_on(cluster: DaskHere) -> None:
        only = cluster.worker("only")
        settings = RunConfig(cluster=cluster.address, patience_s=10.0)
        place = Workspace(lpact.load_study(STUDY).config, settings)
        with open_executor(place, store, 1) as executor:
            for n_ended, _ in enumerate(executor.run(tasks), start=1):
                if n_ended == 3:
                    end(only)

    with (
        DaskHere(tmp_path / "dask") as cluster,
        pytest.raises(RunError, match="the cluster has no workers"),
    ):
        run_on(cluster)
    assert 3 <= sum(store.fault(t.key) is None for t in tasks) < 40


def test_an_error_outside_a_task_is_that_tasks_own(dask, tmp_path, monkeypatch):
    odd, pack = NUMBERS[1], clusters.packed
    monkeypatch.setattr(clusters, "packed", lambda own: b"no pickle" if own is odd else pack(own))
    with open_executor(workspace(dask.address), TaskStore(tmp_path / "s"), 1) as executor:
        ended = {e.key: e for e in executor.run(NUMBERS[:4])}
    assert len(ended) == 4
    assert [e.key for e in ended.values() if isinstance(e, TaskFailure)] == [odd.key]
    assert "UnpicklingError" in ended[odd.key].what


def until(true, seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end_by = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end_by, "it did not happen in time"
        time.sleep(0.05)
