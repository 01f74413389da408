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
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine, versions
from lpact.run.plan import WORKER_START_S
from lpact.run.stages import AUDIT, BRAINS, REPORT

RESULTS = Path(__file__).parent / "results" / "plan.json"
ROOT = Path(__file__).parents[1]
STUDIES = ("small", "demo", "wide")
IN_ALL = "in all"
AT_LEAST = {"seconds": 2.0, "peak_bytes": 1.0, "disk_bytes": 1e6}
"""Smaller figures are shown, and not held against the factor of two."""

PERIOD_S = 0.05
N_CONTEXTS = 100_000
CLIENT_LIMIT = 1e9


def load(name: str, folder: Path) -> Any:
    """One of the three studies; the wide one is written to disk."""
    import lpact

    if name == "small":
        sys.path.insert(0, str(ROOT / "tests"))
        from small_study import SMALL

        return lpact.load_study(SMALL)
    if name == "demo":
        return lpact.load_study(ROOT / "src" / "lpact" / "run" / "demo.toml")
    data = folder / "wide-data"
    if not data.exists():
        write_wide(data)
    study = folder / "wide.toml"
    study.write_text(WIDE.format(folder=data, features=folder / "f", grids=folder / "g"))
    return lpact.load_study(study)


WIDE = """
name = "wide"
seed = 5
[[datasets]]
name = "wide"
reader = "folder"
grid = {{ lags_ms = [0.0, 200.0, 400.0] }}
[[models]]
name = "large"
layers = [1]
[controls]
draws = 2
include = ["random_matched_dim", "random_matched_autocorr", "circular_shift", "sentence_reset_fresh"]
[stripping]
mechanisms = ["surprisal", "context_update"]
methods = ["feature_zeroing", "feature_residualization"]
mismatch_draws = 1
[run]
features = "{features}"
grids = "{grids}"
[run.paths]
wide = "{folder}"
"""


def write_wide(
    root: Path, *, n_words: int = 2400, n_columns: int = 768, n_units: int = 48, n_subjects: int = 3
) -> None:
    """A folder of noise: one stimulus, features of two layers, a few subjects."""
    rng = np.random.default_rng(0)
    stimulus = root / "stimuli" / "talk"
    stimulus.mkdir(parents=True)
    (root / "dataset.toml").write_text('source = "noise"\nversion = "1"\nlicence = "CC0"\n')
    lines = ["word\tonset_s\toffset_s\tsentence_id\tstory_id"]
    for i in range(n_words):
        onset = 1.0 + 0.4 * i
        story = 4 * i // n_words
        lines.append(f"w{i % 97}x\t{onset:.3f}\t{onset + 0.3:.3f}\t{i // 8}\ts{story}")
    (stimulus / "words.tsv").write_text("\n".join(lines) + "\n")
    values = rng.standard_normal((n_words, 2))
    rows = [f"{a:.4f}\t{b:.4f}" for a, b in values]
    (stimulus / "mechanisms.tsv").write_text("\n".join(["surprisal\tcontext_update", *rows]) + "\n")
    for context in ("full", "sentence_reset"):
        folder = stimulus / "features" / "large" / context
        folder.mkdir(parents=True)
        for layer in (0, 1):
            features = rng.standard_normal((n_words, n_columns)).astype(np.float32)
            np.save(folder / f"layer-{layer}.npy", features)
    for subject in range(1, n_subjects + 1):
        recording = root / "recordings" / f"sub-{subject}"
        recording.mkdir(parents=True)
        (recording / "recording.toml").write_text(
            f'subject = "{subject}"\nsession = "1"\nrun = "1"\nstimulus = "talk"\n'
            "sampling_rate_hz = 100.0\nstart_s = 0.0\n"
        )
        n_samples = int(100 * (0.4 * n_words + 4))
        np.save(
            recording / "neural.npy", rng.standard_normal((n_samples, n_units)).astype(np.float32)
        )
        units = ["unit\tregion", *(f"u{i}\tr{i % 4}" for i in range(n_units))]
        (recording / "units.tsv").write_text("\n".join(units) + "\n")


class Watch:
    """Notes when stages begin, and what processes hold and use meanwhile."""

    def __init__(self) -> None:
        self.began: list[tuple[str, float, float]] = []
        self.peak: dict[str, int] = {}
        self._gone: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def stage(self, name: str, total: int) -> None:  # noqa: ARG002
        """A stage begins; the one that ran goes on where it is named again."""
        if not self.began or self.began[-1][0] != name:
            self.began.append((name, time.perf_counter(), self._cpu()))

    def advance(self, steps: int = 1) -> None:
        """Not of interest."""

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.began.append(("", time.perf_counter(), self._cpu()))

    def seconds(self) -> dict[str, dict[str, float]]:
        """Wall and processor seconds by stage."""
        found: dict[str, dict[str, float]] = {}
        for (name, start, cpu), (_, stop, later) in zip(self.began, self.began[1:], strict=False):
            own = found.setdefault(name, {"wall": 0.0, "cpu": 0.0})
            own["wall"] += stop - start
            own["cpu"] += later - cpu
        return found

    def _processes(self) -> list[int]:
        """This process and all below it."""
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    after = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                parents[int(entry.name)] = int(after[1])
        found = {os.getpid()}
        for _ in range(3):
            found |= {pid for pid, parent in parents.items() if parent in found}
        return sorted(found)

    def _cpu(self) -> float:
        tick = os.sysconf("SC_CLK_TCK")
        for pid in self._processes():
            try:
                after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            self._gone[pid] = (int(after[11]) + int(after[12])) / tick
        return sum(self._gone.values())

    def _look(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self._stop.wait(PERIOD_S):
            if not self.began:
                continue
            name = self.began[-1][0]
            for pid in self._processes():
                try:
                    held = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
                except (OSError, IndexError):
                    continue
                self.peak[name] = max(self.peak.get(name, 0), held)


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
            rows.append(_row(stage, "seconds", seconds, actual["wall"], cpu=actual["cpu"]))
            rows.append(
                _row(stage, "peak_bytes", own["peak_bytes"], found["peak_bytes"].get(stage, 0))
            )
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
            max(own["peak_bytes"] for own in planned["stages"].values()),
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
