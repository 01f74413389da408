"""``lpact preregister``: what it writes and says, and how a run is held against it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tiny_study import Lpact, TinyRun


@pytest.fixture(scope="module")
def registered(lpact: Lpact, tiny_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("registered") / "[red]r.json"
    result = lpact("preregister", tiny_study, "--out", path)
    assert result.exit_code == 0, result.output
    digest = json.loads(path.read_text(encoding="utf-8"))["digest"]
    assert f"digest {digest}" in result.stdout
    assert str(path) in result.stdout
    assert "4 of lpact" in result.stdout
    assert "3 rows of audits/lpact_dataset_unit_inventory" in result.stdout
    return path


def test_the_file_has_what_was_planned(registered: Path, tiny_run: TinyRun) -> None:
    values = json.loads(registered.read_text(encoding="utf-8"))["registered"]
    manifest = json.loads((tiny_run.folder / "manifest.json").read_text(encoding="utf-8"))
    for name in ("config", "config_digest", "seed", "inputs", "versions", "lpact_code"):
        assert values[name] == manifest[name], name


def test_the_default_name_is_beside_the_study(lpact: Lpact, tiny_study: Path, tmp_path: Path) -> None:
    study = tmp_path / "mine.toml"
    study.write_bytes(tiny_study.read_bytes())
    assert lpact("preregister", study).exit_code == 0
    path = tmp_path / "mine.preregistration.json"
    first = path.read_bytes()
    again = lpact("preregister", study)
    assert again.exit_code == 2
    assert "never overwritten" in again.stderr
    assert "auditing the sources" not in again.stdout
    assert path.read_bytes() == first
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.preregistration.json", "mine.toml"]


def test_a_run_is_held_against_it(lpact: Lpact, registered: Path, tiny_run: TinyRun) -> None:
    """A run that was not given the registration cannot show the order; all else is followed."""
    result = lpact("preregister", registered, "--check", tiny_run.folder)
    assert result.exit_code == 1
    assert "1 deviation\n" in result.stdout
    assert "the run was made without a registration" in result.stdout
    n_items = result.stdout.split(" items were followed")[0].split(": ")[-1]
    followed, _, total = n_items.partition(" of ")
    assert int(total) - int(followed) == 1


def test_a_deviation_is_listed(lpact: Lpact, registered: Path, tiny_run: TinyRun, tmp_path: Path) -> None:
    path = tmp_path / "edited.json"
    text = registered.read_text(encoding="utf-8")
    path.write_text(text.replace('"folds": 3', '"folds": 5'), encoding="utf-8")
    result = lpact("preregister", path, "--check", tiny_run.folder)
    assert result.exit_code == 1
    assert "3 deviations" in result.stdout
    assert "configuration: readout.folds" in result.stdout
    assert "edited after it was made" in result.stdout


def test_a_deposited_digest_finds_a_file_that_was_made_anew(
    lpact: Lpact, registered: Path, tiny_run: TinyRun, tmp_path: Path
) -> None:
    digest = json.loads(registered.read_text(encoding="utf-8"))["digest"]
    path, study = tmp_path / "anew.json", tmp_path / "other.toml"
    text = tiny_run.study.read_text(encoding="utf-8")
    study.write_text(text.replace("folds = 3", "folds = 4"), encoding="utf-8")
    assert study.read_text(encoding="utf-8") != text
    assert lpact("preregister", study, "--out", path).exit_code == 0
    check = ("--check", tiny_run.folder, "--registered-digest")
    for own, other in ((registered, False), (path, True)):
        result = lpact("preregister", own, *check, digest)
        assert result.exit_code == 1
        assert ("registration: digest that was deposited" in result.stdout) is other
    result = lpact("preregister", registered, *check, digest[:10])
    assert result.exit_code == 2
    assert "not the digest of a registration" in result.stderr


def test_a_run_with_another_digest_is_refused_first(
    lpact: Lpact, registered: Path, tiny_run: TinyRun, tmp_path: Path
) -> None:
    """Also where the run is complete already, and only opened."""
    run = ("run", tiny_run.study, "--preregistration", registered, "--registered-digest")
    for out in (tmp_path / "run", tiny_run.folder):
        result = lpact(*run, "0" * 64, "--out", out)
        assert result.exit_code == 2
        assert "not the one that was deposited" in result.stderr
        assert "auditing the sources" not in result.stdout
    assert not (tmp_path / "run").exists()
    result = lpact("run", tiny_run.study, "--registered-digest", "0" * 64, "--out", tmp_path / "x")
    assert result.exit_code == 2
    assert "a digest is given without a registration" in result.stderr
    result = lpact("preregister", tiny_run.study, "--registered-digest", "0" * 64)
    assert result.exit_code == 2
    assert "leave --registered-digest out" in result.stderr


def test_results_that_exist_are_refused_or_said(lpact: Lpact, tiny_run: TinyRun, tmp_path: Path) -> None:
    path = tmp_path / "late.json"
    late = ("preregister", tiny_run.study, "--out", path, "--run", tiny_run.folder)
    refused = lpact(*late)
    assert refused.exit_code == 2
    assert "sim/drift, sim/integrated" in refused.stderr
    assert not path.exists()
    said = lpact(*late, "--after-the-fact")
    assert said.exit_code == 0
    assert "AFTER THE FACT" in said.stdout
    checked = lpact("preregister", path, "--check", tiny_run.folder)
    assert checked.stdout.startswith("Registered after results existed")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--out", "x.json"), "leave --out out"),
        (("--run", "x"), "leave --run out"),
        (("--after-the-fact",), "leave --after-the-fact out"),
        (("--path", "a=b"), "leave --path out"),
        (("--model", "a=b"), "leave --model out"),
    ],
)
def test_checking_takes_no_other_option(lpact: Lpact, tiny_study: Path, options: tuple[str, ...], told: str) -> None:
    result = lpact("preregister", tiny_study, "--check", "run", *options)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_study_file_is_no_registration(lpact: Lpact, tiny_study: Path, registered: Path, tmp_path: Path) -> None:
    result = lpact("preregister", tiny_study, "--check", tmp_path)
    assert result.exit_code == 2
    assert "the file is not a registration" in result.stderr
    result = lpact("preregister", registered, "--check", tmp_path / "none")
    assert result.exit_code == 2
    assert "not a finished run" in result.stderr
    result = lpact("preregister", registered)
    assert result.exit_code == 2
