"""The code in README and docs runs, page by page, in an empty folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from run_page import blocks
from source_tree import ROOT, pages

import lpact

RUNNER = Path(__file__).with_name("run_page.py")
RUNNABLE = [page for page in pages() if any(b.runs for b in blocks(page.read_text(encoding="utf-8")))]

STARTER = ("lpact init study.toml", "lpact run study.toml --out runs/first")
"""Commands that several pages begin with; their run takes half a minute."""
BEGIN_WITH_THE_STARTER = [ROOT / "README.md", ROOT / "docs" / "how-to" / "run-a-study.md"]

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


@pytest.fixture(scope="module")
def starter_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the starter study, by the installed command, in an empty folder."""
    folder = tmp_path_factory.mktemp("starter")
    for command in STARTER:
        program = Path(sys.executable).with_name("lpact")
        done = subprocess.run([program, *command.split()[1:]], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "runs" / "first"


LONG = {
    "README.md",
    "alignment-patterns.md",
    "bring-your-own-arrays.md",
    "deconstruct.md",
    "from-transcript-to-claim.md",
    "lock-and-share.md",
    "preregister.md",
    "run-a-study.md",
    "turing-test.md",
    "write-a-plugin.md",
}
"""Pages that make whole runs, with their reports."""


def marked(page: Path) -> object:
    """The page as a parameter; long ones are left to `make test-stress`."""
    marks = [pytest.mark.stress] if page.name in LONG else []
    return pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


@pytest.mark.slow
@pytest.mark.parametrize("page", [marked(page) for page in RUNNABLE])
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A page that runs the starter study opens the finished run, as it would if it were read twice."""
    if page in BEGIN_WITH_THE_STARTER:
        shutil.copytree(request.getfixturevalue("starter_run"), tmp_path / "runs" / "first")
    result = run(page, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("page", BEGIN_WITH_THE_STARTER, ids=lambda page: page.name)
def test_pages_that_share_a_run_type_its_commands(page: Path) -> None:
    """Otherwise a page would open a run that its own commands do not make."""
    code = [b for b in blocks(page.read_text(encoding="utf-8")) if b.runs]
    typed = [command for block in code if block.language == "bash" for command in block.commands]
    starts = [next(c for c in typed if c.startswith(command)) for command in STARTER]
    assert [typed.index(command) for command in starts] == sorted(map(typed.index, starts))
    assert typed[0] == starts[0]


def test_pages_with_code_are_found() -> None:
    names = {page.name for page in RUNNABLE}
    assert names >= LONG
    assert {"write-a-plugin.md", "run-a-study.md", "read-the-tables.md"} <= names
    assert {"from-transcript-to-claim.md", "extract-features.md"} <= names


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.toml")), ids=lambda p: p.name)
def test_an_example_can_be_planned(example: Path, tmp_path: Path) -> None:
    """In another folder, since features would be kept beside the file."""
    study = tmp_path / "examples" / example.name
    study.parent.mkdir()
    study.write_bytes(example.read_bytes())
    loaded = lpact.load_study(study)
    if example.name in OF_REAL_RECORDINGS:
        outline = loaded.outline()
        assert not outline.complete
        assert outline.n_missing > 0
        return
    plan = loaded.plan()
    assert plan.n_claims > 0
    assert plan.n_tasks > 0


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
