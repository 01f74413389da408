"""Digests of the code of other packages, whose plugins a study uses.

A plugin that is being written keeps its version number, so that its files must say what it is.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.metadata
import inspect
import json
import os
import sys
import uuid
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from lpact.store.disk import sha256_file, storage_errors
from lpact.store.manifest import MANIFEST_NAME

OWN = "lpact"
_SCRIPTS = ("__main__", "__mp_main__")
"""Names of a script's module, in the process that was started and in its workers."""
_CODE = tuple(importlib.machinery.all_suffixes())
"""How names of files end that Python can import, compiled ones among them."""
_CACHE = "__pycache__"
_NEVER_CODE = (_CACHE, "node_modules")
_ENVIRONMENT = "pyvenv.cfg"
"""The file by which a virtual environment is known."""


def package_digest(plugin: type) -> str:
    """SHA-256 of the code of a class of another package; it is that of the first call in this process.

    All code of its top-level package counts, compiled modules included, and all data there that its distribution has
    installed. Other files do not: a package may keep caches, logs and even runs in its own folder. For a single module,
    or a script, it is that file. Modules and packages that lie beside it and are imported there count, too. What other
    distributions have installed does not, be it in the same package without an ``__init__``.

    A class of an interactive session is known by its own text; where there is none, by nothing that another process
    has, so that no result of it is ever taken for that of another.
    """
    module = sys.modules.get(plugin.__module__.partition(".")[0])
    if module is None or not (_folders(module) or _file(module)):
        return _by_text(plugin)
    return _of_files(module, _owners(module, sys.modules.get(plugin.__module__)))


def is_own(plugin: type) -> bool:
    """Whether a class is part of lpact, whose code is known anyway (`lpact.store.code`)."""
    return plugin.__module__.partition(".")[0] == OWN


@cache
def _of_files(module: ModuleType, owners: frozenset[str]) -> str:
    lines = sorted(f"{name}\n{sha256_file(path)}\n" for name, path in _files(module, owners))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@cache
def _by_text(plugin: type) -> str:
    try:
        text = inspect.getsource(plugin)
    except (OSError, TypeError):
        text = uuid.uuid4().hex
    return hashlib.sha256(text.encode()).hexdigest()


def _files(module: ModuleType, owners: frozenset[str]) -> Iterator[tuple[str, Path]]:
    """Files of a top-level module and of its neighbours, with their names from the folder in which they all lie."""
    waiting = [*_folders(module)] or [path for path in [_file(module)] if path is not None]
    seen: set[Path] = set()
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        own = list(_under(place, owners))
        yield from own
        for name in {name for _, path in own for name in _imports(path)}:
            if name != OWN:
                waiting += _neighbours(place.parent, name, owners)


def _folders(module: ModuleType) -> list[Path]:
    """Where a package lies; one without an ``__init__`` may lie in several folders."""
    return [Path(folder).resolve() for folder in getattr(module, "__path__", ())]


def _file(module: ModuleType) -> Path | None:
    """Where a single module or a script lies."""
    name = getattr(module, "__file__", None)
    path = Path(name).resolve() if name else None
    return path if path is not None and path.is_file() else None


def _under(place: Path, owners: frozenset[str]) -> Iterator[tuple[str, Path]]:
    """A file; or the code in a folder with the data that its owners have installed there, and nothing of others."""
    with storage_errors(place, "the code of a plugin cannot be read"):
        if place.is_file():
            yield place.name, place
            return
        mine = _all_listed(owners)
        others = _all_listed(set(_distributions().get(place.name, ())) - owners) - mine
        data = {path for path in mine if path.is_relative_to(place) and _CACHE not in path.parts}
        for path in sorted({*_code(place)} - others | data):
            if path.is_file():
                yield path.relative_to(place.parent).as_posix(), path


def _code(folder: Path) -> Iterator[Path]:
    """Code in a folder and in those below it; not in what tools, and runs, keep there for themselves."""
    for root, folders, files in os.walk(folder, onerror=_stop):
        folders[:] = sorted(name for name in folders if _may_hold_code(Path(root, name)))
        for name in sorted(files):
            if name.endswith(_CODE) and not name.startswith("."):
                yield Path(root, name)


def _stop(error: OSError) -> None:
    raise error


def _may_hold_code(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _NEVER_CODE:
        return False
    return not (folder / _ENVIRONMENT).is_file() and not _is_run(folder)


def _is_run(folder: Path) -> bool:
    """Whether a folder is a run of lpact, by its manifest."""
    try:
        values = json.loads((folder / MANIFEST_NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(values, dict) and "lpact_version" in values


def _neighbours(folder: Path, name: str, owners: frozenset[str]) -> Iterator[Path]:
    """The module or package of a name, if it lies in a folder and is not another distribution's.

    A package needs no ``__init__``; then it can be of several distributions, and files tell which.
    """
    package = folder / name
    with storage_errors(package, "the code of a plugin cannot be read"):
        found = [path for end in _CODE if (path := folder / f"{name}{end}").is_file()]
        if any((package / f"__init__{end}").is_file() for end in _CODE):
            found.append(package)
        if found:
            having = _distributions().get(name, ())
            yield from found if not having or not owners.isdisjoint(having) else ()
        elif package.is_dir() and _may_hold_code(package) and any(_code(package)):
            yield package


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


def _owners(module: ModuleType, part: ModuleType | None) -> frozenset[str]:
    """Distributions that a top-level module is of; where it has no ``__init__``, those that a part of it is of."""
    if module.__name__ in _SCRIPTS:
        return frozenset()
    having = frozenset(_distributions().get(module.__name__, ()))
    if getattr(module, "__file__", None):
        return having
    path = _file(part) if part is not None else None
    folders = _folders(module)
    return frozenset(
        name
        for name in having
        if path in _listed(name)
        # It lists none of its code where that is only linked to; then it may be any.
        or not any(file.is_relative_to(folder) for folder in folders for file in _listed(name))
    )


def _all_listed(distributions: Iterable[str]) -> frozenset[Path]:
    return frozenset().union(*map(_listed, distributions))


@cache
def _listed(distribution: str) -> frozenset[Path]:
    """Files that a distribution says it has installed; one that is installed as a link to its source says nothing."""
    try:
        found = importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return frozenset()
    if found.read_text("RECORD") is None:
        return frozenset()
    root = os.path.realpath(str(found.locate_file("")))
    return frozenset(Path(os.path.normpath(os.path.join(root, f))) for f in found.files or ())


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())
