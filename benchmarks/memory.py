"""Peak memory of a problem with very many targets, in a process of its own, its data included."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter

import numpy as np

from benchmarks.cases import N_FOLDS, Settings
from benchmarks.machine import peak_bytes
from benchmarks.report import Result
from lpact.math.ridge import Compute, RidgeGrid, nested_ridge
from lpact.math.splits import contiguous_folds

LIMIT_BYTES = 4e9
BUDGET_BYTES = 2**30
N_ALPHAS = 10


def memory(settings: Settings) -> Iterator[Result]:
    """Peak memory over 4 GB, in both precisions."""
    n, p, t = settings.rows[0], settings.p, settings.targets
    for precision in ("float64", "float32"):
        command = [sys.executable, "-m", "benchmarks.memory", precision, str(n), str(p), str(t)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the memory case failed:\n{done.stderr}")
        found = json.loads(done.stdout)
        yield Result(
            name=f"peak memory, {t:,} targets",
            peer="4 GB",
            ratio=found["peak_bytes"] / LIMIT_BYTES,
            target=1.0,
            same_work=True,
            better="lower",
            seconds_ours=found["seconds"],
            precision=precision,
            threads=found["threads"],
            n=n,
            p=p,
            t=t,
            note=(
                f"{found['peak_bytes'] / 1e9:.2f} GB at most, of which the data {found['data_bytes'] / 1e9:.2f} GB; "
                f"budget {BUDGET_BYTES / 1e9:.2f} GB, {N_FOLDS} blocks, {N_ALPHAS} penalties, nested"
            ),
        )


def measure(precision: str, n: int, p: int, t: int) -> dict[str, float]:
    """Make the data a chunk at a time, fit, and look at the process's peak."""
    from benchmarks.machine import threads

    rng = np.random.default_rng(0)
    dtype = np.dtype(precision)
    x = rng.standard_normal((n, p)).astype(dtype)
    y = np.empty((1, n, t), dtype=dtype)
    for start in range(0, t, 1_000):
        stop = min(start + 1_000, t)
        signal = x @ rng.standard_normal((p, stop - start)).astype(dtype)
        y[0, :, start:stop] = signal + 30.0 * rng.standard_normal((n, stop - start))
    grid = RidgeGrid(alphas=tuple(float(a) for a in np.logspace(0, 6, N_ALPHAS)))
    compute = Compute(precision=precision, memory_bytes=BUDGET_BYTES)  # type: ignore[arg-type]
    begun = perf_counter()
    readout = nested_ridge(x, y, contiguous_folds(n, N_FOLDS), grid, metrics=("pearson", "r2"), compute=compute)
    seconds = perf_counter() - begun
    if not np.isfinite(readout.scores("r2")).all():
        raise RuntimeError("scores are not finite")
    return {
        "peak_bytes": peak_bytes(),
        "data_bytes": x.nbytes + y.nbytes,
        "seconds": seconds,
        "threads": threads(),
    }


def main() -> None:
    """Measure one precision and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("precision", choices=("float64", "float32"))
    for name in ("n", "p", "t"):
        parser.add_argument(name, type=int)
    print(json.dumps(measure(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
