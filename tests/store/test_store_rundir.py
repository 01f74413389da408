from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys

import polars as pl
import pytest
from store_examples import provenance

from lpact.errors import RunError, TableError
from lpact.store import (
    RunWriter,
    StoredRun,
    TaskStore,
    existing_run,
    frame,
    write_manifest,
)
from lpact.store.manifest import build_manifest
from lpact.tables import find_table

MODES = find_table("lpact_reliability_modes")
OUTCOME = find_table("lpact_study_outcome")
FRAMES = {
    MODES.name: frame(
        MODES,
        [
            {
                "dataset": "d",
                "mode": mode,
                "possible": True,
                "n_recordings": 2,
                "reason": "ok",
            }
            for mode in ("split_half", "run_to_run")
        ],
    ),
    OUTCOME.name: frame(
        OUTCOME,
        [
            {
                "gate_profile": "paper",
                "outcome": "D",
                "meaning": "Nothing.",
                "n_claims": 1,
                "n_confirmatory_claims": 1,
                "n_integrated": 0,
            }
        ],
    ),
}
TASK = {"t": pl.DataFrame({"x": [1.5, 2.5]})}


def tree(root) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_publish_leaves_a_complete_run_and_nothing_else(tmp_path) -> None:
    out = tmp_path / "deep" / "run"
    with RunWriter(out, provenance()) as writer:
        writer.tasks.save("k", TASK)
        assert not out.exists()
        assert (tmp_path / "deep" / "run.partial" / "tasks").is_dir()
        stored = writer.publish(FRAMES)
    assert os.listdir(tmp_path / "deep") == ["run"]
    assert sorted(tree(out)) == [
        "audits/lpact_reliability_modes.csv",
        "audits/lpact_reliability_modes.parquet",
        "decisions/lpact_study_outcome.csv",
        "decisions/lpact_study_outcome.parquet",
        "manifest.json",
    ]
    assert stored.root == out
    assert stored.manifest.config_digest == provenance().config_digest


def test_the_bytes_depend_on_neither_interruption_nor_order(tmp_path) -> None:
    with RunWriter(tmp_path / "one", provenance()) as writer:
        writer.publish(FRAMES)
    with RunWriter(tmp_path / "two", provenance()) as writer:
        writer.tasks.save("k", TASK)
    shuffled = {name: FRAMES[name].reverse() for name in reversed(FRAMES)}
    with RunWriter(tmp_path / "two", provenance()) as writer:
        writer.publish(shuffled)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_an_interrupted_run_resumes_its_tasks(tmp_path) -> None:
    out = tmp_path / "run"

    def interrupted() -> None:
        with RunWriter(out, provenance()) as writer:
            writer.tasks.save("done", TASK)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not out.exists()
    with RunWriter(out, provenance()) as writer:
        assert writer.tasks.load("done")["t"].equals(TASK["t"])
        assert writer.tasks.fault("not done") == ""


def test_tasks_can_be_kept_elsewhere_and_stay_there(tmp_path) -> None:
    """Runs of other studies use the same place: what a task's result depends on is in its key."""
    shared = TaskStore(tmp_path / "shared")
    with RunWriter(tmp_path / "run", provenance(), shared) as writer:
        writer.tasks.save("k", TASK)
        writer.publish(FRAMES)
    assert sorted(os.listdir(tmp_path)) == ["run", "shared"]
    with RunWriter(tmp_path / "other", provenance(config={"seed": 9}), shared) as writer:
        assert writer.tasks.load("k")["t"].equals(TASK["t"])


def test_a_failed_publication_leaves_no_run_and_can_be_repeated(tmp_path, monkeypatch) -> None:
    out = tmp_path / "run"

    def full(*_: object) -> None:
        raise RunError("the disk is full")

    with RunWriter(out, provenance()) as writer:
        writer.tasks.save("k", TASK)
        with monkeypatch.context() as patch:
            patch.setattr("lpact.store.rundir.write_manifest", full)
            with pytest.raises(RunError, match="the disk is full"):
                writer.publish({MODES.name: FRAMES[MODES.name]})
        assert not out.exists()
        assert writer.tasks.fault("k") is None
        writer.publish({OUTCOME.name: FRAMES[OUTCOME.name]})
    assert [table.name for table in StoredRun(out).tables()] == [OUTCOME.name]


def test_an_empty_folder_is_taken_over(tmp_path) -> None:
    (tmp_path / "run").mkdir()
    with RunWriter(tmp_path / "run", provenance()) as writer:
        writer.publish(FRAMES)
    assert existing_run(tmp_path / "run", provenance().config_digest) == "complete"


def test_existing_run_tells_what_is_there(tmp_path) -> None:
    out, digest = tmp_path / "run", provenance().config_digest
    assert existing_run(out, digest) == "absent"
    out.mkdir()
    assert existing_run(out, digest) == "absent"
    (out / "notes.txt").write_text("mine")
    assert existing_run(out, digest) == "other"
    write_manifest(out, build_manifest(out, provenance()))
    assert existing_run(out, digest) == "complete"
    assert existing_run(out, "another") == "other"
    (out / "manifest.json").write_text("{")
    assert existing_run(out, digest) == "other"
    assert existing_run(out / "notes.txt", digest) == "other"
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert existing_run(tmp_path / "dangling", digest) == "other"


def test_existing_work_is_never_overwritten(tmp_path) -> None:
    out = tmp_path / "run"
    with RunWriter(out, provenance()) as writer:
        writer.publish(FRAMES)
    before = tree(out)
    with pytest.raises(RunError, match="run of the same configuration"):
        RunWriter(out, provenance())
    with pytest.raises(RunError, match="other files, or a run"):
        RunWriter(out, provenance(config={"seed": 9}))
    assert tree(out) == before
    assert os.listdir(tmp_path) == ["run"]


def test_a_folder_that_fills_up_during_the_run_is_not_replaced(tmp_path) -> None:
    out = tmp_path / "run"
    with RunWriter(out, provenance()) as writer:
        out.mkdir()
        (out / "notes.txt").write_text("mine")
        with pytest.raises(RunError, match="cannot be moved to its place"):
            writer.publish(FRAMES)
    assert tree(out) == {"notes.txt": b"mine"}


def test_a_run_published_while_we_wait_for_the_lock_is_noticed(tmp_path, monkeypatch) -> None:
    out = tmp_path / "run"
    states = iter(["absent", "complete"])
    monkeypatch.setattr("lpact.store.rundir.existing_run", lambda *_: next(states))
    with pytest.raises(RunError, match="run of the same configuration"):
        RunWriter(out, provenance())
    assert os.listdir(tmp_path) == []


def test_another_process_is_kept_out(tmp_path) -> None:
    script = (
        "import sys; from store_examples import provenance; from lpact.store import RunWriter\n"
        "with RunWriter(sys.argv[1], provenance()):\n"
        "    print('locked', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    out = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(RunError, match="another process") as caught:
            RunWriter(out, provenance())
        assert caught.value.where == str(tmp_path / "run.partial" / "lock")
        assert caught.value.got == f"a lock held by process {holder.pid}"
        assert caught.value.remedy
        holder.kill()
    with RunWriter(out, provenance()) as writer:
        writer.publish(FRAMES)


def test_the_same_process_is_kept_out_too(tmp_path) -> None:
    with (
        RunWriter(tmp_path / "run", provenance()),
        pytest.raises(RunError, match="another process"),
    ):
        RunWriter(tmp_path / "run", provenance())


def test_closing_frees_the_lock_although_a_forked_worker_lives_on(tmp_path) -> None:
    script = (
        "import os, sys; from store_examples import provenance; from lpact.store import RunWriter\n"
        "writer = RunWriter(sys.argv[1], provenance())\n"
        "reading, writing = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.close(writing); os.read(reading, 1); os._exit(0)\n"
        "writer.close()\n"
        "with RunWriter(sys.argv[1], provenance()): print('locked again')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.stdout == "locked again\n"


def test_a_full_disk_leaves_no_lock_behind(tmp_path, monkeypatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("lpact.store.disk.os.pwrite", full)
        with pytest.raises(RunError, match="free disk space"):
            RunWriter(tmp_path / "run", provenance())
    with RunWriter(tmp_path / "run", provenance()) as writer:
        assert writer.publish(FRAMES).root == tmp_path / "run"


def test_an_error_after_the_lock_was_taken_lets_go_of_it(tmp_path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise RunError("a file cannot be written", remedy="free disk space")

    with monkeypatch.context() as patch:
        patch.setattr("lpact.store.rundir.atomic_write_bytes", full)
        with pytest.raises(RunError, match="free disk space") as caught:
            RunWriter(tmp_path / "run", provenance())
    # The error is still held, and the half-made writer with it: only letting go frees the lock.
    assert caught.value is not None
    with RunWriter(tmp_path / "run", provenance()) as writer:
        assert writer.publish(FRAMES).root == tmp_path / "run"


def test_a_lock_on_a_removed_folder_is_taken_again(tmp_path, monkeypatch) -> None:
    import fcntl

    partial = tmp_path / "run.partial"
    flock, attempts = fcntl.flock, []

    def remove_first(handle: int, operation: int) -> None:
        if not attempts:
            shutil.rmtree(partial)
        attempts.append(handle)
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with RunWriter(tmp_path / "run", provenance()):
        assert len(attempts) == 2
        assert (partial / "lock").is_file()


def test_a_system_without_locks_is_told(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(RunError, match="cannot lock"):
        RunWriter(tmp_path / "run", provenance())


def test_a_parent_that_is_a_file_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="in the way"):
        RunWriter(tmp_path / "file" / "run", provenance())


def test_undeclared_tables_are_refused(tmp_path) -> None:
    with (
        RunWriter(tmp_path / "run", provenance()) as writer,
        pytest.raises(TableError, match="did you mean"),
    ):
        writer.publish({"decisions/lpact_study_outcom": FRAMES[OUTCOME.name]})
    assert not (tmp_path / "run").exists()


@pytest.fixture
def stored(tmp_path) -> StoredRun:
    with RunWriter(tmp_path / "run", provenance()) as writer:
        return writer.publish(FRAMES)


def test_a_stored_run_reads_its_tables(stored) -> None:
    assert [table.name for table in stored.tables()] == [MODES.name, OUTCOME.name]
    assert stored.table("lpact_study_outcome").equals(FRAMES[OUTCOME.name])
    modes = stored.table(MODES.name)
    assert modes["mode"].to_list() == ["run_to_run", "split_half"]
    assert stored.table("lpact_reliability_modes") is modes
    assert StoredRun(str(stored.root)).manifest == stored.manifest
    assert "run" in repr(stored)


def test_a_stored_run_names_tables_that_it_lacks(stored) -> None:
    with pytest.raises(RunError, match="has no table"):
        stored.table("lpact_decision_table")
    with pytest.raises(TableError, match="there is no table named"):
        stored.table("nonsense")


def test_a_stored_run_notices_changed_and_missing_tables(stored) -> None:
    path = stored.root / f"{MODES.name}.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunError, match="has changed"):
        stored.table(MODES.name)
    path.unlink()
    with pytest.raises(RunError, match="is missing"):
        stored.table(MODES.name)


def test_a_folder_that_is_no_run_cannot_be_opened(tmp_path) -> None:
    with pytest.raises(RunError, match="not a finished run"):
        StoredRun(tmp_path)
