"""Where brain units are drawn: views of a brain, of a sensor layout, or of an unnamed space.

A `View` is a plane with its outline, in mm, x to the right and y upwards; `views_of` says which planes a coordinate
frame is drawn in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np

from lpact.math.projection import azimuthal_equidistant
from lpact.math.types import BoolArray, FloatArray

Polyline = tuple[tuple[float, float], ...]


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
    if name in (*_SENSORS, *_SENSORS_NOSE_ALONG_X):
        return Layout.SENSORS
    return Layout.NATIVE


@dataclass(frozen=True)
class View:
    """Units on a plane.

    ``places`` is [n, 2] in mm; ``shown`` says which of the n units the view holds; ``low`` and ``high`` are its
    corners; ``axes`` are the names of its axes where they carry a scale.
    """

    name: str
    places: FloatArray
    shown: BoolArray
    low: tuple[float, float]
    high: tuple[float, float]
    outline: tuple[Polyline, ...] = ()
    axes: tuple[str, str] | None = field(default=None)


def views_of(frame: str, places: FloatArray) -> tuple[View, ...]:
    """The planes that places [n, 3] of a coordinate frame are drawn in."""
    layout = layout_of(frame)
    if layout is Layout.BRAIN:
        return _brain(places)
    if layout is Layout.SENSORS:
        turned = frame.strip().casefold() in _SENSORS_NOSE_ALONG_X
        upright = places[:, [1, 0, 2]] * [-1.0, 1.0, 1.0] if turned else places
        return (_sensors(upright),)
    return _native(places)


# -- a brain, through its outlines ---------------------------------------------------------------------------------

_LOW, _HIGH = np.array([-76.0, -112.0, -76.0]), np.array([76.0, 82.0, 86.0])
"""Corners of the box around a brain in MNI space, in mm."""


def _brain(places: FloatArray) -> tuple[View, ...]:
    low, high = np.minimum(_LOW, places.min(axis=0)), np.maximum(_HIGH, places.max(axis=0))
    everywhere = np.ones(len(places), dtype=np.bool_)
    made = []
    for name, direction, (across, up), shown in (
        ("left", "l", (1, 2), places[:, 0] <= 0),
        ("right", "r", (1, 2), places[:, 0] >= 0),
        ("from behind", "y", (0, 2), everywhere),
        ("from above", "z", (0, 1), everywhere),
    ):
        # Seen from the left, the front is on the left.
        sign = -1.0 if direction == "l" else 1.0
        ends = sorted((sign * float(low[across]), sign * float(high[across])))
        outline = tuple(tuple((sign * x, y) for x, y in line) for line in glass_brain(direction))
        flat = np.column_stack([sign * places[:, across], places[:, up]])
        made.append(
            View(name, flat, shown, (ends[0], float(low[up])), (ends[1], float(high[up])), outline)
        )
    return tuple(made)


GLASS_BRAIN = {
    # direction: file, scale across and up, shift across and up
    "l": ("side", (0.38, 0.38), (-108.0, -70.0)),
    "r": ("side", (0.38, 0.38), (-108.0, -70.0)),
    "y": ("back", (0.39, 0.39), (-73.0, -73.0)),
    "z": ("top", (0.36, 0.37), (-71.0, -107.0)),
}
"""Outlines that come with nilearn, and how they lie in MNI space."""
_STEPS = 4
"""Straight pieces that stand for a curve."""


@cache
def glass_brain(direction: str) -> tuple[Polyline, ...]:
    """Outline of a brain in MNI space, in mm, from the files of nilearn; none where it is not installed."""
    name, scale, shift = GLASS_BRAIN[direction]
    folder = _nilearn_files()
    file = folder / f"brain_schematics_{name}.json" if folder else None
    if file is None or not file.is_file():
        return ()
    drawn = json.loads(file.read_text(encoding="utf-8"))
    lines: list[Polyline] = []
    for path in drawn["paths"]:
        for item in path["items"]:
            points = curve(np.array(item["pts"], dtype=np.float64)) * scale + shift
            new = tuple((round(float(x), 2), round(float(y), 2)) for x, y in points)
            if lines and lines[-1][-1] == new[0]:
                lines[-1] = (*lines[-1], *new[1:])
            else:
                lines.append(new)
    return tuple(lines)


def has_outlines() -> bool:
    """Whether outlines of a brain are installed."""
    return bool(glass_brain("z"))


def _nilearn_files() -> Path | None:
    found = find_spec("nilearn")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations))) / "plotting" / "glass_brain_files"


def curve(points: FloatArray) -> FloatArray:
    """Points on the Bézier curve of 2, 3 or 4 control points [k, 2]; a straight line keeps its two ends.

    By de Casteljau's rule: mix neighbours (1 − t) : t until one is left.
    """
    if len(points) == 2:
        return points
    t = np.linspace(0.0, 1.0, _STEPS + 1)[:, None]
    mixed = [np.broadcast_to(point, (len(t), 2)) for point in points]
    while len(mixed) > 1:
        mixed = [(1 - t) * a + t * b for a, b in pairwise(mixed)]
    return np.asarray(mixed[0], dtype=np.float64)


# -- sensors, from above --------------------------------------------------------------------------------------------


def _sensors(places: FloatArray) -> View:
    """The layout seen from above, with the head as the equator of a sphere at the units' median distance."""
    radius = float(np.median(np.linalg.norm(places, axis=1))) or 1.0
    flat = azimuthal_equidistant(places)
    reach = max(1.22 * radius, 1.04 * float(np.abs(flat).max()))
    shown = np.ones(len(places), dtype=np.bool_)
    return View("from above", flat, shown, (-reach, -reach), (reach, reach), head(radius))


def head(radius: float) -> tuple[Polyline, ...]:
    """Outline of a head from above: circle, nose and ears."""
    turn = np.linspace(0.0, 2 * np.pi, 49)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    nose = np.array([(-0.17, 0.985), (0.0, 1.16), (0.17, 0.985)])
    bend = np.linspace(-np.pi / 2, np.pi / 2, 13)
    ear = np.column_stack([0.985 + 0.09 * np.cos(bend), 0.2 * np.sin(bend)])
    return tuple(_line(radius * part) for part in (circle, nose, ear, ear * [-1.0, 1.0]))


def _line(points: FloatArray) -> Polyline:
    return tuple((float(x), float(y)) for x, y in points)


# -- an unnamed space       --------------------------------------------------------------------------------------------


def _native(places: FloatArray) -> tuple[View, ...]:
    low, high = places.min(axis=0), places.max(axis=0)
    room = np.maximum(0.06 * (high - low), 1.0)
    low, high = low - room, high + room
    shown = np.ones(len(places), dtype=np.bool_)
    names = ("x", "y", "z")
    return tuple(
        View(
            f"{names[a]} and {names[b]}",
            places[:, [a, b]],
            shown,
            (float(low[a]), float(low[b])),
            (float(high[a]), float(high[b])),
            axes=(names[a], names[b]),
        )
        for a, b in ((0, 1), (0, 2), (1, 2))
    )


def binned(places: FloatArray, cell: float) -> tuple[FloatArray, Sequence[int]]:
    """Middles [m, 2] of the square cells that hold places [n, 2], and for every place the number of its cell."""
    corners = np.floor(places / cell)
    cells, index = np.unique(corners, axis=0, return_inverse=True)
    return (cells + 0.5) * cell, [int(i) for i in index.reshape(-1)]
