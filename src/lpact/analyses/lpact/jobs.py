"""The tasks of levels 1 to 4, each a pure function of the study and its fields; where brain patterns come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from lpact.analyses.base import Frames, Scope
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels import ceiling, predictive, relational, stripping
from lpact.analyses.lpact.levels.readouts import LayerInputs, fit_layer, fit_nuisance
from lpact.analyses.lpact.levels.relational import BrainPatterns
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, BRAIN_PATTERNS, HALF_PATTERNS
from lpact.codes import Reason
from lpact.datasets.base import RecordingId
from lpact.inputs.workspace import Workspace
from lpact.math.columns import mean_of_finite
from lpact.store import Results

MEASURING = (
    "analyses/lpact/best_control.py",
    "analyses/lpact/config.py",
    "analyses/lpact/tables/__init__.py",
    "analyses/lpact/tables/levels.py",
    "analyses/lpact/levels",
    "analyses/lpact/jobs.py",
)
"""Code of L-PACT that a task of levels 1 to 4 may run."""

ABOUT_VERDICTS = ("name", "lpact.gates", "lpact.assay", "lpact.audit")
"""Parts of the configuration that no measured number depends on."""

ABOUT_MODELS = (*ABOUT_VERDICTS, "controls", "lpact.stripping", "mechanisms", "nuisance")
"""Parts of the configuration that brain patterns do not depend on."""


@dataclass(frozen=True)
class LPactJob:
    """A job about one dataset; fields that say where it is are in its name."""

    kind: ClassVar[str]
    code: ClassVar[tuple[str, ...]] = MEASURING
    without: ClassVar[tuple[str, ...]] = ABOUT_MODELS

    dataset: str

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        place = [getattr(self, own, None) for own in ("dataset", "recording", "model", "layer")]
        return "/".join(["lpact", self.kind, *(str(part) for part in place if part is not None)])

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the brain patterns that it reads."""
        return tuple(key for _, key in getattr(self, "brains", ()))

    @property
    def scope(self) -> Scope:
        """The dataset, without any model."""
        return Scope(self.dataset, without=self.without)


@dataclass(frozen=True)
class BrainJob(LPactJob):
    """Brain patterns of one recording."""

    kind = "brain"

    recording: RecordingId

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Compute the patterns."""
        prepared = workspace.prepared(self.dataset, self.recording)
        return relational.measure_brain_patterns(config=LPactConfig.of(workspace.config), prepared=prepared)


@dataclass(frozen=True)
class ContextJob(LPactJob):
    """Levels 1 to 3 of one recording, model and layer.

    ``brains`` are the recordings whose patterns are compared with the model's, its own first, with keys of their tasks.
    """

    kind = "context"

    recording: RecordingId
    model: str
    layer: int
    confirmatory: bool
    comparable: bool
    brains: tuple[tuple[RecordingId, str], ...]

    @property
    def scope(self) -> Scope:
        """The dataset and the model."""
        return Scope(self.dataset, (self.model,), without=ABOUT_VERDICTS)

    def run(self, workspace: Workspace, results: Results) -> Frames:
        """Compute levels 1 to 3."""
        config = LPactConfig.of(workspace.config)
        prepared = workspace.prepared(self.dataset, self.recording)
        model = workspace.model(self.model, prepared)
        layer = LayerInputs(config, prepared, model, self.layer, self.confirmatory)
        nuisance = workspace.recall((self.dataset, self.recording), lambda: fit_nuisance(config, prepared))
        # Layers of the same recording share the brain patterns.
        brain = workspace.recall((self.dataset, self.recording, self.brains), lambda: self._patterns(config, results))
        readouts = fit_layer(layer, nuisance)
        return {
            **predictive.measure_predictive(layer, readouts),
            **relational.measure_relational(layer, brain, readouts.pearson),
            **stripping.measure_stripping(layer, readouts.real),
        }

    def _patterns(self, config: LPactConfig, results: Results) -> BrainPatterns | Reason:
        names, source = [BRAIN_PATTERNS.name], config.relational.brain_patterns_from
        brains = {r: results.load(key, names)[names[0]] for r, key in self.brains}
        return brain_patterns(source, self.recording, brains, comparable=self.comparable)


@dataclass(frozen=True)
class CeilingJob(LPactJob):
    """Brain–brain reliability of one dataset, from the patterns of its recordings."""

    kind = "ceiling"

    brains: tuple[tuple[RecordingId, str], ...]

    def run(self, workspace: Workspace, results: Results) -> Frames:
        """Compute all modes."""
        names = [BRAIN_PATTERNS.name, HALF_PATTERNS.name]
        brains = []
        for recording, key in self.brains:
            prepared, frames = workspace.prepared(self.dataset, recording), results.load(key, names)
            order, halves = prepared.grid.units.ids, frames[HALF_PATTERNS.name]
            tables = (frames[BRAIN_PATTERNS.name], *(halves.filter(half=half) for half in (0, 1)))
            whole, first, second = (BrainPatterns.read(table, order).matrices for table in tables)
            brains.append(
                ceiling.BrainOnGrid(
                    id=recording,
                    unit_ids=order,
                    onset_s=prepared.grid.onset_s,
                    first_word=prepared.grid.first_word,
                    comparable=prepared.grid.units.comparable,
                    responses=prepared.reference,
                    patterns=whole,
                    halves=(first, second),
                    lacks_units=(tables[0]["reason"] == Reason.TOO_FEW_UNITS).all(),
                )
            )
        config = LPactConfig.of(workspace.config)
        return {BRAIN_CEILING.name: ceiling.measure_ceilings(config=config, dataset=self.dataset, brains=brains)}


def brain_patterns(
    source: str,
    own: RecordingId,
    brains: Mapping[RecordingId, pl.DataFrame],
    *,
    comparable: bool = True,
) -> BrainPatterns | Reason:
    """Brain patterns for one recording, in its own unit order.

    Other recordings' patterns are averaged over all that have a pair of units; NaN where none has. Units that are not
    ``comparable`` between subjects have no partners there.
    """
    if source == "other_subject" and not comparable:
        return Reason.UNITS_NOT_COMPARABLE
    order = BrainPatterns.read(brains[own]).unit_ids
    read = [BrainPatterns.read(brains[r]) for r in partners(source, own, brains)]
    moved = [brain.in_order(order) for brain in read if set(order) & set(brain.unit_ids)]
    if not moved:
        return Reason.NO_PARTNER_PATTERN
    matrices, reliability = (
        {name: mean_of_finite(np.stack([part[name] for part in parts])) for name in parts[0]}
        for parts in ([b.matrices for b in moved], [b.reliability for b in moved])
    )
    return BrainPatterns(order, matrices, reliability)


def partners(source: str, own: RecordingId, recordings: Iterable[RecordingId]) -> list[RecordingId]:
    """Recordings that give the patterns for one of them."""
    if source == "same_run":
        return [own]
    if source == "other_run":
        return [r for r in recordings if r.subject == own.subject and r != own]
    return [r for r in recordings if r.subject != own.subject]
