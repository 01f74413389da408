"""Numbers, counts, names, times and sizes as a reader sees them, the same on every surface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from markupsafe import Markup, escape

MISSING = "–"
MINUS = "\N{MINUS SIGN}"
LONGEST_CELL, MOST_ITEMS = 160, 4
SHORT_NAME = 14
ROUND_OFF = 1e-12
"""Numbers smaller than this part of their scale are differences of equal numbers."""
_MINUTE, _HOUR = 60.0, 3600.0


# --- numbers and counts -----------------------------------------------------------------------------------------------


def counted(n: int, noun: str, plural: str = "") -> str:
    """``1 claim``, ``1,200 claims``, ``2 studies``, ``2 processes``."""
    if n == 1:
        return f"1 {noun}"
    if not plural:
        plural = re.sub(r"(?<=[^aeiou])y$", "ie", noun)
        plural += "es" if plural.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{n:,} {plural}"


def whole(value: int) -> str:
    """An integer with thousands separated."""
    return f"{value:,}"


def span(counts: Iterable[int | None], noun: str = "") -> str:
    """One count, or the smallest and the largest of several: ``3 to 5``, ``401 events``, ``no events``."""
    known = [n for n in counts if n is not None]
    if not known:
        return f"no {noun}s"
    low, high = min(known), max(known)
    last = counted(high, noun) if noun else whole(high)
    return last if low == high else f"{whole(low)} to {last}"


def number(value: float | None, digits: int = 3, *, scale: float = 0.0) -> str:
    """A number with ``digits`` significant digits; 0 for round-off, relative to ``scale``; a dash if it is missing."""
    if value is None or not isfinite(value):
        return MISSING
    return "0" if abs(value) < ROUND_OFF * scale else f"{value:.{digits}g}"


def setting(value: float, unit: str = "") -> str:
    """A number from a configuration, with all of its digits: ``10``, ``0.05``, ``1e-06``."""
    return f"{value:.15g} {unit}".rstrip()


def fixed(value: float | None, decimals: int = 3, *, sign: bool = False) -> str:
    """A number of a column or figure: fixed decimals, a true minus sign, a dash if it is missing."""
    if value is None or not isfinite(value):
        return MISSING
    plus = "+" if sign and round(value, decimals) else ""
    return f"{value:{plus}z.{decimals}f}".replace("-", MINUS)


def p_value(value: float | None) -> str:
    """A p-value of a column or figure."""
    return "< 0.001" if value is not None and value < 0.001 else fixed(value)


def percent(share: float, digits: int = 3) -> str:
    """A share as a percentage with so many significant digits, and all before the point."""
    value = 100 * share
    shown = f"{value:.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"
    return f"{shown} %".replace("-", MINUS)


def cell(value: Any, longest: int = LONGEST_CELL) -> str:
    """A value of a table in few characters: thousands separated, floats to four digits, long text cut.

    Of a list the first four items; a tuple is the head of a list and the length of the list.
    """
    if value is None or value == (None, None):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, float):
        return number(value, 4)
    if isinstance(value, list | tuple):
        head, n = value if isinstance(value, tuple) else (value[:MOST_ITEMS], len(value))
        more = f", … {whole(n)} values" if n > len(head) else ""
        return f"[{', '.join(map(cell, head))}{more}]"
    return shortened(str(value), longest)


def option_value(value: object) -> str:
    """The value of an option in words."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return setting(value)
    if isinstance(value, Mapping):
        inner = [f"{one_line(k)}: {option_value(v)}" for k, v in sorted(value.items())]
        return f"({'; '.join(inner)})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(option_value(item) for item in value)}]"
    return one_line(value) or "empty"


# --- lists ------------------------------------------------------------------------------------------------------------


def listed(texts: Sequence[str], most: int = 6, joint: str = ", ") -> str:
    """The first texts, and the number of the others: ``a, b and 3 more``."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return joint.join(texts[:most]) + more


def enumerated(texts: Iterable[str], last: str = "and") -> str:
    """All texts in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    *first, end = list(texts) or [""]
    return f"{', '.join(first)} {last} {end}" if first else end


def names(items: Iterable[object], last: str = "and") -> str:
    """Names from data in a sentence."""
    return enumerated(map(one_line, items), last)


def settings(values: Iterable[float], unit: str = "") -> str:
    """Numbers from a configuration in a sentence, with their unit once."""
    return f"{enumerated(map(setting, values))} {unit}".rstrip()


# --- names and texts --------------------------------------------------------------------------------------------------


def spoken(code: str) -> str:
    """A code as words: ``control_explained`` is ``control explained``."""
    return code.replace("_", " ")


def plain(text: object) -> str:
    """Text on one line; characters that a terminal would interpret are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def one_line(text: object) -> str:
    """Text on one line without characters that cannot be printed."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def short(name: str, letters: int) -> str:
    """A name on one line of at most ``letters``; a longer one loses its middle, since ends differ most."""
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


# --- times and sizes --------------------------------------------------------------------------------------------------


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
