"""Folders of datasets and models on the command line: one study file for every machine."""

from __future__ import annotations

from pathlib import Path

import pytest

import lpact
from dataset_writers.alice import write_alice
from lpact.cli._options import load
from lpact.errors import ConfigError

STUDY = """
name = "places"

[[datasets]]
name = "alice"
reader = "alice"
grid = { events = "trs", tr_features = "hrf", lags_ms = [0.0] }

[[models]]
name = "lpact-tiny"
source = "transformers"
layers = [1]

[run.paths]
alice = "elsewhere"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def test_the_command_line_wins_and_is_relative_to_where_it_was_typed(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    loaded = load(study, ["alice=data"], ["lpact-tiny=model.gguf"])
    assert loaded.run_config.paths == {"alice": str(there / "data")}
    assert loaded.run_config.models == {"lpact-tiny": str(there / "model.gguf")}
    assert loaded.config.digest() == lpact.load_study(study).config.digest()
    assert lpact.load_study(study).run_config.paths == {"alice": str(tmp_path / "elsewhere")}


def test_the_folder_is_read(study: Path, tmp_path: Path) -> None:
    truth = write_alice(tmp_path / "data")
    loaded = lpact.load_study(study, paths={"alice": tmp_path / "data"})
    audit = loaded.audit()
    kept = {r.id.subject for r in audit.of["lpact"].detail["alice"].recordings}
    assert kept == set(truth.subjects) - {truth.silent}


@pytest.mark.parametrize("given", ["alice", "=folder", "alice="])
def test_what_is_no_pair_is_named(study: Path, given: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(study, [given])
    assert caught.value.where == "option --path"
    assert caught.value.got == given


def test_two_folders_for_one_name_are_refused(study: Path) -> None:
    with pytest.raises(ConfigError, match="twice for one name"):
        load(study, ["alice=a", "alice=b"])


def test_a_name_that_the_study_does_not_have_is_named(study: Path) -> None:
    with pytest.raises(ConfigError, match="no dataset of the study 'alcie'") as caught:
        load(study, ["alcie=a"])
    assert "did you mean 'alice'" in str(caught.value)
