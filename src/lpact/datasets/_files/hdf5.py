"""HDF5 files, opened with errors that name file and place; nothing leads into another file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lpact.codes import Reason
from lpact.datasets._files.strict import ErrorType
from lpact.datasets._finding import Finding
from lpact.errors import InputError, did_you_mean
from lpact.extras import require

MOST_LINKS = 32
"""Soft links on the way to one object; more are a loop."""


@contextmanager
def open_hdf5(path: Path, error: ErrorType, *, extra: str = "hdf5") -> Iterator[Any]:
    """Open an HDF5 file for reading; one that is truncated or of another kind is named."""
    h5py = require("h5py", extra=extra)
    try:
        file = h5py.File(path, "r")
    except OSError as problem:
        raise error(
            "an HDF5 file cannot be opened; it may be truncated",
            where=str(path),
            got=f"{path.stat().st_size} bytes; {problem}",
            expected="a complete HDF5 file",
            remedy="copy or download the file again, and compare its checksum",
        ) from None
    try:
        yield file
    except (OSError, RuntimeError) as problem:
        # HDF5's own errors are plain RuntimeErrors where they are not OSErrors.
        if isinstance(problem, RuntimeError) and type(problem) is not RuntimeError:
            raise
        raise _torn(str(path), problem, error) from None
    finally:
        file.close()


def hdf5_object(file: Any, name: str, error: ErrorType, *, noun: str = "dataset") -> Any:
    """Return the group or dataset at a path of an opened file, if it lies in that very file.

    Soft links are followed within the file. External links are refused, and never opened; so are a loop of links, and
    a link that leads nowhere. ``noun`` is what users call a dataset.
    """
    h5py = require("h5py", extra="hdf5")
    place, parts, n_links = file["/"], _parts(name), 0
    while parts:
        part = parts.pop(0)
        link = _link(place, part, name, error) if isinstance(place, h5py.Group) else None
        if link is None:
            link_text = "a link that leads nowhere" if n_links else None
            raise _missing(file, name, noun, link_text, error)
        if isinstance(link, h5py.ExternalLink):
            raise _leads_out(file, name, f"a link into '{link.filename}'", error)
        if isinstance(link, h5py.SoftLink):
            n_links += 1
            if n_links > MOST_LINKS:
                raise _missing(file, name, noun, "links that lead in a circle", error)
            parts = _parts(link.path) + parts
            place = file["/"] if link.path.startswith("/") else place
            continue
        try:
            place = place[part]
        except (KeyError, OSError, RuntimeError, ValueError) as problem:
            raise _torn(f"{file.filename}, '{name}'", problem, error) from None
    return place


def hdf5_dataset(file: Any, name: str, error: ErrorType, *, noun: str = "dataset") -> Any:
    """Return the dataset at a path of an opened file, if it and its values lie in that very file.

    Besides what `hdf5_object` refuses, virtual datasets and values in raw files beside the HDF5 file are.
    """
    h5py = require("h5py", extra="hdf5")
    found = hdf5_object(file, name, error, noun=noun)
    if not isinstance(found, h5py.Dataset):
        raise error(
            f"a group was named, not a {noun}",
            where=f"{file.filename}, '{name}'",
            got="a group with " + (", ".join(list(found)[:12]) or "nothing in it")
            if isinstance(found, h5py.Group)
            else "a stored type",
            expected=f"the path of a {noun}",
            remedy=f"name one of those in it, as in '{name}/{next(iter(found), '…')}'"
            if isinstance(found, h5py.Group)
            else f"name a {noun}",
        )
    if found.is_virtual or found.external:
        kind = "a virtual dataset" if found.is_virtual else "external storage"
        raise _leads_out(file, name, f"{kind}: values that lie in other files", error)
    return found


def never_written(dataset: Any) -> str:
    """Tell of parts of a dataset for which no bytes were ever stored; empty where all were."""
    if not dataset.size:
        return ""
    if dataset.chunks is None:
        never = dataset.id.get_storage_size() == 0
        return f"no value was ever stored; all read as {dataset.fillvalue}" if never else ""
    n_chunks = math.prod(
        -(-length // chunk) for length, chunk in zip(dataset.shape, dataset.chunks, strict=True)
    )
    missing = n_chunks - dataset.id.get_num_chunks()
    text = f"{missing} of {n_chunks} chunks were never stored; they read as {dataset.fillvalue}"
    return text if missing > 0 else ""


def never_written_finding(found: str, *, field: str, where: str) -> Finding:
    """Return the note on what `never_written` tells."""
    return Finding(
        field=field,
        reason=Reason.MISSING_SAMPLES,
        severity="note",
        where=where,
        found=found,
        expected="every part of the array in the file",
        remedy="check that writing and copying were finished; writers may leave out parts that are all fill value",
    )


def _parts(name: str) -> list[str]:
    return [part for part in name.split("/") if part not in ("", ".")]


def _link(place: Any, part: str, name: str, error: ErrorType) -> Any:
    try:
        return place.get(part, getlink=True)
    except (TypeError, KeyError, OSError, RuntimeError, ValueError) as problem:
        raise _torn(f"{place.file.filename}, '{name}'", problem, error) from None


def _missing(file: Any, name: str, noun: str, link: str | None, error: ErrorType) -> InputError:
    h5py = require("h5py", extra="hdf5")
    names: list[str] = []
    file.visititems(
        lambda path, item: names.append(path) if isinstance(item, h5py.Dataset) else None
    )
    # MATLAB keeps what it refers to in groups that users never see.
    names = [known for known in names if not known.startswith("#")]
    listed = ", ".join(f"'{known}'" for known in names[:12]) + (" …" if len(names) > 12 else "")
    return error(
        f"a link of an HDF5 file leads nowhere, at '{name}'"
        if link
        else f"a file does not hold the {noun} '{name}'",
        where=f"{file.filename}, '{name}'",
        got=link or (f"{len(names)} {noun}(s): {listed}" if names else f"no {noun}"),
        expected=f"a {noun} named '{name}'",
        remedy=did_you_mean(name, names),
    )


def _leads_out(file: Any, name: str, found: str, error: ErrorType) -> InputError:
    return error(
        "a link leads out of an HDF5 file",
        where=f"{file.filename}, '{name}'",
        got=found,
        expected="values in the file itself",
        remedy="copy the values into the file (h5repack, or h5copy), or name the other file",
    )


def _torn(where: str, problem: Exception, error: ErrorType) -> InputError:
    return error(
        "an HDF5 file cannot be read to the end; it may be torn",
        where=where,
        got=str(problem),
        expected="a complete HDF5 file",
        remedy="copy or download the file again, and compare its checksum",
    )
