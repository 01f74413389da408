"""Tables read in another process: what a damaged or a hostile file does to its reader is done to that one.

Every table of a run that is verified, locked or taken out of an archive is first read there, within a limit of memory
and of time. This process reads a table only after the other one has read the same bytes, and a table that is not as it
was only as the other one has written it again. A table that reaches a limit is not called damaged: with more memory
or time it may be read.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import lpact
from lpact.archive.apart_child import MOST_ANSWER, READY
from lpact.archive.apart_watch import Watch
from lpact.archive.memory import free_memory
from lpact.errors import RunError
from lpact.store import storage_errors

ALWAYS_MEMORY = 2**30
"""Bytes of memory that reading any table may take, however few seem to be free: tables of a study take far fewer."""
LEAST_MEMORY = 2 * 2**30
"""Bytes of memory that reading any table may take, where there are as many."""
MEMORY_PER_BYTE = 32
"""Bytes of memory more, for a byte of the table's two files."""
SHARE = 0.9
"""Of the memory that is free, as much as a table may take."""
LEAST_SECONDS = 120.0
SECONDS_PER_BYTE = 5 / 2**20
NO_MEMORY = "there is not enough memory here to read it"
_SMALL = 2**30
_PATHS = ("root", "handed")
"""What orders say about places."""
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from lpact.archive.apart_child import serve; serve()"
)
_idle: list[Apart] = []


class FailedError(RunError):
    """A table that the other process could not read, or did not survive."""


class ShortError(FailedError):
    """A table for which there is not enough memory or time here; nothing is said about the table itself."""


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
        # It stands in another folder.
        places = {name: str(Path(order[name]).absolute()) for name in _PATHS if name in order}
        answer, reached = self._exchange(
            json.dumps({**order, **places}).encode() + b"\n", seconds, most
        )
        where = str(order.get("table"))
        if not answer.endswith(b"\n"):
            code = self._end()
            raise _fate(code, reached, where, most=most, seconds=seconds)
        found: dict[str, Any] = json.loads(answer)
        self._peak = found.pop("n_peak", 0)
        if "short" in found:
            raise _short(f"{NO_MEMORY}: {found['short']}", where)
        if "failed" in found:
            raise FailedError(str(found["failed"]), where=where)
        return found

    def _get_ready(self) -> None:
        """Wait until the process has said that it is there, and start another one where it has ended."""
        if self._process.poll() is not None:
            self._end()
            self._process = _begin()
        if not self._ready:
            answer, _ = self._exchange(b"", LEAST_SECONDS, None)
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

    def _exchange(self, line: bytes, seconds: float, n_memory: int | None) -> tuple[bytes, str]:
        """Send a line and wait for one; which limit was reached, if any."""
        into, out = self._process.stdin, self._process.stdout
        answer = b""
        if into is None or out is None:
            return answer, ""
        with Watch(self._process, seconds, n_memory) as watch, suppress(BrokenPipeError):
            into.write(line)
            into.flush()
            answer = out.readline(MOST_ANSWER + 2)
        return answer, watch.reached

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
    with storage_errors(Path(sys.executable), "the process that reads tables cannot be started"):
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-c", _START, json.dumps(module_folders())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "POLARS_MAX_THREADS": "2", "RUST_BACKTRACE": "0"},
        )


def module_folders() -> list[str]:
    """Where the other process finds modules: where this one does, but not in the folder one stands in.

    That folder may be the very run that is looked at. If lpact itself lies there, it comes last.
    """
    here = os.path.realpath(os.curdir)
    texts = [os.fspath(own) for own in sys.path if isinstance(own, str | os.PathLike)]
    folders = [own for own in texts if isinstance(own, str) and os.path.isabs(own)]
    own_folder = str(Path(lpact.__file__).absolute().parent.parent)
    return [*(own for own in folders if os.path.realpath(own) != here), own_folder]


def _fate(code: int, reached: str, where: str, *, most: int, seconds: float) -> FailedError:
    """What became of a process, as an error."""
    if reached == "time":
        return _short(
            f"there is not enough time to read it: the process that read it was stopped after {seconds:.0f} s",
            where,
        )
    if reached == "memory":
        return _short(f"{NO_MEMORY}: it takes more than {most} bytes", where)
    if code == -signal.SIGKILL:
        # The system does that where memory runs out.
        return _short(f"{NO_MEMORY}, or the process that read it was ended by somebody", where)
    how = f"ended with status {code}"
    if code < 0:
        with suppress(ValueError):
            how = f"was ended by {signal.Signals(-code).name}"
    what = f"the process that read it {how}: it is damaged or cannot be read"
    return FailedError(what, where=where)


def _short(what: str, where: str) -> ShortError:
    return ShortError(
        what,
        where=where,
        expected="memory and time to read every table",
        remedy="free memory, or try on a machine that has more",
    )


@contextmanager
def apart() -> Iterator[Apart]:
    """A process that reads tables, for the block; one that is small is kept for the next."""
    own = _kept() or Apart()
    try:
        yield own
    except BaseException:
        own.close()
        raise
    if own.worth_keeping and not _idle:
        _idle.append(own)
    else:
        own.close()


def _kept() -> Apart | None:
    """A process that was kept and can be used, which nobody else gets then: threads may ask at once."""
    while (own := _pop()) is not None:
        if own.owner == os.getpid() and own.worth_keeping:
            return own
        own.close()
    return None


def _pop() -> Apart | None:
    try:
        return _idle.pop()
    except IndexError:
        return None


@atexit.register
def _end_idle() -> None:
    while (own := _pop()) is not None:
        own.close()


def memory_limit(n_bytes: int) -> int:
    """Bytes of memory that reading a table with files of so many bytes may take."""
    most, free = LEAST_MEMORY + MEMORY_PER_BYTE * n_bytes, free_memory()
    return most if free is None else max(ALWAYS_MEMORY, min(most, int(SHARE * free)))
