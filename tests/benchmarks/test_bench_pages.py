"""The larger study that the report is timed on."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.pages import PAPER, make_larger

import lpact
from lpact.study import Run

pytestmark = pytest.mark.stress


def test_the_larger_study_has_the_papers_size_and_opens(small_run: Run, tmp_path: Path) -> None:
    made = lpact.open_run(make_larger(small_run.root, tmp_path / "larger"))
    assert all(made.n_rows(name) >= wanted for name, wanted in PAPER.items())
    assert any(small_run.n_rows(name) < wanted for name, wanted in PAPER.items())
    models = made.claims()["model"].n_unique()
    assert models > small_run.claims()["model"].n_unique()
    assert made.claims().height == small_run.claims().height * models // 2
