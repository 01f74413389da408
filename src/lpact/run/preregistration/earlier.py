"""Whether results of a study already exist: in given runs, and in its own store of results.

Results in a store are named by hashes, so a run leaves a note there about its data and models. Every result carries
the digest of the registration under which it was made.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lpact.analyses.base import Task, analyses_of
from lpact.config import StudyConfig
from lpact.errors import RunError
from lpact.features.models import FEATURE_SETS
from lpact.run.audit import StudyAudit, provenance
from lpact.run.conductor import Measuring
from lpact.run.preregistration.record import EarlierRun, Item, Registration, new_registration, planned_content
from lpact.run.status import read_status
from lpact.store import InputFile, StoredRun, TaskStore, partial_folder, storage_errors
from lpact.store.disk import atomic_write_bytes
from lpact.store.manifest import MANIFEST_NAME
from lpact.wording import listed

FINISHED, UNFINISHED, KEPT, NOTED = "finished", "unfinished", "kept", "noted"
"""States of an earlier run; ``kept``: results of the study's own tasks in its store, ``noted``: another run there."""
NOTES = "sources-*.json"

MODEL = "model "
"""Prefix of a model's name, or of the parser's, among the input files of a manifest."""
SAME_SHARE = 0.5
"""Two datasets are the same data if they share this part of the smaller one's bytes."""
MOST_SHOWN = 4
"""Other registrations that a message names."""

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


def look_for_results(folder: Path, inputs: Iterable[InputFile], pairs: Iterable[Pair]) -> list[EarlierRun]:
    """Search the run ``folder``, and what an interrupted run left next to it.

    ``inputs`` are the files of the study that is to be registered, ``pairs`` its datasets and models. Datasets and
    models are compared by checksums, whatever their names; a model without files by its name.
    """
    refuse_no_run(folder)
    partial, found = _partial(folder), []
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
    return found


def refuse_no_run(folder: Path) -> None:
    """Raise `RunError` unless ``folder`` is a run, finished or interrupted."""
    if not (folder / MANIFEST_NAME).is_file() and not _partial(folder).is_dir():
        raise RunError(
            "there is no run to search for results",
            where=str(folder),
            got="a folder without a manifest" if folder.is_dir() else "no such folder",
            expected="a finished run, or the folder of an interrupted one",
            remedy="check the path, or leave --run out",
        )


def _partial(folder: Path) -> Path:
    return folder if folder.name.endswith(".partial") else partial_folder(folder.absolute())


def same_pairs(
    inputs: Iterable[InputFile],
    pairs: Iterable[Pair],
    their_inputs: Iterable[InputFile],
    their_pairs: Iterable[Pair],
) -> tuple[str, ...]:
    """Datasets and models of a study that another run also has, as ``dataset/model``."""
    own, theirs, others = _by_source(inputs), _by_source(their_inputs), list(their_pairs)

    def same_model(name: str, other: str) -> bool:
        mine, others = own.get(MODEL + name), theirs.get(MODEL + other)
        return _same_files(mine, others) if mine and others else name == other

    same = {
        "/".join(filter(None, (dataset, model)))
        for dataset, model in pairs
        for other, other_model in others
        if _same_files(own.get(dataset, {}), theirs.get(other, {})) and same_model(model, other_model)
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


def register(
    config: StudyConfig,
    audit: StudyAudit,
    *,
    runs: Iterable[Path] = (),
    kept: str = "",
    after_the_fact: bool = False,
    now: datetime | None = None,
) -> Registration:
    """Freeze what a study will do, from its sources and sizes; nothing is fitted.

    ``runs`` are folders of finished or interrupted runs to search for results, ``kept`` is the study's own store of
    results (``[run] tasks``). Results of the same datasets and models are a `RunError`, unless the registration is made
    ``after_the_fact``, which it then says.
    """
    made_from = provenance(config, audit)
    pairs = pairs_of(made_from.config)
    earlier = [found for run in runs for found in look_for_results(run, made_from.inputs, pairs)]
    if kept:
        store = TaskStore(Path(kept))
        n_kept = sum(store.has(key) for key in {t.key for t in study_tasks(config, audit)})
        earlier.append(EarlierRun(state=KEPT, n_finished_tasks=n_kept))
        earlier += _noted_runs(store, made_from.inputs, pairs)
    if not after_the_fact:
        _refuse_results(earlier)
    content = planned_content(config, audit, made_from, after_the_fact=after_the_fact, earlier_runs=tuple(earlier))
    return new_registration(content, now)


class Note(Item):
    """A run that stores its results: its datasets and models, and the keys of the tasks that need no other."""

    study: str
    config_digest: str
    inputs: tuple[InputFile, ...]
    pairs: tuple[Pair, ...]
    first: tuple[str, ...]


def leave_note(store: TaskStore, config: StudyConfig, audit: StudyAudit) -> None:
    """Note a run that is about to store results; the same run leaves the same note."""
    made_from = provenance(config, audit)
    note = Note(
        study=made_from.study,
        config_digest=made_from.config_digest,
        inputs=tuple(sorted(made_from.inputs, key=lambda file: (file.dataset, file.path))),
        pairs=tuple(sorted(pairs_of(made_from.config))),
        first=tuple(t.key for t in study_tasks(config, audit) if not t.job.needs),
    )
    text = json.dumps(note.model_dump(mode="json"), sort_keys=True, ensure_ascii=False).encode()
    path = store.root / NOTES.replace("*", hashlib.sha256(text).hexdigest()[:40])
    if not path.exists():
        atomic_write_bytes(path, text)


def _noted_runs(store: TaskStore, inputs: Iterable[InputFile], pairs: Iterable[Pair]) -> list[EarlierRun]:
    """Runs that store results of the same data and models, with any options."""
    found = []
    for path in sorted(store.root.glob(NOTES)):
        try:
            with storage_errors(path, "a note of an earlier run cannot be read"):
                note = Note.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise RunError(
                "a note of an earlier run is damaged",
                where=str(path),
                got=str(error.errors()[0]["msg"]),
                expected="JSON that lpact wrote",
                remedy="restore it from a backup; or delete it, and name the runs that use this folder with --run",
            ) from error
        same = same_pairs(inputs, pairs, note.inputs, note.pairs)
        if same and any(map(store.has, note.first)):
            digest = note.config_digest
            found.append(EarlierRun(state=NOTED, study=note.study, config_digest=digest, same=same))
    return found


def _refuse_results(found: Iterable[EarlierRun]) -> None:
    for earlier in (own for own in found if own.has_results):
        n_tasks, same = earlier.n_finished_tasks, ", ".join(earlier.same)
        got = {
            KEPT: f"results of {n_tasks:,} task(s) of this study",
            NOTED: f"results of {same}, stored there by a run of the study '{earlier.study}'",
            FINISHED: f"a finished run of the study '{earlier.study}' with results of {same}",
            UNFINISHED: f"an unfinished run with {n_tasks:,} finished task(s)",
        }[earlier.state]
        raise RunError(
            "results already exist, so this registration would not precede them",
            where="option 'run.tasks'" if earlier.state in (KEPT, NOTED) else "option --run",
            got=got,
            expected="no results of the same datasets and models",
            remedy="register other data or models, or add --after-the-fact, which every later statement repeats",
        )


@dataclass(frozen=True)
class Reused:
    """Results of a run that were not made under its registration, and under which they were."""

    n_results: int
    why: str


def reused_results(store: TaskStore, tasks: Iterable[Task], registration: Registration) -> Reused | None:
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
    parts += [f"{n:,} under registration {mark[:12]}" for mark, n in sorted(marks.items())]
    return Reused(n_results, f"reused from an earlier run: {listed(parts, MOST_SHOWN)}")
