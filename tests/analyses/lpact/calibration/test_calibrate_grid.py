"""A small calibration from end to end: interrupted, resumed, and the same with any number of workers."""

from __future__ import annotations

import hashlib
import runpy
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from lpact.analyses.lpact.calibration import output
from lpact.analyses.lpact.calibration.output import (
    FOLDER,
    KEPT,
    PACE_NAME,
    Reference,
    load_reference,
    write_calibration,
)
from lpact.analyses.lpact.calibration.run_trials import Forecast, Pace, Settings, run_grid
from lpact.analyses.lpact.calibration.trial import GATES, Cell, Effort
from lpact.analyses.lpact.cli.calibrate import show_reference
from lpact.analyses.lpact.tables.calibration import RATES, TRIALS, TRUTH_RATES
from lpact.cli._terminal import drawing_on
from lpact.errors import RunError, TableError
from lpact.run.progress import Reporter
from lpact.stats import wilson_interval
from lpact.store import write_table

TOOL = Path(__file__).parents[4] / "tools" / "save_calibration_reference.py"
save_reference = runpy.run_path(str(TOOL))["save_reference"]
SETTINGS = Settings(
    truths=("shared_noise", "nuisance"),
    snr=(1.0,),
    n_events=(140,),
    n_subjects=(3,),
    n_units=(8,),
    n_trials=2,
    effort=Effort(
        draws=2,
        mismatch_draws=1,
        folds=4,
        controls=("random_matched_dim", "random_matched_autocorr", "circular_shift"),
        methods=("feature_residualization",),
        mechanisms=("surprisal", "context_update"),
    ),
)
CELLS = [cell for cell in SETTINGS.cells() if cell.model != "null"]
"""Two null cells: what the models know is in the nuisance features, or in no unit at all."""


class Interrupted(Reporter):
    """A user who loses patience after two studies."""

    def stage(self, name: str, total: int) -> None:
        self.n_done = 0

    def advance(self, steps: int = 1) -> None:
        self.n_done += steps
        if self.n_done >= 2:
            raise KeyboardInterrupt


def calibrate(folder: Path, *, workers: int, reporter=None) -> list[Forecast]:
    told: list[Forecast] = []
    trials, pace = run_grid(
        CELLS,
        trials=SETTINGS.trials(),
        kept=folder / KEPT,
        effort=SETTINGS.effort,
        workers=workers,
        reporter=reporter,
        show_forecast=told.append,
    )
    write_calibration(folder, trials, SETTINGS, pace)
    return told


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Forecast]]:
    folder = tmp_path_factory.mktemp("resumed")
    with pytest.raises(KeyboardInterrupt):
        calibrate(folder, workers=1, reporter=Interrupted())
    assert not (folder / "calibration.json").exists()
    return folder, calibrate(folder, workers=1)


@pytest.fixture(scope="module")
def trials(resumed: tuple[Path, list[Forecast]]) -> pl.DataFrame:
    return pl.read_parquet(resumed[0] / f"{TRIALS.name}.parquet")


def made(folder: Path) -> dict[str, str]:
    """Checksums of everything but kept studies and times."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and KEPT not in path.parts and path.name != PACE_NAME
    }


def test_the_truths_are_the_two_null_ones():
    assert [(cell.truth, cell.model, cell.snr) for cell in CELLS] == [
        ("nuisance", "nuisance", 1.0),
        ("shared_noise", "integrated", 0.0),
    ]


def test_an_interruption_keeps_what_was_finished(resumed):
    (forecast,) = resumed[1]
    # Two studies were finished; the third is the timed one, and one more is left.
    assert (forecast.n_kept, forecast.n_left) == (2, 1)


def test_a_finished_calibration_computes_nothing(resumed):
    before = made(resumed[0])
    assert calibrate(resumed[0], workers=1) == []
    assert made(resumed[0]) == before


def test_two_workers_give_the_same_bytes(resumed, tmp_path):
    (forecast,) = calibrate(tmp_path, workers=2)
    assert (forecast.n_kept, forecast.n_left) == (0, 3)
    assert made(tmp_path) == made(resumed[0])
    assert len(made(tmp_path)) == 3 * 2 + 2 + 1


def test_every_study_has_a_row_for_each_profile(trials):
    profiles = trials["gate_profile"].unique().to_list()
    assert "paper" in profiles
    assert trials.height == len(CELLS) * 2 * len(profiles)
    assert trials["n_claims"].unique().to_list() == [2]
    # Nothing is planted, so any claim counts, and there is no other mechanism.
    assert trials["claims"].unique().to_list() == ["any"]
    assert trials["other_integrated"].null_count() == trials.height


def test_studies_of_a_cell_differ(trials):
    gates = [*GATES, "label", "n_mechanism_specific"]
    numbers = trials.select(*gates, pl.selectors.starts_with("p_"))
    assert numbers.unique().height > 1


def test_rates_count_the_trials(resumed, trials):
    rates = pl.read_parquet(resumed[0] / f"{RATES.name}.parquet")
    paper = trials.filter(gate_profile="paper")
    for cell in CELLS:
        own = paper.filter(truth=cell.truth)
        rows = rates.filter(truth=cell.truth, gate_profile="paper")
        assert sorted(rows["gate"]) == sorted(GATES)
        for gate, n_passes, n_studies in rows.select("gate", "n_passes", "n_studies").iter_rows():
            assert (n_passes, n_studies) == (sum(own[gate].to_list()), 2)
    assert rates["role"].unique().to_list() == ["false_pass"]
    assert rates.filter(gate_profile="paper")["alpha"].null_count() == 2 * len(GATES)


def test_rates_of_a_truth_take_its_cells_together(resumed):
    cells = pl.read_parquet(resumed[0] / f"{RATES.name}.parquet")
    truths = pl.read_parquet(resumed[0] / f"{TRUTH_RATES.name}.parquet")
    assert truths["n_studies"].unique().to_list() == [2]
    assert truths["n_passes"].sum() == cells["n_passes"].sum()
    assert truths["why"].str.len_chars().min() > 20


@pytest.fixture
def copied(resumed, tmp_path) -> Path:
    folder = tmp_path / "copied"
    shutil.copytree(resumed[0], folder, ignore=shutil.ignore_patterns(KEPT))
    (folder / KEPT).mkdir()
    return folder


def test_a_stop_while_writing_leaves_no_checksums(copied, resumed, trials, monkeypatch):
    def stop(_: object) -> str:
        raise KeyboardInterrupt

    pace = Pace(4, 60.0)
    with monkeypatch.context() as patched:
        patched.setattr(output, "picture", stop)
        with pytest.raises(KeyboardInterrupt):
            write_calibration(copied, trials, SETTINGS, pace)
    assert not (copied / "calibration.json").exists()
    with pytest.raises(FileNotFoundError):
        save_reference([copied], copied.with_name("none"))
    output.check_folder(copied)
    write_calibration(copied, trials, SETTINGS, pace)
    assert made(copied) == made(resumed[0])


@pytest.fixture(scope="module")
def reference_folder(resumed, tmp_path_factory) -> Path:
    return save_reference([resumed[0]], tmp_path_factory.mktemp("saved") / FOLDER)


def test_a_reference_is_made_from_a_finished_run(reference_folder, resumed):
    assert sorted(path.name for path in reference_folder.iterdir()) == [
        "biases.csv",
        "meta.json",
        "rates.csv",
        "truth_rates.csv",
    ]
    rates = (resumed[0] / f"{RATES.name}.csv").read_bytes()
    assert (reference_folder / "rates.csv").read_bytes() == rates
    meta = load_reference(reference_folder).meta
    assert (meta["n_studies"], meta["n_cells"], meta["n_null_studies"]) == (4, 2, 4)
    assert meta["commands"] == [SETTINGS.command()]


def test_a_reference_takes_only_what_the_calibration_wrote(copied, resumed, trials):
    nowhere = copied.with_name("nowhere")
    with pytest.raises(FileNotFoundError):
        save_reference([nowhere], nowhere)
    with pytest.raises(TableError, match="key"):
        save_reference([resumed[0], copied], nowhere)
    write_table(trials.with_columns(integrated=~pl.col("integrated")), TRIALS, copied)
    with pytest.raises(RunError, match="not the one that it wrote"):
        save_reference([copied], nowhere)
    assert not nowhere.exists()


def shown(reference: Reference) -> str:
    printed = StringIO()
    with drawing_on(Console(file=printed, markup=False, highlight=False, width=10_000)):
        show_reference(reference)
    return printed.getvalue()


def test_a_reference_says_what_it_was_made_by(reference_folder):
    reference = load_reference(reference_folder)
    told = shown(reference)
    assert "earlier version of the code" not in told
    assert SETTINGS.command() in told
    old = replace(reference, meta=reference.meta | {"numbers_code": "0123456789abcdef"})
    (line,) = [line for line in shown(old).splitlines() if "earlier version of the code" in line]
    assert "0123456789abcdef" in line
    assert (reference.as_json()["made_by_this_code"], old.as_json()["made_by_this_code"]) == (
        True,
        False,
    )


def test_promises_are_compared_with_the_rates(reference_folder):
    reference = load_reference(reference_folder)
    own = pl.col("gate_profile") == "calibrated"
    never = reference.truth_rates.with_columns(n_passes=0, rate=0.0, low=0.0, high=wilson_interval(0, 2)[1])
    kept = replace(reference, truth_rates=never).promises()
    # Nothing strong was simulated, so that the last promise is not borne out.
    assert [promise.kept for promise in kept] == [True, True, False]
    assert f"in 0 of 2 (95 % interval up to {wilson_interval(0, 2)[1]:.3f})" in kept[0].sentence
    one = own & (pl.col("truth") == "nuisance") & (pl.col("gate") == "integrated")
    low, high = wilson_interval(1, 2)
    broken = never.with_columns(
        n_passes=pl.when(one).then(1).otherwise("n_passes"),
        rate=pl.when(one).then(0.5).otherwise("rate"),
        low=pl.when(one).then(low).otherwise("low"),
        high=pl.when(one).then(high).otherwise("high"),
    )
    first = replace(reference, truth_rates=broken).promises()[0]
    assert not first.kept
    assert f"'nuisance', in 1 of 2 (95 % interval up to {high:.3f})" in first.sentence


def test_the_cell_is_not_a_function_of_its_place():
    first, second = Cell("drift", "drift", 1.0), Cell("drift", "drift", 1.5)
    assert first.key != second.key
    assert first.key == Cell("drift", "drift", 1.0).key
