"""The implanted study passes the study's own gates, and the sham without signal does not."""

from __future__ import annotations

import polars as pl
import pytest

import lpact
from lpact.analyses.lpact.assays import implant
from lpact.analyses.lpact.assays.jobs import ImplantJob
from lpact.analyses.lpact.config import GatesConfig, LPactConfig, LPactSection
from lpact.analyses.lpact.gates import CALIBRATED, PAPER, decide
from lpact.analyses.lpact.plan.stages import measure_levels
from lpact.analyses.lpact.tables.assay import IMPLANT
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, CONTROL_DELTAS
from lpact.inputs.workspace import Workspace
from lpact.store import MemoryTasks

GATES = {"predictive", "severe_control", "relational", "mechanism", "ceiling", "replication"}


def study(**changes) -> LPactConfig:
    values = {
        "name": "own",
        "seed": 8,
        "datasets": [{"name": "sim", "reader": "simulated", "options": {"n_subjects": 9}}],
        "models": [{"name": "lexical", "layers": [1, 2]}],
        "readout": {"alphas": [1.0, 100.0, 10000.0], "folds": 6, "gap_events": 10},
        "controls": {"include": ["random_matched_dim", "random_matched_autocorr", "circular_shift"]},
    }
    own = {
        "relational": {"alignments": ["linear", "cka"], "profiles": ["pearson", "spearman"]},
        "stripping": {"methods": ["feature_zeroing", "feature_residualization"]},
    }
    own |= {name: changes.pop(name) for name in LPactSection.model_fields if name in changes}
    return LPactConfig.of(lpact.load_study(values | changes | {"lpact": own}).config)


@pytest.fixture(scope="module")
def measured():
    """Measured tables of both arms."""
    arms = {arm: implant.implant_config(study(), arm) for arm in implant.ARMS}
    return {arm: measure_levels(config) for arm, config in arms.items()}


def judged(measured, arm, gates=GatesConfig()):  # noqa: B008
    decided = decide(measured[arm], gates=gates, primary_metric="pearson")
    return implant.summarise_arm(arm, measured[arm], decided, "pearson")


def test_the_implant_passes_every_gate_of_both_profiles(measured):
    table = judged(measured, "implant")
    assert set(table["gate_profile"]) == {PAPER, CALIBRATED}
    assert set(table["gate"]) == GATES | {"integrated"}
    assert table["gate_pass"].all()
    values = dict(table.filter(gate_profile=PAPER).select("quantity", "value").iter_rows())
    assert values["integrated"] == 1.0
    assert min(values.values()) > 0


def test_the_sham_passes_neither_profile(measured):
    table = judged(measured, "sham")
    whole = table.filter(quantity="integrated")
    assert whole["gate_pass"].to_list() == [False, False]
    assert whole["value"].to_list() == [0.0, 0.0]
    # Point rules of a single gate can pass by chance; its tests do not.
    assert not table.filter(gate="predictive", gate_profile=CALIBRATED)["gate_pass"].any()
    assert "without a signal" in whole["interpretation"][0]


def test_only_the_signal_differs_between_the_arms():
    arms = [implant.implant_config(study(), arm) for arm in implant.ARMS]
    first, second = (config.model_dump() for config in arms)
    assert first["datasets"][0]["options"].pop("snr") == study().assay.implant_snr
    assert second["datasets"][0]["options"].pop("snr") == 0.0
    assert first == second


def test_values_are_those_of_the_measured_tables(measured):
    table = judged(measured, "implant").filter(gate_profile=PAPER)
    values = dict(table.select("quantity", "value").iter_rows())
    deltas = measured["implant"][CONTROL_DELTAS.name].filter(metric="pearson")
    assert deltas.height == implant.N_SUBJECTS
    assert values["predictive_score"] == pytest.approx(deltas["real_score"].mean())
    assert values["predictive_delta_control"] == pytest.approx(deltas["delta_control"].mean())
    ceilings = measured["implant"][BRAIN_CEILING.name]
    strictest = ceilings.filter(pl.col("mode") == "subject_to_subject", pl.col("kind") == "profile")
    assert values["brain_ceiling"] == pytest.approx(strictest["reliability"].mean())


def test_the_studys_own_gates_judge_it(measured):
    """Nothing reaches three times the brain's own reliability."""
    table = judged(measured, "implant", GatesConfig(min_ceiling_fraction=3.0))
    own = table.filter(gate_profile=PAPER)
    assert not own.filter(gate="ceiling")["gate_pass"].any()
    assert own.filter(gate="predictive")["gate_pass"].all()
    whole = own.filter(quantity="integrated").row(0, named=True)
    assert not whole["gate_pass"]
    assert "the ceiling gate does not pass although signal is planted" in whole["interpretation"]


def test_settings_of_the_study_are_taken_within_bounds():
    config = implant.implant_config(
        study(
            gates={"min_subject_runs": 5},
            relational={"min_units": 40, "brain_patterns_from": "other_subject"},
            controls={"include": ["circular_shift"], "draws": 3, "best_control_rule": "mean_top_3"},
            assay={"implant_snr": 2.5},
            nuisance={"include": ["word_rate"], "language": "en"},
        ),
        "implant",
    )
    options = config.datasets[0].options
    assert (options["n_subjects"], options["snr"]) == (5, 2.5)
    assert config.gates.min_subject_runs == 5
    assert config.relational.min_units == implant.N_UNITS
    assert config.relational.brain_patterns_from == "other_subject"
    assert config.controls.draws == 3
    assert config.controls.best_control_rule == "mean_top_3"
    assert config.audit.required_controls == ("circular_shift",)
    assert (config.readout.folds, config.readout.gap_events) == (4, 3)
    assert config.readout.alphas == (1.0, 100.0, 10000.0)
    assert config.nuisance.include == ("word_rate",)
    assert config.nuisance.language is None
    assert [m.name for m in config.models] == ["integrated"]
    twice = implant.implant_config(study(relational={"brain_patterns_from": "other_run"}), "sham")
    assert twice.datasets[0].options["n_runs"] == 2


@pytest.mark.parametrize(("draws", "used"), [(3, 3), (20, 20), (200, 20)])
def test_tests_are_used_with_as_many_draws_as_in_the_study(draws, used):
    controls = {"include": ["circular_shift"], "draws": draws}
    config = implant.implant_config(study(controls=controls), "implant")
    assert config.controls.draws == used
    assert config.stripping.mismatch_draws == 2
    few = study(controls=controls, stripping={"mismatch_draws": 1})
    assert implant.implant_config(few, "sham").stripping.mismatch_draws == 1


def test_the_job_gives_the_same_table_whatever_else_the_study_is(measured):
    other = study(seed=99)
    job = ImplantJob.of(study(), "sham")
    assert job != ImplantJob.of(study(), "implant")
    assert job == ImplantJob.of(study(name="another"), "sham")
    frames = job.run(Workspace(other.study()), MemoryTasks())
    assert frames[IMPLANT.name].equals(judged(measured, "sham"))
