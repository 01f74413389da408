"""Names of layers in little room."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.figures.common import ShortLayerNames


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
