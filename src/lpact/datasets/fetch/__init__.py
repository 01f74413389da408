"""Official downloads: what would be run, and running it.

Archives have tools of their own, which are called as a user would call them; plain files come by HTTPS. Nothing is
run before it was shown: `plan_fetch` only looks, `FetchPlan.run` does it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from lpact.datasets.base import DATASETS
from lpact.datasets.catalogue import Download, Expected, RemoteFile
from lpact.datasets.fetch.https import ATTEMPTS, PAUSE_S, fetch_file
from lpact.datasets.fetch.places import MARKS, check_space, check_url, on_disk, place_in
from lpact.datasets.fetch.unzip import unpack
from lpact.errors import FetchError

BATCH = 200
"""Files that one call of a tool is given."""

_TAG = re.compile(r"v?[0-9]+(\.[0-9]+)*")
_OPENNEURO_GIT = "https://github.com/OpenNeuroDatasets/{}.git"


class Told(Protocol):
    """What is told while files come."""

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""
        ...

    def advance(self, steps: int = 1) -> None:
        """Some steps of the stage are done."""
        ...


class _Silent:
    def stage(self, name: str, total: int) -> None:
        pass

    def advance(self, steps: int = 1) -> None:
        pass


@dataclass(frozen=True)
class Command:
    """A program with its arguments. ``globs`` are appended as the files of the folder that they match by then.

    With globs the arguments begin with the program, ``-C`` and the folder.
    """

    arguments: tuple[str, ...]
    globs: tuple[str, ...] = ()


@dataclass(frozen=True)
class FetchPlan:
    """What a download takes. ``lacking`` says what must be installed first; empty where nothing must."""

    name: str
    folder: Path
    download: Download
    commands: tuple[Command, ...] = ()
    files: tuple[RemoteFile, ...] = ()
    lacking: str = ""

    @property
    def by_hand(self) -> bool:
        """Whether only a person can get it."""
        return not self.commands and not self.files

    @property
    def n_bytes_left(self) -> int | None:
        """Bytes of files that are still to come; None where a size is not published."""
        left = 0
        for file in self.files:
            if not _is_there(file, self.folder):
                if file.n_bytes is None:
                    return None
                part = self.folder / f"{file.path}.part"
                left += file.n_bytes - (part.stat().st_size if part.is_file() else 0)
        return max(0, left)

    def run(
        self, told: Told | None = None, *, attempts: int = ATTEMPTS, pause_s: float = PAUSE_S
    ) -> int:
        """Download; returns the number of files that came (0 for tools that count for themselves)."""
        if self.by_hand or self.lacking:
            raise FetchError(
                "this download cannot be run",
                where=f"dataset '{self.name}'",
                got=self.lacking or "data that only a person can ask for",
                expected="a tool that is installed" if self.lacking else "the listed steps",
                remedy=self.lacking or f"see {self.download.homepage}",
            )
        for command in self.commands:
            self._call_for_all(command)
        if not self.files:
            return 0
        with on_disk(self.folder):
            check_space(self.folder, self.n_bytes_left or 0)
        told = told or _Silent()
        n_fetched = 0
        for file in self.files:
            n_fetched += _fetch(file, self.folder, told, attempts, pause_s)
        return n_fetched

    def _call_for_all(self, command: Command) -> None:
        """Call a command for all files that its globs match; then tell of globs that match none."""
        if not command.globs:
            _call(command.arguments)
            return
        files, unmatched = _matched(command.globs, self.folder)
        for first in range(0, len(files), BATCH):
            _call((*command.arguments, *files[first : first + BATCH]))
        if unmatched:
            raise FetchError(
                "the dataset has no file of some parts that a study reads"
                if files
                else "the dataset has no file of those that a study reads",
                where=str(self.folder),
                got=f"nothing that fits {', '.join(unmatched)}"
                + (f"; {len(files)} files of other parts were fetched" if files else ""),
                expected="at least one file of every part",
                remedy="a subdataset may not be installed (datalad get -n), or the dataset's layout has changed: "
                f"look at {self.download.homepage}",
            )


def plan_fetch(name: str, folder: Path, *, download: Download | None = None) -> FetchPlan:
    """Say how the dataset of the reader ``name`` is fetched into ``folder``; nothing is run or written.

    Raises
    ------
    FetchError
        If the reader has no official source, or if a file's address or place is not acceptable.
    """
    official = download or DATASETS.get(name, where="lpact datasets fetch").download
    if official is None:
        known = [e.name for e in DATASETS.entries() if e.plugin.download is not None]
        raise FetchError(
            f"the reader '{name}' has no official download",
            where="lpact datasets fetch",
            got=name,
            expected="one of " + (", ".join(known) or "none so far"),
            remedy="it reads data of your own, or made ones: there is nothing to fetch",
        )
    plan = FetchPlan(name, folder, official)
    if official.method == "https":
        for file in official.files:
            check_url(file.url, where=f"dataset '{name}', {file.path}")
            place_in(folder, file.path, where=file.url)
        return FetchPlan(name, folder, official, files=official.files)
    planners = {"openneuro": _openneuro, "datalad": _datalad, "dandi": _dandi}
    if official.method in planners:
        commands, lacking = planners[official.method](official, folder)
        return FetchPlan(name, folder, official, commands=commands, lacking=lacking)
    return plan


def _openneuro(official: Download, folder: Path) -> tuple[tuple[Command, ...], str]:
    """openneuro-py where it is installed, else DataLad, else what to install."""
    tag = (f"--tag={official.version}",) if _TAG.fullmatch(official.version) else ()
    program = _program("openneuro-py")
    if program is None and _program("datalad") is not None:
        return _datalad_commands(_OPENNEURO_GIT.format(official.identifier), official, folder), ""
    command = Command(
        (
            program or "openneuro-py",
            "download",
            f"--dataset={official.identifier}",
            *tag,
            f"--target-dir={folder}",
            *(f"--include={pattern}" for pattern in official.include),
        )
    )
    return (command,), "" if program else "pip install openneuro-py"


def _datalad(official: Download, folder: Path) -> tuple[tuple[Command, ...], str]:
    missing = _program("datalad") is None
    lacking = "install DataLad and git-annex: https://handbook.datalad.org" if missing else ""
    return _datalad_commands(official.identifier, official, folder), lacking


def _datalad_commands(source: str, official: Download, folder: Path) -> tuple[Command, ...]:
    """Clone (names without content), move to the version, and get the content of the parts that a study reads.

    Parts may lie in subdatasets, which a clone leaves empty: these are installed first, without content.
    """
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
    """The folder with all that a glob matches, empty for the dataset's own; a name with an ending is a file."""
    parts: list[str] = []
    for part in glob.split("/"):
        if any(sign in part for sign in "*?["):
            return "/".join(parts)
        parts.append(part)
    return "/".join(parts[:-1] if PurePosixPath(glob).suffix else parts)


def _dandi(official: Download, folder: Path) -> tuple[tuple[Command, ...], str]:
    program = _program("dandi")
    release = f"DANDI:{official.identifier}" + (f"/{official.version}" if official.version else "")
    command = Command(
        (
            program or "dandi",
            "download",
            f"--output-dir={folder}",
            "--existing=refresh",
            release,
        )
    )
    return (command,), "" if program else "pip install dandi"


def _program(name: str) -> str | None:
    """The program as it can be called: by name, or where the running Python has it."""
    if shutil.which(name):
        return name
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else None


def _matched(globs: Sequence[str], folder: Path) -> tuple[list[str], list[str]]:
    """Files of the folder that the globs match, and globs that match none; names that start with a dot do not count."""
    names = [
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    ]
    here = [
        name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)
    ]
    held = {glob: set(filter(Expected("files to get", (glob,)).holds, here)) for glob in globs}
    return sorted(set().union(*held.values())), [glob for glob, files in held.items() if not files]


def _call(arguments: Sequence[str]) -> None:
    try:
        status = subprocess.run(arguments, check=False).returncode  # noqa: S603
    except OSError as error:
        raise FetchError(
            "a program cannot be started",
            where=arguments[0],
            got=str(error),
            expected="a program that is installed",
            remedy="install it",
        ) from error
    if status != 0:
        raise FetchError(
            "a program did not come to its end",
            where=" ".join(arguments[:6]) + (" …" if len(arguments) > 6 else ""),
            got=f"exit status {status}; its own message is above",
            expected="exit status 0",
            remedy="fix what it says, and run the same command again",
        )


def _fetch(file: RemoteFile, folder: Path, told: Told, attempts: int, pause_s: float) -> bool:
    """One file, unpacked where it is an archive; False where it was there."""
    if file.unpack and _mark(file, folder).is_file():
        return False
    told.stage(file.path, file.n_bytes or 0)
    came = fetch_file(file, folder, advance=told.advance, attempts=attempts, pause_s=pause_s)
    if not file.unpack:
        return came
    archive = place_in(folder, file.path, where=file.url)
    n_files = unpack(archive, archive.parent)
    mark = _mark(file, folder)
    known = {"url": file.url, "sha256": file.sha256, "files": n_files}
    with on_disk(mark):
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(json.dumps(known) + "\n")
        archive.unlink()
    return True


def _mark(file: RemoteFile, folder: Path) -> Path:
    return folder / MARKS / f"{file.path.replace('/', '__')}.json"


def _is_there(file: RemoteFile, folder: Path) -> bool:
    """Whether a file is there by name, or was unpacked."""
    if file.unpack and _mark(file, folder).is_file():
        return True
    return (folder / file.path).is_file()
