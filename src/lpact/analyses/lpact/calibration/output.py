"""A calibration on disk, and the one that ships with lpact.

``calibration.json`` is removed before anything is written and written last, so that its checksums always hold. What
depends on the machine is in ``pace.json``. ``reference/`` holds the rates of a large run: ``meta.json`` (how it was
made), ``rates.csv``, ``truth_rates.csv`` and ``biases.csv``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from lpact.analyses.lpact.calibration.run_trials import Pace, Settings, numbers_digest
from lpact.analyses.lpact.calibration.trial import GATES, known_truth
from lpact.analyses.lpact.figures.rates import false_passes_of, power_of
from lpact.analyses.lpact.tables.calibration import BIASES, CELL, RATES, TRIALS, TRUTH_RATES
from lpact.errors import RunError
from lpact.report.render import picture
from lpact.stats import wilson_interval
from lpact.store import atomic_write_bytes, frame, polars_schema, sha256_file, storage_errors, validate, write_table
from lpact.store.manifest import library_versions, lpact_version
from lpact.tables import Table

META_NAME, PACE_NAME, KEPT = "calibration.json", "pace.json", "kept"
FORMAT = 1
POWER_FIGURE, FALSE_PASS_FIGURE = "report/power.svg", "report/false-passes.svg"
FOLDER, REFERENCE_META = "reference", "meta.json"
INTEGRATED_AT_MOST = 0.01
POWER_AT_LEAST = 0.9
STRONG_SNR = 1.5
STRONG_UNITS = 20


def check_folder(folder: Path) -> None:
    """Refuse a folder that is neither new, nor empty, nor a calibration to resume; nothing is created."""
    with storage_errors(folder, "the folder of the calibration cannot be read"):
        inside = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if inside and not (folder / META_NAME).is_file() and not (folder / KEPT).is_dir():
        raise RunError(
            "the folder contains files that are not from a calibration",
            where=str(folder),
            got=", ".join(inside[:5]),
            expected="a new or empty folder, or that of a calibration to resume",
            remedy="choose another folder",
        )


def write_calibration(folder: Path, trials: pl.DataFrame, settings: Settings, pace: Pace) -> dict[str, pl.DataFrame]:
    """Write all files of a calibration, ``calibration.json`` last; returns its tables by name."""
    with storage_errors(folder, "an earlier calibration cannot be replaced"):
        (folder / META_NAME).unlink(missing_ok=True)
    tables = {TRIALS: trials, RATES: cell_rates(trials), TRUTH_RATES: truth_rates(trials)}
    written = [path for table, made in tables.items() for path in write_table(made, table, folder)]
    for name, figure in (
        (POWER_FIGURE, power_of(tables[RATES])),
        (FALSE_PASS_FIGURE, false_passes_of(tables[TRUTH_RATES])),
    ):
        atomic_write_bytes(folder / name, picture(figure).encode())
        written.append(folder / name)
    studies = trials.select("cell", "trial").unique()
    times = {
        "n_studies": pace.n_studies,
        "core_seconds": round(pace.seconds, 1),
        "studies_per_minute_and_core": round(pace.studies_per_minute, 1),
    }
    write_json(folder / PACE_NAME, times)
    meta = {
        "format_version": FORMAT,
        "command": settings.command(),
        "lpact_version": lpact_version(),
        "numbers_code": numbers_digest(),
        "versions": library_versions({}),
        "settings": asdict(settings),
        "n_studies": studies.height,
        "n_null_studies": n_null_studies(trials),
        "n_cells": studies["cell"].n_unique(),
        "outputs": {p.relative_to(folder).as_posix(): sha256_file(p) for p in sorted(written)},
    }
    write_json(folder / META_NAME, meta)
    return {table.name: made for table, made in tables.items()}


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write values with sorted keys."""
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
    ordered = trials.sort(TRIALS.key)
    for (name, _), own in ordered.group_by("truth", "gate_profile", maintain_order=True):
        truth = known_truth(str(name))
        more = {"truth": truth.name, "n_cells": own["cell"].n_unique()}
        rows += [more | rate | {"why": truth.why(rate["gate"])} for rate in _rates(truth.name, own)]
    return frame(TRUTH_RATES, rows)


def n_null_studies(trials: pl.DataFrame) -> int:
    """Number of studies in which there was nothing to find."""
    studies = trials.select("truth", "cell", "trial").unique()
    return sum(known_truth(name).is_null for name in studies["truth"])


def _rates(truth_name: str, trials: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """One rate per gate for the trials of one truth and gate profile."""
    truth = known_truth(truth_name)
    for gate in truth.gates:
        n_passes, n_studies = int(trials[gate].sum()), trials.height
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
            "alpha": trials["alpha"].max(),
        }


class Promise(NamedTuple):
    """One thing that the calibrated profile promises, and whether the reference confirms it."""

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
        false = self.truth_rates.filter(gate_profile="calibrated", role="false_pass")
        false = false.sort("rate", "high", descending=True)
        worst = false.filter(gate="integrated").row(0, named=True)
        gates = false.filter(pl.col("gate").is_in(GATES) & (pl.col("gate") != "integrated"))
        highest = gates.row(0, named=True)
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
                not (gates["low"] > gates["alpha"]).any(),
                "no gate passes more often than its nominal level where it should not, within the interval; most often "
                f"'{highest['gate']}' under '{highest['truth']}', in {highest['n_passes']} of {highest['n_studies']}.",
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

    def as_json(self) -> dict[str, Any]:
        """Everything in plain values."""
        return {
            **self.meta,
            "made_by_this_code": self.is_of_this_code,
            "promises": [promise._asdict() for promise in self.promises()],
            "rates": self.rates.to_dicts(),
            "truth_rates": self.truth_rates.to_dicts(),
            "biases": self.biases.to_dicts(),
        }


def load_reference(folder: Traversable | None = None) -> Reference:
    """Read the calibration that ships with this version, or one in another folder."""
    folder = folder or files("lpact.analyses.lpact.calibration").joinpath(FOLDER)

    def read(table: Table) -> pl.DataFrame:
        content = folder.joinpath(f"{flat_name(table)}.csv").read_bytes()
        return validate(pl.read_csv(content, schema=polars_schema(table)), table)

    meta = json.loads(folder.joinpath(REFERENCE_META).read_bytes())
    return Reference(meta, read(RATES), read(TRUTH_RATES), read(BIASES))


def flat_name(table: Table) -> str:
    """Name of a table's file in the reference."""
    return table.name.split("/")[1]
