"""JSON from files that anybody may have written: how much it holds is found out before it is parsed.

A few kilobytes of packed JSON can take gigabytes of memory once they are Python values. So there is a limit to the
bytes of a file, and one to its values, which are counted by their commas and brackets. Manifest and lock of a run of
three hundred thousand source files are within both, and the description of an archive of two hundred thousand. A file
beyond them is not called damaged.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from lpact.errors import RunError
from lpact.store import storage_errors

MOST_JSON_BYTES = 128 * 2**20
MOST_JSON_VALUES = 4_000_000
DEEPEST = 100
"""Lists and objects in each other."""


def read_bounded(path: Path, *, what: str) -> bytes:
    """The bytes of a JSON file that can be parsed by anything; ``what`` begins the error about one that is damaged."""
    with storage_errors(path, what), path.open("rb") as handle:
        content = handle.read(MOST_JSON_BYTES + 1)
    if len(content) > MOST_JSON_BYTES:
        raise _too_large(str(path), f"{path.stat().st_size} bytes")
    parse_bounded(content, what=what, where=str(path))
    return content


def parse_bounded(content: bytes, *, what: str, where: str) -> Any:
    """The values in these bytes, or a `RunError`.

    Besides what is too large, it refuses what one reader takes otherwise than another: a name that stands twice in an
    object, numbers that JSON does not have, and letters that no text has.
    """
    if len(content) > MOST_JSON_BYTES:
        raise _too_large(where, f"{len(content)} bytes")
    n_values = sum(map(content.count, (b",", b"[", b"{"))) + 1
    if n_values > MOST_JSON_VALUES:
        raise _too_large(where, f"up to {n_values} values")
    try:
        values = json.loads(content.decode(), object_pairs_hook=_once, parse_constant=_no_number)
        if _is_deep(values):
            raise _unfit(what, where, f"values that lie more than {DEEPEST} deep in each other")
        json.dumps(values, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise _unfit(what, where, f"{type(error).__name__}: {str(error)[:200]}") from None
    return values


def _is_deep(values: Any) -> bool:
    level = [values]
    for _ in range(DEEPEST):
        nested = [own for own in level if isinstance(own, dict | list)]
        level = [v for own in nested for v in (own.values() if isinstance(own, dict) else own)]
        if not level:
            return False
    return True


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = Counter(name for name, _ in pairs)
        twice = names.most_common(1)[0][0]
        raise ValueError(f"the name {twice[:50]!r} stands twice in one object")
    return values


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is no number of JSON")


def _unfit(what: str, where: str, got: str) -> RunError:
    return RunError(
        what,
        where=where,
        got=got,
        expected="JSON as lpact writes it",
        remedy="restore the file from a copy, or get the run again from whoever made it",
    )


def _too_large(where: str, got: str) -> RunError:
    return RunError(
        "the file is larger than lpact reads",
        where=where,
        got=got,
        expected=f"at most {MOST_JSON_BYTES} bytes and {MOST_JSON_VALUES} values: a limit of lpact",
        remedy="nothing need be wrong with the file; if the run is your own, divide the study into smaller ones, and "
        "if it comes from others, ask them how large it should be",
    )
