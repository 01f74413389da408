"""A calibration on disk: rates and other tables, figures, settings, and how long it took.

``calibration.json`` holds nothing that depends on the machine or the number of workers; ``pace.json`` does. It is
removed before anything is written and written last, so that its checksums always hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from lpact.analyses.lpact.calibration.settings import Settings
from lpact.analyses.lpact.calibration.study import Pace, numbers_digest
from lpact.analyses.lpact.calibration.truths import known_truth
from lpact.analyses.lpact.figures import false_passes, power
from lpact.analyses.lpact.tables.calibration import CELL, RATES, TRIALS, TRUTH_RATES
from lpact.errors import RunError
from lpact.report.render import picture
from lpact.stats import wilson_interval
from lpact.store import (
    atomic_write_bytes,
    frame,
    sha256_file,
    storage_errors,
    table_path,
    write_table,
)
from lpact.store.manifest import MANIFEST_NAME, library_versions, lpact_version
from lpact.tables import Table

META_NAME, PACE_NAME, KEPT = "calibration.json", "pace.json", "kept"
FORMAT = 1
POWER_FIGURE, FALSE_PASS_FIGURE = "report/power.svg", "report/false-passes.svg"


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
        inside = sorted(path.name for path in folder.iterdir())
        if inside and not (folder / META_NAME).is_file() and not (folder / KEPT).is_dir():
            raise _refusal("holds something else", folder, ", ".join(inside[:5]))


def _is_run(folder: Path) -> bool:
    """Whether a folder has the manifest of a run; other programs write files of that name, too."""
    path = folder / MANIFEST_NAME
    if not path.is_file():
        return False
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(values, dict) and {"config_digest", "lpact_version"} <= values.keys()


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
        (POWER_FIGURE, power.of_rates(tables[RATES])),
        (FALSE_PASS_FIGURE, false_passes.of_rates(tables[TRUTH_RATES])),
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


def cell_rates(trials: pl.DataFrame) -> pl.DataFrame:
    """Rates of every cell, rows of `RATES`."""
    rows = []
    names = [column.name for column in CELL]
    for _, own in trials.sort(TRIALS.key).group_by("cell", "gate_profile", maintain_order=True):
        cell = own.select(names).row(0, named=True)
        rows += [cell | rate for rate in _rates(cell["truth"], own)]
    return frame(RATES, rows)


def truth_rates(trials: pl.DataFrame) -> pl.DataFrame:
    """Rates of every truth, all of its cells together, rows of `TRUTH_RATES`."""
    rows = []
    for (name, _), own in trials.sort(TRIALS.key).group_by(
        "truth", "gate_profile", maintain_order=True
    ):
        truth = known_truth(str(name))
        more = {"truth": truth.name, "n_cells": own["cell"].n_unique()}
        rows += [more | rate | {"why": truth.why(rate["gate"])} for rate in _rates(truth.name, own)]
    return frame(TRUTH_RATES, rows)


def n_null_studies(trials: pl.DataFrame) -> int:
    """Number of studies in which there was nothing to find."""
    studies = trials.select("truth", "cell", "trial").unique()
    return sum(known_truth(name).is_null for name in studies["truth"])


def _rates(truth_name: str, trials: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """One rate a gate for the trials of one truth and gate profile."""
    truth = known_truth(truth_name)
    alpha = trials["alpha"].max()
    for gate in truth.gates:
        passed = trials[gate]
        n_passes, n_studies = int(passed.sum()), passed.len()
        low, high = wilson_interval(n_passes, n_studies)
        yield {
            "gate_profile": trials["gate_profile"][0],
            "gate": gate,
            "role": truth.role(gate),
            "n_studies": n_studies,
            "n_passes": n_passes,
            "rate": n_passes / n_studies,
            "low": low,
            "high": high,
            "alpha": alpha,
        }
