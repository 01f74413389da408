"""``lpact tables``, ``explain`` and ``decide`` on a finished run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lpact as api
from lpact.store import read_table
from lpact.tables import find_table
from tiny_study import TINY, Lpact, TinyRun

DECISIONS = "decisions/lpact_decision_table"


def test_tables_lists_every_table_with_rows_and_meaning(lpact: Lpact, tiny_run: TinyRun) -> None:
    result = lpact("tables", tiny_run.folder)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()[1:]
    run = api.open_run(tiny_run.folder)
    # Positive controls are switched off in this study.
    own = {table.name for table in run.analysis().run_tables(run.config)}
    assert {line.split()[0] for line in lines} == {
        *own,
        "audits/lpact_source_files",
        "audits/lpact_model_files",
    }
    for line, table in zip(lines, run.tables(), strict=True):
        assert line.split()[0] == table.name
        assert line.split()[1] == f"{run.table(table.name).height:,}"
        assert line.endswith(table.meaning)


def test_tables_shows_the_first_rows(lpact: Lpact, tiny_run: TinyRun) -> None:
    result = lpact("tables", tiny_run.folder, "lpact_decision_table", "--head", 2)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{DECISIONS}: ")
    assert lines[1] == "8 rows, 24 columns"
    header = next(i for i, line in enumerate(lines) if line.startswith("dataset"))
    assert len(lines[header + 1 :]) == 2


def test_wide_table_is_shown_row_by_row_in_a_terminal(lpact: Lpact, tiny_run: TinyRun) -> None:
    result = lpact("tables", tiny_run.folder, DECISIONS, "--head", 1, COLUMNS="80")
    assert result.exit_code == 0
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    for column in find_table(DECISIONS).column_names:
        assert any(line.split()[:1] == [column] for line in result.stdout.splitlines())


def test_csv_is_the_whole_table_byte_for_byte(lpact: Lpact, tiny_run: TinyRun) -> None:
    name = "relational/profile_similarity_scores"
    result = lpact("tables", tiny_run.folder, name, "--csv")
    assert result.exit_code == 0
    assert result.stdout_bytes == (tiny_run.folder / f"{name}.csv").read_bytes()


def test_a_changed_table_is_refused(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(tiny_run.folder, copy)
    shutil.copy(copy / "relational/profile_similarity_scores.parquet", copy / f"{DECISIONS}.parquet")
    result = lpact("tables", copy, DECISIONS, "--csv")
    assert result.exit_code == 2
    assert "has changed since the run was published" in result.stderr
    assert result.stdout == ""


def test_unknown_table_gets_a_suggestion(lpact: Lpact, tiny_run: TinyRun) -> None:
    result = lpact("tables", tiny_run.folder, "lpact_decision_tabel")
    assert result.exit_code == 2
    assert "did you mean 'lpact_decision_table'?" in result.stderr


@pytest.mark.parametrize("command", ["tables", "explain", "decide"])
def test_folder_without_a_run_is_an_error(lpact: Lpact, command: str, tmp_path: Path) -> None:
    result = lpact(command, tmp_path)
    assert result.exit_code == 2
    assert "the folder is not a finished run" in result.stderr


def test_explain_prints_the_chain(lpact: Lpact, tiny_run: TinyRun) -> None:
    claim = "sim/drift/2/surprisal"
    result = lpact("explain", tiny_run.folder, claim)
    assert result.exit_code == 0
    assert result.stdout.rstrip("\n") == str(api.open_run(tiny_run.folder).claim(claim).explain())


def test_explain_is_broken_at_spaces_in_a_terminal(lpact: Lpact, tiny_run: TinyRun) -> None:
    claim = "sim/drift/2/surprisal"
    result = lpact("explain", tiny_run.folder, claim, COLUMNS="80")
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    assert result.stdout.split() == str(api.open_run(tiny_run.folder).claim(claim).explain()).split()


def test_explain_without_a_claim_lists_all(lpact: Lpact, tiny_run: TinyRun) -> None:
    result = lpact("explain", tiny_run.folder)
    assert result.exit_code == 0
    listed = [line.split()[:2] for line in result.stdout.splitlines()[1:5]]
    expected = api.open_run(tiny_run.folder).claims()
    assert listed == [
        [f"sim/{row['model']}/2/{row['mechanism']}", row["label"]] for row in expected.iter_rows(named=True)
    ]


def test_the_first_parts_of_a_claim_list_what_they_begin(lpact: Lpact, tiny_run: TinyRun) -> None:
    result = lpact("explain", tiny_run.folder, "sim/drift/2", "--profile", "calibrated")
    assert result.exit_code == 0
    claims = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("sim/")]
    assert claims
    assert all(name.startswith("sim/drift/2/") for name in claims)
    unknown = lpact("explain", tiny_run.folder, "--analysis", "lpcat")
    assert unknown.exit_code == 2
    assert "did you mean 'lpact'?" in unknown.stderr


def test_unknown_claim_gets_a_suggestion(lpact: Lpact, tiny_run: TinyRun) -> None:
    result = lpact("explain", tiny_run.folder, "sim/drift/2/suprisal")
    assert result.exit_code == 2
    assert "did you mean 'sim/drift/2/surprisal'?" in result.stderr


def test_decide_with_the_same_gates_changes_nothing(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    out = tmp_path / "decided"
    result = lpact("decide", tiny_run.folder, "--out", out)
    assert result.exit_code == 0
    assert "Changed labels: none" in result.stdout
    for path in out.rglob("*.*"):
        if path.name != "gates.json":
            assert path.read_bytes() == (tiny_run.folder / path.relative_to(out)).read_bytes()
    assert (out / f"{DECISIONS}.parquet").is_file()


def test_decide_with_other_gates_names_the_changes(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    gates = tmp_path / "gates.toml"
    gates.write_text("[lpact.gates]\nmin_subject_runs = 4\n")
    out = tmp_path / "decided"
    result = lpact("decide", tiny_run.folder, "--gates", gates, "--out", out)
    assert result.exit_code == 0
    assert "Changed labels: 8" in result.stdout
    changed = [x.split() for x in result.stdout.splitlines() if x.startswith("  sim/")]
    before = api.open_run(tiny_run.folder).table(DECISIONS)
    assert changed == [
        [
            f"sim/{r['model']}/2/{r['mechanism']}",
            r["gate_profile"],
            r["label"],
            "insufficient_coverage",
        ]
        for r in before.iter_rows(named=True)
    ]
    labels = read_table(out, find_table(DECISIONS))["label"]
    assert labels.unique().to_list() == ["insufficient_coverage"]
    written = json.loads((out / "gates.json").read_text())
    assert written["gates"]["min_subject_runs"] == 4
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []


def test_decide_takes_the_gates_of_a_whole_study_file(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(f"{TINY}\n[lpact.gates]\nmin_subject_runs = 4\n")
    result = lpact("decide", tiny_run.folder, "--gates", study)
    assert "Changed labels: 8" in result.stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[lpact.gates]\nmin_subject_run = 4\n", "did you mean 'min_subject_runs'?"),
        ("[lpact.gate]\nmin_subject_runs = 4\n", "gate: unknown option; did you mean 'gates'?"),
        ("[gates]\nmin_subject_runs = 4\n", "rename the table to [lpact.gates]"),
        ("lpact = 3\n", "is not valid"),
        ("[lpact.gates\n", "the study file is not valid TOML"),
    ],
)
def test_gates_that_cannot_be_read_are_errors(
    lpact: Lpact, tiny_run: TinyRun, tmp_path: Path, text: str, told: str
) -> None:
    gates = tmp_path / "gates.toml"
    gates.write_text(text)
    result = lpact("decide", tiny_run.folder, "--gates", gates)
    assert result.exit_code == 2
    assert told in result.stderr


def test_decide_refuses_a_folder_that_is_not_empty(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    result = lpact("decide", tiny_run.folder, "--out", tmp_path)
    assert result.exit_code == 2
    assert "it is not empty" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
