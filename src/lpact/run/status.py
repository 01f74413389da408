"""State and history of a run, from its ``status.json`` and ``log.jsonl``; reading them does not disturb it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from lpact.errors import RunError
from lpact.store.disk import LOCK_NAME, holder
from lpact.store.manifest import MANIFEST_NAME

STATUS_NAME = "status.json"
STATUS_FORMAT = 1
LOG_NAME = "log.jsonl"
ALWAYS_LOGGED = ("time", "event", "stage")
"""Fields of every line of the log."""
SILENT_AFTER_S = 60.0
"""A run writes its status every few seconds; without one for this long it may have ended."""

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
        """The log of the run."""
        return self.folder / LOG_NAME

    def as_json(self) -> dict[str, Any]:
        """Plain values, as `lpact status --json` prints them."""
        return {
            "run": str(self.out),
            "state": self.state,
            "why": self.why,
            "process": self.process,
            "log": str(self.log),
            "said": None if self.said is None else self.said.model_dump(mode="json"),
        }


def process_namespace() -> str:
    """The namespace of process numbers: containers of one machine have their own."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def read_status(folder: Path) -> StatusFile | None:
    """The status that a run wrote last; None if there is none, or the file is damaged."""
    try:
        return StatusFile.model_validate_json((folder / STATUS_NAME).read_bytes())
    except (OSError, ValidationError):
        return None


def run_status(out: str | Path, *, now: datetime | None = None) -> RunStatus:
    """State of the run with the output folder ``out``; the name of its working folder works too."""
    out = Path(os.path.abspath(out))
    if out.name.endswith(".partial") and not (out / MANIFEST_NAME).is_file():
        out = out.with_name(out.name.removesuffix(".partial"))
    partial = out.with_name(f"{out.name}.partial")
    # A run that is published meanwhile appears before its working folder goes: look again in this order.
    for _ in range(2):
        if (out / MANIFEST_NAME).is_file():
            return RunStatus(out, out, "finished", "finished and published")
        process, said = holder(partial), read_status(partial)
        if said is not None or process is not None:
            state, why = _unfinished(process, said, now or datetime.now(UTC))
            other = said is not None and process not in (None, said.pid)
            return RunStatus(out, partial, state, why, process, None if other else said)
    if (partial / LOCK_NAME).exists() or (partial / LOG_NAME).exists():
        why = "ended before it wrote a status; run it again to resume"
        return RunStatus(out, partial, "interrupted", why)
    raise RunError(
        "there is no run",
        where=str(out),
        got="a folder without a manifest" if out.is_dir() else "no such folder",
        expected=f"a finished run, or {partial.name} next to it",
        remedy="name the folder that was given to `lpact run` as --out",
    )


def _unfinished(process: int | None, said: StatusFile | None, now: datetime) -> tuple[State, str]:
    """State of a run that is not published, and why; ``process`` is the one that has locked its folder."""
    host = socket.gethostname()
    if said is None or process not in (None, said.pid):
        return "running", f"process {process} on {host}, which has not written a status yet"
    if said.state in ("failed", "interrupted"):
        return said.state, said.problem or said.state
    age = (now - said.updated_at).total_seconds()
    if process is not None:
        late = f"; last update {age:.0f} s ago: stopped, or waiting for a disk"
        return "running", f"process {process} on {said.host}" + (late if age > SILENT_AFTER_S else "")
    if (host, process_namespace()) == (said.host, said.namespace):
        if said.state == "running":
            why = f"process {said.pid} ended without a message (killed, or the machine failed)"
            return "interrupted", why
        return "interrupted", "everything is computed, but it was not published"
    why = f"process {said.pid} on {said.host}, which cannot be seen from {host}; last update {max(age, 0.0):.0f} s ago"
    if age < SILENT_AFTER_S:
        return "running", why
    return "silent", f"{why}; a live run writes every few seconds"


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """Every complete line of a log, oldest first; none if there is no log."""
    if not path.is_file():
        return
    with path.open("rb") as handle:
        for line in handle:
            try:
                values = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(values, dict) and all(isinstance(values.get(name), str) for name in ALWAYS_LOGGED):
                yield values


@dataclass
class StageSummary:
    """One stage: wall time and tasks of all attempts, and the memory peak of one process."""

    seconds: float = 0.0
    n_finished: int = 0
    n_failed: int = 0
    peak_bytes: int = 0
    own_peak_bytes: int = 0


@dataclass
class LogSummary:
    """A whole log; ``failures`` are those of the last attempt, with tracebacks."""

    n_attempts: int = 0
    stages: dict[str, StageSummary] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        values = asdict(self)
        del values["failures"]
        return values


def summarise_log(path: Path) -> LogSummary:
    """Times, tasks and memory by stage; a stage that a kill cut short counts until the last line of its attempt."""
    summary = LogSummary()
    open_stage, began, last = "", "", ""

    def cut_short() -> None:
        if open_stage:
            spent = datetime.fromisoformat(last) - datetime.fromisoformat(began)
            summary.stages[open_stage].seconds += max(spent.total_seconds(), 0.0)

    for line in read_log(path):
        event, name = line["event"], line["stage"]
        if event == "run_started":
            cut_short()
            open_stage = ""
            summary.n_attempts += 1
            summary.failures.clear()
        last = line["time"]
        if not name:
            continue
        stage = summary.stages.setdefault(name, StageSummary())
        if event == "stage_started":
            open_stage, began = name, line["time"]
        elif event == "stage_finished":
            open_stage = ""
            stage.seconds += line.get("seconds", 0.0)
            stage.own_peak_bytes = max(stage.own_peak_bytes, line.get("own_peak_bytes", 0))
        elif event == "task_finished":
            stage.n_finished += 1
            stage.peak_bytes = max(stage.peak_bytes, line.get("peak_bytes", 0))
        elif event == "task_failed":
            stage.n_failed += 1
            summary.failures.append(line)
    cut_short()
    return summary
