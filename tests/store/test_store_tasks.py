from __future__ import annotations

import hashlib
import io
import json
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
from lpact.store import MemoryTasks, TaskStore, empty, frame
from lpact.store.tasks import MAGIC, pack

FRAMES = {
    "audits/every_type": frame(EVERY_TYPE, [row(name="b"), row(name="a")]),
    "scratch": pl.DataFrame({"count": pl.Series([1, 2], dtype=pl.UInt32)}),
    "nothing": empty(EVERY_TYPE),
}
SCRATCH = {"scratch": FRAMES["scratch"]}


def same(found: dict[str, pl.DataFrame] | None, expected: dict[str, pl.DataFrame]) -> bool:
    return (
        found is not None
        and found.keys() == expected.keys()
        and all(found[k].equals(v) and found[k].schema == v.schema for k, v in expected.items())
    )


@pytest.fixture
def store(tmp_path: Path) -> TaskStore:
    return TaskStore(tmp_path / "tasks")


@settings(deadline=None, max_examples=40)
@given(ROWS, st.text(st.characters(exclude_categories=["Cs"])))
def test_frames_come_back_as_they_were(rows, key) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for results in (TaskStore(Path(folder)), MemoryTasks()):
            assert results.fault(key) == ""
            results.save(key, {"t": frame(EVERY_TYPE, rows)})
            assert results.fault(key) is None
            assert same(results.load(key), {"t": frame(EVERY_TYPE, rows)})
            assert results.fault(key + "x") == ""


def test_several_frames_and_none(store) -> None:
    size = store.save("a/b c", FRAMES)
    assert size == store.path("a/b c").stat().st_size
    store.save("no frames", {})
    assert same(store.load("a/b c"), FRAMES)
    assert set(store.names("a/b c")) == set(FRAMES)
    assert store.load("no frames") == {}
    assert store.fault("no frames") is None


def test_single_frames_are_read_without_the_others(store) -> None:
    """A damaged frame is nobody's business who reads another; the whole result is damaged all the same."""
    store.save("k", FRAMES)
    path = store.path("k")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # frames lie in the order of their names: this one is in 'scratch'
    path.write_bytes(content)
    assert same(store.load("k", ["nothing", "absent"]), {"nothing": FRAMES["nothing"]})
    with pytest.raises(RunError, match="frame 'scratch' does not have its checksum"):
        store.load("k", ["scratch"])
    assert "frame 'scratch' does not have its checksum" in (store.fault("k") or "")


def test_a_second_save_replaces_the_first(store) -> None:
    store.save("k", FRAMES)
    store.save("k", {"scratch": FRAMES["scratch"].head(1)})
    assert same(store.load("k"), {"scratch": FRAMES["scratch"].head(1)})


def test_the_bytes_do_not_depend_on_the_order_of_frames() -> None:
    assert pack("k", FRAMES) == pack("k", dict(reversed(FRAMES.items())))
    assert pack("k", FRAMES) != pack("l", FRAMES)


def test_a_store_can_be_sent_to_a_worker(store) -> None:
    store.save("k", FRAMES)
    assert same(pickle.loads(pickle.dumps(store)).load("k"), FRAMES)


def test_every_flipped_byte_is_found(store) -> None:
    store.save("k", SCRATCH)
    path = store.path("k")
    whole = path.read_bytes()
    for position in range(0, len(whole), 3):
        flipped = bytearray(whole)
        flipped[position] ^= 0x04
        path.write_bytes(flipped)
        assert store.fault("k"), position
        with pytest.raises(RunError):
            store.load("k", ["scratch"])
    path.write_bytes(whole)
    assert store.fault("k") is None


def test_every_cut_and_every_addition_is_found(store) -> None:
    store.save("k", SCRATCH)
    path = store.path("k")
    whole = path.read_bytes()
    for length in (*range(0, len(whole), 11), len(whole) - 1):
        path.write_bytes(whole[:length])
        assert store.fault("k"), length
    path.write_bytes(whole + b"\0")
    assert f"{len(whole) + 1} bytes instead of {len(whole)}" in (store.fault("k") or "")


def test_a_damaged_result_is_named_and_refused(store) -> None:
    store.save("k", SCRATCH)
    path = store.path("k")
    path.write_bytes(path.read_bytes()[:-1])
    for read in (store.load, store.names):
        if read == store.names:
            path.write_bytes(b"")
        with pytest.raises(RunError, match="is damaged") as caught:
            read("k")
        assert caught.value.where == str(path)
        assert caught.value.remedy == "run again: it is computed again"
    assert str(path) in (store.fault("k") or "")


def test_the_result_of_one_task_is_not_taken_for_anothers(store) -> None:
    store.save("k", FRAMES)
    store.save("other", SCRATCH)
    store.path("k").replace(store.path("other"))
    assert "the result of another task, k" in (store.fault("other") or "")
    with pytest.raises(RunError, match="another task"):
        store.load("other")


def test_a_missing_result_is_an_error_for_who_reads_it(store) -> None:
    with pytest.raises(RunError, match="a finished task cannot be read"):
        store.load("never")


def test_links_are_followed_when_read_and_replaced_when_written(store, tmp_path) -> None:
    store.save("k", FRAMES)
    path, moved = store.path("k"), tmp_path / "moved"
    path.replace(moved)
    path.symlink_to(moved)
    assert store.fault("k") is None  # the very bytes, wherever they lie
    content = moved.read_bytes()
    moved.write_bytes(content[:-1])
    assert store.fault("k")
    store.save("k", FRAMES)
    assert not path.is_symlink()
    assert moved.read_bytes() == content[:-1]
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    assert store.fault("k") == ""


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused_and_kept(store, kind) -> None:
    """A folder or a pipe is nobody's result; it is not ours to remove, and must not be waited for."""
    path = store.path("k")
    path.parent.mkdir(parents=True)
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    for read in (store.fault, store.load, store.names):
        with pytest.raises(RunError, match="cannot be read") as caught:
            read("k")
        assert caught.value.where == str(path)
        assert "in the way" in str(caught.value.remedy)
    assert path.exists()


def hostile(key: str, frames: object) -> bytes:
    """A bundle whose header has its checksum, and says anything."""
    header = json.dumps({"key": key, "mark": "", "frames": frames}).encode()
    return f"{MAGIC} {hashlib.sha256(header).hexdigest()}\n".encode() + header + b"\n"


def test_a_header_that_never_ends_is_not_one(store) -> None:
    path = store.path("k")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * (50_000))
    assert "does not begin" in (store.fault("k") or "")
    path.write_bytes(f"{MAGIC} {'0' * 64}\n".encode() + b"x" * (50_000))
    assert "header does not have its checksum" in (store.fault("k") or "")


def test_long_headers_are_read(store) -> None:
    many = {f"{'frame' * 20} {i}": FRAMES["scratch"] for i in range(300)}
    store.save("k", many)
    assert store.fault("k") is None
    assert same(store.load("k"), many)


class Trap:
    """Tells when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.putenv, ("LPACT_TRAPPED", "1")) if False else (pytest.fail, ("unpickled",))


def test_pickles_are_never_loaded(store) -> None:
    path = store.path("k")
    path.parent.mkdir(parents=True)
    content = pickle.dumps(Trap())
    path.write_bytes(content)
    assert store.fault("k")
    frame_of_pickle = hostile("k", [["t", len(content), hashlib.sha256(content).hexdigest()]])
    path.write_bytes(frame_of_pickle + content)
    with pytest.raises(RunError):
        store.load("k")


def test_a_bundle_that_was_packed_elsewhere_is_checked(store) -> None:
    content = pack("k", FRAMES)
    store.put("k", content)
    assert store.content("k") == content
    assert same(store.load("k"), FRAMES)
    for wrong in (content[:-1], content + b"x", pack("other", FRAMES), b""):
        with pytest.raises(RunError, match="is damaged"):
            store.put("k", wrong)
    assert store.content("k") == content


def test_a_process_killed_while_saving_leaves_no_task(tmp_path) -> None:
    """Killed with half of the bytes written, and with all of them but before they have the name."""
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "import polars as pl\n"
        "import lpact.store.disk as disk\n"
        "from lpact.store import TaskStore\n"
        "def die(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
        "if sys.argv[2] == 'half':\n"
        "    class Half:\n"
        "        def __init__(self, handle): self.handle = handle\n"
        "        def write(self, b): self.handle.write(b[:len(b) // 2]); self.handle.flush(); die()\n"
        "    write = disk.atomic_write\n"
        "    disk.atomic_write = lambda path, w: write(path, lambda handle: w(Half(handle)))\n"
        "else:\n"
        "    Path.replace = die\n"
        "TaskStore(Path(sys.argv[1])).save('k', {'a': pl.DataFrame({'x': [1]})})\n"
    )
    for moment in ("half", "all"):
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / moment), moment],
            check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        assert done.returncode == -signal.SIGKILL
        (left,) = (p for p in (tmp_path / moment).rglob("*") if p.is_file())
        assert left.suffix == ".tmp"
        assert left.stat().st_size > 0
        store = TaskStore(tmp_path / moment)
        assert store.fault("k") == ""
        store.save("k", FRAMES)
        assert same(store.load("k"), FRAMES)


def test_python_objects_are_refused(store, tmp_path) -> None:
    objects = pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(TableError, match="plain columns only") as caught:
        store.save("k", {"t": objects})
    assert caught.value.where == "frame 't', column 'x'"
    assert list(tmp_path.rglob("*")) == []


def test_frames_are_plain_arrow_files(store) -> None:
    """Another reader of Arrow finds what the header says."""
    import pyarrow.ipc

    store.save("k", SCRATCH)
    content = store.path("k").read_bytes()
    first, header, rest = content.split(b"\n", 2)
    ((name, n_bytes, digest),) = json.loads(header)["frames"]
    part = rest[:n_bytes]
    assert first.decode() == f"{MAGIC} {hashlib.sha256(header).hexdigest()}"
    assert (name, digest) == ("scratch", hashlib.sha256(part).hexdigest())
    assert pyarrow.ipc.open_file(io.BytesIO(part)).read_all().to_pydict() == {"count": [1, 2]}


def test_a_mark_goes_with_a_result_and_changes_nothing_else(store: TaskStore) -> None:
    marked = TaskStore(store.root, 'm"\n')
    store.save("plain", FRAMES)
    marked.save("k", FRAMES)
    for own in (store, marked):
        assert (own.mark_of("plain"), own.mark_of("k")) == ("", 'm"\n')
        assert own.fault("k") is None
        assert same(own.load("k"), FRAMES)
    headers = [json.loads(pack("k", FRAMES, mark).split(b"\n")[1]) for mark in ("", "m")]
    assert headers[0]["mark"] == ""
    assert headers[1] == headers[0] | {"mark": "m"}
    assert store.has("k")
    assert not store.has("other")
