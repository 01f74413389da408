"""Time the relational level: many units, conditions and measures, on one thread.

Run by ``make bench``; alone: ``python -m benchmarks.relational --quick``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import Floats, simulate
from benchmarks.machine import machine, versions
from benchmarks.timing import Seconds, in_turns, middle, stopwatch
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.analyses.lpact.levels.relational import LaggedResponses
from lpact.math.ridge import Compute, RidgeGrid
from lpact.math.similarity.rsa import rdm
from lpact.measures import MEASURES, LinearPredictivity
from lpact.splits import alternating_halves, contiguous

RESULTS = Path(__file__).parent / "results"
TARGET_S = 60.0
"""Seconds that the three measures may take together, with profiles, on the whole level."""

COUNTED = ("linear", "rsa", "cka")
"""The default measures. A model's ``linear`` pattern is level 1's score, and costs nothing here; units' is fitted."""
ALSO = ("event_response", "cka_debiased", "cka_rbf", "cka_rbf_debiased")
"""Measures that are timed but not counted: one condition each."""

GRID = RidgeGrid(alphas=(1.0, 10.0, 100.0, 1e3, 1e4))

Row = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How much there is to compare."""

    n_events: int = 5000
    n_columns: int = 768
    n_units: int = 250
    n_conditions: int = 10
    rdm_events: tuple[int, ...] = (384, 1500)


QUICK = Sizes(400, 64, 20, 3, (100,))


@dataclass(frozen=True)
class Level:
    """A recording, whole and in halves, and one matrix of features for every condition."""

    whole: LaggedResponses
    halves: tuple[LaggedResponses, LaggedResponses]
    conditions: tuple[Floats, ...]


def make_level(sizes: Sizes) -> Level:
    """LaggedResponses that follow the first condition's features; the others are rotations of it in time."""
    problem = simulate(sizes.n_events, sizes.n_columns, sizes.n_units, n_lags=3)
    whole = LaggedResponses(problem.y, 0, contiguous(sizes.n_events, 5))
    first, second = alternating_halves(sizes.n_events, 8)
    shifts = np.arange(sizes.n_conditions) * (sizes.n_events // sizes.n_conditions)
    conditions = tuple(np.roll(problem.x, int(s), axis=0) for s in shifts)
    return Level(whole, (whole.take(first), whole.take(second)), conditions)


def time_level(level: Level, repeats: int) -> Iterator[Row]:
    """Every measure to and between units, then profiles; last, all of it together."""
    sizes = f"{len(level.conditions)} conditions"
    parts, patterns, matrices = [], {}, {}
    for name in COUNTED:
        measure = MEASURES.build(name)
        if isinstance(measure, LinearPredictivity):
            measure = measure.using(GRID, Compute())

        def to_units(measure: Any = measure) -> Floats:
            reference = level.whole.reference
            return np.stack([measure.to_units(phi, reference) for phi in level.conditions])

        def between(measure: Any = measure) -> list[Floats]:
            return [part.patterns(measure) for part in (level.whole, *level.halves)]

        if measure.from_readout:
            few = level.conditions[0][:, :50]
            own = measure.cross_validate(few, level.whole.lagged, level.whole.split).value
            patterns[name] = np.tile(own, (len(level.conditions), 1))
        else:
            seconds, patterns[name] = repeated(to_units, repeats)
            parts.append(row(f"{name}: {sizes} to units", seconds))
        seconds, matrices[name] = repeated(between, repeats)
        parts.append(row(f"{name}: between units, whole and halves", seconds))
    profiles = [PROFILES.build(name) for name in PROFILES.names()]

    def compare() -> list[Floats]:
        made = []
        for name in COUNTED:
            whole, *halves = matrices[name]
            made.append(PROFILES.build("pearson").compare_pairs(*halves))
            made += [profile.compare(whole, patterns[name]) for profile in profiles]
        return made

    seconds, compared = repeated(compare, repeats)
    if not all(np.isfinite(values).all() for values in compared):
        raise ValueError("a profile similarity is not finite; nothing was measured")
    parts.append(row(f"{len(profiles)} profile similarities and reliabilities", seconds))
    yield from parts
    total = Seconds(*(sum(part[key] for part in parts) for key in ("seconds", "cpu_seconds")))
    yield row(f"relational level, {len(COUNTED)} measures", total, target_s=TARGET_S)


def time_other_measures(level: Level) -> Iterator[Row]:
    """Measures outside the default, once: one condition to units, and between units."""
    for name in ALSO:
        measure = MEASURES.build(name)
        seconds, _ = stopwatch(lambda m=measure: m.to_units(level.conditions[0], level.whole.reference))
        yield row(f"{name}: 1 condition to units", seconds)
        seconds, _ = stopwatch(lambda m=measure: level.whole.patterns(m))
        yield row(f"{name}: between units", seconds)


def time_rdms(sizes: Sizes, repeats: int) -> Iterator[Row]:
    """Dissimilarities of all pairs of events beside the obvious NumPy, which must agree."""
    for n in sizes.rdm_events:
        x = simulate(n, sizes.n_columns, 1, n_lags=1).x
        for metric, obvious in OBVIOUS.items():
            timed = in_turns(lambda x=x, m=metric: rdm(x, m), lambda x=x, f=obvious: f(x), max(repeats, 3))
            np.testing.assert_allclose(timed.our_result, timed.peer_result, rtol=1e-8, atol=1e-8)
            yield row(
                f"RDM, {metric}, {n} events",
                timed.ours,
                peer="plain NumPy",
                peer_seconds=timed.peer,
                same_work=True,
            )


def correlation_distances(x: Floats) -> Floats:
    """What one would write."""
    return (1.0 - np.corrcoef(x))[np.triu_indices(len(x), 1)]


def squared_euclidean_distances(x: Floats) -> Floats:
    """What one would write."""
    product = x @ x.T
    length = np.diag(product)
    return (length[:, None] + length[None, :] - 2.0 * product)[np.triu_indices(len(x), 1)]


OBVIOUS: dict[str, Callable[[Floats], Floats]] = {
    "correlation": correlation_distances,
    "sqeuclidean": squared_euclidean_distances,
}


def repeated(work: Callable[[], Any], repeats: int) -> tuple[Seconds, Any]:
    """Median seconds, and the last result."""
    runs = [stopwatch(work) for _ in range(repeats)]
    return middle([seconds for seconds, _ in runs]), runs[-1][1]


def row(
    name: str,
    seconds: Seconds,
    *,
    target_s: float | None = None,
    peer: str | None = None,
    peer_seconds: Seconds | None = None,
    same_work: bool | None = None,
) -> Row:
    """One measurement; ``ratio`` says how many times faster than the peer."""
    return {
        "name": name,
        "seconds": seconds.wall,
        "cpu_seconds": seconds.cpu,
        "target_s": target_s,
        "peer": peer,
        "seconds_peer": peer_seconds.wall if peer_seconds else None,
        "ratio": peer_seconds.wall / seconds.wall if peer_seconds else None,
        "cpu_ratio": peer_seconds.cpu / seconds.cpu if peer_seconds else None,
        "same_work": same_work,
    }


def show(measured: Row) -> str:
    """One line of the table."""
    text = f"{measured['name']:<48}{measured['seconds']:>9.3f} s{measured['cpu_seconds']:>9.3f} s"
    if measured["target_s"] is not None:
        verdict = "met" if measured["seconds"] < measured["target_s"] else "MISSED"
        text += f"   target < {measured['target_s']:g} s: {verdict}"
    if measured["peer"] is not None:
        text += f"   {measured['peer']} {measured['seconds_peer']:.3f} s, ratio {measured['ratio']:.2f}"
    return text


def main(arguments: list[str] | None = None) -> list[Row]:
    """Measure, print a table, write it to a file, return it."""
    parser = argparse.ArgumentParser(description="Time the relational level.", add_help=False)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    options, _ = parser.parse_known_args(arguments)  # the engine's options may stand beside them
    sizes = QUICK if options.quick else Sizes()
    out = RESULTS / ("relational-quick.json" if options.quick else "relational.json")
    print(
        f"\n{machine()}\nrelational level: {sizes.n_units} units, {sizes.n_events} events, "
        f"{sizes.n_columns} columns, one thread\n{'':<48}{'wall':>9}  {'CPU':>9}",
        flush=True,
    )
    measured: list[Row] = []
    with threadpool_limits(1):
        level = make_level(sizes)
        for source in (
            time_level(level, options.repeats),
            time_rdms(sizes, options.repeats),
            time_other_measures(level),
        ):
            for one in source:
                if options.quick:  # the target is set for the real sizes
                    one = one | {"target_s": None}
                measured.append(one)
                print(show(one), flush=True)
    about = {"machine": machine(), "versions": versions(), "threads": 1}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps([one | about for one in measured], indent=1) + "\n", encoding="utf-8")
    print(f"written: {out}")
    return measured


if __name__ == "__main__":
    main()
    sys.exit(0)
