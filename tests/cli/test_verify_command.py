"""``lpact verify``: exit status, what is named on a terminal and in JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lpact.archive import lock_run
from tiny_study import Lpact, TinyRun


@pytest.fixture
def root(tiny_run: TinyRun, tmp_path: Path) -> Path:
    """A locked copy whose folder, and no file in it, can be written to."""
    folder = tmp_path / "tiny"
    shutil.copytree(tiny_run.folder, folder)
    lock_run(folder)
    folder.chmod(0o755)
    return folder


def test_a_run_that_is_right(lpact: Lpact, root: Path) -> None:
    digest = json.loads((root / "lock.json").read_text())["root_digest"]
    result = lpact("verify", root, "--digest", digest, "--no-report")
    assert result.exit_code == 0, result.output
    assert "The root digest is the given one." in result.stdout
    assert "This is the run that was locked under the given digest." in result.stdout
    assert "The report was not checked." in result.stdout


def test_without_a_digest_little_is_proven(lpact: Lpact, root: Path) -> None:
    result = lpact("verify", root, "--no-report")
    assert result.exit_code == 0
    assert "this does not prove that the numbers are those that were locked" in result.stdout
    assert "--digest" in result.stdout
    values = json.loads(lpact("verify", root, "--no-report", "--json").stdout)
    assert (values["ok"], values["quoted"]) == (True, False)
    assert "does not prove" in values["proven"]


def test_what_differs_is_listed_and_the_exit_status_is_one(lpact: Lpact, root: Path) -> None:
    for i in range(14):
        (root / f"[red]{i:02}\x1b[31m").write_text("x")
    result = lpact("verify", root, "--no-report")
    assert result.exit_code == 1
    assert "Files (14)" in result.stdout
    assert "[red]00\\x1b[31m: was added" in result.stdout
    assert "and 4 more; --json lists all" in result.stdout
    assert "14 problems found." in result.stdout
    assert "\x1b" not in result.stdout


def test_json_names_all(lpact: Lpact, root: Path) -> None:
    for i in range(14):
        (root / f"{i:02}").write_text("x")
    result = lpact("verify", root, "--no-report", "--json", "--digest", "0" * 64)
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert found["ok"] is False
    assert found["locked"] is True
    assert len(found["problems"]) == 15
    assert {problem["kind"] for problem in found["problems"]} == {"file", "lock"}


def test_a_run_that_is_not_locked_says_so(lpact: Lpact, tiny_run: TinyRun) -> None:
    result = lpact("verify", tiny_run.folder, "--no-report")
    assert result.exit_code == 0, result.output
    assert "whether its numbers were changed is not known" in result.stdout


def test_neither_run_nor_archive(lpact: Lpact, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_text("no zip file, but long enough for one")
    for path, why in ((tmp_path / "none", "not a finished run"), (tmp_path / "x.zip", "refused")):
        result = lpact("verify", path)
        assert result.exit_code == 2
        assert why in result.stderr
