"""Blocks of a text: what readers of Markdown, LaTeX and plain text hand to the checker.

Readers never move a character: markup becomes spaces, so that a place in a block is a place in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

CITATION = "\ue000"
"""Stands for a citation in brackets: [12], (Smith, 2020), \\citep{smith}."""
CITED_AUTHOR = "\ue001"
"""Stands for a citation that is part of the sentence: \\citet{smith}, @smith."""
OPAQUE = "\ue002"
"""Stands for mathematics or code: something that is there and not read."""
JOINER = "\ue003"
"""Stands for a character of markup inside a word, which a sentence leaves out: the backslash of sim\\_ecog."""


class BlockKind(StrEnum):
    """What a block is."""

    PROSE = "prose"
    HEADING = "heading"
    ITEM = "item"
    CELL = "cell"
    QUOTE = "quote"


@dataclass(frozen=True)
class Block:
    """A stretch of text that sentences do not cross.

    Attributes
    ----------
    kind
        What it is; quotations are not checked.
    start
        Place of its first character in the file.
    text
        Its characters, markup blanked; as long as in the file.
    """

    kind: BlockKind
    start: int
    text: str


class Canvas:
    """The characters of a text, to be blanked in place."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.characters = list(source)

    def blank(self, start: int, end: int, *, leaving: str = "") -> None:
        """Blank a stretch, line ends aside; ``leaving`` is put at its start."""
        for i in range(start, end):
            if self.characters[i] != "\n":
                self.characters[i] = " "
        for i, character in enumerate(leaving[: end - start]):
            self.characters[start + i] = character

    def text(self, start: int = 0, end: int | None = None) -> str:
        """What is left of a stretch."""
        return "".join(self.characters[start:end])

    def take(self, start: int, end: int, kind: BlockKind) -> Block:
        """Cut a stretch out as a block of its own and blank it here."""
        block = Block(kind, start, self.text(start, end))
        self.blank(start, end)
        return block


def paragraphs(text: str, start: int = 0) -> list[tuple[int, int]]:
    """Stretches between empty lines, as places in the file."""
    found = []
    begin: int | None = None
    place = start
    for line in text.splitlines(keepends=True):
        if line.strip():
            begin = place if begin is None else begin
        elif begin is not None:
            found.append((begin, place))
            begin = None
        place += len(line)
    if begin is not None:
        found.append((begin, place))
    return found
