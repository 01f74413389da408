"""Whether results of a study were there before it was registered, in runs that one is shown and in its own store."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.errors import RunError
from lpact.features.models import FEATURE_SETS
from lpact.run.journal.status import read_status
from lpact.run.preregistration.content import MODEL, EarlierRun
from lpact.run.preregistration.items import counted
from lpact.run.stages import BRAINS, CEILINGS, CONTROLS, DECISION, LEVELS
from lpact.store import InputFile, StoredRun, storage_errors
from lpact.store.manifest import MANIFEST_NAME

FINISHED, UNFINISHED = "finished", "unfinished"
KEPT, NOTED, UNREADABLE = "kept", "noted", "unreadable note"
"""States of an earlier run.

`KEPT` are results of the study's own tasks in its place for them, whichever run made them. `NOTED` is a run that has
kept results of other tasks there. `UNREADABLE` is the note of such a run that is damaged: its file stands in the
study's place, and whose results it is about cannot be said.
"""

Pair = tuple[str, str]
"""A dataset and a model."""

MEASURED = (BRAINS, LEVELS, CEILINGS, CONTROLS, DECISION)
"""Stages that look at outcomes."""

SAME_SHARE = 0.5
"""Share of the smaller dataset's bytes that must be files of the other, for both to count as the same data."""


def look_for_results(
    folder: Path, inputs: Iterable[InputFile], pairs: Iterable[Pair]
) -> list[EarlierRun]:
    """Look at the run ``folder`` and at what an interrupted run left beside it.

    ``inputs`` are the files of the study that is to be registered, ``pairs`` its (dataset, model) pairs. Datasets and
    models are known by the checksums of their files, whatever they are called; a model without files of its own, by its
    name.
    """
    finished = (folder / MANIFEST_NAME).is_file()
    partial = (
        folder if folder.name.endswith(".partial") else folder.with_name(f"{folder.name}.partial")
    )
    found = []
    if finished:
        found.append(_finished(StoredRun(folder), tuple(inputs), tuple(pairs)))
    if partial.is_dir():
        found.append(_unfinished(partial))
    if not found:
        raise RunError(
            "no run is there to be looked at",
            where=str(folder),
            got="a folder without a manifest" if folder.is_dir() else "no such folder",
            expected="a finished run, or the folder of an interrupted one",
            remedy="check the path, or leave --run out",
        )
    return found


def _finished(run: StoredRun, inputs: tuple[InputFile, ...], pairs: tuple[Pair, ...]) -> EarlierRun:
    judged = set(run.table(DECISIONS.name).select("dataset", "model").unique().iter_rows())
    return EarlierRun(
        state=FINISHED,
        study=run.manifest.study,
        config_digest=run.manifest.config_digest,
        same=same_pairs(inputs, pairs, run.manifest.inputs, judged),
        n_finished_tasks=0,
    )


def same_pairs(
    inputs: Iterable[InputFile],
    pairs: Iterable[Pair],
    their_inputs: Iterable[InputFile],
    their_pairs: Collection[Pair],
) -> tuple[str, ...]:
    """Those of a study's datasets and models that another run has, too, as ``dataset/model``.

    Both are known by the checksums of their files (see `look_for_results`).
    """
    own, theirs = _by_source(inputs), _by_source(their_inputs)
    same = (
        f"{dataset}/{model}"
        for dataset, model in set(pairs)
        if any(
            _same_files(own.get(dataset, {}), theirs.get(other, {}))
            and _same_model(model, other_model, own, theirs)
            for other, other_model in their_pairs
        )
    )
    return tuple(sorted(same))


def _unfinished(partial: Path) -> EarlierRun:
    """Tasks are named by hashes that cannot be traced back, so that each counts."""
    with storage_errors(partial, "the folder of an interrupted run cannot be read"):
        n_files = len(_task_files(partial))
    said = read_status(partial)
    # Results may lie in a store of their own: the run's status counts them, too.
    n_said = (
        0 if said is None else sum(s.done - s.failed for s in said.stages if s.stage in MEASURED)
    )
    return EarlierRun(
        state=UNFINISHED,
        study="" if said is None else said.study,
        config_digest="" if said is None else said.config_digest,
        same=(),
        n_finished_tasks=max(n_files, n_said),
    )


def _task_files(partial: Path) -> list[Path]:
    return [p for p in (partial / "tasks").rglob("*") if p.is_file() and p.suffix != ".tmp"]


def _by_source(inputs: Iterable[InputFile]) -> dict[str, dict[str, int]]:
    """Sizes by checksum, for every dataset and model; features are made from these files, and left out."""
    sources: dict[str, dict[str, int]] = {}
    for file in inputs:
        if file.dataset.startswith(MODEL) and file.path.startswith(FEATURE_SETS):
            continue
        sources.setdefault(file.dataset, {})[file.sha256] = file.n_bytes
    return sources


def _same_files(own: dict[str, int], other: dict[str, int]) -> bool:
    smaller = min(sum(own.values()), sum(other.values()))
    shared = sum(n_bytes for sha256, n_bytes in own.items() if sha256 in other)
    return shared > 0 and shared >= SAME_SHARE * smaller


def _same_model(
    name: str, other: str, own: dict[str, dict[str, int]], theirs: dict[str, dict[str, int]]
) -> bool:
    mine, others = own.get(MODEL + name), theirs.get(MODEL + other)
    if mine and others:
        return _same_files(mine, others)
    return name == other


def refuse_results(found: Iterable[EarlierRun]) -> None:
    """Raise `RunError` where results of what is to be registered were found."""
    for earlier in found:
        if not earlier.has_results:
            continue
        where, n_tasks = "option --run", earlier.n_finished_tasks
        if earlier.state == KEPT:
            where, got = (
                "option 'run.tasks'",
                f"results of {counted(n_tasks, 'task')} of this very study",
            )
        elif earlier.state == NOTED:
            where = "option 'run.tasks'"
            got = f"results of {', '.join(earlier.same)}, kept there by a run of the study '{earlier.study}'"
        elif earlier.same:
            same = ", ".join(earlier.same)
            got = f"a finished run of the study '{earlier.study}' with results of {same}"
        else:
            got = f"an unfinished run with {counted(n_tasks, 'finished task')}"
        raise RunError(
            "results are there already: this would be no registration before the fact",
            where=where,
            got=got,
            expected="no results of the same datasets and models",
            remedy="register other data or models; or add --after-the-fact, which every later statement repeats",
        )
