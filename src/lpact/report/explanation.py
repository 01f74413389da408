"""An explanation or a conclusion as text and as HTML; terminal, page, explorer and notebook show these.

Nothing here knows an analysis: every word and number comes from the record. A distribution is a small SVG: its numbers,
the model's own number and the threshold. Few numbers are dots, stacked where they overlap; many are a histogram.
Colours and lines are classes of the style sheet, and the text alternative says the same in words. Everything that comes
from data is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from html import escape
from importlib.resources import files
from statistics import median
from typing import TYPE_CHECKING

from markupsafe import Markup

from lpact.analyses.explanation import Criterion, Distribution, Explanation
from lpact.wording import MISSING, breakable, cell, counted, spoken
from lpact.wording import number as in_digits

if TYPE_CHECKING:
    from jinja2 import Environment

PASS, FAIL = "[pass]", "[fail]"


def explanation_text(shown: Explanation) -> str:
    """Plain text: the label and its reason, each gate with its criteria, and what would change it."""
    return "\n".join(_lines(shown))


def _lines(shown: Explanation) -> Iterator[str]:
    yield shown.id
    rules = f" ({shown.profile} gates)" if shown.profile else ""
    yield f"{shown.label}{rules}: {shown.meaning}"
    yield shown.reason
    yield ""
    yield from (f"{name}: {cell(value)}" for name, value in shown.facts)
    for gate in shown.gates:
        yield ""
        yield f"{_mark(gate.passed)} {gate.letter}, {spoken(gate.name)}: {gate.meaning}"
        for criterion in gate.criteria:
            yield f"  {_mark(criterion.passed)} {spoken(criterion.name)}: {numbers(criterion)}"
            yield f"         {criterion.sentence}"
    if shown.what_would_change:
        yield ""
        yield "What would have to change:"
        yield from (f"  - {sentence}" for sentence in shown.what_would_change)


def _mark(passed: bool) -> str:
    return PASS if passed else FAIL


_NEEDED = {
    ">": "must be above",
    ">=": "must be at least",
    "<": "must be below",
    "<=": "must be at most",
}


def number(value: float | None, scale: float = 1.0) -> str:
    """Four significant digits; 0 for round-off, relative to ``scale``; a dash if it is missing."""
    return in_digits(value, 4, scale=scale)


def needed(value: float | None, relation: str, threshold: float | None) -> str:
    """What a number must be: ``−0.0026; must be above 0``; without a threshold, the number alone."""
    scale = abs(threshold or 1.0)
    found = number(value, scale)
    parts = ["missing" if found == MISSING else found]
    if threshold is not None:
        parts.append(f"{_NEEDED.get(relation, f'must be {relation}')} {number(threshold, scale)}")
    return "; ".join(parts).replace("-", "−")


def numbers(criterion: Criterion) -> str:
    """A criterion in one line of text: number, threshold, what it was compared with, number of rows."""
    parts = [needed(criterion.value, criterion.relation, criterion.threshold)]
    if criterion.compared_with:
        parts.append(f"compared with {criterion.compared_with}")
    parts.append(f"n = {criterion.n:,}")
    return "; ".join(parts) + ("" if criterion.decisive else "; for information only")


def explanation_html(shown: Explanation) -> str:
    """An HTML fragment in which everything from data is escaped."""
    html: str = environment().get_template("explanation.html.j2").render(e=shown)
    return html


@cache
def read_file(name: str) -> str:
    """A style sheet or script of the report; ``explanation.css`` is that of `explanation_html`."""
    return files("lpact.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def environment() -> Environment:
    """Templates of the report, which escape everything."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from lpact.report.figure import drawable

    made = Environment(
        loader=PackageLoader("lpact.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: drawable(value) if type(value) is str else value,
    )
    made.filters.update(
        breakable=breakable,
        number=number,
        spoken=spoken,
        distribution=distribution_svg,
        cell=cell,
        numbers=numbers,
    )
    made.globals.update(counted=counted)
    return made


Scale = Callable[[float], float]

WIDTH, PLOT_HEIGHT, SIDE = 460, 46, 14
TOP, AXIS = 18, 18
BASE = TOP + PLOT_HEIGHT
RADIUS, BIN = 3.2, 7.0
MOST_DOTS = 80
N_BINS = 46


def distribution_svg(shown: Distribution) -> Markup:
    """Draw a distribution that is not empty."""
    low, high = _range(shown)

    def x(value: float) -> float:
        return SIDE + (WIDTH - 2 * SIDE) * (value - low) / (high - low)

    parts = [
        f'<line class="axis" x1="{SIDE}" x2="{WIDTH - SIDE}" y1="{BASE}" y2="{BASE}"/>',
        *_ticks(low, high, x),
        *(_histogram(shown, x) if len(shown.values) > MOST_DOTS else _dots(shown, x)),
        *_marks(shown, x),
    ]
    text = escape(description(shown))
    size = f"0 0 {WIDTH} {BASE + AXIS}"
    opening = f'<svg class="distribution" viewBox="{size}" role="img" aria-label="{text}">'
    # All text was escaped with `escape`; everything else is a number computed here.
    return Markup(f"{opening}<title>{text}</title>{''.join(parts)}</svg>")  # noqa: S704


def description(shown: Distribution) -> str:
    """The picture in words."""
    n, scale = len(shown.values), _scale(shown)
    parts = [shown.title + (f", {shown.where}" if shown.where else "")]
    if n:
        low, middle, high = (number(of(shown.values), scale) for of in (min, median, max))
        span = f"from {low} to {high}, median {middle}" if n > 1 else low
        parts.append(f"{counted(n, shown.kind)} {span}")
    else:
        parts.append("no number")
    if shown.n_missing:
        parts.append(f"{shown.n_missing} missing")
    named = (("the model's own", shown.observed), ("threshold", shown.bound), *shown.marks)
    parts += [f"{name} {number(value, scale)}" for name, value in named if value is not None]
    return "; ".join(parts) + "."


def _range(shown: Distribution) -> tuple[float, float]:
    """From the smallest to the largest of all that is drawn, with a margin."""
    values = [*shown.values, *(value for _, value in shown.marks), shown.observed, shown.bound]
    finite = [own for own in values if own is not None and math.isfinite(own)] or [0.0]
    low, high = min(finite), max(finite)
    margin = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    return low - margin, high + margin


def _scale(shown: Distribution) -> float:
    """What round-off is relative to: the largest number on the axis."""
    return max(map(abs, _range(shown)))


def _ticks(low: float, high: float, x: Scale) -> Iterable[str]:
    """Three to six round numbers under the axis."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(nice * power for nice in (1.0, 2.0, 2.5, 5.0, 10.0) if nice * power >= rough)
    for place in range(math.ceil(low / step), math.floor(high / step) + 1):
        at, text = f"{x(place * step):.1f}", f"{place * step:.4g}" if place else "0"
        yield f'<line class="tick" x1="{at}" x2="{at}" y1="{BASE}" y2="{BASE + 4}"/>'
        yield f'<text class="label" x="{at}" y="{BASE + 15}" text-anchor="middle">{text}</text>'


def _dots(shown: Distribution, x: Scale) -> Iterable[str]:
    """One dot per number; those that would overlap are stacked, closer where the stack is high."""
    scale = _scale(shown)
    stacks: dict[int, int] = {}
    placed = []
    labels = shown.labels if len(shown.labels) == len(shown.values) else [""] * len(shown.values)
    for value, label in sorted(zip(shown.values, labels, strict=True), key=lambda pair: pair[0]):
        bin_ = round(x(value) / BIN)
        placed.append((value, label, stacks.setdefault(bin_, 0)))
        stacks[bin_] += 1
    highest = max(stacks.values(), default=1)
    step = min(2 * RADIUS + 0.4, (PLOT_HEIGHT - 2 * RADIUS - 2) / max(1, highest - 1))
    for value, label, place in placed:
        text = escape(f"{label}: {number(value, scale)}" if label else number(value, scale))
        where = f'cx="{x(value):.1f}" cy="{BASE - RADIUS - 2 - step * place:.1f}" r="{RADIUS}"'
        yield f'<circle class="dot" {where}><title>{text}</title></circle>'


def _histogram(shown: Distribution, x: Scale) -> Iterable[str]:
    """Bars of equal width, as high as their share."""
    low, high, scale = min(shown.values), max(shown.values), _scale(shown)
    width = (high - low) / N_BINS or 1.0
    counts = [0] * N_BINS
    for value in shown.values:
        counts[min(N_BINS - 1, int((value - low) / width))] += 1
    for place, n in enumerate(counts):
        if n:
            start, end = low + place * width, low + (place + 1) * width
            wide = max(0.8, min(x(end), WIDTH) - x(start) - 0.6)
            tall = max(1.0, (PLOT_HEIGHT - 4) * n / max(counts))
            where = f'x="{x(start):.1f}" y="{BASE - tall:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
            text = f"{n} from {number(start, scale)} to {number(end, scale)}"
            yield f'<rect class="bar" {where}><title>{text}</title></rect>'


def _marks(shown: Distribution, x: Scale) -> Iterable[str]:
    """The bound (dashed), further marks (dotted), and the model's own number (solid, with a head)."""
    scale = _scale(shown)
    drawn: list[tuple[str, str, float | None]] = [("mark", *own) for own in shown.marks]
    drawn += [("bound", "threshold", shown.bound), ("observed", "model", shown.observed)]
    for kind, name, value in drawn:
        if value is not None:
            at, text = f"{x(value):.1f}", escape(f"{name} {number(value, scale)}")
            where = f'x1="{at}" x2="{at}" y1="{TOP - 4}" y2="{BASE}"'
            yield f'<line class="{kind}" {where}><title>{text}</title></line>'
    if shown.observed is not None:
        place = x(shown.observed)
        points = f"{place - 5:.1f},{TOP - 10} {place + 5:.1f},{TOP - 10} {place:.1f},{TOP - 2}"
        yield f'<polygon class="head" points="{points}"/>'
        anchor, shift = ("end", -8) if place > WIDTH / 2 else ("start", 8)
        where = f'x="{place + shift:.1f}" y="{TOP - 4}" text-anchor="{anchor}"'
        yield f'<text class="own" {where}>{number(shown.observed, scale)}</text>'
