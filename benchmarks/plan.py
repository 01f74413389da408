"""Compare plans with runs: time and memory of every stage, on three studies of different size.

``python -m benchmarks.plan [--only small demo wide] [--workers 1 2] [--contexts N] [--out FILE]``. Each study is
planned and run in a process of its own, with each number of workers; what happened is read from the run's log. The
ratio is actual over planned: first estimates should be within a factor of two. Last, a made-up study of very many
contexts is planned.
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

RESULTS = Path(__file__).parent / "results" / "plan.json"
STUDIES = ("small", "demo", "wide")
IN_ALL = "in all"
SHORT_S = 2.0
"""Stages that take less are shown, and not judged."""
CONTEXTS, CLIENT_LIMIT = 100_000, 1e9


def one(name: str, folder: Path, workers: int) -> list[dict[str, Any]]:
    """Plan a study, run it, and compare stage by stage; to be called in a process of its own."""
    from lpact.run.status import summarise_log

    study = load(name, folder)
    plan = study.plan()
    out = folder / f"{name}-{workers}"
    start = time.perf_counter()
    study.run(out, workers=workers, progress=False, plan=plan)
    took = time.perf_counter() - start
    log = summarise_log(out / "log.jsonl").stages
    expected = plan.expected(workers)
    memory = {stage.stage: stage.peak_bytes for stage in plan.stages}
    rows = [
        {
            "stage": stage,
            "planned_s": expected[stage],
            "actual_s": found.seconds,
            "planned_bytes": memory[stage],
            "actual_bytes": max(found.peak_bytes, found.own_peak_bytes),
        }
        for stage, found in log.items()
        if stage in expected
    ]
    return [*rows, {"stage": IN_ALL, "planned_s": sum(expected.values()), "actual_s": took}]


def many_contexts(n_contexts: int) -> dict[str, Any]:
    """Plan a study of very many contexts, whose audit is made up; to be called in a process of its own."""
    from benchmarks.plan_audit import made_up_study
    from lpact.run.machine import peak_bytes
    from lpact.run.plan import make_plan

    config, audit = made_up_study(n_contexts)
    start = time.perf_counter()
    plan = make_plan(config, audit)
    return {
        "n_tasks": plan.n_tasks,
        "seconds": time.perf_counter() - start,
        "peak_bytes": peak_bytes(),
    }


def _apart(*command: str) -> Any:
    """Run this module in a process of its own, and read the last line that it prints."""
    full = [sys.executable, "-m", "benchmarks.plan", "--part", *command]
    done = subprocess.run(full, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return json.loads(done.stdout.splitlines()[-1])


def _shown(row: dict[str, Any]) -> str:
    ratio = row["actual_s"] / max(row["planned_s"], 1e-9)
    text = f"  {row['stage']:<18} planned {row['planned_s']:7.1f} s  actual {row['actual_s']:7.1f} s  ratio {ratio:.2f}"
    if "planned_bytes" in row:
        planned, actual = (row[name] / 2**20 for name in ("planned_bytes", "actual_bytes"))
        text += f"  memory {planned:.0f} and {actual:.0f} MiB"
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show and store; 1 if a whole run is beyond a factor of two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(STUDIES), choices=STUDIES)
    parser.add_argument("--workers", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--contexts", type=int, default=CONTEXTS, help="0: leave this part out")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--part", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.part:
        name, *more = given.part
        part = one(name, Path(more[0]), int(more[1])) if more else many_contexts(int(name))
        print(json.dumps(part))
        return 0
    results: dict[str, Any] = {"machine": machine(), "versions": versions(), "studies": {}}
    missed = False
    with tempfile.TemporaryDirectory(prefix="lpact-bench-") as folder:
        for name in given.only:
            for workers in given.workers:
                rows = _apart(name, folder, str(workers))
                results["studies"][f"{name}, {workers} worker(s)"] = rows
                print(f"{name}, {workers} worker(s):", *map(_shown, rows), sep="\n", flush=True)
                total = rows[-1]
                long = total["actual_s"] > SHORT_S
                missed |= long and not 0.5 <= total["actual_s"] / total["planned_s"] <= 2.0
    if given.contexts:
        many = results["many_contexts"] = _apart(str(given.contexts))
        print(f"{many['n_tasks']:,} tasks planned in {many['seconds']:.1f} s")
        missed |= many["peak_bytes"] > CLIENT_LIMIT
    given.out.write_text(json.dumps(results, indent=2) + "\n")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
