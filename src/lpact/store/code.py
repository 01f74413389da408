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
    "reasons.py",
    "config",
    "registry.py",
    "tables",
    "store",
    "datasets",
    "preprocess",
    "grid",
    "features",
    "controls",
    "levels",
    "math",
    "run/brain_sources.py",
    "run/grid_cache.py",
    "run/jobs.py",
    "run/workspace.py",
)
"""What a task of levels 1 to 4 can depend on: the layers below, by the rule that layers import downwards only."""

JUDGING = (
    *MEASURING,
    "decide",
    "assays",
    "run/assay.py",
    "run/assay_jobs.py",
    "run/inspect.py",
    "run/measure.py",
)
"""What a positive control can depend on: it may measure and judge studies of its own."""


@cache
def code_digest(parts: tuple[str, ...] = ()) -> str:
    """SHA-256 of lpact's source files, or of those under some folders and files of the package."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(set(_files(package, parts))):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _files(package: Path, parts: tuple[str, ...]) -> Iterable[Path]:
    if not parts:
        yield from package.rglob("*.py")
    for part in parts:
        place = package / part
        if place.suffix == ".py":
            yield place
        else:
            yield from place.rglob("*.py")
            yield from place.rglob("*.tsv")  # lists that features and simulations are made from
