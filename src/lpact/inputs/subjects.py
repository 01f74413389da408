"""Subjects of a dataset: their recordings, stimuli and lags that all share, and features of models for these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from lpact.codes import Reason
from lpact.config import StudyConfig
from lpact.errors import ConfigError, InputError, require_known
from lpact.features.models import FULL
from lpact.inputs.prepare import Placed
from lpact.inputs.responses import event_ids
from lpact.inputs.workspace import Workspace
from lpact.math.types import FloatArray
from lpact.responses import Responses
from lpact.wording import listed

Plan = TypeVar("Plan")
Lacks = Callable[[str, str, Reason], None]
"""Notes what the sources do not allow: item, sentence, reason."""


def plan_datasets(
    workspace: Workspace,
    read: Callable[[str, str], list[Placed]],
    plan: Callable[[str, dict[str, list[Placed]]], list[Plan]],
    problems: list[InputError],
    advance: Callable[[], None],
) -> list[Plan]:
    """Plans of all datasets from the recordings of their subjects; errors of either are appended to ``problems``."""
    plans: list[Plan] = []
    for entry in workspace.config.datasets:
        found: dict[str, list[Placed]] = {}
        for recording in workspace.dataset(entry.name).recording_ids():
            who = recording.subject
            try:
                if who not in found:
                    found[who] = read(entry.name, who)
            except InputError as error:
                problems.append(error)
                found[who] = []
            advance()
        if all(found.values()):
            try:
                plans += plan(entry.name, found)
            except InputError as error:
                problems.append(error)
    return plans


def shared_stimuli(subjects: Sequence[Responses]) -> list[str]:
    """Stimuli with some response of every subject, in the order of the first."""
    present: list[set[str]] = []
    for own in subjects:
        there = np.flatnonzero(np.isfinite(own.values).any(axis=(1, 2)))
        present.append({own.stimulus_ids[i] for i in there})
    every = subjects[0].stimulus_ids if subjects else ()
    return [name for name in every if all(name in own for own in present)]


def shared_lags(
    dataset: str, found: Mapping[str, list[Placed]], wanted: Sequence[float], *, where: str
) -> tuple[float, ...]:
    """Lags that all recordings have, or those among them that an option (``where``) names."""
    each = [own.grid.lags_ms for recordings in found.values() for own in recordings]
    common = [lag for lag in each[0] if all(lag in own for own in each)]
    if lacking := [lag for lag in wanted if lag not in common]:
        raise ConfigError(
            f"dataset '{dataset}' has no responses at {lacking[0]:g} ms",
            where=where,
            got=lacking[0],
            expected=f"lags of all recordings: {', '.join(f'{lag:g}' for lag in common)}",
            remedy="choose among these, or change grid.lags_ms of the dataset",
        )
    return tuple(wanted) or tuple(common)


def check_models(study: StudyConfig, named: Mapping[str, Sequence[str]]) -> None:
    """Raise `ConfigError` for models that do not exist; ``named`` by the option that names them."""
    known = [model.name for model in study.models]
    for option, names in named.items():
        for name in names:
            require_known(name, known, "model", where=f"option '{option}'", error=ConfigError)


def layers_of(
    workspace: Workspace,
    dataset: str,
    found: Mapping[str, list[Placed]],
    models: Sequence[str],
    lacks: Lacks,
) -> dict[str, tuple[int, ...]]:
    """Layers of the models that offer features of all stimuli of the dataset.

    Raises `InputError` for a layer that a model lacks, or features that exist and would not load.
    """
    stimuli = {own.stimulus.id: own for each in found.values() for own in each}
    layers: dict[str, tuple[int, ...]] = {}
    for model in models:
        wanted = next(m.layers for m in workspace.config.models if m.name == model)
        without = [s for s, own in stimuli.items() if not workspace.model(model, own).layers]
        if without:
            detail = f"model '{model}' offers no features of stimulus {listed(without)} of dataset '{dataset}'"
            lacks(model, detail, Reason.CONTEXT_NOT_OFFERED)
            continue
        for own in stimuli.values():
            offered = workspace.model(model, own)
            for layer in wanted:
                offered.require_layer(layer)
            if offered.ready((FULL,)):
                offered.check()
        layers[model] = wanted
    return layers


def features_of(
    workspace: Workspace,
    dataset: str,
    subjects: Sequence[str],
    stimuli: Sequence[str],
    model: str,
    layer: int,
) -> FloatArray:
    """Features of a model for the shared stimuli, [n, columns]; each from the first recording that has the stimulus."""
    places = workspace.recall(
        ("stimuli", dataset, tuple(subjects), tuple(stimuli)), lambda: _places(workspace, dataset, subjects, stimuli)
    )
    values: FloatArray | None = None
    for own, rows, at in places:
        loaded = workspace.model(model, own).load(layer, FULL)
        if values is None:
            values = np.empty((len(stimuli), loaded.shape[1]))
        values[at] = loaded[rows]
    assert values is not None
    return values


def _places(
    workspace: Workspace, dataset: str, subjects: Sequence[str], stimuli: Sequence[str]
) -> list[tuple[Placed, list[int], list[int]]]:
    """Recordings without their responses, their events that are first presentations, and the rows of these."""
    wanted = {name: row for row, name in enumerate(stimuli)}
    places = []
    for own in (own for who in subjects for own in workspace.recordings_of(dataset, who)):
        ids = event_ids(own, workspace.entry(dataset).grid)
        rows = [i for i, name in enumerate(ids) if name in wanted]
        if rows:
            empty = np.empty((*own.grid.responses.shape[:2], 0))
            light = replace(own, grid=replace(own.grid, responses=empty))
            places.append((light, rows, [wanted.pop(ids[i]) for i in rows]))
        if not wanted:
            break
    return places
