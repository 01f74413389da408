"""A small calibration from end to end: interrupted, resumed, and the same with any number of workers."""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import pytest

from lpact.calibrate.cells import Cell, Effort
from lpact.calibrate.output import KEPT, PACE_NAME, write_calibration
from lpact.calibrate.reference_run import FOLDER, save_reference
from lpact.calibrate.settings import Settings
from lpact.calibrate.study import Forecast, run_grid
from lpact.calibrate.truths import GATES
from lpact.errors import RunError
from lpact.tables.calibration import RATES, TRIALS, TRUTH_RATES

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


class Interrupted:
    """A user who loses patience after two studies."""

    def stage(self, name: str, total: int) -> None: ...

    def advance(self, steps: int = 1) -> None:
        self.n_done = getattr(self, "n_done", 0) + steps
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
        told=told.append,
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


def test_a_reference_is_made_from_a_finished_run(resumed, tmp_path):
    folder = save_reference(resumed[0], tmp_path / FOLDER)
    assert sorted(path.name for path in folder.iterdir()) == [
        "biases.csv",
        "meta.json",
        "rates.csv",
        "truth_rates.csv",
    ]
    rates = (resumed[0] / f"{RATES.name}.csv").read_bytes()
    assert (folder / "rates.csv").read_bytes() == rates
    with pytest.raises(RunError, match="not a finished calibration"):
        save_reference(tmp_path, tmp_path / "another")


def test_the_cell_is_not_a_function_of_its_place():
    first, second = Cell("drift", "drift", 1.0), Cell("drift", "drift", 1.5)
    assert first.key != second.key
    assert first.key == Cell("drift", "drift", 1.0).key
