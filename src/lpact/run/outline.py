"""A study before its data are there: what it asks for, where that comes from, and what is missing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lpact.analyses.base import analyses_of
from lpact.analyses.explanation import Block
from lpact.config import Role, RunConfig, SharedConfig, StudyConfig
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS, role_of
from lpact.datasets.catalogue import Download
from lpact.features.models import ModelPlace
from lpact.inputs.workspace import build_source
from lpact.run.features import wanted_contexts


@dataclass(frozen=True)
class DatasetOutline:
    """One dataset of the study. ``missing`` says what is missing; it is empty where nothing is."""

    name: str
    reader: str
    role: Role
    folder: Path | None
    missing: str
    extra: str
    download: Download | None


@dataclass(frozen=True)
class ModelOutline:
    """One model of the study. ``missing`` says what is missing; it is empty where nothing is."""

    name: str
    source: str
    layers: tuple[int, ...]
    contexts: tuple[str, ...]
    missing: str


@dataclass(frozen=True)
class Outline:
    """What a study asks for: ``controls`` with their draws, and ``blocks`` with what each analysis says, by name."""

    datasets: tuple[DatasetOutline, ...]
    models: tuple[ModelOutline, ...]
    controls: Mapping[str, int]
    blocks: Mapping[str, list[Block]]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing, so that the study can be planned in full."""
        return self.n_missing == 0

    @property
    def n_missing(self) -> int:
        """Number of datasets and models that are missing."""
        datasets = sum(bool(d.missing) for d in self.datasets)
        return datasets + sum(bool(m.missing) for m in self.models)


def outline_study(config: StudyConfig, run: RunConfig) -> Outline:
    """Look for datasets and models without opening them."""
    return Outline(
        datasets=_datasets(config, run),
        models=_models(config, run),
        controls=control_draws(config),
        blocks={name: own.outline(config) for name, own in analyses_of(config).items()},
    )


def _datasets(config: StudyConfig, run: RunConfig) -> tuple[DatasetOutline, ...]:
    found = []
    for entry in config.datasets:
        reader = DATASETS.get(entry.reader, where=f"dataset '{entry.name}'")
        path = run.paths.get(entry.name)
        folder = None if path is None else Path(os.path.normpath(path))
        missing = ""
        if reader.needs_path and folder is None:
            missing = f"no folder is given: [run.paths] {entry.name}"
        elif reader.needs_path and folder is not None and not folder.is_dir():
            missing = f"{folder} does not exist"
        found.append(
            DatasetOutline(
                entry.name,
                entry.reader,
                role_of(entry),
                folder,
                missing,
                reader.extra,
                reader.download,
            )
        )
    return tuple(found)


def _models(config: StudyConfig, run: RunConfig) -> tuple[ModelOutline, ...]:
    contexts = wanted_contexts(config)
    found = []
    for model in config.models:
        source = build_source(model)
        folder = run.models.get(model.name)
        source.at(ModelPlace(None if folder is None else Path(folder), Path(run.features)))
        found.append(
            ModelOutline(
                model.name, model.source, model.layers, contexts, source.absent(model.name)
            )
        )
    return tuple(found)


def control_draws(config: SharedConfig) -> dict[str, int]:
    """Draws of every control, where the dataset and the model allow it."""
    return {
        name: config.controls.draws if CONTROLS.get(name).random else 1
        for name in config.controls.include
    }
