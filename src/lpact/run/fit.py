"""Whether a run fits into this machine, and what to do where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lpact.errors import RunError
from lpact.run.costs import StageCost
from lpact.run.machine import Limits
from lpact.run.stages import AUDIT, FEATURES, REPORT

MEMORY_SHARE = 0.9
"""Of the machine's memory that a run may be expected to use: the system needs some, and estimates err."""

RETAINED_SHARE = 0.7


def memory_with(stages: Sequence[StageCost], workers: int) -> int:
    """The most memory of all processes together."""
    own = max((s.peak_bytes for s in stages if not s.shared), default=0)
    shared = max((s.peak_bytes for s in stages if s.shared), default=0)
    return max(own + retained(stages), shared) if workers == 1 else own + workers * shared


def retained(stages: Sequence[StageCost]) -> int:
    """What a process that computed contexts itself still holds afterwards: the allocator gives little back."""
    shared = max((s.peak_bytes for s in stages if s.shared), default=0)
    least = min((s.peak_bytes for s in stages if s.peak_bytes), default=0)
    return int(RETAINED_SHARE * max(0, shared - least))


def disk_of_run(stages: Sequence[StageCost]) -> int:
    """Bytes that a run writes beside its features and kept grids: tasks and tables are there at the same time."""
    return sum(s.disk_bytes for s in stages if s.stage not in (AUDIT, FEATURES))


def disk_of_features(stages: Sequence[StageCost]) -> int:
    """Bytes of features that are extracted first."""
    return sum(s.disk_bytes for s in stages if s.stage == FEATURES)


def refusal(
    stages: Sequence[StageCost],
    limits: Limits,
    *,
    workers: int,
    out: Path,
    features: Path,
    memory_gib: float,
) -> RunError | None:
    """Why the run cannot fit, with advice from the numbers; None where it can."""
    found = [
        _memory_problem(stages, limits, workers, memory_gib),
        *_disk_problems(stages, limits, out, features),
    ]
    problems = [problem for problem in found if problem is not None]
    if not problems:
        return None
    what, got, expected, remedy = zip(*problems, strict=True)
    return RunError(
        "this run does not fit: " + " and ".join(what),
        where=str(out),
        got="; ".join(got),
        expected="; ".join(expected),
        remedy="; ".join(remedy),
    )


_Problem = tuple[str, str, str, str]


def _memory_problem(
    stages: Sequence[StageCost], limits: Limits, workers: int, memory_gib: float
) -> _Problem | None:
    needed = memory_with(stages, workers)
    if limits.memory is None or needed <= MEMORY_SHARE * limits.memory:
        return None
    allowed = int(MEMORY_SHARE * limits.memory)
    largest = _decisive(stages, workers)
    fitting = workers_that_fit(stages, allowed, min(workers - 1, limits.cores or workers))
    counted = "1 worker" if workers == 1 else f"{workers} workers"
    got = f"about {gib(needed)} of memory with {counted}, most of it in the stage '{largest.stage}'"
    if fitting:
        advice = f"use --workers {fitting}, which needs about {gib(memory_with(stages, fitting))}"
    elif largest.shared:
        advice = (
            f"one process needs {gib(largest.peak_bytes)} in the stage '{largest.stage}': lower "
            f"readout.memory_gib (now {memory_gib:g}), take fewer units (preprocess.channels or grid.units = "
            '"regions"), or use a machine with more memory'
        )
    else:
        advice = (
            f"the stage '{largest.stage}' needs {gib(largest.peak_bytes)}, most of it for libraries and tables: lower "
            "controls.draws or stripping.mismatch_draws, divide the study, or use a machine with more memory"
        )
    return (
        "memory is short",
        got,
        f"at most {gib(allowed)} of this machine's {gib(limits.memory)}",
        advice,
    )


def _decisive(stages: Sequence[StageCost], workers: int) -> StageCost:
    """The stage whose processes hold most of the memory together."""
    return max(stages, key=lambda s: s.peak_bytes * (workers if s.shared else 1))


def workers_that_fit(stages: Sequence[StageCost], allowed: int, most: int) -> int:
    """How many workers, ``most`` at most, fit into ``allowed`` bytes; 0 where not even one does."""
    return next((n for n in range(most, 0, -1) if memory_with(stages, n) <= allowed), 0)


def _disk_problems(
    stages: Sequence[StageCost], limits: Limits, out: Path, features: Path
) -> list[_Problem | None]:
    run, extracted = disk_of_run(stages), disk_of_features(stages)
    if limits.one_disk:
        return [_disk_problem(stages, run + extracted, limits.out, out, "--out")]
    return [
        _disk_problem(stages, run, limits.out, out, "--out"),
        _disk_problem(stages, extracted, limits.features, features, "run.features"),
    ]


def _disk_problem(
    stages: Sequence[StageCost], needed: int, free: int | None, folder: Path, option: str
) -> _Problem | None:
    if free is None or needed <= free:
        return None
    advice = f"free {gib(needed - free)} there, or name a folder on another disk with {option}"
    report = sum(s.disk_bytes for s in stages if s.stage == REPORT)
    if option == "--out" and 0 < needed - report <= free:
        advice += "; or leave the report out (--no-report)"
    return (
        "the disk is too full",
        f"about {gib(needed)} to write for {folder}",
        f"at most the {gib(free)} that are free",
        advice,
    )


def gib(n_bytes: float) -> str:
    """Bytes in GiB or MiB, for messages."""
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MiB"
