"""Two runs side by side: what was changed by hand is found, and nothing else is."""

from __future__ import annotations

import json

import polars as pl
import pytest
from story_tables import made, passing_tables, sound

from lpact.analyses.lpact.gates import decide
from lpact.archive.diff import compare_runs, comparison_json, comparison_text
from lpact.archive.diff.causes import label_q_values
from lpact.archive.diff.manifests import option_changes
from lpact.archive.diff.text import plain
from lpact.archive.diff.wording import pair
from lpact.codes import FinalLabel
from lpact.store import InputFile, Provenance, RunWriter, StoredRun, write_manifest

CONFIG = {
    "name": "first",
    "seed": 1,
    "gates": {"alpha": 0.05, "min_reliability": 0.1},
    "datasets": [{"name": "demo", "reader": "simulated", "options": {"snr": 1.0}}],
}


STORED = (made.CONTROL_DELTAS, made.CEILING)
"""Measured tables that are stored beside the verdicts; a comparison reads none of them."""


@pytest.fixture(scope="module")
def publish(tmp_path_factory):
    """``publish(tables, …)`` decides hand-made tables and stores them as a finished run."""
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


def profile(comparison, name="paper"):
    return next(p for p in comparison.profiles if p.gate_profile == name)


def file(path, checksum, dataset="demo"):
    return InputFile(dataset=dataset, path=path, n_bytes=1, sha256=checksum * 64)


def test_the_same_run_twice_differs_in_nothing(publish, passing):
    tables = passing_tables()
    comparison = compare_runs(passing, publish(tables))
    assert comparison.identical
    assert comparison_text(comparison) == (
        "Nothing differs: configuration, versions, inputs and every number are the same.\n"
    )
    for found in comparison.profiles:
        assert (found.n_common, found.n_unchanged, found.n_same_verdict) == (2, 2, 2)
        assert found.claims == ()
    assert comparison_json(comparison)["identical"] is True


def test_a_table_that_decides_nothing_can_still_differ(publish, passing):
    other = publish(made.put(passing_tables(), made.CONTROL_DELTAS, n_train_min=400))
    comparison = compare_runs(passing, other)
    assert [(t.table, t.kind) for t in comparison.tables] == [(made.CONTROL_DELTAS, "changed")]
    assert all(found.claims == () for found in comparison.profiles)
    assert not comparison.identical
    assert "Tables whose content differs (1)" in comparison_text(comparison)


def test_a_control_that_wins_flips_the_gates_that_it_should(publish, passing):
    before = passing_tables()
    wins = {
        "best_control": "random_matched_dim",
        "best_control_score": 0.11,
        "delta_control": -0.01,
    }
    after = made.put(before, made.CONTROL_DELTAS, **wins)
    other = publish(after)
    comparison = compare_runs(passing, other)
    assert not comparison.identical
    assert (comparison.options, comparison.versions, comparison.inputs) == ((), (), ())
    assert {t.table for t in comparison.tables} >= {made.CONTROL_DELTAS, made.DECISIONS}
    assert made.CEILING not in {t.table for t in comparison.tables}
    paper = profile(comparison)
    assert (paper.outcome_before, paper.outcome_after) == ("A", "D")
    assert (paper.n_common, paper.n_unchanged, paper.n_same_verdict) == (2, 0, 0)
    change = next(c for c in paper.claims if c.claim[-1] == "surprisal")
    assert (change.label_before, change.label_after) == (
        "integrated_candidate",
        "control_explained",
    )
    assert [(f.letter, f.before, f.after) for f in change.gates] == [
        ("P", True, False),
        ("Rep", True, False),
    ]
    assert [c.criterion for c in change.criteria if c.flipped] == [
        "mean_delta_control",
        "positive_direction",
    ]
    assert change.criteria[0].sentence == (
        "mean_delta_control fell from 0.04 to -0.01 against random_matched_dim (before against circular_shift), and no "
        "longer holds (needs > 0)."
    )
    assert change.sentence.startswith(
        "The verdict changes from integrated_candidate to control_explained; the predictive gate no longer passes; the "
        "replication gate no longer passes. mean_delta_control fell from 0.04 to -0.01"
    )
    assert change.raw_score_before == change.raw_score_after == pytest.approx(0.1)
    # The other way round is the mirror image.
    back = profile(compare_runs(other, passing))
    mirrored = next(c for c in back.claims if c.claim == change.claim)
    assert mirrored.label_before == change.label_after
    assert [(f.letter, f.before, f.after) for f in mirrored.gates] == [
        ("P", False, True),
        ("Rep", False, True),
    ]
    assert mirrored.criteria[0].sentence == (
        "mean_delta_control rose from -0.01 to 0.04 against circular_shift (before against random_matched_dim), and "
        "now holds (needs > 0)."
    )


def test_numbers_that_change_without_a_flip_are_ranked_by_how_much(publish, passing):
    before = passing_tables()
    after = made.put(before, made.CEILING, reliability=0.79)
    after = made.put(after, made.CONTROL_DELTAS, delta_nuisance=0.025)
    comparison = compare_runs(passing, publish(after))
    found = profile(comparison)
    assert (found.n_unchanged, found.n_same_verdict) == (0, 2)
    change = found.claims[0]
    assert not change.verdict_changed
    assert change.gates == ()
    # Halved, and a hundredth less.
    assert [c.criterion for c in change.criteria] == ["mean_delta_nuisance", "mean_reliability"]
    assert change.n_criteria_changed == 2
    assert change.sentence == (
        "The verdict stays integrated_candidate. mean_delta_nuisance fell from 0.05 to 0.025 against nuisance."
    )
    text = comparison_text(comparison)
    assert "paper: same verdict and gates, other numbers (2)" in text
    assert "other verdicts or gates" not in text


def test_only_one_mechanism_changes_and_the_other_is_counted(publish, passing):
    before = passing_tables()
    after = made.put(before, made.SPECIFICITY, pl.col("stripped") == "surprisal", margin=-0.5)
    found = profile(compare_runs(passing, publish(after)))
    assert (found.n_common, found.n_unchanged) == (2, 1)
    (change,) = found.claims
    assert change.claim[-1] == "surprisal"
    assert [f.letter for f in change.gates] == ["M"]
    assert (change.label_before, change.label_after) == (
        "integrated_candidate",
        "relational_candidate",
    )
    assert [c.criterion for c in change.criteria] == ["methods_agreeing", "typical_margin"]


def test_a_threshold_that_moves_is_named(publish):
    tables = passing_tables()
    config = {**CONFIG, "gates": {"alpha": 0.05, "min_reliability": 0.9}}
    comparison = compare_runs(publish(tables), publish(tables, config=config, min_reliability=0.9))
    (option,) = comparison.options
    assert (option.path, option.kind, option.before, option.after) == (
        "gates.min_reliability",
        "changed",
        0.1,
        0.9,
    )
    change = profile(comparison).claims[0]
    reliability = next(c for c in change.criteria if c.criterion == "mean_reliability")
    assert reliability.sentence == (
        "mean_reliability stays 0.8 against run_to_run, the threshold moved from 0.1 to 0.9, and no longer holds "
        "(needs >= 0.9)."
    )
    assert "gates.min_reliability: 0.1 → 0.9" in comparison_text(comparison)


def with_gates(**gates):
    return {**CONFIG, "gates": {**CONFIG["gates"], **gates}}


def changed_verdicts(before, after, name):
    found = profile(compare_runs(before, after), name).claims
    return {c.claim[-1]: c for c in found if c.verdict_changed}


def test_a_verdict_that_the_correction_changed_is_put_down_to_it(publish):
    tables = sound()
    first = publish(tables, config=with_gates(fdr=0.05))
    rows = first.table(made.DECISIONS).filter(gate_profile="calibrated")
    q = rows["q_value"].max()
    assert set(rows["label"]) == {"integrated_candidate"}
    moved = made.put(tables, made.CEILING, reliability=0.79)
    second = publish(moved, config=with_gates(fdr=q / 2), fdr=q / 2)
    (change, *_) = changed_verdicts(first, second, "calibrated").values()
    assert change.label_before == "integrated_candidate"
    # A reliability moved, too: that is no reason.
    assert [c.criterion for c in change.criteria] == ["mean_reliability"]
    assert change.gates == ()
    assert change.sentence == (
        f"The verdict changes from integrated_candidate to {change.label_after}. The gates of integrated_candidate "
        "pass in both runs; it no longer survives the correction over claims: its q-value stays "
        f"{q:.3g} (at most {q / 2:.3g} is allowed, before 0.05)."
    )
    back = changed_verdicts(second, first, "calibrated")[change.claim[-1]]
    assert "it now survives the correction over claims: its q-value stays" in back.sentence


def test_q_values_of_labels_are_those_of_the_decision(publish):
    run = publish(made.stack(sound(), passing_tables(dataset="other")))
    decisions, evidence = (
        run.table(name).filter(gate_profile="calibrated")
        for name in (made.DECISIONS, made.EVIDENCE)
    )
    found = label_q_values(decisions, evidence, "claimed_levels")
    known = {
        tuple(row[:4]): row[4]
        for row in decisions.select("dataset", "model", "layer", "mechanism", "q_value").iter_rows()
    }
    assert len(set(known.values())) > 1
    assert {c: q[FinalLabel.INTEGRATED_CANDIDATE] for c, q in found.items()} == known
    # One test a layer: with two layers, twice the smaller p-value at most, whatever the number of mechanisms.
    (claim,) = [c for c in found if c[0] == "demo" and c[3] == "surprisal"]
    p = evidence.filter(
        pl.col("criterion").is_in(
            ["p_nuisance", "p_surrogates", "p_rivals", "p_controls_level1", "p_replication"]
        ),
        dataset="demo",
        mechanism="surprisal",
    )["value"].max()
    assert found[claim][FinalLabel.PREDICTIVE_ONLY] == pytest.approx(2 * p)


def test_a_verdict_that_the_scope_of_a_gate_changed_names_the_option(publish):
    wins = pl.col("condition") == "circular_shift"
    tables = made.put(passing_tables(), made.SIMILARITIES, wins, similarity=0.9)
    scope = {"severe_scope": "all_levels"}
    first = publish(tables, config=with_gates(severe_scope="claimed_levels"))
    second = publish(tables, config=with_gates(**scope), **scope)
    found = changed_verdicts(first, second, "paper")
    assert {c.label_before for c in found.values()} == {"predictive_only"}
    assert found["surprisal"].sentence == (
        "The verdict changes from predictive_only to control_explained. gates.severe_scope went from claimed_levels to "
        "all_levels."
    )
    # Where the options are not recorded, no number stands in for the reason.
    silent = changed_verdicts(publish(tables), publish(tables, **scope), "paper")["surprisal"]
    assert silent.sentence.endswith("and the runs record the same options.")


def test_a_criterion_beside_the_label_is_not_its_reason(publish, passing):
    # The ceiling fails in both labels' eyes; what takes the mechanism-specific label away is the mechanism.
    weak = made.put(passing_tables(), made.CEILING, fraction_of_ceiling=0.1)
    first = publish(weak)
    broken = made.put(passing_tables(), made.SPECIFICITY, margin=-0.5)
    change = changed_verdicts(first, publish(broken), "paper")["surprisal"]
    assert (change.label_before, change.label_after) == (
        "mechanism_specific_candidate",
        "relational_candidate",
    )
    assert {f.letter for f in change.gates} == {"M", "T"}
    assert "mean_fraction_of_ceiling" not in change.sentence
    assert "methods_agreeing fell from" in change.sentence
    # A loss at level 2 that comes with one in replication: prediction alone is lost to replication.
    wins = pl.col("condition") == "circular_shift"
    level2 = made.put(passing_tables(), made.PROFILE_DELTAS, delta_rel=-0.1)
    lost = made.put(level2, made.SIMILARITIES, wins, similarity=0.9)
    runs = pl.col("run").is_in(["1", "2", "3"])
    lost = made.put(lost, made.CONTROL_DELTAS, runs, delta_nuisance=-0.01)
    change = changed_verdicts(publish(level2), publish(lost), "paper")["surprisal"]
    assert (change.label_before, change.label_after) == ("predictive_only", "control_explained")
    assert "summaries_not_reached" not in change.sentence
    assert "positive_direction fell from 1 to 0.4" in change.sentence


def test_labels_below_the_ladder_have_their_own_reasons(publish, passing):
    few = publish(passing_tables(), config=with_gates(min_subject_runs=6), min_subject_runs=6)
    change = changed_verdicts(passing, few, "paper")["surprisal"]
    assert change.label_after == "insufficient_coverage"
    assert "n_subject_runs stays 5, the threshold moved from 3 to 6" in change.sentence


def test_what_could_not_be_computed_any_more_is_said(publish, passing):
    before = passing_tables()
    after = made.put(before, made.CONTROL_DELTAS, delta_control=None, reason="undefined_score")
    other = publish(after)
    change = profile(compare_runs(passing, other)).claims[0]
    first = change.criteria[0]
    assert (first.before, first.after) == (0.05, None)
    assert first.sentence.startswith(
        "mean_delta_nuisance was 0.05 against nuisance and could not be computed, and no longer holds"
    )
    back = profile(compare_runs(other, passing)).claims[0].criteria[0]
    assert "could not be computed before and is 0.05 against nuisance" in back.sentence
    told = json.dumps(comparison_json(compare_runs(passing, other)), allow_nan=False)
    assert '"after": null' in told


def test_studies_of_other_datasets_share_what_they_share(publish):
    first, second = passing_tables(), passing_tables(dataset="other")
    third = passing_tables(model="bert")
    comparison = compare_runs(
        publish(made.stack(first, third)),
        publish(made.stack(first, second), config={**CONFIG, "name": "second"}),
    )
    assert (comparison.study_before, comparison.study_after) == ("first", "second")
    assert {c[:2] for c in comparison.claims_removed} == {("demo", "bert")}
    assert {c[:2] for c in comparison.claims_added} == {("other", "gpt2")}
    assert list(comparison.claims_added) == sorted(comparison.claims_added)
    assert profile(comparison).n_common == profile(comparison).n_unchanged == 2
    alone = compare_runs(publish(first), publish(second))
    assert profile(alone).n_common == 0
    text = comparison_text(alone)
    assert "Claims only in the first run (2)" in text
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
    comparison = compare_runs(first, second)
    versions = {v.name: (v.before, v.after) for v in comparison.versions}
    assert versions == {
        "lpact": (first.manifest.lpact_version, "99.0"),
        "lpact (code)": (first.manifest.lpact_code, "feed"),
        "numpy": (first.manifest.versions["numpy"], "0.1"),
        "plugin mine 1.0": (None, "in use"),
        "torch": (None, "2"),
    }
    assert [(i.dataset, i.path, i.kind) for i in comparison.inputs] == [
        ("demo", "a.fif", "removed"),
        ("demo", "b.fif", "changed"),
        ("demo", "d.fif", "added"),
        ("twin", "a.fif", "added"),
    ]
    assert profile(comparison).n_unchanged == 2
    text = comparison_text(comparison)
    assert "torch: none → 2" in text
    assert "demo: b.fif (bbbbbbbbbbbb → cccccccccccc)" in text


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
    found = {(o.path, o.kind): (o.before, o.after) for o in option_changes(before, after)}
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
    turned = option_changes(
        {"m": [{"name": "a"}, {"name": "b"}]}, {"m": [{"name": "b"}, {"name": "a"}]}
    )
    assert [(o.path, o.after) for o in turned] == [("m", ["b", "a"])]


def test_json_is_plain_and_says_what_the_parts_say(publish, passing):
    before = passing_tables()
    after = made.put(before, made.CONTROL_DELTAS, delta_control=-0.01)
    comparison = compare_runs(passing, publish(after))
    found = json.loads(json.dumps(comparison_json(comparison), allow_nan=False))
    assert found["identical"] is False
    paper = next(p for p in found["profiles"] if p["gate_profile"] == "paper")
    claim = paper["claims"][0]
    assert claim["claim"] == ["demo", "gpt2", 8, "context_update"]
    assert claim["verdict_changed"] is True
    flipped = {c["criterion"] for c in claim["criteria"] if c["flipped"]}
    assert flipped == {"mean_delta_control", "positive_direction"}


def test_odd_names_stay_on_their_line(publish):
    odd = "<script>\x1b[31m\nBIDS\u202e"
    before = passing_tables(dataset=odd)
    after = made.put(before, made.CONTROL_DELTAS, delta_control=-0.01)
    comparison = compare_runs(publish(before), publish(after))
    assert profile(comparison).claims[0].claim[0] == odd
    lines = comparison_text(comparison).split("\n")
    told = [line for line in lines if "<script>" in line]
    assert told
    assert all(line.startswith("  <script>\\x1b[31m\\nBIDS\\u202e/gpt2/8/") for line in told)
    assert plain("plain – д") == "plain – д"


def test_long_lists_are_cut_with_a_count(publish, passing):
    first, second = passing_tables(), passing_tables(dataset="other")
    comparison = compare_runs(passing, publish(made.stack(first, second)))
    assert "other/gpt2/8/surprisal" in comparison_text(comparison)
    cut = comparison_text(comparison, most=1)
    assert "other/gpt2/8/context_update" in cut
    assert "other/gpt2/8/surprisal" not in cut
    assert "  … and 1 more" in cut


def test_numbers_are_told_apart():
    assert pair(0.03, -0.01) == ("0.03", "-0.01")
    assert pair(0.12345, 0.12346) == ("0.12345", "0.12346")
    assert pair(1.0, 1.0 + 2**-50) == ("1", "1.000000000000001")
