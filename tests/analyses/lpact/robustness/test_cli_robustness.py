from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from lpact.analyses.lpact.robustness import integrated_counts
from lpact.analyses.lpact.tables.robustness import TABLES
from lpact.cli import app
from lpact.store import read_table


def call(*args):
    return CliRunner().invoke(app, ["robustness", *map(str, args)])


@pytest.fixture(scope="module")
def written(simulated_run, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "tables"
    result = call(simulated_run.root, "--out", out)
    assert result.exit_code == 0, result.output
    return result, out


@pytest.fixture(scope="module")
def computed(written):
    return {table.name: read_table(written[1], table) for table in TABLES}


def test_counts_agree_with_the_stored_decisions(simulated_run, computed):
    decisions = simulated_run.table("decisions/lpact_decision_table")
    expected = {
        str(profile): (int(rows["integrated"].sum()), rows.height)
        for (profile,), rows in decisions.group_by(["gate_profile"])
    }
    assert integrated_counts(computed) == expected
    contrast = computed["controls/main_table_conventional_vs_lpact_contrast"]
    passes = contrast.filter(analysis="raw_relational_similarity")["n_lpact_pass"].unique().item()
    stored = simulated_run.table("relational/profile_similarity_deltas")
    assert passes == stored["gate_pass"].sum()
    assert 0 < passes < stored.height
    ablation = computed["controls/main_table_control_family_ablation"]
    every = ablation.filter(scenario="all_controls", stage="relational", gate_profile="paper")
    assert every["median_delta"].item() == stored["delta_rel"].median()
    assert every["n_stage_pass"].item() == passes


def test_the_verdict_comes_first_and_tables_follow(written):
    result, out = written
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Gate profile calibrated: ")
    assert "claims integrated." in lines[0]
    last = 0
    for table in TABLES:
        short = table.name.split("/")[1]
        assert short in lines
        assert lines.index(short) > 5
        last = max(last, lines.index(short))
    assert lines[-1] == f"Wrote {len(TABLES)} tables to {out}/"


def test_the_output_keeps_to_the_width(simulated_run):
    narrow = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["robustness", str(simulated_run.root)])
    assert narrow.exit_code == 0
    lines = narrow.stdout.splitlines()
    assert 70 < max(map(len, lines)) <= 80


def test_tables_are_written_with_their_twins(written, computed):
    _, out = written
    for name, table in computed.items():
        assert table.height
        assert pl.read_csv(out / f"{name}.csv").height == table.height
    assert sorted(p.name for p in out.parent.iterdir()) == [out.name]


def test_json_holds_verdict_and_tables(simulated_run, computed):
    result = call(simulated_run.root, "--json")
    document = json.loads(result.stdout)
    assert {count["gate_profile"] for count in document["integrated"]} == {"calibrated", "paper"}
    assert {finding["kind"] for finding in document["findings"]} == {
        "thresholds and rules",
        "choices of controls",
        "omitted datasets (outcome)",
        "omitted subject-runs",
    }
    assert document["tables"].keys() == computed.keys()
    for name, rows in document["tables"].items():
        assert pl.DataFrame(rows, schema=computed[name].schema).equals(computed[name])


def test_an_existing_folder_is_not_touched(simulated_run, tmp_path):
    (tmp_path / "kept").write_text("mine")
    result = call(simulated_run.root, "--out", tmp_path)
    assert result.exit_code == 2
    assert "not empty" in result.output
    assert (tmp_path / "kept").read_text() == "mine"
