"""Every example runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lpact

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_example_is_listed() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    files = {path.name for path in EXAMPLES.iterdir()} - {"README.md"}
    assert {name for name in files if f"| `{name}` |" in readme} == files


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_study_files_are_valid(path: Path) -> None:
    assert lpact.load_study(path).config.datasets


@pytest.mark.stress
def test_python_example_runs(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, EXAMPLES / "from_python.py", tmp_path / "run"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    headline = lpact.open_run(tmp_path / "run").conclusion().headline
    assert result.stdout.endswith(f"{headline}\n")
