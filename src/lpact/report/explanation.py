"""An explanation or a conclusion as text and as HTML; terminal, page, explorer and notebook show these.

Nothing here knows an analysis: every word and number comes from the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from lpact.analyses.explanation import Criterion, Explanation, Value
from lpact.report.values import breakable, needed, number, spoken
from lpact.wording import counted

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
    yield from (f"{name}: {fact(value)}" for name, value in shown.facts)
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


def fact(value: Value) -> str:
    """A fact's value: numbers with four digits, a dash for what is missing."""
    if value is None or isinstance(value, float):
        return number(value)
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def numbers(criterion: Criterion) -> str:
    """A criterion's number and threshold, what it was compared with, and how many rows it summarises."""
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

    from lpact.report.distribution import distribution_svg
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
        fact=fact,
        numbers=numbers,
    )
    made.globals.update(counted=counted)
    return made
