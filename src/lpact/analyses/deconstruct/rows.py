"""Rows of a fit: recordings with the same events, their folds, and the blocks that tests compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lpact.analyses.deconstruct.config import DeconstructSection, options_of
from lpact.config import StudyConfig
from lpact.datasets.base import RecordingId
from lpact.errors import InputError, did_you_mean
from lpact.inputs.prepare import Prepared
from lpact.inputs.workspace import Workspace
from lpact.math.columns import mean_of_finite
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.splits import Split, balanced, contiguous, grouped, shuffled

CONTIGUOUS, SHUFFLED = "contiguous", "shuffled"

ALL_UNITS = "all"
FEWEST_GROUPS = 5
"""Groups from which on folds keep them together by default: signs of 4 blocks give p = 1/16 at the least."""


def events_of(study: StudyConfig, dataset: str) -> str:
    """What one row of a dataset is: ``words``, ``sentences`` or ``trs``."""
    return next(d.grid.events for d in study.datasets if d.name == dataset)


def groups_of(prepared: Prepared, options: DeconstructSection, events: str) -> list[str] | None:
    """The group of every event, which no fold divides; None: folds are contiguous blocks of events."""
    how = options.split_by
    if how == "rows":
        return None
    words = prepared.stimulus.words[prepared.grid.first_word]
    stories, sentences = words["story_id"].to_list(), words["sentence_id"].to_list()
    if how == "sentence" or (how == "auto" and events == "words"):
        groups = [f"{a}/{b}" for a, b in zip(stories, sentences, strict=True)]
    else:
        groups = [str(story) for story in stories]
    return None if how == "auto" and len({*groups}) < FEWEST_GROUPS else groups


def contiguous_split(prepared: Prepared, study: StudyConfig, events: str) -> Split:
    """Folds that share no group, in the order of the recording."""
    options = options_of(study)
    groups = groups_of(prepared, options, events)
    if groups is None:
        return contiguous(prepared.n_events, options.n_folds, gap=study.readout.gap_events)
    if not options.category:
        return grouped(groups, min(options.n_folds, len({*groups})))
    words = prepared.stimulus.words
    if options.category not in words.columns:
        raise InputError(
            f"the words table has no column '{options.category}'",
            where=f"option 'deconstruct.category'; {prepared.stimulus.where}",
            got=f"columns {', '.join(words.columns)}",
            expected="a column with the category of every story",
            remedy=did_you_mean(options.category, words.columns),
        )
    return balanced(groups, words[options.category][prepared.grid.first_word].to_list())


def split_of(prepared: Prepared, study: StudyConfig, events: str, kind: str) -> Split:
    """Folds of one kind; shuffled ones have the sizes of the contiguous ones."""
    split = contiguous_split(prepared, study, events)
    return split if kind == CONTIGUOUS else shuffled(split, seed=study.seed)


def blocks_of(prepared: Prepared, options: DeconstructSection, events: str) -> list[str]:
    """The block of every event, for tests that respect autocorrelation: its group, or a stretch of events."""
    groups = groups_of(prepared, options, events)
    if groups is not None:
        return groups
    return [f"events {i - i % options.block_events}" for i in range(prepared.n_events)]


def same_rows(prepared: Prepared) -> tuple[object, ...]:
    """Equal for recordings whose events are the same rows of the same stimulus."""
    grid, weights = prepared.grid, prepared.grid.weights
    own = () if weights is None else (weights.data, weights.indices, weights.indptr)
    arrays = (grid.first_word, grid.stop_word, *own)
    return prepared.stimulus.id, grid.fir_delays, *(values.tobytes() for values in arrays)


@dataclass(frozen=True, eq=False)
class Rows:
    """Responses of recordings with the same events, side by side; rows are sorted by fold.

    ``order`` is the place of every row in the recordings, ``blocks`` its block as a number.
    """

    prepared: Sequence[Prepared]
    split: Split
    order: IntArray
    folds: BlockedFolds
    responses: FloatArray
    blocks: IntArray
    block_names: tuple[str, ...]
    network: str

    @cached_property
    def units(self) -> list[slice]:
        """Columns of every recording."""
        sizes = [own.reference.shape[1] for own in self.prepared]
        stops = np.cumsum(sizes).tolist()
        return [slice(stop - size, stop) for size, stop in zip(sizes, stops, strict=True)]

    @cached_property
    def regions(self) -> list[str]:
        """Region of every column."""
        return [region for own in self.prepared for region in own.grid.units.regions]

    @cached_property
    def deciding(self) -> BoolArray:
        """Columns that layers, sub-models and verdicts rest on."""
        own = np.array(self.regions) == self.network
        return np.ones(len(own), dtype=bool) if not self.network else own

    def mean(self, values: FloatArray, *, clipped: bool = True) -> FloatArray:
        """Mean over the deciding units of each recording, then over recordings, [..., t] → [...].

        Undefined values are left out; ``clipped``: values below 0 count as 0.
        """
        values = np.maximum(values, 0.0) if clipped else values
        own = [mean_of_finite(values[..., u][..., self.deciding[u]], -1) for u in self.units]
        return mean_of_finite(np.stack(own, axis=-1), -1)


def rows_of(workspace: Workspace, dataset: str, recordings: Sequence[RecordingId], kind: str) -> Rows:
    """The rows of some recordings with the same events."""
    study, events = workspace.config, events_of(workspace.config, dataset)
    options = options_of(study)
    prepared = [workspace.prepared(dataset, recording) for recording in recordings]
    split = split_of(prepared[0], study, events, kind)
    order, folds = split.blocks()
    names, blocks = np.unique(blocks_of(prepared[0], options, events), return_inverse=True)
    return Rows(
        prepared,
        split,
        order,
        folds,
        np.concatenate([own.reference for own in prepared], axis=1)[order],
        blocks[order],
        tuple(names.tolist()),
        options.network,
    )
