"""Values as a reader sees them, on every surface."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite
from typing import Any

from markupsafe import Markup, escape

from lpact.wording import MISSING, fixed

LONGEST_CELL = 160
SHORT_NAME = 14
ROUND_OFF = 1e-12
"""Numbers smaller than this part of their scale are differences of equal numbers."""


def number(value: float | None, scale: float = 1.0) -> str:
    """Four significant digits; 0 for round-off, relative to ``scale``; a dash where there is none."""
    if value is None or not isfinite(value):
        return MISSING
    return "0" if abs(value) < ROUND_OFF * scale else f"{value:.4g}"


_NEEDED = {
    ">": "must be above",
    ">=": "must be at least",
    "<": "must be below",
    "<=": "must be at most",
}


def needed(value: float | None, relation: str, threshold: float | None) -> str:
    """What a number must be: ``−0.0026; must be above 0``; without a threshold, the number alone."""
    scale = abs(threshold or 1.0)
    found = number(value, scale)
    parts = ["missing" if found == MISSING else found]
    if threshold is not None:
        parts.append(f"{_NEEDED.get(relation, f'must be {relation}')} {number(threshold, scale)}")
    return "; ".join(parts).replace("-", "−")


def signed(value: float | None, decimals: int = 3) -> str:
    """A difference: as `fixed`, with its sign."""
    return fixed(value, decimals, sign=True)


def whole(value: int) -> str:
    """An integer with thousands separated."""
    return f"{value:,}"


def span(counts: Iterable[int]) -> str:
    """One count, or the smallest and the largest of several: ``3 to 5``."""
    known = list(counts)
    low, high = min(known), max(known)
    return whole(low) if low == high else f"{whole(low)} to {whole(high)}"


def cell(value: Any) -> str:
    """A value of a table in few characters: floats to four digits, the head of a list, long text cut."""
    if value is None or value == (None, None):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):  # trailing zeros keep a column aligned
        return f"{value:#.4g}".removesuffix(".")
    if isinstance(value, tuple):
        head, n = value
        more = f", … {whole(n)} values" if n > len(head) else ""
        return f"[{', '.join(cell(item) for item in head)}{more}]"
    return shortened(str(value))


def short(name: str, letters: int) -> str:
    """A name in one line of at most so many letters; a longer one loses its middle, since ends differ most."""
    line = " ".join(str(name).split())
    if len(line) <= letters:
        return line
    tail = (letters - 1) // 2
    return f"{line[: letters - 1 - tail]}…{line[len(line) - tail :]}"


def shortened(text: str, most: int = LONGEST_CELL) -> str:
    """A long text without its end."""
    return text if len(text) <= most else text[: most - 1] + "…"


def breakable(text: str) -> Markup:
    """A name that may be broken after underlines, slashes and dots; a short one stays whole."""
    parts = re.split(r"(?<=[_/.])", text) if len(text) > SHORT_NAME else [text]
    return Markup("<wbr>").join(escape(part) for part in parts)


def spoken(code: str) -> str:
    """A code as words: ``control_explained`` is ``control explained``."""
    return code.replace("_", " ")
