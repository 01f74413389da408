"""What a process that was killed while it wrote a report leaves beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lpact.errors import RunError
from lpact.report.folder import clear_leftovers, new_folder, refuse_being_written


def killed_writer(target: Path, step: str) -> None:
    """A process that ends without a word while it writes, or between the two renames."""
    code = f"""
import os
from pathlib import Path
from lpact.report import folder

target = Path({str(target)!r})
if {step!r} == "exchange":
    def half(made, target):
        target.rename(made.with_name("earlier"))
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


def test_only_one_process_writes_a_report(tmp_path: Path) -> None:
    target = tmp_path / "report"
    with (
        new_folder(target) as made,
        pytest.raises(RunError, match="another process is writing this report"),
        new_folder(target),
    ):
        pass
    assert not made.exists()


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "report"
    others = [tmp_path / name for name in (".report.old.partial", ".report.notes", "reports")]
    for other in others:
        other.mkdir()
    clear_leftovers(target)
    assert all(other.is_dir() for other in others)
