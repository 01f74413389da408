"""A Dask scheduler and workers on loopback, each a process of its own, as Dask's command line starts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "PYTHONPATH": f"{Path(__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
}


class DaskHere:
    """A cluster that ends with the block. Addresses are chosen by the system, and nothing listens beyond loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self._n = 0
        folder.mkdir(exist_ok=True)
        self.scheduler_file = folder / "scheduler.json"
        self._start(
            "dask_scheduler",
            "--host=127.0.0.1",
            "--port=0",
            "--no-dashboard",
            "--dashboard-address=127.0.0.1:0",
            "--no-jupyter",
            f"--scheduler-file={self.scheduler_file}",
        )
        self.address = self._address()

    def __enter__(self) -> DaskHere:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            end(process)

    def worker(
        self,
        name: str,
        *more: str,
        nanny: bool = False,
        env: Mapping[str, str] | None = None,
        before: tuple[str, ...] = (),
        python: str = sys.executable,
    ) -> subprocess.Popen[bytes]:
        """Start a worker with one thread; ``before`` is put before its command line."""
        return self._start(
            "dask_worker",
            self.address,
            "--host=127.0.0.1",
            f"--name={name}",
            "--nthreads=1",
            "--memory-limit=0",
            "--nanny" if nanny else "--no-nanny",
            "--no-dashboard",
            "--dashboard-address=127.0.0.1:0",
            "--death-timeout=20",
            f"--local-directory={self.folder / 'scratch'}",
            *more,
            env=env,
            before=before,
            python=python,
        )

    def _start(
        self,
        module: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        before: tuple[str, ...] = (),
        python: str = sys.executable,
    ) -> subprocess.Popen[bytes]:
        self._n += 1
        log = self.folder / f"{module}-{self._n}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*before, python, "-m", f"distributed.cli.{module}", *arguments],
                env={**os.environ, **ENVIRONMENT, **(env or {})},
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def _address(self) -> str:
        import json

        end_by = time.monotonic() + 60
        while time.monotonic() < end_by:
            if self.scheduler_file.exists() and (text := self.scheduler_file.read_text()):
                return str(json.loads(text)["address"])
            time.sleep(0.05)
        raise TimeoutError("the scheduler did not start")


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
