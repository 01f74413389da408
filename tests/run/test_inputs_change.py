"""Sources that change after the audit: no result is kept under checksums that are not those of what was read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
import zarr

import lpact
from lpact.analyses.base import Scope, Task
from lpact.analyses.lpact.analysis import LPact
from lpact.analyses.lpact.jobs import BrainJob
from lpact.datasets.folder import write_folder
from lpact.errors import InputError, RunError, StudyInputError
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study, study_keys
from lpact.run.conductor import Measuring
from lpact.run.executors.local import Setup, TaskFailure, TaskRecord, perform
from lpact.run.progress import Reporter
from lpact.store import MemoryTasks, frame
from lpact.study import Run, Study
from lpact.tables import MODEL_FILES

SIMULATED: dict[str, Any] = {
    "n_subjects": 1,
    "n_runs": 2,
    "n_stories": 2,
    "sentences_per_story": 8,
    "n_units": 6,
    "n_mechanism_units": 2,
}
STUDY: dict[str, Any] = {
    "name": "changing",
    "seed": 3,
    "datasets": [{"name": "mine", "reader": "folder", "grid": {"lags_ms": [100.0]}}],
    "models": [{"name": "integrated", "layers": [2]}],
    "readout": {"alphas": [10.0], "folds": 3, "gap_events": 2, "min_train_events": 30},
    "controls": {"include": ["circular_shift"], "draws": 1},
    "mechanisms": {"include": ["surprisal", "context_update"]},
    "lpact": {
        "relational": {"alignments": ["linear"], "profiles": ["pearson"]},
        "stripping": {"methods": ["feature_zeroing"], "mismatch_draws": 1},
        "assay": {"enabled": False},
    },
}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = {"name": "sim", "reader": "simulated", "options": SIMULATED}
    study = lpact.load_study(STUDY | {"datasets": [made]})
    folder = tmp_path_factory.mktemp("changing") / "data"
    write_folder(Workspace(study.config).dataset("sim"), folder)
    return folder


@pytest.fixture
def folder(clean: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(clean, tmp_path / "data"))


def load(folder: Path, **run: str) -> Study:
    return lpact.load_study(STUDY | {"run": {"paths": {"mine": str(folder)}, **run}})


def neural(folder: Path) -> Path:
    return sorted(folder.glob("recordings/*/neural.npy"))[0]


def reverse(path: Path) -> None:
    np.save(path, np.ascontiguousarray(np.load(path)[::-1]))


STEPS: dict[str, tuple[Any, str]] = {"measure": (Measuring, "run"), "decide": (LPact, "decide")}


def before(monkeypatch: pytest.MonkeyPatch, step: str, act: Callable[[], object]) -> None:
    """Do something once, when a run comes to a step."""
    place, name = STEPS[step]
    own = getattr(place, name)

    def acting(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(place, name, own)
        act()
        return own(*args, **more)

    monkeypatch.setattr(place, name, acting)


def outputs(run: Run) -> dict[str, str]:
    return {f.path: f.sha256 for f in run.manifest.outputs}


# -- datasets ----------------------------------------------------------------------------------------


def test_no_result_of_changed_sources_is_kept(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, file = tmp_path / "store", neural(folder)
    content = file.read_bytes()
    before(monkeypatch, "measure", lambda: reverse(file))
    with pytest.raises(RunError) as caught:
        load(folder, tasks=str(store)).run(tmp_path / "one", progress=False)
    for part in (str(file), "dataset 'mine'", "SHA-256", "run it again"):
        assert part in str(caught.value)
    assert not (tmp_path / "one").exists()
    assert not list(store.rglob("*.task"))
    file.write_bytes(content)
    shared = load(folder, tasks=str(store)).run(tmp_path / "two", progress=False)
    own = load(folder).run(tmp_path / "three", progress=False)
    assert outputs(shared) == outputs(own)


def test_a_change_at_the_end_is_not_published(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = next(folder.glob("stimuli/*/words.tsv"))
    before(monkeypatch, "decide", lambda: words.write_text(words.read_text() + "\n"))
    with pytest.raises(InputError, match="has changed since the audit") as caught:
        load(folder).run(tmp_path / "out", progress=False)
    assert caught.value.where == str(words)
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_touched_is_no_change(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = neural(folder)
    first = load(folder).run(tmp_path / "one", progress=False)
    before(monkeypatch, "measure", lambda: os.utime(file))
    again = load(folder).run(tmp_path / "two", progress=False)
    assert outputs(first) == outputs(again)


def test_a_plan_is_held_against_the_files(folder: Path, tmp_path: Path) -> None:
    study = load(folder)
    plan = study.plan()
    reverse(neural(folder))
    with pytest.raises(RunError, match="has changed since the audit"):
        study.run(tmp_path / "out", plan=plan, progress=False)
    assert not (tmp_path / "out").exists()
    assert study.run(tmp_path / "out", progress=False).root.exists()


@dataclass(frozen=True)
class Reading:
    """A job that reads a file, while others may write it."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    name: ClassVar[str] = "reading"
    scope: ClassVar[Scope] = Scope("mine")

    file: Path
    disturb: Callable[[], Callable[[], object]]

    def run(self, workspace: Workspace, results: Any) -> dict[str, pl.DataFrame]:
        put_back = self.disturb()
        seen = pl.DataFrame({"first": [float(np.load(self.file)[0, 0])]})
        put_back()
        return {"seen": seen}


def audited(folder: Path) -> tuple[Workspace, StudyAudit]:
    study = load(folder)
    workspace = Workspace(study.config, study.run_config)
    return workspace, audit_study(workspace, Reporter())


def test_what_was_put_back_meanwhile_is_read_again(folder: Path) -> None:
    workspace, _ = audited(folder)
    file = neural(folder)
    content, times = file.read_bytes(), [1]

    def disturb() -> Callable[[], object]:
        if not times:
            return lambda: None
        times.pop()
        reverse(file)
        return lambda: file.write_bytes(content)

    right, results = float(np.load(file)[0, 0]), MemoryTasks()
    assert isinstance(perform(Task(Reading(file, disturb), "k"), workspace, results), TaskRecord)
    assert results.load("k")["seen"]["first"].to_list() == [right]
    times.extend([1] * 10)
    ended = perform(Task(Reading(file, disturb), "l"), workspace, results)
    assert isinstance(ended, TaskFailure)
    assert "keep changing" in ended.what
    assert results.fault("l") is not None


def test_what_was_read_of_a_changed_file_is_not_used_after_it_is_put_back(folder: Path) -> None:
    workspace, _ = audited(folder)
    file, results = neural(folder), MemoryTasks()
    content = file.read_bytes()
    quiet = Reading(file, lambda: lambda: None)
    assert isinstance(perform(Task(quiet, "k"), workspace, results), TaskRecord)
    reverse(file)
    assert isinstance(perform(Task(quiet, "l"), workspace, results), TaskFailure)
    file.write_bytes(content)
    assert isinstance(perform(Task(quiet, "m"), workspace, results), TaskFailure)
    assert isinstance(perform(Task(quiet, "m"), audited(folder)[0], results), TaskRecord)


@pytest.mark.parametrize("same", [True, False])
def test_a_worker_looks_before_it_reads(folder: Path, same: bool) -> None:
    workspace, audit = audited(folder)
    file, results = neural(folder), MemoryTasks()
    keys = study_keys(workspace.config, audit, "lpact")
    recordings = audit.of["lpact"].detail["mine"].recordings
    tasks = keys.tasks([BrainJob("mine", recording.id) for recording in recordings])
    setup = Setup.of(workspace)
    other = file.with_name("other.npy")
    shutil.copy(file, other)
    if not same:
        reverse(other)
    os.replace(other, file)  # as on another disk: another inode, other times
    worker = setup.workspace()
    for task in tasks:
        ended = perform(task, worker, results)
        assert isinstance(ended, TaskRecord if same else TaskFailure)
    if not same:
        assert isinstance(ended, TaskFailure)
        assert str(file) in ended.what


def test_sources_that_are_generated_are_not_watched() -> None:
    made = {"name": "sim", "reader": "simulated", "options": SIMULATED}
    workspace = Workspace(lpact.load_study(STUDY | {"datasets": [made]}).config)
    audit_study(workspace, Reporter())
    assert workspace.watch.seen == {}
    assert workspace.check_sources() is False


def test_files_that_change_during_the_audit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, inspection = neural(folder), Workspace.inspection

    def changing(self: Workspace, *args: Any) -> Any:
        found = inspection(self, *args)
        monkeypatch.setattr(Workspace, "inspection", inspection)
        reverse(file)
        return found

    monkeypatch.setattr(Workspace, "inspection", changing)
    with pytest.raises(StudyInputError, match="has changed since the audit"):
        load(folder).audit()


# -- features that were extracted ---------------------------------------------------------------------


def reading(tmp_path: Path, **run: str) -> Study:
    pytest.importorskip("transformers", reason="tool missing: transformers")
    made = {
        "name": "sim",
        "reader": "simulated",
        "grid": {"lags_ms": [100.0]},
        "options": SIMULATED | {"text": "prose"},
    }
    changes = {
        "datasets": [made],
        "models": [{"name": "lpact-tiny", "source": "transformers", "layers": [1]}],
        "run": {"features": str(tmp_path / "features"), **run},
    }
    return lpact.load_study(STUDY | changes)


def turn(tmp_path: Path, context: str = "full") -> Path:
    """Reverse the words of a set, in files that are whole."""
    (path,) = (tmp_path / "features" / "lpact-tiny").glob(f"{context}-*")
    array = zarr.open_array(str(path / "features.zarr" / "hidden"), mode="r+")
    array[:] = array[:][:, ::-1]
    return path


def sets(run: Run | StudyAudit) -> dict[str, str]:
    table = run.tables[MODEL_FILES.name] if isinstance(run, StudyAudit) else run.table(MODEL_FILES.name)
    rows = table.filter(pl.col("path").str.starts_with("features/"))
    return dict(rows.select("path", "sha256").iter_rows())


def test_extracted_features_are_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = reading(tmp_path, tasks=str(tmp_path / "store"))
    study.preregister(tmp_path / "early.json")
    planned = study.audit()
    assert sets(planned) == {}
    assert planned.sets_to_come > 1
    first = study.run(tmp_path / "one", preregistration=tmp_path / "early.json", progress=False)
    items = first.table("preregistration_items")
    assert items.filter(~pl.col("followed"))["item"].to_list() == []
    found = sets(first)
    assert len(found) == planned.sets_to_come
    assert all(path.startswith("features/sim/") for path in found)
    listed = {f.path: f.sha256 for f in first.manifest.inputs if f.dataset == "model lpact-tiny"}
    assert found.items() <= listed.items()
    study.preregister(tmp_path / "late.json", after_the_fact=True)

    # Arrays that are others than those that were written are not read.
    path = turn(tmp_path)
    with pytest.raises(StudyInputError) as caught:
        study.run(tmp_path / "two", progress=False)
    for part in (str(path), "have changed since they were extracted", "extract the features again"):
        assert part in str(caught.value)
    assert not (tmp_path / "two").exists()

    # A set that is as whole as the first, and another: no result of the first is taken, and the registration knows.
    record = path / "set.json"
    values = json.loads(record.read_text())
    del values["sha256"]
    record.write_text(json.dumps(values))
    second = study.run(tmp_path / "two", preregistration=tmp_path / "late.json", progress=False)
    assert {p for p in found if sets(second)[p] != found[p]} == {f"features/sim/{path.name}"}
    name = "predictive_control_deltas"
    assert not second.table(name).equals(first.table(name))
    missed = second.table("preregistration_items").filter(~pl.col("followed"), item_group="models")
    assert missed["item"].to_list() == [f"lpact-tiny, file features/sim/{path.name}"]
    record.write_text(json.dumps(values | {"sha256": sets(second)[f"features/sim/{path.name}"]}))

    # The same while a run is at work.
    before(monkeypatch, "measure", lambda: turn(tmp_path))
    with pytest.raises(RunError, match="features of model 'lpact-tiny' for dataset 'sim'"):
        reading(tmp_path).run(tmp_path / "three", progress=False)
    assert not (tmp_path / "three").exists()

    # A finished run is opened again when its features are gone: they would come from the same files.
    shutil.rmtree(tmp_path / "features")
    assert study.run(tmp_path / "one", progress=False).root == first.root


def test_features_of_other_datasets_do_not_change_a_key(folder: Path) -> None:
    workspace, audit = audited(folder)

    def keys(dataset: str, sha256: str) -> list[str]:
        row = {
            "model": "integrated",
            "path": f"features/{dataset}/full-0",
            "n_bytes": 1,
            "sha256": sha256 * 64,
            "source": "",
        }
        tables = {**audit.tables, MODEL_FILES.name: frame(MODEL_FILES, [row])}
        made = study_keys(workspace.config, replace(audit, tables=tables), "lpact")
        return [made._digest_of(Scope("mine", ("integrated",)))]

    assert keys("mine", "1") != keys("mine", "2")
    assert keys("other", "1") == keys("other", "2")
