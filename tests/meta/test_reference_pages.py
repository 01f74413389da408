"""Reference pages are made from the code, and are not stale."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from source_tree import DOCS, ROOT

TOOL = ROOT / "tools/generate_reference.py"


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the generator."""
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, check=False)


def test_reference_pages_are_up_to_date() -> None:
    result = generate("--check")
    assert result.returncode == 0, f"{result.stdout}{result.stderr}run tools/generate_reference.py"


@pytest.mark.slow
def test_the_check_finds_missing_and_stale_pages(tmp_path: Path) -> None:
    missing = generate("--check", "--out", str(tmp_path))
    assert missing.returncode == 1
    assert not list(tmp_path.iterdir())
    assert generate("--out", str(tmp_path)).returncode == 0
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in (DOCS / "reference").iterdir()}
    with (tmp_path / "codes.md").open("a", encoding="utf-8") as page:
        page.write("edited by hand\n")
    stale = generate("--check", "--out", str(tmp_path))
    assert stale.returncode == 1
    assert stale.stdout.strip() == "stale: codes.md"


def test_cells_stay_in_their_cells() -> None:
    sys.path.insert(0, str(TOOL.parent))
    try:
        import generate_reference
    finally:
        sys.path.remove(str(TOOL.parent))
    made = generate_reference.table(("a", "b"), [["x | y", "two\nlines"]])
    assert made.splitlines()[2] == "| x \\| y | two lines |"


@pytest.mark.parametrize("name", ["study-file", "tables", "codes", "plugins", "cli", "api"])
def test_rows_have_as_many_cells_as_their_header(name: str) -> None:
    n_cells = None
    for line in (DOCS / f"reference/{name}.md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            n_cells = None
            continue
        count = line.replace("\\|", "").count("|")
        assert n_cells in (None, count), line
        n_cells = count
