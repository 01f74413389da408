"""The Makefile and ``.ci/run``: targets, messages, and no work when nothing changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = (
    "setup",
    "demo",
    "dev",
    "browser",
    "test",
    "test-stress",
    "chain",
    "check",
    "docs",
    "bench",
    "build",
    "clean",
)

RequireTool = Callable[[str], str]
Make = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def make(require_tool: RequireTool, tmp_path: Path) -> Make:
    """``make("setup", "-n")`` in an empty folder that has the Makefile and its inputs alone."""
    program = require_tool("make")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        return subprocess.run([program, *args], cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)

    return run


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_help_is_the_default_and_names_every_target(
    make: Make,
) -> None:
    result = make()
    assert result.returncode == 0
    assert [line.split()[1] for line in result.stdout.splitlines()] == list(TARGETS)


def test_missing_python_is_named(make: Make) -> None:
    result = make("setup", "PYTHON=no-such-python")
    assert result.returncode != 0
    assert "'no-such-python' was not found; install Python 3.11 or newer" in result.stdout


def test_old_python_is_named(make: Make, tmp_path: Path) -> None:
    old = script(tmp_path / "oldpython", 'if [ "$1" = -V ]; then echo Python 3.10.1; else exit 1; fi')
    result = make("setup", f"PYTHON={old}")
    assert result.returncode != 0
    assert "needs Python 3.11 or newer" in result.stdout
    assert "is Python 3.10.1" in result.stdout
    assert not (tmp_path / ".venv").exists()


def test_setup_is_made_once_and_again_when_its_inputs_change(make: Make, tmp_path: Path) -> None:
    # A stand-in for Python: it writes down what it was asked to do, and makes a .venv with itself in it.
    log = tmp_path / "log"
    python = script(
        tmp_path / "python",
        f'echo "$@" >> {log}\nif [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi',
    )
    make("setup", f"PYTHON={python}")
    first = log.read_text().splitlines()
    assert "-m venv .venv" in first
    assert "-m pip install --quiet -c constraints.txt -e ." in first
    make("setup", f"PYTHON={python}")
    assert log.read_text().splitlines() == first
    later = (tmp_path / "pyproject.toml").stat().st_mtime + 10
    os.utime(tmp_path / "constraints.txt", (later, later))
    make("setup", f"PYTHON={python}")
    assert len(log.read_text().splitlines()) == 2 * len(first)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_can_be_planned(make: Make, target: str) -> None:
    assert make("-n", target).returncode == 0


def test_ci_runs_check_and_test_with_the_switch(require_tool: RequireTool, tmp_path: Path) -> None:
    bash = require_tool("bash")
    runner = ROOT / ".ci" / "run"
    assert os.access(runner, os.X_OK)
    (tmp_path / ".ci").mkdir()
    shutil.copy(runner, tmp_path / ".ci" / "run")
    script(tmp_path / "make", 'echo "make $@ tools=${LPACT_REQUIRE_TOOLS:-0}"')
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {k: v for k, v in os.environ.items() if k != "LPACT_REQUIRE_TOOLS"}
    result = subprocess.run(
        [bash, str(tmp_path / ".ci" / "run")],
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines() == [
        "make check tools=0",
        "make test tools=1",
        "make test-stress tools=1",
        "make chain tools=1",
    ]
