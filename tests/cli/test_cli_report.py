"""``lpact report``: writes the page of a finished run and says where it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import lpact as api
from lpact.errors import RunError
from lpact.study import Run
from tiny_study import Lpact, TinyRun


def test_report_says_where_it_is_and_what_is_missing(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    out = tmp_path / "report"
    result = lpact("report", tiny_run.folder, "--out", out, "--no-tables")
    assert result.exit_code == 0
    assert f"Report: {out}/report.html" in result.stdout
    assert (out / "report.html").is_file()
    assert "one file, no network needed" in result.stdout
    # The tiny study has no positive controls.
    said = " ".join(result.stdout.split())
    assert "Not drawn:" in said
    assert "the run has no positive controls ([lpact.assay] enabled = false)" in said
    assert not (out / "tables").exists()


def test_a_folder_with_other_files_is_left_alone(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    result = lpact("report", tiny_run.folder, "--out", tmp_path)
    assert result.exit_code == 2
    assert "mine.txt" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_what_is_no_run_is_refused(lpact: Lpact, tmp_path: Path) -> None:
    result = lpact("report", tmp_path)
    assert result.exit_code == 2
    assert "manifest.json" in result.stderr


@pytest.mark.parametrize("kind", [RunError, RuntimeError])
def test_a_run_stays_good_when_its_report_cannot_be_written(
    lpact: Lpact,
    tiny_run: TinyRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Exception],
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(tiny_run.folder, copy)
    shutil.rmtree(copy / "report")

    def full(*args: object, **kwargs: object) -> None:
        raise kind("there is no space")

    monkeypatch.setattr(Run, "report", full)
    result = lpact("run", tiny_run.study, "--out", copy)
    assert result.exit_code == 1
    assert "The run is complete, but its report could not be written" in result.stderr
    assert "no space" in result.stderr
    assert ("RuntimeError" in result.stderr) == (kind is RuntimeError)
    assert f"lpact report {copy}" in result.stdout
    assert api.open_run(copy).conclusion().outcomes


def test_running_again_removes_what_a_killed_report_left(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(tiny_run.folder, copy)
    left = copy / ".report.partial"
    (left / "new").mkdir(parents=True)
    (left / "new" / "report.html").write_text("half")
    assert lpact("run", tiny_run.study, "--out", copy, "--no-report").exit_code == 0
    assert not left.exists()
    assert (copy / "report" / "report.html").is_file()
