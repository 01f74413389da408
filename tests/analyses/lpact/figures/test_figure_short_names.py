"""Short names stay in their room and stay different."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.figures.common import ShortLayerNames
from lpact.report.wording import short, short_forms


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


def test_a_layer_keeps_its_number():
    rows = [
        {"dataset": "d" * 40, "model": f"{'m' * 20}{i}{'n' * 19}", "layer": layer}
        for i in range(2)
        for layer in (3, 12)
    ]
    names = ShortLayerNames(pl.DataFrame(rows))
    made = [names.of(row, 38) for row in rows]
    assert len(set(made)) == len(rows)
    assert [own.rpartition(" ")[2] for own in made] == ["3", "12", "3", "12"]
    assert all(len(own) <= 38 for own in made)
