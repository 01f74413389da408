"""A study of many small tasks, and what processes that were killed leave behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpact.run.status import LOG_NAME, read_log
from lpact.store import TaskStore

STUDY = """
name = "hardy"
seed = 5

[[datasets]]
name = "sim"
reader = "simulated"

[datasets.grid]
lags_ms = [100.0]

[datasets.options]
n_subjects = {subjects}
n_runs = 2
n_stories = 2
sentences_per_story = 8
n_units = 8
snr = 2.0

[[models]]
name = "integrated"
layers = {layers}

[[models]]
name = "drift"
layers = [2]

[readout]
folds = 3
gap_events = 2
alphas = [10.0, 1000.0]
min_train_events = 30

[controls]
include = ["random_matched_dim", "circular_shift"]
draws = {draws}

[lpact.relational]
alignments = ["linear"]
profiles = ["pearson"]

[mechanisms]
include = ["surprisal", "context_update"]

[lpact.stripping]
methods = ["feature_zeroing", "feature_residualization"]
mismatch_draws = 1

[lpact.assay]
enabled = false
"""


@dataclass(frozen=True)
class Undisturbed:
    """A study file and its run, which nothing happened to."""

    study: Path
    run: Path


def write_study(folder: Path, *, subjects: int = 2, layers: tuple[int, ...] = (1, 2), draws: int = 1) -> Path:
    """A study file; it has ``subjects · 2`` recordings, and a task for each with every layer."""
    path = folder / "study.toml"
    path.write_text(STUDY.format(subjects=subjects, layers=list(layers), draws=draws))
    return path


def partial_of(out: Path) -> Path:
    """The working folder of a run."""
    return out.with_name(f"{out.name}.partial")


def results_in(folder: Path) -> dict[str, int]:
    """Files of finished tasks with their inodes: one that is written again gets another."""
    return {path.name: path.stat().st_ino for path in folder.glob("tasks/*/*.task")}


def events(folder: Path, event: str) -> list[dict[str, Any]]:
    """Lines of one kind in the log of a run or of its working folder."""
    return [line for line in read_log(folder / LOG_NAME) if line["event"] == event]


def computed(folder: Path) -> list[str]:
    """Files of the tasks that the log says were computed, in order."""
    return [TaskStore(folder).path(line["key"]).name for line in events(folder, "task_finished")]


def contents(run: Path) -> dict[str, bytes]:
    """Every file of a run but its log, which tells of this very attempt."""
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name != LOG_NAME
    }


def assert_same_run(run: Path, expected: Path) -> None:
    """Both folders hold the same files with the same bytes, and nothing is left beside them."""
    got, wanted = contents(run), contents(expected)
    assert "manifest.json" in wanted
    assert sum(name.endswith(".parquet") for name in wanted) > 20
    assert got.keys() == wanted.keys()
    assert [name for name in wanted if got[name] != wanted[name]] == []
    assert not partial_of(run).exists()
