"""The calibration that ships with lpact: rates of a large run, small enough to be read by anyone.

``reference/`` holds CSV files and a JSON file: ``meta.json`` (what it was made from, by which command, how fast),
``rates.csv``, ``truth_rates.csv`` and ``biases.csv``.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from lpact.calibrate.biases import measure_biases
from lpact.calibrate.output import PACE_NAME, read_meta
from lpact.errors import RunError
from lpact.store import atomic_write_bytes, polars_schema, read_table, validate, write_table
from lpact.tables import Table
from lpact.tables.calibration import BIASES, RATES, TRUTH_RATES

FOLDER = "reference"
META = "meta.json"
_TABLES = (RATES, TRUTH_RATES, BIASES)


@dataclass(frozen=True)
class Reference:
    """The shipped calibration."""

    meta: dict[str, Any]
    rates: pl.DataFrame
    truth_rates: pl.DataFrame
    biases: pl.DataFrame

    def as_json(self) -> dict[str, Any]:
        """Everything in plain values."""
        return {
            **self.meta,
            "rates": self.rates.to_dicts(),
            "truth_rates": self.truth_rates.to_dicts(),
            "biases": self.biases.to_dicts(),
        }


def load_reference() -> Reference:
    """Read the calibration that ships with this version."""
    folder = files("lpact.calibrate").joinpath(FOLDER)
    rates, truth_rates, biases = (
        _from_csv(folder.joinpath(_file(table)).read_bytes(), table) for table in _TABLES
    )
    meta = json.loads(folder.joinpath(META).read_bytes())
    return Reference(meta, rates, truth_rates, biases)


def save_reference(run: Path, folder: Path) -> Path:
    """Make the reference from the folder of a finished calibration; returns where it lies."""
    meta, pace = read_meta(run), read_meta(run, PACE_NAME)
    if meta["n_studies"] != pace["n_studies"]:
        raise RunError(
            "the calibration is not whole",
            where=str(run),
            got=f"{meta['n_studies']} studies in its tables, {pace['n_studies']} in its pace",
            expected="the same studies in both",
            remedy="run the calibration again; finished studies are kept",
        )
    tables = {
        RATES: read_table(run, RATES),
        TRUTH_RATES: read_table(run, TRUTH_RATES),
        BIASES: measure_biases(),
    }
    kept = {name: value for name, value in meta.items() if name != "outputs"}
    text = json.dumps(kept | {"pace": pace}, indent=2, sort_keys=True, ensure_ascii=False)
    for table, made in tables.items():
        flat = Table(_file(table).removesuffix(".csv"), table.meaning, table.key, table.columns)
        parquet, _ = write_table(made, flat, folder)
        parquet.unlink()
    atomic_write_bytes(folder / META, f"{text}\n".encode())
    return folder


def _file(table: Table) -> str:
    return f"{table.name.split('/')[1]}.csv"


def _from_csv(content: bytes, table: Table) -> pl.DataFrame:
    return validate(pl.read_csv(io.BytesIO(content), schema=polars_schema(table)), table)
