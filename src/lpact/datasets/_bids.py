"""Names and small files of BIDS folders: entities, description, subjects, channels, electrodes, sidecars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path

import numpy as np

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import TextTable, invalid
from lpact.datasets._folder_dataset import UNKNOWN, read_json
from lpact.datasets.base import DatasetInfo, Finding, Findings
from lpact.errors import ConfigError, InputError, RecordingError
from lpact.math.types import FloatArray
from lpact.wording import listed

DESCRIPTION = "dataset_description.json"
RATE_TOLERANCE = 1e-4
"""Sampling rates of file and sidecar may differ by this fraction: sidecars are rounded."""

REGION_COLUMNS = ("region", "anatomical_region", "anatomy", "DesikanKilliany", "Destrieux", "label")
"""Columns of electrodes.tsv that name a region, in the order in which they are tried."""

_TO_MM = {"m": 1000.0, "cm": 10.0, "mm": 1.0}
_NO_REGION = ("", "n/a", "N/A", "nan", "unknown", "Unknown")


def entities(path: Path) -> dict[str, str]:
    """Return the entities of a BIDS name: ``sub-01_task-x_bold.nii.gz`` gives ``{sub: 01, task: x}``."""
    parts = path.name.split(".")[0].split("_")
    return {key: value for key, dash, value in (part.partition("-") for part in parts) if dash}


def stem(path: Path, *keys: str) -> str:
    """Return the first part of a name, with the entities ``keys`` only, in their order."""
    found = entities(path)
    return "_".join(f"{key}-{found[key]}" for key in keys if key in found)


def labels(path: Path) -> dict[str, str]:
    """Return subject, session, run and task of a BIDS name; ``1`` where it does not state one."""
    found = entities(path)
    keys = {"subject": "sub", "session": "ses", "run": "run", "task": "task"}
    return {name: found.get(key, "1") for name, key in keys.items()}


def fill(template: str, path: Path, where: str) -> str:
    """Replace ``{subject}``, ``{session}``, ``{run}`` and ``{task}`` of an option by those of a recording."""
    filled = template
    for name, label in labels(path).items():
        filled = filled.replace(f"{{{name}}}", label)
    if set(filled) & set("{}"):
        raise ConfigError(
            "a file name contains an unknown placeholder",
            where=where,
            got=repr(template),
            expected="{task}, {run}, {session} and {subject} only",
            remedy="fix the option",
        )
    return filled


def find_sidecar(folder: SourceFolder, path: Path, name: str) -> Path | None:
    """Return a sidecar such as ``events.tsv`` by the inheritance of BIDS: in the file's folder, or further up.

    It must have no entity that the file does not have; of several, the one with most entities is used. Two that fit
    equally well are an error.
    """
    own = entities(path).items()
    for home in path.relative_to(folder.root).parents:
        found = [
            one
            for one in folder.glob(f"{escape(home.as_posix())}/*{name}", RecordingError)
            if f"_{one.name}".endswith(f"_{name}") and entities(one).items() <= own
        ]
        most = max((len(entities(one)) for one in found), default=0)
        best = [one for one in found if len(entities(one)) == most]
        if len(best) > 1:
            expected = f"one {name} that fits {path.name} best"
            raise invalid(folder.root / home, listed([one.name for one in best]), expected, remedy="keep one of them")
        if best:
            return best[0]
    return None


def read_description(folder: SourceFolder, published: DatasetInfo | None = None) -> DatasetInfo:
    """Return name, version and licence from ``dataset_description.json``.

    With ``published`` the file is optional, and ``published`` fills in what it does not state.
    """
    path = folder.optional(DESCRIPTION) if published else folder.file(DESCRIPTION)
    about = {} if path is None else read_json(path, InputError)
    known = published or DatasetInfo(folder.name, "not stated", "not stated")
    text = {key: value.strip() for key, value in about.items() if isinstance(value, str)}
    doi = text.get("DatasetDOI", "").removeprefix("doi:")
    version = doi.rpartition(".v")[2] if ".v" in doi else text.get("DatasetVersion")
    name = text.get("Name") or known.source
    return DatasetInfo(
        source=f"{name} ({doi})" if doi else name,
        version=version or known.version,
        licence=text.get("License") or known.licence,
    )


def check_sampling_rate(rate_hz: float, sidecar: Path | None, data: Path) -> None:
    """Raise `RecordingError` if the sidecar states another sampling rate than the data file."""
    value = None if sidecar is None else read_json(sidecar).get("SamplingFrequency")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value in (None, "n/a") or (number and math.isclose(value, rate_hz, rel_tol=RATE_TOLERANCE)):
        return
    raise RecordingError(
        "sidecar and recording state different sampling rates",
        where=f"{sidecar}, key 'SamplingFrequency'",
        got=f"{value!r} in the sidecar, {rate_hz:g} Hz in {data.name}",
        expected="the same rate in both",
        remedy="find out which is right; fix the sidecar, or write the recording again",
    )


@dataclass(frozen=True)
class ChannelTable:
    """``channels.tsv``: type (upper case) and unit of each channel, and why bad ones are bad."""

    path: Path
    types: dict[str, str]
    bad: dict[str, str]
    units: dict[str, str]


def read_channels(path: Path) -> ChannelTable:
    """Read ``channels.tsv``."""
    table = TextTable(path, RecordingError)
    table.require(("name", "type"))
    names = table.unique("name")
    types = dict(zip(names, (kind.upper() for kind in table.text("type")), strict=True))
    bad: dict[str, str] = {}
    if "status" in table.columns:
        why = table.cells("status_description") if "status_description" in table.columns else None
        for row, status in enumerate(table.cells("status")):
            if status not in ("good", "bad", "n/a", ""):
                raise table.wrong("status", row, "good, bad or n/a")
            if status == "bad":
                bad[names[row]] = why[row] if why and why[row] not in ("", "n/a") else "bad"
    units = table.cells("units") if "units" in table.columns else []
    return ChannelTable(path, types, bad, dict(zip(names, units, strict=False)))


@dataclass(frozen=True)
class Places:
    """Coordinates (mm in ``frame``, NaN where unknown) and regions of channels."""

    coordinates_mm: FloatArray
    frame: str
    regions: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def read_electrodes(
    path: Path, names: Sequence[str], *, unit: str, frame: str, region_column: str, where: str
) -> Places:
    """Read ``electrodes.tsv`` for the channels ``names``; one that is not listed has no place.

    Coordinates in another ``unit`` than m, cm or mm are not used. Without ``region_column``, the first of
    `REGION_COLUMNS` in the table is used.
    """
    table = TextTable(path, RecordingError)
    table.require(("name", "x", "y", "z", *((region_column,) if region_column else ())))
    row_of = {name: row for row, name in enumerate(table.unique("name"))}
    rows = [row_of.get(name) for name in names]
    xyz = np.column_stack([table.numbers_or_nan(axis) for axis in ("x", "y", "z")])
    places = np.array([xyz[row] if row is not None else [np.nan] * 3 for row in rows])
    places = places.reshape(-1, 3) * _TO_MM.get(unit, np.nan)
    column = region_column or next((c for c in REGION_COLUMNS if c in table.columns), "")
    labels = table.cells(column) if column else [""] * table.n_rows
    regions = (UNKNOWN if row is None or labels[row] in _NO_REGION else labels[row] for row in rows)
    unlisted = [name for name, row in zip(names, rows, strict=True) if row is None]
    findings = Findings(where)
    found, expected = f"{len(unlisted)} channel(s): {listed(unlisted)}", "a row for every channel"
    if unit not in _TO_MM:
        found, expected = f"coordinates in {unit!r}", "coordinates in m, cm or mm"
    if unlisted or unit not in _TO_MM:
        remedy = "the channels are kept, without a position; add it to the table"
        reason = Reason.UNIT_WITHOUT_PLACE
        findings.note("electrodes.tsv", reason, found, expected, remedy)
    return Places(places, frame if unit in _TO_MM else "", tuple(regions), tuple(findings))
