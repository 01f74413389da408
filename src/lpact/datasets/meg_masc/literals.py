"""Python literals that describe the events of MEG-MASC, and the values in them."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lpact.datasets._files.strict import TsvFile
from lpact.errors import RecordingError

REMEDY = "fix the line, or copy or download the file again"
NOT_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
"""What `literal` raises where a cell is not the literal of a dict."""

_LARGEST = 10**18
_NUMBER = r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|0|[1-9][0-9]*)(?:[eE][+-]?[0-9]+)?"
_TEXT = r"'[^'\\]*'|\"[^\"\\]*\""
_PAIR = rf"(?!'kind'|\"kind\")(?:{_TEXT}) *: *(?:{_TEXT}|{_NUMBER}|None|True|False)"
_PHONEME = re.compile(
    rf"\{{ *(?:{_PAIR} *, *)*'kind' *: *'phoneme' *(?:, *{_PAIR} *)*(?:, *)?\}}", re.ASCII
)
"""A whole literal of texts and numbers whose only ``kind`` is phoneme; no other cell fits, broken or not."""


def literal(cell: str) -> Mapping[str, Any] | None:
    """Return the dict that a cell writes; None where it is about a phoneme, which most are, and is not evaluated."""
    if cell.startswith('"') and cell.endswith('"') and len(cell) > 1:
        cell = cell[1:-1].replace('""', '"')  # a cell that a CSV writer has quoted
    if _PHONEME.fullmatch(cell):
        return None
    about = ast.literal_eval(cell)
    if not isinstance(about, dict):
        raise TypeError("not a dict")
    return None if about.get("kind") == "phoneme" else about


def evaluated(table: TsvFile, row: int, cell: str) -> Mapping[str, Any] | None:
    """Return what `literal` does; a cell that is no literal is named."""
    try:
        return literal(cell)
    except NOT_LITERAL as problem:
        raise RecordingError(
            "an event is not described by a Python literal",
            where=f"{table.path}, line {row + 2}, column 'trial_type'",
            got=f"{cell[:200]!r} ({type(problem).__name__})",
            expected="a dict such as {'kind': 'word', 'word': 'a', …}, of texts and numbers",
            remedy=REMEDY,
        ) from None


def texts(path: Path, row: int, about: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, str]:
    """Return values that must be texts."""
    for key in keys:
        value = about.get(key)
        if not isinstance(value, str) or not value.strip():
            raise wrong(path, row, f"an event's '{key}' is not a text", repr(value), "a text")
    return {key: about[key] for key in keys}


def number(path: Path, row: int, about: Mapping[str, Any], key: str) -> float:
    """Return a value that must be a finite number."""
    value = about.get(key)
    try:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError
        if math.isfinite(found := float(value)):
            return found
        raise ValueError
    except (ValueError, OverflowError):
        raise wrong(
            path, row, f"an event's '{key}' is not a number", repr(value), "a finite number"
        ) from None


def whole(path: Path, row: int, about: Mapping[str, Any], key: str) -> int:
    """Return a value that must be a whole number."""
    value = number(path, row, about, key)
    if value != int(value) or abs(value) >= _LARGEST:
        expected = "a whole number of at most 18 digits"
        raise wrong(path, row, f"an event's '{key}' is not whole", repr(value), expected)
    return int(value)


def pronounced(path: Path, row: int, about: Mapping[str, Any]) -> float:
    """Return whether a word was pronounced as written; NaN where the event does not say."""
    value = about.get("pronounced")
    if value is None:
        return math.nan
    return float(value) if isinstance(value, bool) else number(path, row, about, "pronounced")


def wrong(path: Path, row: int, what: str, got: str, expected: str) -> RecordingError:
    """Return the error of an event; rows are counted from 0."""
    return RecordingError(
        what,
        where=f"{path}, line {row + 2}, column 'trial_type'",
        got=got if len(got) <= 200 else f"{got[:200]}…",
        expected=expected,
        remedy=REMEDY,
    )
