"""The software that a run is locked with."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections.abc import Iterator
from functools import cache

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"\bextra\s*==\s*['\"]([^'\"]+)['\"]")
_DEVELOPMENT = "dev"


@cache
def distributions() -> dict[str, str]:
    """Versions of lpact and of every installed package that it depends on, directly or not.

    Optional parts of lpact count where they are installed; tools for its development do not, nor do optional parts of
    other packages.
    """
    found: dict[str, str] = {}
    waiting = ["lpact"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            own = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found[name] = own.version
        waiting += _required(own.requires or [], optional=name == "lpact")
    return dict(sorted(found.items()))


def _required(requires: list[str], *, optional: bool) -> Iterator[str]:
    for line in requires:
        name = _NAME.match(line.strip())
        extra = _EXTRA.search(line)
        wanted = extra is None or (optional and extra[1] != _DEVELOPMENT)
        if name is not None and wanted:
            yield re.sub(r"[-_.]+", "-", name[0]).lower()


def system() -> dict[str, str]:
    """Python and the machine, in the words that matter for numbers."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
    }
