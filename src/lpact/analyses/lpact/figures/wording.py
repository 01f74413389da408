"""Numbers, counts and names of measures as every figure writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

MINUS = "\N{MINUS SIGN}"

MODES: dict[str, str] = {
    "subject_to_subject": "subject to subject",
    "session_to_session": "session to session",
    "run_to_run": "run to run",
    "split_half": "split half",
}
"""Reliability modes in words, from the strictest."""

METRICS: dict[str, str] = {"pearson": "Pearson r", "spearman": "Spearman ρ", "r2": "R²"}
"""Metrics of level 1, as axes call them."""


def metric_name(metric: str) -> str:
    """A metric in words."""
    return METRICS.get(metric, metric)


def mode_names(modes: Sequence[str]) -> str:
    """Modes in words, strictest first."""
    order = list(MODES)
    known = sorted(set(modes), key=lambda m: (order.index(m) if m in order else len(order), m))
    return ", ".join(MODES.get(mode, mode) for mode in known)


def number(value: float | None, decimals: int = 3, *, sign: bool = False) -> str:
    """A number with a true minus sign; zero has no sign, and what is missing is a dash."""
    if value is None or not math.isfinite(value):
        return "–"
    rounded = round(value, decimals)
    if rounded == 0:
        return f"{0:.{decimals}f}"
    return f"{rounded:{'+' if sign else ''}.{decimals}f}".replace("-", MINUS)


def signed(value: float | None, decimals: int = 3) -> str:
    """A difference: as `number`, with a plus where it is above zero."""
    return number(value, decimals, sign=True)


def bound(value: float) -> str:
    """A bound of a class: as few digits as it has, with its sign."""
    return f"{value:+g}".replace("-", MINUS)


def counted(n: int, one: str, many: str = "") -> str:
    """A count with its noun; ``many`` where the plural is not the noun with an s."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def span(counts: Iterable[int]) -> str:
    """The one count, or the smallest and the largest of several."""
    known = list(counts)
    low, high = min(known), max(known)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
