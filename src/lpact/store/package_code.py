"""Digests of the source files of other packages, whose plugins a study uses.

A plugin that is being written keeps its version number, so that its files must say what it is.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import inspect
import sys
import uuid
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from lpact.store._disk import sha256_file, storage_errors

OWN = "lpact"
_SCRIPTS = ("__main__", "__mp_main__")
"""Names of a script's module, in the process that was started and in its workers."""


def package_digest(plugin: type) -> str:
    """SHA-256 of the code of a class of another package; it is that of the first call in this process.

    All files of its top-level package count, data and compiled modules among them. For a single module, or a script, it
    is that file. Modules and packages that lie beside it and are imported there count, too, unless they belong to
    another distribution. A class of an interactive session is known by its own text; where there is none, by nothing
    that another process has, so that no result of it is ever taken for that of another.
    """
    module = sys.modules.get(plugin.__module__.partition(".")[0])
    if module is None or not (_folders(module) or _file(module)):
        return _by_text(plugin)
    return _of_files(module)


def is_own(plugin: type) -> bool:
    """Whether a class is part of lpact, whose code is known anyway (`lpact.store.code`)."""
    return plugin.__module__.partition(".")[0] == OWN


@cache
def _of_files(module: ModuleType) -> str:
    lines = sorted(f"{name}\n{sha256_file(path)}\n" for name, path in _files(module))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@cache
def _by_text(plugin: type) -> str:
    try:
        text = inspect.getsource(plugin)
    except (OSError, TypeError):
        text = uuid.uuid4().hex
    return hashlib.sha256(text.encode()).hexdigest()


def _files(module: ModuleType) -> Iterator[tuple[str, Path]]:
    """Files of a top-level module and of its neighbours, with their names from the folder in which they all lie."""
    foreign = _foreign(module.__name__)
    waiting = [*_folders(module)] or [path for path in [_file(module)] if path is not None]
    seen: set[Path] = set()
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        own = list(_under(place))
        yield from own
        for name in {name for _, path in own for name in _imports(path)}:
            if name != OWN and name not in foreign:
                waiting += _neighbours(place.parent, name)


def _folders(module: ModuleType) -> list[Path]:
    """Where a package lies; one without an ``__init__`` may lie in several folders."""
    return [Path(folder).resolve() for folder in getattr(module, "__path__", ())]


def _file(module: ModuleType) -> Path | None:
    """Where a single module or a script lies."""
    name = getattr(module, "__file__", None)
    path = Path(name).resolve() if name else None
    return path if path is not None and path.is_file() else None


def _under(place: Path) -> Iterator[tuple[str, Path]]:
    """A file, or all files of a folder; not what Python, editors and other tools keep there for themselves."""
    with storage_errors(place, "the code of a plugin cannot be read"):
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            name = path.relative_to(place.parent)
            hidden = any(part.startswith(".") or part == "__pycache__" for part in name.parts[1:])
            if not hidden and path.is_file():
                yield name.as_posix(), path


def _neighbours(folder: Path, name: str) -> Iterator[Path]:
    """The module or package of a name, if it lies in a folder."""
    for place in (folder / name, folder / f"{name}.py"):
        if place.is_file() if place.suffix else (place / "__init__.py").is_file():
            yield place


def _imports(path: Path) -> Iterable[str]:
    """Top-level names that a file imports anywhere in it."""
    if path.suffix != ".py":
        return
    with storage_errors(path, "the code of a plugin cannot be read"):
        content = path.read_bytes()
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # a template, or a file for another version of Python
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _foreign(name: str) -> set[str]:
    """Top-level names of installed distributions, but for those that a module's own distribution has."""
    if name in _SCRIPTS:
        return set(_distributions())
    own = set(_distributions().get(name, ()))
    return {other for other, names in _distributions().items() if own.isdisjoint(names)}


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())
