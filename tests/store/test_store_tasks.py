from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_examples import EVERY_TYPE, ROWS, row

from lpact.errors import RunError, TableError
from lpact.store import TaskStore, empty, frame

FRAMES = {
    "audits/every_type": frame(EVERY_TYPE, [row(name="b"), row(name="a")]),
    "scratch": pl.DataFrame({"count": pl.Series([1, 2], dtype=pl.UInt32)}),
    "nothing": empty(EVERY_TYPE),
}


def same(found: dict[str, pl.DataFrame] | None, expected: dict[str, pl.DataFrame]) -> bool:
    return (
        found is not None
        and found.keys() == expected.keys()
        and all(found[k].equals(v) and found[k].schema == v.schema for k, v in expected.items())
    )


@settings(deadline=None)
@given(ROWS, st.text(st.characters(exclude_categories=["Cs"])))
def test_frames_come_back_as_they_were(rows, key) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = TaskStore(Path(folder))
        assert store.load_task(key) is None
        store.save_task(key, {"t": frame(EVERY_TYPE, rows)})
        assert same(store.load_task(key), {"t": frame(EVERY_TYPE, rows)})
        assert store.load_task(key + "x") is None


def test_several_frames_and_none(tmp_path) -> None:
    store = TaskStore(tmp_path)
    store.save_task("a/b c", FRAMES)
    store.save_task("no frames", {})
    assert same(store.load_task("a/b c"), FRAMES)
    assert store.load_task("no frames") == {}


def test_a_second_save_replaces_the_first(tmp_path) -> None:
    store = TaskStore(tmp_path)
    store.save_task("k", FRAMES)
    store.save_task("k", {"scratch": FRAMES["scratch"].head(1)})
    assert same(store.load_task("k"), {"scratch": FRAMES["scratch"].head(1)})


def test_a_store_can_be_sent_to_a_worker(tmp_path) -> None:
    store = TaskStore(tmp_path)
    store.save_task("k", FRAMES)
    assert same(pickle.loads(pickle.dumps(store)).load_task("k"), FRAMES)


def test_every_flipped_byte_makes_the_task_absent(tmp_path) -> None:
    store = TaskStore(tmp_path)
    store.save_task("k", {"scratch": FRAMES["scratch"]})
    files = {path: path.read_bytes() for path in store.folder("k").iterdir()}
    assert len(files) == 2
    for path, whole in files.items():
        for position in range(0, len(whole), 7):
            store.folder("k").mkdir(exist_ok=True)
            for other, content in files.items():
                other.write_bytes(content)
            flipped = bytearray(whole)
            flipped[position] ^= 0x04
            path.write_bytes(flipped)
            assert store.load_task("k") is None
            assert not store.folder("k").exists()


@pytest.mark.parametrize("missing", ["index", "000.arrow"])
def test_a_task_without_one_of_its_files_is_absent_and_removed(tmp_path, missing) -> None:
    store = TaskStore(tmp_path)
    store.save_task("k", FRAMES)
    (store.folder("k") / missing).unlink()
    assert store.load_task("k") is None
    assert not store.folder("k").exists()


def test_a_task_in_the_folder_of_another_is_not_taken_for_it(tmp_path) -> None:
    store = TaskStore(tmp_path)
    store.save_task("k", FRAMES)
    store.folder("k").rename(store.folder("other"))
    assert store.load_task("other") is None


def test_a_process_killed_while_saving_leaves_no_task(tmp_path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "import polars as pl\n"
        "import lpact.store.tasks as tasks\n"
        "write = tasks.atomic_write_bytes\n"
        "def die_before_the_index(path, content):\n"
        "    if path.name == tasks.INDEX_NAME: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    write(path, content)\n"
        "tasks.atomic_write_bytes = die_before_the_index\n"
        "tasks.TaskStore(Path(sys.argv[1])).save_task('k', {'a': pl.DataFrame({'x': [1]})})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.returncode == -signal.SIGKILL
    store = TaskStore(tmp_path)
    assert (store.folder("k") / "000.arrow").is_file()
    assert store.load_task("k") is None
    store.save_task("k", FRAMES)
    assert same(store.load_task("k"), FRAMES)


def test_python_objects_are_refused(tmp_path) -> None:
    objects = pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(TableError, match="plain columns only") as caught:
        TaskStore(tmp_path).save_task("k", {"t": objects})
    assert caught.value.where == "frame 't', column 'x'"


def test_an_unreadable_task_is_an_error_and_is_kept(tmp_path) -> None:
    store = TaskStore(tmp_path)
    store.save_task("k", FRAMES)
    index = store.folder("k") / "index"
    index.unlink()
    index.mkdir()
    with pytest.raises(RunError, match="cannot be read"):
        store.load_task("k")
    assert (store.folder("k") / "000.arrow").is_file()
