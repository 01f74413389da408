"""The code in README and docs runs, page by page, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from run_page import blocks
from source_tree import ROOT, pages

import lpact

RUNNER = Path(__file__).with_name("run_page.py")
RUNNABLE = [
    page for page in pages() if any(b.runs for b in blocks(page.read_text(encoding="utf-8")))
]

OF_REAL_RECORDINGS = {"alice.toml", "paper.toml"}
"""Examples whose data are not part of the project."""


def run(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page in ``folder``; warnings are errors there too."""
    return subprocess.run(
        [sys.executable, "-W", "error", RUNNER, page],
        cwd=folder,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    result = run(page, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_pages_with_code_are_found() -> None:
    names = {page.name for page in RUNNABLE}
    assert {"write-a-plugin.md", "run-a-study.md", "read-the-tables.md"} <= names
    assert {"from-transcript-to-claim.md", "extract-features.md"} <= names


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").glob("*.toml")), ids=lambda p: p.name
)
def test_an_example_can_be_planned(example: Path, tmp_path: Path) -> None:
    """In another folder, since features would be kept beside the file."""
    study = tmp_path / "examples" / example.name
    study.parent.mkdir()
    study.write_bytes(example.read_bytes())
    loaded = lpact.load_study(study)
    if example.name in OF_REAL_RECORDINGS:
        outline = loaded.outline()
        assert not outline.complete
        assert outline.n_claims > 0
        return
    plan = loaded.plan()
    assert plan.n_claims > 0
    assert plan.n_fits > 0


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_name_their_language(page: Path) -> None:
    known = {"python", "bash", "toml", "text", "json", "bibtex"}
    found = {b.language for b in blocks(page.read_text(encoding="utf-8"))}
    assert found <= known, "a shell block is `bash`, output is `text`"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", "line 6"),
        ("```bash\nlpact no-such-command\n```\n", "page.md:2: exit 2"),
        ("```bash\nrm -r x\n```\n", "only lpact and make are run"),
        ("```python\nimport warnings\nwarnings.warn('old')\n```\n", "UserWarning: old"),
        ("<!-- not run: -->\n```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("<!-- not run: earlier -->\nText.\n```python\n1 / 0\n```\n", "ZeroDivisionError"),
    ],
)
def test_code_that_fails_is_found(tmp_path: Path, text: str, told: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    result = run(page, tmp_path)
    assert result.returncode == 1
    assert told in result.stdout + result.stderr


def test_code_that_runs_is_counted(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n```bash\n# a comment\nlpact \\\n  --version\n```\n```python\nassert x == 1\n```\n"
        "```bash\nmake demo\n```\n<!-- not run: it fails -->\n\n```python\n1 / 0\n```\n```text\n1 / 0\n```\n",
        encoding="utf-8",
    )
    result = run(page, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "3 blocks"
