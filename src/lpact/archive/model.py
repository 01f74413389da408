"""What a verification finds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal[
    "lock",
    "file",
    "option",
    "input",
    "manifest",
    "table",
    "units",
    "decision",
    "registration",
    "report",
    "crate",
    "limit",
]
"""What a problem is about.

``lock`` is the lock itself or the digest that was quoted; ``decision``, ``registration`` and ``report`` are what came
out otherwise when they were made again; ``crate`` is the description that an archive carries;
``limit`` is what could not be checked here, for want of memory or time, and may be as it was.
"""
_LONGEST = 100


def plain(text: object) -> str:
    """Text as `lpact.archive.diff` shows it; imported when there is something to show."""
    from lpact.archive.diff.text import plain as shown_plainly

    return shown_plainly(text)


@dataclass(frozen=True)
class Problem:
    """One thing that is not as it was locked.

    ``where`` is a file, a table or an option. ``row`` holds key values; ``old`` is what was locked (or is made again
    from the locked tables), ``new`` what stands there now.
    """

    kind: Kind
    where: str
    what: str
    row: dict[str, Any] = field(default_factory=dict)
    column: str | None = None
    old: Any = None
    new: Any = None

    @property
    def text(self) -> str:
        """The problem on one line; what is not printable is shown as its escape."""
        place = plain(self.where)
        if self.row:
            cells = ", ".join(f"{plain(k)}={shown(v)}" for k, v in self.row.items())
            place = f"{place}, row {cells}"
        if self.column is not None:
            place = f"{place}, column '{plain(self.column)}'"
        return f"{place}: {plain(self.what)}"

    def as_json(self) -> dict[str, Any]:
        """The problem as plain JSON values."""
        return {
            "kind": self.kind,
            "where": self.where,
            "what": self.what,
            "row": self.row,
            "column": self.column,
            "old": self.old,
            "new": self.new,
        }


@dataclass(frozen=True)
class Verification:
    """What was checked, and everything that is wrong."""

    path: Path
    locked: bool
    digest: str | None
    problems: tuple[Problem, ...]
    checked: tuple[str, ...]
    """What was done, in sentences."""
    notes: tuple[str, ...]
    """What a reader should know that is no fault: other versions, what was left out, and why."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """The verification as plain JSON values."""
        return {
            "path": str(self.path),
            "locked": self.locked,
            "digest": self.digest,
            "ok": self.ok,
            "problems": [problem.as_json() for problem in self.problems],
            "checked": list(self.checked),
            "notes": list(self.notes),
        }


def shown(value: Any) -> str:
    """A value as a reader can tell it from others: text in quotes, long ones cut."""
    if isinstance(value, str):
        text = "'" + plain(value) + "'"
    else:
        text = plain(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def change(old: Any, new: Any) -> str:
    """A change in words; of lists, which elements differ."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        places = [i for i, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
        if places:
            named = ", ".join(f"[{i}] {shown(old[i])} → {shown(new[i])}" for i in places[:4])
            more = f" and {len(places) - 4} more" if len(places) > 4 else ""
            return f"{len(places)} of {len(old)} elements differ: {named}{more}"
    return f"{shown(old)} → {shown(new)}"
