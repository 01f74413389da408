"""Positive controls as part of a run, and alone."""

from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

import lpact
from lpact.analyses.lpact.assays.control_results import control_results
from lpact.analyses.lpact.assays.jobs import measure_controls
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.tables import assay
from lpact.cli import app
from lpact.config import RunConfig
from lpact.inputs.workspace import Workspace
from lpact.run.progress import Reporter
from lpact.tables import declared_tables

ASSAY = [table.name for table in assay.TABLES]
OWN = {
    "relational": {"alignments": ["linear", "cka"], "profiles": ["pearson", "cosine"]},
    "stripping": {
        "methods": ["feature_zeroing", "feature_residualization"],
        "mismatch_draws": 1,
    },
}
SIZES = {"n_subjects": 2, "n_runs": 2, "n_stories": 3, "sentences_per_story": 6, "n_units": 8}
SMALL = {
    "name": "tiny",
    "seed": 3,
    "datasets": [
        {
            "name": "sim",
            "reader": "simulated",
            "grid": {"lags_ms": [0.0, 100.0]},
            "options": SIZES | {"n_mechanism_units": 2},
        }
    ],
    "models": [{"name": "integrated", "layers": [2]}],
    "readout": {"alphas": [1.0, 100.0], "folds": 3, "gap_events": 2},
    "controls": {
        "include": ["random_matched_dim", "random_matched_autocorr", "circular_shift"],
        "draws": 2,
    },
    "mechanisms": {"include": ["surprisal", "context_update"]},
    "lpact": OWN,
}


def alone(study):
    """The positive controls of a study, computed without anything else."""
    return measure_controls(study.config, settings=RunConfig(), workers=1, reporter=Reporter())


@pytest.fixture(scope="module")
def with_and_without(tmp_path_factory):
    root = tmp_path_factory.mktemp("assay")
    runs = {}
    for enabled in (True, False):
        study = lpact.load_study({**SMALL, "lpact": {**OWN, "assay": {"enabled": enabled}}})
        runs[enabled] = study, study.run(root / str(enabled), progress=False)
    return runs


def test_a_run_holds_the_positive_controls_unless_they_are_switched_off(with_and_without):
    _, run = with_and_without[True]
    assert set(ASSAY) <= {t.name for t in run.tables()}
    _, without = with_and_without[False]
    assert not set(ASSAY) & {t.name for t in without.tables()}


def test_no_verdict_and_no_measured_table_depends_on_them(with_and_without):
    (_, run), (_, without) = with_and_without[True], with_and_without[False]
    others = [t.name for t in without.tables()]
    assert {n.split("/")[0] for n in others} >= {"decisions", "predictive", "relational", "causal"}
    for name in others:
        assert run.table(name).equals(without.table(name)), name
    again = run.analysis().decide(run.config, run.material.tables)
    assert again["decisions/lpact_decision_table"].equals(run.table("lpact_decision_table"))


def test_the_plan_counts_their_rows(with_and_without):
    study, run = with_and_without[True]
    plan = study.plan()
    assert {name: plan.rows[name] for name in ASSAY} == {n: run.table(n).height for n in ASSAY}
    study, _ = with_and_without[False]
    assert not set(ASSAY) & set(study.plan().rows)


def test_alone_they_are_the_same_and_no_model_is_looked_at(with_and_without, monkeypatch):
    study, run = with_and_without[True]

    def looked(*_):
        raise AssertionError("a model was looked at")

    monkeypatch.setattr(Workspace, "model", looked)
    # The implanted study looks at its own model, and was computed before in this process.
    tables = alone(study)
    assert tables.keys() == set(ASSAY)
    for name, table in tables.items():
        assert table.equals(run.table(name)), name


def test_a_dataset_without_usable_recordings_has_rows_with_the_reason():
    """Too few events in every recording: nothing can be measured, and every control says so."""
    study = lpact.load_study({**SMALL, "readout": {**SMALL["readout"], "min_train_events": 5000}})
    tables = alone(study)
    for table in assay.BRAIN_TABLES:
        if table.name == "controls/brain_as_model_relational_gate":
            assert tables[table.name].is_empty()
        elif table is not assay.IMPLANT:
            assert set(tables[table.name]["reason"]) == {"dataset_has_no_recording"}, table.name
            assert not tables[table.name]["gate_pass"].any()


# --- The command ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lpact_command():
    runner = CliRunner()
    return lambda *args: runner.invoke(app, [str(arg) for arg in args])


def test_the_command_shows_the_controls_of_a_run(with_and_without, lpact_command):
    _, run = with_and_without[True]
    result = lpact_command("assay", run.root)
    assert result.exit_code == 0, result.output
    for text in ("Implanted signal", "Brain as model", "Profile order", "not available"):
        assert text in result.stdout
    assert "They change no label." in result.stdout


def test_the_command_prints_json(with_and_without, lpact_command):
    _, run = with_and_without[True]
    result = lpact_command("assay", run.root, "--json")
    told = json.loads(result.stdout)
    assert told["study"] == "tiny"
    own = control_results({t.name: run.table(t.name) for t in run.tables()}, LPactConfig.of(run.config).gates)
    assert len(told["findings"]) == len(own)
    implanted = {f["what"]: f for f in told["findings"] if f["control"] == "implanted signal"}
    assert implanted["implant, gate profile paper"]["passes"] is True
    sham = implanted["sham, gate profile paper"]
    assert (sham["passes"], sham["expected"]) == (False, False)
    sessions = [f for f in told["findings"] if f["what"] == "session to session"]
    assert sessions
    assert {(f["passes"], f["reason"]) for f in sessions} == {(None, "single_session")}


def test_findings_count_what_the_tables_say(with_and_without):
    _, run = with_and_without[True]
    tables = {name: run.table(name) for name in ASSAY}
    found = {(f.control, f.what): f for f in control_results(tables, LPactConfig.of(run.config).gates)}
    summary = tables["controls/main_table_brain_as_model_relational_positive_control"]
    own = summary.filter(comparison="run_to_run")
    expected = own["gate_pass"].sum() / own.height > LPactConfig.of(run.config).gates.summary_majority
    assert found["brain as model", "run to run"].passes is bool(expected)
    assert f"of {own['n_rows'].sum()} unit rows" in found["brain as model", "run to run"].detail
    cosine = tables["controls/main_table_profile_order_positive_control"].filter(profile="cosine")
    assert found["profile order", "cosine"].passes is bool(cosine["gate_pass"].all())
    half = found["brain–brain reliability", "split half, response"]
    assert (half.passes, half.reason) == (None, "no_repeated_measure")


def test_a_run_without_controls_says_what_to_do(with_and_without, lpact_command):
    _, run = with_and_without[False]
    result = lpact_command("assay", run.root)
    assert result.exit_code == 2
    assert "the run holds no positive controls" in result.output
    assert "give the study file" in result.output


STUDY = """
name = "alone"
[[datasets]]
name = "sim"
reader = "simulated"
[datasets.grid]
lags_ms = [100.0]
[datasets.options]
n_subjects = 2
n_stories = 3
sentences_per_story = 6
n_units = 8
n_mechanism_units = 2
[[models]]
name = "integrated"
layers = [2]
[readout]
folds = 3
gap_events = 2
alphas = [1.0, 100.0]
[controls]
include = ["random_matched_dim", "random_matched_autocorr", "circular_shift"]
draws = 2
[lpact.relational]
alignments = ["linear", "cka"]
profiles = ["pearson", "cosine"]
[mechanisms]
include = ["surprisal", "context_update"]

[lpact.stripping]
methods = ["feature_zeroing", "feature_residualization"]
mismatch_draws = 1
"""


def test_the_command_computes_and_writes(tmp_path, lpact_command):
    path, out = tmp_path / "study.toml", tmp_path / "tables"
    path.write_text(STUDY, encoding="utf-8")
    result = lpact_command("assay", path, "--out", out, "--no-progress")
    assert result.exit_code == 0, result.output
    assert "Positive controls of 4 recordings, no model" in result.stdout
    written = {p.relative_to(out).with_suffix("").as_posix() for p in out.rglob("*.parquet")}
    assert written == set(ASSAY)
    assert set(ASSAY) <= set(declared_tables())
    table = pl.read_parquet(out / f"{assay.BRAIN_AS_MODEL.name}.parquet")
    assert set(table["comparison"]) == {"run_to_run", "subject_to_subject"}
    refused = lpact_command("assay", path, "--out", out, "--no-progress")
    assert refused.exit_code == 2
    assert "it is not empty" in refused.output
