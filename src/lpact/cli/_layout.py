"""Tables as text, drawn by Rich: columns shrink and cells wrap where a terminal is narrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

GAP = 2
UNLIMITED = 100_000
"""Width of a pipe or file, where lines are never broken."""
MARKS = {"yes": "green", "no": "red"}
"""Colours of cells that hold nothing but this word."""


@dataclass
class Grid:
    """A table of texts. ``right`` names columns of numbers; ``styles`` colours a cell by its content."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    right: frozenset[str] = frozenset()
    styles: Mapping[str, str] = field(default_factory=dict)
    header: bool = True

    def add(self, *cells: object) -> None:
        """Append a row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(tuple(str(cell) for cell in cells))

    def natural_width(self) -> int:
        """Number of characters that a line needs when nothing wraps."""
        columns = zip(self.columns, *self.rows, strict=True)
        widths = [max(len(line) for cell in c for line in cell.split("\n")) for c in columns]
        return sum(widths) + GAP * (len(widths) - 1)

    def print(self, out: Console, width: int | None, indent: int) -> None:
        """Print header and rows on lines of at most ``width`` characters (None: no limit)."""
        from rich.segment import Segment
        from rich.text import Text

        options = out.options.update(width=(width or UNLIMITED) - indent)
        for segments in out.render_lines(self._table(), options, pad=False):
            styled = ((s.text, s.style or "") for s in Segment.simplify(segments))
            line = Text.assemble(" " * indent, *styled)
            line.rstrip()
            out.print(line, soft_wrap=True)

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        padding = (0, GAP, 0, 0)
        table = Table(box=None, padding=padding, pad_edge=False, show_header=self.header)
        for name in self.columns:
            table.add_column(
                Text(name),
                header_style="bold",
                justify="right" if name in self.right else "left",
                overflow="fold",
            )
        styles = MARKS | dict(self.styles)
        for row in self.rows:
            table.add_row(*(Text(cell, styles.get(cell, "")) for cell in row))
        return table
