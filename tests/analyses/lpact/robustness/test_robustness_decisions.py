"""Deciding only what can have changed gives what deciding everything gives; and recomputed rows are the stored ones."""

from __future__ import annotations

from operator import ne

import numpy as np
import polars as pl
import pytest
from robustness_tables import ABLATION, analysed, decider, passing_study, with_control
from synthetic_tables import (
    BLOCKS,
    CEILING,
    CONTROL_DELTAS,
    DECISIONS,
    NULLS,
    PROFILE_DELTAS,
    RELATIONAL_NULLS,
    SPECIFICITY,
    SUBJECT_RUNS,
    put,
    stack,
)

from lpact.analyses.lpact.best_control import best_control
from lpact.analyses.lpact.gates import decide
from lpact.analyses.lpact.robustness.changes import counts_without
from lpact.analyses.lpact.robustness.controls import (
    RULES,
    Ablation,
    altered,
    configured_rule,
    read_rivals,
)
from lpact.tables import RECORDING_KEY, find_table

RUNS = ("1", "2", "3")


def weak_static(tables):
    """Static embeddings behind the model, so that the calibrated profile can pass."""
    tables = with_control(tables, "static_embedding", score=0.02, similarity=0.1)
    static = pl.col("condition") == "static_embedding"
    tables = put(tables, BLOCKS, static, scores=pl.lit([0.02] * 4))
    return put(tables, RELATIONAL_NULLS, pl.col("against") == "static_embedding", advantage=0.4)


@pytest.fixture(scope="module")
def mixed():
    """Claims that pass, that no mechanism supports, and that one control explains; two datasets."""
    good = weak_static(passing_study(dataset="a", runs=RUNS))
    unselective = put(weak_static(passing_study(dataset="a", layer=4, runs=RUNS)), SPECIFICITY, margin=-0.1)
    explained = with_control(passing_study(dataset="b", runs=RUNS), "circular_shift", score=0.2, similarity=0.8)
    return decider(stack(good, unselective, explained))


def whole(of, tables=None, **gates):
    """Integrated claims of every profile, with everything decided."""
    decided = decide(
        {**of.tables, **(tables or {})},
        gates=of.gates.model_copy(update=gates),
        primary_metric="pearson",
    )[DECISIONS]
    return {
        profile: (decided.filter(gate_profile=profile)["integrated"].sum(), decided.height // 2)
        for profile in of.profiles
    }


def found(counts):
    return {profile: (c["n_integrated"], c["n_claims"]) for profile, c in counts.items()}


def test_the_study_has_claims_of_all_kinds(mixed):
    assert mixed.profiles == ["calibrated", "paper"]
    assert found(mixed.unchanged()) == whole(mixed)
    assert whole(mixed)["paper"] == (2, 6)
    assert whole(mixed)["calibrated"][0] > 0


@pytest.mark.parametrize(
    ("touched", "changed"),
    [
        (("relational", "ceiling"), {"min_reliability": 0.75}),
        (("relational", "ceiling"), {"min_reliability": 0.9}),
        (("ceiling",), {"min_ceiling_fraction": 0.75}),
        (("relational", "replication"), {"direction_fraction": 1.0}),
    ],
)
def test_thresholds(mixed, touched, changed):
    gates = mixed.gates.model_copy(update=changed)
    assert found(mixed.counts(touched, gates=gates)) == whole(mixed, **changed)


@pytest.mark.parametrize("removed", ["circular_shift", "random_matched_dim", "static_embedding"])
def test_controls(mixed, removed):
    def change(tables):
        return altered(tables, read_rivals(tables), lambda control: ne(control, removed), "max")

    scenarios = {s.name: s for s in Ablation(mixed).scenarios()} if removed[0] == "c" else {}
    expected = whole(mixed, change(mixed.tables))
    touched = ("predictive", "relational", "ceiling", "replication", "severe_control")
    assert found(mixed.counts(touched, change=change)) == expected
    if scenarios:
        assert found(scenarios["without_circular_shift"].counts) == expected
        assert expected["paper"] == (4, 6)


@pytest.mark.parametrize("dataset", ["a", "b"])
def test_subject_runs(mixed, dataset):
    tables = {
        name: table.filter(~((pl.col("dataset") == dataset) & (pl.col("run") == "2")))
        for name, table in mixed.tables.items()
        if {"dataset", "run"} <= set(table.columns)
    }
    places = mixed.tables[CONTROL_DELTAS].filter(dataset=dataset, run="2").select(RECORDING_KEY)
    (recording,) = places.unique().rows(named=True)
    assert found(counts_without(mixed, recording)) == whole(mixed, tables)


@pytest.mark.parametrize("dataset", ["a", "b"])
def test_datasets(mixed, dataset):
    """Tests of the layers that stay are not made again; the decisions are the same as if they were."""
    tables = {
        name: table.filter(pl.col("dataset") != dataset) if "dataset" in table.columns else table
        for name, table in mixed.tables.items()
    }
    known = decide(tables, gates=mixed.gates, primary_metric="pearson")
    decisions, outcome = mixed.without_dataset(dataset)
    assert decisions.height
    assert decisions.sort(find_table(DECISIONS).key).equals(known[DECISIONS])
    assert outcome.sort("gate_profile").equals(known["decisions/lpact_study_outcome"])


def test_a_correction_runs_over_all_claims(mixed):
    """With an fdr above alpha, claims that a gate stops still weigh in the correction."""
    of = decider(mixed.tables, alpha=0.05, fdr=0.2)
    gates = of.gates.model_copy(update={"min_ceiling_fraction": 0.1})
    assert found(of.counts(("ceiling",), gates=gates)) == whole(of, min_ceiling_fraction=0.1)


@pytest.mark.parametrize("rule", RULES)
def test_best_control_of_every_column(rule):
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(6, 200))
    scores[rng.random(scores.shape) < 0.4] = np.nan
    scores[:, :5] = np.nan
    index, best = best_control(scores, rule)
    for column, place, found in zip(scores.T, index, best, strict=True):
        known = np.sort(column[np.isfinite(column)])[::-1]
        if not known.size:
            assert place == -1
            assert np.isnan(found)
            continue
        assert column[place] == known[0]
        assert found == pytest.approx(known[0] if rule == "max" else known[:3].mean())
    assert np.isnan(best_control(scores[:0], rule)[1]).all()


def test_rows_recomputed_from_a_stored_run_are_the_stored_ones(simulated_run):
    names = (NULLS, "relational/profile_similarity_scores")
    stored = (CONTROL_DELTAS, SUBJECT_RUNS, PROFILE_DELTAS, CEILING)
    tables = {name: simulated_run.table(name) for name in (*names, *stored)}
    rivals = read_rivals(tables)
    assert configured_rule(rivals) == "max"
    again = altered(tables, rivals, lambda _: True, "max")
    for name in stored:
        assert again[name].select(tables[name].columns).equals(tables[name]), name
    other = altered(tables, rivals, lambda _: True, "mean_top_3")
    assert (other[CONTROL_DELTAS]["delta_control"] > tables[CONTROL_DELTAS]["delta_control"]).any()


def test_a_run_without_relational_rows_is_analysed():
    """Level 2 was not measured: nothing is integrated whatever changes, and level 1 is counted all the same."""
    tables = passing_study(runs=RUNS)
    bare = {n: t.clear() if n.startswith("relational/") else t for n, t in tables.items()}
    made = analysed(bare)
    ablation = made[ABLATION]
    assert ablation.filter(stage="predictive")["n_rows"].unique().to_list() == [6]
    assert ablation.filter(stage="relational")["n_rows"].unique().to_list() == [0]
    assert ablation["n_integrated"].sum() == 0
    assert analysed(tables)[ABLATION]["n_integrated"].sum() > 0
