"""Files that a study is read from must not change while it runs: a result belongs to the checksums in its key.

The audit notes size, times and inode of every file beside its checksum. They are compared before a result is kept, and
once more before a run is published. Where they moved, the file is read again: another content is an error, the same
content is none.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lpact.datasets._files.source_folder import sha256
from lpact.datasets.base import SourceFile
from lpact.errors import InputError

State = tuple[int, int, int, int]
Owner = tuple[str, str]
"""A dataset and an empty name; or a dataset and the model whose features are extracted for it."""


@dataclass(frozen=True)
class Seen:
    """A file as it was when its checksum was taken: ``path`` names it in tables, ``place`` on this machine."""

    path: str
    place: str
    sha256: str
    state: State


class SourceWatch:
    """Files of datasets and of extracted features, by owner. Every process has its own."""

    def __init__(self, seen: Mapping[Owner, Iterable[Seen]] | None = None) -> None:
        self.seen: dict[Owner, tuple[Seen, ...]] = {o: tuple(f) for o, f in (seen or {}).items()}
        self._changed: dict[Owner, InputError] = {}

    def note(self, owner: Owner, files: Iterable[SourceFile], root: Path | None) -> None:
        """Remember files as they are; those that a dataset generates have no place, and are left out."""
        noted = []
        for file in files:
            place = file.place or (root / file.path if root is not None else None)
            if place is not None and place.is_file():
                at = os.path.abspath(place)
                noted.append(Seen(file.path, at, file.sha256, _state(at)))
        self.seen[owner] = tuple(noted)

    def take(self, seen: Mapping[Owner, tuple[Seen, ...]]) -> None:
        """Hold files against what an audit has seen, in place of what they are now."""
        self.seen |= seen

    def check(self, owners: Collection[Owner] | None = None) -> bool:
        """Whether files were written again since they were looked at; one with another content is an `InputError`.

        An owner whose files have changed stays so: what was read of them meanwhile may be anything.
        """
        moved = False
        for owner in self.seen if owners is None else owners:
            if owner in self._changed:
                raise self._changed[owner]
            if any(_state(file.place) != file.state for file in self.seen.get(owner, ())):
                try:
                    self.seen[owner] = tuple(_again(owner, file) for file in self.seen[owner])
                except InputError as error:
                    self._changed[owner] = error
                    raise
                moved = True
        return moved

    def compare(self, owner: Owner, found: Mapping[str, str]) -> None:
        """Raise `InputError` where checksums that were taken later, by path, are others."""
        for file in self.seen.get(owner, ()):
            if found.get(file.path, "") != file.sha256:
                raise changed(owner, file, found.get(file.path, ""))


def _again(owner: Owner, file: Seen) -> Seen:
    """A file that is looked at again, if it has the content that it had."""
    state = _state(file.place)
    if state == file.state:
        return file
    found = sha256(Path(file.place)) if state != GONE else ""
    if found != file.sha256:
        raise changed(owner, file, found)
    return replace(file, state=state)


GONE: State = (-1, 0, 0, 0)
"""State of a file that is not there."""


def _state(place: str) -> State:
    try:
        found = os.stat(place)
    except OSError:
        return GONE
    # A copy can keep the time of its content (mtime); the time of the file itself (ctime) always moves.
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def changed(owner: Owner, file: Seen, found: str) -> InputError:
    """The error about a file whose content is another than the audit saw."""
    dataset, model = owner
    whose = (
        f"features of model '{model}' for dataset '{dataset}'" if model else f"dataset '{dataset}'"
    )
    return InputError(
        f"a file of {whose} is not as the audit saw it",
        where=file.place,
        got=f"SHA-256 {found}" if found else "no file that can be read",
        expected=f"SHA-256 {file.sha256}",
        remedy="leave the sources alone while a study runs, and run it again: the audit then sees what is there now, "
        "and results of the old content are not taken for it",
    )


def keeps_changing(where: str) -> InputError:
    """The error about sources that are written again and again."""
    return InputError(
        "sources are written again and again while the study runs",
        where=where,
        got="files whose times moved during every attempt, with the same content in the end",
        expected="files that stay as they are while a task reads them",
        remedy="stop what writes them, and run the study again",
    )
