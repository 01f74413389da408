"""A study's own tasks, by key: whether results of them are there, and under which registration they were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from lpact.analyses.base import Task
from lpact.analyses.lpact.positive_controls import ImplantJob, control_tasks
from lpact.config import StudyConfig
from lpact.run.audit import StudyAudit
from lpact.run.conduct import Conductor, Watched
from lpact.run.executors.base import Ended
from lpact.run.journal.progress import Silent
from lpact.run.measure import measure
from lpact.run.preregistration.content import EarlierRun
from lpact.run.preregistration.earlier import KEPT, NOTED, UNREADABLE, Pair, same_pairs
from lpact.run.preregistration.items import counted
from lpact.run.preregistration.noted import notes_with_results
from lpact.run.preregistration.record import Registration
from lpact.store import InputFile, MemoryTasks, TaskStore
from lpact.store.remote import open_shelf

MOST_SHOWN = 3
"""Other registrations that a statement names."""


@dataclass(frozen=True)
class TakenOver:
    """Results that a run has and that were not made under its registration; ``why`` says as much as they tell."""

    n_results: int
    why: str


@dataclass
class _Noted:
    """In the place of what runs tasks: it notes them down, and runs none."""

    tasks: list[Task] = field(default_factory=list)
    workers: int = 1

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Note tasks."""
        self.tasks.extend(tasks)
        return iter(())


def study_tasks(config: StudyConfig, audit: StudyAudit) -> list[Task]:
    """Every task of a run of the study that reads a source of it, with its key; nothing is computed.

    Implanted studies are simulated from settings alone. Studies share their results, which say nothing of the data.
    """
    noted = _Noted()
    measured = measure(config, audit, Conductor(MemoryTasks(), noted, Watched(Silent())))
    controls = control_tasks(measured) if config.assay.enabled else []
    return [
        *noted.tasks,
        *(task for task in controls if not isinstance(task.job, ImplantJob)),
    ]


def look_into_store(
    place: str,
    config: StudyConfig,
    audit: StudyAudit,
    inputs: tuple[InputFile, ...],
    pairs: Collection[Pair],
) -> list[EarlierRun]:
    """Look into the study's own place for results, ``[run] tasks``; no result is read.

    First come results of the study's own tasks; then runs that have kept results of the same data and models there,
    with whichever options. Runs on other data are nobody's business: studies may share the place. So a note that cannot
    be read stops nobody; it is recorded by its name, since it may be of the same data.
    """
    store = TaskStore(open_shelf(place))
    keys = {task.key for task in study_tasks(config, audit)}
    own = EarlierRun(
        state=KEPT,
        study="",
        config_digest="",
        same=(),
        n_finished_tasks=sum(store.has(key) for key in keys),
    )
    noted = (
        EarlierRun(state=UNREADABLE, study=note, config_digest="", same=(), n_finished_tasks=0)
        if isinstance(note, str)
        else EarlierRun(
            state=NOTED,
            study=note.study,
            config_digest=note.config_digest,
            same=same_pairs(inputs, pairs, note.inputs, note.pairs),
            n_finished_tasks=0,
        )
        for note in notes_with_results(store)
    )
    told = (run for run in noted if run.has_results or run.state == UNREADABLE)
    return [own, *dict.fromkeys(told)]


def taken_over(
    store: TaskStore, tasks: Iterable[Task], registration: Registration
) -> TakenOver | None:
    """Results of tasks that do not carry the registration's mark; None where all do.

    A run with a registration marks every result that it makes with the registration's digest. So any other was made
    under another registration or under none, whatever the clocks say.
    """
    marks = Counter(store.mark_of(key) for key in dict.fromkeys(task.key for task in tasks))
    marks.pop(registration.found_digest, None)
    if not marks:
        return None
    without = marks.pop("", 0)
    others = [f"{n:,} under registration {mark[:12]}" for mark, n in sorted(marks.items())]
    parts = [f"{without:,} under none"] if without else []
    parts += others[:MOST_SHOWN]
    if len(others) > MOST_SHOWN:
        parts.append(f"others under {counted(len(others) - MOST_SHOWN, 'further registration')}")
    n_results = without + marks.total()
    return TakenOver(n_results, f"taken over as an earlier run had left them: {', '.join(parts)}")
