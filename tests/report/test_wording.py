"""Numbers, counts and short names as figures write them."""

from __future__ import annotations

import pytest

from lpact.report.wording import bound, counted, number, short, short_forms, signed, span


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1234, "0.123"), (-0.5, "−0.500"), (-0.0001, "0.000"), (None, "–"), (float("nan"), "–")],
)
def test_a_number_has_a_true_minus_sign(value, text):
    assert number(value) == text


def test_counts_and_differences():
    assert [counted(n, "row") for n in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]
    assert counted(2, "summary", "summaries") == "2 summaries"
    assert [span([3, 3]), span([2, 5, 3])] == ["3", "2 to 5"]
    assert [signed(0.5, 1), signed(-0.5, 1), signed(0.0, 1)] == ["+0.5", "−0.5", "0.0"]
    assert [bound(0.02), bound(-1)] == ["+0.02", "−1"]


def test_the_middle_of_a_long_name_is_left_out():
    assert short("abcdefghij", 10) == "abcdefghij"
    assert short("abcdefghij", 7) == "abc…hij"
    assert short("two\nlines", 20) == "two lines"


def test_names_stay_different():
    ends = short_forms(["a" * 20 + "x", "a" * 20 + "y"], 9)
    assert list(ends.values()) == ["aaaa…aaax", "aaaa…aaay"]
    middles = [f"organisation/model_{i}_with_the_same_end" for i in range(3)]
    forms = short_forms(middles, 12)
    assert [form[:2] for form in forms.values()] == ["…0", "…1", "…2"]
    assert all(len(form) <= 12 for form in forms.values())
    hopeless = [f"{i}{'a' * 30}{j}{'b' * 30}" for i in range(2) for j in range(2)]
    assert len(set(short_forms(hopeless, 9).values())) == 4
