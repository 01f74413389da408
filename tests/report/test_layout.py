"""Frames and their views: which way is front, where outlines lie, and what stands in for a missing one."""

from __future__ import annotations

import importlib.util
import re

import numpy as np
import pytest

from lpact.report import layout
from lpact.report.layout import Layout, glass_brain, head, layout_of, views_of


def points_of(path: str) -> np.ndarray:
    """Points of an SVG path, y upwards."""
    found = re.findall(r"(-?[\d.]+),(-?[\d.]+)", path)
    return np.array(found, dtype=np.float64) * [1.0, -1.0]


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        ("MNI152NLin2009cAsym", Layout.BRAIN),
        ("MNI", Layout.BRAIN),
        ("mni_tal", Layout.BRAIN),
        ("fsaverage", Layout.BRAIN),
        ("Talairach", Layout.BRAIN),
        ("head", Layout.SENSORS),
        ("device", Layout.SENSORS),
        ("CTF", Layout.SENSORS),
        ("subject LIP", Layout.NATIVE),
        ("mri", Layout.NATIVE),
        ("", Layout.NATIVE),
    ],
)
def test_frames_have_their_layout(frame: str, kind: Layout):
    assert layout_of(frame) is kind


def test_the_nose_is_on_top_in_every_sensor_frame():
    front_right_ras = np.array([[0.0, 100.0, 0.0], [100.0, 0.0, 0.0], [0.0, 0.0, 100.0]])
    front_right_als = np.array([[100.0, 0.0, 0.0], [0.0, -100.0, 0.0], [0.0, 0.0, 100.0]])
    (ras,), (als,) = views_of("head", front_right_ras), views_of("CTF", front_right_als)
    expected = np.array([[0.0, 100.0], [100.0, 0.0], [0.0, 0.0]])
    assert ras.places == pytest.approx(expected, abs=1e-9)
    assert als.places == pytest.approx(expected, abs=1e-9)


def test_the_head_is_level_with_the_origin():
    circle, nose, *ears = (points_of(part) for part in head(80.0).split("M")[1:])
    assert np.hypot(*circle.T) == pytest.approx(80.0, abs=0.01)
    assert nose[:, 1].max() > 80.0
    assert {np.sign(ear[6][0]) for ear in ears} == {-1.0, 1.0}


def test_brain_views_keep_sides_apart():
    places = np.array([[-40.0, 20.0, 10.0], [30.0, -60.0, 50.0], [0.0, 0.0, 0.0]])
    left, right, behind, above = views_of("MNI", places)
    assert left.shown.tolist() == [True, False, True]
    assert right.shown.tolist() == [False, True, True]
    assert left.places[0].tolist() == [-20.0, 10.0]  # seen from the left, the front is on the left
    assert right.places[1].tolist() == [-60.0, 50.0]
    assert behind.places[0].tolist() == [-40.0, 10.0]
    assert above.places[0].tolist() == [-40.0, 20.0]
    for view in (left, right, behind, above):
        drawn = view.places[view.shown]
        assert (drawn >= view.low).all()
        assert (drawn <= view.high).all()


@pytest.mark.parametrize(
    ("direction", "name", "sign"),
    [("l", "side", -1.0), ("r", "side", 1.0), ("y", "back", 1.0), ("z", "top", 1.0)],
)
def test_outlines_lie_where_nilearn_draws_them(direction: str, name: str, sign: float):
    pytest.importorskip("nilearn")
    from nilearn.plotting.glass_brain import _get_json_and_transform, _get_mpl_patches

    file, transform = _get_json_and_transform(direction)
    import json

    patches = _get_mpl_patches(json.loads(file.read_text()), transform=transform)
    theirs = np.concatenate([transform.transform(p.get_path().vertices[[0, -1]]) for p in patches])
    # nilearn mirrors its axes, not its outline, for the left side.
    ours = points_of(glass_brain(name, sign)) * [sign, 1.0]
    gaps = np.sqrt(((theirs[:, None] - ours[None]) ** 2).sum(axis=2)).min(axis=1)
    assert len(theirs) > 100
    assert gaps.max() < 0.01  # ends of all their curves are among our points, rounded to 0.01 mm


def test_without_nilearn_there_is_no_outline(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("nilearn")
    assert glass_brain("top")
    monkeypatch.setattr(layout, "find_spec", lambda _: None)
    glass_brain.cache_clear()
    try:
        assert glass_brain("top") == ""
        assert len(views_of("MNI", np.zeros((1, 3)))) == 4
    finally:
        monkeypatch.undo()
        glass_brain.cache_clear()
    assert importlib.util.find_spec("nilearn") is not None


def test_native_views_have_scales():
    views = views_of("", np.array([[0.0, 10.0, 20.0], [1.0, 30.0, 60.0]]))
    assert [view.axes for view in views] == [("x", "y"), ("x", "z"), ("y", "z")]
    assert views[2].places.tolist() == [[10.0, 20.0], [30.0, 60.0]]
