from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.readouts import LayerInputs
from lpact.inputs.prepare import ModelOnGrid, Prepared
from lpact.inputs.workspace import Workspace
from lpact.validation import validate_model


def small_study(**changes: Any) -> LPactConfig:
    """A study of one simulated dataset with two models and few draws; ``options`` go to the dataset."""
    options = {
        "n_subjects": 2,
        "n_runs": 1,
        "n_stories": 4,
        "sentences_per_story": 8,
        "n_units": 10,
        "truths": ["lexical", "relational", "mechanism"],
        "snr": 1.5,
        **changes.pop("options", {}),
    }
    values: dict[str, Any] = {
        "name": "small",
        "seed": 5,
        "datasets": [
            {
                "name": "sim",
                "reader": "simulated",
                "options": options,
                "grid": changes.pop("grid", {"lags_ms": [0.0, 100.0, 200.0]}),
            }
        ],
        "models": [{"name": "integrated", "layers": [2]}, {"name": "lexical", "layers": [2]}],
        "readout": {"alphas": [1.0, 100.0, 10000.0], "folds": 4, "gap_events": 3},
        "controls": {"draws": 2},
        "stripping": {"mismatch_draws": 1},
    }
    for section, content in changes.items():
        values[section] = {**values.get(section, {}), **content}
    return validate_model(LPactConfig, values, where="test study")


class Bench:
    """One recording of a small study, ready for a level."""

    def __init__(self, config: LPactConfig) -> None:
        self.config = config
        self.workspace = Workspace(config)
        recording = self.workspace.dataset("sim").recording_ids()[0]
        self.prepared: Prepared = self.workspace.prepared("sim", recording)

    def model(self, name: str = "integrated") -> ModelOnGrid:
        return self.workspace.model(name, self.prepared)

    def layer(self, name: str = "integrated") -> LayerInputs:
        return LayerInputs(self.config, self.prepared, self.model(name), 2, confirmatory=True)


@pytest.fixture(scope="session")
def make_study() -> Callable[..., LPactConfig]:
    return small_study


@pytest.fixture(scope="session")
def bench() -> Bench:
    return Bench(small_study())


@pytest.fixture(scope="session")
def make_bench() -> Callable[..., Bench]:
    return lambda **changes: Bench(small_study(**changes))
