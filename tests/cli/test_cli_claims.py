"""``lpact claims`` and ``lpact claims check`` on a finished run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import lpact as api
from lpact.analyses.base import Material
from lpact.analyses.lpact.tables.decisions import CLAIM_STATEMENTS, STUDY_STATEMENTS
from lpact.analyses.turing.claims import Verdicts
from lpact.store import read_table
from tiny_study import Lpact, TinyRun
from toy_analysis import Toy, toy_registered

TEXT = "# Results\n\nScores were low. GPT-2 is brain-like.\n\nWe claim nothing about homology.\n"


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    path = tmp_path / "paper.md"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_claims_says_what_is_supported(lpact: Lpact, tiny_run: TinyRun) -> None:
    result = lpact("claims", tiny_run.folder)
    assert result.exit_code == 0
    assert "Study, paper gates: outcome" in result.stdout
    assert "The model is brain-like or human-like." in result.stdout
    for claim in ("sim/integrated/2/surprisal", "sim/drift/2/surprisal"):
        assert claim in result.stdout


def test_claims_writes_tables_and_json(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = lpact("claims", tiny_run.folder, "--out", out, "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    study, claims = read_table(out, STUDY_STATEMENTS), read_table(out, CLAIM_STATEMENTS)
    assert told == {"study": study.to_dicts(), "claims": claims.to_dicts()}
    decisions = api.open_run(tiny_run.folder).table("decisions/lpact_decision_table")
    assert claims.height == decisions.height * study["statement"].n_unique()
    again = lpact("claims", tiny_run.folder, "--out", out)
    assert again.exit_code == 2
    assert "not empty" in again.stderr


def test_a_run_in_a_folder_named_check(
    lpact: Lpact, tiny_run: TinyRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_run.folder, tmp_path / "check")
    monkeypatch.chdir(tmp_path)
    assert lpact("claims", "./check").stdout == lpact("claims", "show", "check").stdout
    assert lpact("claims", "check").exit_code == 2


def test_check_finds_places_and_exits_with_one(lpact: Lpact, tiny_run: TinyRun, paper: Path) -> None:
    result = lpact("claims", "check", paper, "--run", tiny_run.folder)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == f"{paper}:3:18: brain_like"
    assert lines[1].strip() == "GPT-2 is brain-like."
    assert lines[-1] == "1 overclaim found in 1 text (paper gates)."


def test_check_as_json_over_several_texts(lpact: Lpact, tiny_run: TinyRun, paper: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.tex"
    other.write_text("\\input{more}\nNothing here.\n", encoding="utf-8")
    result = lpact("claims", "check", other, paper, "--run", tiny_run.folder, "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    (found,) = told["overclaims"]
    assert (found["file"], found["line"], found["column"]) == (str(paper), 3, 18)
    assert found["statement"] == "brain_like"
    assert found["wording"].endswith(".")
    assert told["not_followed"] == [{"file": str(other), "line": 1, "target": "more"}]


def test_check_without_overclaims_exits_with_zero(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    text = tmp_path / "fine.txt"
    text.write_text("GPT-2 may be brain-like.", encoding="utf-8")
    result = lpact("claims", "check", text, "--run", tiny_run.folder)
    assert result.exit_code == 0
    assert result.stdout == "No overclaim found in 1 text (paper gates).\n"


def test_format_overrides_the_name(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    text = tmp_path / "paper.txt"
    text.write_text("% GPT-2 is brain-like.\n", encoding="utf-8")
    plain = lpact("claims", "check", text, "--run", tiny_run.folder)
    latex = lpact("claims", "check", text, "--run", tiny_run.folder, "--format", "latex")
    assert (plain.exit_code, latex.exit_code) == (1, 0)


def test_errors_exit_with_two(lpact: Lpact, tiny_run: TinyRun, paper: Path, tmp_path: Path) -> None:
    missing = lpact("claims", "check", tmp_path / "none.md", "--run", tiny_run.folder)
    assert missing.exit_code == 2
    assert "cannot be read" in missing.stderr
    binary = tmp_path / "binary.md"
    binary.write_bytes(b"\xff\xfe\x00")
    assert lpact("claims", "check", binary, "--run", tiny_run.folder).exit_code == 2
    assert lpact("claims", "check", paper, "--run", tmp_path / "no-run").exit_code == 2
    profile = lpact("claims", "check", paper, "--run", tiny_run.folder, "--profile", "strict")
    assert profile.exit_code == 2
    assert "strict" in profile.stderr


def test_standard_input(tiny_run: TinyRun) -> None:
    from typer.testing import CliRunner

    from lpact.cli import app

    args = ["claims", "check", "-", "--run", str(tiny_run.folder), "--format", "markdown"]
    result = CliRunner().invoke(app, args, input=TEXT)
    assert result.exit_code == 1
    assert result.stdout.startswith("-:3:18: brain_like\n")


class Talking(Toy):
    """A toy whose verdicts are those of a Turing test, without gate profiles and tables of statements."""

    def verdicts(self, material: Material, profile: str) -> Verdicts:
        place = {"dataset": "sim", "region": "all", "time": "0ms", "measure": "rsa", "model": "net"}
        said = {"label": "below", "test": "approximate", "reason": "'net' is further from brains."}
        return Verdicts.of_table(pl.DataFrame([place | said]))


def test_an_analysis_without_profiles_and_tables(lpact: Lpact, tmp_path: Path) -> None:
    study, run, paper = tmp_path / "two.toml", tmp_path / "run", tmp_path / "paper.md"
    study.write_text('name = "two"\ndatasets = [{name = "sim", reader = "simulated"}]\n[toy]\n')
    paper.write_text("The net model passes the NeuroAI Turing Test.")
    with toy_registered(Talking):
        api.load_study(study).run(run, progress=False)
        shown = lpact("claims", run).stdout
        assert "Study: 1 claim" in shown
        assert "sim/all/0ms/rsa/net" in shown
        told = json.loads(lpact("claims", run, "--json", "--analysis", "toy").stdout)
        allowed = [row["statement"] for row in told["study"] if row["allowed"]]
        assert allowed == ["below_brains"]
        assert told["claims"][0]["wording"] == "'net' is further from brains."
        refused = lpact("claims", run, "--out", tmp_path / "out")
        assert refused.exit_code == 2
        assert "--json" in refused.stderr
        found = lpact("claims", "check", paper, "--run", run)
    assert found.exit_code == 1
    assert "Supported: 'net' is further from brains." in found.stdout
    assert found.stdout.endswith("1 overclaim found in 1 text.\n")
