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
    n_claim_decisions,
    robustness,
)
from lpact.errors import TableError

CHEAP = {CONTRAST, UNCERTAINTY, BY_MECHANISM, WITHOUT_RUN, MODELS}
ARGUMENTS = {"gates": GATES, "primary_metric": "pearson", "seed": 1, "decide_again": False}


@pytest.fixture(scope="module")
def study():
    return stack(passing_study(dataset="a"), passing_study(dataset="b", runs=("1", "2", "3")))


def test_the_cheap_part_of_a_decided_run_is_that_of_all(study):
    decided = study | decider(study).base
    only = {table.name: decided[table.name] for table in READS_DECIDED}
    whole, part = analysed(study), robustness(only, **ARGUMENTS)
    assert set(part) == CHEAP
    assert set(whole) > CHEAP
    for name in CHEAP:
        assert part[name].equals(whole[name]), name


def test_labels_of_a_decided_run_are_used_as_stored(study):
    """A stored decision that calls nothing integrated is shown so, whatever the rows would give."""
    decided = study | decider(study).base
    none = decided | {DECISIONS: decided[DECISIONS].with_columns(integrated=False)}
    n_pass = [
        robustness(tables, **ARGUMENTS)[CONTRAST].filter(analysis="integrated_decision")["n_claims_pass"].sum()
        for tables in (none, decided)
    ]
    assert n_pass[0] == 0 < n_pass[1]


def test_a_missing_table_is_named(study):
    with pytest.raises(TableError, match="lpact_decision_table"):
        robustness(study, **ARGUMENTS)


def test_number_of_claim_decisions(study):
    """Two datasets with one layer and two mechanisms each; five and three subject-runs; three controls."""
    everywhere = 3 + 4 + 3 + 3 + 3
    assert n_claim_decisions(study) == 4 * everywhere + 2 * 5 + 2 * 3
