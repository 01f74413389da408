"""Hold a plan against what then happens: time, memory and disk of every stage, on three studies of different size.

``python -m benchmarks.plan [--only small demo wide] [--workers 1 2] [--contexts N] [--out FILE]``. Each study is
planned in a process of its own, then run in another with each number of workers. Time is that of the wall; ``cpu`` is
that of the processors, which other work on the machine disturbs less. Memory is the most that any one process held in a
stage, looked at twenty times a second. The ratio is actual over planned: 1 is exact, 0.5 to 2 is what is asked for.
Worker processes start in the first stage that has tasks, and are planned there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, versions
from benchmarks.plan_studies import ROOT, load
from benchmarks.plan_watch import Watch
from lpact.run.fit import retained
from lpact.run.plan import WORKER_START_S
from lpact.run.stages import AUDIT, BRAINS, DECISION, REPORT, TABLES

RESULTS = Path(__file__).parent / "results" / "plan.json"
STUDIES = ("small", "demo", "wide")
IN_ALL = "in all"
AT_LEAST = {"seconds": 2.0, "peak_bytes": 1.0, "disk_bytes": 1e6}
"""Smaller figures are shown, and not held against the factor of two."""

AFTERWARDS = (DECISION, TABLES, REPORT)
"""Stages that a process comes to when it has computed contexts, if it is the only one."""

N_CONTEXTS = 100_000
CLIENT_LIMIT = 1e9


def size_of(folder: Path) -> int:
    """Bytes of all files below."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) if folder.exists() else 0


def plan_one(name: str, folder: Path) -> dict[str, Any]:
    """Stages as planned; to be called in a process of its own."""
    study = load(name, folder)
    start = time.perf_counter()
    plan = study.plan()
    stages = plan.stages
    took = time.perf_counter() - start
    return {
        "took_s": took,
        "extrapolated": plan.estimate.extrapolated,
        "memory": {str(n): plan.memory_with(n) for n in (1, 2)},
        "retained": retained(stages),
        "stages": {
            s.stage: {
                "n_tasks": s.n_tasks,
                "peak_bytes": s.peak_bytes,
                "disk_bytes": s.disk_bytes,
                "seconds": {str(n): s.seconds_with(n) for n in (1, 2)},
            }
            for s in stages
        },
        "seconds": {str(n): plan.seconds_with(n) for n in (1, 2)},
    }


def run_one(name: str, folder: Path, workers: int) -> dict[str, Any]:
    """Stages as they were; to be called in a process of its own."""
    from lpact.run.execute import execute
    from lpact.study import Run

    study = load(name, folder)
    out = folder / f"{name}-{workers}"
    tasks: dict[str, int] = {}

    class Told(Watch):
        def stage(self, name: str, total: int) -> None:
            tasks[name] = size_of(out.with_name(f"{out.name}.partial") / "tasks")
            super().stage(name, total)

    with Told() as watch:
        watch.stage(AUDIT, 0)
        execute(study.config, settings=study.run_config, out=out, workers=workers, reporter=watch)
        tables = size_of(out)
        watch.stage(REPORT, 0)
        Run(out).report(workers=workers)
    return {
        "seconds": watch.seconds(),
        "peak_bytes": watch.peak,
        "tasks_bytes": max(tasks.values(), default=0),
        "tables_bytes": tables,
        "report_bytes": size_of(out) - tables,
    }


def compared(planned: dict[str, Any], found: dict[str, Any], workers: int) -> list[dict[str, Any]]:
    """One row a stage and quantity, and those of the whole."""
    rows = []
    for stage, own in planned["stages"].items():
        actual = found["seconds"].get(stage)
        if actual is not None:
            seconds = own["seconds"][str(workers)]
            if workers > 1 and stage == BRAINS:
                seconds += WORKER_START_S
            peak = own["peak_bytes"]
            if workers == 1 and stage in AFTERWARDS:
                peak += planned["retained"]
            rows.append(_row(stage, "seconds", seconds, actual["wall"], cpu=actual["cpu"]))
            rows.append(_row(stage, "peak_bytes", peak, found["peak_bytes"].get(stage, 0)))
    disk = {stage: own["disk_bytes"] for stage, own in planned["stages"].items()}
    kept = disk["tables"], disk["report"]
    tasks = sum(
        n
        for stage, n in disk.items()
        if stage not in ("source audit", "features", "tables", "report")
    )
    rows += [
        _row("tasks", "disk_bytes", tasks, found["tasks_bytes"]),
        _row("tables", "disk_bytes", kept[0], found["tables_bytes"]),
        _row("report", "disk_bytes", kept[1], found["report_bytes"]),
        _row(
            IN_ALL,
            "disk_bytes",
            tasks + sum(kept),
            found["tasks_bytes"] + found["tables_bytes"] + found["report_bytes"],
        ),
        _row(
            IN_ALL,
            "seconds",
            planned["seconds"][str(workers)],
            sum(own["wall"] for own in found["seconds"].values()),
            cpu=sum(own["cpu"] for own in found["seconds"].values()),
        ),
        _row(
            IN_ALL,
            "peak_bytes",
            planned["memory"]["1"]
            if workers == 1
            else max(own["peak_bytes"] for own in planned["stages"].values()),
            max(found["peak_bytes"].values(), default=0),
        ),
    ]
    return rows


def _row(stage: str, what: str, planned: float, actual: float, **more: float) -> dict[str, Any]:
    ratio = actual / planned if planned else None
    return {
        "stage": stage,
        "what": what,
        "planned": planned,
        "actual": actual,
        "ratio": ratio,
        **more,
    }


def shown(row: dict[str, Any]) -> str:
    """A row in words."""
    scale, unit = (1, "s") if row["what"] == "seconds" else (2**20, "MiB")
    ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}"
    cpu = f" (cpu {row['cpu']:.1f})" if "cpu" in row else ""
    return (
        f"  {row['stage']:<18} {row['what']:<11} planned {row['planned'] / scale:9.1f} {unit:<3} "
        f"actual {row['actual'] / scale:9.1f} {unit:<3} ratio {ratio}{cpu}"
    )


def many_contexts(n_contexts: int) -> dict[str, Any]:
    """Count and estimate a study of very many contexts, whose audit is made up; in a process of its own."""
    from benchmarks.plan_audit import made_up_study
    from lpact.run.memory import peak_bytes
    from lpact.run.plan import make_plan

    config, audit = made_up_study(n_contexts)
    start, before = time.perf_counter(), peak_bytes()
    plan = make_plan(config, audit)
    counted = time.perf_counter() - start
    seconds = plan.seconds_with(2)
    return {
        "n_contexts": plan.n_contexts,
        "count_s": counted,
        "estimate_s": time.perf_counter() - start - counted,
        "before_bytes": before,
        "peak_bytes": peak_bytes(),
        "planned_s": seconds,
    }


def _apart(*command: str) -> Any:
    """Run this module in a process of its own, and read what it prints last."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.plan", *command],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(STUDIES), choices=STUDIES)
    parser.add_argument("--workers", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--contexts", type=int, default=N_CONTEXTS, help="0: leave this part out")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--part", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.part:
        print(json.dumps(_part(*given.part)))
        return 0
    results: dict[str, Any] = {"machine": machine(), "versions": versions(), "studies": {}}
    missed = []
    with tempfile.TemporaryDirectory(prefix="lpact-bench-") as folder:
        for name in given.only:
            planned = _apart("--part", "plan", name, folder)
            print(f"{name}: planned in {planned['took_s']:.1f} s", flush=True)
            own = results["studies"][name] = {"plan": planned, "runs": {}}
            for workers in given.workers:
                found = _apart("--part", "run", name, folder, str(workers))
                rows = compared(planned, found, workers)
                own["runs"][str(workers)] = {"found": found, "rows": rows}
                print(f" {workers} worker(s):", *(shown(row) for row in rows), sep="\n", flush=True)
                missed += [(name, workers, row["what"]) for row in rows if _missed(row)]
    if given.contexts:
        many = results["many_contexts"] = _apart("--part", "many", str(given.contexts))
        print(f"{given.contexts:,} contexts: {many}")
        if many["peak_bytes"] > CLIENT_LIMIT:
            missed.append(("many contexts", 0, "peak_bytes"))
    given.out.write_text(json.dumps(results, indent=2) + "\n")
    print("beyond a factor of two:", missed or "nothing")
    return bool(missed)


def _missed(row: dict[str, Any]) -> bool:
    """Whether a figure of the whole is beyond a factor of two."""
    small = max(row["planned"], row["actual"]) < AT_LEAST[row["what"]]
    return row["stage"] == IN_ALL and not small and not 0.5 <= (row["ratio"] or 0.0) <= 2.0


def _part(kind: str, *more: str) -> dict[str, Any]:
    if kind == "plan":
        return plan_one(more[0], Path(more[1]))
    if kind == "run":
        return run_one(more[0], Path(more[1]), int(more[2]))
    return many_contexts(int(more[0]))


if __name__ == "__main__":
    sys.exit(main())
