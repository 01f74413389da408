"""Where regions are: the mean place of their usable units on either side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lpact.analyses.patterns import tables
from lpact.analyses.patterns.plan import _places
from lpact.responses import Responses
from lpact.store import frame

REGIONS = ("a", "b", "a", "a", "b", "a")
FRAME = "MNI152NLin2009cAsym"


def brain(seed: int) -> Responses:
    rng = np.random.default_rng(seed)
    mm = rng.uniform(1, 60, (6, 3)) * [
        [1, 1, 1],
        [1, 1, 1],
        [-1, 1, 1],
        [1, 1, 1],
        [1, 1, 1],
        [-1, 1, 1],
    ]
    names = tuple(f"u{i}" for i in range(6))
    return Responses(
        rng.standard_normal((4, 1, 6)),
        tuple("wxyz"),
        names,
        regions=REGIONS,
        coordinates_mm=mm,
        coordinate_frame=FRAME,
    )


def test_places_are_means_of_usable_units_then_of_subjects():
    brains = {"1": brain(1), "2": brain(2)}
    usable = {"1": np.ones(6, dtype=bool), "2": np.array([1, 1, 0, 1, 1, 0], dtype=bool)}
    rows = frame(tables.PLACES, [row for name in "ab" for row in _places("d", name, brains, usable)])
    mm = {who: own.coordinates_mm for who, own in brains.items()}
    right = np.mean([mm["1"][[0, 3]].mean(axis=0), mm["2"][[0, 3]].mean(axis=0)], axis=0)
    left = mm["1"][[2, 5]].mean(axis=0)  # The second subject has no usable unit there.
    both = np.mean([mm["1"][[1, 4]].mean(axis=0), mm["2"][[1, 4]].mean(axis=0)], axis=0)
    found = rows.select("region", "side", "n_subjects").rows()
    assert found == [("a", "left", 1), ("a", "right", 2), ("b", "right", 2)]
    assert rows.select("x_mm", "y_mm", "z_mm").to_numpy() == pytest.approx(np.array([left, right, both]))
    assert set(rows["coordinate_frame"]) == {FRAME}


@pytest.mark.parametrize("change", [{"coordinate_frame": "head"}, {"coordinates_mm": None}])
def test_without_a_common_frame_there_are_no_places(change: dict[str, str | None]):
    brains = {"1": brain(1), "2": replace(brain(2), **change)}
    assert _places("d", "a", brains, dict.fromkeys(brains, np.ones(6, dtype=bool))) == []
