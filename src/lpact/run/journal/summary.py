"""What the log of a run says in the end: times, tasks and memory of every stage, over all attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from lpact.run.journal.log import read_log


@dataclass
class StageSummary:
    """One stage: wall time and computed tasks of all attempts, and the most memory that one process held."""

    seconds: float = 0.0
    n_finished: int = 0
    n_failed: int = 0
    peak_bytes: int = 0
    own_peak_bytes: int = 0


@dataclass
class LogSummary:
    """A whole log. ``failures`` are those of the last attempt, with tracebacks."""

    n_attempts: int = 0
    stages: dict[str, StageSummary] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        stages = {name: asdict(stage) for name, stage in self.stages.items()}
        return {"n_attempts": self.n_attempts, "stages": stages}


def summarise_log(path: Path) -> LogSummary:
    """Read a log line by line. A stage that a kill cut short counts until the last line of its attempt."""
    summary = LogSummary()
    open_stage, began, last = "", "", ""
    for line in read_log(path):
        event, name = line["event"], line["stage"]
        if event == "run_started":
            _cut_short(summary, open_stage, began, last)
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
            stage.seconds += _number(line, "seconds")
            stage.own_peak_bytes = max(stage.own_peak_bytes, int(_number(line, "own_peak_bytes")))
        elif event == "task_finished":
            stage.n_finished += 1
            stage.peak_bytes = max(stage.peak_bytes, int(_number(line, "peak_bytes")))
        elif event == "task_failed":
            stage.n_failed += 1
            summary.failures.append(line)
    _cut_short(summary, open_stage, began, last)
    return summary


def _cut_short(summary: LogSummary, stage: str, began: str, last: str) -> None:
    if stage:
        try:
            spent = datetime.fromisoformat(last) - datetime.fromisoformat(began)
        except (ValueError, TypeError):
            return
        summary.stages[stage].seconds += max(spent.total_seconds(), 0.0)


def _number(line: Mapping[str, Any], name: str) -> float:
    value = line.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
