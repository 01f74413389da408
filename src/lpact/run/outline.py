"""A study before its data are there: what it asks for, where that comes from, and what follows from the file alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lpact.analyses.lpact.levels.audit_offers import wanted_contexts
from lpact.analyses.lpact.levels.audit_record import ContextOffer, RecordingSummary
from lpact.config import Role, RunConfig, StudyConfig
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS, RecordingId, role_of
from lpact.datasets.catalogue import Download
from lpact.features.models import ModelPlace
from lpact.inputs.workspace import build_source
from lpact.run.planning.rows import context_rows


@dataclass(frozen=True)
class DatasetOutline:
    """One dataset of the study. ``missing`` says what is not there, in words; empty where all is."""

    name: str
    reader: str
    role: Role
    folder: Path | None
    missing: str
    extra: str
    download: Download | None


@dataclass(frozen=True)
class ModelOutline:
    """One model of the study. ``missing`` says what is not there, in words; empty where all is."""

    name: str
    source: str
    layers: tuple[int, ...]
    contexts: tuple[str, ...]
    missing: str


@dataclass(frozen=True)
class Outline:
    """What a study asks for.

    ``rows`` are those of one context (dataset, subject, session, run, model, layer) with every control, by table;
    ``rows_a_unit`` come on top for each brain unit. ``n_claims`` supposes that every model reads every dataset.
    """

    datasets: tuple[DatasetOutline, ...]
    models: tuple[ModelOutline, ...]
    controls: Mapping[str, int]
    rows: Mapping[str, int]
    rows_a_unit: Mapping[str, int]
    n_claims: int
    n_confirmatory_claims: int

    @property
    def complete(self) -> bool:
        """Whether nothing is missing, so that the study can be planned in full."""
        return self.n_missing == 0

    @property
    def n_missing(self) -> int:
        """Datasets and models that are not there."""
        datasets = sum(bool(d.missing) for d in self.datasets)
        return datasets + sum(bool(m.missing) for m in self.models)


def outline_study(config: StudyConfig, run: RunConfig) -> Outline:
    """Look at what is there without opening it."""
    datasets = _datasets(config, run)
    models = _models(config, run)
    controls = _draws(config)
    empty, single = (_rows(config, controls, n_units) for n_units in (0, 1))
    n_layers = sum(len(m.layers) for m in config.models)
    n_a_dataset = n_layers * len(config.mechanisms.include)
    return Outline(
        datasets=datasets,
        models=models,
        controls=controls,
        rows={name: n for name, n in sorted(empty.items()) if n},
        rows_a_unit={name: n for name, n in sorted((single - empty).items()) if n},
        n_claims=len(datasets) * n_a_dataset,
        n_confirmatory_claims=sum(d.role == "primary" for d in datasets) * n_a_dataset,
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
            missing = f"{folder} is not there"
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


def _draws(config: StudyConfig) -> dict[str, int]:
    """Draws of every control, where the dataset and the model allow it."""
    return {
        name: config.controls.draws if CONTROLS.get(name).random else 1
        for name in config.controls.include
    }


def _rows(config: StudyConfig, controls: Mapping[str, int], n_units: int) -> Counter[str]:
    """Rows of a context in which everything is possible."""
    anyone = RecordingId("", "", "", "")
    units = tuple(str(unit) for unit in range(n_units))
    recording = RecordingSummary(
        anyone, units, 0, 1, config.readout.folds, config.mechanisms.include
    )
    offer = ContextOffer(anyone, "", 0, 0, controls, {}, config.stripping.methods, (), ())
    return context_rows(config, recording, offer)
