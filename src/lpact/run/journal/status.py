"""State of a run as seen from outside, without disturbing the run."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from lpact.errors import RunError
from lpact.run.journal.log import LOG_NAME
from lpact.store._lock import LOCK_NAME, holder
from lpact.store.manifest import MANIFEST_NAME

STATUS_NAME = "status.json"
STATUS_FORMAT = 1
SILENT_AFTER_S = 60.0
"""A run writes its status every few seconds; one that has not for this long may have ended."""

State = Literal["running", "silent", "interrupted", "failed", "finished"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class StageStatus(_Part):
    """One stage; ``done`` includes what was ``resumed`` from an earlier attempt and what ``failed``."""

    stage: str
    total: int
    done: int
    resumed: int
    failed: int
    seconds: float
    seconds_left: float | None = None
    expected_seconds: float | None
    peak_bytes: int
    own_peak_bytes: int


class FailedTask(_Part):
    """A task that ended with an error."""

    stage: str
    task: str
    key: str
    what: str


class StatusFile(_Part):
    """Contents of ``status.json``, as the last attempt at the run wrote it."""

    format: int
    state: Literal["running", "finished", "failed", "interrupted"]
    problem: str
    study: str
    config_digest: str
    workers: int
    cluster: str = ""
    pid: int
    host: str
    namespace: str
    stage: str
    stages: tuple[StageStatus, ...]
    fraction: float | None
    seconds_left: float | None
    estimated_end: AwareDatetime | None
    n_results: int = 0
    n_failed: int
    failures: tuple[FailedTask, ...]
    lost_log_lines: int
    started_at: AwareDatetime
    expected: dict[str, float] = {}
    updated_at: AwareDatetime


@dataclass(frozen=True)
class RunStatus:
    """State of a run, in one word and in a sentence; ``said`` is the status that it wrote last."""

    out: Path
    folder: Path
    state: State
    why: str
    process: int | None = None
    said: StatusFile | None = None

    @property
    def log(self) -> Path:
        """The structured log of the run."""
        return self.folder / LOG_NAME

    def as_json(self) -> dict[str, Any]:
        """Plain values, as `lpact status --json` prints them."""
        said = None if self.said is None else self.said.model_dump(mode="json")
        return {
            "run": str(self.out),
            "state": self.state,
            "why": self.why,
            "process": self.process,
            "log": str(self.log),
            "said": said,
        }


def process_namespace() -> str:
    """Where process numbers mean what they mean here: containers of one machine have their own."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def write_status(path: Path, values: Mapping[str, Any]) -> None:
    """Replace the status in one step. It is not flushed to the disk: after a power cut nothing runs anyway."""
    temporary = path.with_name(f".{path.name}.tmp")
    # Text that no UTF-8 file can hold gets a question mark; the log has it as it was.
    temporary.write_bytes(json.dumps(values, ensure_ascii=False).encode("utf-8", "replace"))
    temporary.replace(path)


def read_status(folder: Path) -> StatusFile | None:
    """What a run last said of itself; None where it has said nothing yet or the file is damaged."""
    try:
        return StatusFile.model_validate_json((folder / STATUS_NAME).read_bytes())
    except (OSError, ValidationError):
        return None


def run_status(out: str | Path, *, now: datetime | None = None) -> RunStatus:
    """How the run with the output folder ``out`` is doing; the name of its working folder will do, too."""
    out = Path(os.path.abspath(out))
    if out.name.endswith(".partial") and not (out / MANIFEST_NAME).is_file():
        out = out.with_name(out.name.removesuffix(".partial"))
    partial = out.with_name(f"{out.name}.partial")
    # A run that is published meanwhile is first there, then gone from its working folder: look again in this order.
    for _ in range(2):
        if (out / MANIFEST_NAME).is_file():
            return RunStatus(out, out, "finished", "finished and published")
        process, said = holder(partial), read_status(partial)
        if said is not None or process is not None:
            return _unfinished(out, partial, process, said, now or datetime.now(UTC))
    if (partial / LOCK_NAME).exists() or (partial / LOG_NAME).exists():
        return RunStatus(
            out, partial, "interrupted", "ended before it said anything; run it again to resume"
        )
    raise RunError(
        "there is no run",
        where=str(out),
        got="a folder without a manifest" if out.is_dir() else "no such folder",
        expected=f"a finished run, or {partial.name} beside it",
        remedy="name the folder that was given to `lpact run` as --out",
    )


def _unfinished(
    out: Path, partial: Path, process: int | None, said: StatusFile | None, now: datetime
) -> RunStatus:
    if said is None or (process is not None and process != said.pid):
        why = f"process {process} on {socket.gethostname()}, which has said nothing yet"
        return RunStatus(out, partial, "running", why, process)
    if said.state in ("failed", "interrupted"):
        why = said.problem or said.state
        return RunStatus(out, partial, said.state, why, process, said)
    age = (now - said.updated_at).total_seconds()
    here = (socket.gethostname(), process_namespace()) == (said.host, said.namespace)
    if process is not None:
        why = f"process {process} on {said.host}"
        if age > SILENT_AFTER_S:
            why += f"; it last wrote {age:.0f} s ago: stopped, or waiting for a disk"
        return RunStatus(out, partial, "running", why, process, said)
    if here:
        why = (
            f"process {said.pid} ended without a word (killed, or the machine went down)"
            if said.state == "running"
            else "all is computed, but it was not published"
        )
        return RunStatus(out, partial, "interrupted", why, None, said)
    why = (
        f"process {said.pid} on {said.host}, which cannot be looked at from {socket.gethostname()}; "
        f"it last wrote {max(age, 0.0):.0f} s ago"
    )
    state: State = "running" if age < SILENT_AFTER_S else "silent"
    if state == "silent":
        why += ", and a run that goes on writes every few seconds"
    return RunStatus(out, partial, state, why, None, said)
