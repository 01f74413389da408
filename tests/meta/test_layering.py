"""One direction of flow, checked by import-linter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from source_tree import ROOT, SRC


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of ``root``'s pyproject.toml on its sources."""
    return subprocess.run(
        [
            Path(sys.executable).parent / "lint-imports",
            "--no-cache",
            "--config",
            root / "pyproject.toml",
        ],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_contracts_are_kept() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "imports", "contract"),
    [
        ("store/planted.py", "import lpact.run.plan", "one direction of flow"),
        ("math/planted.py", "import lpact.errors", "math imports nothing of ours"),
        (
            "analyses/lpact/gates/planted.py",
            "import lpact.analyses.lpact.levels.readouts",
            "verdicts are made from tables alone",
        ),
        (
            "analyses/lpact/levels/ceiling.py",
            "import lpact.analyses.lpact.levels.predictive",
            "levels are siblings",
        ),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, module: str, imports: str, contract: str) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(SRC, tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "src/lpact" / module).open("a", encoding="utf-8") as planted:
        planted.write(f"\n{imports}\n")
    result = lint(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    broken = [line.split(" BROKEN")[0] for line in result.stdout.splitlines() if " BROKEN" in line]
    assert broken == [contract], result.stdout
