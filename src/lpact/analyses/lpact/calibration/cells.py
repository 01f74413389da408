"""Cells of the calibration grid: the truth, the sizes and the noise of a simulated study, and its configuration.

The study of a cell goes through all stages, all severe controls, all four levels and the default gates. Sizes that only
cost time are small, and listed in `Effort`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lpact.analyses.lpact.calibration.truths import PLANTED_MECHANISM, known_truth
from lpact.analyses.lpact.config import LPactConfig
from lpact.datasets.simulated import SimulatedOptions
from lpact.datasets.simulated.words import WORDS_PER_SENTENCE
from lpact.math.seeding import keyed_rng
from lpact.validation import validate_model

DATASET = "simulation"
LAYER = 2
"""The layer of a simulated model of four layers that knows most."""
N_STORIES = 4
SENTENCES_AT_LEAST = 4
_SEEDS = 2**48


@dataclass(frozen=True)
class Effort:
    """What a simulated study spends; nothing here is a property of the world that is simulated."""

    draws: int = 20
    mismatch_draws: int = 2
    folds: int = 5
    gap_events: int = 5
    lags_ms: tuple[float, ...] = (0.0, 100.0)
    alphas: tuple[float, ...] = (1.0, 100.0, 10000.0)
    mechanisms: tuple[str, ...] = (PLANTED_MECHANISM, "semantic_transition", "context_update")
    methods: tuple[str, ...] = (
        "feature_residualization",
        "mechanism_projection_removal",
        "feature_zeroing",
    )
    controls: tuple[str, ...] | None = None
    """Severe controls; None for all of a study's default ones."""


EFFORT = Effort()
"""What a study of the calibration spends by default."""


@dataclass(frozen=True, order=True)
class Cell:
    """One cell of the grid.

    ``truth`` is a name of `truths.TRUTHS`, ``model`` one of the simulated models. ``n_events`` is the number of
    words of a subject-run, met on average: four stories of sentences with 5 to 12 words. ``noise_autocorrelation``
    is that of the noise at 100 Hz, one sample later.
    """

    truth: str
    model: str
    snr: float = 1.0
    n_events: int = 340
    n_subjects: int = 4
    n_units: int = 12
    noise_autocorrelation: float = 0.95

    @property
    def key(self) -> str:
        """Name of the cell: the same for the same cell, on every machine."""
        return " ".join(f"{name}={value}" for name, value in asdict(self).items())

    @property
    def sentences_per_story(self) -> int:
        """Sentences of each story that give ``n_events`` words, at least four."""
        words_a_sentence = sum(WORDS_PER_SENTENCE) / 2
        return max(SENTENCES_AT_LEAST, round(self.n_events / (N_STORIES * words_a_sentence)))


def study_seed(cell: Cell, seed: int) -> int:
    """Seed of a cell's study number ``seed``: studies of different cells share no random number."""
    return int(keyed_rng(seed, "calibrate", cell.key).integers(_SEEDS))


def cell_config(cell: Cell, seed: int, effort: Effort = EFFORT) -> LPactConfig:
    """Return the study ``seed`` of a cell: one dataset, one model, one layer, the default rules."""
    truth = known_truth(cell.truth)
    options: dict[str, Any] = {
        "n_subjects": cell.n_subjects,
        "n_runs": 1,
        "n_stories": N_STORIES,
        "sentences_per_story": cell.sentences_per_story,
        "n_units": cell.n_units,
        "truths": list(truth.planted),
        "mechanisms": [PLANTED_MECHANISM],
        "snr": cell.snr,
        "noise_autocorrelation": cell.noise_autocorrelation,
        **truth.options,
    }
    controls: dict[str, Any] = {"draws": effort.draws}
    if effort.controls is not None:
        controls["include"] = list(effort.controls)
    where = f"calibration cell {cell.key}"
    what = "the configuration of a simulated study is"
    validate_model(SimulatedOptions, options, where=where, what=what)
    return validate_model(
        LPactConfig,
        {
            "name": "calibration",
            "seed": study_seed(cell, seed),
            "datasets": [
                {
                    "name": DATASET,
                    "reader": "simulated",
                    "grid": {"lags_ms": list(effort.lags_ms)},
                    "options": options,
                }
            ],
            "models": [{"name": cell.model, "layers": [LAYER]}],
            "readout": {
                "alphas": list(effort.alphas),
                "folds": effort.folds,
                "gap_events": effort.gap_events,
            },
            "controls": controls,
            "stripping": {"methods": list(effort.methods), "mismatch_draws": effort.mismatch_draws},
            "assay": {"enabled": False},
            "mechanisms": {"include": list(effort.mechanisms)},
        },
        where=where,
        what=what,
    )
