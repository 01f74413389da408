"""Results: one object a comparison, a table for people and a file for everything else."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from benchmarks import machine as here


@dataclass(frozen=True, kw_only=True)
class Result:
    """One measured ratio.

    Attributes
    ----------
    name
        What was done.
    peer
        What it was compared with.
    ratio
        How many times faster than the peer; where ``better`` is "lower", how many times the bound. None without a peer.
    target
        What the ratio should reach, or stay under; None where it is reported only.
    same_work
        Whether the peer did the same work; ``note`` says what differs.
    max_difference
        Largest difference of held-out R² between the two, over targets and blocks where both chose the same settings.
    cpu_ratio
        The ratio of processor time, which other work on the machine disturbs less.
    same_choices
        Share of targets and blocks where they did.
    """

    name: str
    peer: str | None
    ratio: float | None
    target: float | None
    same_work: bool
    better: Literal["higher", "lower"] = "higher"
    seconds_ours: float | None = None
    seconds_peer: float | None = None
    cpu_ratio: float | None = None
    precision: str = "float64"
    threads: int = 1
    n: int = 0
    p: int = 0
    t: int = 0
    repeats: int = 1
    max_difference: float | None = None
    same_choices: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.ratio is None or self.target is None:
            return None
        return self.ratio >= self.target if self.better == "higher" else self.ratio <= self.target


def write(results: list[Result], path: Path, *, machine: str | None = None) -> None:
    """A JSON list with one object a result. ``machine`` names another device than the processor."""
    rows = [
        {key: _rounded(value) for key, value in asdict(r).items()}
        | {"met": r.met, "machine": machine or here.machine(), "versions": here.versions()}
        for r in results
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def row(result: Result) -> str:
    """One line of the table."""
    r = result
    sign = "≥" if r.better == "higher" else "≤"
    target = "" if r.target is None else f"{sign} {r.target:g}"
    verdict = {True: "met", False: "MISSED", None: ""}[r.met]
    cells = (
        f"{r.name:<36}",
        f"{r.peer or 'alone':<40}",
        f"{r.precision:<8}",
        f"{r.n:>6}",
        _number(r.seconds_ours, 9),
        _number(r.seconds_peer, 9),
        _number(r.ratio, 7),
        _number(r.cpu_ratio, 7),
        f"{target:>7}",
        f"{verdict:<6}",
        "same work" if r.same_work else "other work",
    )
    return "  ".join(cells).rstrip()


def header() -> str:
    """The table's head."""
    cells = ("name", "beside", "numbers", "n", "ours/s", "other/s", "ratio", "of CPU", "target")
    widths = (-36, -40, -8, 6, 9, 9, 7, 7, 7)
    texts = (f"{c:<{-w}}" if w < 0 else f"{c:>{w}}" for c, w in zip(cells, widths, strict=True))
    return "  ".join(texts)


def _number(value: float | None, width: int) -> str:
    return " " * width if value is None else f"{value:>{width}.2f}"


def _rounded(value: object) -> object:
    return float(f"{value:.4g}") if isinstance(value, float) else value
