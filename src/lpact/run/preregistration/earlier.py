"""Whether a study has results already: in runs that are named, and in its own store of results.

Results in a store are named by hashes. So before a run stores results, it leaves a note there about its data and
models. Every result also carries the digest of the registration under which it was made.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lpact.analyses.base import Task, analyses_of
from lpact.config import StudyConfig
from lpact.errors import LPactError, RunError
from lpact.features.models import FEATURE_SETS
from lpact.run.audit import StudyAudit
from lpact.run.measure import Measuring
from lpact.run.preregistration.record import EarlierRun, Item, Registration
from lpact.run.status import read_status
from lpact.store import (
    InputFile,
    Provenance,
    StoredRun,
    TaskStore,
    open_shelf,
    partial_folder,
    storage_errors,
)
from lpact.store.manifest import MANIFEST_NAME

FINISHED, UNFINISHED = "finished", "unfinished"
KEPT, NOTED, UNREADABLE = "kept", "noted", "unreadable note"
"""States of an earlier run: results of the study's own tasks in its store, another run that stores results there, and
a damaged note of such a run."""

MODEL = "model "
"""Prefix of a model's name, or of the parser's, among the input files of a manifest."""
SAME_SHARE = 0.5
"""Two datasets are the same data if they share this part of the smaller one's bytes."""
MOST_SHOWN = 3
"""Other registrations that a message names."""

_NOTE = "sources-"
_NOTE_NAME = re.compile(rf"{_NOTE}[0-9a-f]{{40}}\.json")

Pair = tuple[str, str]
"""A dataset and a model; the model is empty in a study without models."""


def pairs_of(config: Mapping[str, Any]) -> list[Pair]:
    """Datasets and models of a configuration that results can be about."""
    models = [own["name"] for own in config.get("models", ())]
    return list(product([own["name"] for own in config["datasets"]], models or [""]))


def study_tasks(config: StudyConfig, audit: StudyAudit) -> list[Task]:
    """Every task of a study that reads a source; nothing is computed."""
    return [
        task
        for analysis in analyses_of(config).values()
        for stage in Measuring(config, audit, analysis).stages
        for task in stage.tasks
        if _reads(task)
    ]


def _reads(task: Task) -> bool:
    scope = getattr(task.job, "scope", None)
    return scope is None or scope.dataset is not None


def look_for_results(
    folder: Path, inputs: Iterable[InputFile], pairs: Iterable[Pair]
) -> list[EarlierRun]:
    """Search the run ``folder``, and what an interrupted run left beside it.

    ``inputs`` are the files of the study that is to be registered, ``pairs`` its datasets and models. Datasets and
    models are compared by checksums, whatever their names; a model without files by its name.
    """
    partial = folder if folder.name.endswith(".partial") else partial_folder(folder)
    found = []
    if (folder / MANIFEST_NAME).is_file():
        manifest = StoredRun(folder).manifest
        same = same_pairs(inputs, pairs, manifest.inputs, pairs_of(manifest.config))
        about: dict[str, Any] = {"study": manifest.study, "config_digest": manifest.config_digest}
        found.append(EarlierRun(state=FINISHED, same=same, **about))
    if partial.is_dir():
        with storage_errors(partial, "the folder of an interrupted run cannot be read"):
            results = (partial / "tasks").rglob("*")
            n = sum(path.is_file() and path.suffix != ".tmp" for path in results)
        about = {}
        if (status := read_status(partial)) is not None:
            about = {"study": status.study, "config_digest": status.config_digest}
            n = max(n, status.n_results)  # results may be in a store elsewhere
        found.append(EarlierRun(state=UNFINISHED, n_finished_tasks=n, **about))
    if not found:
        raise RunError(
            "there is no run to search for results",
            where=str(folder),
            got="a folder without a manifest" if folder.is_dir() else "no such folder",
            expected="a finished run, or the folder of an interrupted one",
            remedy="check the path, or leave --run out",
        )
    return found


def same_pairs(
    inputs: Iterable[InputFile],
    pairs: Iterable[Pair],
    their_inputs: Iterable[InputFile],
    their_pairs: Iterable[Pair],
) -> tuple[str, ...]:
    """Those of a study's datasets and models that another run has too, as ``dataset/model``."""
    own, theirs, others = _by_source(inputs), _by_source(their_inputs), list(their_pairs)

    def same_model(name: str, other: str) -> bool:
        mine, others = own.get(MODEL + name), theirs.get(MODEL + other)
        return _same_files(mine, others) if mine and others else name == other

    same = {
        "/".join(filter(None, (dataset, model)))
        for dataset, model in pairs
        for other, other_model in others
        if _same_files(own.get(dataset, {}), theirs.get(other, {}))
        and same_model(model, other_model)
    }
    return tuple(sorted(same))


def _by_source(inputs: Iterable[InputFile]) -> dict[str, dict[str, int]]:
    """Bytes of files by checksum, of every dataset and model; extracted features are left out."""
    sources: dict[str, dict[str, int]] = {}
    for file in inputs:
        if not (file.dataset.startswith(MODEL) and file.path.startswith(FEATURE_SETS)):
            sources.setdefault(file.dataset, {})[file.sha256] = file.n_bytes
    return sources


def _same_files(own: Mapping[str, int], other: Mapping[str, int]) -> bool:
    smaller = min(sum(own.values()), sum(other.values()))
    shared = sum(n_bytes for sha256, n_bytes in own.items() if sha256 in other)
    return shared > 0 and shared >= SAME_SHARE * smaller


def look_into_store(
    place: str, config: StudyConfig, audit: StudyAudit, made_from: Provenance
) -> list[EarlierRun]:
    """Search the study's own store of results, ``[run] tasks``; no result is read.

    Results of the study's own tasks come first, then runs that store results of the same data and models there, with
    any options. An unreadable note is recorded by its name and does not stop the registration.
    """
    store = TaskStore(open_shelf(place))
    keys = {task.key for task in study_tasks(config, audit)}
    found = [EarlierRun(state=KEPT, n_finished_tasks=sum(map(store.has, keys)))]
    for name in filter(_NOTE_NAME.fullmatch, store.shelf.names(_NOTE)):
        note = _read_note(store, name)
        if note is None:
            found.append(EarlierRun(state=UNREADABLE, study=name))
        elif any(map(store.has, note.first)):
            same = same_pairs(made_from.inputs, pairs_of(made_from.config), note.inputs, note.pairs)
            about: dict[str, Any] = {"study": note.study, "config_digest": note.config_digest}
            run = EarlierRun(state=NOTED, same=same, **about)
            if same and run not in found:
                found.append(run)
    return found


def refuse_results(found: Iterable[EarlierRun]) -> None:
    """Raise `RunError` if there are results of what is to be registered."""
    for earlier in (own for own in found if own.has_results):
        n_tasks, same = earlier.n_finished_tasks, ", ".join(earlier.same)
        got = {
            KEPT: f"results of {n_tasks:,} task(s) of this very study",
            NOTED: f"results of {same}, stored there by a run of the study '{earlier.study}'",
            FINISHED: f"a finished run of the study '{earlier.study}' with results of {same}",
            UNFINISHED: f"an unfinished run with {n_tasks:,} finished task(s)",
        }[earlier.state]
        raise RunError(
            "results exist already, so this would not be a registration before the fact",
            where="option 'run.tasks'" if earlier.state in (KEPT, NOTED) else "option --run",
            got=got,
            expected="no results of the same datasets and models",
            remedy="register other data or models, or add --after-the-fact, which every later statement repeats",
        )


class Note(Item):
    """A run that stores its results.

    ``pairs`` are its datasets and models, ``first`` the keys of the tasks that need no other.
    """

    study: str
    config_digest: str
    inputs: tuple[InputFile, ...]
    pairs: tuple[Pair, ...]
    first: tuple[str, ...]


def leave_note(
    store: TaskStore, config: StudyConfig, audit: StudyAudit, made_from: Provenance
) -> None:
    """Note a run that is about to store results; the same run leaves the same note."""
    note = Note(
        study=made_from.study,
        config_digest=made_from.config_digest,
        inputs=tuple(sorted(made_from.inputs, key=lambda file: (file.dataset, file.path))),
        pairs=tuple(sorted(pairs_of(made_from.config))),
        first=tuple(t.key for t in study_tasks(config, audit) if not t.job.needs),
    )
    text = json.dumps(note.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
    name = _note_name(text.encode())
    if _read_note(store, name) is None:
        store.shelf.write(name, text.encode())


def _read_note(store: TaskStore, name: str) -> Note | None:
    """A note as a run left it; None if there is none, or it is damaged."""
    try:
        with storage_errors(Path(store.shelf.where(name)), "a note beside results cannot be read"):
            content = store.shelf.read(name, 0, store.shelf.size(name) or 0)
        return Note.model_validate_json(content) if _note_name(content) == name else None
    except (LPactError, ValidationError):
        return None


def _note_name(content: bytes) -> str:
    return f"{_NOTE}{hashlib.sha256(content).hexdigest()[:40]}.json"


@dataclass(frozen=True)
class Reused:
    """Results of a run that were not made under its registration, and under which they were."""

    n_results: int
    why: str


def reused_results(
    store: TaskStore, tasks: Iterable[Task], registration: Registration
) -> Reused | None:
    """Results that do not carry the registration's digest; None if all do.

    A run with a registration marks every result that it makes, so clocks play no part.
    """
    keys = dict.fromkeys(task.key for task in tasks if _reads(task))
    marks = Counter(store.mark_of(key) for key in keys)
    marks.pop(registration.found_digest, None)
    if not marks:
        return None
    n_results, without = marks.total(), marks.pop("", 0)
    parts = [f"{without:,} under none"] if without else []
    others = [f"{n:,} under registration {mark[:12]}" for mark, n in sorted(marks.items())]
    parts += others[:MOST_SHOWN]
    if len(others) > MOST_SHOWN:
        parts.append(f"others under {len(others) - MOST_SHOWN} further registration(s)")
    return Reused(n_results, f"reused from an earlier run: {', '.join(parts)}")
