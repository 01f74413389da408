"""``lpact lock``: what it says, and that other commands leave a locked run alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lpact.archive import read_lock
from tiny_study import Lpact, TinyRun


@pytest.fixture(scope="module")
def said(lpact: Lpact, tiny_run: TinyRun, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    root = tmp_path_factory.mktemp("lock") / "tiny"
    shutil.copytree(tiny_run.folder, root)
    result = lpact("lock", root)
    assert result.exit_code == 0, result.output
    return root, result.stdout


def test_the_digest_is_printed_on_a_line_of_its_own(said: tuple[Path, str]) -> None:
    root, text = said
    digest = read_lock(root).root_digest
    assert digest in [line.strip() for line in text.splitlines()]
    assert f"verify {root} --digest {digest}" in text


def test_locking_again_says_so(lpact: Lpact, said: tuple[Path, str]) -> None:
    result = lpact("lock", said[0])
    assert result.exit_code == 0
    assert "locked before" in result.stdout
    assert "Nothing differs." in result.stdout


def test_locking_a_locked_run_that_has_changed_fails(lpact: Lpact, said: tuple[Path, str], tmp_path: Path) -> None:
    root = tmp_path / "changed"
    shutil.copytree(said[0], root)
    root.chmod(0o755)
    (root / "new.txt").write_text("mine")
    result = lpact("lock", root)
    assert result.exit_code == 1
    assert "new.txt: was added" in result.stdout


@pytest.mark.parametrize("command", [("report",), ("decide", "--out", "new")])
def test_other_commands_do_not_write_into_it(command: tuple[str, ...], lpact: Lpact, said: tuple[Path, str]) -> None:
    root, _ = said
    more = [root / part if part == "new" else part for part in command[1:]]
    before = sorted(root.rglob("*"))
    result = lpact(command[0], root, *more)
    assert result.exit_code == 2
    assert "error: the" in result.stderr
    assert "locked" in result.stderr or "inside the run" in result.stderr
    assert sorted(root.rglob("*")) == before


def test_a_folder_that_is_no_run(lpact: Lpact, tmp_path: Path) -> None:
    result = lpact("lock", tmp_path)
    assert result.exit_code == 2
    assert "not a finished run" in result.stderr
