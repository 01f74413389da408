"""The calibration that ships with lpact: rates of a large run, small enough to be read by anyone.

``reference/`` holds CSV files and a JSON file: ``meta.json`` (what it was made from, by which command, how fast),
``rates.csv``, ``truth_rates.csv`` and ``biases.csv``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import polars as pl

from lpact.analyses.lpact.calibration.biases import measure_biases
from lpact.analyses.lpact.calibration.output import (
    PACE_NAME,
    cell_rates,
    check_table,
    n_null_studies,
    read_meta,
    truth_rates,
)
from lpact.analyses.lpact.calibration.study import numbers_digest
from lpact.analyses.lpact.calibration.truths import GATES
from lpact.analyses.lpact.tables.calibration import BIASES, RATES, TRIALS, TRUTH_RATES
from lpact.errors import RunError
from lpact.store import (
    atomic_write_bytes,
    concat,
    polars_schema,
    read_table,
    storage_errors,
    validate,
    write_table,
)
from lpact.tables import Table

FOLDER = "reference"
META = "meta.json"
_TABLES = (RATES, TRUTH_RATES, BIASES)


INTEGRATED_AT_MOST = 0.01
POWER_AT_LEAST = 0.9
STRONG_SNR = 1.5
STRONG_UNITS = 20


@dataclass(frozen=True)
class Promise:
    """One thing that the calibrated profile promises, and whether the reference bears it out."""

    kept: bool
    sentence: str


@dataclass(frozen=True)
class Reference:
    """The shipped calibration."""

    meta: dict[str, Any]
    rates: pl.DataFrame
    truth_rates: pl.DataFrame
    biases: pl.DataFrame

    def promises(self) -> list[Promise]:
        """What the calibrated profile promises, compared with the rates."""
        own = self.truth_rates.filter(gate_profile="calibrated")
        false = own.filter(role="false_pass")
        whole = false.filter(gate="integrated")
        worst = whole.sort("rate", "high", descending=True).row(0, named=True)
        gates = false.filter(pl.col("gate").is_in(GATES) & (pl.col("gate") != "integrated"))
        above = gates.filter(pl.col("low") > pl.col("alpha"))
        highest = gates.sort("rate", "high", descending=True).row(0, named=True)
        strong = self.rates.filter(gate_profile="calibrated", truth="integrated", gate="integrated")
        strong = strong.filter((pl.col("snr") >= STRONG_SNR) & (pl.col("n_units") >= STRONG_UNITS))
        n, k = int(strong["n_studies"].sum()), int(strong["n_passes"].sum())
        return [
            Promise(
                worst["rate"] <= INTEGRATED_AT_MOST,
                f"no null truth has integrated claims in more than {INTEGRATED_AT_MOST:.0%} of studies; most under "
                f"'{worst['truth']}', in {worst['n_passes']} of {worst['n_studies']} "
                f"(95 % interval up to {worst['high']:.3f}).",
            ),
            Promise(
                not above.height,
                "no gate passes more often than its nominal level where it should not, within the interval; most "
                f"often '{highest['gate']}' under '{highest['truth']}', in {highest['n_passes']} of "
                f"{highest['n_studies']}.",
            ),
            Promise(
                n > 0 and k >= POWER_AT_LEAST * n,
                f"a strong planted signal (snr {STRONG_SNR:g} or more, {STRONG_UNITS} units or more) is integrated in "
                f"{POWER_AT_LEAST:.0%} of studies or more: {k} of {n}.",
            ),
        ]

    @property
    def is_of_this_code(self) -> bool:
        """Whether the code that the numbers depend on is still what they were made by."""
        return bool(self.meta["numbers_code"] == numbers_digest())

    def efforts(self) -> list[dict[str, Any]]:
        """What a study spent, each kind once; no option of a command says it."""
        kinds: list[dict[str, Any]] = []
        for settings in self.meta["settings"]:
            if settings["effort"] not in kinds:
                kinds.append(settings["effort"])
        return kinds

    def as_json(self) -> dict[str, Any]:
        """Everything in plain values."""
        return {
            **self.meta,
            "made_by_this_code": self.is_of_this_code,
            "promises": [asdict(promise) for promise in self.promises()],
            "rates": self.rates.to_dicts(),
            "truth_rates": self.truth_rates.to_dicts(),
            "biases": self.biases.to_dicts(),
        }


def load_reference(folder: Traversable | None = None) -> Reference:
    """Read the calibration that ships with this version, or one that `save_reference` has put elsewhere."""
    folder = folder or files("lpact.analyses.lpact.calibration").joinpath(FOLDER)
    rates, truth_rates, biases = (
        _from_csv(folder.joinpath(_file(table)).read_bytes(), table) for table in _TABLES
    )
    meta = json.loads(folder.joinpath(META).read_bytes())
    return Reference(meta, rates, truth_rates, biases)


def save_reference(runs: Sequence[Path], folder: Path) -> Path:
    """Make the reference from the folders of finished calibrations; returns where it lies."""
    metas = [_whole(run) for run in runs]
    first = metas[0]
    for what, of_runs in (
        ("code", [meta["numbers_code"] for meta in metas]),
        ("libraries", [json.dumps(meta["versions"], sort_keys=True) for meta in metas]),
    ):
        if len(set(of_runs)) > 1:
            raise RunError(
                f"the calibrations were made by different {what}",
                where=", ".join(map(str, runs)),
                got=", ".join(dict.fromkeys(of_runs)),
                expected="one for all",
                remedy="make them again with the same version",
            )
    # A study that is in two of the runs is a repeated key, and an error.
    trials = concat(TRIALS, [read_table(run, TRIALS) for run in runs]).sort(TRIALS.key)
    tables = {RATES: cell_rates(trials), TRUTH_RATES: truth_rates(trials), BIASES: measure_biases()}
    n_studies = sum(meta["n_studies"] for meta in metas)
    core_minutes = sum(meta["pace"]["core_seconds"] for meta in metas) / 60.0
    kept = {
        "lpact_version": first["lpact_version"],
        "numbers_code": first["numbers_code"],
        "versions": first["versions"],
        "commands": [meta["command"] for meta in metas],
        "settings": [meta["settings"] for meta in metas],
        "n_studies": n_studies,
        "n_cells": trials["cell"].n_unique(),
        "n_null_studies": n_null_studies(trials),
        "pace": {"studies_per_minute_and_core": n_studies / core_minutes},
    }
    text = json.dumps(kept, indent=2, sort_keys=True, ensure_ascii=False)
    with storage_errors(folder, "an earlier reference cannot be replaced"):
        (folder / META).unlink(missing_ok=True)
    for table, made in tables.items():
        flat = Table(_file(table).removesuffix(".csv"), table.meaning, table.key, table.columns)
        parquet, _ = write_table(made, flat, folder)
        parquet.unlink()
    atomic_write_bytes(folder / META, f"{text}\n".encode())
    return folder


def _whole(run: Path) -> dict[str, Any]:
    """Settings and pace of a finished calibration whose trials have their checksum."""
    meta, pace = read_meta(run), read_meta(run, PACE_NAME)
    check_table(run, meta, TRIALS)
    if meta["n_studies"] != pace["n_studies"]:
        raise RunError(
            "the calibration is not whole",
            where=str(run),
            got=f"{meta['n_studies']} studies in its tables, {pace['n_studies']} in its pace",
            expected="the same studies in both",
            remedy="run the calibration again; finished studies are kept",
        )
    return {**meta, "pace": pace}


def _file(table: Table) -> str:
    return f"{table.name.split('/')[1]}.csv"


def _from_csv(content: bytes, table: Table) -> pl.DataFrame:
    return validate(pl.read_csv(io.BytesIO(content), schema=polars_schema(table)), table)
