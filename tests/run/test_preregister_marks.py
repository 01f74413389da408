"""A result says under which registration it was made: what a run takes over is counted, whatever clocks say."""

from __future__ import annotations

import errno
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
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.positive_controls import ImplantJob
from lpact.errors import RunError
from lpact.inputs.workspace import Workspace
from lpact.run.audit import study_keys
from lpact.run.executors.base import Setup
from lpact.run.executors.worker import Briefing, SharedTasks, packed, unpacked
from lpact.run.preregistration import check_run, read_registration, register, study_tasks
from lpact.store import FolderShelf, TaskStore, storage_errors
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
    store, other = TaskStore.at(unregistered[0]), TaskStore.at(tmp_path / "other")
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
    store = TaskStore.at(kept)
    removed = [task.key for task in tasks if "/ceiling/" in task.name or "/stimulus/" in task.name]
    assert 0 < len(removed) < len(tasks)
    for key in removed:
        store.remove(key)
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
    assert check_run(read_registration(registered), run).equals(
        run.table(PREREGISTRATION_ITEMS.name)
    )
    plain = unregistered[1]
    for table in plain.tables():
        assert_frame_equal(run.table(table.name), plain.table(table.name))


def test_results_made_under_the_registration_are_followed_and_others_named(
    made: Made, kept: Path, tasks: list[Task], registered: Path, tmp_path: Path
) -> None:
    """As an interrupted run of the same registration leaves them; clocks are nothing to it."""
    digest = read_registration(registered).digest
    mine = TaskStore(TaskStore.at(kept).shelf, digest)
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
    other = TaskStore(mine.shelf, "[red]\n" + "e" * 70)
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
    with pytest.raises(RunError, match="results exist already") as caught:
        made(kept).preregister(out)
    assert "'run.tasks'" in str(caught.value)
    assert f"results of {len(tasks)} task(s) of this very study" in str(caught.value)
    assert not out.exists()
    late = made(kept).preregister(out, after_the_fact=True)
    assert [run.n_finished_tasks for run in late.content.earlier_runs] == [len(tasks), 0]
    # Of another study, nothing is there; a place that is not there yet is as good.
    other = made(kept)
    config = other.config.model_copy(update={"seed": 4})
    for study in (Study.of(config, other.run_config), made(tmp_path / "none")):
        made_now = study.preregister(tmp_path / f"{study.config.seed}.json")
        assert [run.n_finished_tasks for run in made_now.content.earlier_runs] == [0]
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
    with pytest.raises(RunError, match="results exist already") as caught:
        study.preregister(tmp_path / "r.json")
    pairs = {f"{d.name}/{m.name}" for d in study.config.datasets for m in study.config.models}
    for part in ("'run.tasks'", f"a run of the study '{study.config.name}'", *pairs):
        assert part in str(caught.value)
    late = study.preregister(tmp_path / "r.json", after_the_fact=True)
    found = [(run.state, run.n_finished_tasks, {*run.same}) for run in late.content.earlier_runs]
    assert found == [("kept", 0, set()), ("noted", 0, pairs)]
    # A run that was noted and has kept nothing is no hindrance.
    for path in files(kept):
        path.unlink()
    early = study.preregister(tmp_path / "early.json").content
    assert not any(run.has_results for run in early.earlier_runs)


def test_a_note_that_is_damaged_is_stated_and_stops_nobody(
    made: Made, kept: Path, unregistered: tuple[Path, Run], tmp_path: Path
) -> None:
    (note,) = kept.rglob("sources-*")
    whole = note.read_bytes()
    study = with_options(made(kept), memory_gib=1.5)
    for damaged in (whole[:-1], b"", whole.replace(b"sim", b"sam")):
        note.write_bytes(damaged)
        content = study.preregister(tmp_path / f"{len(damaged)}.json").content
        assert [run.state for run in content.earlier_runs] == ["kept", "unreadable note"]
    items = check_run(read_registration(tmp_path / "0.json"), unregistered[1])
    said = items.filter(item=BEFORE_RESULTS).row(0, named=True)
    assert "1 note of earlier runs there could not be read" in said["found"]
    assert note.name in said["detail"]
    # Results of just the same tasks are seen without any note.
    with pytest.raises(RunError, match="of this very study"):
        made(kept).preregister(tmp_path / "r.json")
    # Another run writes it anew.
    made(kept).run(tmp_path / "run", progress=False)
    assert note.read_bytes() == whole
    assert list(kept.rglob("sources-*")) == [note]


def test_files_that_only_begin_like_notes_are_none(made: Made, kept: Path, tmp_path: Path) -> None:
    (note,) = kept.rglob("sources-*")
    for path in (note.with_name(f"{note.name}.5f0c.tmp"), note.with_name("sources-old.json")):
        path.write_bytes(b"")
    note.unlink()
    study = with_options(made(kept), memory_gib=1.5)
    assert [r.state for r in study.preregister(tmp_path / "r").content.earlier_runs] == ["kept"]


def test_a_place_that_cannot_be_written_will_do_where_all_results_are(
    made: Made, kept: Path, unregistered: tuple[Path, Run], tmp_path: Path, monkeypatch: Any
) -> None:
    (note,) = kept.rglob("sources-*")
    note.unlink()
    write = FolderShelf.write

    def closed(self: FolderShelf, name: str, content: bytes) -> None:
        """Results could be written, and notes cannot."""
        with storage_errors(self.path(name), "a file cannot be written"):
            if name.startswith("sources-"):
                raise OSError(errno.EROFS, "Read-only file system")
        write(self, name, content)

    monkeypatch.setattr(FolderShelf, "write", closed)
    run = made(kept).run(tmp_path / "run", progress=False)
    assert run.manifest == unregistered[1].manifest
    # The twin: a result without a note is not made.
    gone = min(files(kept))
    gone.unlink()
    with pytest.raises(RunError, match="Read-only file system"):
        made(kept).run(tmp_path / "second", progress=False)
    assert not gone.exists()
    monkeypatch.setattr(FolderShelf, "write", write)
    made(kept).run(tmp_path / "third", progress=False)
    assert note.exists()
    assert gone.exists()


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
        assert ("other runs on the same data" in said["detail"]) == bool(kept)


def test_workers_mark_what_they_make(made: Made, tmp_path: Path) -> None:
    study, frames = made(), {"t": pl.DataFrame({"x": [1]})}
    store = TaskStore(TaskStore.at(tmp_path / "tasks").shelf, "m")
    workspace = Workspace(study.config, study.run_config)
    pickle.loads(pickle.dumps(Setup.of(workspace, store))).results.save("process", frames)
    assert store.mark_of("process") == "m"
    briefing = unpacked(packed(Briefing.of(workspace, store)))
    store.shelf.write(briefing.probe, b"")
    SharedTasks(briefing.store.shelf, briefing.store.mark, briefing.probe).save("cluster", frames)
    assert store.mark_of("cluster") == "m"
