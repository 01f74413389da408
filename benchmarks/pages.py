"""Time ``lpact report``: on the demo, and on a study at least as large as the paper's.

``python -m benchmarks.pages [--run FOLDER]``. Without ``--run`` the demo study is computed first. The larger one is the
demo's tables repeated under new names of models until there are at least 9,036 rows of prediction, 20,736 of stripping
and 8,640 of relational contrasts.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.machine import machine, versions
from lpact.store import Provenance, StoredRun, build_manifest, write_manifest, write_table

RESULTS = Path(__file__).parent / "results" / "report.json"
PAPER = {
    "predictive/predictive_scores": 9_036,
    "causal/causal_stripping_deltas": 20_736,
    "relational/profile_similarity_deltas": 8_640,
}
LIMITS = {"demo": (10.0, 15e6), "paper": (30.0, 30e6)}
"""Seconds and bytes of the page that must not be exceeded."""
CODE = "from lpact.cli import main; main()"


def make_larger(source: Path, out: Path) -> Path:
    """A run of the paper's size: every model of the source under several names."""
    stored = StoredRun(source)
    n = max(-(-wanted // stored.n_rows(name)) for name, wanted in PAPER.items())
    for table in stored.tables():
        frame = stored.table(table.name)
        if "model" in table.key:
            frame = pl.concat(frame.with_columns(pl.col("model") + f"_{i}") for i in range(n))
        write_table(frame.sort(table.key), table, out)
    old = stored.manifest
    provenance = Provenance("paper size", old.seed, old.config, old.inputs, old.plugins)
    write_manifest(out, build_manifest(out, provenance))
    return out


def measure(run: Path, out: Path) -> dict[str, Any]:
    """One report, in a process of its own: seconds, processor seconds, bytes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    command = [sys.executable, "-c", CODE, "report", str(run), "--out", str(out)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    stored = StoredRun(run)
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        "page_bytes": (out / "report.html").stat().st_size,
        "rows": {name: stored.n_rows(name) for name in PAPER},
        "claims": stored.n_rows("decisions/lpact_decision_table") // 2,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="a finished demo run")
    given = parser.parse_args().run
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        demo = given or place / "demo"
        if given is None:
            command = [sys.executable, "-c", CODE, "demo", "--out", str(demo)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        runs = {"demo": demo, "paper": make_larger(demo, place / "paper")}
        found = {name: measure(run, place / f"report-{name}") for name, run in runs.items()}
    for name, row in found.items():
        seconds, size = LIMITS[name]
        row["within_limits"] = row["seconds"] <= seconds and row["page_bytes"] <= size
        print(f"{name}: {row}")
    RESULTS.write_text(json.dumps({"machine": machine(), "versions": versions(), "reports": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
