"""The pieces of work of a study. Each is a pure function of the study and its key, and returns measured tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.datasets.base import RecordingId
from lpact.levels import ceiling, predictive, relational, stripping
from lpact.levels.readouts import fit_context, fit_nuisance
from lpact.levels.relational import BrainPatterns
from lpact.math.types import FloatArray
from lpact.reasons import Reason
from lpact.run.workspace import Workspace
from lpact.tables.ceilings import BRAIN_CEILING
from lpact.tables.relational import BRAIN_PATTERNS, HALF_PATTERNS

Frames = dict[str, pl.DataFrame]


@dataclass(frozen=True)
class BrainJob:
    """Brain patterns of one recording."""

    dataset: str
    recording: RecordingId

    @property
    def key(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"brain/{self.dataset}/{self.recording}"

    def run(self, workspace: Workspace) -> Frames:
        """Compute the patterns."""
        prepared = workspace.prepared(self.dataset, self.recording)
        return relational.run_brain(config=workspace.config, prepared=prepared)


@dataclass(frozen=True)
class ContextJob:
    """Levels 1 to 3 of one recording and model, over the claimed layers."""

    dataset: str
    recording: RecordingId
    model: str
    layers: tuple[int, ...]
    confirmatory: bool
    patterns: BrainPatterns | Reason

    @property
    def key(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"context/{self.dataset}/{self.recording}/{self.model}"

    def run(self, workspace: Workspace) -> Frames:
        """Compute levels 1 to 3."""
        config = workspace.config
        prepared = workspace.prepared(self.dataset, self.recording)
        model = workspace.model(self.model, prepared)
        collected: dict[str, list[pl.DataFrame]] = {}
        nuisance = fit_nuisance(config, prepared)
        for layer in self.layers:
            readouts = fit_context(config, prepared, model, layer, nuisance)
            level1 = predictive.run(
                config=config,
                prepared=prepared,
                model=self.model,
                layer=layer,
                confirmatory=self.confirmatory,
                readouts=readouts,
            )
            level2 = relational.run(
                config=config,
                prepared=prepared,
                model=model,
                layer=layer,
                confirmatory=self.confirmatory,
                brain_patterns=self.patterns,
                readout_scores=readouts.pearson,
            )
            level3 = stripping.run(
                config=config,
                prepared=prepared,
                model=model,
                layer=layer,
                confirmatory=self.confirmatory,
                real=readouts.real,
            )
            for name, table in (level1 | level2 | level3).items():
                collected.setdefault(name, []).append(table)
        return {name: pl.concat(tables) for name, tables in collected.items()}


@dataclass(frozen=True)
class CeilingJob:
    """Brain–brain reliability of one dataset."""

    dataset: str
    recordings: tuple[RecordingId, ...]
    brains: Mapping[RecordingId, Frames]

    @property
    def key(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"ceiling/{self.dataset}"

    def run(self, workspace: Workspace) -> Frames:
        """Compute all modes."""
        brains = [self._brain(workspace, recording) for recording in self.recordings]
        table = ceiling.run(config=workspace.config, dataset=self.dataset, brains=brains)
        return {BRAIN_CEILING.name: table}

    def _brain(self, workspace: Workspace, recording: RecordingId) -> ceiling.BrainOnGrid:
        prepared = workspace.prepared(self.dataset, recording)
        frames = self.brains[recording]
        halves = frames[HALF_PATTERNS.name]
        order = prepared.grid.units.ids
        first, second = (
            pattern_matrices(halves.filter(pl.col("half") == half), order) for half in (0, 1)
        )
        return ceiling.BrainOnGrid(
            id=recording,
            unit_ids=order,
            onset_s=prepared.grid.onset_s,
            first_word=prepared.grid.first_word,
            comparable=prepared.grid.units.comparable,
            responses=prepared.reference,
            patterns=pattern_matrices(frames[BRAIN_PATTERNS.name], order),
            halves=(first, second),
        )


def pattern_matrices(patterns: pl.DataFrame, order: tuple[str, ...]) -> dict[str, FloatArray]:
    """Matrices [N, N] by measure from a patterns table, rows in the given unit order."""
    matrices = {}
    for (alignment,), rows in patterns.group_by("alignment", maintain_order=True):
        by_unit = dict(zip(rows["unit"], rows["pattern"], strict=True))
        matrices[str(alignment)] = np.array(
            [by_unit[unit].to_list() for unit in order], dtype=np.float64
        )
    return matrices
