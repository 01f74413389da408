"""Ctrl-C in the middle of a run, and the same command again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_study import TINY

DRAWS = 40
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


def wait_for(condition: object, process: subprocess.Popen[str]) -> None:
    assert callable(condition)
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "nothing was saved in time"
        time.sleep(0.005)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_interrupted_run_is_resumed_to_the_same_bytes(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(TINY.replace("\ndraws = 1", f"\ndraws = {DRAWS}"))
    out = tmp_path / "run"
    partial = tmp_path / "run.partial"
    args = ("run", study, "--out", out, "--workers", 2, "--no-report")

    process = lpact(*args)
    wait_for(lambda: len(list(partial.glob("tasks/*/*"))) >= 4, process)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert errors.endswith("interrupted; run the same command again to resume\n")
    assert "Traceback" not in errors
    assert not out.exists()
    saved = len(list(partial.glob("tasks/*/*")))
    assert saved >= 4

    again = lpact(*args)
    said, errors = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0, errors
    assert "what was finished of this very study is used again" in said
    assert not partial.exists()

    undisturbed = lpact("run", study, "--out", tmp_path / "whole", "--workers", 1, "--no-report")
    undisturbed.communicate(timeout=PATIENCE_S)
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.slow
def test_a_terminated_run_takes_its_workers_with_it(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(TINY.replace("\ndraws = 1", f"\ndraws = {DRAWS}"))
    partial = tmp_path / "run.partial"
    process = lpact("run", study, "--out", tmp_path / "run", "--workers", 2)
    wait_for(lambda: len(list(partial.glob("tasks/*/*"))) >= 1, process)
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


@pytest.mark.slow
def test_a_dead_worker_is_told_and_the_run_can_be_resumed(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(TINY.replace("\ndraws = 1", f"\ndraws = {DRAWS}"))
    partial = tmp_path / "run.partial"
    process = lpact("run", study, "--out", tmp_path / "run", "--workers", 2)
    wait_for(lambda: len(list(partial.glob("tasks/*/*"))) >= 1, process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
        pytest.skip("tool missing: /proc, to find a worker process")
    workers = [
        pid
        for pid in children.read_text().split()
        if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()
    ]
    os.kill(int(workers[0]), signal.SIGKILL)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2, errors
    assert "a worker process died" in errors
    assert "Traceback" not in errors
