from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

import lpact
from lpact.study import Run, Study
from shared_folder import shared_folder


def tiny(**changes: Any) -> dict[str, Any]:
    """A study that runs in a few seconds; nested tables in ``changes`` are merged."""
    study: dict[str, Any] = {
        "name": "tiny",
        "seed": 3,
        "datasets": [
            {
                "name": "sim",
                "reader": "simulated",
                "grid": {"lags_ms": [0.0, 100.0]},
                "options": {
                    "n_subjects": 2,
                    "n_runs": 2,
                    "n_stories": 3,
                    "sentences_per_story": 6,
                    "n_units": 8,
                    "n_mechanism_units": 2,
                },
            }
        ],
        "models": [{"name": "integrated", "layers": [1, 2]}, {"name": "lexical", "layers": [2]}],
        "readout": {"alphas": [1.0, 100.0], "folds": 3, "gap_events": 2},
        "controls": {"draws": 2},
        "lpact": {"stripping": {"mismatch_draws": 1}, "assay": {"enabled": False}},
    }
    return _merged(study, changes)


def _merged(study: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The study with these changes; tables are merged, at every depth."""
    for key, value in changes.items():
        if isinstance(value, dict):
            study[key] = _merged(dict(study.get(key, {})), value)
        else:
            study[key] = value
    return study


@pytest.fixture(scope="session")
def tiny_study() -> Callable[..., dict[str, Any]]:
    return tiny


def tinier(**changes: Any) -> dict[str, Any]:
    """The tiny study with every control, measure and stripping, and as little as possible of each."""
    return tiny(
        **{
            "models": [{"name": "integrated", "layers": [2]}],
            "controls": {"draws": 1},
            "mechanisms": {"include": ["surprisal", "context_update"]},
            "lpact": {
                "relational": {"permutations": 19},
                "stripping": {"mismatch_draws": 1},
                "assay": {"enabled": True, "unit_permutations": 10, "shifts": 19},
            },
            **changes,
        }
    )


@pytest.fixture(scope="session")
def tinier_study() -> Callable[..., dict[str, Any]]:
    return tinier


def shared_run(study: Study, factory: pytest.TempPathFactory, name: str) -> Run:
    """A run that parallel workers share; not to be changed."""
    folder: Path = shared_folder(factory, name)
    with FileLock(f"{folder}.lock"):
        return study.run(folder, progress=False)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Run]:
    study = lpact.load_study(tiny(lpact={"assay": {"enabled": True}}))
    return study, shared_run(study, tmp_path_factory, "run-tiny")


@pytest.fixture(scope="session")
def tinier_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Run]:
    study = lpact.load_study(tinier())
    return study, shared_run(study, tmp_path_factory, "run-tinier")
