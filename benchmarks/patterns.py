"""Alignment patterns at the size of the paper: 47 models of 15 layers, 19 regions of 10 subjects, 998 + 98 stimuli.

``python -m benchmarks.patterns [--measure rsa|linear_r2] [--workers N] [--device cuda] [--interrupt S] [--out FILE]``,
and ``--models``, ``--layers`` … for smaller ones. A study of simulated regions, whose features (5,919 columns) are
made as they are read, is planned, and run by the command line in processes of its own. ``--interrupt`` stops it after
so many seconds with Ctrl-C: the same command, with the same folder ``--keep``, resumes. Memory is that of all processes
together, shared pages counted once.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, versions
from lpact import load_study
from lpact.run.status import LOG_NAME, read_log

RESULTS = Path(__file__).parent / "results"
N_BUILT_IN = 4
"""Models of simulated regions that are always there."""

STUDY = """
name = "size-of-the-paper"
seed = 5

[[datasets]]
name = "films"
reader = "simulated_regions"
grid = {{ lags_ms = [0.0] }}

[datasets.options]
n_subjects = {subjects}
n_regions = {regions}
n_units = {units}
n_models = {more}
n_layers = {layers}
n_columns = {columns}
n_train = {train}
n_test = {test}
n_repetitions = 2

{models}
[patterns]
measures = ["{measure}"]
layer_folds = {folds}
connectivity = "dataset"

[readout]
device = "{device}"
memory_gib = {memory}
"""
MODEL = """[[models]]
name = "{name}"
layers = {layers}

"""


def study(options: argparse.Namespace) -> str:
    """The study file."""
    names = ("one_more_brain", "all_latents", "untrained_brain", "noise")[: options.models]
    more = max(0, options.models - N_BUILT_IN)
    names += tuple(f"model{i + 1:02d}" for i in range(more))
    layers = list(range(options.layers))
    models = "".join(MODEL.format(name=name, layers=layers) for name in names)
    return STUDY.format(**(vars(options) | {"more": more, "models": models}))


def held_bytes(root: int) -> int:
    """Memory of a process and its descendants; pages that several share count once in all."""
    total = 0
    for process in descendants(root):
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            total += 1024 * int(next(own for own in lines if own.startswith("Pss:")).split()[1])
    return total


def descendants(root: int) -> list[int]:
    """Ids of a process and of all that it started."""
    found = [root]
    with suppress(OSError):
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += descendants(int(child))
    return found


def run(command: list[str], interrupt: float) -> tuple[int, float, int]:
    """Exit status, seconds and most memory of a command, which is interrupted after so many seconds (0: never)."""
    began, most, stopped = time.perf_counter(), 0, False
    process = subprocess.Popen(command)
    while process.poll() is None:
        most = max(most, held_bytes(process.pid))
        if interrupt and not stopped and time.perf_counter() - began > interrupt:
            process.send_signal(signal.SIGINT)
            stopped = True
        time.sleep(0.5)
    return process.returncode, time.perf_counter() - began, most


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Plan and run the study."""
    path, out, earlier = folder / "study.toml", folder / "run", folder / "attempts.json"
    path.write_text(study(options))
    if earlier.exists():
        planned, parts = json.loads(earlier.read_text())
    else:
        plan, parts = load_study(path).plan(), []
        planned = {
            "n_tasks": plan.n_tasks,
            "seconds": plan.seconds_with(options.workers),
            "memory_bytes": plan.memory_with(options.workers),
        }
    command = [sys.executable, "-m", "lpact", "run", str(path), "--out", str(out)]
    command += ["--workers", str(options.workers), "--report" if options.report else "--no-report"]
    status, seconds, most = run(command, options.interrupt)
    parts.append({"status": status, "seconds": seconds, "peak_bytes": most})
    earlier.write_text(json.dumps([planned, parts]))
    if status:
        raise SystemExit(f"the run ended with status {status} after {seconds:.0f} s")
    log = list(read_log(out / LOG_NAME))
    stages: dict[str, float] = {}
    for event in log:
        if event["event"] == "stage_finished":
            stages[event["stage"]] = stages.get(event["stage"], 0.0) + event["seconds"]
    sizes = ("models", "layers", "regions", "subjects", "units", "train", "test", "columns")
    return {
        "machine": options.machine or machine(),
        "versions": versions(),
        "measure": options.measure,
        "sizes": {name: getattr(options, name) for name in sizes},
        "layer_folds": options.folds,
        "workers": options.workers,
        "device": options.device,
        "planned": planned,
        "attempts": parts,
        "n_tasks_finished": sum(event["event"] == "task_finished" for event in log),
        "stage_seconds": stages,
        "peak_bytes": max(part["peak_bytes"] for part in parts),
        "seconds": sum(part["seconds"] for part in parts),
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", default="rsa")
    paper = {
        "models": 47,
        "layers": 15,
        "regions": 19,
        "subjects": 10,
        "units": 316,
        "train": 998,
        "test": 98,
        "columns": 5919,
    }
    for name, default in (paper | {"folds": 5, "workers": 2}).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--memory", type=float, default=2.0, help="GiB per fit")
    parser.add_argument("--interrupt", type=float, default=0.0)
    parser.add_argument("--machine", default="", help="words in place of the processor's")
    parser.add_argument("--report", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--keep", type=Path, help="folder of the run")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        found = measure(options.keep or Path(temporary), options)
    gpu = "" if options.device == "cpu" else f"-{options.device}"
    out = options.out or RESULTS / f"patterns-{options.measure}{gpu}.json"
    out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{found['seconds']:.0f} s, {found['peak_bytes'] / 2**30:.2f} GiB; {out}")


if __name__ == "__main__":
    main()
