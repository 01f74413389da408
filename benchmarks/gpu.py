"""Time the engine on a GPU beside himalaya's torch backend there.

Runs with plain Python, torch and NumPy, without lpact or himalaya installed:

    PYTHONPATH=src:FOLDER-WITH-HIMALAYA python3 -m benchmarks.gpu

``--quick`` with ``--device torch`` tries the same code on a CPU, in seconds.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch

from benchmarks.machine import versions
from benchmarks.report import Result, header, row, write
from lpact.math.ridge import Compute, RidgeGrid, cross_validated_ridge, nested_ridge
from lpact.math.splits import BlockedFolds, contiguous_folds

RESULTS = Path(__file__).parent / "results" / "engine-gpu.json"
N_FOLDS = 5
CHECKED = 256
"""Targets that are compared with a reference in double."""
TOLERANCE = {"float64": 1e-8, "float32": 1e-5}
"""Largest difference of a validation R² from the reference."""


TENSOR_CORES = {
    "float32": "; settings are compared by products of 22 bits on tensor cores, weights are plain float32",
}
"""What a precision means on a card, where its name does not say it."""


@dataclass(frozen=True)
class Size:
    """Rows, features, targets, and the ratio to reach."""

    n: int
    p: int
    t: int
    target: float | None = None

    @property
    def named(self) -> dict[str, int]:
        """As the result file has it."""
        return {"n": self.n, "p": self.p, "t": self.t}


@dataclass(frozen=True)
class Run:
    """Where and how large."""

    device: str
    sizes: tuple[Size, ...]
    grid_size: Size
    components: tuple[int, ...]
    memory_bytes: int
    repeats: int
    skip_grid: bool

    @property
    def torch_device(self) -> str:
        """torch's name for the device."""
        return "cpu" if self.device == "torch" else self.device

    @property
    def backend(self) -> str:
        """himalaya's name for it."""
        return "torch" if self.device == "torch" else "torch_cuda"

    def compute(self, precision: str, *, plain: bool = False) -> Compute:
        """Ours; ``plain`` without tensor cores."""
        return Compute(self.device, precision, self.memory_bytes, tensor_cores=not plain)  # type: ignore[arg-type]


FULL = (Size(5_000, 1_600, 10_000), Size(10_000, 4_096, 90_000, 5.0))
QUICK = (Size(150, 20, 30), Size(200, 30, 300))


def simulate(run: Run, size: Size, n_lags: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features [n, p] and responses [n_lags, n, t] in single precision, made on the device."""
    generator = torch.Generator(run.torch_device).manual_seed(0)
    new = partial(torch.randn, generator=generator, device=run.torch_device)
    decay = torch.arange(size.p, device=run.torch_device).div(20.0).add(1.0).rsqrt()
    x = (new(size.n, size.p) * decay) @ new(size.p, size.p) / size.p**0.5
    y = torch.empty((n_lags, size.n, size.t), device=run.torch_device)
    noise = 10.0 ** torch.linspace(-0.5, 1.5, size.t, device=run.torch_device)
    step = max(1, 2**28 // size.n)
    for start in range(0, size.t, step):
        part = slice(start, min(start + step, size.t))
        signal = x @ new(size.p, part.stop - part.start) / size.p**0.5
        for lag in range(n_lags):
            y[lag, :, part] = signal / (1 + lag) + noise[part] * new(*signal.shape) + 1.0
    return x + new(size.p), y


def reference(x: torch.Tensor, y: torch.Tensor, folds: BlockedFolds, alphas: np.ndarray, *, inside: bool) -> np.ndarray:
    """Mean validation R² of every penalty in double, [A, t]; features scaled ``inside`` training sets or over all."""
    x, y = x.double(), y.double()
    total = torch.zeros((len(alphas), y.shape[1]), dtype=torch.float64, device=x.device)
    for block in range(folds.n_blocks):
        train = torch.as_tensor(np.array(folds.train_rows(block)), device=x.device)
        scale = (x[train] if inside else x).std(0, correction=0)
        mean, mu = x[train].mean(0), y[train].mean(0)
        z = (x[train] - mean) / scale
        s, v = torch.linalg.eigh(z.T @ z)
        b = v.T @ (z.T @ (y[train] - mu))
        test = ((x[folds.rows(block)] - mean) / scale) @ v
        held = y[folds.rows(block)]
        power = ((held - held.mean(0)) ** 2).sum(0)
        for i, alpha in enumerate(alphas):
            predicted = mu + test @ (b / (s[:, None] + float(alpha)))
            total[i] += 1.0 - ((held - predicted) ** 2).sum(0) / power
    return (total / folds.n_blocks).cpu().numpy()


def himalaya(run: Run, x: torch.Tensor, y: torch.Tensor, alphas: np.ndarray) -> Any:
    """himalaya's RidgeCV over the same blocks, on features standardised over all rows, [n, t] responses."""
    from himalaya.backend import set_backend
    from himalaya.ridge import RidgeCV
    from himalaya.scoring import r2_score
    from sklearn.model_selection import PredefinedSplit

    set_backend(run.backend)
    sizes = contiguous_folds(len(x), N_FOLDS).test_sizes()
    z = (x - x.mean(0)) / x.std(0, correction=0)
    model = RidgeCV(
        alphas=alphas.astype(np.float32),
        fit_intercept=True,
        cv=PredefinedSplit(np.repeat(np.arange(N_FOLDS), sizes)),
        solver_params={"score_func": r2_score, "warn": False},
    )
    return model.fit(z, y)


def cross_validated(run: Run) -> Iterator[Result]:
    """Five blocks, ten penalties, refitted on all rows: ours in both precisions beside himalaya in single."""
    alphas = np.logspace(0, 6, 10)
    grid = RidgeGrid(alphas=tuple(float(a) for a in alphas))
    for size in run.sizes:
        folds = contiguous_folds(size.n, N_FOLDS)
        x, y = simulate(run, size, 1)

        ours = partial(cross_validated_ridge, x, y, folds, grid)
        contenders: dict[str, Callable[[], Any]] = {
            "float32": partial(ours, compute=run.compute("float32")),
            "float32, plain products": partial(ours, compute=run.compute("float32", plain=True)),
            "float64": partial(ours, compute=run.compute("float64")),
            "himalaya": partial(himalaya, run, x, y[0], alphas),
        }
        times, made = in_turns(run, contenders)
        checked = np.linspace(0, size.t - 1, min(CHECKED, size.t)).astype(int)
        part = y[0][:, torch.as_tensor(checked, device=y.device)]
        exact = reference(x, part, folds, alphas, inside=True)
        theirs = reference(x, part, folds, alphas, inside=False)
        peer_error = float(np.abs(made["himalaya"].cv_scores_.cpu().numpy()[checked] - theirs.max(0)).max())
        for precision in ("float32", "float32, plain products", "float64"):
            error = float(np.abs(_numpy(made[precision].score)[checked] - exact.max(0)).max())
            if not error <= TOLERANCE[precision.partition(",")[0]]:
                raise AssertionError(f"validation R² is off by {error:.2g} in {precision}")
            yield Result(
                name="5-fold ridge, 10 penalties",
                peer=f"himalaya RidgeCV {run.backend}, float32",
                ratio=times["himalaya"] / times[precision],
                target=size.target if precision == "float32" else None,
                same_work=True,
                seconds_ours=times[precision],
                seconds_peer=times["himalaya"],
                precision=precision,
                repeats=run.repeats,
                max_difference=error,
                note=(
                    f"best validation R² of {len(checked)} targets beside a reference in double: ours off by "
                    f"{error:.1e}, the peer by {peer_error:.1e}; the peer scales features once, ours in every fold"
                    + TENSOR_CORES.get(precision, "")
                ),
                **size.named,
            )
        del x, y, ours, made, contenders, part


def full_grid(run: Run) -> Iterator[Result]:
    """The whole nested grid, ours alone: 5 lags, 3 PCA sizes, 15 penalties, 5 outer blocks."""
    size = run.grid_size
    x, y = simulate(run, size, 5)
    grid = RidgeGrid(alphas=tuple(float(a) for a in np.logspace(0, 6, 15)), components=run.components)
    work = partial(
        nested_ridge,
        x,
        y,
        contiguous_folds(size.n, N_FOLDS),
        grid,
        metrics=("pearson", "r2"),
        compute=run.compute("float32"),
    )
    seconds, readout = stopwatch(run, work)
    scores = _numpy(readout.scores("r2"))
    if not np.isfinite(scores).all():
        raise AssertionError("held-out scores are not finite")
    yield Result(
        name="nested grid, 5 lags x 3 PCA sizes",
        peer=None,
        ratio=None,
        target=None,
        same_work=True,
        seconds_ours=seconds,
        precision="float32",
        note=(
            f"15 penalties, PCA sizes {run.components}, working memory {run.memory_bytes / 1e9:.0f} GB; "
            f"held-out R² between {scores.min():.3f} and {scores.max():.3f}, median {np.median(scores):.3f}"
        ),
        **size.named,
    )


def in_turns(run: Run, contenders: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], dict[str, Any]]:
    """Median seconds of every contender, one after the other in every round, and what they made."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    made: dict[str, Any] = {}
    for round_ in range(run.repeats + 1):
        for name, work in contenders.items():
            made.pop(name, None)
            seconds, made[name] = stopwatch(run, work)
            if round_:  # the first round loads libraries and kernels
                times[name].append(seconds)
    return {name: median(found) for name, found in times.items()}, made


def stopwatch(run: Run, work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds until the device is done, and the result."""
    _wait(run)
    begun = perf_counter()
    result = work()
    _wait(run)
    return perf_counter() - begun, result


def _wait(run: Run) -> None:
    if run.torch_device != "cpu":
        torch.cuda.synchronize()


def _numpy(x: Any) -> np.ndarray:
    return x.cpu().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)


def device_name(run: Run) -> str:
    """The device, its memory and its driver, in words."""
    if run.torch_device == "cpu":
        return "CPU (a trial of the code, no numbers to quote)"
    properties = torch.cuda.get_device_properties(run.torch_device)
    name = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}"
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return name
    command = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{name}, driver {found.stdout.splitlines()[0].strip()}" if found.stdout else name


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N, or torch for the CPU")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory-gb", type=float, default=40.0, help="working memory of ours")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the code")
    parser.add_argument("--skip-grid", action="store_true", help="without the full nested grid")
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the cases, print a table, write the results; 1 where a target is missed."""
    given = options().parse_args(arguments)
    run = Run(
        device=given.device,
        sizes=QUICK if given.quick else FULL,
        grid_size=replace((QUICK if given.quick else FULL)[-1], target=None),
        components=(4, 8, 0) if given.quick else (256, 1024, 0),
        memory_bytes=int(given.memory_gb * 1e9),
        repeats=given.repeats,
        skip_grid=given.skip_grid,
    )
    results: list[Result] = []
    device = device_name(run)
    print(device, ", ".join(f"{k} {v}" for k, v in versions().items()), "", sep="\n")
    print(header(), flush=True)
    for case in (cross_validated, full_grid):
        if case is full_grid and run.skip_grid:
            continue
        for result in case(run):
            results.append(replace(result, target=None) if given.quick else result)
            print(row(results[-1]), flush=True)
            print(f"    {result.note}", flush=True)
            write(results, given.out, machine=device)
    return 1 if any(r.met is False for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
