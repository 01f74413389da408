"""Time and memory that tasks cost beside their work: many tasks that do nothing, in every way to run them.

``python -m benchmarks.overhead [--tasks 100000] [--only here processes dask]``. Each way has a process of its own:
milliseconds a task, results written and synchronised to the disk and the log included, and the client's peak memory.
Two workers; Dask's scheduler and workers are processes of their own on loopback.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from benchmarks.machine import machine, versions
from lpact.analyses.base import Task
from lpact.validation import json_digest

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
WAYS = ("here", "processes", "dask")
TARGET_MS, TARGET_BYTES = 5.0, 1e9
N_WORKERS = 2
_ONE = "import sys; from benchmarks.overhead import one; one(*sys.argv[1:])"


@dataclass(frozen=True)
class Nothing:
    """A job whose result is its own number."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()

    number: int

    @property
    def name(self) -> str:
        return f"nothing/{self.number}"

    def run(self, workspace: object, results: object) -> dict[str, pl.DataFrame]:  # noqa: ARG002
        return {"number": pl.DataFrame({"number": [self.number]})}


def one(way: str, n_tasks: str, folder: str, address: str) -> None:
    """Run the tasks one way, and print what it took."""
    from lpact.cli.study import demo_study
    from lpact.config import RunConfig
    from lpact.inputs.workspace import Workspace
    from lpact.run.conductor import Conductor
    from lpact.run.executors.local import open_executor
    from lpact.run.journal import Journal
    from lpact.run.machine import peak_bytes
    from lpact.run.progress import Reporter
    from lpact.store import TaskStore

    place = Path(folder)
    config = demo_study().config
    workspace = Workspace(config, RunConfig(cluster=address))
    store = TaskStore(place / "tasks")
    workers = 1 if way == "here" else N_WORKERS
    journal = Journal(place, Reporter(), study="nothing", config_digest="", workers=workers)
    tasks = [Task(Nothing(i), json_digest([i])) for i in range(int(n_tasks))]
    with open_executor(workspace, store, workers) as executor:
        conductor = Conductor(store, executor, journal)
        conductor.run("first", tasks[: 10 * N_WORKERS])  # processes start, libraries are loaded
        before = peak_bytes()
        began = time.perf_counter()
        conductor.run("nothing", tasks[10 * N_WORKERS :])
        seconds = time.perf_counter() - began
        conductor.check()
    journal.close("finished")
    found = {"seconds": seconds, "peak_bytes": peak_bytes(), "peak_before_bytes": before}
    print(json.dumps(found))


@contextmanager
def dask(folder: Path) -> Iterator[str]:
    """A scheduler and workers on loopback; gives the address."""
    file = folder / "scheduler.json"
    common = ["--host=127.0.0.1", "--no-dashboard", "--dashboard-address=127.0.0.1:0"]
    worker = ["dask_worker", f"--scheduler-file={file}", "--nthreads=1", "--no-nanny"]
    worker += ["--memory-limit=0", f"--local-directory={folder / 'scratch'}"]
    commands = [
        ["dask_scheduler", "--port=0", f"--scheduler-file={file}"],
        *[worker] * N_WORKERS,
    ]
    started = []
    try:
        for module, *arguments in commands:
            command = [sys.executable, "-m", f"distributed.cli.{module}", *common, *arguments]
            started.append(
                subprocess.Popen(
                    command,
                    env=_environment(),
                    start_new_session=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            while not file.exists() or not file.read_text():
                if started[0].poll() is not None:
                    raise RuntimeError("the scheduler did not start")
                time.sleep(0.05)
        yield str(json.loads(file.read_text())["address"])
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _environment() -> dict[str, str]:
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, **threads, "PYTHONPATH": path}


def measure(way: str, n_tasks: int) -> dict[str, Any]:
    """Time and memory of one way."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-c", _ONE, way, str(n_tasks), str(folder / "run")]
        (folder / "run").mkdir()
        if way == "dask":
            with dask(folder) as address:
                return _run([*command, address], way, n_tasks)
        return _run([*command, ""], way, n_tasks)


def _run(command: list[str], way: str, n_tasks: int) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    if done.returncode:
        raise RuntimeError(f"{way} failed:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    return {
        "name": way,
        "n_tasks": n_tasks,
        "workers": 1 if way == "here" else N_WORKERS,
        "ms_per_task": round(1000 * found["seconds"] / (n_tasks - 10 * N_WORKERS), 3),
        "target_ms": TARGET_MS,
        "client_peak_bytes": found["peak_bytes"],
        "client_peak_before_bytes": found["peak_before_bytes"],
        "target_bytes": TARGET_BYTES,
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure, show and store; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--out", type=Path, default=RESULTS / "overhead.json")
    options = parser.parse_args(arguments)
    rows = []
    for way in options.only:
        row = measure(way, options.tasks)
        rows.append(row)
        print(
            f"{way:10} {row['n_tasks']:>8} tasks  {row['ms_per_task']:6.2f} ms a task  "
            f"client {row['client_peak_bytes'] / 1e6:6.0f} MB, of which "
            f"{row['client_peak_before_bytes'] / 1e6:.0f} MB before the first task"
        )
    about = {"machine": machine(), "versions": versions()}
    options.out.write_text(json.dumps([row | about for row in rows], indent=2) + "\n")
    return int(any(r["ms_per_task"] > TARGET_MS or r["client_peak_bytes"] > TARGET_BYTES for r in rows))


if __name__ == "__main__":
    sys.exit(main())
