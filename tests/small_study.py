"""A small study with everything in it: two datasets (one diagnostic), models with several layers, positive controls.

Tests of pictures and pages share one run of it (the fixture ``small_run``).
"""

from __future__ import annotations

from typing import Any


def _dataset(name: str, truths: list[str], **more: Any) -> dict[str, Any]:
    options = {
        "n_subjects": 2,
        "n_runs": 2,
        "n_stories": 4,
        "sentences_per_story": 6,
        "n_units": 8,
        "snr": 2.0,
        "truths": truths,
        "modality": "meg",
    }
    return {
        "name": name,
        "reader": "simulated",
        "grid": {"lags_ms": [100.0]},
        "options": options | more.pop("options", {}),
        **more,
    }


SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 11,
    "datasets": [
        _dataset("planted", ["onset", "lexical", "relational", "mechanism"]),
        _dataset("empty", [], role="diagnostic", options={"n_runs": 1}),
    ],
    "models": [
        {"name": "integrated", "layers": [1, 2]},
        {"name": "drift", "layers": [2]},
    ],
    "readout": {"folds": 3, "gap_events": 2, "alphas": [10.0, 1000.0], "min_train_events": 30},
    "controls": {
        "include": [
            "random_matched_dim",
            "random_matched_autocorr",
            "circular_shift",
            "untrained_model_fresh",
        ],
        "draws": 2,
    },
    "mechanisms": {"include": ["surprisal", "context_update", "syntactic_boundary"]},
    "lpact": {
        "relational": {"alignments": ["linear", "cka"], "profiles": ["pearson", "spearman"]},
        "stripping": {
            "methods": ["feature_zeroing", "feature_residualization"],
            "mismatch_draws": 1,
        },
        "assay": {"unit_permutations": 10, "shifts": 19},
    },
}
