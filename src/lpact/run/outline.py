"""A study before its data are available: what it needs, where that comes from, and what is missing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lpact.analyses.base import analyses_of
from lpact.analyses.explanation import Block
from lpact.config import (
    DatasetConfig,
    LanguageModelConfig,
    Role,
    RunConfig,
    SharedConfig,
    StudyConfig,
)
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS, role_of
from lpact.datasets.catalogue import Download
from lpact.features.models import ModelPlace
from lpact.inputs.workspace import build_source
from lpact.run.features import wanted_contexts


@dataclass(frozen=True)
class DatasetOutline:
    """One dataset of the study. ``missing`` says what is missing, if anything."""

    name: str
    reader: str
    role: Role
    folder: Path | None
    missing: str
    extra: str
    download: Download | None


@dataclass(frozen=True)
class ModelOutline:
    """One model of the study. ``missing`` says what is missing, if anything."""

    name: str
    source: str
    layers: tuple[int, ...]
    contexts: tuple[str, ...]
    missing: str


@dataclass(frozen=True)
class Outline:
    """What a study needs: ``controls`` with their draws, and ``blocks`` that each analysis shows, by name."""

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
        datasets=tuple(_dataset(entry, run.paths.get(entry.name)) for entry in config.datasets),
        models=tuple(_model(model, run, wanted_contexts(config)) for model in config.models),
        controls=control_draws(config),
        blocks={name: own.outline(config) for name, own in analyses_of(config).items()},
    )


def _dataset(entry: DatasetConfig, path: str | None) -> DatasetOutline:
    reader = DATASETS.get(entry.reader, where=f"dataset '{entry.name}'")
    folder = None if path is None else Path(os.path.normpath(path))
    missing = ""
    if reader.needs_path and folder is None:
        missing = f"no folder is given: [run.paths] {entry.name}"
    elif reader.needs_path and folder is not None and not folder.is_dir():
        missing = f"{folder} does not exist"
    about = (folder, missing, reader.extra, reader.download)
    return DatasetOutline(entry.name, entry.reader, role_of(entry), *about)


def _model(model: LanguageModelConfig, run: RunConfig, contexts: tuple[str, ...]) -> ModelOutline:
    source, folder = build_source(model), run.models.get(model.name)
    source.at(ModelPlace(None if folder is None else Path(folder), Path(run.features)))
    missing = source.absent(model.name)
    return ModelOutline(model.name, model.source, model.layers, contexts, missing)


def control_draws(config: SharedConfig) -> dict[str, int]:
    """Draws of every control, if the dataset and the model allow it."""
    return {
        name: config.controls.draws if CONTROLS.get(name).random else 1
        for name in config.controls.include
    }
