"""What a verification finds: problems, and the differences between two frames of one table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, Literal

import polars as pl

from lpact.tables import Table
from lpact.wording import listed, plain

Kind = Literal[
    "lock",
    "file",
    "option",
    "input",
    "manifest",
    "table",
    "consistency",
    "decision",
    "registration",
    "report",
    "crate",
]
"""What a problem is about.

``lock`` is the lock itself or the quoted digest; ``consistency`` is a fault between tables that an analysis names;
``decision``, ``registration`` and ``report`` are recomputed results that differ from those stored;
``crate`` is the RO-Crate description of an archive.
"""

MOST_CELLS = 1000
"""Cells of one column, or rows of one kind, that are listed; a further entry counts the rest."""
_LONGEST = 100
_AROUND = 60
_OLD, _NEW = "\x00old", "\x00new"


@dataclass(frozen=True)
class Problem:
    """One difference between a run and its lock, or between what is stored and what its tables give."""

    kind: Kind
    where: str
    """A file, a table or an option."""
    what: str
    row: dict[str, Any] = field(default_factory=dict)
    """Key values of the row."""
    column: str | None = None
    old: Any = None
    new: Any = None
    """What was locked (or follows from the locked tables), and what is stored now."""

    @property
    def text(self) -> str:
        """The problem on one line, with unprintable characters escaped."""
        place = plain(self.where)
        if self.row:
            cells = ", ".join(f"{plain(k)}={shown(v)}" for k, v in self.row.items())
            place = f"{place}, row {cells}"
        if self.column is not None:
            place = f"{place}, column '{plain(self.column)}'"
        return f"{place}: {plain(self.what)}"


@dataclass(frozen=True)
class Verification:
    """The result of `lpact.archive.verify_run`."""

    path: Path
    locked: bool
    digest: str | None
    quoted: bool
    """Whether a digest from elsewhere was given."""
    problems: tuple[Problem, ...]
    checked: tuple[str, ...]
    """What was checked, in sentences."""
    notes: tuple[str, ...]
    """Facts that are not problems, such as other package versions or skipped checks."""

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    @property
    def proven(self) -> str:
        """What the verification proves, and what it does not."""
        if not self.ok:
            return "The run is not as it was."
        if not self.locked:
            return (
                "Tables, decisions and manifest agree with each other. The run is not locked: whether its numbers were "
                "changed is not known."
            )
        if not self.quoted:
            return (
                "Files, tables, decisions and lock agree with each other. Anyone who can write to the run can make all "
                "of them again, so this does not prove that the numbers are those that were locked. Give the digest "
                "that its authors quote: --digest HEX."
            )
        return "This is the run that was locked under the given digest."

    def as_json(self) -> dict[str, Any]:
        """The verification as plain JSON values."""
        more = {"path": str(self.path), "ok": self.ok, "proven": self.proven}
        return {**asdict(self), **more}


def shown(value: Any) -> str:
    """A value for a message: text in quotes, long values shortened."""
    quoted = f"'{value}'" if isinstance(value, str) else None
    text = plain(quoted or json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def change(old: Any, new: Any) -> str:
    """A change in words; for lists of the same length, the elements that differ."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        places = [i for i, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
        if places:
            named = [f"[{i}] {shown(old[i])} → {shown(new[i])}" for i in places]
            return f"{len(places)} of {len(old)} elements differ: {listed(named, 4)}"
    return f"{shown(old)} → {shown(new)}"


def first_difference(stored: BinaryIO, made: BinaryIO) -> str:
    """The first line in which two texts differ, around the first difference; empty if they are the same."""
    for number, pair in enumerate(zip_longest(stored, made, fillvalue=b""), start=1):
        if pair[0] != pair[1]:
            bytes_ = enumerate(zip(*pair, strict=False))
            at = next((i for i, (a, b) in bytes_ if a != b), min(map(len, pair)))
            part = slice(max(0, at - _AROUND // 2), at + _AROUND)
            here, there = (line[part].rstrip(b"\n").decode(errors="replace") for line in pair)
            return f"line {number} reads {shown(here)} instead of {shown(there)}"
    return ""


def frame_problems(table: Table, old: pl.DataFrame, new: pl.DataFrame, *, kind: Kind) -> list[Problem]:
    """Differences between two valid frames of a table, by key; empty if the frames are the same."""
    if old.equals(new):
        return []
    place, key = table.name, list(table.key)
    left, right = (frame.with_columns(pl.lit(1).alias(m)) for frame, m in ((old, _OLD), (new, _NEW)))
    joined = left.join(right, on=key, how="full", coalesce=True, nulls_equal=True, suffix=_NEW)
    joined = joined.sort(key)
    problems: list[Problem] = []
    for missing, what in ((_NEW, "the row is missing"), (_OLD, "the row was added")):
        rows = joined.filter(pl.col(missing).is_null())
        problems += [Problem(kind, place, what, row=row) for row in _keys(rows, key)]
        if rows.height > MOST_CELLS:
            more = f"{what}, in {rows.height - MOST_CELLS} more rows"
            problems.append(Problem(kind, place, more))
    both = joined.filter(pl.col(_NEW).is_not_null() & pl.col(_OLD).is_not_null())
    for name in (own for own in old.columns if own not in key):
        problems += _cells(both, name, key, kind, place)
    if not problems:
        same = old.select(key).equals(new.select(key))
        what = "a zero has another sign" if same else "the rows are in another order"
        problems.append(Problem(kind, place, what))
    return problems


def _cells(both: pl.DataFrame, name: str, key: list[str], kind: Kind, place: str) -> Iterator[Problem]:
    changed = both.filter(pl.col(name).ne_missing(pl.col(f"{name}{_NEW}")))
    first = changed.head(MOST_CELLS)
    pairs = zip(first[name].to_list(), first[f"{name}{_NEW}"].to_list(), strict=True)
    for row, (old, new) in zip(_keys(first, key), pairs, strict=True):
        yield Problem(kind, place, change(old, new), row=row, column=name, old=old, new=new)
    if changed.height > MOST_CELLS:
        more = f"{changed.height - MOST_CELLS} more cells differ"
        yield Problem(kind, place, more, column=name)


def _keys(rows: pl.DataFrame, key: list[str]) -> Iterator[dict[str, object]]:
    return rows.select(key).head(MOST_CELLS).iter_rows(named=True)
