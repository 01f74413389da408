from __future__ import annotations

import json
import shutil

import numpy as np
import polars as pl
import pytest

import lpact
from lpact.analyses.base import analyses_of
from lpact.errors import ConfigError, RunError
from lpact.tables import run_tables

RUN_TABLES = run_tables(["lpact"])


def test_every_declared_table_is_written_with_its_csv_twin(tiny_run):
    _, run = tiny_run
    assert {t.name for t in run.tables()} == set(RUN_TABLES)
    for name in RUN_TABLES:
        assert (run.root / f"{name}.csv").is_file()


def test_plan_counts_the_rows_that_are_then_written(tiny_run):
    study, run = tiny_run
    plan = study.plan()
    assert plan.rows.keys() == set(RUN_TABLES)
    for name, planned in plan.rows.items():
        written = run.table(name).height
        if name in plan.at_most:
            assert written <= planned, name
        else:
            assert written == planned, name
    assert plan.n_claims == run.claims().height
    assert plan.seconds_with(1) > 0
    assert plan.memory_with(1) > 0


def test_row_arithmetic_of_mechanism_stripping(tiny_run):
    _, run = tiny_run
    context = ["dataset", "subject", "session", "run", "model", "layer"]
    n_contexts = run.table("predictive_control_deltas").select(context).unique().height
    assert n_contexts == 4 * 3
    for name, rows in (
        ("causal_stripping_features", 36),
        ("causal_stripping_deltas", 216),
        ("causal_stripping_scores", 432),
        ("double_dissociation_tests", 15),
        ("mechanism_specificity_summary", 36),
    ):
        assert run.table(name).height == n_contexts * rows


def test_manifest_says_what_the_run_was_made_of(tiny_run):
    study, run = tiny_run
    manifest = json.loads((run.root / "manifest.json").read_text())
    assert manifest["config_digest"] == study.config.digest()
    assert manifest["seed"] == 3
    assert {"python", "numpy", "polars", "scipy", "pyarrow"} <= manifest["versions"].keys()
    assert [i["dataset"] for i in manifest["inputs"]] == ["sim"]
    assert len(manifest["outputs"]) == 2 * len(RUN_TABLES)
    assert run.config == study.config
    assert manifest["plugins"] == []
    # Options that the study leaves at their defaults are recorded, and hashed, all the same.
    assert manifest["config"]["lpact"]["stripping"]["options"]["feature_zeroing"] == {"fraction": 0.1}
    assert manifest["config"]["datasets"][0]["options"]["vocabulary_size"] == 400


def test_deciding_again_gives_the_stored_tables(tiny_run):
    _, run = tiny_run
    again = run.analysis().decide(run.config, run.material.tables)
    assert again
    for name, table in again.items():
        assert table.equals(run.table(name)), name


def test_other_gates_change_verdicts_and_no_measurement(tiny_run):
    _, run = tiny_run
    section = run.config.analyses["lpact"]
    gates = section.gates.model_copy(update={"min_subject_runs": 1000})
    other = section.model_copy(update={"gates": gates})
    config = run.config.model_copy(update={"analyses": {"lpact": other}})
    impossible = analyses_of(config)["lpact"].decide(config, run.material.tables)
    assert set(impossible["decisions/lpact_decision_table"]["label"]) == {"insufficient_coverage"}
    key = ["model", "layer", "unit", "alignment", "profile", "subject", "run"]
    before = run.table("profile_similarity_deltas").sort(key)["delta_rel"]
    after = impossible["relational/profile_similarity_deltas"].sort(key)["delta_rel"]
    assert before.equals(after)


def test_a_finished_run_is_returned_as_it_is(tiny_run):
    study, run = tiny_run
    stamp = (run.root / "manifest.json").stat().st_mtime_ns
    assert study.run(run.root, progress=False).manifest == run.manifest
    assert (run.root / "manifest.json").stat().st_mtime_ns == stamp


def test_a_finished_run_of_other_inputs_is_refused(tiny_study, tmp_path):
    import numpy as np

    from lpact.datasets.folder import write_folder
    from lpact.inputs.workspace import Workspace

    study = lpact.load_study(tiny_study())
    write_folder(Workspace(study.config).dataset("sim"), tmp_path / "data")
    values = tiny_study(
        datasets=[{"name": "mine", "reader": "folder", "grid": {"lags_ms": [0.0, 100.0]}}],
        run={"paths": {"mine": str(tmp_path / "data")}},
        models=[{"name": "integrated", "layers": [2]}],
        controls={"draws": 1},
    )
    lpact.load_study(values).run(tmp_path / "run", progress=False)
    assert lpact.load_study(values).run(tmp_path / "run", progress=False).root.is_dir()
    path = next((tmp_path / "data" / "recordings").glob("*/neural.npy"))
    np.save(path, np.load(path) + 1.0)
    with pytest.raises(RunError, match="made from other inputs") as caught:
        lpact.load_study(values).run(tmp_path / "run", progress=False)
    assert f"recordings/{path.parent.name}/neural.npy" in str(caught.value)


def test_workers_and_plan_are_checked(tiny_run, tiny_study, tmp_path):
    study, _ = tiny_run
    with pytest.raises(ConfigError, match=r"workers: .* greater than or equal to 1"):
        study.run(tmp_path / "run", workers=0)
    other = lpact.load_study(tiny_study(seed=99))
    with pytest.raises(ConfigError, match="another study"):
        study.run(tmp_path / "run", plan=other.plan())


def test_an_output_folder_that_cannot_be_replaced_is_refused_before_the_work(tiny_run, tmp_path):
    study, _ = tiny_run
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(RunError, match="the output folder cannot be used"):
        study.run(tmp_path / "link", progress=False)


def test_a_folder_with_something_else_is_left_alone(tiny_run, tiny_study, tmp_path):
    study, _ = tiny_run
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(RunError, match="the output folder cannot be used"):
        study.run(tmp_path, progress=False)
    assert [p.name for p in tmp_path.iterdir()] == ["precious.txt"]


def test_brain_patterns_can_come_from_other_runs_and_subjects(tiny_study, tmp_path):
    for source in ("other_run", "other_subject"):
        study = lpact.load_study(
            tiny_study(
                lpact={"relational": {"brain_patterns_from": source}},
                models=[{"name": "integrated", "layers": [2]}],
                controls={"draws": 1},
            )
        )
        run = study.run(tmp_path / source, progress=False)
        deltas = run.table("profile_similarity_deltas")
        assert set(deltas["brain_patterns_from"]) == {source}
        assert set(deltas["reason"]) == {"ok"}
        shutil.rmtree(run.root)


def test_regions_can_be_the_units(tiny_study, tmp_path):
    values = tiny_study(models=[{"name": "integrated", "layers": [2]}])
    values["datasets"][0]["grid"] = {"lags_ms": [0.0, 100.0], "units": "regions"}
    values["datasets"][0]["options"] |= {"n_units": 24, "n_regions": 8}
    run = lpact.load_study(values).run(tmp_path / "run", progress=False)
    assert run.table("brain_unit_index").group_by("subject", "run").len()["len"].unique().to_list() == [8]
    assert run.table("profile_similarity_deltas").filter(pl.col("reason") == "ok").height


def test_leave_one_story_out(tiny_study, tmp_path):
    values = tiny_study(
        models=[{"name": "integrated", "layers": [2]}],
        readout={"split": "stories", "alphas": [1.0, 100.0]},
    )
    run = lpact.load_study(values).run(tmp_path / "run", progress=False)
    assert run.table("causal_targets")["fold"].max() == 2


def test_several_data_frames_in_a_few_lines(tiny_run):
    _, run = tiny_run
    frame = run.claims().to_pandas()
    assert len(frame) == 18
    assert "label" in frame


def test_the_same_study_on_torch(tinier_run, tinier_study, tmp_path):
    """Another device changes last digits, no verdict; the manifest says which library made them."""
    import torch

    _, numpy = tinier_run
    torch.set_num_threads(1)
    values = tinier_study(lpact={"relational": {"permutations": 19}})
    values["readout"]["device"] = "torch"
    other = lpact.load_study(values).run(tmp_path / "run", workers=1)
    assert other.claims()["label"].to_list() == numpy.claims()["label"].to_list()
    for name, column in (
        ("predictive_scores", "score_median"),
        ("profile_similarity_deltas", "delta_rel"),
    ):
        a, b = numpy.table(name)[column].to_numpy(), other.table(name)[column].to_numpy()
        np.testing.assert_allclose(b, a, atol=1e-8)
    versions = json.loads((other.root / "manifest.json").read_text())["versions"]
    assert versions["torch"] == torch.__version__.split("+")[0] or versions["torch"] == torch.__version__
    assert "torch" not in json.loads((numpy.root / "manifest.json").read_text())["versions"]


@pytest.mark.parametrize(
    "readout",
    [
        {"selection": "per_region"},
        {"selection": "shared", "selection_metric": "pearson"},
        {"selection_metric": "spearman"},
        {"precision": "float32", "memory_gib": 0.01},
    ],
    ids=lambda r: "-".join(str(v) for v in r.values()),
)
def test_ways_to_choose_and_compute(tiny_study, tmp_path, readout):
    study = lpact.load_study(
        tiny_study(
            readout=readout,
            models=[{"name": "integrated", "layers": [2]}],
            mechanisms={"include": ["surprisal", "context_update"]},
            lpact={
                "relational": {"alignments": ["linear", "cka"]},
                "stripping": {"methods": ["feature_zeroing"]},
            },
        )
    )
    run = study.run(tmp_path / "run")
    scores = run.table("predictive_scores").filter(condition="real", metric="pearson")
    assert scores["score_median"].null_count() == 0
    assert (scores["score_median"].abs() <= 1.0).all()
