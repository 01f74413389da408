"""The tasks of levels 1 to 4, each a pure function of the study and its fields; where brain patterns come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from lpact.analyses.base import Frames, Scope
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels import ceiling, predictive, relational, stripping
from lpact.analyses.lpact.levels.readouts import fit_context, fit_nuisance
from lpact.analyses.lpact.levels.relational import BrainPatterns
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, BRAIN_PATTERNS, HALF_PATTERNS
from lpact.codes import Reason
from lpact.datasets.base import RecordingId, Units
from lpact.inputs.workspace import Workspace
from lpact.math.types import FloatArray
from lpact.store import Results

MEASURING = (
    "analyses/lpact/config.py",
    "analyses/lpact/tables",
    "analyses/lpact/levels",
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


# --- Brain patterns: of the recording's own run, other runs, or other subjects -------------------------


def brain_patterns(
    source: str,
    own: RecordingId,
    brains: Mapping[RecordingId, Frames],
    *,
    comparable: bool = True,
) -> BrainPatterns | Reason:
    """Brain patterns for one recording, in its own unit order.

    From other recordings the patterns are averaged over all partners that have the pair of units; a pair that no
    partner has is NaN and left out of the comparison. Units that are not ``comparable`` between subjects have no
    partners there.
    """
    if source == "other_subject" and not comparable:
        return Reason.UNITS_NOT_COMPARABLE
    order = _order(brains[own])
    tables = [brains[r][BRAIN_PATTERNS.name] for r in partners(source, own, brains)]
    tables = [t for t in tables if set(order) & set(t["unit"])]
    if not tables:
        return Reason.NO_PARTNER_PATTERN
    matrices, reliability = {}, {}
    for alignment in tables[0]["alignment"].unique(maintain_order=True):
        rows = [t.filter(pl.col("alignment") == alignment) for t in tables]
        matrices[alignment] = _mean([_in_order(t, order) for t in rows])
        reliability[alignment] = _mean([_reliability(t, order) for t in rows])
    return BrainPatterns(matrices, reliability, Units(order, order).order_hash())


def partners(source: str, own: RecordingId, recordings: Iterable[RecordingId]) -> list[RecordingId]:
    """Recordings that give the patterns for one of them."""
    if source == "same_run":
        return [own]
    if source == "other_run":
        return [r for r in recordings if r.subject == own.subject and r != own]
    return [r for r in recordings if r.subject != own.subject]


def _order(frames: Frames) -> tuple[str, ...]:
    rows = frames[BRAIN_PATTERNS.name].sort("unit_index")
    return tuple(rows["unit"].unique(maintain_order=True))


def _in_order(patterns: pl.DataFrame, order: Sequence[str]) -> FloatArray:
    """The recording's [N, N] matrix moved into ``order``, NaN for units it lacks."""
    own = tuple(patterns.sort("unit_index")["unit"])
    (matrix,) = pattern_matrices(patterns, own).values()
    place = {unit: i for i, unit in enumerate(own)}
    shared = [i for i, unit in enumerate(order) if unit in place]
    source = [place[order[i]] for i in shared]
    out = np.full((len(order), len(order)), np.nan)
    out[np.ix_(shared, shared)] = matrix[np.ix_(source, source)]
    return out


def _reliability(patterns: pl.DataFrame, order: Sequence[str]) -> FloatArray:
    by_unit = dict(zip(patterns["unit"], patterns["split_half_reliability"], strict=True))
    return np.array([by_unit.get(unit) for unit in order], dtype=np.float64)


def _mean(arrays: Sequence[FloatArray]) -> FloatArray:
    """Mean over arrays of the entries that are there."""
    stacked = np.stack(arrays)
    finite = np.isfinite(stacked)
    count = finite.sum(axis=0)
    total = np.where(finite, stacked, 0.0).sum(axis=0)
    mean: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def pattern_matrices(patterns: pl.DataFrame, order: tuple[str, ...]) -> dict[str, FloatArray]:
    """Matrices [N, N] by measure from a patterns table, rows in the given unit order."""
    matrices = {}
    for (alignment,), rows in patterns.group_by("alignment", maintain_order=True):
        by_unit = dict(zip(rows["unit"], rows["pattern"], strict=True))
        matrices[str(alignment)] = np.array(
            [by_unit[unit].to_list() for unit in order], dtype=np.float64
        )
    return matrices
