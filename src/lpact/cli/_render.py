"""What commands share: consoles, blocks of text and tables, numbers, times and sizes in words."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Collection, Iterable
from math import isfinite
from typing import TYPE_CHECKING

from lpact.cli._layout import Grid

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from lpact.analyses.explanation import Block

LABEL_STYLES = ("green", "yellow", "dim")
"""Colours of labels: the strongest third, the next, and the rest."""
NARROWEST_TEXT = 20
_MINUTE, _HOUR = 60.0, 3600.0
_GIB = 2.0**30
_MIB = 2.0**20
_KIB = 2.0**10


def console() -> Console:
    """Standard output: colours on terminals only, ``NO_COLOR`` respected, no markup in texts."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def width_of(out: Console) -> int | None:
    """Columns of the terminal (or of ``COLUMNS``); None for a pipe or file, where lines are never broken."""
    return out.width if out.is_terminal or os.environ.get("COLUMNS") else None


def say(out: Console, text: str = "", *, indent: int = 0) -> None:
    """Print plain text, broken to the width of the terminal under an even indent."""
    for line in broken(text, width_of(out), indent):
        out.print(line, soft_wrap=True)


def broken(text: str, width: int | None, indent: int, hanging: int = 0) -> list[str]:
    """Lines of ``text`` under ``indent`` and the indent that they have; a break adds ``hanging`` more."""
    lines = []
    for paragraph in text.split("\n"):
        words = paragraph.strip()
        first = indent + len(paragraph) - len(paragraph.lstrip())
        parts = [words]
        if width is not None and words:
            room = max(NARROWEST_TEXT, width - first - hanging)
            parts = textwrap.wrap(words, room, break_on_hyphens=False)
        pads = [" " * first, *[" " * (first + hanging)] * (len(parts) - 1)]
        lines += [f"{pad}{part}".rstrip() for pad, part in zip(pads, parts, strict=True)]
    return lines


def heading(out: Console, text: str) -> None:
    """Print a section's name after an empty line."""
    out.print()
    out.print(text, style="bold", soft_wrap=True)


def show(out: Console, grid: Grid, *, indent: int = 2) -> None:
    """Print a table."""
    grid.print(out, width_of(out), indent)


def show_blocks(out: Console, blocks: Iterable[Block]) -> None:
    """Print what an analysis has to say: title, lines, table."""
    for block in blocks:
        heading(out, block.title)
        for line in block.lines:
            say(out, line, indent=2)
        if block.rows:
            show(out, Grid(block.columns, list(block.rows), block.right))


def label_styles(labels: Collection[str]) -> dict[str, str]:
    """Colours of the labels of an analysis, which lists the strongest first."""
    return {label: LABEL_STYLES[3 * i // len(labels)] for i, label in enumerate(labels)}


def show_lines(out: Console, lines: Iterable[Text]) -> None:
    """Print styled lines as they are."""
    for line in lines:
        out.print(line, soft_wrap=True)


def number(value: float | None, digits: int = 3) -> str:
    """A score in fixed digits; a dash where there is none."""
    if value is None or not isfinite(value):
        return "–"
    return f"{value:.{digits}f}"


def whole(value: int) -> str:
    """An integer with thousands separated."""
    return f"{value:,}"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """``1 claim``, ``2 claims``."""
    return f"{whole(n)} {noun if n == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """A time that a reader can act on."""
    if seconds < 1:
        return "less than a second"
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.1f} h"


def roughly(seconds: float) -> str:
    """``about 12 s``, or ``less than a second``."""
    return duration(seconds) if seconds < 1 else f"about {duration(seconds)}"


def memory(n_bytes: float) -> str:
    """Memory in MiB or GiB."""
    if n_bytes < _GIB:
        return f"{max(1, round(n_bytes / _MIB))} MiB"
    return f"{n_bytes / _GIB:.1f} GiB"


def file_size(n_bytes: int) -> str:
    """The size of files; small ones in bytes or KiB."""
    if n_bytes < _KIB:
        return f"{n_bytes} B"
    return f"{round(n_bytes / _KIB)} KiB" if n_bytes < _MIB else memory(n_bytes)
