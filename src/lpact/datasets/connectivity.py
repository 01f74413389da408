"""Structural connectivity between regions, from a file with one weight per pair of regions.

docs/how-to/datasets/connectivity.md shows the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lpact.datasets._files.source_folder import check_regular
from lpact.datasets._files.stored import check_real, load_npy
from lpact.datasets._files.strict import TextTable, damaged, invalid, read_text
from lpact.datasets.validate import check_unique
from lpact.errors import InputError, did_you_mean
from lpact.math.types import FloatArray
from lpact.wording import listed

NAMES, WEIGHTS = "names", "weights"
ASYMMETRY = 1e-6
"""The two weights of a pair may differ by this much, relative to the largest weight: text files are rounded."""


@dataclass(frozen=True)
class Connectivity:
    """Weights between regions, [n_regions, n_regions]: symmetric, and finite except perhaps on the diagonal."""

    names: tuple[str, ...]
    weights: FloatArray
    where: str = ""

    def match(self, regions: Sequence[str]) -> tuple[str, ...]:
        """Return the regions of the matrix that the data lack; raise `InputError` if it lacks regions of the data."""
        missing = [name for name in dict.fromkeys(regions) if name not in self.names]
        if missing:
            hints = [f"{name}: {did_you_mean(name, self.names)}" for name in missing[:3]]
            raise InputError(
                "the connectivity matrix lacks regions of the data",
                where=self.where,
                got=f"no {listed(missing)}",
                expected=f"a row and a column for each of the data's {len(set(regions))} regions",
                remedy="use a matrix of the data's atlas, or rename its regions; " + "; ".join(hints),
            )
        return tuple(name for name in self.names if name not in set(regions))


def read_connectivity(path: Path) -> Connectivity:
    """Read a connectivity matrix.

    ``.tsv`` and ``.csv``: region names in the header and in the first column. ``.npz``: arrays ``names`` and
    ``weights``. ``.npy``: the weights; the names are in a text file of the same name, ``.txt``, one per line.
    """
    readers = {".tsv": _from_table, ".csv": _from_table, ".npz": _from_npz, ".npy": _from_npy}
    if path.suffix.lower() not in readers:
        expected = f"a file {', '.join(readers)}"
        raise invalid(path, f"the suffix '{path.suffix}'", expected, InputError, "save it as one")
    check_regular([path], InputError)
    names, weights = readers[path.suffix.lower()](path)
    n = len(names)
    if weights.shape != (n, n):
        found = f"weights of shape {weights.shape} and {n} region names"
        expected = "as many rows and columns as regions"
        raise invalid(path, found, expected, InputError, "write all pairs of the named regions")
    if "" in map(str.strip, names):
        found = f"no name for region {[name.strip() for name in names].index('') + 1}"
        raise invalid(path, found, "a name for every region", InputError, "name it")
    check_unique(names, where=f"{path}, region names", remedy="rename one", error=InputError)
    _check_pairs(path, names, weights)
    return Connectivity(tuple(names), weights, str(path))


def connectivity_file(connectivity: Any, folder: Path) -> Path:
    """The file of a matrix; a square pandas table is written into ``folder``."""
    if isinstance(connectivity, str | Path):
        return Path(connectivity).absolute()
    index = getattr(connectivity, "index", None)
    if index is None or list(index) != list(connectivity.columns):
        raise InputError(
            "the connectivity matrix has no region names",
            where="argument 'connectivity'",
            got=type(connectivity).__name__,
            expected="a file, or a pandas table with the same regions as its index and columns, in the same order",
            remedy="pandas.DataFrame(weights, index=regions, columns=regions)",
        )
    path = folder / "connectivity.npz"
    np.savez(
        path,
        names=np.array([str(name) for name in index]),
        weights=connectivity.to_numpy(np.float64),
    )
    return path


def _check_pairs(path: Path, names: Sequence[str], weights: FloatArray) -> None:
    """Raise unless weights off the diagonal are finite and the same in both directions."""
    off = ~np.eye(len(names), dtype=np.bool_)
    wrong = ~np.isfinite(weights) & off
    remedy = "fill in the weight; 0 if the regions are not connected"
    expected = "finite weights between different regions; only the diagonal may be missing"
    if not wrong.any():
        largest = np.abs(weights[off]).max(initial=0.0)
        apart = np.abs(np.subtract(weights, weights.T, where=off, out=np.zeros_like(weights)))
        wrong = apart > ASYMMETRY * largest
        expected = "a symmetric matrix: streamlines have no direction"
        remedy = "average both directions, (w + w.T) / 2, if that is what the analysis should use"
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        found = f"{weights[i, j]:g} from '{names[i]}' to '{names[j]}', {weights[j, i]:g} back"
        found += f"; {int(wrong.sum())} such cells"
        raise invalid(path, found, expected, InputError, remedy)


def _from_table(path: Path) -> tuple[list[str], FloatArray]:
    table = TextTable(path, InputError)
    rows, *columns = table.columns
    names = table.text(rows)
    if sorted(names) == sorted(columns) and names != columns:
        row = next(i for i, pair in enumerate(zip(names, columns, strict=True)) if len({*pair}) > 1)
        raise table.wrong(rows, row, f"'{columns[row]}': regions in the order of the header")
    if names != columns:
        apart = listed(sorted(set(names) ^ set(columns))) or "a region twice"
        raise invalid(
            path,
            f"{len(names)} rows and {len(columns)} columns; only in one of them: {apart}",
            "the same regions in the header and in the first column",
            InputError,
            "write a square table; the cell above the row names is free",
        )
    return names, np.column_stack([table.numbers_or_nan(name) for name in columns])


def _from_npz(path: Path) -> tuple[list[str], FloatArray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in (NAMES, WEIGHTS) if name in archive}
            stored = listed(archive.files)
    except Exception as problem:
        # A member of pickled objects is a ValueError here; NumPy's other errors are of many kinds.
        remedy = "arrays of texts and numbers, without pickled objects"
        raise damaged(path, problem, InputError, remedy) from None
    if len(found) < 2 or found[NAMES].dtype.kind != "U" or found[NAMES].ndim != 1:
        kinds = ", ".join(f"'{k}': {v.dtype} {v.shape}" for k, v in found.items()) or stored
        expected = f"'{NAMES}', a list of texts, and '{WEIGHTS}', regions × regions"
        remedy = "numpy.savez(path, names=numpy.array(names), weights=weights)"
        raise invalid(path, kinds or "no arrays", expected, InputError, remedy)
    check_real(found[WEIGHTS].dtype, f"{path}, '{WEIGHTS}'", InputError)
    return found[NAMES].tolist(), found[WEIGHTS].astype(np.float64)


def _from_npy(path: Path) -> tuple[list[str], FloatArray]:
    weights = load_npy(path, InputError).astype(np.float64)
    beside = path.with_suffix(".txt")
    if not beside.is_file():
        expected = f"{beside.name} in the same folder, with one region per line"
        raise invalid(path, "no file of region names", expected, InputError, "write the names")
    return read_text(beside, InputError).rstrip().splitlines(), weights
