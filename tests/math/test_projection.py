"""The sensor layout against known places, and against MNE's."""

from __future__ import annotations

import numpy as np
import pytest

from lpact.math.projection import azimuthal_equidistant


def test_known_places():
    places = np.array(
        [
            [0.0, 0.0, 90.0],  # the vertex
            [90.0, 0.0, 0.0],  # right, level with the origin
            [0.0, 90.0, 0.0],  # front
            [0.0, -45.0, 45.0],  # half way down to the back: half the distance
            [0.0, 0.0, 0.0],
            [0.0, -90.0, -90.0],  # below: farther out than the equator
        ]
    )
    far = np.hypot(45.0, 45.0)
    expected = [
        [0.0, 0.0],
        [90.0, 0.0],
        [0.0, 90.0],
        [0.0, -far / 2],
        [0.0, 0.0],
        [0.0, -2 * far * 1.5],
    ]
    assert azimuthal_equidistant(places) == pytest.approx(np.array(expected), abs=1e-12)


def test_the_layout_is_that_of_mne():
    mne = pytest.importorskip("mne")
    from mne.channels.layout import _find_topomap_coords

    rng = np.random.default_rng(4)
    places = rng.normal(size=(40, 3))
    places *= ((0.09 + 0.01 * rng.random(40)) / np.linalg.norm(places, axis=1))[:, None]
    names = [f"E{i}" for i in range(len(places))]
    info = mne.create_info(names, 100.0, "eeg")
    montage = mne.channels.make_dig_montage(dict(zip(names, places, strict=True)), coord_frame="head")
    info.set_montage(montage)
    theirs = _find_topomap_coords(info, picks=list(range(40)), sphere=(0.0, 0.0, 0.0, 0.095))
    assert azimuthal_equidistant(places) == pytest.approx(theirs, abs=1e-6)
    assert np.abs(theirs).max() > 0.05
