"""Tables read in another process: what a damaged or a hostile file does to its reader is done to that one.

Every table of a run that is verified, locked or taken out of an archive is first read there, within a limit of memory
and of time. This process reads a table only after the other one has read the same bytes, and a table that is not as it
was only as the other one has written it again.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import lpact
from lpact.errors import RunError
from lpact.sealed.apart_child import MOST_ANSWER, READY
from lpact.store import storage_errors

LEAST_MEMORY = 2 * 2**30
"""Bytes of memory that reading any table may take, where there are as many."""
MEMORY_PER_BYTE = 32
"""Bytes of memory more, for a byte of the table's two files."""
SHARE = 0.75
"""Of the memory that is free, as much as tables may take."""
LEAST_SECONDS = 120.0
SECONDS_PER_BYTE = 5 / 2**20
_SMALL = 2**30
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from lpact.sealed.apart_child import serve; serve()"
)
_idle: list[Apart] = []


class FailedError(RunError):
    """A table that the other process could not read, or did not survive."""


class Apart:
    """A process that reads tables, started at once; a new one takes its place where it ends."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._ready = False
        self._process = _begin()
        self._peak = 0

    def ask(self, order: Mapping[str, Any], *, n_bytes: int) -> dict[str, Any]:
        """The answer to an order about files of so many bytes, or a `FailedError` that says what happened."""
        most, seconds = memory_limit(n_bytes), LEAST_SECONDS + SECONDS_PER_BYTE * n_bytes
        self._get_ready()
        line = json.dumps({**order, "n_memory": most}).encode() + b"\n"
        answer, late = self._exchange(line, seconds)
        if not answer.endswith(b"\n"):
            code = self._end()
            raise FailedError(_fate(code, most, seconds, late=late), where=str(order.get("table")))
        found: dict[str, Any] = json.loads(answer)
        self._peak = found.pop("n_peak", 0)
        if "failed" in found:
            raise FailedError(str(found["failed"]), where=str(order.get("table")))
        return found

    def _get_ready(self) -> None:
        """Wait until the process has said that it is there, and start another one where it has ended."""
        if self._process.poll() is not None:
            self._end()
            self._process = _begin()
        if not self._ready:
            answer, _ = self._exchange(b"", LEAST_SECONDS)
            if answer != READY:
                code = self._end()
                raise RunError(
                    "the process that reads tables could not be started",
                    where=str(sys.executable),
                    got=f"exit status {code}",
                    expected="a process of Python that can import lpact",
                    remedy="check that processes can be started here, and that there is memory for one",
                )
            self._ready = True

    def _exchange(self, line: bytes, seconds: float) -> tuple[bytes, bool]:
        """Send a line and wait for one; whether time ran out."""
        into, out = self._process.stdin, self._process.stdout
        late = threading.Event()
        if into is None or out is None:
            return b"", False

        def stop() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            with suppress(BrokenPipeError):
                into.write(line)
                into.flush()
                return out.readline(MOST_ANSWER + 2), late.is_set()
            return b"", late.is_set()
        finally:
            timer.cancel()

    def _end(self) -> int:
        self._ready = False
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        return self._process.wait()

    def close(self) -> None:
        """End the process."""
        if os.getpid() == self.owner:
            self._end()

    @property
    def worth_keeping(self) -> bool:
        """Whether it lives and is small."""
        return self._process.poll() is None and self._peak < _SMALL


def _begin() -> subprocess.Popen[bytes]:
    # Isolated: neither the folder one stands in, which may be the run, nor the environment adds modules.
    paths = [path for path in sys.path if path]
    paths.append(str(Path(lpact.__file__).parent.parent))
    with storage_errors(Path(sys.executable), "the process that reads tables cannot be started"):
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-c", _START, json.dumps(paths)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "POLARS_MAX_THREADS": "2", "RUST_BACKTRACE": "0"},
        )


def _fate(code: int, most: int, seconds: float, *, late: bool) -> str:
    """What became of a process, in words."""
    if late:
        return f"the process that read it was stopped after {seconds:.0f} s"
    how = f"ended with status {code}"
    if code < 0:
        with suppress(ValueError):
            how = f"was ended by {signal.Signals(-code).name}"
    return (
        f"the process that read it {how}: it is damaged, or takes more than {most} bytes of memory"
    )


@contextmanager
def apart() -> Iterator[Apart]:
    """A process that reads tables, for the block; one that is small is kept for the next."""
    own = None
    while _idle and own is None:
        own = _idle.pop()
        if own.owner != os.getpid() or not own.worth_keeping:
            own.close()
            own = None
    own = own or Apart()
    try:
        yield own
    except BaseException:
        own.close()
        raise
    if own.worth_keeping and not _idle:
        _idle.append(own)
    else:
        own.close()


@atexit.register
def _end_idle() -> None:
    while _idle:
        _idle.pop().close()


def memory_limit(n_bytes: int) -> int:
    """Bytes of memory that reading a table with files of so many bytes may take."""
    return min(LEAST_MEMORY + MEMORY_PER_BYTE * n_bytes, int(SHARE * free_memory()))


def free_memory() -> int:
    """Bytes of memory that can be had, as far as the system tells; never less than a little."""
    found = [2**40]
    with suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text()
        found.append(int(text.partition("MemAvailable:")[2].split()[0]) * 1024)
    with suppress(OSError, ValueError):
        most, now = (Path(f"/sys/fs/cgroup/memory.{n}").read_text() for n in ("max", "current"))
        found.append(int(most) - int(now))
    if len(found) == 1:
        with suppress(OSError, ValueError, AttributeError):
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    return max(min(found), 2**28)
