"""Time the explorer on a run of ten million table rows: a real server, asked by another process.

``python -m benchmarks.explorer [--run FOLDER] [--rows N]``. Without ``--run`` the demo study is computed first. Its
tables are repeated under new names of datasets and models until they have ``--rows`` rows together.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.machine import machine, versions
from lpact.store import Provenance, StoredRun, build_manifest, write_manifest
from lpact.store.frames import ROWS_PER_GROUP, ZSTD_LEVEL, arrow_schema
from lpact.tables import Table

RESULTS = Path(__file__).parent / "results"
ROWS = 10_000_000
QUICK_ROWS = 600_000
ROUNDS, QUICK_ROUNDS = 15, 2
TARGET_S = 1.0
"""Seconds that 95 % of the answers of every kind must stay under."""
PORT = 18_321
WEB = ("duckdb", "fastapi", "polars", "uvicorn")
BIG = "relational/profile_similarity_scores"
SCORES = "predictive/predictive_scores"
DROPS = "causal/causal_block_drops"

Row = dict[str, Any]
Asked = tuple[str, str]


def make_big_run(source: Path, out: Path, n_rows: int) -> int:
    """Write a run of at least ``n_rows`` table rows, a dataset at a time; returns how many there are."""
    stored = StoredRun(source)
    per_tile = sum(stored.table(table.name).height for table in stored.tables())
    n_models = 6
    n_datasets = max(2, -(-n_rows // (per_tile * n_models)) + 1)
    made = sum(_tile(stored.table(table.name), table, out, n_datasets, n_models) for table in stored.tables())
    old = stored.manifest
    provenance = Provenance("ten million rows", old.seed, old.config, old.inputs, old.plugins)
    write_manifest(out, build_manifest(out, provenance))
    return made


def _tile(frame: pl.DataFrame, table: Table, out: Path, n_datasets: int, n_models: int) -> int:
    """One table under new names, in the order of its key; only pieces of it are held in memory."""
    path = out / f"{table.name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    datasets = range(n_datasets if "dataset" in table.key else 1)
    models = range(n_models if "model" in table.key else 1)
    pieces: list[tuple[str | None, list[int]]] = [(None, list(datasets))]
    if table.key[0] == "dataset":  # pieces that follow each other in the order of the key
        named = [(name, [i]) for name in frame["dataset"].unique() for i in datasets]
        pieces = sorted(named, key=lambda piece: f"{piece[0]}_{piece[1][0]:03d}")
    written = 0
    schema = arrow_schema(table)
    with pq.ParquetWriter(path, schema, version="2.6", compression="zstd", compression_level=ZSTD_LEVEL) as writer:
        for name, tiles_of in pieces:
            chosen = frame if name is None else frame.filter(pl.col("dataset") == name)
            tiles = [_renamed(chosen, d, m) for d in tiles_of for m in models]
            piece = pl.concat(tiles).sort(table.key)
            plain = piece.to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
            writer.write_table(pa.Table.from_arrays(plain.columns, schema=schema), row_group_size=ROWS_PER_GROUP)
            written += piece.height
    return written


def _renamed(frame: pl.DataFrame, dataset: int, model: int) -> pl.DataFrame:
    changes = []
    if "dataset" in frame.columns:
        changes.append(pl.col("dataset") + f"_{dataset:03d}")
    if "model" in frame.columns:
        changes.append(pl.col("model") + f"_{model:02d}")
    return frame.with_columns(changes)


def questions(run: str, n_big: int) -> dict[str, list[str]]:
    """The fixed mix: addresses by kind, several of each."""

    def at(path: str, **query: object) -> str:
        return f"{path}?{urlencode(query)}" if query else path

    big, scores, drops = (f"/runs/{run}/tables/{name}" for name in (BIG, SCORES, DROPS))
    claim = {"run": run, "layer": 2}
    last = n_big // 50
    return {
        "overview": ["/"],
        "matrix, first page": ["/decisions", at("/decisions", profile="calibrated")],
        "matrix, filtered": [
            at("/decisions", dataset="sim_meg_001", verdict="control_explained"),
            at("/decisions", mechanism="surprisal", first_failed_gate="predictive", profile="both"),
        ],
        "matrix, sorted": [
            at("/decisions", sort="raw_score", dir="desc"),
            at("/decisions", sort="beaten_by", page=20),
        ],
        "matrix, searched": [at("/decisions", q="ecog_00"), at("/decisions", q="nuisance")],
        "claim": [
            at(
                "/claim",
                dataset=f"{d}_00{i % 2}",
                model=f"{m}_0{i}",
                mechanism="surprisal",
                profile=p,
                **claim,
            )
            for i, (d, m, p) in enumerate(
                (
                    ("sim_ecog", "integrated", "paper"),
                    ("sim_meg", "drift", "calibrated"),
                    ("sim_eeg", "lexical", "paper"),
                    ("sim_ecog", "predictive", "calibrated"),
                )
            )
        ],
        "table, first page": [big, scores, drops],
        "table, deep": [at(big, page=last // 2), at(big, page=last), at(drops, page=9000)],
        "table, filtered": [
            at(big, **{"is.dataset": "sim_eeg_001", "is.model": "lexical_03"}),
            at(big, **{"is.condition": "real"}, col="similarity", op="ge", val=0.9),
            at(scores, **{"is.metric": "pearson"}, col="score_median", op="le", val=-0.1),
        ],
        "table, sorted": [
            at(big, sort="similarity", dir="desc"),
            at(big, sort="unit"),
            at(drops, sort="stimulus", dir="desc"),
        ],
        "table, sorted and deep": [
            at(big, sort="similarity", page=last // 3),
            at(big, sort="similarity", page=last // 2),
        ],
        "table, searched": [at(big, q="meg_001"), at(big, q="shuffle"), at(drops, q="BOUNDARY")],
        "download of a part": [
            at(
                f"/runs/{run}/download/{BIG}.csv",
                **{"is.dataset": "sim_meg_001", "is.model": "drift_02"},
            ),
            at("/decisions.csv", dataset="sim_meg_001"),
        ],
    }


@contextmanager
def serving(run: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """The real command, until the block ends."""
    code = "from lpact.cli import main; main()"
    command = [sys.executable, "-c", code, "explore", str(run), "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        if "explorer:" not in server.stdout.readline():
            raise RuntimeError("the explorer did not start")
        yield server
    finally:
        server.terminate()
        server.wait(20)


def ask(port: int, address: str) -> tuple[float, int]:
    """Seconds until the last byte, and bytes; anything but a success is an error."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", address)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    seconds = time.perf_counter() - start
    if answer.status != 200:
        raise RuntimeError(f"{answer.status} from {address}")
    return seconds, len(content)


def peak_memory(process: int) -> int | None:
    """The most memory that a process has held, in bytes, where the system says so."""
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        return None
    line = next(x for x in status.read_text(encoding="ascii").splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def measure(run: Path, port: int, rounds: int, n_big: int) -> list[Row]:
    """Every address ``rounds`` times, in a shuffled order that is always the same."""
    kinds = questions("big", n_big)
    asked: list[Asked] = [(kind, a) for kind, addresses in kinds.items() for a in addresses]
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    first: dict[str, float] = dict.fromkeys(kinds, 0.0)
    generator = random.Random(0)
    with serving(run, port) as server:
        for turn in range(rounds):
            for kind, address in generator.sample(asked, len(asked)):
                seconds, _ = ask(port, address)
                taken[kind].append(seconds)
                if turn == 0:
                    first[kind] = max(first[kind], seconds)
        peak = peak_memory(server.pid)
    everything = [seconds for values in taken.values() for seconds in values]
    rows = [_row(kind, values, first[kind]) for kind, values in taken.items()]
    rows.append(_row("all", everything, max(first.values())) | {"peak_bytes": peak})
    return rows


def _row(name: str, seconds: list[float], first: float) -> Row:
    cuts = statistics.quantiles(seconds, n=20, method="inclusive")
    return {
        "name": name,
        "n": len(seconds),
        "p50_s": round(statistics.median(seconds), 4),
        "p95_s": round(cuts[18], 4),
        "max_s": round(max(seconds), 4),
        "slowest_first_s": round(first, 4),
        "target_p95_s": TARGET_S,
    }


def show(row: Row) -> str:
    """One line of the table."""
    verdict = "" if row["target_p95_s"] is None else "met" if row["p95_s"] < row["target_p95_s"] else "MISSED"
    numbers = "".join(f"{1000 * row[key]:>9.0f}" for key in ("p50_s", "p95_s", "max_s", "slowest_first_s"))
    return f"{row['name']:<26}{row['n']:>6}{numbers}   {verdict}"


def main(arguments: list[str] | None = None) -> list[Row]:
    """Make the run, measure, print a table, write it to a file, return it."""
    parser = argparse.ArgumentParser(description="Time the explorer.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--run", type=Path, help="a finished demo run, instead of computing one")
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args(arguments)
    n_rows = options.rows or (QUICK_ROWS if options.quick else ROWS)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    place = Path(tempfile.mkdtemp(prefix="explorer-"))
    try:
        source = options.run or _demo(place / "demo")
        made = make_big_run(source, place / "big", n_rows)
        n_big = pq.read_metadata(place / "big" / f"{BIG}.parquet").num_rows
        print(
            f"\n{machine()}\nexplorer: {made:,} rows, {n_big:,} in the largest table; one client, {rounds} rounds\n"
            f"{'':<26}{'n':>6}{'p50':>9}{'p95':>9}{'max':>9}{'first':>9}   (ms)",
            flush=True,
        )
        rows = measure(place / "big", options.port, rounds, n_big)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    for row in rows:
        if options.quick:
            row["target_p95_s"] = None
        print(show(row))
    peak = rows[-1]["peak_bytes"]
    print(f"peak memory of the server: {peak / 2**20:.0f} MiB" if peak else "peak memory is not known here")
    name = "explorer-quick.json" if options.quick else "explorer.json"
    out = options.out or RESULTS / name
    about = {
        "rows": made,
        "rows_of_largest_table": n_big,
        "machine": machine(),
        "versions": versions() | {name: version(name) for name in WEB},
        "threads": os.cpu_count(),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps([row | about for row in rows], indent=1) + "\n", encoding="utf-8")
    print(f"written: {out}")
    return rows


def _demo(out: Path) -> Path:
    from lpact.cli.study import demo_study

    demo_study().run(out, progress=False)
    return out


if __name__ == "__main__":
    measured = main()
    slow = [r for r in measured if r["target_p95_s"] and r["p95_s"] >= r["target_p95_s"]]
    sys.exit(bool(slow))
