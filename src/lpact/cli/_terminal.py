"""Text and tables on standard output; Rich shrinks columns and wraps cells where a terminal is narrow.

Names come from data of other people: what a terminal would interpret is escaped here, and nowhere else.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer

from lpact.wording import cell, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from lpact.analyses.explanation import Block

GAP = 2
UNLIMITED = 100_000
"""Width of a pipe or file, where lines are never broken."""
NARROWEST_TEXT = 20
MARKS = {"yes": "green", "no": "red"}
"""Colours of cells that hold nothing but this word."""
LABEL_STYLES = ("green", "yellow", "dim")
"""Colours of labels: the strongest third, the next, and the rest."""
_drawing: ContextVar[Console | None] = ContextVar("drawing", default=None)


def console(*, stderr: bool = False) -> Console:
    """Standard output: colours on terminals only, ``NO_COLOR`` respected, no markup in texts."""
    from rich.console import Console

    own = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    return _drawing.get() or own


@contextmanager
def drawing_on(other: Console) -> Iterator[None]:
    """Print on another console."""
    token = _drawing.set(other)
    try:
        yield
    finally:
        _drawing.reset(token)


def line_width() -> int | None:
    """Columns of the terminal (or of ``COLUMNS``); None for a pipe or file, where lines are never broken."""
    out = console()
    return out.width if out.is_terminal or os.environ.get("COLUMNS") else None


def safe(text: object) -> str:
    """Text in which only line breaks mean anything to a terminal."""
    return "\n".join(map(plain, str(text).split("\n")))


def complain(text: object) -> None:
    """Print on standard error, without breaking lines."""
    typer.echo(safe(text), err=True)


def say(text: str = "", *, indent: int = 0, hanging: int = 0, stderr: bool = False) -> None:
    """Print plain text, broken to the width of the terminal under an even indent."""
    out = console(stderr=stderr)
    for line in broken(safe(text), line_width(), indent, hanging):
        out.print(line, soft_wrap=True)


def broken(text: str, width: int | None, indent: int, hanging: int = 0) -> list[str]:
    """Lines of ``text`` under ``indent`` and the indent that they have; a break adds ``hanging`` more."""
    lines = []
    for paragraph in text.split("\n"):
        words = paragraph.strip()
        first = " " * (indent + len(paragraph) - len(paragraph.lstrip()))
        if width is None or not words:
            lines.append((first + words).rstrip())
            continue
        wide = max(NARROWEST_TEXT + len(first) + hanging, width)
        rest = first + " " * hanging
        lines += textwrap.wrap(words, wide, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return lines


def heading(text: str) -> None:
    """Print a section's name after an empty line."""
    out = console()
    out.print()
    out.print(safe(text), style="bold", soft_wrap=True)


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Collection[str] = (),
    styles: Mapping[str, str] | None = None,
    indent: int = 2,
    header: bool = True,
    wrap: bool = True,
) -> None:
    """Print a table. Numbers are aligned to the right, and so are the columns ``right``.

    ``styles`` colours a cell by its text. Lines to copy are not wrapped.
    """
    from rich.segment import Segment
    from rich.text import Text

    out = console()
    table = _table(columns, list(rows), right, styles or {}, header=header)
    width = (line_width() if wrap else None) or UNLIMITED
    options = out.options.update(width=width - indent)
    for segments in out.render_lines(table, options, pad=False):
        styled = ((s.text, s.style or "") for s in Segment.simplify(segments))
        line = Text.assemble(" " * indent, *styled)
        line.rstrip()
        out.print(line, soft_wrap=True)


def table_width(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> int:
    """Characters that a line needs when nothing wraps."""
    out = console()
    options = out.options.update(max_width=UNLIMITED)
    return out.measure(_table(columns, rows), options=options).maximum


def _table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    right: Collection[str] = (),
    styles: Mapping[str, str] | None = None,
    *,
    header: bool = True,
) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, show_header=header)
    for i, name in enumerate(columns):
        numbers = all(type(row[i]) in (int, float, type(None)) for row in rows) and rows
        justify: Any = "right" if name in right or numbers else "left"
        table.add_column(Text(safe(name)), header_style="bold", justify=justify, overflow="fold")
    styles = {**MARKS, **(styles or {})}
    for row in rows:
        texts = [safe(cell(value, UNLIMITED)) for value in row]
        table.add_row(*(Text(text, styles.get(text, "")) for text in texts))
    return table


def show_blocks(blocks: Iterable[Block]) -> None:
    """Print what an analysis reports: title, lines, table."""
    for block in blocks:
        heading(block.title)
        for line in block.lines:
            say(line, indent=2)
        if block.rows:
            show_table(block.columns, block.rows, right=block.right)


def label_styles(labels: Collection[str]) -> dict[str, str]:
    """Colours of the labels of an analysis, which lists the strongest first."""
    return {label: LABEL_STYLES[3 * i // len(labels)] for i, label in enumerate(labels)}


def print_json(values: object) -> None:
    """Print values as JSON on standard output."""
    typer.echo(json.dumps(values, indent=2, allow_nan=False))
