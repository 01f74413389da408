"""Numbers, counts and names as every figure writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable

MINUS = "\N{MINUS SIGN}"
_LETTER = 5.9
"""Mean width of a letter at the base size, in pixels."""


def number(value: float | None, decimals: int = 3, *, sign: bool = False) -> str:
    """A number with a true minus sign; zero has no sign, and a missing value is a dash."""
    if value is None or not math.isfinite(value):
        return "–"
    rounded = round(value, decimals)
    if rounded == 0:
        return f"{0:.{decimals}f}"
    return f"{rounded:{'+' if sign else ''}.{decimals}f}".replace("-", MINUS)


def signed(value: float | None, decimals: int = 3) -> str:
    """A difference: as `number`, with a plus above zero."""
    return number(value, decimals, sign=True)


def bound(value: float) -> str:
    """A class boundary with its sign and as few digits as it has."""
    return f"{value:+g}".replace("-", MINUS)


def counted(n: int, one: str, many: str = "") -> str:
    """A count with its noun; ``many`` is the plural where it is not the noun with an s."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def span(counts: Iterable[int]) -> str:
    """One count, or the smallest and the largest of several."""
    known = list(counts)
    low, high = min(known), max(known)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def letters_in(room: float) -> int:
    """How many letters of the base size fit into ``room`` pixels."""
    return max(4, int(room / _LETTER))


def short(name: str, letters: int) -> str:
    """A name in one line of at most so many letters; a longer one loses its middle, since ends differ most."""
    line = " ".join(str(name).split())
    if len(line) <= letters:
        return line
    tail = max(letters - 1, 1) // 2
    return f"{line[: letters - 1 - tail]}…{line[len(line) - tail :]}"


def short_forms(names: Iterable[str], letters: int) -> dict[str, str]:
    """Short forms of several names that stay distinct.

    Names lose their middle or, where two would be the same, their common beginning. Forms that would still be the
    same are numbered.
    """
    all_names = list(dict.fromkeys(str(name) for name in names))
    forms = {name: short(name, letters) for name in all_names}
    if len(set(forms.values())) < len(all_names):
        first, last = min(all_names), max(all_names)
        pairs = zip(first, last, strict=False)
        begin = next((i for i, (a, b) in enumerate(pairs) if a != b), len(first))
        forms = {name: f"…{short(name[begin:], letters - 1)}" for name in all_names}
    if len(set(forms.values())) < len(all_names):
        forms = {name: f"{i} {short(name, letters - 3)}" for i, name in enumerate(all_names, 1)}
    return forms
