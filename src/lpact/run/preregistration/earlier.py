"""Whether a study has results already: in runs that are named, and in its own store of results.

Results in a store are named by hashes, which do not say what they are about. So a run leaves a note there before it
makes any: from which data, and with which models. Every result also carries the digest of the registration under which
it was made.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lpact.analyses.base import Stage, Task, analyses_of
from lpact.config import StudyConfig
from lpact.errors import LPactError, RunError
from lpact.features.models import FEATURE_SETS
from lpact.run.audit import StudyAudit
from lpact.run.collect import Measuring
from lpact.run.executors.base import Ended, Executor
from lpact.run.preregistration.content import EarlierRun, Item
from lpact.run.preregistration.record import Registration
from lpact.run.status import read_status
from lpact.store import InputFile, Provenance, Shelf, StoredRun, TaskStore, storage_errors
from lpact.store.manifest import MANIFEST_NAME
from lpact.store.remote import open_shelf

FINISHED, UNFINISHED = "finished", "unfinished"
KEPT, NOTED, UNREADABLE = "kept", "noted", "unreadable note"
"""States of an earlier run.

`KEPT`: results of the study's own tasks in its store, whichever run made them. `NOTED`: a run that keeps results of
other tasks there. `UNREADABLE`: the damaged note of such a run, named by its file.
"""

MODEL = "model "
"""Prefix of a model's name, or of the parser's, among the input files of a manifest."""

SAME_SHARE = 0.5
"""Share of the smaller dataset's bytes that must be files of the other, for both to count as the same data."""

MOST_SHOWN = 3
"""Other registrations that a message names."""

_START = "sources-"
_NAME = re.compile(rf"{_START}[0-9a-f]{{40}}\.json")
"""Names of notes; other names that start alike are unfinished files, or not lpact's."""

Pair = tuple[str, str]
"""A dataset and a model; the model is empty in a study without models."""


def pairs_of(config: Mapping[str, Any]) -> list[Pair]:
    """Datasets and models of a configuration that results can be about."""
    models = [own["name"] for own in config.get("models", ())]
    return list(product([own["name"] for own in config["datasets"]], models or [""]))


def study_stages(config: StudyConfig, audit: StudyAudit) -> list[Stage]:
    """Stages of all analyses, without tasks that read no source: their results say nothing about the data."""
    stages = [
        stage
        for analysis in analyses_of(config).values()
        for stage in Measuring(config, audit, analysis).stages
    ]
    return [Stage(stage.name, [t for t in stage.tasks if _reads(t)]) for stage in stages]


def _reads(task: Task) -> bool:
    scope = getattr(task.job, "scope", None)
    return scope is None or scope.dataset is not None


def study_tasks(config: StudyConfig, audit: StudyAudit) -> list[Task]:
    """Every task of a run of the study that reads a source, with its key; nothing is computed."""
    return [task for stage in study_stages(config, audit) for task in stage.tasks]


def look_for_results(
    folder: Path, inputs: Iterable[InputFile], pairs: Iterable[Pair]
) -> list[EarlierRun]:
    """Search the run ``folder``, and what an interrupted run left beside it.

    ``inputs`` are the files of the study that is to be registered, ``pairs`` its datasets and models. Both are known
    by the checksums of their files, whatever they are called; a model without files of its own, by its name.
    """
    partial = (
        folder if folder.name.endswith(".partial") else folder.with_name(f"{folder.name}.partial")
    )
    found = []
    if (folder / MANIFEST_NAME).is_file():
        manifest = StoredRun(folder).manifest
        found.append(
            EarlierRun(
                state=FINISHED,
                study=manifest.study,
                config_digest=manifest.config_digest,
                same=same_pairs(inputs, pairs, manifest.inputs, pairs_of(manifest.config)),
            )
        )
    if partial.is_dir():
        found.append(_unfinished(partial))
    if not found:
        raise RunError(
            "there is no run to search for results",
            where=str(folder),
            got="a folder without a manifest" if folder.is_dir() else "no such folder",
            expected="a finished run, or the folder of an interrupted one",
            remedy="check the path, or leave --run out",
        )
    return found


def _unfinished(partial: Path) -> EarlierRun:
    """An interrupted run: every result counts, since it does not say what it is about."""
    with storage_errors(partial, "the folder of an interrupted run cannot be read"):
        files = [p for p in (partial / "tasks").rglob("*") if p.is_file() and p.suffix != ".tmp"]
    status = read_status(partial)
    if status is None:
        return EarlierRun(state=UNFINISHED, n_finished_tasks=len(files))
    return EarlierRun(
        state=UNFINISHED,
        study=status.study,
        config_digest=status.config_digest,
        # Results may be in a store elsewhere; the status counts them.
        n_finished_tasks=max(len(files), status.n_results),
    )


def same_pairs(
    inputs: Iterable[InputFile],
    pairs: Iterable[Pair],
    their_inputs: Iterable[InputFile],
    their_pairs: Iterable[Pair],
) -> tuple[str, ...]:
    """Those of a study's datasets and models that another run has too, as ``dataset/model``."""
    own, theirs = _by_source(inputs), _by_source(their_inputs)
    others = list(their_pairs)
    same = {
        "/".join(filter(None, (dataset, model)))
        for dataset, model in pairs
        if any(
            _same_files(own.get(dataset, {}), theirs.get(other, {}))
            and _same_model(model, other_model, own, theirs)
            for other, other_model in others
        )
    }
    return tuple(sorted(same))


Sizes = dict[str, int]
"""Bytes of files by checksum."""


def _by_source(inputs: Iterable[InputFile]) -> dict[str, Sizes]:
    """Files of every dataset and model; features are made from these, and left out."""
    sources: dict[str, Sizes] = {}
    for file in inputs:
        if not (file.dataset.startswith(MODEL) and file.path.startswith(FEATURE_SETS)):
            sources.setdefault(file.dataset, {})[file.sha256] = file.n_bytes
    return sources


def _same_files(own: Sizes, other: Sizes) -> bool:
    smaller = min(sum(own.values()), sum(other.values()))
    shared = sum(n_bytes for sha256, n_bytes in own.items() if sha256 in other)
    return shared > 0 and shared >= SAME_SHARE * smaller


def _same_model(name: str, other: str, own: dict[str, Sizes], theirs: dict[str, Sizes]) -> bool:
    mine, others = own.get(MODEL + name), theirs.get(MODEL + other)
    return _same_files(mine, others) if mine and others else name == other


def look_into_store(
    place: str, config: StudyConfig, audit: StudyAudit, made_from: Provenance
) -> list[EarlierRun]:
    """Search the study's own store of results, ``[run] tasks``; no result is read.

    First come results of the study's own tasks, then runs that keep results of the same data and models there, with
    any options. Studies may share the store, so results of other data do not count. A note that cannot be read is
    recorded by its name, since it may be about the same data, but it does not stop the registration.
    """
    store = TaskStore(open_shelf(place))
    keys = {task.key for task in study_tasks(config, audit)}
    found = [EarlierRun(state=KEPT, n_finished_tasks=sum(map(store.has, keys)))]
    for name in filter(_NAME.fullmatch, store.shelf.names(_START)):
        note = _read(store.shelf, name)
        if note is None:
            found.append(EarlierRun(state=UNREADABLE, study=name))
        elif any(map(store.has, note.first)):
            same = same_pairs(made_from.inputs, pairs_of(made_from.config), note.inputs, note.pairs)
            run = EarlierRun(
                state=NOTED, study=note.study, config_digest=note.config_digest, same=same
            )
            if same and run not in found:
                found.append(run)
    return found


def refuse_results(found: Iterable[EarlierRun]) -> None:
    """Raise `RunError` if there are results of what is to be registered."""
    for earlier in found:
        if not earlier.has_results:
            continue
        where, n_tasks, same = "option --run", earlier.n_finished_tasks, ", ".join(earlier.same)
        if earlier.state == KEPT:
            where, got = "option 'run.tasks'", f"results of {n_tasks:,} task(s) of this very study"
        elif earlier.state == NOTED:
            where = "option 'run.tasks'"
            got = f"results of {same}, kept there by a run of the study '{earlier.study}'"
        elif same:
            got = f"a finished run of the study '{earlier.study}' with results of {same}"
        else:
            got = f"an unfinished run with {n_tasks:,} finished task(s)"
        raise RunError(
            "results exist already, so this would not be a registration before the fact",
            where=where,
            got=got,
            expected="no results of the same datasets and models",
            remedy="register other data or models, or add --after-the-fact, which every later statement repeats",
        )


class Note(Item):
    """A run that keeps its results in a store.

    ``pairs`` are its datasets and models, ``first`` the keys of its first tasks: it has kept results if it has kept one
    of these.
    """

    study: str
    config_digest: str
    inputs: tuple[InputFile, ...]
    pairs: tuple[Pair, ...]
    first: tuple[str, ...]


def leave_note(
    store: TaskStore, config: StudyConfig, audit: StudyAudit, made_from: Provenance
) -> None:
    """Note a run that is about to keep results; the same run leaves the same note."""
    stages = study_stages(config, audit)
    note = Note(
        study=made_from.study,
        config_digest=made_from.config_digest,
        inputs=tuple(sorted(made_from.inputs, key=lambda file: (file.dataset, file.path))),
        pairs=tuple(sorted(pairs_of(made_from.config))),
        first=tuple(task.key for stage in stages for task in stage.tasks if not task.job.needs),
    )
    text = json.dumps(note.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
    content = text.encode()
    shelf, name = store.shelf, _name_of(content)
    with storage_errors(Path(shelf.where(name)), "a note beside results cannot be read"):
        exists = shelf.size(name) == len(content) and shelf.read(name, 0, len(content)) == content
    if not exists:
        shelf.write(name, content)


def _read(shelf: Shelf, name: str) -> Note | None:
    """A note as a run left it, or None."""
    try:
        with storage_errors(Path(shelf.where(name)), "a note beside results cannot be read"):
            content = shelf.read(name, 0, shelf.size(name) or 0)
        return Note.model_validate_json(content) if _name_of(content) == name else None
    except (LPactError, ValidationError):
        return None


def _name_of(content: bytes) -> str:
    return f"{_START}{hashlib.sha256(content).hexdigest()[:40]}.json"


class NotedFirst:
    """An executor that runs no task before a note is left.

    A store that cannot be written to is an error only then: a run that finds all its results there writes none.
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
        """Leave the note, if that failed before and there is a task; then run the tasks."""
        if not self._left:
            tasks = iter(tasks)
            first = next(tasks, None)
            if first is None:
                return
            self._leave()
            self._left = True
            tasks = chain([first], tasks)
        yield from self._executor.run(tasks)


@dataclass(frozen=True)
class TakenOver:
    """Results of a run that were not made under its registration, and under which they were."""

    n_results: int
    why: str


def taken_over(
    store: TaskStore, tasks: Iterable[Task], registration: Registration
) -> TakenOver | None:
    """Results of tasks that do not carry the registration's digest; None where all do.

    A run with a registration marks every result that it makes. So any other was made under another registration or
    under none, whatever the clocks say.
    """
    keys = dict.fromkeys(task.key for task in tasks if _reads(task))
    marks = Counter(store.mark_of(key) for key in keys)
    marks.pop(registration.found_digest, None)
    if not marks:
        return None
    n_results, without = marks.total(), marks.pop("", 0)
    others = [f"{n:,} under registration {mark[:12]}" for mark, n in sorted(marks.items())]
    parts = [f"{without:,} under none"] if without else []
    parts += others[:MOST_SHOWN]
    if more := len(others) - MOST_SHOWN:
        parts += [f"others under {more} further registration(s)"] if more > 0 else []
    return TakenOver(n_results, f"reused from an earlier run: {', '.join(parts)}")
