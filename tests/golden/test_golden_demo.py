"""The built-in study: its verdicts are fixed, and each is right for the planted reason."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import maker
from lpact.report.render import picture
from lpact.store import RunTables

DOCS = Path(__file__).parents[2] / "docs"
GOLDEN = Path(__file__).with_name("demo_decisions.csv")
COLUMNS = [
    "dataset", "model", "layer", "mechanism", "role", "n_subject_runs", "raw_score", "predictive", "relational",
    "mechanism_specific", "ceiling", "severe_control", "replication", "integrated", "label", "first_failed_gate",
    "beaten_by", "gate_profile",
]  # fmt: skip
DECISIONS = "decisions/lpact_decision_table"

pytestmark = pytest.mark.slow


def claims(run, **key) -> pl.DataFrame:
    return run.claims().filter(**key)


def test_decision_table_is_the_golden_one(demo):
    """To renew it after a change of the science: write ``run.table(DECISIONS).select(COLUMNS)`` to it, and say why."""
    _, run = demo
    golden = pl.read_csv(GOLDEN, schema_overrides={"layer": pl.Int64, "n_subject_runs": pl.Int64})
    assert_frame_equal(run.table(DECISIONS).select(COLUMNS), golden, abs_tol=1e-9)


def test_study_has_the_asked_for_shape(demo):
    study, run = demo
    assert len(study.config.datasets) >= 3
    assert [d.role for d in study.config.datasets].count("diagnostic") == 1
    assert len(study.config.models) >= 4
    assert run.conclusion().outcome("paper").code == "A"


def test_planted_model_is_the_only_integrated_candidate(demo):
    _, run = demo
    winners = run.claims().filter(label="integrated_candidate")
    assert winners.select("dataset", "model", "layer", "mechanism").rows() == [
        ("sim_ecog", "integrated", 2, "surprisal")
    ]
    others = claims(run, dataset="sim_ecog", model="integrated", layer=2).filter(pl.col("mechanism") != "surprisal")
    assert set(others["label"]) == {"relational_candidate"}
    assert set(others["first_failed_gate"]) == {"mechanism"}


def test_planted_model_alone_passes_every_calibrated_gate_and_ninety_claims_are_too_many(demo):
    """16 units give no p-value that survives a correction over 90 claims; the gates themselves all pass."""
    _, run = demo
    gates = ["predictive", "relational", "mechanism_specific", "ceiling", "severe_control"]
    passing = run.claims(profile="calibrated").filter(pl.all_horizontal(*gates, "replication"))
    assert passing.select("dataset", "model", "layer", "mechanism").rows() == [
        ("sim_ecog", "integrated", 2, "surprisal")
    ]
    row = passing.row(0, named=True)
    assert (row["label"], row["beaten_by"]) == ("predictive_only", "false_discovery_rate")
    assert row["p_value"] <= 0.05 < row["q_value"]
    assert run.conclusion().outcome("calibrated").code == "C"


def test_a_neighbouring_layer_is_beaten_by_the_layer_control(demo):
    _, run = demo
    rows = claims(run, dataset="sim_ecog", model="integrated", layer=1)
    assert set(rows["label"]) == {"control_explained"}
    assert set(rows["beaten_by"]) == {"layer_label_permutation"}
    assert rows["raw_score"][0] > 0


def test_drift_looks_like_a_brain_score_and_is_explained_by_nuisance(demo):
    _, run = demo
    rows = claims(run, dataset="sim_eeg", model="drift")
    assert rows["raw_score"][0] > 0.5
    assert set(rows["label"]) == {"control_explained"}
    assert set(rows["beaten_by"]) == {"nuisance"}


def test_word_identity_looks_like_a_brain_score_and_survives_a_context_reset_unchanged(demo):
    _, run = demo
    rows = claims(run, dataset="sim_meg", model="lexical")
    assert rows["raw_score"][0] > 0.1
    assert set(rows["label"]) == {"control_explained"}
    nulls = run.table("predictive_control_nulls").filter(
        dataset="sim_meg", model="lexical", metric="pearson", control="sentence_reset_fresh"
    )
    assert nulls["delta"].to_list() == [0.0, 0.0, 0.0]


def test_a_model_with_the_wrong_pattern_is_predictive_only(demo):
    _, run = demo
    rows = claims(run, dataset="sim_meg", model="predictive")
    assert set(rows["label"]) == {"predictive_only"}
    assert not rows["relational"].any()


def test_diagnostic_dataset_passes_no_gate(demo):
    _, run = demo
    rows = claims(run, dataset="sim_fmri")
    assert set(rows["label"]) == {"diagnostic_only"}
    gates = [
        "predictive",
        "relational",
        "mechanism_specific",
        "ceiling",
        "severe_control",
        "replication",
    ]
    assert not rows.select(pl.any_horizontal(gates)).to_series().any()
    assert rows.filter(model="integrated", layer=2)["raw_score"][0] > 0.2


def test_plan_of_the_demo_is_exact(demo):
    study, run = demo
    plan = study.plan()
    for name, planned in plan.rows.items():
        assert run.table(name).height <= planned, name
        if name not in plan.at_most:
            assert run.table(name).height == planned, name


def test_the_readme_shows_the_verdicts_of_the_demo(demo):
    """Words and labels of the picture; coordinates may differ in the last digit between machines."""
    _, run = demo

    def told(svg):
        elements = list(ElementTree.fromstring(svg).iter())
        return [(e.tag, e.text, e.get("aria-label")) for e in elements if e.text or e.get("class") == "m"]

    drawn = told(picture(maker("decision_matrix")(Material(RunTables(run), run.config))))
    assert drawn == told((DOCS / "images" / "demo-verdicts.svg").read_text(encoding="utf-8"))
    assert any("integrated candidate" in (text or "") for _, text, _ in drawn)


def test_positive_controls_pass_where_signal_is_planted_and_only_there(demo):
    """sim_ecog answers to word onsets and sound; sim_meg does not, and sim_eeg has no signal between its words."""
    _, run = demo
    onsets = run.table("main_table_low_level_neural_positive_control_gate").filter(
        target="word_onset", window="100-300 ms"
    )
    assert dict(onsets.select("dataset", "gate").iter_rows()) == {
        "sim_ecog": "pass",
        "sim_meg": "no",
        "sim_eeg": "not_computed",
        "sim_fmri": "not_computed",
    }
    sound = run.table("main_table_acoustic_envelope_full_length_positive_control")
    assert dict(sound.select("dataset", "gate").iter_rows()) == {
        "sim_ecog": "pass",
        "sim_meg": "no",
        "sim_eeg": "not_computed",
        "sim_fmri": "no",
    }
    brains = run.table("main_table_brain_as_model_oracle_gate").filter(comparison="run_to_run")
    assert dict(brains.select("dataset", "reason").iter_rows()) == {
        "sim_ecog": "ok",
        "sim_meg": "single_run",
        "sim_eeg": "single_run",
        "sim_fmri": "single_run",
    }
    assert brains.filter("gate_pass")["dataset"].to_list() == ["sim_ecog"]


def test_the_implant_passes_and_the_sham_does_not(demo):
    _, run = demo
    rows = run.table("main_table_synthetic_implant_positive_control").filter(quantity="integrated")
    assert dict(rows.select("arm", "gate_pass").unique().iter_rows()) == {
        "implant": True,
        "sham": False,
    }
    assert set(rows["gate_profile"]) == {"paper", "calibrated"}
