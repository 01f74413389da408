"""The cheap part alone equals the same part of all; and how much work the rest is."""

from __future__ import annotations

import pytest
from robustness_tables import (
    BY_MECHANISM,
    CONTRAST,
    MODELS,
    UNCERTAINTY,
    WITHOUT_RUN,
    analysed,
    decider,
    passing_study,
)
from synthetic_tables import DECISIONS, GATES, stack

from lpact.analyses.lpact.robustness import (
    READS_DECIDED,
    robustness_cost,
    uncertainty_tables,
)
from lpact.errors import TableError

CHEAP = {CONTRAST, UNCERTAINTY, BY_MECHANISM, WITHOUT_RUN, MODELS}
ARGUMENTS = {"gates": GATES, "primary_metric": "pearson", "seed": 1}


@pytest.fixture(scope="module")
def study():
    return stack(passing_study(dataset="a"), passing_study(dataset="b", runs=("1", "2", "3")))


def test_the_cheap_part_is_that_of_all(study):
    whole, part = analysed(study), uncertainty_tables(study, **ARGUMENTS)
    assert set(part) == CHEAP
    assert set(whole) > CHEAP
    for name in CHEAP:
        assert part[name].equals(whole[name]), name


def test_a_decided_run_is_not_decided_again(study):
    decided = study | decider(study).base
    expected = uncertainty_tables(study, **ARGUMENTS)
    only = {table.name: decided[table.name] for table in READS_DECIDED}
    found = uncertainty_tables(only, as_decided=True, **ARGUMENTS)
    for name in CHEAP:
        assert found[name].equals(expected[name]), name


def test_labels_of_a_decided_run_are_taken_as_they_are(study):
    """A stored decision that calls nothing integrated is shown so, whatever the rows would give."""
    decided = study | decider(study).base
    decided[DECISIONS] = decided[DECISIONS].with_columns(integrated=False)
    found = uncertainty_tables(decided, as_decided=True, **ARGUMENTS)[CONTRAST]
    again = uncertainty_tables(decided, **ARGUMENTS)[CONTRAST]
    passed = {
        name: t.filter(analysis="integrated_decision")["n_claims_pass"].sum()
        for name, t in (("stored", found), ("again", again))
    }
    assert passed["stored"] == 0
    assert passed["again"] > 0


def test_a_missing_table_is_named(study):
    with pytest.raises(TableError, match="lpact_decision_table"):
        uncertainty_tables(study, as_decided=True, **ARGUMENTS)


def test_cost(study):
    """Two datasets with one layer and two mechanisms each; five and three subject-runs; three controls."""
    cost = robustness_cost(study)
    everywhere = 3 + 4 + 3 + 3 + 3
    assert cost.n_claims == 4
    assert cost.n_changes == everywhere + 2 + 8
    assert cost.n_claim_decisions == 4 * everywhere + 2 * 5 + 2 * 3
    rows = {"a": 5 * 5 * 4 * 4, "b": 3 * 5 * 4 * 4}
    assert cost.n_rows == rows["a"] * (everywhere + 5) + rows["b"] * (everywhere + 3)
