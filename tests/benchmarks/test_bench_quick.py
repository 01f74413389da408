"""The benchmarks run, at small sizes and without the libraries they are compared with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.stress

ROOT = Path(__file__).parents[2]
ASKED = {"name", "peer", "ratio", "target", "same_work"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    out = tmp_path_factory.mktemp("bench") / "engine.json"
    command = [sys.executable, "-m", "benchmarks.engine", "--quick", "--no-peers", "--repeats", "1"]
    done = subprocess.run(
        [*command, "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
    for result in found:
        assert result["name"] in done.stdout
    return found


def test_every_result_says_what_it_compares(results: list[dict[str, Any]]) -> None:
    assert results
    for result in results:
        assert set(result) >= ASKED
        assert result["seconds_ours"] > 0
        assert result["machine"]
        assert "numpy" in result["versions"]
        assert (result["ratio"] is None) == (result["peer"] is None)
        assert result["peer"] is None or result["ratio"] > 0
        assert result["same_work"] or result["note"]


def test_every_case_is_there(results: list[dict[str, Any]]) -> None:
    names = " | ".join(result["name"] for result in results)
    cases = ("single-shot", "full grid", "circular shifts", "31 subsets", "memory", "busy loop")
    for case in (*cases, "processes"):
        assert case in names


def test_small_sizes_have_no_targets(results: list[dict[str, Any]]) -> None:
    assert {result["target"] for result in results} == {None}


def test_committed_results_name_what_they_were_asked_for() -> None:
    for path in sorted((ROOT / "benchmarks" / "results").glob("engine*.json")):
        rows = json.loads(path.read_text(encoding="utf-8"))
        assert isinstance(rows, list), path
        for row in rows:
            assert set(row) >= ASKED, path


def test_language_models_are_timed(tmp_path: Path) -> None:
    out = tmp_path / "language.json"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.language",
            "--quick",
            "--repeats",
            "1",
            "--out",
            str(out),
        ],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(out.read_text(encoding="utf-8"))
    assert [row["name"].split(",")[0] for row in rows] == ["full context", "reversed context"]
    for row in rows:
        assert 0 < row["forward_s"] < row["seconds"]
        assert row["words_per_s"] == row["n_words"] / row["seconds"]


def test_both_environments_have_the_same_versions() -> None:
    root, peers = pins(ROOT / "constraints.txt"), pins(ROOT / "benchmarks" / "constraints.txt")
    assert {"himalaya", "torch", "scikit-learn", "numpy"} <= set(peers)
    assert {name: root[name] for name in set(root) & set(peers)} == {
        name: peers[name] for name in set(root) & set(peers)
    }


def pins(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))
