"""Two runs side by side: every change made by hand is found, and nothing else is."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path

import polars as pl
import pytest

from lpact.analyses.lpact.gates import decide
from lpact.archive.diff import comparison_text, diff_runs, number_pair, option_changes
from lpact.store import InputFile, Provenance, RunWriter, StoredRun, write_manifest
from lpact.wording import plain

sys.path.append(str(Path(__file__).parents[1] / "analyses" / "lpact"))

import synthetic_tables as made

CONFIG = {
    "name": "first",
    "seed": 1,
    "datasets": [{"name": "demo", "reader": "simulated", "options": {"snr": 1.0}}],
    "lpact": {"gates": {"min_reliability": 0.1}},
}
STORED = (made.CONTROL_DELTAS, made.CEILING)
"""Measured tables that are stored beside the verdicts."""

passing_tables = functools.cache(made.passing_tables)


@pytest.fixture(scope="module")
def publish(tmp_path_factory):
    """``publish(tables, …)`` decides synthetic tables and stores them as a finished run."""
    folder = tmp_path_factory.mktemp("runs")
    n = iter(range(100))

    def make(tables, *, config=CONFIG, inputs=(), manifest=None, **gates) -> StoredRun:
        found = decide(tables, gates=made.GATES.model_copy(update=gates), primary_metric="pearson")
        kept = {name: found[name] for name in found if name.startswith("decisions/")}
        provenance = Provenance(config["name"], config["seed"], config, tuple(inputs))
        with RunWriter(folder / f"run{next(n)}", provenance) as writer:
            run = writer.publish({**kept, **{name: found[name] for name in STORED}})
        if manifest:
            write_manifest(run.root, run.manifest.model_copy(update=manifest))
            run = StoredRun(run.root)
        return run

    return make


@pytest.fixture(scope="module")
def passing(publish):
    return publish(passing_tables())


def claims(comparison):
    (found,) = comparison.analyses
    return found


def profile(comparison, name="paper"):
    return next(p for p in claims(comparison).profiles if p.profile == name)


def file(path, checksum, dataset="demo"):
    return InputFile(dataset=dataset, path=path, n_bytes=1, sha256=checksum * 64)


def with_gates(**gates):
    return {**CONFIG, "lpact": {"gates": {**CONFIG["lpact"]["gates"], **gates}}}


def changed_verdicts(before, after, name):
    found = profile(diff_runs(before, after), name).claims
    return {c.claim[-1]: c for c in found if c.verdict_changed}


def test_the_same_run_twice_differs_in_nothing(publish, passing):
    comparison = diff_runs(passing, publish(passing_tables()).root)
    assert comparison.identical
    assert str(comparison) == ("Nothing differs: configuration, versions, inputs and every number are the same.\n")
    for found in claims(comparison).profiles:
        assert (found.n_common, found.n_unchanged, found.n_same_verdict) == (2, 2, 2)
        assert found.claims == ()
    assert comparison.as_json()["identical"] is True


def test_a_table_that_decides_nothing_can_still_differ(publish, passing):
    other = publish(made.put(passing_tables(), made.CONTROL_DELTAS, n_train_min=400))
    comparison = diff_runs(passing, other)
    (table,) = comparison.tables
    assert (table.name, table.kind) == (made.CONTROL_DELTAS, "changed")
    assert table.before == table.after == other.n_rows(made.CONTROL_DELTAS)
    assert all(found.claims == () for found in claims(comparison).profiles)
    assert not comparison.identical
    assert "Tables with other content (1)" in comparison_text(comparison)


def test_a_control_that_wins_flips_the_gates_that_it_should(publish, passing):
    before = passing_tables()
    wins = {
        "best_control": "random_matched_dim",
        "best_control_score": 0.11,
        "delta_control": -0.01,
    }
    after = made.put(before, made.CONTROL_DELTAS, **wins)
    other = publish(after)
    comparison = diff_runs(passing, other)
    assert not comparison.identical
    assert (comparison.options, comparison.versions, comparison.inputs) == ((), (), ())
    assert {t.name for t in comparison.tables} >= {made.CONTROL_DELTAS, made.DECISIONS}
    assert made.CEILING not in {t.name for t in comparison.tables}
    paper = profile(comparison)
    assert (paper.outcome_before, paper.outcome_after) == ("A", "D")
    assert (paper.n_common, paper.n_unchanged, paper.n_same_verdict) == (2, 0, 0)
    change = next(c for c in paper.claims if c.claim[-1] == "surprisal")
    assert (change.label_before, change.label_after) == (
        "integrated_candidate",
        "control_explained",
    )
    assert change.gates == {"P": False, "Rep": False}
    assert [c.criterion for c in change.criteria if c.flipped] == [
        "mean_delta_control",
        "positive_direction",
    ]
    assert change.criteria[0].sentence == (
        "mean_delta_control 0.04 → -0.01, against circular_shift → random_matched_dim, threshold 0, passes yes → no."
    )
    assert change.sentence.startswith(
        "The verdict changes from integrated_candidate to control_explained; gate P no longer passes; gate Rep no "
        "longer passes. mean_delta_control 0.04 → -0.01"
    )
    assert change.sentence.endswith(f"Reason before: {change.reason_before} Reason now: {change.reason_after}")
    after_rows = other.table(made.DECISIONS).filter(mechanism="surprisal", gate_profile="paper")
    assert change.reason_after == after_rows["reason"].item()
    assert change.score_before == change.score_after == pytest.approx(0.1)
    # The other way round is the mirror image.
    back = profile(diff_runs(other, passing))
    mirrored = next(c for c in back.claims if c.claim == change.claim)
    assert mirrored.label_before == change.label_after
    assert mirrored.gates == {"P": True, "Rep": True}
    assert mirrored.criteria[0].sentence == (
        "mean_delta_control -0.01 → 0.04, against random_matched_dim → circular_shift, threshold 0, passes no → yes."
    )


def test_numbers_that_change_without_a_flip_are_ranked_by_how_much(publish, passing):
    before = passing_tables()
    after = made.put(before, made.CEILING, reliability=0.79)
    after = made.put(after, made.CONTROL_DELTAS, delta_nuisance=0.025)
    comparison = diff_runs(passing, publish(after))
    found = profile(comparison)
    assert (found.n_unchanged, found.n_same_verdict) == (0, 2)
    change = found.claims[0]
    assert not change.verdict_changed
    assert change.gates == {}
    # Halved, and a hundredth less.
    assert [c.criterion for c in change.criteria] == ["mean_delta_nuisance", "mean_reliability"]
    assert change.n_criteria_changed == 2
    assert change.sentence == (
        "The verdict stays integrated_candidate. mean_delta_nuisance 0.05 → 0.025, against nuisance, threshold 0, "
        "passes yes."
    )
    text = comparison_text(comparison)
    assert "paper: same verdict and gates, other numbers (2)" in text
    assert "other verdicts or gates" not in text


def test_only_one_mechanism_changes_and_the_other_is_counted(publish, passing):
    before = passing_tables()
    after = made.put(before, made.SPECIFICITY, pl.col("stripped") == "surprisal", margin=-0.5)
    found = profile(diff_runs(passing, publish(after)))
    assert (found.n_common, found.n_unchanged) == (2, 1)
    (change,) = found.claims
    assert change.claim[-1] == "surprisal"
    assert list(change.gates) == ["M"]
    assert (change.label_before, change.label_after) == (
        "integrated_candidate",
        "relational_candidate",
    )
    assert [c.criterion for c in change.criteria] == ["methods_agreeing", "typical_margin"]


def test_a_threshold_that_moves_is_named(publish):
    tables = passing_tables()
    config = with_gates(min_reliability=0.9)
    comparison = diff_runs(publish(tables), publish(tables, config=config, min_reliability=0.9))
    (option,) = comparison.options
    assert (option.name, option.kind, option.before, option.after) == (
        "lpact.gates.min_reliability",
        "changed",
        0.1,
        0.9,
    )
    change = profile(comparison).claims[0]
    reliability = next(c for c in change.criteria if c.criterion == "mean_reliability")
    assert reliability.sentence == ("mean_reliability 0.8, against run_to_run, threshold 0.1 → 0.9, passes yes → no.")
    assert "lpact.gates.min_reliability: 0.1 → 0.9" in comparison_text(comparison)


def test_a_verdict_that_a_correction_changed_has_the_reason_of_the_analysis(publish):
    """All gates pass in both runs, so that the reason and the option are what explains the label."""
    static = pl.col("condition") == "static_embedding"
    tables = made.put(passing_tables(), made.BLOCKS, static, scores=pl.lit([0.02] * made.N_BLOCKS))
    against = pl.col("against") == "static_embedding"
    tables = made.put(tables, made.RELATIONAL_NULLS, against, advantage=0.3)
    first = publish(tables, config=with_gates(fdr=0.05))
    rows = first.table(made.DECISIONS).filter(gate_profile="calibrated")
    q = rows["q_value"].max()
    assert set(rows["label"]) == {"integrated_candidate"}
    second = publish(tables, config=with_gates(fdr=q / 2), fdr=q / 2)
    (change, *_) = changed_verdicts(first, second, "calibrated").values()
    assert change.label_before == "integrated_candidate"
    assert (change.gates, change.criteria) == ({}, ())
    assert change.sentence == (
        f"The verdict changes from integrated_candidate to {change.label_after}. Reason before: {change.reason_before} "
        f"Reason now: {change.reason_after} Changed options: lpact.gates.fdr."
    )


def test_a_verdict_that_an_option_changed_names_the_option(publish):
    wins = pl.col("condition") == "circular_shift"
    tables = made.put(passing_tables(), made.SIMILARITIES, wins, similarity=0.9)
    scope = {"severe_scope": "all_levels"}
    first = publish(tables, config=with_gates(severe_scope="claimed_levels"))
    second = publish(tables, config=with_gates(**scope), **scope)
    found = changed_verdicts(first, second, "paper")
    assert {c.label_before for c in found.values()} == {"predictive_only"}
    assert found["surprisal"].sentence.endswith("Changed options: lpact.gates.severe_scope.")


def test_too_few_recordings_are_named_with_their_threshold(publish, passing):
    few = publish(passing_tables(), config=with_gates(min_subject_runs=6), min_subject_runs=6)
    change = changed_verdicts(passing, few, "paper")["surprisal"]
    assert change.label_after == "insufficient_coverage"
    assert "n_subject_runs 5, threshold 3 → 6" in change.sentence


def test_numbers_that_could_not_be_computed_are_named(publish, passing):
    before = passing_tables()
    after = made.put(before, made.CONTROL_DELTAS, delta_control=None, reason="undefined_score")
    other = publish(after)
    change = profile(diff_runs(passing, other)).claims[0]
    first = change.criteria[0]
    assert (first.before["value"], first.after["value"]) == (0.05, None)
    assert first.sentence.startswith("mean_delta_nuisance 0.05 → none, against nuisance")
    back = profile(diff_runs(other, passing)).claims[0].criteria[0]
    assert "mean_delta_nuisance none → 0.05" in back.sentence
    text = json.dumps(diff_runs(passing, other).as_json(), allow_nan=False)
    assert '"value": null' in text


def test_studies_of_other_datasets_share_what_they_share(publish):
    first, second = passing_tables(), passing_tables(dataset="other")
    third = passing_tables(model="bert")
    comparison = diff_runs(
        publish(made.stack(first, third)),
        publish(made.stack(first, second), config={**CONFIG, "name": "second"}),
    )
    assert (comparison.study_before, comparison.study_after) == ("first", "second")
    assert {c[:2] for c in claims(comparison).removed} == {("demo", "bert")}
    assert {c[:2] for c in claims(comparison).added} == {("other", "gpt2")}
    assert list(claims(comparison).added) == sorted(claims(comparison).added)
    assert profile(comparison).n_common == profile(comparison).n_unchanged == 2
    alone = diff_runs(publish(first), publish(second))
    assert profile(alone).n_common == 0
    text = comparison_text(alone)
    assert "lpact: claims only in the first run (2)" in text
    assert "  other/gpt2/8/surprisal" in text


def test_versions_plugins_and_inputs(publish):
    tables = passing_tables()
    first = publish(tables, inputs=[file("a.fif", "a"), file("b.fif", "b")])
    second = publish(
        tables,
        inputs=[file("b.fif", "c"), file("d.fif", "d"), file("a.fif", "a", "twin")],
        manifest={
            "lpact_version": "99.0",
            "lpact_code": "feed",
            "versions": {**first.manifest.versions, "numpy": "0.1", "torch": "2"},
            "plugins": ("mine 1.0",),
        },
    )
    comparison = diff_runs(first, second)
    versions = {v.name: (v.before, v.after) for v in comparison.versions}
    assert versions == {
        "lpact": (first.manifest.lpact_version, "99.0"),
        "lpact (code)": (first.manifest.lpact_code, "feed"),
        "numpy": (first.manifest.versions["numpy"], "0.1"),
        "plugin mine 1.0": (None, "in use"),
        "torch": (None, "2"),
    }
    assert [(i.name, i.kind) for i in comparison.inputs] == [
        ("demo: a.fif", "removed"),
        ("demo: b.fif", "changed"),
        ("demo: d.fif", "added"),
        ("twin: a.fif", "added"),
    ]
    assert profile(comparison).n_unchanged == 2
    text = comparison_text(comparison)
    assert "torch: 2, only in the second run" in text
    assert "demo: b.fif: bbbbbbbbbbbb → cccccccccccc" in text


def test_options_by_path():
    before = {
        "seed": 1,
        "same": {"a": [1, 2]},
        "flag": 1,
        "lags": [1, 2],
        "old": None,
        "empty": {},
        "models": [{"name": "a", "layers": [1]}, {"name": "b", "layers": [1]}],
    }
    after = {
        "seed": 2,
        "same": {"a": [1, 2]},
        "flag": True,
        "lags": [2, 1],
        "empty": {"now": 0},
        "models": [{"name": "b", "layers": [2]}, {"name": "c", "layers": [1]}],
    }
    found = {(o.name, o.kind): (o.before, o.after) for o in option_changes(before, after)}
    assert found == {
        ("seed", "changed"): (1, 2),
        ("flag", "changed"): (1, True),
        ("lags", "changed"): ([1, 2], [2, 1]),
        ("old", "removed"): (None, None),
        ("empty", "removed"): ({}, None),
        ("empty.now", "added"): (None, 0),
        ("models", "changed"): (["a", "b"], ["b", "c"]),
        ("models[a].layers", "removed"): ([1], None),
        ("models[b].layers", "changed"): ([1], [2]),
        ("models[c].layers", "added"): (None, [1]),
    }
    assert option_changes(before, before) == ()
    assert option_changes({"x": 1}, {"x": 1.0}) == ()
    turned = option_changes({"m": [{"name": "a"}, {"name": "b"}]}, {"m": [{"name": "b"}, {"name": "a"}]})
    assert [(o.name, o.after) for o in turned] == [("m", ["b", "a"])]


def test_json_is_plain_and_says_what_the_parts_say(publish, passing):
    before = passing_tables()
    after = made.put(before, made.CONTROL_DELTAS, delta_control=-0.01)
    comparison = diff_runs(passing, publish(after))
    found = json.loads(json.dumps(comparison.as_json(), allow_nan=False))
    assert found["identical"] is False
    paper = next(p for p in found["analyses"][0]["profiles"] if p["profile"] == "paper")
    claim = paper["claims"][0]
    assert claim["claim"] == ["demo", "gpt2", 8, "context_update"]
    assert claim["verdict_changed"] is True
    flipped = {c["criterion"] for c in claim["criteria"] if c["flipped"]}
    assert flipped == {"mean_delta_control", "positive_direction"}


def test_odd_names_stay_on_their_line(publish):
    odd = "<script>\x1b[31m\nBIDS\u202e"
    before = passing_tables(dataset=odd)
    after = made.put(before, made.CONTROL_DELTAS, delta_control=-0.01)
    comparison = diff_runs(publish(before), publish(after))
    assert profile(comparison).claims[0].claim[0] == odd
    lines = comparison_text(comparison).split("\n")
    shown = [line for line in lines if "<script>" in line]
    assert shown
    assert all(line.startswith("  <script>\\x1b[31m\\nBIDS\\u202e/gpt2/8/") for line in shown)
    assert plain("plain – д") == "plain – д"


def test_long_lists_are_cut_with_a_count(publish, passing):
    first, second = passing_tables(), passing_tables(dataset="other")
    comparison = diff_runs(passing, publish(made.stack(first, second)))
    assert "other/gpt2/8/surprisal" in comparison_text(comparison)
    cut = comparison_text(comparison, most=1)
    assert "other/gpt2/8/context_update" in cut
    assert "other/gpt2/8/surprisal" not in cut
    assert "  … and 1 more" in cut


def test_numbers_are_distinguished():
    assert number_pair(0.03, -0.01) == ("0.03", "-0.01")
    assert number_pair(0.12345, 0.12346) == ("0.12345", "0.12346")
    assert number_pair(1.0, 1.0 + 2**-50) == ("1", "1.000000000000001")
