"""The small files of a BIDS folder: JSON sidecars, participants, channels and electrodes."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import ErrorType, TsvFile, read_text
from lpact.datasets._finding import Finding
from lpact.datasets.base import DatasetInfo
from lpact.errors import InputError, RecordingError
from lpact.math.types import FloatArray

RATE_TOLERANCE = 1e-4
"""Sampling rates of file and sidecar may differ by this fraction: sidecars are rounded."""

_TO_MM = {"m": 1000.0, "cm": 10.0, "mm": 1.0}
_NO_REGION = ("", "n/a", "N/A", "nan", "unknown", "Unknown")
REGION_COLUMNS = (
    "region",
    "anatomical_region",
    "anatomy",
    "DesikanKilliany",
    "Destrieux",
    "label",
)
"""Columns of electrodes.tsv that name a region, in the order in which they are tried."""


def read_json(path: Path, error: ErrorType) -> dict[str, Any]:
    """Return the object of a JSON file."""
    try:
        values = json.loads(read_text(path, error))
    except json.JSONDecodeError as problem:
        raise error(
            "a file is not valid JSON",
            where=f"{path}, line {problem.lineno}",
            got=problem.msg,
            expected="a JSON object",
            remedy="fix the named line",
        ) from None
    if not isinstance(values, dict):
        raise error(
            "a JSON file does not hold an object",
            where=str(path),
            got=type(values).__name__,
            expected="an object in braces",
            remedy="fix the file",
        )
    return values


def read_description(folder: SourceFolder, published: DatasetInfo | None = None) -> DatasetInfo:
    """Return name, version and licence from ``dataset_description.json``.

    With ``published`` the file may be missing, and what it does not state is taken from there.
    """
    if published is None:
        path: Path | None = folder.file("dataset_description.json")
    else:
        path = folder.optional("dataset_description.json")
    about = {} if path is None else read_json(path, InputError)
    known = published or DatasetInfo(folder.name, "not stated", "not stated")

    def text(key: str) -> str:
        value = about.get(key)
        return value.strip() if isinstance(value, str) else ""

    doi = text("DatasetDOI").removeprefix("doi:")
    version = doi.rpartition(".v")[2] if ".v" in doi else text("DatasetVersion")
    name = text("Name") or known.source
    return DatasetInfo(
        source=f"{name} ({doi})" if doi else name,
        version=version or known.version,
        licence=text("License") or known.licence,
    )


def check_participants(folder: SourceFolder) -> Path | None:
    """Raise `InputError` if ``participants.tsv`` lists a subject twice; return its path, if it is there."""
    path = folder.optional("participants.tsv")
    if path is None:
        return None
    table = TsvFile(path, InputError)
    table.require(("participant_id",))
    for subject, count in Counter(table.text("participant_id")).items():
        if count > 1:
            raise InputError(
                f"the subject '{subject}' is listed more than once",
                where=f"{path}, column 'participant_id'",
                got=f"'{subject}' {count} times",
                expected="one line for every subject",
                remedy="remove the duplicate, or give the second person another id",
            )
    return path


def check_sampling_rate(rate_hz: float, sidecar: Path | None, data: Path) -> None:
    """Raise `RecordingError` if the sidecar names another sampling rate than the data file."""
    if sidecar is None:
        return
    value = read_json(sidecar, RecordingError).get("SamplingFrequency")
    if value is None or value == "n/a":
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and math.isclose(float(value), rate_hz, rel_tol=RATE_TOLERANCE):
        return
    raise RecordingError(
        "the sidecar names another sampling rate than the recording",
        where=f"{sidecar}, key 'SamplingFrequency'",
        got=f"{value!r} in the sidecar, {rate_hz:g} Hz in {data.name}",
        expected="the same rate in both",
        remedy="find out which is right; fix the sidecar, or write the recording again",
    )


@dataclass(frozen=True)
class ChannelTable:
    """Rows of ``channels.tsv``: type (upper case) and unit of every channel, and why a bad one is bad.

    ``units`` are as they are written, and empty where the table has no such column.
    """

    path: Path
    types: dict[str, str]
    bad: dict[str, str]
    units: dict[str, str]


def read_channels(path: Path) -> ChannelTable:
    """Read ``channels.tsv``; a channel that is listed twice is an error."""
    table = TsvFile(path, RecordingError)
    table.require(("name", "type"))
    names = table.text("name")
    for row, name in enumerate(names):
        if names.index(name) != row:
            raise table.wrong("name", row, "every channel once")
    types = dict(zip(names, (kind.upper() for kind in table.text("type")), strict=True))
    bad: dict[str, str] = {}
    if "status" in table.columns:
        why = table.cells("status_description") if "status_description" in table.columns else None
        for row, status in enumerate(table.cells("status")):
            if status not in ("good", "bad", "n/a", ""):
                raise table.wrong("status", row, "good, bad or n/a")
            if status == "bad":
                bad[names[row]] = why[row] if why and why[row] not in ("", "n/a") else "bad"
    listed = table.cells("units") if "units" in table.columns else []
    return ChannelTable(path, types, bad, dict(zip(names, listed, strict=False)))


@dataclass(frozen=True)
class Electrodes:
    """Places of channels: millimetres in ``frame``, and region labels."""

    coordinates_mm: FloatArray
    frame: str
    regions: tuple[str, ...]
    findings: tuple[Finding, ...]


def read_electrodes(
    path: Path, names: Sequence[str], *, unit: str, frame: str, region_column: str, where: str
) -> Electrodes:
    """Read ``electrodes.tsv`` for the channels ``names``; one that is not listed has no place.

    ``unit`` is what the coordinates are in (m, cm, mm; anything else: they are not used). ``region_column`` is the
    column with the region, or empty for the first of `REGION_COLUMNS` that is there.
    """
    table = TsvFile(path, RecordingError)
    table.require(("name", "x", "y", "z", *((region_column,) if region_column else ())))
    listed = table.text("name")
    for row, name in enumerate(listed):
        if listed.index(name) != row:
            raise table.wrong("name", row, "every electrode once")
    row_of = {name: row for row, name in enumerate(listed)}
    rows = [row_of.get(name) for name in names]
    xyz = np.column_stack([table.numbers_or_nan(axis) for axis in ("x", "y", "z")])
    places = np.full((len(names), 3), np.nan)
    findings = []
    if unit in _TO_MM:
        for i, place in enumerate(rows):
            if place is not None:
                places[i] = xyz[place] * _TO_MM[unit]
    else:
        findings.append(
            _place_note(where, f"coordinates in {unit!r}", "coordinates in m, cm or mm")
        )
    column = region_column or next((c for c in REGION_COLUMNS if c in table.columns), "")
    labels = table.cells(column) if column else []
    regions = tuple(
        labels[row] if row is not None and column and labels[row] not in _NO_REGION else "unknown"
        for row in rows
    )
    unlisted = [name for name, row in zip(names, rows, strict=True) if row is None]
    if unlisted:
        shown = ", ".join(unlisted[:8]) + (" …" if len(unlisted) > 8 else "")
        findings.append(
            _place_note(where, f"{len(unlisted)} channel(s): {shown}", "a row for every channel")
        )
    return Electrodes(places, frame if unit in _TO_MM else "", regions, tuple(findings))


def _place_note(where: str, found: str, expected: str) -> Finding:
    return Finding(
        field="electrodes.tsv",
        reason=Reason.UNIT_WITHOUT_PLACE,
        severity="note",
        where=where,
        found=found,
        expected=expected,
        remedy="the channels are kept, without a place; add it to the table",
    )
