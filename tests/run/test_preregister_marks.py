"""A result says under which registration it was made: what a run takes over is counted, whatever clocks say."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import lpact
from lpact.analyses.base import Task
from lpact.analyses.lpact.analysis import LPact
from lpact.analyses.lpact.assays import implant
from lpact.analyses.lpact.assays.jobs import ImplantJob
from lpact.analyses.lpact.config import LPactConfig
from lpact.errors import RunError
from lpact.inputs.workspace import Workspace
from lpact.run.audit import study_keys
from lpact.run.executors.local import Setup
from lpact.run.executors.worker import packed, run_task
from lpact.run.preregistration.compare import check_run
from lpact.run.preregistration.earlier import register, study_tasks
from lpact.run.preregistration.record import read_registration
from lpact.store import TaskStore, code_digest
from lpact.study import Run, Study
from lpact.tables import BEFORE_RESULTS, BEFORE_RUN, PREREGISTRATION_ITEMS

Made = Callable[..., Study]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tinier_study: Callable[..., Any]) -> Made:
    grids = tmp_path_factory.mktemp("grids")

    def make(tasks: Path | str = "") -> Study:
        plain = tinier_study(run={"grids": str(grids), "tasks": str(tasks)})
        plain["datasets"][0]["options"]["n_runs"] = 1
        return lpact.load_study(plain)

    return make


@pytest.fixture(scope="module")
def unregistered(made: Made, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """A finished run that was given no registration, and the place where its results are kept."""
    folder = tmp_path_factory.mktemp("unregistered")
    return folder / "kept", made(folder / "kept").run(folder / "run", progress=False)


@pytest.fixture
def kept(unregistered: tuple[Path, Run], tmp_path: Path) -> Path:
    shutil.copytree(unregistered[0], tmp_path / "kept")
    return tmp_path / "kept"


@pytest.fixture
def tasks(made: Made) -> list[Task]:
    study = made()
    return study_tasks(study.config, study.audit())


@pytest.fixture
def registered(made: Made, tmp_path: Path) -> Path:
    """A registration that saw no results: the place where they are was not named to it."""
    made().preregister(tmp_path / "r.json")
    return tmp_path / "r.json"


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*.task"))


def order(run: Run) -> dict[str, Any]:
    return run.table(PREREGISTRATION_ITEMS.name).filter(item=BEFORE_RUN).row(0, named=True)


def notes(run: Run, event: str) -> Iterator[dict[str, Any]]:
    for line in (run.root / "log.jsonl").read_text(encoding="utf-8").splitlines():
        if (entry := json.loads(line))["event"] == event:
            yield entry


def test_the_tasks_of_a_study_are_those_of_its_run(
    made: Made, unregistered: tuple[Path, Run], tasks: list[Task], tmp_path: Path
) -> None:
    """Each is where the run has put it, and the run has put nothing else there but what it simulated."""
    store, other = TaskStore(unregistered[0]), TaskStore(tmp_path / "other")
    for task in tasks:
        assert store.fault(task.key) is None, task.name
        other.save(task.key, {})
    study = made()
    for arm in implant.ARMS:
        job = ImplantJob.of(LPactConfig.of(study.config), arm)
        other.save(study_keys(study.config, study.audit(), "lpact").task(job).key, {})
    assert {p.name for p in files(unregistered[0])} == {p.name for p in files(tmp_path / "other")}
    assert {store.mark_of(task.key) for task in tasks} == {""}
    stems = {task.name.split("/")[1] for task in tasks}
    assert stems >= {"context", "ceiling", "controls"}


def test_results_that_were_there_are_counted(
    made: Made,
    unregistered: tuple[Path, Run],
    kept: Path,
    tasks: list[Task],
    registered: Path,
    tmp_path: Path,
) -> None:
    """Some results are new and made under the registration; the others are not, though all are newer than it."""
    store = TaskStore(kept)
    removed = [task.key for task in tasks if "/ceiling/" in task.name or "/stimulus/" in task.name]
    assert 0 < len(removed) < len(tasks)
    for key in removed:
        store.path(key).unlink()
    for path in files(kept):
        os.utime(path)
    run = made(kept).run(tmp_path / "run", progress=False, preregistration=registered)
    n_taken = len(tasks) - len(removed)
    said = order(run)
    assert not said["followed"]
    assert said["found"].startswith(f"{n_taken} result(s) of tasks were not made under it")
    assert f"{n_taken} under none" in said["detail"]
    assert [note["n_results"] for note in notes(run, "results_reused")] == [n_taken]
    digest = read_registration(registered).digest
    marked = {task.key for task in tasks if store.mark_of(task.key) == digest}
    assert marked == set(removed)
    assert check_run(read_registration(registered), run).equals(run.table(PREREGISTRATION_ITEMS.name))
    plain = unregistered[1]
    for table in plain.tables():
        assert_frame_equal(run.table(table.name), plain.table(table.name))


def test_results_made_under_the_registration_are_followed_and_others_named(
    made: Made, kept: Path, tasks: list[Task], registered: Path, tmp_path: Path
) -> None:
    """As an interrupted run of the same registration leaves them; clocks are nothing to it."""
    digest = read_registration(registered).digest
    mine = TaskStore(kept, digest)
    for task in tasks:
        mine.save(task.key, mine.load(task.key))
    for path in files(kept):
        os.utime(path, (0, 0))
    study = made(kept)
    run = study.run(tmp_path / "run", progress=False, preregistration=registered)
    assert run.table(PREREGISTRATION_ITEMS.name)["followed"].all()
    assert order(run)["found"] == "the run was made with it"
    assert list(notes(run, "results_reused")) == []
    assert [note["digest"] for note in notes(run, "preregistration")] == [digest]
    other = TaskStore(mine.root, "[red]\n" + "e" * 70)
    other.save(tasks[0].key, mine.load(tasks[0].key))
    run = study.run(tmp_path / "again", progress=False, preregistration=registered)
    assert order(run)["found"].startswith("1 result(s) ")
    assert r"1 under registration [red]\neeeee" in order(run)["detail"]
    assert not run.table(PREREGISTRATION_ITEMS.name)["followed"].all()


def test_a_run_that_was_interrupted_before_the_registration_is_counted(
    made: Made, tmp_path: Path, unregistered: tuple[Path, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results beside the run, and a registration that says to be older than they are."""
    study, out = made(), tmp_path / "run"
    shutil.copytree(unregistered[0], tmp_path / "run.partial" / "tasks")

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LPact, "decide", stop)
        with pytest.raises(KeyboardInterrupt):
            study.run(out, progress=False)
    study.preregister(tmp_path / "r.json")
    values = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    values["registered_at"] = "2001-01-01T00:00:00Z"
    (tmp_path / "r.json").write_text(json.dumps(values), encoding="utf-8")
    run = study.run(out, progress=False, preregistration=tmp_path / "r.json")
    items = run.table(PREREGISTRATION_ITEMS.name)
    assert set(items.filter(~pl.col("followed"))["item"]) == {"digest", BEFORE_RUN}
    assert "under none" in order(run)["detail"]


def test_a_study_with_results_in_its_own_place_is_not_registered(
    made: Made, kept: Path, tasks: list[Task], tmp_path: Path
) -> None:
    out = tmp_path / "r.json"
    with pytest.raises(RunError, match="results already exist") as caught:
        made(kept).preregister(out)
    assert "'run.tasks'" in str(caught.value)
    assert f"results of {len(tasks)} task(s) of this study" in str(caught.value)
    assert not out.exists()
    late = made(kept).preregister(out, after_the_fact=True)
    assert [run.n_finished_tasks for run in late.registered.earlier_runs] == [len(tasks), 0]
    # Of another study, nothing is there; a place that is not there yet is as good.
    other = made(kept)
    config = other.config.model_copy(update={"seed": 4})
    for study in (Study.of(config, other.run_config), made(tmp_path / "none")):
        made_now = study.preregister(tmp_path / f"{study.config.seed}.json")
        assert [run.n_finished_tasks for run in made_now.registered.earlier_runs] == [0]
    assert not (tmp_path / "none").exists()


def with_options(study: Study, **options: Any) -> Study:
    """The study with other options of its readouts, on the same data."""
    readout = study.config.readout.model_copy(update=options)
    return Study.of(study.config.model_copy(update={"readout": readout}), study.run_config)


def test_results_of_the_same_data_count_with_whichever_options_they_were_made(
    made: Made, kept: Path, tasks: list[Task], tmp_path: Path
) -> None:
    study = with_options(made(kept), memory_gib=1.5)
    own = {task.key for task in study_tasks(study.config, study.audit())}
    assert own.isdisjoint(task.key for task in tasks)
    with pytest.raises(RunError, match="results already exist") as caught:
        study.preregister(tmp_path / "r.json")
    pairs = {f"{d.name}/{m.name}" for d in study.config.datasets for m in study.config.models}
    for part in ("'run.tasks'", f"a run of the study '{study.config.name}'", *pairs):
        assert part in str(caught.value)
    late = study.preregister(tmp_path / "r.json", after_the_fact=True)
    found = [(run.state, run.n_finished_tasks, {*run.same}) for run in late.registered.earlier_runs]
    assert found == [("kept", 0, set()), ("noted", 0, pairs)]
    # A run that was noted and has kept nothing is no hindrance.
    for path in kept.rglob("*.task"):
        path.unlink()
    early = study.preregister(tmp_path / "early.json").registered
    assert not any(run.has_results for run in early.earlier_runs)


def test_a_damaged_note_is_an_error_that_names_it(made: Made, kept: Path, tmp_path: Path) -> None:
    (note,) = kept.glob("sources-*")
    note.write_bytes(note.read_bytes()[:-1])
    with pytest.raises(RunError, match="note of an earlier run is damaged") as caught:
        with_options(made(kept), memory_gib=1.5).preregister(tmp_path / "r.json")
    assert note.name in str(caught.value)


def test_what_was_not_looked_at_is_not_called_before(
    made: Made, unregistered: tuple[Path, Run], tmp_path: Path
) -> None:
    study, run = made(), unregistered[1]
    empty = str(tmp_path / "none")
    for kept, found in (
        ("", "no earlier run was named"),
        (empty, "no results in what was searched"),
    ):
        items = check_run(register(study.config, study.audit(), kept=kept), run)
        said = items.filter(item=BEFORE_RESULTS).row(0, named=True)
        assert said["followed"]
        assert said["registered"] == "declared before results"
        assert said["found"].startswith(found)
        assert ("own store" in said["detail"]) == bool(kept)


def test_workers_mark_what_they_make(made: Made, tmp_path: Path) -> None:
    study, frames = made(), {"t": pl.DataFrame({"x": [1]})}
    store = TaskStore(tmp_path / "tasks", "m")
    pickle.loads(pickle.dumps(store)).save("process", frames)
    assert store.mark_of("process") == "m"
    (job,) = [t for t in study_tasks(study.config, study.audit()) if not t.job.needs][:1]
    setup = packed(Setup.of(Workspace(study.config, study.run_config)))
    _, content = run_task(code_digest(), setup, store.mark, packed(job), {})
    assert content is not None
    store.put(job.key, content)
    assert store.mark_of(job.key) == "m"
