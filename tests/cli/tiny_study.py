"""A study that runs in two seconds, and the types of the fixtures around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from typer.testing import Result

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
