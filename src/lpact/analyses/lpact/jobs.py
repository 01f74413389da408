"""The pieces of work of levels 1 to 4. Each is a pure function of the study and its own fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from lpact.analyses.base import Frames, Scope
from lpact.analyses.lpact.brain_sources import brain_patterns, pattern_matrices
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels import ceiling, predictive, relational, stripping
from lpact.analyses.lpact.levels.readouts import fit_context, fit_nuisance
from lpact.analyses.lpact.levels.relational import BrainPatterns
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, BRAIN_PATTERNS, HALF_PATTERNS
from lpact.codes import Reason
from lpact.datasets.base import RecordingId
from lpact.inputs.workspace import Workspace
from lpact.store import Results

MEASURING = (
    "analyses/lpact/config.py",
    "analyses/lpact/tables",
    "analyses/lpact/levels",
    "analyses/lpact/brain_sources.py",
    "analyses/lpact/jobs.py",
)
"""Code of L-PACT that a task of levels 1 to 4 may run."""

ABOUT_VERDICTS = ("name", "lpact.gates", "lpact.assay", "lpact.audit")
"""Parts of the configuration that no measured number depends on."""

ABOUT_MODELS = (*ABOUT_VERDICTS, "controls", "lpact.stripping", "mechanisms", "nuisance")
"""Parts of the configuration that brain patterns do not depend on."""


@dataclass(frozen=True)
class BrainJob:
    """Brain patterns of one recording."""

    code: ClassVar[tuple[str, ...]] = MEASURING
    needs: ClassVar[tuple[str, ...]] = ()

    dataset: str
    recording: RecordingId

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"lpact/brain/{self.dataset}/{self.recording}"

    @property
    def scope(self) -> Scope:
        """The dataset, without any model."""
        return Scope(self.dataset, without=ABOUT_MODELS)

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Compute the patterns."""
        prepared = workspace.prepared(self.dataset, self.recording)
        return relational.run_brain(config=LPactConfig.of(workspace.config), prepared=prepared)


@dataclass(frozen=True)
class ContextJob:
    """Levels 1 to 3 of one recording, model and layer.

    ``brains`` are the recordings whose patterns are compared with the model's, the own one first, each with the key of
    its `BrainJob`; a recording without partners has a reason instead.
    """

    code: ClassVar[tuple[str, ...]] = MEASURING

    dataset: str
    recording: RecordingId
    model: str
    layer: int
    confirmatory: bool
    comparable: bool
    brains: tuple[tuple[RecordingId, str], ...]

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"lpact/context/{self.dataset}/{self.recording}/{self.model}/{self.layer}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the brain patterns."""
        return tuple(key for _, key in self.brains)

    @property
    def scope(self) -> Scope:
        """The dataset and the model."""
        return Scope(self.dataset, (self.model,), without=ABOUT_VERDICTS)

    def run(self, workspace: Workspace, results: Results) -> Frames:
        """Compute levels 1 to 3."""
        config = LPactConfig.of(workspace.config)
        prepared = workspace.prepared(self.dataset, self.recording)
        model = workspace.model(self.model, prepared)
        nuisance = workspace.recall(
            (self.dataset, self.recording), lambda: fit_nuisance(config, prepared)
        )
        readouts = fit_context(config, prepared, model, self.layer, nuisance)
        level1 = predictive.run(
            config=config,
            prepared=prepared,
            model=self.model,
            layer=self.layer,
            confirmatory=self.confirmatory,
            readouts=readouts,
        )
        level2 = relational.run(
            config=config,
            prepared=prepared,
            model=model,
            layer=self.layer,
            confirmatory=self.confirmatory,
            brain_patterns=self._patterns(workspace, results),
            readout_scores=readouts.pearson,
        )
        level3 = stripping.run(
            config=config,
            prepared=prepared,
            model=model,
            layer=self.layer,
            confirmatory=self.confirmatory,
            real=readouts.real,
        )
        return level1 | level2 | level3

    def _patterns(self, workspace: Workspace, results: Results) -> BrainPatterns | Reason:
        """Patterns to compare with; layers of the same recording share them."""

        def read() -> BrainPatterns | Reason:
            brains = {r: results.load(key, [BRAIN_PATTERNS.name]) for r, key in self.brains}
            source = LPactConfig.of(workspace.config).relational.brain_patterns_from
            return brain_patterns(source, self.recording, brains, comparable=self.comparable)

        return workspace.recall((self.dataset, self.recording, self.brains), read)


@dataclass(frozen=True)
class CeilingJob:
    """Brain–brain reliability of one dataset, from the patterns of its recordings."""

    code: ClassVar[tuple[str, ...]] = MEASURING

    dataset: str
    brains: tuple[tuple[RecordingId, str], ...]

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"lpact/ceiling/{self.dataset}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the brain patterns."""
        return tuple(key for _, key in self.brains)

    @property
    def scope(self) -> Scope:
        """The dataset, without any model."""
        return Scope(self.dataset, without=ABOUT_MODELS)

    def run(self, workspace: Workspace, results: Results) -> Frames:
        """Compute all modes."""
        names = [BRAIN_PATTERNS.name, HALF_PATTERNS.name]
        brains = [
            self._brain(workspace, recording, results.load(key, names))
            for recording, key in self.brains
        ]
        table = ceiling.run(
            config=LPactConfig.of(workspace.config), dataset=self.dataset, brains=brains
        )
        return {BRAIN_CEILING.name: table}

    def _brain(
        self, workspace: Workspace, recording: RecordingId, frames: Mapping[str, pl.DataFrame]
    ) -> ceiling.BrainOnGrid:
        prepared = workspace.prepared(self.dataset, recording)
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
