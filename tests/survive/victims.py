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
    found = []
    children = Path(f"/proc/{victim.pid}/task/{victim.pid}/children")
    try:
        for pid in children.read_text().split():
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
    except OSError:
        pass  # it ended meanwhile
    return found


_BREEDER = """
import json, os, sys
import lpact.cli, lpact.cli.run, lpact.study
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
        lpact.cli.main()
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Breeder:
    """Starts ``lpact`` again and again at the cost of one start of the interpreter: each is a copy of a process in which
    everything is imported and nothing has run."""

    def __init__(self, folder: Path) -> None:
        self._said = folder / "said.txt"

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BREEDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | ENVIRONMENT,
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

    def start(self, study: Path, out: Path, *more: object) -> Bred:
        """``lpact run`` in a process group of its own."""
        self._said.unlink(missing_ok=True)
        args = ["run", study, "--out", out, *QUIET, *more]
        assert self._process.stdin is not None
        order = {"said": str(self._said), "args": list(map(str, args))}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Bred(self._process, self._said)


class Bred:
    """A process that was copied from the breeder's."""

    def __init__(self, breeder: subprocess.Popen[str], said: Path) -> None:
        assert breeder.stdout is not None
        self._answers = breeder.stdout
        self.pid = int(self._answers.readline())
        self._said = said
        self._status: int | None = None

    def poll(self) -> int | None:
        """Exit status, once it has ended."""
        if self._status is None and not Path(f"/proc/{self.pid}").exists():
            return self.wait()
        return self._status

    def wait(self) -> int:
        """Exit status, when it has ended."""
        if self._status is None:
            self._status = int(self._answers.readline())
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
