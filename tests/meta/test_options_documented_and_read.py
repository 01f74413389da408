"""Every option is explained, and some code reads it: statically everywhere, and while studies run."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel
from rich.console import Console
from source_tree import Module, outside_validators, read_module, source_modules

import lpact
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.analyses.lpact.levels.stripping_methods import STRIPPINGS
from lpact.config import RunConfig, RunTable, Section, StudyConfig
from lpact.config.study import SlurmConfig
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS
from lpact.features.mechanisms import MECHANISMS
from lpact.features.models import MODELS
from lpact.measures import MEASURES
from lpact.registry import PluginOptions, Registry

REGISTRIES: tuple[Registry[Any], ...] = (
    CONTROLS,
    DATASETS,
    MEASURES,
    MECHANISMS,
    MODELS,
    PROFILES,
    STRIPPINGS,
)


def sections(kind: type[Section] = Section) -> Iterator[type[Section]]:
    """Every table of the study file."""
    for section in kind.__subclasses__():
        yield section
        yield from sections(section)


def plugin_options() -> set[type[BaseModel]]:
    """Options of every built-in plugin."""
    return {entry.plugin.Options for registry in REGISTRIES for entry in registry.entries()}


def all_models() -> list[type[BaseModel]]:
    """Models of the package itself: other tests may have defined some of their own."""
    found = {m for m in (*sections(), *plugin_options()) if m.__module__.startswith("lpact.")}
    return sorted(found, key=lambda model: model.__name__)


def read_attributes(modules: list[Module]) -> set[str]:
    """Attributes that code reads, validators aside: checking an option is not using it."""
    return {
        node.attr
        for module in modules
        for node in outside_validators(module.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


@pytest.mark.parametrize("model", all_models(), ids=lambda model: model.__name__)
def test_every_option_is_explained(model: type[BaseModel]) -> None:
    assert model.__doc__
    for name, field in model.model_fields.items():
        description = field.description or ""
        assert description.endswith("."), f"{model.__name__}.{name}"
        assert description[0].isupper() or description[0] == "`", f"{model.__name__}.{name}"


def test_every_option_is_read_somewhere() -> None:
    read = read_attributes(source_modules())
    unread = {f"{m.__name__}.{name}" for m in all_models() for name in m.model_fields if name not in read}
    assert unread == set()


def test_an_option_that_nobody_reads_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "class PlantedConfig:\n"
        "    @model_validator(mode='after')\n"
        "    def check(self):\n"
        "        return self.only_checked\n"
        "def use(config):\n"
        "    config.only_written = 1\n"
        "    return config.used\n",
        encoding="utf-8",
    )
    assert read_attributes([read_module(planted)]) == {"used"}


# --- While a study runs --------------------------------------------------------------------------

OPTIONS = {"n_subjects": 1, "n_runs": 1, "sentences_per_story": 12, "n_units": 8}
READOUT = {
    "folds": 3,
    "alphas": [10.0],
    "min_train_events": 4,
    "min_test_events": 4,
    "gap_events": 0,
}
FITTED = [e.plugin for e in MEASURES.entries() if e.plugin.needs_fit and not e.plugin.from_readout]
ALIGNMENTS = [e.name for e in MEASURES.entries() if e.plugin not in FITTED and not e.plugin.behavioural]
EVERY_PLUGIN = {
    "name": "every-plugin",
    "datasets": [
        {
            "name": "prose",
            "reader": "simulated",
            "preprocess": {
                "envelope": "high_gamma",
                "envelope_bands_hz": [2.0, 5.0, 8.0],
                "artefact_threshold": 1e6,
            },
            "options": OPTIONS | {"text": "prose"},
        }
    ],
    "models": [
        {"name": "integrated", "layers": [1]},
        {
            "name": "lpact-tiny",
            "source": "transformers",
            "layers": [1],
            "options": {"untrained_seeds": 1, "word_context_tokens": 16},
        },
    ],
    "readout": READOUT,
    "controls": {
        "draws": 1,
        "include": CONTROLS.names(),
        "options": {"within_story_block_shuffle": {"block_events": 4}},
    },
    "lpact": {
        "relational": {"alignments": ALIGNMENTS, "profiles": PROFILES.names()},
        "stripping": {"methods": STRIPPINGS.names(), "mismatch_draws": 1},
        "assay": {"enabled": False},
    },
}
EVERY_GRID = {
    "name": "every-grid",
    "datasets": [
        {
            "name": events,
            "reader": "simulated",
            "grid": {"events": events, "units": "regions"},
            "options": OPTIONS,
        }
        for events in ("words", "sentences")
    ]
    + [
        {
            "name": tr_features,
            "reader": "simulated",
            "grid": {"events": "trs", "tr_features": tr_features, "lags_ms": [0.0]},
            "options": OPTIONS | {"modality": "fmri", "sentences_per_story": 24},
        }
        for tr_features in ("hrf", "lanczos")
    ],
    "models": [{"name": "integrated", "layers": [1]}],
    "readout": READOUT,
    "controls": {"draws": 1, "include": ["circular_shift"]},
    "mechanisms": {"include": ["surprisal", "context_update"]},
    "lpact": {
        "relational": {
            "alignments": ["linear"],
            "profiles": ["pearson"],
            "region_as": "population",
        },
        "stripping": {"methods": ["feature_zeroing"], "mismatch_draws": 1},
    },
}
EVERY_STEP = {
    "name": "every-step",
    "datasets": [
        {
            "name": "passages",
            "reader": "simulated_passages",
            "grid": {"events": "sentences", "lags_ms": [0.0]},
            "options": {"n_subjects": 1, "n_units": 4, "n_categories": 2, "n_types": 20},
        }
    ],
    "models": [
        {"name": "planted", "layers": [1]},
        {
            "name": "words",
            "source": "word_vectors",
            "layers": [0],
            "options": {"missing": "zeros"},
        },
    ],
    "readout": READOUT,
    "deconstruct": {
        "ladder": [["SP"], ["words"]],
        "category": "category",
        "alphas": [1.0],
        "draws": 1,
        "oasm_sigmas": [1.0],
    },
}
WITHOUT_GROUPS = EVERY_STEP | {
    "name": "without-groups",
    "deconstruct": EVERY_STEP["deconstruct"] | {"category": "", "split_by": "rows", "n_folds": 3},  # type: ignore[operator]
}

EVERY_BRAIN = {
    "name": "every-brain",
    "datasets": [
        {
            "name": "brains",
            "reader": "simulated_brains",
            "options": {
                "n_subjects": 3,
                "n_stimuli": 24,
                "n_repetitions": 2,
                "n_units": 4,
                "lags_ms": [0.0],
                "gains": [1.0],
            },
        }
    ],
    "models": [{"name": name, "layers": [0, 1]} for name in ("sixth_brain", "half_brain")],
    "turing": {
        "split_by": "rows",
        "gap_events": 0,
        "n_folds": 2,
        "n_halves": 1,
        "growth_draws": 1,
        "source_units": 3,
        "instances": {"both": ["sixth_brain", "half_brain"]},
    },
}
EVERY_REGION = {
    "name": "every-region",
    "datasets": [
        {
            "name": "regions",
            "reader": "simulated_regions",
            "grid": {"lags_ms": [0.0]},
            "options": {
                "n_subjects": 4,
                "n_regions": 3,
                "n_units": 5,
                "n_train": 24,
                "n_test": 20,
                "n_latents": 4,
                "n_models": 1,
            },
        },
        {
            "name": "brains",  # without a story of test stimuli
            "reader": "simulated_brains",
            "options": {"n_subjects": 2, "n_stimuli": 100, "n_repetitions": 1, "n_units": 10},
        },
    ],
    "models": [{"name": name, "layers": [0, 1]} for name in ("one_more_brain", "model01", "sixth_brain")],
    "patterns": {
        "layer_folds": 2,
        "gap_events": 0,
        "untrained": {"one_more_brain": "model01"},
        "connectivity": "dataset",
        "n_bootstrap": 100,
        "structure_draws": 20,
    },
}


@pytest.mark.slow
def test_every_option_is_read_while_a_study_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[tuple[type, str]] = set()

    def recorded(self: BaseModel, name: str) -> Any:
        caller = sys._getframe(1)
        validators = type(self).__pydantic_decorators__.model_validators
        from_lpact = caller.f_globals.get("__name__", "").startswith("lpact.")
        if from_lpact and caller.f_code.co_name not in validators:
            seen.add((type(self), name))
        return object.__getattribute__(self, name)

    monkeypatch.setattr(Section, "__getattribute__", recorded)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(f"w{i} {i} 1\n" for i in range(1, 20)), encoding="utf-8")
    for everything in (
        EVERY_PLUGIN,
        EVERY_GRID,
        EVERY_STEP,
        WITHOUT_GROUPS,
        EVERY_BRAIN,
        EVERY_REGION,
    ):
        folders = {"features": str(tmp_path / "features"), "models": {}}
        if "deconstruct" in everything:
            folders["models"] = {"words": str(vectors)}
        study = lpact.load_study(everything | {"run": folders})
        study.plan()
        study.run(tmp_path / study.config.name, console=Console(quiet=True))
    for measure in FITTED:  # L-PACT does not take these
        measure().fit(np.eye(9, 3), np.eye(9, 2))
    # Readers of files have tests of their own, with files.
    files = {
        model
        for model in sections(PluginOptions)
        if model.__module__.startswith("lpact.datasets.") and "simulated" not in model.__module__
    }
    # Clusters, too: tests/run/test_dask_*.py.
    # Datasets and models with a folder have the options of those without.
    models = set(all_models()) - files - {SlurmConfig, lpact.Dataset, lpact.Model}
    read = {(base, name) for kind, name in seen for base in kind.__mro__}
    wanted = {(model, name) for model in models for name in model.model_fields}
    wanted -= {(model, name) for model in (RunTable, RunConfig) for name in ("patience_s", "slurm")}
    assert {f"{m.__name__}.{name}" for m, name in wanted - read} == set()
    assert (StudyConfig, "seed") in read
    assert {StudyConfig, RunConfig} <= models
