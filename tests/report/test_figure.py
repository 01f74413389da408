"""Templates of tooltips."""

from __future__ import annotations

from lpact.report.figure import filled


def test_templates_write_values_of_a_row():
    row = {"name": "{x}", "n": 1200, "one": 1, "score": -0.25, "gone": None}
    assert filled("{name}: {n} of {one:row}", row) == "{x}: 1,200 of 1 row"
    assert filled("{score} {score:+2} {gone}", row) == "−0.250 −0.25 –"
