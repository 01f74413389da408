"""Notes in a place for results: from which data, and with which models, runs have kept results there.

Results are named by hashes that cannot be traced back. So a run leaves a note beside them before it makes any, and
whoever registers a study can see that results of its data are there, whichever options they were made with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from lpact.config import StudyConfig
from lpact.errors import RunError
from lpact.run.inspect import StudyAudit
from lpact.run.measure import brain_jobs
from lpact.run.preregistration.content import Item
from lpact.run.tasks import Keys
from lpact.store import InputFile, Provenance, Shelf, TaskStore, storage_errors

START = "sources-"
"""How the names of notes begin; those of results are digits."""


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
    if shelf.size(name) != len(content) or shelf.read(name, 0, len(content)) != content:
        shelf.write(name, content)


def notes_with_results(store: TaskStore) -> Iterator[Note]:
    """Notes of runs that have kept results; one that is not whole is a `RunError`."""
    for name in store.shelf.names(START):
        note = _read(store.shelf, name)
        if any(store.has(key) for key in note.first):
            yield note


def _read(shelf: Shelf, name: str) -> Note:
    where = shelf.where(name)
    with storage_errors(Path(where), "a note beside results cannot be read"):
        content = shelf.read(name, 0, shelf.size(name) or 0)
    try:
        if _name_of(content) != name:
            raise ValueError("its content does not have the checksum in its name")
        return Note.model_validate_json(content)
    except (ValidationError, ValueError) as error:
        raise RunError(
            "a note of which data results were made from is damaged",
            where=where,
            got=str(error).partition("\n")[0],
            expected="the file as a run left it",
            remedy="restore it, or give the study another place for results (option 'run.tasks')",
        ) from None


def _name_of(content: bytes) -> str:
    return f"{START}{hashlib.sha256(content).hexdigest()[:40]}.json"
