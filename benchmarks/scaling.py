"""Time the demo study in one process and in two, each in a fresh interpreter, in turns.

``python -m benchmarks.scaling [--repeats 3] [--workers 2]``. Seconds run from the source audit to the published
run, without imports. Stages with tasks are counted apart from those that one process does alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import machine, versions
from lpact.analyses.lpact.plan.stages import BRAINS, CEILINGS, CONTROLS, LEVELS
from lpact.run.progress import Reporter

RESULTS = Path(__file__).parent / "results"
TARGET = 1.7
COMPUTED = (BRAINS, LEVELS, CEILINGS, CONTROLS)
"""Stages that are cut into tasks."""

_ONE = "import sys; from benchmarks.scaling import one; one(int(sys.argv[1]), sys.argv[2])"


class Stages(Reporter):
    """Seconds by stage: a reporter of a run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._current = "before"
        self._began = time.perf_counter()

    def stage(self, name: str, total: int) -> None:  # noqa: ARG002
        """A stage begins, and the one before ends."""
        now = time.perf_counter()
        self.seconds[self._current] = self.seconds.get(self._current, 0.0) + now - self._began
        self._current, self._began = name, now

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())


def one(workers: int, folder: str) -> None:
    """Run the demo study, and print seconds by stage."""
    from lpact.cli.study import demo_study
    from lpact.run.execute import execute

    study = demo_study()
    stages = Stages()
    execute(
        study.config,
        settings=study.run_config,
        out=Path(folder) / "run",
        workers=workers,
        reporter=stages,
    )
    stages.stage("end", 0)
    print(json.dumps(stages.seconds))


def measure(workers: int) -> dict[str, float]:
    """Seconds by stage, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _ONE, str(workers), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the study failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def summarise(runs: list[dict[str, float]]) -> dict[str, float]:
    """Medians by stage, and of the sums that matter."""
    stages = {name: median(run.get(name, 0.0) for run in runs) for name in runs[0]}
    return {
        **stages,
        "all tasks": median(sum(run.get(name, 0.0) for name in COMPUTED) for run in runs),
        "whole run": median(sum(run.values()) for run in runs),
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure, show and store; 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "scaling.json")
    options = parser.parse_args(arguments)
    runs: dict[int, list[dict[str, float]]] = {1: [], options.workers: []}
    for _ in range(options.repeats):
        for workers, found in runs.items():
            found.append(measure(workers))
    alone, together = summarise(runs[1]), summarise(runs[options.workers])
    rows: list[dict[str, Any]] = []
    for name, seconds in alone.items():
        shared = together.get(name, 0.0)
        ratio = seconds / shared if shared > 0 else None
        target = TARGET if name == "whole run" else None
        rows.append(
            {
                "name": name,
                "seconds_1": round(seconds, 2),
                f"seconds_{options.workers}": round(shared, 2),
                "ratio": None if ratio is None else round(ratio, 3),
                "target": target,
                "repeats": options.repeats,
            }
        )
        print(f"{name:20} {seconds:8.2f} s  {shared:8.2f} s  {ratio or float('nan'):6.2f}×")
    about = {"machine": machine(), "versions": versions()}
    options.out.write_text(json.dumps([row | about for row in rows], indent=2) + "\n")
    return int(any(row["target"] and (row["ratio"] or 0) < row["target"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
