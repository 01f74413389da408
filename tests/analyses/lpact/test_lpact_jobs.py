"""Brain patterns from the same run, other runs and other subjects."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lpact.analyses.lpact.jobs import brain_patterns
from lpact.codes import Reason
from lpact.datasets.base import RecordingId

UNITS = ("a", "b", "c", "d")


def brain(seed, units=UNITS):
    """A recording's patterns: entry (i, j) names the recording and the pair."""
    rng = np.random.default_rng(seed)
    matrix = rng.random((len(units), len(units)))
    np.fill_diagonal(matrix, np.nan)
    table = pl.DataFrame(
        {
            "alignment": "cka",
            "unit": list(units),
            "unit_index": list(range(len(units))),
            "pattern": [[None if np.isnan(v) else v for v in row] for row in matrix],
            "split_half_reliability": rng.random(len(units)),
        }
    )
    return matrix, table


OWN, RUN, SUBJECT = (
    RecordingId("1", "a", "1", "s"),
    RecordingId("1", "a", "2", "s"),
    RecordingId("2", "a", "1", "s"),
)


@pytest.mark.parametrize(("source", "partner"), [("same_run", OWN), ("other_run", RUN), ("other_subject", SUBJECT)])
def test_patterns_are_those_of_the_partner(source, partner):
    matrices = {recording: brain(i) for i, recording in enumerate((OWN, RUN, SUBJECT))}
    found = brain_patterns(source, OWN, {r: frames for r, (_, frames) in matrices.items()})
    np.testing.assert_allclose(found.matrices["cka"], matrices[partner][0])


def test_partners_are_averaged_and_units_matched_by_name():
    first, frames_first = brain(1, ("c", "a", "b"))
    second, frames_second = brain(2, ("a", "b", "d"))
    other = RecordingId("3", "a", "1", "s")
    found = brain_patterns("other_subject", OWN, {OWN: brain(0)[1], SUBJECT: frames_first, other: frames_second})
    matrix = found.matrices["cka"]
    a, b, c, d = range(4)
    assert matrix[a, b] == pytest.approx((first[1, 2] + second[0, 1]) / 2)
    assert matrix[a, c] == pytest.approx(first[1, 0])
    assert np.isnan(matrix[c, d])


def test_no_partner_is_a_reason():
    assert brain_patterns("other_run", OWN, {OWN: brain(0)[1]}) is Reason.NO_PARTNER_PATTERN
    strangers = brain(1, ("x", "y", "z"))[1]
    found = brain_patterns("other_run", OWN, {OWN: brain(0)[1], RUN: strangers})
    assert found is Reason.NO_PARTNER_PATTERN
