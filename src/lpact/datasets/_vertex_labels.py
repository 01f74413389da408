"""Region names of vertices, from CIFTI and GIFTI label files and plain tables, and their places on a surface.

Arrays in fsLR with 32,492 vertices per hemisphere come with the medial wall, without it, or followed by subcortical
voxels, as the Human Connectome Project's grayordinates are ordered.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lpact.datasets._files.strict import TextTable, damaged, invalid
from lpact.datasets._folder_dataset import UNKNOWN
from lpact.errors import RecordingError
from lpact.extras import require
from lpact.math.types import FloatArray

HEMI = "{hemi}"
HEMISPHERES = ("L", "R")
VERTICES, CORTEX, GRAYORDINATES = 64984, 59412, 91282
"""Vertices of both hemispheres in fsLR32k, those outside the medial wall, and these with subcortical voxels."""

_NO_REGION = ("", "n/a", "???", UNKNOWN)
_STRUCTURES = {"CIFTI_STRUCTURE_CORTEX_LEFT": "L", "CIFTI_STRUCTURE_CORTEX_RIGHT": "R"}


@dataclass(frozen=True)
class VertexLabels:
    """Name and region of every vertex, in the order of the file; ``unknown`` where there is no region."""

    path: Path
    ids: tuple[str, ...]
    regions: tuple[str, ...]

    def of_columns(self, n_columns: int, data: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return ids and regions of an array's columns; columns that follow the labelled ones are subcortical."""
        pairs = list(zip(self.ids, self.regions, strict=True))
        if len(pairs) == VERTICES and n_columns in (CORTEX, GRAYORDINATES):
            pairs = [pair for pair in pairs if pair[1] != UNKNOWN]
        n = len(pairs)
        if n != n_columns and (n, n_columns) != (CORTEX, GRAYORDINATES):
            raise RecordingError(
                "an atlas and an array do not have the same units",
                where=f"{self.path} and {data}",
                got=f"{len(self.ids)} labels, {n} of them used; {n_columns} units in the array",
                expected="a label per unit, in the same order; in fsLR32k, arrays without the medial wall, or with "
                "subcortical voxels after the cortex, fit too",
                remedy="use the atlas of the array's space, or change the option axes",
            )
        return tuple(unit for unit, _ in pairs), tuple(region for _, region in pairs)


def read_vertex_labels(paths: tuple[Path, ...]) -> VertexLabels:
    """Read ``.dlabel.nii``, ``.label.gii`` (one file per hemisphere), or a table with the column ``region``."""
    if paths[0].name.endswith(".gii"):
        sides = HEMISPHERES if len(paths) > 1 else ("",)
        names = [_gifti(path) for path in paths]
        ids = [f"{side}{i}" for side, own in zip(sides, names, strict=True) for i in range(len(own))]
        regions = [name for own in names for name in own]
    elif paths[0].name.endswith(".nii"):
        ids, regions = _cifti(paths[0])
    else:
        table = TextTable(paths[0], RecordingError)
        table.require(("region",))
        regions = table.cells("region")
        named = "unit" in table.columns
        ids = table.unique("unit") if named else [f"u{i}" for i in range(table.n_rows)]
    regions = [UNKNOWN if region.strip() in _NO_REGION else region.strip() for region in regions]
    return VertexLabels(paths[0], tuple(ids), tuple(regions))


def read_surface(paths: tuple[Path, ...], ids: tuple[str, ...]) -> FloatArray:
    """Places of vertices in mm, [n, 3], from ``.surf.gii``, left and right; NaN for ids that are not vertices."""
    places: dict[str, FloatArray] = {}
    for side, path in zip(HEMISPHERES, paths, strict=True):
        points = _open(path, "GiftiImage").get_arrays_from_intent("NIFTI_INTENT_POINTSET")
        if len(points) != 1:
            raise invalid(path, f"{len(points)} arrays of points", "one array of points: a .surf.gii file")
        places |= {f"{side}{i}": place for i, place in enumerate(points[0].data)}
    if not any(unit in places for unit in ids):
        raise invalid(
            ", ".join(map(str, paths)),
            f"vertices {HEMISPHERES[0]}0, {HEMISPHERES[0]}1, …, but units {', '.join(ids[:3])}, …",
            "units that are vertices of the surface",
            remedy="use an atlas .dlabel.nii or .label.gii, or name the units of a table so (column unit)",
        )
    nowhere = np.full(3, np.nan)
    return np.array([places.get(unit, nowhere) for unit in ids], dtype=np.float64)


def _open(path: Path, kind: str) -> Any:
    nibabel = require("nibabel", extra="fmri")
    try:
        image = getattr(nibabel, kind).from_filename(path)
    except Exception as problem:
        raise damaged(path, problem) from None
    return image


def _cifti(path: Path) -> tuple[list[str], list[str]]:
    image = _open(path, "Cifti2Image")
    labels, models = (image.header.get_axis(i) for i in (0, 1))
    if not hasattr(labels, "label") or not hasattr(models, "vertex"):
        found = f"axes {type(labels).__name__} and {type(models).__name__}"
        raise invalid(path, found, "labels of grayordinates: a .dlabel.nii file of one atlas")
    keys = np.asarray(image.dataobj)[0].astype(np.int64)
    sides = (_STRUCTURES.get(str(name), str(name)) for name in models.name)
    ids = [f"{side}{vertex}" for side, vertex in zip(sides, models.vertex, strict=True)]
    table = {key: name for key, (name, _) in labels.label[0].items() if key != 0}
    return ids, [table.get(key, "") for key in keys.tolist()]


def _gifti(path: Path) -> list[str]:
    image = _open(path, "GiftiImage")
    table = image.labeltable.get_labels_as_dict()
    if len(image.darrays) != 1 or not table:
        found = f"{len(image.darrays)} arrays and {len(table)} labels"
        raise invalid(path, found, "one array of labels: a .label.gii file of one atlas")
    return ["" if key == 0 else table.get(key, "") for key in image.darrays[0].data.tolist()]
