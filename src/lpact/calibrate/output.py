"""A calibration on disk: tables, pictures, what they were made from, and how long it took.

``calibration.json`` holds nothing that depends on the machine or the number of workers; ``pace.json`` does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from lpact.calibrate.rates import cell_rates, n_null_studies, truth_rates
from lpact.calibrate.settings import Settings
from lpact.calibrate.study import Pace, numbers_digest
from lpact.errors import RunError
from lpact.report.operating_characteristics import false_pass_svg, power_svg
from lpact.store import atomic_write_bytes, sha256_file, write_table
from lpact.store.manifest import library_versions, lpact_version
from lpact.tables.calibration import RATES, TRIALS, TRUTH_RATES

META_NAME, PACE_NAME, KEPT = "calibration.json", "pace.json", "kept"
FORMAT = 1
POWER_FIGURE, FALSE_PASS_FIGURE = "report/power.svg", "report/false-passes.svg"


def write_calibration(
    folder: Path, trials: pl.DataFrame, settings: Settings, pace: Pace
) -> dict[str, pl.DataFrame]:
    """Write all files of a calibration; returns its tables by name."""
    tables = {
        TRIALS: trials,
        RATES: cell_rates(trials),
        TRUTH_RATES: truth_rates(trials),
    }
    written = [path for table, made in tables.items() for path in write_table(made, table, folder)]
    for name, picture in (
        (POWER_FIGURE, power_svg(tables[RATES])),
        (FALSE_PASS_FIGURE, false_pass_svg(tables[TRUTH_RATES])),
    ):
        atomic_write_bytes(folder / name, picture.encode())
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
    _write_json(folder / META_NAME, meta)
    _write_json(
        folder / PACE_NAME,
        {
            "n_studies": pace.n_studies,
            "core_seconds": round(pace.seconds, 1),
            "studies_per_minute_and_core": round(pace.studies_per_minute, 1),
        },
    )
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


def _write_json(path: Path, values: dict[str, Any]) -> None:
    text = json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    atomic_write_bytes(path, f"{text}\n".encode())
