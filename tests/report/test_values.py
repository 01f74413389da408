"""Numbers, counts, names and templates as figures and pages write them."""

from __future__ import annotations

import pytest

from lpact.report.figure import filled
from lpact.report.values import short, signed, span
from lpact.wording import counted, fixed


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1234, "0.123"), (-0.5, "−0.500"), (-0.0001, "0.000"), (None, "–"), (float("nan"), "–")],
)
def test_a_number_has_a_true_minus_sign(value, text):
    assert fixed(value) == text


def test_counts_and_differences():
    assert [counted(n, "row") for n in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]
    assert [counted(2, "summary"), counted(2, "stimulus", "stimuli")] == [
        "2 summaries",
        "2 stimuli",
    ]
    assert [span([3, 3]), span([2, 5, 3])] == ["3", "2 to 5"]
    assert [signed(0.5, 1), signed(-0.5, 1), signed(0.0, 1)] == ["+0.5", "−0.5", "0.0"]


def test_the_middle_of_a_long_name_is_left_out():
    assert short("abcdefghij", 10) == "abcdefghij"
    assert short("abcdefghij", 7) == "abc…hij"
    assert short("two\nlines", 20) == "two lines"


def test_templates_write_values_of_a_row():
    row = {"name": "{x}", "n": 1200, "one": 1, "score": -0.25, "gone": None}
    assert filled("{name}: {n} of {one:row}", row) == "{x}: 1,200 of 1 row"
    assert filled("{score} {score:+2} {gone}", row) == "−0.250 −0.25 –"
