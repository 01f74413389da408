"""The wheel, installed into an empty environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HELP_SECONDS = 1.0

pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    own = ("PYTHONPATH", "VIRTUAL_ENV", "PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")
    environment = {k: v for k, v in os.environ.items() if k not in own}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**environment, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of what the build needs, so that the tree stays as it is."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    built = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", source, cwd=source)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = (source / "dist").glob("lpact-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``bin`` of an environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "venv", with_pip=True)
    binaries = folder / "venv" / "bin"
    pin = next(x for x in (ROOT / "constraints.txt").read_text().splitlines() if x.startswith("mdurl"))
    probe = run(binaries / "pip", "download", "--no-deps", "-q", "-d", folder / "probe", pin, cwd=folder)
    if probe.returncode != 0:
        pytest.skip("tool missing: package index")
    done = run(binaries / "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    return binaries


def test_wheel_holds_all_modules_and_data(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src"
    modules = {p.relative_to(package).as_posix() for p in package.rglob("*.py")}
    assert modules <= inside
    assert {"lpact/analyses/lpact/demo.toml", "lpact/py.typed"} <= inside
    foreign = {name for name in inside if not re.match(r"lpact(-[\d.]+\.dist-info)?/", name)}
    assert foreign == set()


def test_help_answers_within_a_second(installed: Path, tmp_path: Path) -> None:
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        result = run(installed / "lpact", "--help", cwd=tmp_path)
        seconds.append(time.perf_counter() - start)
        assert result.returncode == 0, result.stderr
        assert "Commands:" in result.stdout
    assert min(seconds) < HELP_SECONDS


def test_installed_command_works(installed: Path, tmp_path: Path) -> None:
    listed = run(installed / "lpact", "list", "controls", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert "circular_shift" in listed.stdout
    started = run(installed / "lpact", "init", cwd=tmp_path)
    assert started.returncode == 0, started.stderr
    audited = run(installed / "lpact", "audit", "study.toml", cwd=tmp_path)
    assert audited.returncode == 0, audited.stderr
    assert "Evidence chain" in audited.stdout


def test_installed_demo_study_is_found(installed: Path, tmp_path: Path) -> None:
    code = "from lpact.cli.study import demo_study; print(demo_study().config.name)"
    result = run(installed / "python", "-c", code, cwd=tmp_path)
    assert result.stdout == "demo\n", result.stderr
