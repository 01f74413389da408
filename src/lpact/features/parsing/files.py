"""What a parser is made of, so that a run can tell one version of it from another."""

from __future__ import annotations

import hashlib
import importlib.metadata
from pathlib import Path

from lpact.datasets.base import SourceFile
from lpact.store import sha256_file


def parser_files(parser: str | None) -> list[SourceFile]:
    """Return the pipeline's files (a folder) or its package's list of files (an installed one), and the library.

    A pipeline that is neither is known by its library's version alone.
    """
    if parser is None:
        return []
    kind, _, name = parser.partition(":")
    found = [f for f in (_package(kind), _package(name)) if f is not None]
    folder = Path(name)
    if folder.is_dir():
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            place = path.relative_to(folder).as_posix()
            found.append(SourceFile(place, path.stat().st_size, sha256_file(path), parser))
    return found


def _package(name: str) -> SourceFile | None:
    try:
        package = importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    listed = (package.read_text("RECORD") or "").encode()
    digest = hashlib.sha256(listed).hexdigest()
    return SourceFile(f"package {name} {package.version}", len(listed), digest, name)
