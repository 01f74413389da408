"""Time the decision and the robustness analyses on tables of a finished run, and on the same tables many times over.

``python -m benchmarks.decide [--run FOLDER] [--quick]``. Without ``--run`` the demo study is computed first. Its tables
are repeated under new names of models, and of subjects.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.machine import machine, versions
from benchmarks.timing import middle, stopwatch
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.gates import NEEDED, decide
from lpact.analyses.lpact.robustness import (
    READS,
    READS_DECIDED,
    READS_IF_THERE,
    n_claim_decisions,
    robustness,
)
from lpact.cli.study import demo_study
from lpact.store import StoredRun
from lpact.study import open_run

RESULTS = Path(__file__).parent / "results"
REPEATS = 3
TIMES = {"as it is": ("", 1), "models × 10": ("model", 10), "subjects × 4": ("subject", 4)}
"""Columns whose names are made new, and how often the tables are repeated."""
TARGETS_S = {("as it is", "decide"): 0.6, ("as it is", "robustness"): 2.0}

Tables = dict[str, pl.DataFrame]
Row = dict[str, Any]


def repeated(tables: Tables, column: str, n: int) -> Tables:
    """Every table that names ``column``, n times, under n names."""
    return {
        name: pl.concat(table.with_columns(pl.format("{}_{}", column, pl.lit(i)).alias(column)) for i in range(n))
        if column in table.columns
        else table
        for name, table in tables.items()
    }


def measure(tables: Tables, config: LPactConfig, times: str, repeats: int) -> list[Row]:
    """Median seconds of the decision, of the analyses that need no other, and of all."""
    common: dict[str, Any] = {
        "gates": config.gates,
        "primary_metric": config.readout.primary_metric,
    }
    cases: dict[str, Callable[[], object]] = {
        "decide": partial(decide, {t.name: tables[t.name] for t in NEEDED}, **common),
        "uncertainty tables, as decided": partial(robustness, tables, seed=config.seed, decide_again=False, **common),
        "robustness": partial(robustness, tables, seed=config.seed, **common),
    }
    return [
        {
            "name": name,
            "tables": times,
            "seconds": round(taken.wall, 3),
            "cpu_seconds": round(taken.cpu, 3),
            "target_s": TARGETS_S.get((times, name)),
            "repeats": repeats,
            "n_claim_decisions": n_claim_decisions(tables),
        }
        for name, work in cases.items()
        for taken in [middle([stopwatch(work)[0] for _ in range(repeats)])]
    ]


def _read(folder: Path) -> tuple[Tables, LPactConfig]:
    run = StoredRun(folder)
    present = {table.name for table in run.tables()}
    wanted = {table.name for table in (*READS, *READS_DECIDED, *READS_IF_THERE)}
    return {name: run.table(name) for name in sorted(wanted & present)}, LPactConfig.of(open_run(folder).config)


def main(arguments: list[str] | None = None) -> int:
    """Measure, show and store; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="a finished run; default: the demo study")
    parser.add_argument("--quick", action="store_true", help="once, and the tables as they are")
    parser.add_argument("--out", type=Path, default=RESULTS / "decide.json")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or Path(folder) / "demo"
        if options.run is None:
            demo_study().run(run, progress=False)
        tables, config = _read(run)
    rows: list[Row] = []
    for times, (column, n) in list(TIMES.items())[: 1 if options.quick else None]:
        mine = repeated(tables, column, n) if column else tables
        rows += measure(mine, config, times, 1 if options.quick else REPEATS)
    for row in rows:
        print(
            f"{row['tables']:14} {row['name']:32} {row['seconds']:8.2f} s  {row['n_claim_decisions']} claim decisions"
        )
    about = {"machine": machine(), "versions": versions()}
    options.out.write_text(json.dumps([row | about for row in rows], indent=2) + "\n")
    return int(any(row["target_s"] and row["seconds"] > row["target_s"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
