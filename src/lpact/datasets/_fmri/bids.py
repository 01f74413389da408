"""Names and side files of BIDS functional MRI: entities, sidecars, events, confounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import TsvFile
from lpact.datasets._finding import Finding
from lpact.datasets.bids.sidecars import read_json
from lpact.errors import RecordingError

SAME_TR = 1e-3
"""Repetition times may differ by this fraction: headers store them in single precision."""

CONFOUNDS = ("desc-confounds_timeseries.tsv", "desc-confounds_regressors.tsv")
"""What fMRIPrep calls its confounds, now and before version 21."""


def entities(path: Path) -> dict[str, str]:
    """Return the entities of a BIDS name: ``sub-01_task-x_bold.nii.gz`` gives ``{sub: 01, task: x}``."""
    parts = path.name.split(".")[0].split("_")
    return {key: value for key, dash, value in (part.partition("-") for part in parts) if dash}


def stem(path: Path, *keys: str) -> str:
    """Return the first part of a name, with the entities ``keys`` only, in their order."""
    found = entities(path)
    return "_".join(f"{key}-{found[key]}" for key in keys if key in found)


@dataclass(frozen=True)
class RepetitionTime:
    """A repetition time and what was noticed about it."""

    tr_s: float
    findings: tuple[Finding, ...] = ()


def repetition_time(
    header_tr_s: float | None,
    sidecars: Sequence[Path],
    *,
    bold: Path,
    folder: SourceFolder,
    published_s: float | None,
    override_s: float | None,
) -> RepetitionTime:
    """Return the repetition time on which header, sidecars and what is published agree.

    ``override_s`` settles a disagreement, and a note tells of it.
    """
    said = {} if header_tr_s is None else {"the NIfTI header": header_tr_s}
    for path in sidecars:
        value = read_json(path, RecordingError).get("RepetitionTime")
        if value is not None:
            said[path.name] = _positive(value, path)
    if published_s is not None:
        said["the dataset's publication"] = published_s
    told = ", ".join(f"{source}: {value:g} s" for source, value in said.items())
    if override_s is not None:
        agree = all(math.isclose(value, override_s, rel_tol=SAME_TR) for value in said.values())
        note = Finding(
            field="tr_s",
            reason=Reason.SIDECAR_DISAGREES,
            severity="note",
            where=folder.where(bold),
            found=told or "no repetition time",
            expected=f"{override_s:g} s, as the option tr_s says",
            remedy="check the option; it is what counts",
        )
        return RepetitionTime(override_s, () if agree else (note,))
    values = list(said.values())
    if not values:
        raise RecordingError(
            "no file says the repetition time",
            where=str(bold),
            got="a header without, and no sidecar with RepetitionTime",
            expected="seconds between volumes",
            remedy="add RepetitionTime to the sidecar, or set the option tr_s",
        )
    if not all(math.isclose(value, values[0], rel_tol=SAME_TR) for value in values):
        raise RecordingError(
            "sources disagree about the repetition time",
            where=str(bold),
            got=told,
            expected="one repetition time",
            remedy="find out which one is right, and set the option tr_s to it",
        )
    return RepetitionTime(values[-1])


def _positive(value: object, path: Path) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise RecordingError(
        "RepetitionTime is not a time",
        where=f"{path}, key 'RepetitionTime'",
        got=repr(value),
        expected="seconds, above 0",
        remedy="fix the sidecar",
    )


def read_confounds(path: Path, n_volumes: int) -> pl.DataFrame:
    """Read fMRIPrep's confounds, [n_volumes, n_columns]; ``n/a`` (as in first rows of derivatives) is NaN."""
    table = TsvFile(path, RecordingError)
    if table.n_rows != n_volumes:
        raise RecordingError(
            "the confounds do not have one row per volume",
            where=str(path),
            got=f"{table.n_rows} rows",
            expected=f"{n_volumes} rows",
            remedy="use the confounds of this very run",
        )
    return pl.DataFrame(
        {column: table.numbers_or_nan(column) for column in table.columns},
        schema=dict.fromkeys(table.columns, pl.Float64),
    )


@dataclass(frozen=True)
class Event:
    """One row of an events file."""

    onset_s: float
    kind: str
    stimulus: str


def read_events(path: Path) -> list[Event]:
    """Read onset, ``trial_type`` and ``stim_file`` of every event, in order of time."""
    table = TsvFile(path, RecordingError)
    table.require(("onset", "trial_type"))
    files = table.cells("stim_file") if "stim_file" in table.columns else [""] * table.n_rows
    rows = zip(table.numbers("onset"), table.cells("trial_type"), files, strict=True)
    return sorted((Event(*row) for row in rows), key=lambda event: event.onset_s)
