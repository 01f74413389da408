"""A distribution as a small strip of SVG: its numbers, the model's own number, and the threshold.

Few numbers are dots, stacked where they overlap; many are a histogram. Colours and lines are classes of the style
sheet. The text alternative says the same in words. Everything that comes from data is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from html import escape
from statistics import median
from typing import TypeAlias

from markupsafe import Markup

from lpact.analyses.explanation import Distribution
from lpact.report.values import counted, number

Scale: TypeAlias = Callable[[float], float]

WIDTH, PLOT_HEIGHT, SIDE = 460, 46, 14
TOP, AXIS = 18, 18
RADIUS, BIN = 3.2, 7.0
MOST_DOTS = 80
N_BINS = 46
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)


def strip(shown: Distribution) -> Markup:
    """Draw a distribution that is not empty."""
    low, high = _range(shown)
    base = TOP + PLOT_HEIGHT

    def x(value: float) -> float:
        return SIDE + (WIDTH - 2 * SIDE) * (value - low) / (high - low)

    many = len(shown.values) > MOST_DOTS
    parts = [
        f'<line class="axis" x1="{SIDE}" x2="{WIDTH - SIDE}" y1="{base}" y2="{base}"/>',
        *_ticks(low, high, x, base),
        *(_histogram(shown, x, base) if many else _dots(shown, x, base)),
        *_lines(shown, x, base),
    ]
    text = escape(description(shown))
    size = f"0 0 {WIDTH} {base + AXIS}"
    opening = f'<svg class="strip" viewBox="{size}" role="img" aria-label="{text}">'
    # Every text of a part went through `escape`; all else in it is a number of ours.
    return Markup(f"{opening}<title>{text}</title>{''.join(parts)}</svg>")  # noqa: S704


def description(shown: Distribution) -> str:
    """The strip in words."""
    n, scale = len(shown.values), _scale(shown)
    parts = [shown.title + (f", {shown.where}" if shown.where else "")]
    if n:
        low, middle, high = (number(of(shown.values), scale) for of in (min, median, max))
        span = f"from {low} to {high}, median {middle}"
        parts.append(
            f"{counted(n, shown.kind)} {span if n > 1 else number(shown.values[0], scale)}"
        )
    else:
        parts.append("no number")
    if shown.n_missing:
        parts.append(f"{shown.n_missing} missing")
    if shown.observed is not None:
        parts.append(f"the model's own {number(shown.observed, scale)}")
    if shown.bound is not None:
        parts.append(f"threshold {number(shown.bound, scale)}")
    parts += [f"{name} {number(value, scale)}" for name, value in shown.marks]
    return "; ".join(parts) + "."


def _range(shown: Distribution) -> tuple[float, float]:
    """From the smallest to the largest of all that is drawn, with a margin."""
    all_values = [*shown.values, *(value for _, value in shown.marks)]
    all_values += [value for value in (shown.observed, shown.bound) if value is not None]
    finite = [value for value in all_values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    margin = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    return low - margin, high + margin


def _scale(shown: Distribution) -> float:
    """What round-off is relative to: the largest number on the axis."""
    return max(map(abs, _range(shown)))


def _ticks(low: float, high: float, x: Scale, base: float) -> Iterable[str]:
    """Three to six round numbers under the axis."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(nice * power for nice in _NICE if nice * power >= rough)
    first = math.ceil(low / step)
    for place in range(first, first + 10):
        value = place * step
        if value > high:
            break
        at = f"{x(value):.1f}"
        yield f'<line class="tick" x1="{at}" x2="{at}" y1="{base}" y2="{base + 4}"/>'
        text = f"{value:.4g}" if place else "0"
        yield f'<text class="label" x="{at}" y="{base + 15}" text-anchor="middle">{text}</text>'


def _dots(shown: Distribution, x: Scale, base: float) -> Iterable[str]:
    """One dot per number; those that would overlap are stacked, closer where the stack is high."""
    scale = _scale(shown)
    stacks: dict[int, int] = {}
    placed = []
    labels = shown.labels if len(shown.labels) == len(shown.values) else [""] * len(shown.values)
    for value, label in sorted(zip(shown.values, labels, strict=True), key=lambda pair: pair[0]):
        bin_ = round(x(value) / BIN)
        stacks[bin_] = stacks.get(bin_, 0) + 1
        placed.append((value, label, stacks[bin_] - 1))
    highest = max(stacks.values(), default=1)
    step = min(2 * RADIUS + 0.4, (PLOT_HEIGHT - 2 * RADIUS - 2) / max(1, highest - 1))
    for value, label, place in placed:
        said = escape(f"{label}: {number(value, scale)}" if label else number(value, scale))
        height = base - RADIUS - 2 - step * place
        where = f'cx="{x(value):.1f}" cy="{height:.1f}" r="{RADIUS}"'
        yield f'<circle class="dot" {where}><title>{said}</title></circle>'


def _histogram(shown: Distribution, x: Scale, base: float) -> Iterable[str]:
    """Bars of equal width, as high as their share."""
    low, high, scale = min(shown.values), max(shown.values), _scale(shown)
    width = (high - low) / N_BINS or 1.0
    counts = [0] * N_BINS
    for value in shown.values:
        counts[min(N_BINS - 1, int((value - low) / width))] += 1
    for place, n in enumerate(counts):
        if not n:
            continue
        start, end = low + place * width, low + (place + 1) * width
        wide = max(0.8, min(x(end), WIDTH) - x(start) - 0.6)
        tall = max(1.0, (PLOT_HEIGHT - 4) * n / max(counts))
        where = f'x="{x(start):.1f}" y="{base - tall:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
        said = f"{n} from {number(start, scale)} to {number(end, scale)}"
        yield f'<rect class="bar" {where}><title>{said}</title></rect>'


def _lines(shown: Distribution, x: Scale, base: float) -> Iterable[str]:
    """The bound (dashed), further marks (dotted), and the model's own number (solid, with a head)."""
    scale = _scale(shown)
    drawn: list[tuple[str, str, float]] = [("mark", name, value) for name, value in shown.marks]
    if shown.bound is not None:
        drawn.append(("bound", "threshold", shown.bound))
    if shown.observed is not None:
        drawn.append(("observed", "model", shown.observed))
    for kind, name, value in drawn:
        at = f"{x(value):.1f}"
        said = escape(f"{name} {number(value, scale)}")
        where = f'x1="{at}" x2="{at}" y1="{TOP - 4}" y2="{base}"'
        yield f'<line class="{kind}" {where}><title>{said}</title></line>'
    if shown.observed is not None:
        place = x(shown.observed)
        points = f"{place - 5:.1f},{TOP - 10} {place + 5:.1f},{TOP - 10} {place:.1f},{TOP - 2}"
        yield f'<polygon class="head" points="{points}"/>'
        anchor, shift = ("end", -8) if place > WIDTH / 2 else ("start", 8)
        where = f'x="{place + shift:.1f}" y="{TOP - 4}" text-anchor="{anchor}"'
        yield f'<text class="own" {where}>{number(shown.observed, scale)}</text>'
