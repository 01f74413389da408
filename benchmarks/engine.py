"""Time the encoding engine: beside other libraries, over the machine's own bound, in memory and under contention.

Run by ``make bench``; alone: ``python -m benchmarks.engine --quick``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.bound import bounds
from benchmarks.cases import FULL, QUICK, Settings, draws, full_grid, single_shot
from benchmarks.contention import contention
from benchmarks.machine import machine, versions
from benchmarks.memory import memory
from benchmarks.report import Result, header, row, write
from benchmarks.small import small
from benchmarks.subsets import subsets

CASES: dict[str, Callable[[Settings], Iterator[Result]]] = {
    "single": single_shot,
    "grid": full_grid,
    "draws": draws,
    "small": small,
    "subsets": subsets,
    "bound": bounds,
    "memory": memory,
    "contention": contention,
}
RESULTS = Path(__file__).parent / "results"


def parser() -> argparse.ArgumentParser:
    """Options of the command line."""
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    made.add_argument("--quick", action="store_true", help="small sizes, in seconds: no numbers to quote")
    made.add_argument("--no-peers", action="store_true", help="without the other libraries")
    made.add_argument("--repeats", type=int, default=3, help="runs of which medians are taken")
    made.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES), help="cases to run")
    made.add_argument("--rows", nargs="+", type=int, help="numbers of rows, instead of 1500 and 5000")
    made.add_argument("--out", type=Path, help="where the results go (default: benchmarks/results/engine.json)")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the cases, print a table, write the results; 1 where a target is missed."""
    options = parser().parse_args(arguments)
    settings = QUICK if options.quick else FULL
    settings = replace(settings, repeats=options.repeats, peers=not options.no_peers)
    if options.rows:
        settings = replace(settings, rows=tuple(options.rows))
    out = options.out or RESULTS / ("engine-quick.json" if options.quick else "engine.json")
    results: list[Result] = []
    with threadpool_limits(1):
        if settings.peers:
            import torch

            torch.set_num_threads(1)
        print(machine(), ", ".join(f"{k} {v}" for k, v in versions().items()), "", sep="\n")
        print(header(), flush=True)
        for name in options.only:
            for result in CASES[name](settings):
                if options.quick:  # targets are set for the real sizes
                    result = replace(result, target=None)
                results.append(result)
                print(row(result), flush=True)
                write(results, out)
    missed = [r for r in results if r.met is False]
    print(f"\nwritten: {out}" + (f"; {len(missed)} targets missed" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
