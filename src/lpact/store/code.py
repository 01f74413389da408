"""Digests of lpact's own source files: what a version number does not say while code is being changed."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

SHARED = (
    "errors.py",
    "validation.py",
    "codes.py",
    "registry.py",
    "config",
    "tables.py",
    "store",
    "extras.py",
    "estimators",
    "math",
    "splits.py",
    "stats",
    "measures",
    "ceilings.py",
    "responses",
    "datasets",
    "preprocess",
    "grid",
    "features",
    "controls",
    "inputs",
    "analyses/__init__.py",
    "analyses/base.py",
    "analyses/explanation.py",
)
"""What every task may run: the layers below analyses, by the rule that layers import downwards only."""


@cache
def code_digest(parts: tuple[str, ...] = ()) -> str:
    """SHA-256 of lpact's source files, or of those under some folders and files of the package.

    Data files that lpact ships count, too. It is that of the first call in this process.
    """
    digest = hashlib.sha256()
    for name, content in source_digests().items():
        if not parts or any(name == part or name.startswith(f"{part}/") for part in parts):
            digest.update(name.encode())
            digest.update(content)
    return digest.hexdigest()[:16]


@cache
def source_digests() -> dict[str, bytes]:
    """SHA-256 of every file of the package by its path, as found at the first call in this process."""
    package = Path(__file__).parents[1]
    files = sorted(
        path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    return {
        path.relative_to(package).as_posix(): hashlib.sha256(path.read_bytes()).digest()
        for path in files
    }
