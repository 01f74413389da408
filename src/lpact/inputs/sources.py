"""Source files must not change while a study runs: a result belongs to the checksums in its key.

The audit notes size, times and inode of every file with its checksum. They are compared before a result is stored, and
once more before a run is published. If they changed, the file is read again: other content is an error, the same
content is not.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lpact.datasets._files.source_folder import sha256
from lpact.datasets.base import SourceFile
from lpact.errors import InputError
from lpact.store import file_state

State = tuple[int, int, int, int]
Owner = tuple[str, str]
"""A dataset and an empty name; or a dataset and the model whose features are extracted for it."""
MISSING: State = (-1, 0, 0, 0)
"""State of a file that does not exist."""


@dataclass(frozen=True)
class Seen:
    """A file when its checksum was taken: ``path`` is its name in tables, ``place`` its path on this machine."""

    path: str
    place: str
    sha256: str
    state: State


class SourceWatch:
    """Files of datasets and of extracted features, by owner. Every process has one."""

    def __init__(self, seen: Mapping[Owner, Iterable[Seen]] | None = None) -> None:
        self.seen: dict[Owner, tuple[Seen, ...]] = {o: tuple(f) for o, f in (seen or {}).items()}
        self._changed: dict[Owner, InputError] = {}

    def note(self, owner: Owner, files: Iterable[SourceFile], root: Path | None) -> None:
        """Remember the state of files; those that a dataset generates have no place, and are left out."""
        noted = []
        for file in files:
            place = file.place or (root / file.path if root is not None else None)
            if place is not None and place.is_file():
                at = os.path.abspath(place)
                noted.append(Seen(file.path, at, file.sha256, _state(at)))
        self.seen[owner] = tuple(noted)

    def check(self, owners: Collection[Owner] | None = None) -> bool:
        """Whether files were written again with the same content; other content is an `InputError`.

        An owner whose files have changed stays so: what was read from them meanwhile cannot be trusted.
        """
        rewritten = False
        for owner in self.seen if owners is None else owners:
            if owner in self._changed:
                raise self._changed[owner]
            files = self.seen.get(owner, ())
            states = [_state(file.place) for file in files]
            if states == [file.state for file in files]:
                continue
            current = list(zip(files, states, strict=True))
            for file, state in current:
                if state != file.state:
                    found = sha256(Path(file.place)) if state != MISSING else ""
                    if found != file.sha256:
                        self._changed[owner] = changed(owner, file, found)
                        raise self._changed[owner]
            self.seen[owner] = tuple(replace(file, state=state) for file, state in current)
            rewritten = True
        return rewritten

    def compare(self, owner: Owner, found: Mapping[str, str]) -> None:
        """Raise `InputError` if checksums that were taken later, by path, differ."""
        for file in self.seen.get(owner, ()):
            if found.get(file.path, "") != file.sha256:
                raise changed(owner, file, found.get(file.path, ""))


def _state(place: str) -> State:
    try:
        return file_state(Path(place))
    except OSError:
        return MISSING


def changed(owner: Owner, file: Seen, found: str) -> InputError:
    """The error about a file whose content differs from what the audit saw."""
    dataset, model = owner
    whose = f"features of model '{model}' for dataset '{dataset}'" if model else f"dataset '{dataset}'"
    return InputError(
        f"a file of {whose} has changed since the audit",
        where=file.place,
        got=f"SHA-256 {found}" if found else "no readable file",
        expected=f"SHA-256 {file.sha256}",
        remedy="do not change the sources while a study runs, and run it again: results of the old content are not "
        "used",
    )


def keeps_changing(where: str) -> InputError:
    """The error about sources that are rewritten all the time."""
    return InputError(
        "sources keep changing while the study runs",
        where=where,
        got="files whose times changed during every attempt, with the same content in the end",
        expected="files that do not change while a task reads them",
        remedy="stop the process that writes them, and run the study again",
    )
