"""Positions in space, projected onto a plane."""

from __future__ import annotations

import numpy as np

from lpact.math.types import FloatArray


def azimuthal_equidistant(places: FloatArray) -> FloatArray:
    """Project positions [n, 3] around the origin onto a plane [n, 2], seen from above, as MNE draws topographies.

    With r the distance from the origin, θ the angle from the z axis and φ the angle around it, ::

        (x, y, z) → r θ / (π/2) · (cos φ, sin φ)
    """
    x, y, z = places.T
    level = np.hypot(x, y)
    radius = np.hypot(level, z)
    reach = radius * np.arctan2(level, z) / (np.pi / 2)
    around = np.arctan2(y, x)
    return np.column_stack([reach * np.cos(around), reach * np.sin(around)])
