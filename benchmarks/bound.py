"""The least time that the engine's algorithm could take on this machine.

Its matrix products, counted in floating-point operations, at the rate that this machine reaches for a product of the
same shape in the same run, and its eigendecompositions at their measured time. Everything else that the engine does
(QR, norms, selection, copies) is not in the bound, so that its share shows in the ratio.

With F blocks of n/F rows, F(F−1)/2 inner and F outer training sets, q = lags × t columns and A penalties:

    block Grams           F             n/F · p²
    block cross-products  F             2 · n/F · p · q
    eigendecompositions   F(F−1)/2 + F  of p × p
    projections           F(F−1)/2      2 p² q, and F times 2 p² t for the outer training sets
    test blocks           F             2 · n/F · p · (p + t)

and for F(F−1) validation blocks the cheapest of three plans, QR counted for that comparison only:

    plain       r = n/F rows:  2 r p² to rotate them, 2 r p · A q to meet the coefficients
    compressed  r = p < n/F:   the same from coordinates in an orthonormal basis of the block, F times 2 · n/F · r · q
    triangle    r = min(n/F, p): rotated once more into a triangle, 2 r² (p − r) + 2 r² q, then (2p − r) r · A q
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from statistics import mode

import numpy as np
from scipy.linalg import eigh

from benchmarks.cases import N_FOLDS, Settings, fit, grid_of
from benchmarks.data import ALPHAS, Problem, simulate
from benchmarks.machine import threads
from benchmarks.report import Result
from benchmarks.timing import Seconds, middle, stopwatch
from lpact.math.splits import contiguous_folds

TARGET = 1.4


@dataclass(frozen=True)
class Product:
    """Products of one shape, [m, k] times [k, n]; ``flops`` are needed in all."""

    name: str
    flops: float
    m: int
    k: int
    n: int
    precision: str


@dataclass(frozen=True)
class Plan:
    """Products of one way to score validation blocks, and the QR decompositions it wants: (times, rows, columns)."""

    name: str
    products: list[Product]
    qr: list[tuple[int, int, int]]


def common(problem: Problem, precision: str) -> list[Product]:
    """Products that every plan needs; more training rows than features."""
    n, p, t = problem.sizes.values()
    q = problem.y.shape[0] * t
    block, pairs = n // N_FOLDS, N_FOLDS * (N_FOLDS - 1) // 2
    return [
        # Gram matrices and what is decomposed are in double whatever the precision.
        Product("block Grams", n * p * p, p, block, p, "float64"),
        Product("block cross-products", 2 * n * p * q, q, block, p, precision),
        Product("projections", 2 * p * p * (pairs * q + N_FOLDS * t), q, p, p, precision),
        Product("test blocks", 2 * n * p * (p + t), block, p, p, precision),
    ]


def plans(problem: Problem, n_alphas: int, precision: str) -> list[Plan]:
    """The ways to score validation blocks."""
    n, p, t = problem.sizes.values()
    q = problem.y.shape[0] * t
    block, uses = n // N_FOLDS, N_FOLDS * (N_FOLDS - 1)
    columns = n_alphas * q

    def scored(rows: int, flops: int) -> list[Product]:
        return [
            Product("rotated rows", uses * 2 * rows * p * p, rows, p, p, precision),
            Product("validation", uses * flops * columns, columns, p, rows, precision),
        ]

    found = [Plan("plain", scored(block, 2 * block * p), [])]
    r = min(block, p)
    compress = [Product("compressed responses", 2 * n * r * q, q, block, r, precision)]
    once = [(N_FOLDS, block, p)]
    if block > p:
        found.append(Plan("compressed", scored(r, 2 * r * p) + compress, once))
    triangle = [
        *scored(r, (2 * p - r) * r),
        Product("triangles", uses * 2 * r * r * (p - r + q), q, r, r, precision),
        *(compress if block > p else ()),
    ]
    found.append(Plan("triangle", triangle, [(uses, r, r), *(once if block > p else ())]))
    return found


def seconds_of(product: Product) -> Seconds:
    """Time of all products of a shape, at the rate of one of them."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((product.m, product.k)).astype(product.precision)
    b = rng.standard_normal((product.k, product.n)).astype(product.precision)
    out = np.empty((product.m, product.n), dtype=product.precision)
    np.matmul(a, b, out=out)
    times: list[Seconds] = []
    while len(times) < 3 or (sum(t.wall for t in times) < 0.1 and len(times) < 50):
        times.append(stopwatch(partial(np.matmul, a, b, out=out))[0])
    return middle(times).times(product.flops / (2.0 * product.m * product.k * product.n))


def eigh_seconds(problem: Problem) -> Seconds:
    """Time of one decomposition of an inner training set's correlation matrix."""
    train = contiguous_folds(len(problem.x), N_FOLDS).train_rows(0, 1)
    x = np.asarray(problem.x[train], dtype=np.float64)
    gram = len(train) * np.corrcoef(x, rowvar=False)
    decompose = partial(eigh, gram, driver="evd", check_finite=False)
    return middle([stopwatch(decompose)[0] for _ in range(3)])


def qr_seconds(rows: int, columns: int, precision: str) -> Seconds:
    """Time of one QR decomposition."""
    x = np.random.default_rng(0).standard_normal((rows, columns)).astype(precision)
    return middle([stopwatch(partial(np.linalg.qr, x))[0] for _ in range(3)])


def bound(problem: Problem, n_alphas: int, precision: str) -> tuple[str, dict[str, Seconds]]:
    """The cheapest plan's name, and every part of its bound."""
    costs = []
    for plan in plans(problem, n_alphas, precision):
        parts = {product.name: seconds_of(product) for product in plan.products}
        qr = sum(times * qr_seconds(m, k, precision).cpu for times, m, k in plan.qr)
        costs.append((sum(part.cpu for part in parts.values()) + qr, plan.name, parts))
    _, name, parts = min(costs, key=lambda cost: cost[0])
    sets = N_FOLDS * (N_FOLDS - 1) // 2 + N_FOLDS
    shared = {product.name: seconds_of(product) for product in common(problem, precision)}
    return name, {"eigendecompositions": eigh_seconds(problem).times(sets), **shared, **parts}


def bounds(settings: Settings) -> Iterator[Result]:
    """Our time over the bound: single-shot and full grid at every size."""
    for n in settings.rows:
        whole = simulate(n, settings.p, settings.t, n_lags=5)
        cases = (
            ("single-shot nested ridge", whole.lags(1), (0,)),
            ("full grid, 5 lags x 3 PCA sizes", whole, settings.components),
        )
        for name, problem, components in cases:
            for precision in ("float64", "float32"):
                yield _over_bound(name, problem.at(precision), components, precision, settings)


def _over_bound(name: str, problem: Problem, components: tuple[int, ...], precision: str, settings: Settings) -> Result:
    folds, grid = contiguous_folds(len(problem.x), N_FOLDS), grid_of(components)
    work = partial(fit, problem, folds, grid, precision)
    work()
    ours, found = [], []
    for _ in range(settings.repeats):
        found.append(bound(problem, len(ALPHAS), precision))
        ours.append(stopwatch(work)[0])
    plan = mode(name for name, _ in found)
    parts = [parts for name, parts in found if name == plan]
    each = {part: middle([seconds[part] for seconds in parts]) for part in parts[0]}
    least = Seconds(sum(s.wall for s in each.values()), sum(s.cpu for s in each.values()))
    took = middle(ours)
    shares = ", ".join(f"{part} {seconds.wall:.3g} s" for part, seconds in each.items())
    return Result(
        name=name,
        peer="the machine's bound",
        ratio=took.wall / least.wall,
        cpu_ratio=took.cpu / least.cpu,
        target=TARGET if precision == "float64" else None,
        same_work=True,
        better="lower",
        seconds_ours=took.wall,
        seconds_peer=least.wall,
        precision=precision,
        threads=threads(),
        repeats=settings.repeats,
        note=f"plan: {plan}; eigh in double, products at the rate of their shapes: {shares}",
        **problem.sizes,
    )
