"""Colours of cells by classes of their numbers, and of the text over them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lpact.report.figure import Spec
from lpact.report.theme import DIVERGING, RAMP, colour


def round_down(value: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above the value; 0.001 where there is none."""
    if not math.isfinite(value) or value <= 0:
        return 0.001
    power = math.floor(math.log10(value))
    fits = (m * 10.0**power for m in (5, 2, 1) if m * 10.0**power <= value * (1 + 1e-9))
    return float(next(fits, 10.0**power))


def diverging_breaks(largest: float) -> list[float]:
    """Six bounds of seven classes around zero, the outer ones open: ±b/10, ±0.4 b, ±b, with b about half the largest.

    The classes widen outwards, so that one large value does not leave all others in the middle.
    """
    widest = round_down(largest / 2)
    return [round(k * widest, 12) for k in (-1, -0.4, -0.1, 0.1, 0.4, 1)]


def class_of(value: float | None, breaks: Sequence[float]) -> int | None:
    """Index of the class that a value is in, as a threshold scale counts."""
    if value is None or not math.isfinite(value):
        return None
    return sum(value >= bound for bound in breaks)


def ink_on(roles: tuple[str, ...], place: int | None) -> str:
    """Role of text over a cell: of the diverging or the rising scale, or of a missing one."""
    strong = {DIVERGING: (0, 1, 5, 6), RAMP: (4, 5, 6)}[roles]
    return "on_strong" if place in strong else "on_light"


def fill_of(roles: tuple[str, ...], place: int | None) -> str:
    """Role of a cell of a class, or of a missing one."""
    return "missing" if place is None else roles[place]


def own_colour(field: str) -> Spec:
    """A colour that the data bring along."""
    return {"field": field, "type": "nominal", "scale": None}


def painted(roles: Sequence[str]) -> list[str]:
    """Colours of roles, for data that bring their own."""
    return [colour(role) for role in roles]
