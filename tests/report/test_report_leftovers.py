"""What a process that was killed while it wrote a report leaves beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lpact.errors import RunError
from lpact.report import folder
from lpact.report.folder import (
    MADE,
    clear_leftovers,
    new_folder,
    refuse_being_written,
    report_writer,
)


def killed_writer(target: Path, step: str) -> None:
    """A process that ends without a word while it writes, or between the two renames."""
    code = f"""
import os
from pathlib import Path
from lpact.report import folder

target = Path({str(target)!r})
if {step!r} == "exchange":
    made = folder._exchange

    def half(made, target, before):
        target.rename(before)
        os.kill(os.getpid(), 9)

    folder._exchange = half
with folder.new_folder(target) as made:
    (made / "page").write_text("new")
    if {step!r} == "writing":
        os.kill(os.getpid(), 9)
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False)
    assert ended.returncode == -9


def test_a_report_that_was_being_written_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "report"
    killed_writer(target, "writing")
    assert len(list(tmp_path.iterdir())) == 1
    refuse_being_written(target)
    clear_leftovers(target)
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_was_being_replaced_is_put_back(tmp_path: Path) -> None:
    target = tmp_path / "report"
    with new_folder(target) as made:
        (made / "page").write_text("old")
    killed_writer(target, "exchange")
    assert not target.exists()
    clear_leftovers(target)
    assert (target / "page").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_the_next_report_clears_up(tmp_path: Path) -> None:
    target = tmp_path / "report"
    killed_writer(target, "writing")
    with new_folder(target) as made:
        (made / "page").write_text("newer")
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_report_at_work_is_left_alone_and_named(tmp_path: Path) -> None:
    target = tmp_path / "report"
    with new_folder(target) as made:
        clear_leftovers(target)
        assert made.is_dir()
        with pytest.raises(RunError, match=f"process {os.getpid()}"):
            refuse_being_written(target)
    refuse_being_written(target)


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "report"
    others = [tmp_path / name for name in (".report.old.partial", ".report.notes", "reports")]
    for other in others:
        other.mkdir()
    clear_leftovers(target)
    assert all(other.is_dir() for other in others)


def planted(target: Path, process: str, ending: str = MADE) -> Path:
    path = target.with_name(f".{target.name}.{folder._here()}-{process}-0123abcd{ending}")
    path.mkdir()
    return path


@pytest.mark.parametrize(
    "process", ["this-feedbeef", "this", "1-feedbeef", "1", "999999999-feedbeef"]
)
def test_a_process_that_has_the_number_of_a_dead_one_is_not_taken_for_it(
    process: str, tmp_path: Path
) -> None:
    """Numbers are used again, and in a container number 1 always lives."""
    target = tmp_path / "report"
    left = planted(target, process.replace("this", str(os.getpid())))
    assert report_writer(target) is None
    refuse_being_written(target)
    clear_leftovers(target)
    assert not left.exists()


def test_a_process_that_lives_is_told_by_when_it_began(tmp_path: Path) -> None:
    target = tmp_path / "report"
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        left = planted(target, f"{process.pid}-{folder.started(process.pid)}")
        assert folder.started(process.pid) != folder.started(1)
        assert report_writer(target) == process.pid
        clear_leftovers(target)
        assert left.is_dir()
    finally:
        process.communicate(b"\n")
    assert report_writer(target) is None
    clear_leftovers(target)
    assert not left.exists()


def test_the_beginning_of_a_process_is_known_without_proc() -> None:
    first = folder._started_by_ps(os.getpid())
    assert first == folder._started_by_ps(os.getpid())
    assert folder._started_by_ps(999_999_999) == "0"
