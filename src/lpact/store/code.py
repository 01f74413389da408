"""Digests of lpact's own source files: what a version number does not say while code is being changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

MEASURING = (
    "errors.py",
    "extras.py",
    "estimators",
    "codes.py",
    "config",
    "registry.py",
    "tables",
    "store",
    "datasets",
    "preprocess",
    "grid",
    "features",
    "controls",
    "math",
    "inputs",
    "analyses/base.py",
    "analyses/lpact/levels",
    "analyses/lpact/brain_sources.py",
    "analyses/lpact/jobs.py",
)
"""What a task of levels 1 to 4 can depend on: the layers below, by the rule that layers import downwards only."""

JUDGING = (
    *MEASURING,
    "analyses/lpact/gates",
    "analyses/lpact/assays",
    "analyses/lpact/positive_controls.py",
    "analyses/lpact/stimulus_controls.py",
    "run/features.py",
    "run/audit.py",
    "run/measure.py",
)
"""What a positive control can depend on: it may measure and judge studies of its own."""


@cache
def code_digest(parts: tuple[str, ...] = ()) -> str:
    """SHA-256 of lpact's source files, or of those under some folders and files of the package.

    Lists and other data that lpact brings along count, too. It is that of the first call in this process.
    """
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(set(_files(package, parts))):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def remember_code() -> None:
    """Look at all source files now, before work begins that is to be known by them."""
    for parts in ((), MEASURING, JUDGING):
        code_digest(parts)


def _files(package: Path, parts: tuple[str, ...]) -> Iterable[Path]:
    for place in [package / part for part in parts] or [package]:
        if place.is_file():
            yield place
        for path in place.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
