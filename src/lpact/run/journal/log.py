"""``log.jsonl``: one JSON object per line, appended by every attempt at a run.

Each line is written in one call, so that it survives the process. A line that was cut short by a kill or a full disk
stays as it is: readers skip it, and the next one starts on a new line.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lpact.run.memory import StageMemory

LOG_NAME = "log.jsonl"
RESERVED = ("time", "event", "stage")
"""What every line has."""


def utc_now() -> str:
    """The time as the log and the status write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class LogFile:
    """Appends lines to a log. A full disk costs lines, never the run.

    ``lost`` is called with a sentence when the first line is lost; the number of lost lines is logged as soon as lines
    can be written again.
    """

    def __init__(self, path: Path, lost: Callable[[str], None]) -> None:
        self._path = path
        self._lost = lost
        self._handle: int | None = None
        self._torn = False
        self._unlogged = 0
        self.n_lost = 0

    def write(self, event: str, stage: str, fields: Mapping[str, object]) -> None:
        """Append one event."""
        if (
            self._unlogged
            and self._append(_line("log_lines_lost", stage, {"n": self._unlogged})) is None
        ):
            self._unlogged = 0
        problem = self._append(_line(event, stage, fields))
        if problem is not None:
            self._unlogged += 1
            self.n_lost += 1
            if self.n_lost == 1:
                self._lost(
                    f"the log {self._path} cannot be written ({problem.strerror or problem}): "
                    "the run goes on, and lines of its log are lost"
                )

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _append(self, line: bytes) -> OSError | None:
        """Write a line in one call; returns the error if it was not written as a whole."""
        try:
            handle = self._open()
            content = b"\n" + line if self._torn else line
            written = os.write(handle, content)
        except OSError as error:
            return error
        self._torn = written < len(content)
        if self._torn:
            return OSError(f"{written} of {len(content)} bytes were written")
        return None

    def _open(self) -> int:
        if self._handle is None:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
            self._handle = os.open(self._path, flags, 0o666)
            size = os.fstat(self._handle).st_size
            self._torn = size > 0 and os.pread(self._handle, 1, size - 1) != b"\n"
        return self._handle


@contextmanager
def logged_stage(path: Path, stage: str) -> Iterator[None]:
    """Log a stage that is added to a finished run; without a log, none is started."""
    if not path.is_file():
        yield
        return
    log, memory, began = LogFile(path, lambda _: None), StageMemory(), time.perf_counter()
    log.write("stage_started", stage, {"total": 1})
    memory.begin(stage)
    try:
        yield
        memory.look()
        seconds = round(time.perf_counter() - began, 3)
        counts = {"total": 1, "done": 1, "seconds": seconds, "own_peak_bytes": memory.peaks[stage]}
        log.write("stage_finished", stage, counts)
    finally:
        log.close()


class NoLog:
    """A log that keeps nothing."""

    n_lost = 0

    def write(self, event: str, stage: str, fields: Mapping[str, object]) -> None:
        """Write nothing."""

    def close(self) -> None:
        """Do nothing."""


def _line(event: str, stage: str, fields: Mapping[str, object]) -> bytes:
    values: dict[str, object] = {"time": utc_now(), "event": event, "stage": stage}
    for name, value in fields.items():
        values[f"given_{name}" if name in RESERVED else name] = _plain(value)
    return json.dumps(values).encode() + b"\n"


def _plain(value: object) -> object:
    """A value as JSON has it; other values as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(value)


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """Every complete line of a log, oldest first; none where there is no log."""
    try:
        handle = path.open("rb")
    except OSError:
        return
    with handle:
        for line in handle:
            try:
                values = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(values, dict) and all(isinstance(values.get(k), str) for k in RESERVED):
                yield values
