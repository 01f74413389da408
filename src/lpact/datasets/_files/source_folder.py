"""The folder of a dataset: finds its files, and refuses paths and links that lead out of it."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from lpact.datasets._files.strict import ErrorType
from lpact.datasets.base import SourceFile
from lpact.errors import InputError, did_you_mean
from lpact.store import file_state, sha256_file

ANNEX = ".git/annex/objects"


class SourceFolder:
    """A dataset's folder; ``name`` is the dataset in the study, ``expected`` what the folder should contain."""

    def __init__(self, root: Path | None, *, name: str, expected: str) -> None:
        self.name = name
        if root is None or not root.is_dir():
            raise InputError(
                "the dataset's folder is not given" if root is None else "the folder does not exist",
                where=f"dataset '{name}'",
                got="no path" if root is None else str(root),
                expected=expected,
                remedy=f'set it in the study file: [run.paths] {name} = "…"',
            )
        self.root = root.resolve()

    def file(self, relative: str, error: ErrorType = InputError) -> Path:
        """Return a file; raises if it is missing."""
        path = self.optional(relative, error)
        if path is not None:
            return path
        parent = self.root / relative
        while not os.path.isdir(parent):
            parent = parent.parent
        here = sorted(entry.name for entry in parent.iterdir())
        listed = ", ".join(here[:8]) + (" …" if len(here) > 8 else "")
        raise error(
            f"'{relative}' is missing",
            where=str(self.root / relative),
            got=f"in {parent}: {listed or 'nothing'}",
            expected=f"the file '{relative}'",
            remedy=f"download it; here, {did_you_mean(Path(relative).name, here)}",
        )

    def optional(self, relative: str, error: ErrorType = InputError) -> Path | None:
        """Return a file if it exists; a path that leads out is refused either way."""
        self._check_name(relative, error)
        path = self.root / relative
        target = self._target(path, error)
        # Unlike Path's methods, these return False for a name that is too long.
        if not os.path.exists(target) and not os.path.islink(path):
            return None
        return self._existing(path, error)

    def glob(self, pattern: str, error: ErrorType = InputError) -> list[Path]:
        """Return the files that match a glob, sorted; hidden files are ignored."""
        self._check_name(pattern, error)
        return [
            self._existing(path, error)
            for path in sorted(
                self.root / name
                for name in glob.glob(pattern, root_dir=self.root, recursive=True)  # follows links
            )
        ]

    def _check_name(self, relative: str, error: ErrorType) -> None:
        lexical = Path(os.path.normpath(self.root / relative))
        if "\0" in relative or not lexical.is_relative_to(self.root):
            raise error(
                "a path leads out of the dataset's folder",
                where=f"{self.root}, path {relative!r}",
                got=repr(relative),
                expected="a relative path of a file inside the folder",
                remedy="copy the file into the folder",
            )

    def _target(self, path: Path, error: ErrorType) -> Path:
        """Resolve links; the target must be inside."""
        try:
            target = path.resolve()
        except (OSError, RuntimeError):
            target = None
        if target is None or not target.is_relative_to(self.root):
            raise error(
                "a link leads out of the dataset's folder",
                where=str(path),
                got=f"a link to {target or 'itself'}",
                expected=f"a file inside {self.root}",
                remedy="copy the file into the folder",
            )
        return target

    def _existing(self, path: Path, error: ErrorType) -> Path:
        target = self._target(path, error)
        if not target.exists():
            annexed = ANNEX in target.as_posix()
            raise error(
                "the content of a file is missing" if annexed else "a link is broken",
                where=str(path),
                got=f"a link to {target}, which does not exist",
                expected="the file itself",
                remedy=f"datalad get '{self.relative(path)}'" if annexed else "fix the link",
            )
        check_regular([path], error)
        return path

    def relative(self, path: Path) -> str:
        """Path relative to the dataset's folder, with slashes."""
        return path.relative_to(self.root).as_posix()

    def where(self, path: Path) -> str:
        """Name a part of the dataset in tables, independent of where the folder is."""
        return f"dataset '{self.name}', {self.relative(path)}"

    def source_files(self, paths: Iterable[Path], licence: str) -> list[SourceFile]:
        """Return files with their checksums, by path, each once."""
        found = {self.relative(path): path for path in paths}
        return [
            SourceFile(relative, path.stat().st_size, sha256(path), licence, path)
            for relative, path in sorted(found.items())
        ]


def check_regular(paths: Iterable[Path], error: ErrorType) -> None:
    """Raise for a pipe, a socket or a device: reading it would wait forever."""
    for path in paths:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise error(
                "a file is a pipe, a socket or a device",
                where=str(path),
                got="a special file",
                expected="a regular file",
                remedy="remove it, or copy the data into a regular file",
            )


def sha256(path: Path) -> str:
    """Checksum of a file; an unchanged file is read once per process."""
    return _sha256(path.resolve(), file_state(path))


@lru_cache(maxsize=4096)
def _sha256(path: Path, _: tuple[int, ...]) -> str:
    return sha256_file(path)
