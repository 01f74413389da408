"""Small studies whose power is asked about."""

from __future__ import annotations

from typing import Any

from lpact.analyses.lpact.calibration.power_design import Ceiling, DatasetDesign, ModelDesign
from lpact.analyses.lpact.calibration.trial import Effort
from lpact.codes import Reason
from lpact.study import Study, load_study

SMALL = Effort(
    draws=9,
    mismatch_draws=1,
    folds=3,
    gap_events=2,
    lags_ms=(100.0,),
    alphas=(10.0, 1000.0),
    mechanisms=("surprisal", "context_update"),
    methods=("feature_residualization",),
    controls=("random_matched_dim", "random_matched_autocorr", "circular_shift"),
)
"""What a simulated study spends in tests."""


def small_study(**settings: Any) -> Study:
    """The study of `small_settings`."""
    return load_study(small_settings(**settings))


def small_settings(
    *,
    snr: float = 1.0,
    draws: int = 2,
    models: tuple[str, ...] = ("integrated",),
    name: str = "small",
    **options: Any,
) -> dict[str, Any]:
    """A study of the simulated reader: three subjects, eight units, one model of the integrated kind."""
    return {
        "name": name,
        "seed": 3,
        "datasets": [
            {
                "name": "sim",
                "reader": "simulated",
                "grid": {"lags_ms": [100.0]},
                "options": {
                    "n_subjects": 3,
                    "n_runs": 1,
                    "n_stories": 2,
                    "sentences_per_story": 8,
                    "n_units": 8,
                    "snr": snr,
                    **options,
                },
            }
        ],
        "models": [{"name": model, "layers": [2]} for model in models],
        "readout": {
            "folds": 3,
            "gap_events": 2,
            "alphas": [10.0, 1000.0],
            "min_train_events": 30,
        },
        "controls": {"include": list(SMALL.controls or ()), "draws": draws},
        "mechanisms": {"include": ["surprisal", "context_update"]},
        "lpact": {
            "relational": {"alignments": ["cka"], "profiles": ["pearson"], "permutations": 9},
            "stripping": {"methods": ["feature_residualization"], "mismatch_draws": 1},
            "assay": {"enabled": False},
        },
    }


def design_of(**changes: Any) -> DatasetDesign:
    """A design as a dataset might have it."""
    model = ModelDesign("gpt2", 8, 8, (1,) * 8, 20, 0.5, 1.5, 400.0, Reason.OK)
    values: dict[str, Any] = {
        "name": "podcast",
        "role": "primary",
        "confirmatory": True,
        "reason": Reason.OK,
        "detail": "",
        "n_subjects": 5,
        "n_subject_runs": 5,
        "n_measured": 5,
        "n_events": 600.0,
        "n_units": 12.0,
        "n_folds": 5,
        "n_lags": 3,
        "response_autocorrelation": 0.4,
        "n_effective_units": 6.0,
        "ceiling": Ceiling("subject_to_subject", 0.3),
        "models": (model,),
    }
    return DatasetDesign(**(values | changes))
