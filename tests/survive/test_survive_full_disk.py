"""A full disk: said so, nothing half written, what was finished kept, and the same bytes when there is space again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from survivors import assert_same_run, computed, events, partial_of, results_in

pytestmark = pytest.mark.stress

SIZE = 32 * 2**20
PAGE = 4096


def pages(sizes: Iterable[int]) -> int:
    """Space that files of these sizes take."""
    return sum(-(-size // PAGE) * PAGE for size in sizes)


def used(folder: Path) -> int:
    """Space that the results of tasks take in a working folder, or all files in a run."""
    found = [*folder.glob("tasks/*/*.task")] or [p for p in folder.rglob("*") if p.is_file()]
    return pages(path.stat().st_size for path in found)


class SmallDisk:
    """A file system of its own in memory, which can be filled up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def leave(self, n_bytes: int) -> None:
        """Fill the disk but for so many bytes."""
        self._ballast.unlink(missing_ok=True)
        found = os.statvfs(self.folder)
        free = found.f_bavail * found.f_frsize
        self._ballast.write_bytes(bytes(max(free - n_bytes, 0)))

    def empty(self) -> None:
        """Make space."""
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path: Path, require_tool: Callable[[str], str]) -> Iterator[SmallDisk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "tmpfs", str(folder)]
    mounted = subprocess.run([require_tool("mount"), *options], capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"tool missing: a user who may mount ({mounted.stderr.strip()})")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run([require_tool("umount"), "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_disk_that_is_full_during_tasks_and_during_publishing(undisturbed, breeder, disk, workers) -> None:
    out = disk.folder / "run"

    def attempt() -> tuple[int, str]:
        process = breeder.command(undisturbed.study, out, "--anyway", "--workers", workers)
        return process.wait(), process.said()

    def refused() -> dict[str, int]:
        code, said = attempt()
        assert code == 2, said
        assert "No space left on device" in said
        assert "free disk space" in said
        assert "finished tasks are kept" in said
        assert "Traceback" not in said
        assert not out.exists()
        assert not [p for part in ("tasks", "run") for p in partial_of(out).glob(f"{part}/**/.*.tmp")]
        return results_in(partial_of(out))

    n_all = len(computed(undisturbed.run))
    disk.leave(PAGE * 64)
    some = refused()
    assert 0 < len(some) < n_all
    # Enough for the other tasks, for the log and for half of the tables.
    left = [e["n_bytes"] for e in events(undisturbed.run, "task_finished")]
    disk.leave(pages(left) - used(partial_of(out)) + PAGE * 32 + used(undisturbed.run) // 2)
    every = refused()
    assert len(every) == n_all
    assert {name: every[name] for name in some} == some
    assert not (partial_of(out) / "run" / "manifest.json").exists()
    disk.empty()
    code, said = attempt()
    assert code == 0, said
    finished = computed(out)
    assert len(finished) == len(set(finished))
    assert set(finished) <= set(computed(undisturbed.run))
    assert_same_run(out, undisturbed.run)


def test_a_disk_without_any_space_is_said_so_before_the_work(undisturbed, breeder, disk) -> None:
    out = disk.folder / "run"
    disk.leave(0)
    process = breeder.command(undisturbed.study, out, "--anyway")
    assert process.wait() == 2, process.said()
    assert "No space left on device" in process.said()
    assert "Traceback" not in process.said()
    assert not out.exists()
    disk.empty()
    assert breeder.start(undisturbed.study, out).wait() == 0
    assert_same_run(out, undisturbed.run)
