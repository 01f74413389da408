"""The command in real processes: told to start, waited for, killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

PATIENCE_S = 180.0
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "NO_COLOR": "1",
    "COLUMNS": "200",
}
QUIET = ("--no-report", "--no-progress")


class Victim(Protocol):
    """A process that leads a group of its own."""

    pid: int

    def poll(self) -> int | None:
        """Its exit status, once it has ended."""
        ...


def command(*args: object) -> subprocess.Popen[str]:
    """``lpact`` in a process group of its own, started from nothing."""
    return subprocess.Popen(
        [sys.executable, "-c", "from lpact.cli import main; main()", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | ENVIRONMENT,
    )


def start(study: Path, out: Path, *more: object) -> subprocess.Popen[str]:
    """``lpact run`` in a process group of its own, started from nothing."""
    return command("run", study, "--out", out, *QUIET, *more)


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    """Wait for a command's end; what it said."""
    said, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, f"{said}\n{errors}"
    assert "Traceback" not in errors
    return said + errors


def wait_for(condition: Callable[[], bool], victim: Victim) -> bool:
    """Whether the condition came true before the process ended."""
    deadline = time.monotonic() + PATIENCE_S
    while victim.poll() is None:
        if condition():
            return True
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)
    return False


def workers_of(victim: Victim) -> list[int]:
    """Worker processes of a run, as the system lists them."""
    children = Path(f"/proc/{victim.pid}/task/{victim.pid}/children")
    try:
        return [
            int(pid)
            for pid in children.read_text().split()
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
    except OSError:
        return []  # one of them ended meanwhile


_BREEDER = """
import json, os, sys
import lpact.cli, lpact.cli.study, lpact.study
import scipy.ndimage, scipy.signal, scipy.stats, multiprocessing.context, concurrent.futures.process
import lpact.analyses.lpact.conclusion, lpact.analyses.lpact.gates, lpact.analyses.lpact.plan.sizes
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.analyses.lpact.levels.stripping_methods import STRIPPINGS
from lpact.measures.base import MEASURES
from lpact.run.audit import ANALYSES, CONTROLS, DATASETS, MECHANISMS, MODELS
names = {ANALYSES: ["lpact"], DATASETS: ["simulated", "folder"]}
for registry in (ANALYSES, CONTROLS, DATASETS, MEASURES, MECHANISMS, MODELS, PROFILES, STRIPPINGS):
    for name in names.get(registry, registry.names()):
        registry.get(name)
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        os.setsid()
        said = os.open(order["said"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.argv[1:] = order["args"]
        if order["planned"]:
            lpact.cli.main()
        try:
            lpact.load_study(sys.argv[1]).run(sys.argv[2], workers=int(sys.argv[3]), progress=False)
        except lpact.errors.LPactError as error:
            print(error)
            os._exit(2)
        os._exit(0)
    print(child, flush=True)
    _, status, used = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024, flush=True)
"""


class Breeder:
    """Starts ``lpact`` again and again at the cost of one start of the interpreter.

    Each is a copy of a process in which everything is imported and nothing has run.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        self._said = folder / "said.txt"
        self._environment = os.environ | ENVIRONMENT | environment

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BREEDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def command(self, study: Path, out: Path, *more: object) -> Bred:
        """``lpact run`` in a process group of its own."""
        return self._start("run", study, "--out", out, *QUIET, *more)

    def start(self, study: Path, out: Path, workers: int = 1) -> Bred:
        """The same without a plan: ``Study.run``."""
        return self._start(study, out, workers, planned=False)

    def _start(self, *args: object, planned: bool = True) -> Bred:
        self._said.unlink(missing_ok=True)
        assert self._process.stdin is not None
        order = {"said": str(self._said), "args": list(map(str, args)), "planned": planned}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Bred(self._process, self._said)


class Bred:
    """A process that was copied from the breeder's; ``peak_bytes`` is the most that it held, once it has ended."""

    def __init__(self, breeder: subprocess.Popen[str], said: Path) -> None:
        assert breeder.stdout is not None
        self._answers = breeder.stdout
        self.pid = int(self._answers.readline())
        self._said = said
        self._status: int | None = None
        self.peak_bytes = 0

    def poll(self) -> int | None:
        """Exit status, once it has ended."""
        if self._status is None and not Path(f"/proc/{self.pid}").exists():
            return self.wait()
        return self._status

    def wait(self) -> int:
        """Exit status, when it has ended."""
        if self._status is None:
            self._status, self.peak_bytes = map(int, self._answers.readline().split())
        return self._status

    def said(self) -> str:
        """What it said."""
        return self._said.read_text() if self._said.exists() else ""

    def kill(self) -> None:
        """``kill -9`` to the process and all of its group."""
        for end in (os.killpg, os.kill):  # it may not have got as far as to lead a group
            with suppress(ProcessLookupError):
                end(self.pid, signal.SIGKILL)
        self.wait()
