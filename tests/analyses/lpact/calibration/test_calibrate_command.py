"""``lpact calibrate``: the shipped numbers, the biases, and what it refuses."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from io import StringIO

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from lpact.analyses.lpact.calibration.biases import measure_biases
from lpact.analyses.lpact.calibration.output import load_reference
from lpact.analyses.lpact.calibration.trial import EFFORT
from lpact.analyses.lpact.cli.calibrate import QUANTITIES, show_biases
from lpact.cli import app
from lpact.cli._terminal import drawing_on
from lpact.stats import wilson_interval

NULL = ("independent", "drift", "nuisance", "shared_noise", "unknown_signal")
SHIPPED = files("lpact.analyses.lpact.calibration").joinpath("reference")


def calibrate(*args: str) -> Result:
    return CliRunner().invoke(app, ["calibrate", *args])


def test_reference_prints_the_shipped_numbers():
    result = calibrate("--reference")
    assert result.exit_code == 0
    meta = json.loads(SHIPPED.joinpath("meta.json").read_text())
    assert f"{meta['n_studies']:,} simulated studies" in result.stdout
    assert f"{meta['n_null_studies']:,} of them with nothing to find" in result.stdout
    assert meta["commands"]
    assert all(command in result.stdout for command in meta["commands"])
    assert f"{meta['pace']['studies_per_minute_and_core']:.1f} studies per minute" in result.stdout
    lines = [line.split() for line in result.stdout.splitlines()]
    with SHIPPED.joinpath("truth_rates.csv").open() as handle:
        rows = [row for row in csv.DictReader(handle) if row["role"] == "false_pass"]
    assert rows
    for row in rows:
        (line,) = [cells for cells in lines if cells[:2] == [row["truth"], row["gate"]]]
        assert f"{float(row['rate']):.3f}" in line
        assert f"({float(row['low']):.3f}–{float(row['high']):.3f})" in line


def test_reference_for_machines_holds_the_same():
    found = json.loads(calibrate("--reference", "--json").stdout)
    reference = load_reference()
    assert found["rates"] == reference.rates.to_dicts()
    assert found["truth_rates"] == reference.truth_rates.to_dicts()
    assert found["biases"] == reference.biases.to_dicts()
    assert found["n_studies"] == reference.meta["n_studies"]
    assert [promise["kept"] for promise in found["promises"]] == [promise.kept for promise in reference.promises()]


def test_the_shipped_reference_has_a_thousand_null_studies():
    assert load_reference().meta["n_null_studies"] >= 1000


@pytest.mark.parametrize("place", range(3))
def test_the_shipped_reference_keeps_its_promises(place):
    promises = load_reference().promises()
    assert len(promises) == 3
    assert promises[place].kept, promises[place].sentence


def test_the_shipped_reference_spent_what_a_calibration_spends_now():
    now = json.loads(json.dumps(asdict(EFFORT)))
    assert [settings["effort"] for settings in load_reference().meta["settings"]] == [
        now for _ in load_reference().meta["commands"]
    ]


def test_shipped_rates_agree_with_each_other():
    reference = load_reference()
    for row in reference.truth_rates.iter_rows(named=True):
        assert (row["low"], row["high"]) == wilson_interval(row["n_passes"], row["n_studies"])
    by_truth = ["truth", "gate_profile", "gate"]
    summed = reference.rates.group_by(by_truth).agg(pl.col("n_studies", "n_passes").sum())
    both = summed.join(reference.truth_rates, on=by_truth, suffix="_of_truth")
    assert both.height == reference.truth_rates.height
    assert both["n_passes"].equals(both["n_passes_of_truth"], check_names=False)
    assert both["n_studies"].equals(both["n_studies_of_truth"], check_names=False)
    nulls = reference.truth_rates.filter(gate="integrated", gate_profile="paper").filter(pl.col("truth").is_in(NULL))
    assert nulls["n_studies"].sum() == reference.meta["n_null_studies"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "exactly one of --out, --reference and --biases"),
        (("--reference", "--biases"), "exactly one of --out, --reference and --biases"),
        (("--out", "x", "--truth", "integrate"), "did you mean 'integrated'"),
        (("--out", "x", "--snr", "1", "--snr", "1"), "is empty, repeated or out of range"),
        (("--out", "x", "--snr", "1", "--snr", "inf"), "option '--snr'"),
        (("--out", "x", "--snr", "nan"), "'--snr'"),
        (("--out", "x", "--autocorrelation", "1.5"), "option '--autocorrelation'"),
        (("--reference", "--trials", "5"), "--trials cannot be used with --reference"),
        (("--reference", "--seed", "0"), "--seed cannot be used with --reference"),
        (("--reference", "--workers", "2"), "--workers cannot be used with --reference"),
        (("--biases", "--one-at-a-time"), "--one-at-a-time cannot be used with --biases"),
        (("--biases", "--snr", "1", "--units", "8"), "--snr, --units cannot be used with --biases"),
        (("--biases", "--truth", "drift"), "--truth cannot be used with --biases"),
        (("--biases", "--events", "200"), "--events cannot be used with --biases"),
        (("--biases", "--subjects", "4"), "--subjects cannot be used with --biases"),
        (("--biases", "--autocorrelation", "0"), "--autocorrelation cannot be used with"),
    ],
)
def test_what_cannot_be_done_is_said(args, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = calibrate(*args)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "study file" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_seed_of_biases_is_read(monkeypatch):
    """The twin of what is refused."""
    monkeypatch.setattr(
        "lpact.analyses.lpact.calibration.biases.measure_biases",
        partial(measure_biases, share=0.005),
    )
    first, again, other = (calibrate("--biases", *more, "--json") for more in ((), ("--seed", "0"), ("--seed", "1")))
    assert (first.exit_code, other.exit_code) == (0, 0)
    assert first.stdout == again.stdout != other.stdout


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    manifest = tmp_path / "manifest.json"
    manifest.write_text("{}")
    result = calibrate("--out", str(tmp_path), "--trials", "1")
    assert result.exit_code == 2
    assert "the folder contains files that are not from a calibration" in result.stderr
    assert list(tmp_path.iterdir()) == [manifest]


def test_biases_name_their_quantities_and_tell_of_the_largest():
    biases = measure_biases(seed=1, share=0.005)
    assert set(biases["bias"]) == set(QUANTITIES)
    printed = StringIO()
    with drawing_on(Console(file=printed, markup=False, highlight=False, width=300)):
        show_biases(biases)
    lines = [" ".join(line.split()) for line in printed.getvalue().splitlines()]
    for bias, (found, real) in QUANTITIES.items():
        own = biases.filter(bias=bias)
        (header,) = [line for line in lines if f"found: {found} true: {real} bias" in line]
        assert header.startswith(own["setting"][0])
        sizes = [abs(size) for size in own["bias_size"]]
        largest = own["meaning"][sizes.index(max(sizes))]
        assert [line for line in lines if line in own["meaning"].to_list()] == [largest]
