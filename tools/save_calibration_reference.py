"""Make the shipped calibration from finished runs: ``python tools/save_calibration_reference.py RUN...``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lpact.analyses.lpact.calibration.biases import measure_biases
from lpact.analyses.lpact.calibration.output import (
    FOLDER,
    META_NAME,
    PACE_NAME,
    REFERENCE_META,
    cell_rates,
    flat_name,
    n_null_studies,
    truth_rates,
    write_json,
)
from lpact.analyses.lpact.tables.calibration import BIASES, RATES, TRIALS, TRUTH_RATES
from lpact.errors import RunError
from lpact.store import concat, read_table, sha256_file, storage_errors, table_path, write_table
from lpact.tables import Table

SHIPPED = Path(__file__).parents[1] / "src/lpact/analyses/lpact/calibration" / FOLDER


def save_reference(runs: Sequence[Path], folder: Path) -> Path:
    """Make the reference from the folders of finished calibrations; returns where it lies."""
    metas = [_finished(run) for run in runs]
    first = metas[0]
    for what in ("numbers_code", "versions"):
        found = {json.dumps(meta[what], sort_keys=True) for meta in metas}
        if len(found) > 1:
            raise RunError(
                f"the calibrations were made by different {what.replace('_', ' ')}",
                where=", ".join(map(str, runs)),
                got=", ".join(sorted(found)),
                expected="one for all",
                remedy="make them again with the same version",
            )
    # A study that is in two of the runs is a repeated key, and an error.
    trials = concat(TRIALS, [read_table(run, TRIALS) for run in runs]).sort(TRIALS.key)
    tables = {RATES: cell_rates(trials), TRUTH_RATES: truth_rates(trials), BIASES: measure_biases()}
    n_studies = sum(meta["n_studies"] for meta in metas)
    core_minutes = sum(meta["pace"]["core_seconds"] for meta in metas) / 60.0
    kept = {
        **{name: first[name] for name in ("lpact_version", "numbers_code", "versions")},
        "commands": [meta["command"] for meta in metas],
        "settings": [meta["settings"] for meta in metas],
        "n_studies": n_studies,
        "n_cells": trials["cell"].n_unique(),
        "n_null_studies": n_null_studies(trials),
        "pace": {"studies_per_minute_and_core": n_studies / core_minutes},
    }
    with storage_errors(folder, "an earlier reference cannot be replaced"):
        (folder / REFERENCE_META).unlink(missing_ok=True)
    for table, made in tables.items():
        flat = Table(flat_name(table), table.meaning, table.key, table.columns)
        parquet, _ = write_table(made, flat, folder)
        parquet.unlink()
    write_json(folder / REFERENCE_META, kept)
    return folder


def _finished(run: Path) -> dict[str, Any]:
    """Settings and pace of a finished calibration whose trials have their checksum."""
    meta, pace = (json.loads((run / name).read_bytes()) for name in (META_NAME, PACE_NAME))
    path = table_path(run, TRIALS)
    found = sha256_file(path)
    expected = meta["outputs"].get(path.relative_to(run).as_posix())
    if found != expected or meta["n_studies"] != pace["n_studies"]:
        raise RunError(
            "a file of the calibration is not the one that it wrote",
            where=str(path),
            got=f"SHA-256 {found[:12]}, {pace['n_studies']} studies in {PACE_NAME}",
            expected=f"SHA-256 {str(expected)[:12]}, {meta['n_studies']} studies",
            remedy="run the calibration again; finished studies are kept",
        )
    return {**meta, "pace": pace}


if __name__ == "__main__":
    sys.stdout.write(f"{save_reference([Path(run) for run in sys.argv[1:]], SHIPPED)}\n")
