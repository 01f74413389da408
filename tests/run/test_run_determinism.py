"""Same inputs and configuration, same bytes: whatever the workers, threads and order of work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lpact

SCRIPT = """
import json, sys, lpact
if __name__ == "__main__":
    study = lpact.load_study(json.loads(sys.argv[1]))
    study.run(sys.argv[2], workers=int(sys.argv[3]), progress=False)
"""


def contents(root: Path) -> dict[str, bytes]:
    """Every file of a run but its log, which says when and where."""
    return {
        str(p.relative_to(root)): p.read_bytes()
        for p in sorted(root.rglob("*"))
        if p.is_file() and p.name != "log.jsonl"
    }


@pytest.mark.slow
def test_workers_and_threads_change_no_byte(tinier_study, tinier_run, tmp_path):
    _, run = tinier_run
    expected = contents(run.root)
    assert "manifest.json" in expected
    assert "decisions/lpact_decision_table.parquet" in expected
    script = tmp_path / "run_study.py"
    script.write_text(SCRIPT)
    out = tmp_path / "run"
    threads = {"POLARS_MAX_THREADS": "4", "OPENBLAS_NUM_THREADS": "4"}
    subprocess.run(
        [sys.executable, str(script), json.dumps(tinier_study()), str(out), "3"],
        check=True,
        env={**os.environ, **threads},
    )
    got = contents(out)
    assert got.keys() == expected.keys()
    assert [name for name in expected if got[name] != expected[name]] == []


def test_unit_order_changes_nothing_but_the_order(tinier_run, tinier_study, tmp_path):
    """The same recordings from a folder, with their units in another order."""
    import numpy as np
    import polars as pl

    from lpact.datasets.folder import write_folder
    from lpact.inputs.workspace import Workspace

    study, _ = tinier_run
    dataset = Workspace(study.config).dataset("sim")
    write_folder(dataset, tmp_path / "straight")
    write_folder(dataset, tmp_path / "moved")
    order = np.random.default_rng(1).permutation(8)
    for folder in (tmp_path / "moved" / "recordings").iterdir():
        np.save(folder / "neural.npy", np.load(folder / "neural.npy")[:, order])
        lines = (folder / "units.tsv").read_text().splitlines()
        body = [lines[1 + i] for i in order]
        (folder / "units.tsv").write_text("\n".join([lines[0], *body]) + "\n")

    def run(name):
        values = tinier_study(
            datasets=[{"name": "sim", "reader": "folder", "grid": {"lags_ms": [0.0, 100.0]}}],
            run={"paths": {"sim": str(tmp_path / name)}},
            controls={
                "draws": 1,
                "include": ["random_matched_dim", "random_matched_autocorr", "circular_shift"],
            },
            lpact={"relational": {"permutations": 19}},
        )
        return lpact.load_study(values).run(tmp_path / f"run-{name}", progress=False)

    straight, moved = run("straight"), run("moved")
    key = ["subject", "run", "model", "layer", "unit", "alignment", "profile"]
    a, b = (
        r.table("profile_similarity_deltas").sort(key).select(*key, "real_similarity", "delta_rel")
        for r in (straight, moved)
    )
    assert a.select(key).equals(b.select(key))
    for column in ("real_similarity", "delta_rel"):
        np.testing.assert_allclose(a[column].to_numpy(), b[column].to_numpy(), atol=1e-9)
    labels = [pl.col("label"), pl.col("first_failed_gate"), pl.col("beaten_by")]
    assert straight.claims().select(labels).equals(moved.claims().select(labels))


def test_scaling_and_shifting_the_recording_changes_no_verdict_and_no_score(tinier_run, tinier_study, tmp_path):
    import numpy as np

    from lpact.datasets.folder import write_folder
    from lpact.inputs.workspace import Workspace

    study, original = tinier_run
    write_folder(Workspace(study.config).dataset("sim"), tmp_path / "data")
    for path in (tmp_path / "data" / "recordings").glob("*/neural.npy"):
        np.save(path, np.load(path) * 1e-6 + 5e-5)
    for path in (tmp_path / "data" / "stimuli").rglob("layer-*.npy"):
        np.save(path, np.load(path) * 37.0 - 1000.0)
    values = tinier_study(
        datasets=[{"name": "sim", "reader": "folder", "grid": {"lags_ms": [0.0, 100.0]}}],
        run={"paths": {"sim": str(tmp_path / "data")}},
        lpact={"relational": {"permutations": 19}},
    )
    scaled = lpact.load_study(values).run(tmp_path / "run", progress=False)
    key = ["subject", "run", "model", "layer", "condition", "draw", "metric"]
    # Scores of random_matched_dim draws keep the seed of their row, so they agree too.
    a, b = (r.table("predictive_scores").sort(key) for r in (original, scaled))
    np.testing.assert_allclose(a["score_mean"].to_numpy(), b["score_mean"].to_numpy(), atol=1e-6)
    assert original.claims()["label"].to_list() == scaled.claims()["label"].to_list()
