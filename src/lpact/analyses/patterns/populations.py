"""Responses of all regions of all subjects, standardised by their training stimuli; features likewise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lpact.analyses.patterns.config import TEST, PatternsSection, options_of
from lpact.config import StudyConfig
from lpact.errors import ConfigError, require_known
from lpact.inputs.prepare import compute_settings
from lpact.inputs.responses import stack_recordings
from lpact.inputs.subjects import shared_stimuli
from lpact.inputs.workspace import Workspace
from lpact.math.columns import varying_columns
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.measures import MEASURES, LinearPredictivity, LinearR2, Measure
from lpact.responses import Responses


@dataclass(frozen=True, eq=False)
class Populations:
    """Mean responses of all regions of all subjects to the stimuli that all subjects have.

    Attributes
    ----------
    stimuli
        Training stimuli, then test stimuli.
    values
        [n_train + n_test, t], units of all populations; mean 0 and standard deviation 1 over training stimuli.
    columns
        Columns of every population, by subject and region.
    comparable
        Regions whose units correspond between subjects.
    """

    stimuli: tuple[str, ...]
    n_train: int
    values: FloatArray
    columns: Mapping[tuple[str, str], slice]
    comparable: frozenset[str]

    def of(self, subject: str, region: str) -> FloatArray:
        """One population, [n_train + n_test, units]."""
        return self.values[:, self.columns[subject, region]]

    def n_units(self, subject: str, region: str) -> int:
        """Units of one population."""
        return int(self.of(subject, region).shape[1])

    @property
    def labels(self) -> IntArray:
        """Number of the population of every column, [t]."""
        sizes = [self.n_units(*own) for own in self.columns]
        return np.repeat(np.arange(len(sizes)), sizes)


def read_subject(workspace: Workspace, dataset: str, subject: str, lag_ms: float) -> Responses:
    """Responses of one subject at a lag; missing ones are NaN."""
    return stack_recordings(workspace.recordings_of(dataset, subject), workspace.entry(dataset), lag_ms)


def averaged(own: Responses, regions: Sequence[str] = ()) -> Responses:
    """The means over repetitions of the units of some regions, or of all."""
    kept = own.select(regions=regions) if regions else own
    return replace(kept, values=kept.mean()[:, None])


def populations_of(
    workspace: Workspace,
    dataset: str,
    lag_ms: float,
    subjects: Sequence[str],
    regions: Sequence[str],
) -> Populations:
    """All populations of a dataset."""
    options = options_of(workspace.config)
    means = {who: averaged(read_subject(workspace, dataset, who, lag_ms), regions) for who in subjects}
    train, test = split_stimuli(options, dataset, means)
    stimuli = (*train, *test)
    kept: dict[tuple[str, str], IntArray] = {}
    same_place, start = True, 0
    for who, own in means.items():
        means[who] = own = own.select(stimuli=stimuli)
        same_place &= own.comparable_units
        usable, names = usable_units(own.values[:, 0], len(train)), np.array(own.regions)
        for region in regions:
            kept[who, region] = np.flatnonzero(usable & (names == region))
    units = {
        region: {tuple(means[who].unit_ids[i] for i in kept[who, region]) for who in subjects} for region in regions
    }
    alike = frozenset(region for region, own in units.items() if same_place and len(own) == 1)
    values = np.empty((len(stimuli), sum(map(len, kept.values()))))
    columns: dict[tuple[str, str], slice] = {}
    for (who, region), here in kept.items():
        columns[who, region] = at = slice(start, start := start + len(here))
        values[:, at] = standardise(means[who].values[:, 0, here], len(train))
        if region == regions[-1]:
            del means[who]  # one copy of every subject in memory
    return Populations(stimuli, len(train), values, columns, alike)


def usable_units(values: FloatArray, n_train: int) -> BoolArray:
    """Units [t] that are finite for all stimuli [n, t], and vary over training stimuli, which come first."""
    return np.isfinite(values).all(axis=0) & varying_columns(values[:n_train])


def standardise(values: FloatArray, n_train: int) -> FloatArray:
    """Subtract the mean of every column over training stimuli, which come first; divide by their standard deviation."""
    mean, spread = values[:n_train].mean(axis=0), values[:n_train].std(axis=0)
    values -= mean
    values /= spread
    return values


def split_stimuli(
    options: PatternsSection, dataset: str, subjects: Mapping[str, Responses]
) -> tuple[list[str], list[str]]:
    """Training and test stimuli, among those that all subjects share.

    Test stimuli are `test_stimuli`, those of `test_stories`, of the story `test`, or the last `test_share`, with a gap
    before them.
    """
    shared = shared_stimuli(list(subjects.values()))
    first = next(iter(subjects.values()))
    story_of = dict(zip(first.stimulus_ids, first.groups or (), strict=False))
    for option, noun, known in (
        ("test_stories", "story", {*story_of.values()}),
        (
            "test_stimuli",
            "stimulus",
            {name for own in subjects.values() for name in own.stimulus_ids},
        ),
    ):
        for name in getattr(options, option):
            require_known(
                name,
                sorted(known),
                f"{noun} in dataset '{dataset}':",
                where=f"option 'patterns.{option}'",
                error=ConfigError,
            )
    stories = {*options.test_stories} or ({TEST} & {*story_of.values()})
    if options.test_stimuli or stories:
        chosen = {*options.test_stimuli} or {name for name in shared if story_of.get(name) in stories}
        is_test = [name in chosen for name in shared]
        return (
            [name for name, own in zip(shared, is_test, strict=True) if not own],
            [name for name, own in zip(shared, is_test, strict=True) if own],
        )
    n_test = round(options.test_share * len(shared))
    last = len(shared) - n_test
    return shared[: max(0, last - options.gap_events)], shared[last:]


def measure_of(study: StudyConfig, name: str) -> Measure:
    """A measure with its options, and the settings of the study."""
    options = options_of(study)
    built = MEASURES.build(name, options.options.get(name), where="patterns.measures")
    compute = compute_settings(study.readout)
    if isinstance(built, LinearR2):
        return LinearR2(built.options, compute=compute)
    if isinstance(built, LinearPredictivity):
        return LinearPredictivity(built.options, gap=options.gap_events, compute=compute)
    return built
