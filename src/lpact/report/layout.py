"""Where brain units are drawn: views of a brain, of a sensor layout, or of an unnamed space.

A `View` is a plane in mm, x to the right and y upwards; `views_of` says which planes a coordinate frame is drawn in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from lpact.math.projection import azimuthal_equidistant
from lpact.math.types import BoolArray, FloatArray


class Layout(Enum):
    """Kinds of coordinate frames."""

    BRAIN = "brain"
    SENSORS = "sensors"
    NATIVE = "native"


_BRAINS = ("mni", "talairach", "icbm", "fsaverage", "fslr")
_SENSORS = ("head", "device", "elektaneuromag", "neuromag", "chietiitab", "captrak")
_SENSORS_NOSE_ALONG_X = ("ctf", "4dbti", "kityokogawa", "eeglab", "eeglab-hj")
"""Frames whose x axis points to the nose and y axis to the left ear; in the others x is right and y is front."""


def layout_of(frame: str) -> Layout:
    """How places of a coordinate frame are drawn."""
    name = frame.strip().casefold()
    if any(part in name for part in _BRAINS):
        return Layout.BRAIN
    sensors = name in (*_SENSORS, *_SENSORS_NOSE_ALONG_X)
    return Layout.SENSORS if sensors else Layout.NATIVE


@dataclass(frozen=True)
class View:
    """Units on a plane.

    ``places`` is [n, 2] in mm; ``shown`` says which of the n units the view holds; ``low`` and ``high`` are its
    corners; ``outline`` is an SVG path in mm, y downwards; ``axes`` are names of axes that carry a scale.
    """

    name: str
    places: FloatArray
    shown: BoolArray
    low: FloatArray
    high: FloatArray
    outline: str = ""
    axes: tuple[str, str] | None = None


def views_of(frame: str, places: FloatArray) -> list[View]:
    """The planes that places [n, 3] of a coordinate frame are drawn in."""
    layout, everywhere = layout_of(frame), np.ones(len(places), dtype=np.bool_)
    if layout is Layout.BRAIN:
        return _brain(places, everywhere)
    if layout is Layout.SENSORS:
        turned = frame.strip().casefold() in _SENSORS_NOSE_ALONG_X
        return [_sensors(places[:, [1, 0, 2]] * [-1.0, 1.0, 1.0] if turned else places, everywhere)]
    low, high = places.min(axis=0), places.max(axis=0)
    padding = np.maximum(0.06 * (high - low), 1.0)
    low, high = low - padding, high + padding
    return [
        View(f"{a} and {b}", places[:, at], everywhere, low[at], high[at], axes=(a, b))
        for at, (a, b) in (([0, 1], "xy"), ([0, 2], "xz"), ([1, 2], "yz"))
    ]


_LOW, _HIGH = np.array([-76.0, -112.0, -76.0]), np.array([76.0, 82.0, 86.0])
"""Corners of the box around a brain in MNI space, in mm."""

_OUTLINES = {
    # file of nilearn: scale across and up, shift across and up
    "side": ((0.38, 0.38), (-108.0, -70.0)),
    "back": ((0.39, 0.39), (-73.0, -73.0)),
    "top": ((0.36, 0.37), (-71.0, -107.0)),
}


def _brain(places: FloatArray, everywhere: BoolArray) -> list[View]:
    low, high = np.minimum(_LOW, places.min(axis=0)), np.maximum(_HIGH, places.max(axis=0))
    made = []
    for name, outline, at, sign, shown in (
        # Seen from the left, the front is on the left.
        ("left", "side", [1, 2], -1.0, places[:, 0] <= 0),
        ("right", "side", [1, 2], 1.0, places[:, 0] >= 0),
        ("from behind", "back", [0, 2], 1.0, everywhere),
        ("from above", "top", [0, 1], 1.0, everywhere),
    ):
        turn = np.array([sign, 1.0])
        corners = np.sort([turn * low[at], turn * high[at]], axis=0)
        path = glass_brain(outline, sign)
        made.append(View(name, places[:, at] * turn, shown, corners[0], corners[1], path))
    return made


@cache
def glass_brain(name: str, sign: float = 1.0) -> str:
    """Outline ("side", "back" or "top") of a brain in MNI space as an SVG path, from the files of nilearn.

    It is empty where nilearn is not installed. Pieces are Bézier curves of 2, 3 or 4 points.
    """
    found = find_spec("nilearn")
    if found is None or not found.submodule_search_locations:
        return ""
    folder = Path(found.submodule_search_locations[0], "plotting", "glass_brain_files")
    file = folder / f"brain_schematics_{name}.json"
    if not file.is_file():
        return ""
    scale, shift = _OUTLINES[name]
    pieces = []
    for path in json.loads(file.read_text(encoding="utf-8"))["paths"]:
        for item in path["items"]:
            points = (np.array(item["pts"]) * scale + shift) * [sign, 1.0]
            pieces.append(_path(points, {2: "L", 3: "Q", 4: "C"}[len(points)]))
    return "".join(pieces)


def _path(points: FloatArray, command: str = "L") -> str:
    """Points [n, 2] in mm, y upwards, as an SVG path."""
    first, *rest = [f"{x:.2f},{-y:.2f}" for x, y in points]
    return f"M{first}{command}{' '.join(rest)}"


def _sensors(places: FloatArray, everywhere: BoolArray) -> View:
    """The layout seen from above, with the head as the equator of a sphere at the units' median distance."""
    radius = float(np.median(np.linalg.norm(places, axis=1))) or 1.0
    flat = azimuthal_equidistant(places)
    reach = max(1.22 * radius, 1.04 * float(np.abs(flat).max())) * np.ones(2)
    return View("from above", flat, everywhere, -reach, reach, head(radius))


def head(radius: float) -> str:
    """Outline of a head from above, as an SVG path: circle, nose and ears."""
    turn, bend = np.linspace(0.0, 2 * np.pi, 49), np.linspace(-np.pi / 2, np.pi / 2, 13)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    nose = np.array([(-0.17, 0.985), (0.0, 1.16), (0.17, 0.985)])
    ear = np.column_stack([0.985 + 0.09 * np.cos(bend), 0.2 * np.sin(bend)])
    return "".join(_path(radius * part) for part in (circle, nose, ear, ear * [-1.0, 1.0]))
