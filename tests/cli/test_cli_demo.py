"""``lpact demo``, on the tiny study in place of the built-in one."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

import lpact as api
from lpact.cli import study as commands
from lpact.errors import RegistryError
from lpact.study import Study, study_from_text
from lpact.wording import fixed
from tiny_study import TINY, Lpact, TinyRun

EXAMPLE = Path(__file__).parents[2] / "examples" / "demo.toml"


@pytest.fixture
def tiny_demo(monkeypatch: pytest.MonkeyPatch, tiny_run: TinyRun, tmp_path: Path) -> Path:
    """A copy of the finished tiny run, which the demo finds at its place."""

    def tiny(analysis: str) -> Study:
        assert analysis == "lpact"
        return study_from_text(TINY, where="tiny")

    monkeypatch.setattr(commands, "demo_study", tiny)
    folder = tmp_path / "my demo"
    shutil.copytree(tiny_run.folder, folder)
    return folder


def test_every_analysis_may_ship_a_demo() -> None:
    assert list(commands.demo_study("deconstruct").config.analyses) == ["deconstruct"]
    with pytest.raises(RegistryError, match="no analysis named 'nothing'"):
        commands.demo_study("nothing")


def test_built_in_study_is_the_example() -> None:
    study = commands.demo_study()
    assert len(study.config.datasets) >= 3
    assert len(study.config.models) >= 4
    assert any(d.role == "diagnostic" for d in study.config.datasets)
    assert api.load_study(EXAMPLE).config == study.config


def test_demo_shows_verdicts_counts_and_places(lpact: Lpact, tiny_demo: Path) -> None:
    result = lpact("demo", "--out", tiny_demo)
    assert result.exit_code == 0
    run = api.open_run(tiny_demo)
    said = result.stdout
    assert "lpact on 2 simulated models and 1 simulated dataset" in said
    row = next(x.split() for x in said.splitlines() if x.split()[:2] == ["sim", "drift"])
    claim = run.claims().row(0, named=True)
    letters = {column: letter for letter, column in run.analysis().claims.gates.items()}
    failed = letters[claim["first_failed_gate"].replace("mechanism", "mechanism_specific")]
    assert row[2:4] == ["2", fixed(claim["raw_score"])]
    assert row[4:] == ["2", "of", "2", claim["label"], failed]
    for outcome in run.conclusion().outcomes:
        assert f"Outcome {outcome.code}" in said
    for table in run.tables():
        (line,) = [x for x in said.splitlines() if x.split()[:1] == [table.name]]
        assert line.split()[1] == f"{run.table(table.name).height:,}"
    assert f"{tiny_demo}/decisions/lpact_decision_table.csv" in said
    (line,) = [x for x in said.splitlines() if x.split()[:1] == ["report"]]
    assert line.endswith(f"{tiny_demo}/report/report.html")
    assert (tiny_demo / "report" / "report.html").is_file()


def test_line_to_copy_works_even_with_a_space_in_the_path(lpact: Lpact, tiny_demo: Path) -> None:
    said = lpact("demo", "--out", tiny_demo).stdout
    (line,) = [x for x in said.splitlines() if "lpact explain" in x]
    words = shlex.split(line)
    result = lpact(*words[words.index("explain") :])
    assert result.exit_code == 0
    assert api.open_run(tiny_demo).claims()["label"][-1] in result.stdout


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_demo_is_readable_at_any_width(lpact: Lpact, tiny_demo: Path, columns: int) -> None:
    said = lpact("demo", "--out", tiny_demo, COLUMNS=str(columns)).stdout
    # Lines to copy are never broken.
    lines = [x for x in said.splitlines() if str(tiny_demo) not in x]
    assert max(len(line) for line in lines) <= columns
    assert all(line.isascii() or "─" not in line for line in lines)


def test_demo_refuses_a_folder_with_other_files(lpact: Lpact, tiny_demo: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file.txt").write_text("keep")
    result = lpact("demo", "--out", tmp_path / "mine")
    assert result.exit_code == 2
    assert "--out" in result.stderr
