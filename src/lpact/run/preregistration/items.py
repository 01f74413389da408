"""One item of a registration beside what a run has; and values as text that a reader can compare."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

ABSENT = "nothing"
SAME = "the same"


@dataclass(frozen=True)
class Line:
    """What was registered, what was found, and whether that is followed: where not given, when both are equal."""

    group: str
    item: str
    registered: str
    found: str
    detail: str = ""
    followed: bool | None = None

    def row(self) -> dict[str, object]:
        """The line as a row of the table."""
        followed = self.registered == self.found if self.followed is None else self.followed
        return {
            "followed": followed,
            "item_group": self.group,
            "item": one_line(self.item),
            "registered": one_line(self.registered),
            "found": one_line(self.found),
            "detail": one_line(self.detail),
        }


def one_line(text: str) -> str:
    """Text in which control characters, line breaks among them, and halves of pairs are written out."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def shown(value: Any) -> str:
    """A value as JSON; None that stands for nothing is said in words."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def counted(n: int, noun: str) -> str:
    """``1 option``, ``2 options``."""
    return f"{n:,} {noun if n == 1 else noun + 's'}"
