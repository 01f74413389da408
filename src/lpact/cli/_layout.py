"""Tables as text: columns that shrink to the width at hand, cells that wrap where a reader would break them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

GAP = 2
NARROWEST = 6
_INSIDE_WORDS = "_/-,"


@dataclass
class Grid:
    """A table of texts. ``right`` names columns of numbers; ``styles`` colours a cell by its content."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    right: frozenset[str] = frozenset()
    styles: Mapping[str, str] = field(default_factory=dict)

    def add(self, *cells: object) -> None:
        """Append a row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(tuple(str(cell) for cell in cells))

    def natural_width(self) -> int:
        """Characters that a line needs when nothing wraps."""
        return sum(self._widths()) + GAP * (len(self.columns) - 1)

    def lines(self, width: int | None, *, indent: int = 0) -> list[Text]:
        """Header and rows as styled lines of at most ``width`` characters (None: no limit)."""
        widths = self._widths()
        if width is not None:
            widths = _shrink(widths, width - indent - GAP * (len(widths) - 1))
        lines = self._row_lines(self.columns, widths, indent, header=True)
        for row in self.rows:
            lines += self._row_lines(row, widths, indent, header=False)
        return lines

    def _widths(self) -> list[int]:
        return [
            max(len(line) for cell in column for line in cell.split("\n"))
            for column in zip(self.columns, *self.rows, strict=True)
        ]

    def _row_lines(
        self, cells: Sequence[str], widths: Sequence[int], indent: int, *, header: bool
    ) -> list[Text]:
        from rich.text import Text

        wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
        lines = []
        for i in range(max(len(parts) for parts in wrapped)):
            line = Text(" " * indent)
            for j, (parts, width) in enumerate(zip(wrapped, widths, strict=True)):
                part = parts[i] if i < len(parts) else ""
                number = self.columns[j] in self.right
                padded = part.rjust(width) if number else part.ljust(width)
                line.append(padded, "bold" if header else self.styles.get(cells[j], ""))
                line.append(" " * GAP)
            line.rstrip()
            lines.append(line)
        return lines


def _shrink(widths: Sequence[int], available: int) -> list[int]:
    """Take characters from the widest columns until all fit; no column gets narrower than `NARROWEST`."""
    fitted = list(widths)
    while sum(fitted) > available and max(fitted) > NARROWEST:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` characters, broken at spaces, or after ``_``, ``/``, ``-`` or ``,`` inside words."""
    lines = []
    for paragraph in text.split("\n"):
        rest = paragraph
        while len(rest) > width:
            cut = _cut(rest, width)
            lines.append(rest[:cut].rstrip())
            rest = rest[cut:].lstrip()
        lines.append(rest)
    return lines


def _cut(text: str, width: int) -> int:
    """Where to break: at a space unless that wastes half of the line, then inside a word, then anywhere."""
    space = text.rfind(" ", 0, width + 1)
    inside = max(text.rfind(mark, 0, width) for mark in _INSIDE_WORDS) + 1
    if space >= width // 2 or space > inside:
        return space
    return inside or width
