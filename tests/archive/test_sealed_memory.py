"""Where memory is short, honest runs are read all the same, or it is said so; nothing is called damaged."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tampering import edit_table

import lpact.archive.apart as sealed_apart
import lpact.archive.check_tables as check_tables
from lpact.archive import export_run, lock_run, opened_run, verify_run
from lpact.archive.apart import Apart, FailedError, ShortError, apart, module_folders
from lpact.archive.memory import free_memory, memory_of
from lpact.errors import RunError

pytestmark = pytest.mark.ordeal

resource = pytest.importorskip("resource")
Copy = Callable[[], Path]
DECISIONS = "decisions/lpact_decision_table"
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="needs /proc")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is read here, though other tests have read it before."""
    monkeypatch.setattr(check_tables, "_right", {})


def take(reader: Apart, root: Path) -> dict[str, Any]:
    return reader.ask({"task": "take", "root": str(root), "table": DECISIONS}, n_bytes=2**20)


def little_memory(monkeypatch: pytest.MonkeyPatch, n_bytes: int) -> None:
    for module in (sealed_apart, check_tables):
        monkeypatch.setattr(module, "free_memory", lambda: n_bytes)


def swell(root: Path) -> None:
    """A text of 40 MB, in a table that is small otherwise."""
    first = pl.int_range(pl.len()) == 0
    text = pl.when(first).then(pl.lit("long " * 8_000_000)).otherwise("reason")
    edit_table(root, DECISIONS, lambda frame: frame.with_columns(reason=text))


def hold_to(monkeypatch: pytest.MonkeyPatch, n_bytes: int) -> None:
    """Let a table take so many bytes of memory, and no more for a large one."""
    for name in ("ALWAYS_MEMORY", "LEAST_MEMORY"):
        monkeypatch.setattr(sealed_apart, name, n_bytes)
    monkeypatch.setattr(sealed_apart, "MEMORY_PER_BYTE", 0)


@pytest.mark.parametrize("free_mib", [0, 256, 700])
def test_an_honest_run_is_read_where_little_memory_is_free(
    free_mib: int, locked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little_memory(monkeypatch, free_mib * 2**20)
    assert verify_run(locked, report=False).problems == ()


@needs_proc
def test_reserved_memory_does_not_count(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads and allocators reserve gigabytes that nobody uses: 64 MiB are enough for a small table."""
    hold_to(monkeypatch, 2**26)
    with closing(Apart()) as reader:
        assert take(reader, locked)["readable"]


@needs_proc
def test_a_table_that_takes_too_much_memory_or_time_is_not_called_damaged(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy()
    swell(root)
    with closing(Apart()) as reader:
        with monkeypatch.context() as patch:
            hold_to(patch, 2**24)
            with pytest.raises(ShortError, match="not enough memory here to read it") as large:
                take(reader, root)
        assert take(reader, root)["readable"]
        monkeypatch.setattr(sealed_apart, "LEAST_SECONDS", 0.2)
        monkeypatch.setattr(sealed_apart, "SECONDS_PER_BYTE", 0.0)
        os.kill(reader._process.pid, signal.SIGSTOP)
        with pytest.raises(ShortError, match=r"not enough time .* was stopped after 0 s") as late:
            take(reader, root)
    for error in (large.value, late.value):
        assert "damaged" not in str(error)
        assert "restore" not in str(error)


@pytest.mark.parametrize(
    ("ended_by", "kind", "damaged"),
    [(signal.SIGKILL, ShortError, False), (signal.SIGSEGV, FailedError, True)],
)
def test_only_a_crash_is_called_damage(
    ended_by: signal.Signals,
    kind: type[FailedError],
    damaged: bool,
    locked: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system ends processes by SIGKILL where memory runs out."""
    with closing(Apart()) as reader:
        reader._get_ready()
        os.kill(reader._process.pid, ended_by)
        reader._process.wait()
        monkeypatch.setattr(reader, "_get_ready", lambda: None)
        with pytest.raises(kind) as met:
            take(reader, locked)
    assert type(met.value) is kind
    assert ("it is damaged or cannot be read" in str(met.value)) == damaged


def test_tables_that_are_not_held_together_are_not_added_up(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory for the largest table, and not for all of them: a run is locked, one table at a time."""
    sizes: list[int] = []
    add = check_tables.SealedTables.add

    def noting(self: Any, table: Any, path: Path, found: dict[str, Any]) -> None:
        sizes.append(found["n_bytes"])
        add(self, table, path, found)

    monkeypatch.setattr(check_tables.SealedTables, "add", noting)
    root = copy()
    (root / "lock.json").unlink()
    shutil.copytree(root, root.with_name("again"))
    lock_run(root)
    monkeypatch.setattr(check_tables, "ALWAYS_HELD", 0, raising=False)
    n_tables, most = len(sizes), int(1.4 * max(sizes))
    assert most < sum(sizes)
    monkeypatch.setattr(check_tables, "_right", {})
    monkeypatch.setattr(check_tables, "free_memory", lambda: most)
    assert lock_run(root.with_name("again")).n_tables == n_tables


def test_a_run_that_does_not_fit_is_neither_locked_nor_exported_nor_called_damaged(
    copy: Copy, locked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy()
    (root / "lock.json").unlink()
    monkeypatch.setattr(check_tables, "ALWAYS_HELD", 0, raising=False)
    monkeypatch.setattr(check_tables, "free_memory", lambda: 1000)
    found = verify_run(locked, report=False)
    assert {problem.kind for problem in found.problems} == {"limit"}
    assert not found.ok
    with pytest.raises(RunError) as lock:
        lock_run(root)
    with pytest.raises(RunError) as export:
        export_run(locked, tmp_path / "x.zip")
    for error in (lock.value, export.value):
        assert error.what.startswith("there is not enough memory or time here")
        assert "not enough memory here to read it" in str(error.got)
        assert "restore" not in str(error)
        assert "disagree" not in str(error)


@needs_proc
def test_an_archive_that_does_not_fit_is_not_called_damaged(
    locked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = export_run(locked, tmp_path / "x.zip")
    hold_to(monkeypatch, -(2**40))
    monkeypatch.setattr("lpact.archive.apart_watch.LOOK_S", 0.0)
    with pytest.raises(ShortError, match="not enough memory here"), opened_run(made.path):
        pass


def group(folder: Path, limit: int | str, used: int, **stat: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text("".join(f"{name} {n}\n" for name, n in stat.items()))


def test_free_memory_is_that_of_the_own_group_and_files_at_hand_do_not_count(
    tmp_path: Path,
) -> None:
    meminfo, own, groups = tmp_path / "meminfo", tmp_path / "cgroup", tmp_path / "groups"
    meminfo.write_text("MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 8000 kB\n")
    own.write_text("0::/jobs/one\n")
    assert free_memory(meminfo, groups, own) == 8000 * 1024
    group(groups, "max", 5_000_000, inactive_file=0)
    group(
        groups / "jobs",
        6_000_000,
        5_900_000,
        anon=400_000,
        inactive_file=5_000_000,
        active_file=500_000,
    )
    assert free_memory(meminfo, groups, own) == 5_600_000
    group(groups / "jobs" / "one", 3_000_000, 2_000_000, inactive_file=100)
    assert free_memory(meminfo, groups, own) == 1_000_100
    own.write_text("4:memory:/x\n")
    older = groups / "memory" / "x"
    older.mkdir(parents=True)
    (older / "memory.limit_in_bytes").write_text("1000000")
    (older / "memory.usage_in_bytes").write_text("900000")
    (older / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 700000\n")
    assert free_memory(meminfo, groups, own) == 800_000


@needs_proc
def test_memory_of_a_process_is_what_it_has_and_not_what_it_reserves() -> None:
    import mmap

    before = memory_of(os.getpid())
    assert before is not None
    with closing(mmap.mmap(-1, 2**28, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)) as room:
        assert (memory_of(os.getpid()) or 0) < before + 2**27
        room.write(b"x" * 2**27)
        assert (memory_of(os.getpid()) or 0) > before + 2**26
    assert memory_of(2**30) is None


def test_a_reader_that_crashes_leaves_nothing_where_one_stands(
    locked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    monkeypatch.chdir(tmp_path)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        with closing(Apart()) as reader:
            reader._get_ready()
            if Path("/proc/self/cwd").exists():
                assert os.readlink(f"/proc/{reader._process.pid}/cwd") != str(tmp_path)
            os.kill(reader._process.pid, signal.SIGABRT)
            assert reader._process.wait() == -signal.SIGABRT
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_named_from_where_one_stands(
    locked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process stands elsewhere, and one may go elsewhere after it was started."""
    with closing(Apart()) as reader:
        reader._get_ready()
        monkeypatch.chdir(locked.parent)
        assert take(reader, Path(locked.name))["readable"]


def test_the_other_process_takes_no_module_from_the_folder_one_stands_in(
    locked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may stand in the very run that is verified; Python puts that folder first, empty or by its name."""
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    (tmp_path / "pyarrow.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for first in ("", ".", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [first, *sys.path])
        with closing(Apart()) as reader:
            assert take(reader, locked)["readable"]


def test_a_path_among_module_folders_is_one(
    locked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path, None])
    assert str(tmp_path) in module_folders()
    with closing(Apart()) as reader:
        assert take(reader, locked)["readable"]


class _Taken(list[Apart]):
    """A list from which another thread has just taken the last one."""

    def __len__(self) -> int:
        return 1

    def pop(self, _: Any = -1) -> Apart:
        raise IndexError


def test_a_process_that_another_thread_takes_is_not_missed(
    locked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_apart, "_idle", _Taken())
    with apart() as reader:
        assert take(reader, locked)["readable"]
