"""One test a summary: brains that have nothing to do with each other pass at the test's own rate."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from brain_studies import study_config
from scipy.stats import pearsonr, spearmanr

from lpact.analyses.lpact.assays import brain_as_model
from lpact.analyses.lpact.assays.brain_as_model import (
    RecordingPatterns,
    order_p_value,
    reordered_means,
    whole_orders,
)
from lpact.analyses.lpact.assays.control_results import control_results
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.analyses.lpact.tables.assay import FULL_SUMMARY
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING
from lpact.codes import Reason
from lpact.datasets.base import RecordingId
from lpact.store import empty, frame

N_UNITS, N_STUDIES, MOST_PASSES = 16, 150, 13
UNITS = tuple(f"u{i:02d}" for i in range(N_UNITS))
ONE_MEASURE = study_config(relational={"alignments": ["cka"], "profiles": ["pearson"]})


def brain(place, factor, noise, rng):
    """Patterns that one factor makes: units with a large loading resemble each other."""
    matrix = np.outer(factor, factor) + noise * rng.standard_normal((N_UNITS, N_UNITS))
    matrix = (matrix + matrix.T) / 2
    return RecordingPatterns(UNITS, {"cka": matrix}, {"cka": np.ones(N_UNITS)}, RecordingId(*place, "s"), True)


def rows_of(brains, config=ONE_MEASURE):
    return brain_as_model.compare_brains(config, "d", brains)


def summary_of(brains, comparison, config=ONE_MEASURE):
    table = brain_as_model.summarise_comparisons(
        config,
        "d",
        "primary",
        brains,
        rows=rows_of(brains, config),
        tests=brain_as_model.unit_order_tests(config, "d", brains),
        ceilings=empty(BRAIN_CEILING),
    )
    return table.filter(comparison=comparison)


def two_runs(rng, *, related, noise=0.05):
    factor = rng.uniform(0.2, 1.0, N_UNITS)
    other = factor if related else rng.uniform(0.2, 1.0, N_UNITS)
    return [brain(("1", "a", "1"), factor, noise, rng), brain(("1", "a", "2"), other, noise, rng)]


def share_rule(summary):
    return (summary["pass_share"] >= 0.6) & (summary["mean_delta"] > 0)


def p_value(brains, comparison):
    tests = brain_as_model.unit_order_tests(ONE_MEASURE, "d", brains)
    return order_p_value(tests[comparison, "cka", "pearson"])


def test_unrelated_runs_pass_at_the_rate_of_the_test():
    """2 of 51 orders are expected to be as good as the right one: 150 · 0.039 = 5.9 ± 2.4 studies pass."""
    rng = np.random.default_rng(0)
    studies = (two_runs(rng, related=False) for _ in range(N_STUDIES))
    assert sum(p_value(brains, "run_to_run") <= 0.05 for brains in studies) <= MOST_PASSES


def test_a_summary_does_not_pass_because_all_units_fell_on_the_same_side():
    """One factor moves all units: whether most of them resemble their namesakes is one toss of a coin."""
    rng = np.random.default_rng(0)
    summaries = [summary_of(two_runs(rng, related=False), "run_to_run") for _ in range(24)]
    assert sum(share_rule(summary).item() for summary in summaries) >= 6
    assert sum(summary["gate_pass"].item() for summary in summaries) <= 3
    planted = [summary_of(two_runs(rng, related=True, noise=0.15), "run_to_run") for _ in range(4)]
    assert all(summary["gate_pass"].item() for summary in planted)


def test_unrelated_subjects_pass_at_the_rate_of_the_test():
    """Three pairs of three subjects, each subject in two of them."""
    rng = np.random.default_rng(1)
    passed = 0
    for _ in range(N_STUDIES):
        brains = [brain((str(s), "a", "1"), rng.uniform(0.2, 1.0, N_UNITS), 0.05, rng) for s in range(3)]
        passed += p_value(brains, "subject_to_subject") <= 0.05
    assert passed <= MOST_PASSES


def test_subjects_that_are_alike_do_not_count_as_many():
    """All subjects share the pattern of run 1 and that of run 2; the two have nothing to do with each other."""
    rng = np.random.default_rng(2)
    passed = 0
    for _ in range(N_STUDIES):
        factors = rng.uniform(0.2, 1.0, (2, N_UNITS))
        brains = [brain((str(s), "a", str(r)), factors[r], 0.05, rng) for s in range(2) for r in range(2)]
        passed += p_value(brains, "run_to_run") <= 0.05
    assert passed <= MOST_PASSES


@pytest.mark.parametrize(
    ("name", "scipy"), [("pearson", pearsonr), ("spearman", spearmanr)], ids=["pearson", "spearman"]
)
def test_whole_units_are_reordered_as_scipy_does(name, scipy):
    rng = np.random.default_rng(3)
    target, source = rng.standard_normal((2, 6, 6))
    orders = np.array([rng.permutation(6) for _ in range(4)])
    found = reordered_means(PROFILES.build(name), target, source, orders)
    for p, order in enumerate(orders):
        moved = source[np.ix_(order, order)]
        others = [[j for j in range(6) if j != i] for i in range(6)]
        expected = [scipy(target[i, o], moved[i, o]).statistic for i, o in enumerate(others)]
        assert found[p] == pytest.approx(np.mean(expected))
    # A pattern that does not vary has no similarity and does not enter the mean.
    source[2] = 1.0
    flat = reordered_means(PROFILES.build(name), target, source, np.arange(6)[None])
    kept = [i for i in range(6) if i != 2]
    expected = [scipy(target[i, others[i]], source[i, others[i]]).statistic for i in kept]
    assert flat == pytest.approx([np.mean(expected)])


def test_orders_are_shared_by_what_a_comparison_does_not_tell_apart():
    def orders(comparison, *place, units=UNITS):
        return whole_orders(5, "d", comparison, RecordingId(*place, "s"), units, 3).tolist()

    one = orders("run_to_run", "1", "a", "1")
    assert one == orders("run_to_run", "2", "b", "1")
    assert one != orders("run_to_run", "1", "a", "2")
    assert one != orders("run_to_run", "1", "a", "1", units=UNITS[1:])
    subject = orders("subject_to_subject", "1", "a", "1")
    assert subject == orders("subject_to_subject", "1", "b", "2")
    assert subject != orders("subject_to_subject", "2", "a", "1")
    assert {tuple(sorted(order)) for order in one} == {tuple(range(N_UNITS))}


def test_the_test_counts_the_right_order_and_ties():
    assert order_p_value(np.array([0.5, 0.1, 0.5 + 1e-14, 0.7, np.nan])) == 3 / 4
    # All orders of three units: the mean similarity of a pattern with itself is 1 in one of them.
    rng = np.random.default_rng(4)
    own = rng.standard_normal((5, 5))
    orders = np.array(list(permutations(range(5))))
    means = reordered_means(PROFILES.build("pearson"), own, own, orders)
    assert order_p_value(means) <= 1 / 120
    assert means[0] == pytest.approx(1.0)


def test_the_summary_stores_the_test_and_the_oracle_follows_it():
    rng = np.random.default_rng(5)
    brains = two_runs(rng, related=True, noise=0.15)
    row = summary_of(brains, "run_to_run").row(0, named=True)
    assert row["n_orders"] == ONE_MEASURE.assay.unit_permutations
    assert row["p_value"] <= 1 / 51
    assert "p = " in row["interpretation"]
    # An unrelated pair with many rows that pass, and a test that does not reject.
    rng = np.random.default_rng(0)
    lucky = next(
        summary
        for summary in (summary_of(two_runs(rng, related=False), "run_to_run") for _ in range(N_STUDIES))
        if share_rule(summary).item() and summary["p_value"].item() > 0.05
    )
    high = lucky.with_columns(mean_similarity=0.9, ceiling=0.9)
    found = brain_as_model.oracle(high, GatesConfig()).row(0, named=True)
    assert (found["n_ceiling_valid"], found["n_relational_pass"]) == (1, 0)
    assert not found["gate_pass"]
    between = summary_of(brains, "subject_to_subject").row(0, named=True)
    assert (between["p_value"], between["n_orders"]) == (None, 0)
    assert between["reason"] == Reason.SINGLE_SUBJECT


def test_every_finding_says_what_it_is_about():
    """The table of the envelope has one row a dataset, and nothing else that could name it."""
    row = {column.name: None for column in FULL_SUMMARY.columns}
    row |= {c.name: 0 for c in FULL_SUMMARY.columns if c.dtype == "int"}
    row |= {c.name: "x" for c in FULL_SUMMARY.columns if c.dtype == "str"}
    row |= {"dataset": "sim_eeg", "gate": "not_available", "reason": "not_computed"}
    found = control_results({FULL_SUMMARY.name: frame(FULL_SUMMARY, [row])}, GatesConfig())
    assert [(f.dataset, f.what, f.passes) for f in found] == [("sim_eeg", "acoustic envelope", None)]
