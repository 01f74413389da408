"""Ctrl-C and a polite end in the middle of a run, and the same command again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tiny_study import TINY, TinyRun

PATIENCE_S = 120.0


def lpact(*args: object) -> subprocess.Popen[str]:
    """The command in a process group of its own, as in a terminal."""
    return subprocess.Popen(
        [sys.executable, "-c", "from lpact.cli import main; main()", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def results(partial: Path) -> list[Path]:
    return list(partial.glob("tasks/*/*.task"))


def wait_for_a_result(partial: Path, process: subprocess.Popen[str]) -> None:
    """Until the first task of many is finished."""
    deadline = time.monotonic() + PATIENCE_S
    while not results(partial):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "nothing was saved in time"
        time.sleep(0.005)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a run but its report, and its log, which says when and where."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "log.jsonl" and "report" not in path.parts
    }


@pytest.mark.slow
def test_interrupted_run_is_resumed_to_the_same_bytes(tiny_run: TinyRun, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(TINY)
    out = tmp_path / "run"
    partial = tmp_path / "run.partial"

    process = lpact("run", study, "--out", out, "--workers", 2, "--no-report")
    wait_for_a_result(partial, process)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert errors.endswith("interrupted; run the same command again to continue\n")
    assert "Traceback" not in errors
    assert not out.exists()
    saved = {path.name: path.stat().st_ino for path in results(partial)}
    assert saved

    again = lpact("run", study, "--out", out, "--workers", 1, "--no-report")
    said, errors = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0, errors
    assert "what was finished and is the same is used again" in said
    assert not partial.exists()
    expected = contents(tiny_run.folder)
    assert "manifest.json" in expected
    assert contents(out) == expected


@pytest.mark.slow
def test_a_terminated_run_takes_its_workers_with_it(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(TINY)
    partial = tmp_path / "run.partial"
    process = lpact("run", study, "--out", tmp_path / "run", "--workers", 2, "--no-report")
    wait_for_a_result(partial, process)
    process.terminate()
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a worker outlived the run")
