"""Places in space, flattened onto a plane."""

from __future__ import annotations

import numpy as np

from lpact.math.types import FloatArray


def azimuthal_equidistant(places: FloatArray) -> FloatArray:
    """Unroll places around the origin onto a plane, seen from above.

    With r the distance from the origin, θ the angle from the z axis and φ the angle around it, ::

        (x, y, z) → r θ / (π/2) · (cos φ, sin φ)

    Angles from the vertex keep their proportions, and what lies level with the origin keeps its distance from it: the
    layout that MNE draws topographies in, for a sphere around the origin.

    Parameters
    ----------
    places
        [n, 3].

    Returns
    -------
    [n, 2], in the unit of ``places``; the origin itself stays where it is.
    """
    x, y, z = places.T
    level = np.hypot(x, y)
    radius = np.hypot(level, z)
    reach = radius * np.arctan2(level, z) / (np.pi / 2)
    around = np.arctan2(y, x)
    return np.column_stack([reach * np.cos(around), reach * np.sin(around)])
