"""Notes in a place for results: from which data, and with which models, runs have kept results there.

Results are named by hashes that cannot be traced back. So a run leaves a note beside them before it makes any, and
whoever registers a study can see that results of its data are there, whichever options they were made with.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from lpact.analyses.base import Keys, Task
from lpact.config import StudyConfig
from lpact.errors import LPactError
from lpact.run.audit import StudyAudit
from lpact.run.executors.base import Ended, Executor
from lpact.run.measure import brain_jobs
from lpact.run.preregistration.content import Item
from lpact.store import InputFile, Provenance, Shelf, TaskStore, storage_errors

START = "sources-"
"""How the names of notes begin; those of results are digits."""
_NAME = re.compile(rf"{START}[0-9a-f]{{40}}\.json")
"""Names of notes; others that begin like them are of files that were never finished, or not lpact's."""


class Note(Item):
    """A run that keeps its results in this place.

    ``pairs`` are the datasets and models that it measures. ``first`` are the keys of the tasks that it begins with: it
    has kept results if it has kept one of these.
    """

    study: str
    config_digest: str
    inputs: tuple[InputFile, ...]
    pairs: tuple[tuple[str, str], ...]
    first: tuple[str, ...]


def leave_note(
    store: TaskStore, config: StudyConfig, audit: StudyAudit, made_from: Provenance
) -> None:
    """Note a run that is about to keep results; the same run leaves the same note."""
    note = Note(
        study=made_from.study,
        config_digest=made_from.config_digest,
        inputs=tuple(sorted(made_from.inputs, key=lambda file: (file.dataset, file.path))),
        pairs=tuple(
            sorted({(name, c.model) for name, own in audit.datasets.items() for c in own.contexts})
        ),
        first=tuple(task.key for task in Keys(config, audit).tasks(brain_jobs(audit))),
    )
    text = json.dumps(note.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
    content = text.encode()
    shelf, name = store.shelf, _name_of(content)
    with storage_errors(Path(shelf.where(name)), "a note beside results cannot be read"):
        there = shelf.size(name) == len(content) and shelf.read(name, 0, len(content)) == content
    if not there:
        shelf.write(name, content)


class NotedFirst:
    """An executor that runs no task before a note is left.

    A place that cannot be written to is an error only then: a run that finds all its results there writes none.
    """

    def __init__(self, executor: Executor, leave: Callable[[], None]) -> None:
        self._executor = executor
        self._leave = leave
        try:
            leave()
            self._left = True
        except LPactError:
            self._left = False

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        return self._executor.workers

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Leave the note, if that could not be done yet and there is a task, and run the tasks."""
        if not self._left:
            tasks = iter(tasks)
            first = next(tasks, None)
            if first is None:
                return
            self._leave()
            self._left = True
            tasks = chain([first], tasks)
        yield from self._executor.run(tasks)


def notes_with_results(store: TaskStore) -> Iterator[Note | str]:
    """Notes of runs that have kept results; of one that cannot be read, its name: nobody can say whose it is."""
    for name in filter(_NAME.fullmatch, store.shelf.names(START)):
        note = _read(store.shelf, name)
        if note is None:
            yield name
        elif any(store.has(key) for key in note.first):
            yield note


def _read(shelf: Shelf, name: str) -> Note | None:
    """A note as a run left it, or None."""
    try:
        with storage_errors(Path(shelf.where(name)), "a note beside results cannot be read"):
            content = shelf.read(name, 0, shelf.size(name) or 0)
        return Note.model_validate_json(content) if _name_of(content) == name else None
    except (LPactError, ValidationError):
        return None


def _name_of(content: bytes) -> str:
    return f"{START}{hashlib.sha256(content).hexdigest()[:40]}.json"
