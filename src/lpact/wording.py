"""Numbers, counts, times and sizes in words, the same on every surface."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite

MISSING = "–"
MINUS = "\N{MINUS SIGN}"
_MINUTE, _HOUR = 60.0, 3600.0


def counted(n: int, noun: str, plural: str = "") -> str:
    """``1 claim``, ``1,200 claims``, ``2 studies``, ``2 processes``."""
    if n == 1:
        return f"1 {noun}"
    if not plural:
        plural = re.sub(r"(?<=[^aeiou])y$", "ie", noun)
        plural += "es" if plural.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{n:,} {plural}"


def number(value: float | None, digits: int = 3) -> str:
    """A number of a sentence, with three significant digits."""
    return "n/a" if value is None or not isfinite(value) else f"{value:.{digits}g}"


def fixed(value: float | None, decimals: int = 3, *, sign: bool = False) -> str:
    """A number of a column or figure: fixed decimals, a true minus sign, a dash if it is missing."""
    if value is None or not isfinite(value):
        return MISSING
    plus = "+" if sign and round(value, decimals) else ""
    return f"{value:{plus}z.{decimals}f}".replace("-", MINUS)


def percent(share: float) -> str:
    """A share as a percentage with three significant digits."""
    return f"{100 * share:.3g} %"


def listed(texts: Sequence[str], most: int = 6, joint: str = ", ") -> str:
    """The first texts, and the number of the others."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return joint.join(texts[:most]) + more


def plain(text: object) -> str:
    """Text on one line; characters that a terminal would interpret are escaped."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text)
    )


def duration(seconds: float) -> str:
    """A time in seconds, minutes or hours."""
    if seconds < 1:
        return "less than a second"
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.1f} h"


def about(seconds: float) -> str:
    """An estimated time: ``about 12 s``, or ``less than a second``."""
    return duration(seconds) if seconds < 1 else f"about {duration(seconds)}"


def size(n_bytes: float) -> str:
    """Bytes in B, KiB, MiB or GiB."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= scale:
            return f"{n_bytes / scale:.{1 if unit == 'GiB' else 0}f} {unit}"
    return f"{n_bytes:.0f} B"
