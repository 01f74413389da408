"""``lpact plan`` where data or models are not there: it explains the study instead of failing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lpact as api
from lpact.analyses.lpact.config import LPactConfig
from lpact.datasets.base import DATASETS
from lpact.datasets.folder import write_folder
from tiny_study import TINY, Lpact

EXAMPLES = Path(__file__).parents[2] / "examples"
OPTIONS = {"n_subjects": 2, "n_runs": 1, "n_stories": 2, "sentences_per_story": 8, "n_units": 8}


def study_file(path: Path, folder: str = "", model: str = "") -> Path:
    """The tiny study with its dataset read from ``folder`` and its second model from the hub."""
    text = TINY.replace('reader = "simulated"', 'reader = "folder"')
    text = re.sub(r"\[datasets.options\][^[]*", "", text)
    if model:
        text = text.replace('name = "drift"', f'name = "{model}"\nsource = "transformers"')
    if folder:
        text += f'\n[run.paths]\nsim = "{folder}"\n'
    path.write_text(text)
    return path


@pytest.mark.parametrize("folder", ["", "nowhere"])
def test_a_missing_folder_is_explained(lpact: Lpact, tmp_path: Path, folder: str) -> None:
    result = lpact("plan", study_file(tmp_path / "study.toml", folder))
    assert result.exit_code == 0, result.output
    assert "1 dataset or model missing" in result.stdout
    where = f"{tmp_path / 'nowhere'} does not exist" if folder else "[run.paths] sim"
    assert where in result.stdout
    assert "your own data, for the reader 'folder'" in result.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["study.toml"]


def test_the_run_itself_still_fails(lpact: Lpact, tmp_path: Path) -> None:
    study = study_file(tmp_path / "study.toml", "nowhere")
    result = lpact("run", study, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "the folder does not exist" in result.stderr


def test_a_hub_model_that_is_not_here_is_named_and_not_fetched(
    lpact: Lpact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def fetched(*args: object, **options: object) -> str:
        raise AssertionError("a plan must not fetch a model")

    monkeypatch.setattr(hub, "snapshot_download", fetched)
    reader = DATASETS.build("simulated", OPTIONS)
    write_folder(reader.open(name="sim", path=None, seed=7), tmp_path / "mine")
    study = study_file(tmp_path / "study.toml", "mine", model="no-such-model")
    result = lpact("plan", study)
    assert result.exit_code == 0, result.output
    assert "no folder is given for it (--model no-such-model=FOLDER" in result.stdout
    assert f"datasets check folder {tmp_path / 'mine'}" in result.stdout


def test_a_folder_of_a_model_that_is_not_there_is_named(lpact: Lpact, tmp_path: Path) -> None:
    study = study_file(tmp_path / "study.toml", "mine", model="big")
    study.write_text(study.read_text() + '\n[run.models]\nbig = "models/big"\n')
    result = lpact("plan", study)
    assert result.exit_code == 0
    assert f"its folder {tmp_path / 'models/big'} does not exist" in result.stdout


def test_roles_are_those_of_the_readers_unless_the_study_says_otherwise(tmp_path: Path) -> None:
    datasets = [
        {"name": "a", "reader": "brain_treebank"},
        {"name": "b", "reader": "narratives"},
        {"name": "c", "reader": "narratives", "role": "validation_only"},
        {"name": "d", "reader": "simulated"},
    ]
    values = {"name": "roles", "datasets": datasets, "models": [{"name": "m", "layers": [1]}]}
    study = api.load_study(values)
    roles = [d.role for d in study.config.datasets]
    assert roles == ["primary", "secondary", "validation_only", "primary"]
    spelt_out = [d | {"role": role} for d, role in zip(datasets, roles, strict=True)]
    assert api.load_study(values | {"datasets": spelt_out}).config.digest() == study.config.digest()
    other = [d | {"role": "diagnostic"} for d in datasets]
    assert api.load_study(values | {"datasets": other}).config.digest() != study.config.digest()


# --- The paper's study -------------------------------------------------------------------------

ROLES = {
    "brain_treebank": "primary",
    "podcast_ecog": "primary",
    "meg_masc": "primary",
    "narratives": "secondary",
    "lpp_multilingual": "secondary",
    "naturalstories": "diagnostic",
}
MODELS = {
    "distilbert/distilgpt2": 6,
    "openai-community/gpt2": 12,
    "openai-community/gpt2-medium": 24,
    "EleutherAI/pythia-160m": 12,
    "Qwen/Qwen2.5-1.5B-Instruct": 28,
    "Qwen/Qwen3-1.7B": 28,
}


def test_the_papers_datasets_and_models() -> None:
    config = api.load_study(EXAMPLES / "paper.toml").config
    assert {d.name: d.role for d in config.datasets} == ROLES
    assert {m.options["model"]: max(m.layers) for m in config.models} == MODELS
    own = LPactConfig.of(config)
    gates = own.gates
    assert (gates.direction_fraction, gates.min_reliability, gates.min_ceiling_fraction) == (
        0.6,
        0.1,
        0.25,
    )
    assert len(config.mechanisms.include) == len(own.stripping.methods) == 6


def test_the_papers_study_is_explained_without_data(lpact: Lpact) -> None:
    result = lpact("plan", EXAMPLES / "paper.toml")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    for name, role in ROLES.items():
        (line,) = [x for x in lines if x.split()[:2] == [name, role]]
        assert "[run.paths]" in line or "does not exist" in line
    for expected in ("ds005574", "braintreebank.dev", "licence: CC0", "about 130 GB", *MODELS):
        assert expected in result.stdout
    assert result.stdout.count("datasets fetch ") == len(ROLES)
