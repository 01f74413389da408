"""``lpact diff``: which claims changed, and why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from lpact.analyses.base import analyses_of
from lpact.archive import export_run, lock_run
from lpact.config import study_config
from lpact.store import RunTables, build_manifest, read_manifest, write_manifest, write_table
from lpact.store.manifest import Provenance
from lpact.study import open_run
from lpact.tables import find_table
from lpact.validation import json_digest
from tiny_study import Lpact, TinyRun


@pytest.fixture(scope="module")
def other(tiny_run: TinyRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run decided with another threshold, from other inputs, and without one model's row of a table."""
    root = tmp_path_factory.mktemp("diff") / "other"
    shutil.copytree(tiny_run.folder, root)
    run, manifest = open_run(root), read_manifest(root)
    config = json.loads(json.dumps(manifest.config))
    config["lpact"]["gates"]["fdr"] = 0.9
    study = study_config(config, where="test")
    tables = analyses_of(study)["lpact"].decide(study, RunTables(run))
    scores = run.table("predictive_scores")
    tables["predictive/predictive_scores"] = scores.filter(pl.col("model") != "drift")
    decided = tables["decisions/lpact_decision_table"]
    tables["decisions/lpact_decision_table"] = decided.filter(pl.col("model") != "drift")
    for name, frame in tables.items():
        write_table(frame, find_table(name), root)
    inputs = tuple(file.model_copy(update={"sha256": "0" * 64}) for file in manifest.inputs)
    provenance = Provenance(manifest.study, manifest.seed, config, inputs)
    assert provenance.config_digest == json_digest(config) != manifest.config_digest
    write_manifest(root, build_manifest(root, provenance))
    return root


def test_a_run_and_itself(lpact: Lpact, tiny_run: TinyRun) -> None:
    result = lpact("diff", tiny_run.folder, tiny_run.folder)
    assert result.exit_code == 0
    assert result.stdout.startswith("Nothing differs")


def test_a_run_and_its_archive(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    root = tmp_path / "tiny"
    shutil.copytree(tiny_run.folder, root)
    lock_run(root)
    export_run(root, tmp_path / "tiny.zip")
    for pair in ((tmp_path / "tiny.zip", tiny_run.folder), (root, tmp_path / "tiny.zip")):
        result = lpact("diff", *pair)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("Nothing differs")


def test_causes_and_claims_are_named(lpact: Lpact, tiny_run: TinyRun, other: Path) -> None:
    result = lpact("diff", tiny_run.folder, other)
    text = result.stdout
    assert result.exit_code == 1
    assert "lpact.gates.fdr: " in text
    assert "→ 0.9" in text
    assert "lpact: claims only in the first run (2)" in text
    assert "sim/drift/2/surprisal" in text
    assert "→ 000000000000" in text, "the input's new checksum"
    n_rows = (open_run(run).n_rows("predictive_scores") for run in (tiny_run.folder, other))
    assert "predictive/predictive_scores: {:,} rows → {:,} rows".format(*n_rows) in text


def test_json_has_all_of_it(lpact: Lpact, tiny_run: TinyRun, other: Path) -> None:
    result = lpact("diff", tiny_run.folder, other, "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert found["identical"] is False
    assert [option["name"] for option in found["options"]] == ["lpact.gates.fdr"]
    (scores,) = (t for t in found["tables"] if t["name"] == "predictive/predictive_scores")
    assert scores["before"] > scores["after"] > 0


def test_what_is_no_run(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    result = lpact("diff", tiny_run.folder, tmp_path)
    assert result.exit_code == 2
    assert "not a finished run" in result.stderr
