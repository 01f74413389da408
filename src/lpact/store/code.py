"""Digests of source code, lpact's own and that of plug-ins: code that is being changed keeps its version number."""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import inspect
import os
import sys
import uuid
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from lpact.store.disk import sha256_file, storage_errors

OWN = "lpact"
SHARED = (
    "errors.py",
    "validation.py",
    "codes.py",
    "registry.py",
    "config",
    "tables.py",
    "store",
    "extras.py",
    "wording.py",
    "estimators",
    "math",
    "splits.py",
    "stats",
    "measures",
    "ceilings",
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
"""What every task may run: the layers below analyses."""

_CODE = tuple(importlib.machinery.all_suffixes())
"""Endings of files that Python can import, including compiled ones."""
_NEVER_CODE = ("__pycache__", "node_modules")
_INSTALLED = ("site-packages", "dist-packages")
"""Folders in which packages are side by side; versions identify those of other distributions."""


@cache
def code_digest(parts: tuple[str, ...] = ()) -> str:
    """SHA-256 of lpact's files, or of those under some folders and files of the package, at the first call."""
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
    files = sorted(path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(package).as_posix(): hashlib.sha256(path.read_bytes()).digest() for path in files}


def is_own(plugin: type) -> bool:
    """Whether a class is part of lpact."""
    return plugin.__module__.partition(".")[0] == OWN


def package_digest(plugin: type) -> str:
    """SHA-256 of the code of a class of another package, as found at the first call in this process.

    All code of its top-level package counts, compiled modules included. For a single module or a script it is that
    file, with the modules and packages next to it that it imports, unless it is installed. A class of an interactive
    session is identified by its source; without one, by nothing that another process has.
    """
    module = sys.modules.get(plugin.__module__.partition(".")[0])
    if module is None or not _places(module):
        return _by_source(plugin)
    return _by_files(module)


@cache
def _by_files(module: ModuleType) -> str:
    lines = sorted(f"{name}\n{sha256_file(path)}\n" for name, path in _files(_places(module)))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@cache
def _by_source(plugin: type) -> str:
    try:
        text = inspect.getsource(plugin)
    except (OSError, TypeError):
        text = uuid.uuid4().hex
    return hashlib.sha256(text.encode()).hexdigest()


def _places(module: ModuleType) -> list[Path]:
    """Folders of a package (several without an ``__init__``), or the file of a single module or script."""
    if folders := [Path(folder).resolve() for folder in getattr(module, "__path__", ())]:
        return folders
    path = Path(getattr(module, "__file__", None) or "").resolve()
    return [path] if path.is_file() else []


def _files(places: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Code files of modules and packages and of the neighbours that they import, named from the folder around them."""
    waiting, seen = list(places), set[Path]()
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        with storage_errors(place, "the code of a plug-in cannot be read"):
            own = [place] if place.is_file() else list(_code(place))
            yield from ((path.relative_to(place.parent).as_posix(), path) for path in own)
            if place.parent.name not in _INSTALLED:
                for name in {name for path in own for name in _imports(path)} - {OWN}:
                    waiting += _neighbours(place.parent, name)


def _code(folder: Path) -> Iterator[Path]:
    """Code in a folder and below it, except in folders of tools, environments and runs."""
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if _may_hold_code(Path(root, name)))
        for name in sorted(files):
            if name.endswith(_CODE) and not name.startswith("."):
                yield Path(root, name)


def _may_hold_code(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _NEVER_CODE:
        return False
    manifest = folder / "manifest.json"
    is_run = manifest.is_file() and b'"lpact_version"' in manifest.read_bytes()
    return not is_run and not (folder / "pyvenv.cfg").is_file()


def _neighbours(folder: Path, name: str) -> list[Path]:
    """The module or package of a name in a folder; a package needs no ``__init__``."""
    found = [path for end in _CODE if (path := folder / f"{name}{end}").is_file()]
    package = folder / name
    if package.is_dir() and _may_hold_code(package) and any(_code(package)):
        found.append(package)
    return found


def _imports(path: Path) -> set[str]:
    """Top-level names that a file imports anywhere in it."""
    if path.suffix != ".py":
        return set()
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # a template, or a file for another version of Python
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
