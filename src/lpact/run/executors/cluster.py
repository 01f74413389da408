"""Tasks on a Dask cluster: an existing one, or jobs of SLURM.

Workers are checked before they get tasks: same code, libraries and sources. A few tasks per thread are submitted at a
time, with the results that they need; the client stores what comes back. Dask runs a task again if its worker dies; if
it gives up, the task runs once more, alone.
"""

from __future__ import annotations

import asyncio
import os
import queue
import shutil
import tempfile
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lpact.analyses.base import Task
from lpact.config import RunConfig
from lpact.config.study import SlurmConfig
from lpact.errors import ConfigError, LPactError, RunError
from lpact.extras import require
from lpact.inputs.workspace import Workspace
from lpact.run.executors.fork_server import ONE_THREAD
from lpact.run.executors.local import Ended, Setup, failure
from lpact.run.executors.worker import Fit, check_worker, packed, processor, run_task
from lpact.store import TaskStore, code_digest

SLURM = "slurm"
CONNECT_S = 30.0
PER_THREAD = 3
"""Tasks submitted per worker thread: the running one and the next."""
MOST_DEATHS = 2
"""Workers that a task may lose while no other worker is left; then it runs alone."""
WAIT_S = 0.5
"""Seconds between two checks of the workers while no task ends."""
REFRESH_S = 2.0
FIRST_CHECK_S = 30.0
"""Seconds to wait at the start for workers that are busy, while others are ready."""
ANSWER_S = 10.0
"""Seconds to wait for the answer of a finished task, before the workers are checked."""
ASK_S = 120.0
"""Seconds after which a scheduler that does not answer counts as gone."""


@dataclass
class Submitted:
    """A task on the cluster, and the workers that may run it; ``alone``: no other task runs meanwhile."""

    task: Task
    future: Any
    workers: frozenset[str]
    alone: bool


class OnDask:
    """Runs tasks on a Dask cluster, as a context manager; ``lost`` is called with tasks whose worker died."""

    def __init__(
        self,
        client: Any,
        workspace: Workspace,
        store: TaskStore,
        *,
        lost: Callable[[list[Task]], None],
        note: Callable[..., None],
    ) -> None:
        self._client = client
        self._store = store
        self._lost = lost
        self._note = note
        self._patience_s = workspace.run.patience_s
        for name, path in workspace.run.paths.items():  # the files of every dataset are hashed once
            workspace.fingerprint(name)
            if (name, "") not in workspace.watch.seen:
                files = workspace.dataset(name).source_files()
                workspace.watch.note((name, ""), files, Path(path))
        self._common = (code_digest(), packed(Setup.of(workspace)))
        self._threads: dict[str, int] = {}
        self._checks: dict[str, Any] = {}
        self._fit: dict[str, Fit] = {}
        self._refused: dict[str, str] = {}
        self._noted: set[str] = set()
        self._refreshed_at = 0.0
        self._without_since: float | None = None
        self._submitted: dict[str, Submitted] = {}
        self._deaths: Counter[str] = Counter()
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()

    @property
    def workers(self) -> int:
        """How many tasks can run at a time now."""
        return max(1, sum(self._threads.get(address, 0) for address in self._fit))

    def __enter__(self) -> OnDask:
        self._client.subscribe_topic("all", lambda event: self._events.put(event[1]))
        self._assemble()
        return self

    def __exit__(self, *_: object) -> None:
        self._cancel()
        if self._client.status == "running":
            self._client.unsubscribe_topic("all")

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Run tasks as workers become free; they end in any order."""
        upcoming, waiting, suspects = iter(tasks), deque[Task](), deque[Task]()
        try:
            while True:
                self._hand_out(waiting, upcoming, suspects)
                if not (self._submitted or waiting or suspects):
                    return
                for event in self._arrived():
                    if isinstance(event, dict):
                        if event.get("action") == "remove-worker":
                            yield from self._after_death(event, waiting, suspects)
                    elif event.key in self._submitted:
                        yield from self._after_end(event, waiting, suspects)
                self._refresh()
        finally:
            self._cancel()

    def _hand_out(self, waiting: deque[Task], upcoming: Iterator[Task], suspects: deque[Task]) -> None:
        """Submit tasks to the workers that fit; suspects come last, one by one and bound to one worker."""
        if any(own.alone for own in self._submitted.values()):
            return
        while True:
            waiting.extend(islice(upcoming, 0 if waiting else 1))
            if not waiting:
                break
            if not self._fit or len(self._submitted) >= PER_THREAD * self.workers:
                return
            self._submit(waiting.popleft(), sorted(self._fit))
        if suspects and self._fit and not self._submitted:
            self._submit(suspects.popleft(), [min(self._fit)], alone=True)

    def _submit(self, task: Task, workers: list[str], *, alone: bool = False) -> None:
        """Submit a task, with the results that it needs."""
        future = self._client.submit(
            run_task,
            *self._common,
            self._store.mark,
            packed(task),
            {need: self._store.content(need) for need in task.job.needs},
            key=f"{task.name.partition('/')[0]}-{uuid.uuid4().hex}",
            pure=False,
            workers=workers,
            allow_other_workers=False,
        )
        self._submitted[future.key] = Submitted(task, future, frozenset(workers), alone)
        future.add_done_callback(self._events.put)

    def _arrived(self) -> Iterator[Any]:
        """Events since the last call: futures that ended, and what Dask reports."""
        try:
            yield self._events.get(timeout=WAIT_S)
            while True:
                yield self._events.get_nowait()
        except queue.Empty:
            return

    def _after_end(self, future: Any, waiting: deque[Task], suspects: deque[Task]) -> Iterator[Ended]:
        submitted = self._submitted[future.key]
        task = submitted.task
        try:
            ended, content = future.result(timeout=ANSWER_S)
        except TimeoutError:
            # Its worker died with the answer. Dask runs the task again if another worker may run it.
            self._refresh(now=True)
            if submitted.workers.isdisjoint(self._threads):
                waiting.append(self._recall(future.key).task)
            else:
                self._events.put(future)
            return
        except require("distributed", extra="dask").KilledWorker:
            del self._submitted[future.key]
            yield from self._suspect(submitted, suspects)
        except CancelledError:
            del self._submitted[future.key]
            self._ask(lambda: None)
            waiting.append(task)
        except LPactError:
            raise  # a worker that changed: every other task would fail too
        except Exception as error:
            del self._submitted[future.key]
            yield failure(task, error, "a worker of the cluster")
        else:
            del self._submitted[future.key]
            if content is not None:
                self._store.put(task.key, content)
            yield ended
        future.release()

    def _suspect(self, submitted: Submitted, suspects: deque[Task]) -> Iterator[Ended]:
        """A task whose workers died runs once more, alone; then it fails."""
        if submitted.alone:
            error = RunError(
                "workers of the cluster died",
                where="workers that ran the task",
                got="repeated deaths, the last while the task ran alone",
                expected="workers that live until the run ends",
                remedy="memory may be short: see `lpact plan`, give workers more (--memory-limit), then run again to "
                "resume",
            )
            yield failure(submitted.task, error, "workers that died")
        else:
            suspects.append(submitted.task)

    def _after_death(self, event: dict[str, Any], waiting: deque[Task], suspects: deque[Task]) -> Iterator[Ended]:
        """A worker is gone. Tasks that were bound to workers which are all gone are submitted again."""
        self._forget(event.get("worker", ""))
        hit = [own for key, own in self._submitted.items() if key in event.get("processing-tasks", ())]
        if hit and not event.get("expected"):
            self._lost([own.task for own in hit])
            self._deaths.update(own.task.key for own in hit)
        for key, own in list(self._submitted.items()):
            if own.workers.isdisjoint(self._threads) and own.future.status == "pending":
                self._recall(key)
                if own.alone or self._deaths[own.task.key] >= MOST_DEATHS:
                    yield from self._suspect(own, suspects)
                else:
                    waiting.append(own.task)

    def _recall(self, key: str) -> Submitted:
        """Take a task back from the cluster."""
        submitted = self._submitted.pop(key)
        self._client.cancel([submitted.future], force=True)
        return submitted

    def _cancel(self) -> None:
        """Leave no task on the cluster."""
        futures = [own.future for own in self._submitted.values()]
        self._submitted.clear()
        if futures and self._client.status == "running":
            self._client.cancel(futures, force=True)

    def _assemble(self) -> None:
        """Wait for workers and check all of them; one that does not fit is a `RunError`."""
        began = time.monotonic()
        while not self._fit or (self._checks and time.monotonic() - began < FIRST_CHECK_S):
            self._refresh(now=True)
            if self._refused:
                raise self._no_fit()
            time.sleep(0.05)

    def _refresh(self, *, now: bool = False) -> None:
        """Check new workers; raises `RunError` after too long without any."""
        if not now and time.monotonic() - self._refreshed_at < REFRESH_S:
            return
        ask = self._client.scheduler.ncores
        self._threads = dict(self._ask(lambda: self._client.sync(ask, callback_timeout=ASK_S)))
        self._refreshed_at = time.monotonic()
        for address in {*self._fit, *self._refused, *self._checks} - self._threads.keys():
            self._forget(address)
        for address in self._threads.keys() - {*self._fit, *self._refused, *self._checks}:
            self._checks[address] = self._client.submit(
                check_worker,
                *self._common,
                key=f"lpact-check-{uuid.uuid4().hex}",
                pure=False,
                workers=[address],
                allow_other_workers=False,
                priority=100,
            )
        for address, answer in list(self._checks.items()):
            if answer.status != "pending":
                self._judge(address, answer)
        self._check_anybody()

    def _judge(self, address: str, answer: Any) -> None:
        del self._checks[address]
        try:
            found: Fit | str = answer.result(timeout=ANSWER_S)
        except TimeoutError:
            return  # its worker is gone; if it comes back, it is checked again
        except Exception as error:  # no lpact there, or one without this function
            found = f"{type(error).__name__}: {error}; lpact's code is {self._common[0]} here"
        if isinstance(found, str):
            self._refused[address] = found
            self._note("worker_refused", worker=address, what=f"worker {address}: {found}")
            return
        self._fit[address] = found
        if found.processor != processor() and found.processor not in self._noted:
            self._noted.add(found.processor)
            what = (
                f"worker {found.worker} of {found.host} computes with {found.processor}, this machine with "
                f"{processor()}: last digits may differ"
            )
            self._note("other_processor", what=what)

    def _forget(self, address: str) -> None:
        for known in (self._threads, self._fit, self._refused, self._checks):
            known.pop(address, None)

    def _check_anybody(self) -> None:
        if self._threads.keys() - self._refused.keys():
            self._without_since = None
            return
        if self._threads:
            raise self._no_fit()
        now = time.monotonic()
        if self._without_since is None:
            self._without_since = now
            what = f"the cluster has no workers: waiting at most {self._patience_s:.0f} s"
            self._note("no_workers", what=what)
        if now - self._without_since > self._patience_s:
            raise RunError(
                "the cluster has no workers",
                where=self._client.scheduler.address,
                got=f"none for {self._patience_s:.0f} s",
                expected="at least one worker",
                remedy="start workers and run again: finished tasks are kept; 'run.patience_s' is how long to wait",
            )

    def _no_fit(self) -> RunError:
        return RunError(
            "workers of the cluster do not fit this run",
            where="; ".join(sorted(self._refused)),
            got="\n".join(f"worker {address}: {why}" for address, why in sorted(self._refused.items())),
            expected="workers with the same code, library versions and sources as here",
            remedy="install the same there, share or copy the same files, restart these workers, then run again",
        )

    def _ask(self, question: Callable[[], Any]) -> Any:
        """What the scheduler answers; `RunError` if it is gone."""
        try:
            if self._client.status == "running":
                return question()
            problem = f"connection is {self._client.status}"
        except (OSError, TimeoutError) as error:
            problem = str(error) or type(error).__name__
        scheduler = self._client.scheduler
        raise RunError(
            "the scheduler of the cluster is gone",
            where=scheduler.address if scheduler else "scheduler",
            got=problem,
            expected="a scheduler that lives as long as the run",
            remedy="start scheduler and workers again, then run again: finished tasks are kept",
        )


@contextmanager
def open_client(settings: RunConfig) -> Iterator[Any]:
    """A Dask client of the cluster that the run's settings name; jobs started for it end with it."""
    dask = require("dask", extra="dask")
    distributed = require("distributed", extra="dask")
    # A task carries the results that it needs where no file system is shared.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        if settings.cluster == SLURM:
            with open_slurm(settings.slurm) as cluster, _connect(distributed, cluster) as client:
                yield client
        else:
            with _connect(distributed, settings.cluster) as client:
                yield client


@contextmanager
def _connect(distributed: Any, place: Any) -> Iterator[Any]:
    try:
        if isinstance(place, str):
            _shake_hands(distributed, place)
        client = distributed.Client(place, timeout=CONNECT_S, set_as_default=False)
    except Exception as error:  # whatever listens there may answer anything
        raise RunError(
            "the cluster cannot be reached",
            where=place if isinstance(place, str) else "SLURM",
            got=str(error) or f"no scheduler that answers within {CONNECT_S:.0f} s",
            expected="a Dask scheduler at this address, tcp://host:port or tls://host:port",
            remedy="start one with `dask scheduler`; tls:// needs certificates in Dask's own configuration",
        ) from error
    with client:
        yield client


def _shake_hands(distributed: Any, address: str) -> None:
    """Raise `TimeoutError` where something listens that does not answer as Dask does: a client would wait forever."""

    async def connect() -> None:
        options = distributed.Security().get_connection_args("client")
        comm = distributed.core.connect(address, timeout=CONNECT_S, **options)
        (await asyncio.wait_for(comm, CONNECT_S)).abort()

    with ThreadPoolExecutor(1) as pool:  # a notebook has an event loop in this thread
        pool.submit(asyncio.run, connect()).result()


@contextmanager
def open_slurm(settings: SlurmConfig) -> Iterator[Any]:
    """A scheduler in this process, and SLURM jobs with workers; jobs that end are replaced."""
    jobqueue = require("dask_jobqueue", extra="dask")
    options = slurm_options(settings)
    with _certificates(settings) as security:
        try:
            cluster = jobqueue.SLURMCluster(**options, security=security)
        except (OSError, ValueError, RuntimeError) as error:
            raise RunError(
                "the scheduler for SLURM jobs cannot be started",
                where="options of SLURM jobs",
                got=str(error),
                expected="an interface of this machine that the jobs can reach, and a folder that they share",
                remedy="`ip link` lists interfaces",
            ) from error
        with cluster:
            cluster.adapt(minimum_jobs=settings.jobs, maximum_jobs=settings.jobs)
            yield cluster


@contextmanager
def _certificates(settings: SlurmConfig) -> Iterator[Any]:
    """A key and a certificate for this run, in a folder that only its owner can read."""
    if not settings.encrypt:
        yield None
        return
    distributed = require("distributed", extra="dask")
    require("cryptography", extra="dask")
    made = distributed.Security.temporary()
    roles = [f"tls_{role}" for role in ("scheduler", "worker", "client")]
    names = ["tls_ca_file", *(f"{role}_{part}" for role in roles for part in ("cert", "key"))]
    with tempfile.TemporaryDirectory(prefix="tls-", dir=settings.folder) as folder:
        paths = {name: Path(folder).absolute() / f"{name}.pem" for name in names}
        for name, path in paths.items():
            path.write_text(getattr(made, name))
        yield distributed.Security(require_encryption=True, **{name: os.fspath(path) for name, path in paths.items()})


def slurm_options(settings: SlurmConfig) -> dict[str, Any]:
    """Arguments of `dask_jobqueue.SLURMCluster`."""
    if not settings.interface:
        raise ConfigError(
            "SLURM jobs must reach this machine, and no network interface is named",
            where="option 'interface' of the file of --slurm",
            got="nothing",
            expected='the name of a network interface, such as "ib0"',
            remedy="`ip link` lists them; choose the cluster's own network",
        )
    if shutil.which("sbatch") is None:
        raise RunError(
            "SLURM is not available",
            where="option --cluster",
            got="no command `sbatch` on this machine",
            expected="a machine from which jobs can be submitted",
            remedy="run this on a login node of the cluster",
        )
    folder = Path(settings.folder).absolute()
    for name in (folder, folder / "logs"):
        name.mkdir(mode=0o700, parents=True, exist_ok=True)
    exports = [f"export {name}={value}" for name, value in ONE_THREAD.items()]
    return {
        "cores": settings.cores,
        "processes": settings.cores,
        "memory": settings.memory,
        "walltime": settings.walltime,
        "queue": settings.queue or None,
        "account": settings.account or None,
        "interface": settings.interface,
        "job_extra_directives": list(settings.directives),
        "job_script_prologue": [*exports, *settings.prologue],
        "log_directory": os.fspath(folder / "logs"),
        "job_name": "lpact",
        "scheduler_options": {"dashboard": False, "dashboard_address": "127.0.0.1:0"},
    }
