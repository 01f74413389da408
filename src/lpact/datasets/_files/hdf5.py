"""HDF5 files: errors name file and path, and nothing is read from another file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lpact.codes import Reason
from lpact.datasets._files.strict import ErrorType, damaged
from lpact.datasets.base import Finding
from lpact.errors import did_you_mean
from lpact.extras import require

MAX_LINKS = 32
"""Soft links on the way to one object; more are a loop."""


@contextmanager
def open_hdf5(path: Path, error: ErrorType, *, extra: str = "hdf5") -> Iterator[Any]:
    """Open an HDF5 file for reading; damage is an error that names the file."""
    h5py = require("h5py", extra=extra)
    try:
        file = h5py.File(path, "r")
    except OSError as problem:
        raise damaged(path, problem, error) from None
    with file:
        try:
            yield file
        except (OSError, RuntimeError, KeyError, ValueError) as problem:
            # What h5py raises for damaged content; its RuntimeErrors are plain ones.
            if isinstance(problem, RuntimeError) and type(problem) is not RuntimeError:
                raise
            raise damaged(path, problem, error) from None


def hdf5_object(file: Any, name: str, error: ErrorType, *, noun: str = "dataset") -> Any:
    """Return the group or dataset at a path of an open file.

    Soft links are followed within the file; external links are never opened. ``noun`` names a dataset in messages.
    """
    h5py = require("h5py", extra="hdf5")
    where = f"{file.filename}, '{name}'"
    place, parts, n_links = file["/"], _parts(name), 0
    while parts:
        part = parts.pop(0)
        link = place.get(part, getlink=True) if isinstance(place, h5py.Group) else None
        if isinstance(link, h5py.HardLink):
            place = place[part]
            continue
        if isinstance(link, h5py.ExternalLink):
            raise _outside(where, f"a link to '{link.filename}'", error)
        n_links += link is not None
        if link is not None and n_links <= MAX_LINKS:
            parts = _parts(link.path) + parts
            place = file["/"] if link.path.startswith("/") else place
            continue
        names = dataset_names(file)
        listed = ", ".join(f"'{known}'" for known in names[:12]) + (" …" if len(names) > 12 else "")
        raise error(
            f"a file has no {noun} '{name}'",
            where=where,
            got="a link in a loop, or without a target" if n_links else listed or f"no {noun}",
            remedy=did_you_mean(name, names),
        )
    return place


def hdf5_dataset(file: Any, name: str, error: ErrorType, *, noun: str = "dataset") -> Any:
    """Return the dataset at a path of an open file, if its values are in that file too."""
    h5py = require("h5py", extra="hdf5")
    found = hdf5_object(file, name, error, noun=noun)
    where = f"{file.filename}, '{name}'"
    if not isinstance(found, h5py.Dataset):
        inside = list(found) if isinstance(found, h5py.Group) else []
        raise error(
            f"this is not a {noun}",
            where=where,
            got=f"a {type(found).__name__.lower()}: " + (", ".join(inside[:12]) or "empty"),
            remedy=f"name a {noun}, such as '{name}/{inside[0] if inside else '…'}'",
        )
    if found.is_virtual or found.external:
        kind = "a virtual dataset" if found.is_virtual else "external storage"
        raise _outside(where, f"{kind}: values in other files", error)
    return found


def dataset_names(file: Any) -> list[str]:
    """Paths of all datasets, without MATLAB's hidden groups."""
    h5py = require("h5py", extra="hdf5")
    names: list[str] = []
    file.visititems(lambda path, item: names.append(path) if isinstance(item, h5py.Dataset) else None)
    return [name for name in names if not name.startswith("#")]


def never_written(dataset: Any) -> str:
    """Describe parts of a dataset that were never stored; empty if there are none."""
    if not dataset.size:
        return ""
    if dataset.chunks is None:
        never = dataset.id.get_storage_size() == 0
        return f"no value was ever stored; all read as {dataset.fillvalue}" if never else ""
    n_chunks = math.prod(-(-length // chunk) for length, chunk in zip(dataset.shape, dataset.chunks, strict=True))
    missing = n_chunks - dataset.id.get_num_chunks()
    text = f"{missing} of {n_chunks} chunks were never stored; they read as {dataset.fillvalue}"
    return text if missing > 0 else ""


def never_written_finding(found: str, *, field: str, where: str) -> Finding:
    """Return the note on parts that were never stored."""
    return Finding(
        field=field,
        reason=Reason.MISSING_SAMPLES,
        severity="note",
        where=where,
        found=found,
        expected="every part of the array in the file",
        remedy="check that writing and copying finished; some writers skip parts that equal the fill value",
    )


def _parts(name: str) -> list[str]:
    return [part for part in name.split("/") if part not in ("", ".")]


def _outside(where: str, found: str, error: ErrorType) -> Exception:
    return error(
        "a link leads out of an HDF5 file",
        where=where,
        got=found,
        expected="values in the file itself",
        remedy="copy the values into the file (h5repack, or h5copy), or name the other file",
    )
