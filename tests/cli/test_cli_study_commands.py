"""``lpact plan``, ``audit`` and ``run`` on a tiny study."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import lpact as api
from tiny_study import TINY, Lpact, TinyRun


def test_plan_says_what_would_be_computed(lpact: Lpact, tiny_study: Path) -> None:
    before = sorted(tiny_study.parent.iterdir())
    result = lpact("plan", tiny_study, "--workers", 1)
    assert result.exit_code == 0
    for told in (
        "Plan of tiny",
        "4 of 4 severe controls, 11 of 11 nuisance features and mechanisms",
        "no: single_session",
        "4 claims",
        "1 worker",
    ):
        assert told in result.stdout
    assert sorted(tiny_study.parent.iterdir()) == before


def test_planned_rows_are_those_of_the_run(lpact: Lpact, tiny_run: TinyRun) -> None:
    planned = {}
    for line in lpact("plan", tiny_run.study).stdout.splitlines():
        name, _, count = line.strip().partition(" ")
        if "/" in name and count:
            planned[name] = count.strip()
    run = api.open_run(tiny_run.folder)
    assert planned.keys() == {table.name for table in run.tables()}
    for name, count in planned.items():
        n_rows = run.table(name).height
        if count.startswith("≤"):
            assert n_rows <= int(count.removeprefix("≤ ").replace(",", "")), name
        else:
            assert n_rows == int(count.replace(",", "")), name


def test_plan_names_impossible_controls_once(lpact: Lpact, tmp_path: Path) -> None:
    # Blocks longer than a story leave nothing to shuffle.
    study = tmp_path / "study.toml"
    text = TINY.replace('"untrained_model_fresh"', '"within_story_block_shuffle"')
    study.write_text(f"{text}\n[controls.options.within_story_block_shuffle]\nblock_events = 500\n")
    result = lpact("plan", study)
    assert result.exit_code == 0
    (line,) = [x for x in result.stdout.splitlines() if "within_story_block_shuffle" in x]
    assert "sim/integrated/2, sim/drift/2" in line


def test_audit_shows_the_closed_chain(lpact: Lpact, tiny_study: Path) -> None:
    result = lpact("audit", tiny_study)
    assert result.exit_code == 0
    chain = next(x for x in result.stdout.splitlines() if x.split()[:1] == ["sim"])
    assert chain.split() == ["sim", *["yes"] * 6, "3", "8"]
    assert "Findings: none" in result.stdout
    assert "sim: audio, video" in result.stdout


def test_audit_says_why_a_role_is_lowered(lpact: Lpact, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(f"{TINY}\n[lpact.audit]\nmin_subject_runs = 9\n")
    result = lpact("audit", study)
    assert result.exit_code == 0
    assert "diagnostic (lowered from primary)" in result.stdout
    assert "too little coverage (3 subject-runs with enough units, 9 needed)" in result.stdout


def test_audit_of_broken_input_is_an_error(lpact: Lpact, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(TINY.replace("layers = [2]", "layers = [9]", 1))
    result = lpact("audit", study)
    assert result.exit_code == 2
    assert "1 input problem(s) must be fixed" in result.stderr
    assert "Traceback" not in result.output


def test_run_says_cost_verdicts_and_places(tiny_run: TinyRun) -> None:
    said = tiny_run.said
    run = api.open_run(tiny_run.folder)
    assert said.index("4 claims") < said.index("Claims by label (lpact)")
    counts = [x.split() for x in said.splitlines() if x.startswith("  sim ")]
    for column, profile in ((2, "paper"), (3, "calibrated")):
        for label, n in run.claims(profile=profile)["label"].value_counts().iter_rows():
            assert [row[column] for row in counts if row[1] == label] == [str(n)]
    assert "Switched off ([lpact.assay] enabled = false)." in said
    conclusion = run.conclusion()
    assert conclusion.headline in said
    for outcome in conclusion.outcomes:
        assert f"Outcome {outcome.code}" in said
        assert outcome.meaning in said
    assert f"{tiny_run.folder}/decisions/lpact_decision_table.csv" in said
    assert f"{tiny_run.folder}/report/report.html" in said
    assert (tiny_run.folder / "report" / "report.html").is_file()
    assert f"lpact explain {tiny_run.folder} sim/integrated/2/" in said
    assert "\x1b" not in said


def test_complete_run_is_not_made_again(lpact: Lpact, tiny_run: TinyRun) -> None:
    manifest = tiny_run.folder / "manifest.json"
    before = manifest.stat()
    result = lpact("run", tiny_run.study, "--out", tiny_run.folder)
    assert result.exit_code == 0
    assert "nothing to compute" in result.stdout
    assert "Outcome" in result.stdout
    assert manifest.stat() == before


def test_run_refuses_a_folder_with_something_else(lpact: Lpact, tiny_study: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    result = lpact("run", tiny_study, "--out", tmp_path)
    assert result.exit_code == 2
    assert "the output folder cannot be used" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_workers_do_not_change_a_byte(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    out = tmp_path / "two"
    result = lpact("run", tiny_run.study, "--out", out, "--workers", 2, "--no-progress", "--no-report")
    assert result.exit_code == 0
    assert (out / "manifest.json").read_bytes() == (tiny_run.folder / "manifest.json").read_bytes()
    assert not (out / "report" / "report.html").exists()
    assert f"lpact report {out}" in result.stdout


def test_progress_goes_to_standard_error(lpact: Lpact, tiny_study: Path, tmp_path: Path) -> None:
    result = lpact("run", tiny_study, "--out", tmp_path / "run", "--progress", "--no-report")
    assert "levels 1 to 3: 6/6" in result.stderr
    assert "levels 1 to 3" not in result.stdout
    assert isinstance(api.open_run(tmp_path / "run").claims(), pl.DataFrame)


def test_an_analysis_is_a_verb_of_its_own(lpact: Lpact, tiny_run: TinyRun) -> None:
    result = lpact("lpact", tiny_run.study, "--out", tiny_run.folder)
    assert result.exit_code == 0, result.output
    assert "nothing to compute" in result.stdout
    assert lpact("lpact", tiny_run.study).exit_code == 2
    other = lpact("run", tiny_run.study, "--out", tiny_run.folder, "--analysis", "lpac")
    assert other.exit_code == 2
    assert "did you mean 'lpact'?" in other.stderr
