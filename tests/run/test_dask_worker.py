"""The worker's side of a run on a cluster, without a cluster: what it keeps, refuses and removes."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from cluster_jobs import Numbers, Total, Wrong, task

import lpact
from lpact.inputs.workspace import Workspace
from lpact.run.executors.dask import worker
from lpact.run.executors.dask.terms import Briefing, Done, Lacking, Unfit, packed
from lpact.run.executors.here import Here
from lpact.run.records import TaskRecord
from lpact.store import TaskStore, code_digest

pytest.importorskip("distributed", reason="tool missing: distributed")

STUDY = {
    "name": "nothing",
    "datasets": [{"name": "sim", "reader": "simulated"}],
    "models": [{"name": "integrated", "layers": [1]}],
}
PART = task(Numbers(0))
TOTAL = task(Total((PART.key,)))


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A worker's own folder, in this process."""
    folder = tmp_path / "disk"
    folder.mkdir()
    here = SimpleNamespace(local_directory=str(folder), name="far", address="tcp://far:1")
    for name in ("worker", "fitness"):
        monkeypatch.setattr(f"lpact.run.executors.dask.{name}.this_worker", lambda: here)
    worker._sessions.clear()
    yield folder
    worker._sessions.clear()
    worker._one_thread.restore()


def workspace() -> Workspace:
    return Workspace(lpact.load_study(STUDY).config)


def briefing(store: TaskStore, *, shared: bool) -> bytes:
    """What a client says; with its probe where the worker sees it, or without."""
    made = Briefing.of(workspace(), store)
    if shared:
        store.shelf.write(made.probe, b"")
    return made.packed()


def take(said: bytes, one, parcels=None):
    return worker.take(code_digest(), said, packed([one]), parcels or {})


def test_a_result_that_is_there_is_not_computed_again(disk, tmp_path):
    store = TaskStore.at(tmp_path / "s")
    wrong = task(Wrong())
    store.save(wrong.key, {})
    (answer,) = take(briefing(store, shared=True), wrong)
    assert isinstance(answer, Done)
    assert isinstance(answer.ended, TaskRecord)
    # What lies in a folder that is not the client's says nothing.
    (answer,) = take(briefing(store, shared=False), wrong)
    assert isinstance(answer, Done)
    assert "planted" in answer.ended.what


def test_what_a_run_has_sent_is_removed_after_it(disk, tmp_path):
    store = TaskStore.at(tmp_path / "s")
    list(Here(workspace(), store).run([PART]))
    first = briefing(store, shared=False)
    assert take(first, TOTAL) == [Lacking("tcp://far:1", (PART.key,))]
    (answer,) = take(first, TOTAL, {PART.key: store.content(PART.key)})
    assert isinstance(answer, Done)
    assert isinstance(answer.ended, TaskRecord)
    (folder,) = disk.iterdir()
    assert list(folder.rglob("*.task"))
    for _ in range(worker.KEPT_SESSIONS):
        take(briefing(store, shared=False), PART)
    gc.collect()
    assert not folder.exists()
    assert len(list(disk.iterdir())) == worker.KEPT_SESSIONS


def test_a_worker_that_cannot_keep_what_tasks_need_is_left_out(disk, tmp_path):
    store = TaskStore.at(tmp_path / "s")
    list(Here(workspace(), store).run([PART]))
    said = briefing(store, shared=False)
    assert take(said, TOTAL) == [Lacking("tcp://far:1", (PART.key,))]
    (folder,) = disk.iterdir()
    shutil.rmtree(folder)
    folder.write_text("the disk is broken")
    answer = take(said, TOTAL, {PART.key: store.content(PART.key)})
    assert isinstance(answer, Unfit)
    assert answer.worker == "far"
    assert str(folder) in answer.what
    # One that has no place at all for what it will be sent.
    shutil.move(disk, tmp_path / "elsewhere")
    answer = take(briefing(store, shared=False), PART)
    assert isinstance(answer, Unfit)
    assert str(disk) in answer.what


def test_a_worker_with_other_code_of_a_plugin_is_refused(disk, tmp_path, monkeypatch):
    store = TaskStore.at(tmp_path / "s")
    base = "lpact.run.executors.base.plugin_code"
    monkeypatch.setattr(base, lambda _: (("control mine", "a" * 64), ("measure its", "c" * 64)))
    said = briefing(store, shared=False)
    monkeypatch.setattr(base, lambda _: (("control mine", "b" * 64), ("measure its", "c" * 64)))
    answer = take(said, PART)
    assert isinstance(answer, Unfit)
    assert answer.worker == "far"
    assert f"plugin control mine is {'b' * 16} there and {'a' * 16} here" in answer.what
    assert "measure its" not in answer.what
