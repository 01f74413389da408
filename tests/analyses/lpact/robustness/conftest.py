"""The hand-made tables of the decision's tests are used here too; and one small simulated run."""

from __future__ import annotations

import pytest
from filelock import FileLock

import lpact
from lpact.study import Run
from shared_folder import shared_folder

STUDY = {
    "name": "robust",
    "seed": 5,
    "datasets": [
        {
            "name": name,
            "reader": "simulated",
            "grid": {"lags_ms": [100.0]},
            "options": {
                "n_subjects": 3,
                "n_runs": 1,
                "n_stories": 4,
                "sentences_per_story": 6,
                "n_units": 8,
                "snr": 2.0,
                "truths": truths,
            },
        }
        for name, truths in (("empty", []), ("planted", ["lexical", "relational", "mechanism"]))
    ],
    "models": [{"name": "integrated", "layers": [2]}],
    "readout": {"alphas": [10.0, 1000.0], "folds": 3, "gap_events": 2, "min_train_events": 30},
    "controls": {
        "include": [
            "random_matched_dim",
            "random_matched_autocorr",
            "circular_shift",
            "token_order_shuffle",
            "static_embedding",
        ],
        "draws": 2,
    },
    "mechanisms": {"include": ["surprisal", "context_update"]},
    "lpact": {
        "relational": {"alignments": ["linear", "cka"], "profiles": ["pearson", "cosine"]},
        "stripping": {
            "methods": ["feature_residualization", "feature_zeroing"],
            "mismatch_draws": 1,
        },
        "assay": {"enabled": False},
    },
}


@pytest.fixture(scope="session")
def simulated_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two datasets with three subjects each, one of them with planted signal; not to be changed."""
    folder = shared_folder(tmp_path_factory, "robustness-run")
    with FileLock(f"{folder}.lock"):
        return lpact.load_study(STUDY).run(folder, progress=False)
