"""A study that runs in seconds, its run, and the command line in this process: fixtures for tests of commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock
from typer.testing import CliRunner, Result

from shared_folder import shared_folder

TINY = """
name = "tiny"
seed = 7

[[datasets]]
name = "sim"
reader = "simulated"

[datasets.grid]
lags_ms = [100.0]

[datasets.options]
n_subjects = 3
n_runs = 1
n_stories = 2
sentences_per_story = 8
n_units = 8
snr = 2.0

[[models]]
name = "integrated"
layers = [2]

[[models]]
name = "drift"
layers = [2]

[readout]
folds = 3
gap_events = 2
alphas = [10.0, 1000.0]
min_train_events = 30

[controls]
include = ["random_matched_dim", "random_matched_autocorr", "circular_shift", "untrained_model_fresh"]
draws = 1

[lpact.relational]
alignments = ["linear", "cka"]
profiles = ["pearson"]

[mechanisms]
include = ["surprisal", "context_update"]

[lpact.stripping]
methods = ["feature_zeroing", "feature_residualization"]
mismatch_draws = 1

[lpact.assay]
enabled = false
"""

Lpact = Callable[..., Result]


@dataclass(frozen=True)
class TinyRun:
    """The finished run, the study file that it came from, and what ``lpact run`` said."""

    study: Path
    folder: Path
    said: str


@pytest.fixture(scope="session")
def lpact() -> Lpact:
    """``lpact("run", study, "--out", folder)`` runs a command in this process."""
    from lpact.cli import app

    runner = CliRunner()

    def invoke(*args: object, **env: str) -> Result:
        result = runner.invoke(app, [str(arg) for arg in args], env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture(scope="session")
def tiny_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny_run(lpact: Lpact, tmp_path_factory: pytest.TempPathFactory) -> TinyRun:
    """Shared by parallel workers; not to be changed, so copy its folder where a test must."""
    shared = shared_folder(tmp_path_factory, "tiny-run")
    study, folder, said = shared / "tiny.toml", shared / "tiny", shared / "said.txt"
    with FileLock(f"{shared}.lock"):
        if not said.exists():
            shared.mkdir(exist_ok=True)
            study.write_text(TINY, encoding="utf-8")
            result = lpact("run", study, "--out", folder, "--no-progress")
            assert result.exit_code == 0, result.output
            said.write_text(result.stdout, encoding="utf-8")
    return TinyRun(study, folder, said.read_text(encoding="utf-8"))
