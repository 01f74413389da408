"""A calibration on disk: tables, pictures, what they were made from, and how long it took.

``calibration.json`` holds nothing that depends on the machine or the number of workers; ``pace.json`` does. It is
removed before anything is written and written last, so that its checksums are true wherever it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from lpact.analyses.lpact.calibration.rates import cell_rates, n_null_studies, truth_rates
from lpact.analyses.lpact.calibration.settings import Settings
from lpact.analyses.lpact.calibration.study import Pace, numbers_digest
from lpact.analyses.lpact.figures import false_passes, power
from lpact.analyses.lpact.tables.calibration import RATES, TRIALS, TRUTH_RATES
from lpact.errors import RunError
from lpact.report.render import picture
from lpact.store import atomic_write_bytes, sha256_file, storage_errors, table_path, write_table
from lpact.store.manifest import MANIFEST_NAME, library_versions, lpact_version
from lpact.tables import Table

META_NAME, PACE_NAME, KEPT = "calibration.json", "pace.json", "kept"
FORMAT = 1
POWER_FIGURE, FALSE_PASS_FIGURE = "report/power.svg", "report/false-passes.svg"
_OUTPUTS = {
    *(
        f"{table.name}{suffix}"
        for table in (TRIALS, RATES, TRUTH_RATES)
        for suffix in (".parquet", ".csv")
    ),
    POWER_FIGURE,
    FALSE_PASS_FIGURE,
    META_NAME,
    PACE_NAME,
}
_CUT_SHORT = re.compile(r"\.[0-9a-f]{32}\.tmp")
"""Name of a file whose writing was cut short; see `lpact.store.atomic_write`."""


def check_folder(folder: Path) -> None:
    """Refuse a folder that is neither new, nor empty, nor a calibration to go on with; nothing is created."""
    with storage_errors(folder, "the folder of the calibration cannot be read"):
        run = next((f for f in (folder, *folder.resolve().parents) if _is_run(f)), None)
        if run is not None:
            raise _refusal("is a finished run, or inside of one", folder, str(run / MANIFEST_NAME))
        if not folder.exists() and not folder.is_symlink():
            return
        if not folder.is_dir():
            raise _refusal("is not a folder", folder, "something else")
        inside = {path.name for path in folder.iterdir()}
        if inside and not inside & {KEPT, META_NAME}:
            raise _refusal("holds something else", folder, _listed(inside))
        foreign = sorted(_foreign(folder))
        if foreign:
            raise _refusal("holds more than a calibration", folder, _listed(foreign))


def _is_run(folder: Path) -> bool:
    """Whether a folder has the manifest of a run; a file of that name can be anybody's."""
    path = folder / MANIFEST_NAME
    if not path.is_file():
        return False
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(values, dict) and {"config_digest", "lpact_version"} <= values.keys()


def _foreign(folder: Path) -> Iterator[str]:
    """Files that no calibration writes, other than in ``kept/``."""
    folders = {name.split("/")[0] for name in _OUTPUTS if "/" in name}
    for path in folder.iterdir():
        if path.name == KEPT and path.is_dir():
            continue
        if path.name in folders and path.is_dir():
            inner = [f"{path.name}/{child.name}" for child in path.iterdir()]
        else:
            inner = [path.name]
        for name in inner:
            is_own = name in _OUTPUTS and (folder / name).is_file()
            if not is_own and not _CUT_SHORT.fullmatch(name.split("/")[-1]):
                yield name


def _listed(names: Iterable[str], most: int = 5) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _refusal(what: str, folder: Path, got: str) -> RunError:
    return RunError(
        f"the folder for the calibration {what}",
        where=str(folder),
        got=got,
        expected="a new or empty folder, or that of a calibration to go on with",
        remedy="choose another folder",
    )


def write_calibration(
    folder: Path, trials: pl.DataFrame, settings: Settings, pace: Pace
) -> dict[str, pl.DataFrame]:
    """Write all files of a calibration, ``calibration.json`` last; returns its tables by name."""
    with storage_errors(folder, "an earlier calibration cannot be replaced"):
        (folder / META_NAME).unlink(missing_ok=True)
    tables = {
        TRIALS: trials,
        RATES: cell_rates(trials),
        TRUTH_RATES: truth_rates(trials),
    }
    written = [path for table, made in tables.items() for path in write_table(made, table, folder)]
    for name, figure in (
        (POWER_FIGURE, power.figure(tables[RATES])),
        (FALSE_PASS_FIGURE, false_passes.figure(tables[TRUTH_RATES])),
    ):
        atomic_write_bytes(folder / name, picture(figure).encode())
        written.append(folder / name)
    studies = trials.select("cell", "trial").unique()
    meta = {
        "format_version": FORMAT,
        "command": settings.command(),
        "lpact_version": lpact_version(),
        "numbers_code": numbers_digest(),
        "versions": library_versions({}),
        "settings": settings.as_json(),
        "n_studies": studies.height,
        "n_null_studies": n_null_studies(trials),
        "n_cells": studies["cell"].n_unique(),
        "outputs": {
            path.relative_to(folder).as_posix(): sha256_file(path) for path in sorted(written)
        },
    }
    _write_json(
        folder / PACE_NAME,
        {
            "n_studies": pace.n_studies,
            "core_seconds": round(pace.seconds, 1),
            "studies_per_minute_and_core": round(pace.studies_per_minute, 1),
        },
    )
    _write_json(folder / META_NAME, meta)
    return {table.name: made for table, made in tables.items()}


def read_meta(folder: Path, name: str = META_NAME) -> dict[str, Any]:
    """Read ``calibration.json`` or ``pace.json`` of a calibration."""
    path = folder / name
    try:
        meta: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(
            "the folder is not a finished calibration",
            where=str(path),
            got=str(error),
            expected="a folder that `lpact calibrate --out` has filled",
            remedy="check the path, or let the calibration finish",
        ) from None
    return meta


def check_table(folder: Path, meta: dict[str, Any], table: Table) -> None:
    """Refuse a table whose bytes are not those that ``calibration.json`` was written about."""
    path = table_path(folder, table)
    expected = meta["outputs"].get(path.relative_to(folder).as_posix())
    found = sha256_file(path)
    if found != expected:
        raise RunError(
            "a table is not the one that the calibration wrote",
            where=str(path),
            got=f"SHA-256 {found[:12]}",
            expected=f"SHA-256 {expected[:12]}" if expected else "a checksum in calibration.json",
            remedy="run the calibration again; finished studies are kept",
        )


def _write_json(path: Path, values: dict[str, Any]) -> None:
    text = json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    atomic_write_bytes(path, f"{text}\n".encode())
