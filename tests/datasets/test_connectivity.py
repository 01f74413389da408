"""Connectivity matrices: the same values from every format, and an error for every fault."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from lpact.datasets.connectivity import Connectivity, read_connectivity
from lpact.errors import InputError
from lpact.math.types import FloatArray

NAMES = ("V1", "V2", "MT", "FFC")


def matrix() -> FloatArray:
    """Symmetric weights with a missing diagonal, exact in text."""
    weights = np.arange(16.0).reshape(4, 4) / 8
    weights += weights.T
    np.fill_diagonal(weights, np.nan)
    return weights


def write_table(path: Path, rows: tuple[str, ...] = NAMES, corner: str = "") -> Path:
    """Write `matrix` as a table whose columns are `NAMES`."""
    separator = "," if path.suffix == ".csv" else "\t"
    lines = [separator.join((corner, *NAMES))]
    for name, weights in zip(rows, matrix(), strict=False):
        lines.append(separator.join((name, *("n/a" if np.isnan(w) else str(w) for w in weights))))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_npy(path: Path, weights: FloatArray, names: tuple[str, ...] = NAMES) -> Path:
    """Write weights and, next to them, names."""
    np.save(path, weights)
    path.with_suffix(".txt").write_text("\n".join(names) + "\n")
    return path


@pytest.mark.parametrize("kind", ["tsv", "csv", "npz", "npy"])
def test_every_format_gives_the_same_matrix(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"streamlines.{kind}"
    if kind == "npz":
        np.savez(path, names=np.array(NAMES), weights=matrix().astype(np.float32))
    elif kind == "npy":
        names = write_npy(path, matrix()).with_suffix(".txt")
        names.write_text(names.read_text(encoding="utf-8") + "\n\n", encoding="utf-8")  # blank lines at the end
    else:
        write_table(path, corner="region" if kind == "tsv" else "")
    read = read_connectivity(path)
    assert read.names == NAMES
    assert read.weights.dtype == np.float64
    np.testing.assert_array_equal(read.weights, matrix())


def test_integers_and_rounded_text_are_read(tmp_path: Path) -> None:
    weights = np.array([[0, 1000], [1000, 0]])
    assert read_connectivity(write_npy(tmp_path / "a.npy", weights, NAMES[:2])).weights[0, 1] == 1e3
    rounded = weights + np.array([[0.0, 5e-4], [0.0, 0.0]])
    read = read_connectivity(write_npy(tmp_path / "b.npy", rounded, NAMES[:2]))
    np.testing.assert_array_equal(read.weights, rounded)


def test_regions_of_the_data_are_matched() -> None:
    known = Connectivity(NAMES, matrix(), "c.tsv")
    assert known.match(["MT", "V1", "MT"]) == ("V2", "FFC")
    assert known.match(NAMES) == ()
    with pytest.raises(InputError, match="lacks regions of the data") as caught:
        known.match(["V1", "FFC_L", "hV9"])
    assert caught.value.where == "c.tsv"
    assert caught.value.got == "no FFC_L, hV9"
    assert "FFC_L: did you mean 'FFC'?" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("weights", "found"),
    [
        (
            matrix() + np.diag([1.0, 2.0, 3.0], k=1),
            r"1\.625 from 'V1' to 'V2', 0\.625 back; 6 such",
        ),
        (
            np.where(np.eye(4, k=2) == 1, np.inf, matrix()),
            "inf from 'V1' to 'MT', 1.25 back; 2 such",
        ),
        (np.where(np.eye(4, k=-1) == 1, np.nan, 1.0), "1 back; 3 such cells"),
        (matrix()[:3], r"shape \(3, 4\) and 4 region names"),
        (matrix()[0], r"shape \(4,\) and 4 region names"),
    ],
)
def test_weights_that_are_no_connectivity_are_refused(tmp_path: Path, weights: FloatArray, found: str) -> None:
    with pytest.raises(InputError, match=found):
        read_connectivity(write_npy(tmp_path / "m.npy", weights))


def test_names_must_be_distinct_and_not_empty(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'V1' is listed more than once"):
        read_connectivity(write_npy(tmp_path / "m.npy", matrix(), ("V1", "V2", "V1", "MT")))
    with pytest.raises(InputError, match="no name for region 2"):
        read_connectivity(write_npy(tmp_path / "m.npy", matrix(), ("V1", " ", "V3", "MT")))


def test_rows_and_columns_of_a_table_must_agree(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 3, column 'index'") as caught:
        read_connectivity(write_table(tmp_path / "order.tsv", ("V1", "MT", "V2", "FFC")))
    assert "'V2': regions in the order of the header" in str(caught.value.expected)
    with pytest.raises(InputError, match="3 rows and 4 columns; only in one of them: FFC"):
        read_connectivity(write_table(tmp_path / "short.tsv", NAMES[:3]))
    with pytest.raises(InputError, match="only in one of them: FFC, IPS1"):
        read_connectivity(write_table(tmp_path / "other.csv", ("V1", "V2", "MT", "IPS1")))


def test_files_that_are_not_matrices_are_refused(tmp_path: Path) -> None:
    for kind in ("tsv", "npz", "npy"):
        with pytest.raises(InputError, match="FileNotFoundError"):
            read_connectivity(tmp_path / f"none.{kind}")
    with pytest.raises(InputError, match=r"the suffix '\.mat'"):
        read_connectivity(tmp_path / "m.mat")
    np.save(tmp_path / "alone.npy", matrix())
    with pytest.raises(InputError, match=r"alone\.txt in the same folder"):
        read_connectivity(tmp_path / "alone.npy")
    np.savez(tmp_path / "half.npz", weights=matrix())
    with pytest.raises(InputError, match="'weights': float64") as caught:
        read_connectivity(tmp_path / "half.npz")
    assert "savez" in str(caught.value.remedy)
    np.savez(tmp_path / "text.npz", names=np.array(NAMES), weights=np.full((4, 4), "1"))
    with pytest.raises(InputError, match="does not contain real numbers"):
        read_connectivity(tmp_path / "text.npz")


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="is a pipe"):
        read_connectivity(tmp_path / "pipe.csv")


def test_short_memory_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What readers call damage is `damaged`, in every format."""

    def short(*_: object, **__: object) -> None:
        raise MemoryError

    np.savez(tmp_path / "m.npz", names=np.array(NAMES), weights=matrix())
    monkeypatch.setattr(np, "load", short)
    with pytest.raises(MemoryError):
        read_connectivity(tmp_path / "m.npz")


class Unpickled:
    """Leaves a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("kind", ["npz", "npy"])
def test_nothing_is_unpickled(tmp_path: Path, kind: str) -> None:
    path, mark = tmp_path / f"m.{kind}", tmp_path / "unpickled"
    objects = np.array([[Unpickled(mark)]], dtype=object)
    if kind == "npz":
        np.savez(path, allow_pickle=True, names=np.array(["V1"]), weights=objects)
    else:
        np.save(path, objects, allow_pickle=True)
        path.with_suffix(".txt").write_text("V1\n")
    pickle.loads(pickle.dumps(Unpickled(mark)))
    assert mark.exists()
    mark.unlink()
    with pytest.raises(InputError):
        read_connectivity(path)
    assert not mark.exists()
