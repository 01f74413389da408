"""Official downloads: plan first, then run.

OpenNeuro and DataLad have their own programs; plain files are downloaded with pooch.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol
from urllib.parse import urlsplit

from lpact.datasets.base import DATASETS
from lpact.datasets.catalogue import Download, Expected, RemoteFile
from lpact.errors import FetchError
from lpact.store import sha256_file

BATCH = 200
"""Files per call of a program."""
RETRIES = 3

_TAG = re.compile(r"v?[0-9]+(\.[0-9]+)*")
_OPENNEURO_GIT = "https://github.com/OpenNeuroDatasets/{}.git"


class Progress(Protocol):
    """Shows the progress of long work."""

    def stage(self, name: str, total: int) -> None:
        """Begin a stage of ``total`` steps."""

    def advance(self, steps: int = 1) -> None:
        """Count steps of the stage as done."""


@dataclass(frozen=True)
class Command:
    """A program with its arguments; files in the dataset folder that match ``globs`` are appended.

    With globs, the arguments begin with the program, ``-C`` and the folder.
    """

    arguments: tuple[str, ...]
    globs: tuple[str, ...] = ()


@dataclass(frozen=True)
class FetchPlan:
    """The commands and files of a download. ``lacking`` says which program to install first."""

    name: str
    folder: Path
    download: Download
    commands: tuple[Command, ...] = ()
    files: tuple[RemoteFile, ...] = ()
    lacking: str = ""

    @property
    def by_hand(self) -> bool:
        """Whether the download needs a person."""
        return not self.commands and not self.files

    @property
    def n_bytes_left(self) -> int | None:
        """Bytes still to download; None if a size is not published."""
        sizes = [file.n_bytes for file in self.files if not (self.folder / file.path).is_file()]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def run(self, progress: Progress | None = None) -> int:
        """Download, and return the number of new files (0 if another program downloads them)."""
        if self.by_hand or self.lacking:
            raise FetchError(
                "this download cannot run",
                where=f"dataset '{self.name}'",
                got=self.lacking or "data that you must request yourself",
                remedy=self.lacking or f"see {self.download.homepage}",
            )
        for command in self.commands:
            self._call(command)
        if progress is not None and self.files:
            progress.stage("files", len(self.files))
        n_new = 0
        for file in self.files:
            n_new += fetch_file(file, self.folder)
            if progress is not None:
                progress.advance()
        return n_new

    def _call(self, command: Command) -> None:
        """Run a command, in batches of the files that match its globs."""
        if not command.globs:
            _call(command.arguments)
            return
        files, unmatched = _matched(command.globs, self.folder)
        for first in range(0, len(files), BATCH):
            _call((*command.arguments, *files[first : first + BATCH]))
        if unmatched:
            raise FetchError(
                "the dataset has no file for some parts that a study reads",
                where=str(self.folder),
                got=f"{len(files)} files; none matches {', '.join(unmatched)}",
                remedy="install missing subdatasets (datalad get -n); if the layout has changed, see "
                + self.download.homepage,
            )


def plan_fetch(name: str, folder: Path, *, download: Download | None = None) -> FetchPlan:
    """Plan how to download the dataset of the reader ``name`` into ``folder``; nothing runs yet."""
    official = download or DATASETS.get(name, where="lpact datasets fetch").download
    if official is None:
        known = [e.name for e in DATASETS.entries() if e.plugin.download is not None]
        raise FetchError(
            f"the reader '{name}' has no official download",
            where="lpact datasets fetch",
            expected="one of " + ", ".join(known),
            remedy="it reads your own data or simulates data: there is nothing to fetch",
        )
    for file in official.files:
        _target(file, folder)
    planners = {"openneuro": _openneuro, "datalad": _datalad}
    commands: tuple[Command, ...] = ()
    lacking = ""
    if official.method in planners:
        commands, lacking = planners[official.method](official, folder)
    return FetchPlan(name, folder, official, commands, official.files, lacking)


def _openneuro(official: Download, folder: Path) -> tuple[tuple[Command, ...], str]:
    """openneuro-py if it is installed, else DataLad."""
    program = _program("openneuro-py")
    if program is None and _program("datalad") is not None:
        return _datalad_commands(_OPENNEURO_GIT.format(official.identifier), official, folder), ""
    command = (
        program or "openneuro-py",
        "download",
        f"--dataset={official.identifier}",
        *((f"--tag={official.version}",) if _TAG.fullmatch(official.version) else ()),
        f"--target-dir={folder}",
        *(f"--include={pattern}" for pattern in official.include),
    )
    return (Command(command),), "" if program else "pip install openneuro-py"


def _datalad(official: Download, folder: Path) -> tuple[tuple[Command, ...], str]:
    missing = _program("datalad") is None
    lacking = "install DataLad and git-annex: https://handbook.datalad.org" if missing else ""
    return _datalad_commands(official.identifier, official, folder), lacking


def _datalad_commands(source: str, official: Download, folder: Path) -> tuple[Command, ...]:
    """Clone (file names only), check out the version, install subdatasets, and get the content."""
    program = _program("datalad") or "datalad"
    commands = []
    if not (folder / ".datalad").is_dir():
        commands.append(Command((program, "clone", source, str(folder))))
    if _TAG.fullmatch(official.version):
        commands.append(Command(("git", "-C", str(folder), "checkout", official.version)))
    wanted = official.include or ("**/*",)
    folders = tuple(dict.fromkeys(name for glob in wanted if (name := _folder_of(glob))))
    if folders:
        commands.append(Command((program, "-C", str(folder), "get", "-n", "--", *folders)))
    commands.append(Command((program, "-C", str(folder), "get", "--"), wanted))
    return tuple(commands)


def _folder_of(glob: str) -> str:
    """The folder that contains all matches of a glob, empty for the root; a name with a suffix is a file."""
    parts: list[str] = []
    for part in glob.split("/"):
        if any(sign in part for sign in "*?["):
            return "/".join(parts)
        parts.append(part)
    return "/".join(parts[:-1] if PurePosixPath(glob).suffix else parts)


def _program(name: str) -> str | None:
    """A program on the search path, or next to the running Python."""
    if shutil.which(name):
        return name
    neighbour = Path(sys.executable).with_name(name)
    return str(neighbour) if neighbour.is_file() else None


def _matched(globs: Sequence[str], folder: Path) -> tuple[list[str], list[str]]:
    """Files in the folder that match, and globs without a match; hidden files do not count."""
    paths = [p.relative_to(folder) for p in folder.rglob("*") if p.is_symlink() or p.is_file()]
    names = [p.as_posix() for p in paths if not any(part.startswith(".") for part in p.parts)]
    held = {glob: set(filter(Expected("files", (glob,)).holds, names)) for glob in globs}
    return sorted(set().union(*held.values())), [glob for glob, files in held.items() if not files]


def _call(arguments: Sequence[str]) -> None:
    try:
        status = subprocess.run(arguments, check=False).returncode  # noqa: S603
        problem = f"exit status {status}; see its message above"
    except OSError as error:
        status, problem = -1, str(error)
    if status != 0:
        raise FetchError(
            "a program failed",
            where=" ".join(arguments[:6]) + (" …" if len(arguments) > 6 else ""),
            got=problem,
            remedy="fix the problem, and run the same command again",
        )


def fetch_file(file: RemoteFile, folder: Path, *, retries: int = RETRIES) -> bool:
    """Download one file; False if it exists. It gets its name when it is complete and verified."""
    target = _target(file, folder)
    if target.exists():
        if problem := _mismatch(target, file):
            raise FetchError(
                "another file with this name exists",
                where=str(target),
                got=problem,
                remedy="move it, or choose another folder; nothing is overwritten",
            )
        return False
    import pooch
    from requests import RequestException

    pooch.get_logger().setLevel("ERROR")
    registry = {file.path: f"sha256:{file.sha256.lower()}" if file.sha256 else None}
    source = pooch.create(folder, "", registry=registry, urls={file.path: file.url}, retry_if_failed=retries)
    try:
        source.fetch(file.path, downloader=pooch.HTTPDownloader(timeout=60))
    except (OSError, RequestException, ValueError) as error:
        raise FetchError(
            "a file could not be downloaded",
            where=f"{file.url} → {target}",
            got=str(error),
            remedy="try again later, or download it by hand from the dataset's homepage",
        ) from error
    if problem := _mismatch(target, file):
        target.unlink()
        raise FetchError(
            "a downloaded file does not have the published size",
            where=file.url,
            got=problem,
            remedy="it may be another version: see the dataset's homepage",
        )
    return True


def _mismatch(path: Path, file: RemoteFile) -> str:
    """How a file differs from the published one; empty if it does not."""
    if not path.is_file():
        return "a folder"
    if file.n_bytes not in (None, path.stat().st_size):
        return f"{path.stat().st_size:,} bytes instead of {file.n_bytes:,}"
    if file.sha256 and (found := sha256_file(path)) != file.sha256.lower():
        return f"sha256 {found} instead of {file.sha256.lower()}"
    return ""


def _target(file: RemoteFile, folder: Path) -> Path:
    """Where to put a file; raises unless its address is HTTPS and its path stays in the folder."""
    address = urlsplit(file.url)
    local = address.scheme == "http" and address.hostname in ("localhost", "127.0.0.1")
    if not address.hostname or not (address.scheme == "https" or local):
        raise FetchError("a file's address is not HTTPS", where=file.path, got=file.url)
    target = folder / file.path
    inside = target.resolve().is_relative_to(folder.resolve()) and target != folder
    if not inside or "\\" in file.path:
        raise FetchError("a file would be written outside the folder", where=file.url, got=repr(file.path))
    return target
