"""From a dataset's recording to the inputs of every level: one grid with responses, nuisance and mechanisms."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from lpact.codes import Reason
from lpact.config import ReadoutConfig, SharedConfig
from lpact.datasets.base import Dataset, FeatureKey, Finding, RecordingId, Stimulus, Units
from lpact.datasets.validate import check_stimulus, overlap_findings
from lpact.errors import FeatureError, RecordingError
from lpact.features.mechanisms import (
    MECHANISMS,
    NO_LANGUAGE,
    NO_PARSE,
    MechanismInputs,
    Missing,
    WordValues,
    mechanism_matrix,
)
from lpact.features.models import FULL, ModelSource, check_features
from lpact.features.nuisance import build_nuisance, nuisance_findings
from lpact.features.parsing import read_parse
from lpact.grid import EventGrid, Exclusion
from lpact.inputs.grid_cache import OnGrid, Place, put_on_grid
from lpact.math.ridge import PER_TARGET, SHARED, Compute, RidgeGrid, Selection
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray
from lpact.splits import contiguous, grouped


@dataclass(frozen=True)
class Placed:
    """A recording on its event grid, with what was presented."""

    dataset: str
    id: RecordingId
    grid: EventGrid
    stimulus: Stimulus


@dataclass(frozen=True)
class Prepared(Placed):
    """One usable recording on its event grid, with predictors and folds.

    ``nuisance`` is [n_events, q]; ``mechanisms`` has [n_events] for each available mechanism, in the order of the
    study file; ``folds`` are the outer blocks over the events. ``pending`` names mechanisms that a language model will
    give once its features are extracted. With delays of a finite impulse response, ``mechanisms`` are those at the
    first delay, and ``delayed`` has [n_events, n_delays] for each; without, it is empty. Where units of the grid are
    means over regions, ``region_sizes`` counts the units of each, and ``read_units`` reads their grid.
    """

    nuisance: FloatArray
    mechanisms: dict[str, FloatArray]
    folds: BlockedFolds
    pending: tuple[str, ...] = ()
    delayed: Mapping[str, FloatArray] = field(default_factory=dict)
    region_sizes: tuple[int, ...] = ()
    read_units: Callable[[], EventGrid] | None = None

    @cached_property
    def of_units(self) -> Prepared:
        """The same events with the units that regions are means of; itself where units are no means."""
        return self if self.read_units is None else replace(self, grid=self.read_units())

    def scalars(self, mechanism: str) -> FloatArray:
        """A mechanism at every delay of the features, [n_events, n_delays]."""
        return self.delayed[mechanism] if self.delayed else self.mechanisms[mechanism][:, None]

    @property
    def n_events(self) -> int:
        """Rows of the grid."""
        return self.grid.n_events

    @property
    def key(self) -> dict[str, str]:
        """Recording columns of every table."""
        return self.id.key(self.dataset)

    @property
    def reference(self) -> FloatArray:
        """Responses at the reference lag, [n_events, n_units]."""
        reference: FloatArray = self.grid.responses[self.grid.reference_lag]
        return reference


@dataclass(frozen=True)
class Inspection:
    """What the audit learns from one recording; ``prepared`` is None when it cannot be used."""

    id: RecordingId
    prepared: Prepared | None
    reason: Reason
    findings: tuple[Finding, ...]
    n_samples: int
    sampling_rate_hz: float | None
    n_units: int
    n_words: int
    n_events: int
    n_events_excluded: int
    missing: dict[tuple[str, str], Missing]


def ridge_grid(readout: ReadoutConfig, prepared: Prepared | None = None) -> RidgeGrid:
    """The readout settings as the numerics need them; regions are those of the prepared recording."""
    selection = PER_TARGET
    if readout.selection == "shared":
        selection = SHARED
    elif readout.selection == "per_region" and prepared is not None:
        regions = np.unique(np.array(prepared.grid.units.regions), return_inverse=True)[1]
        selection = Selection("group", "group", "group", groups=tuple(regions.tolist()))
    return RidgeGrid(readout.alphas, readout.pca, readout.selection_metric, selection)


def compute_settings(readout: ReadoutConfig) -> Compute:
    """Device, precision and memory of the readouts."""
    return Compute(readout.device, readout.precision, int(readout.memory_gib * 2**30))


def make_folds(n_events: int, story: IntArray, readout: ReadoutConfig) -> BlockedFolds | Reason:
    """Outer blocks for a recording, or why they cannot be made with the configured minima."""
    if readout.split == "stories":
        if len(np.unique(story)) < 3:
            return Reason.TOO_FEW_STORIES
        folds = grouped(story, gap=readout.gap_events).folds
    else:
        if n_events < readout.folds * readout.min_test_events:
            return Reason.TOO_FEW_EVENTS
        folds = contiguous(n_events, readout.folds, gap=readout.gap_events).folds
    if n_events // 2 < folds.n_blocks:
        return Reason.TOO_FEW_EVENTS
    half = contiguous(n_events // 2, folds.n_blocks, gap=readout.gap_events).folds
    enough = (
        int(folds.test_sizes().min()) >= readout.min_test_events
        and min(len(folds.train_rows(b)) for b in range(folds.n_blocks)) >= readout.min_train_events
        and _smallest_inner(folds) >= readout.min_test_events
        and _smallest_inner(half) >= 2
        and _has_validation(folds)
        and _has_validation(half)
    )
    return folds if enough else Reason.TOO_FEW_EVENTS


def _has_validation(folds: BlockedFolds) -> bool:
    """Whether every outer block has validation rows outside its embargo."""
    blocks = range(folds.n_blocks)
    rows = ((folds.validation_rows(i, o) for i in blocks if i != o) for o in blocks)
    return all(any(r.stop - r.start >= 2 for r in inner) for inner in rows)


def _smallest_inner(folds: BlockedFolds) -> int:
    return min(len(folds.train_rows(a, b)) for a, b in combinations(range(folds.n_blocks), 2))


Language = Callable[[Stimulus], WordValues | Missing]
"""Values of a language model for the words of a stimulus."""


def inspect(
    dataset: Dataset,
    recording_id: RecordingId,
    *,
    name: str,
    config: SharedConfig,
    language: Language = lambda _: NO_LANGUAGE,
    place: Place = put_on_grid,
) -> Inspection:
    """Load, check and prepare one recording; raises `InputError` for what must be fixed.

    ``place`` puts the recording on its grid, or reads a cached one.
    """
    stimulus = dataset.stimulus(recording_id.stimulus)
    check_stimulus(stimulus)
    entry = next(d for d in config.datasets if d.name == name)
    placed = place(dataset, recording_id, stimulus, entry)
    seen = Inspection(
        id=recording_id,
        prepared=None,
        reason=Reason.OK,
        findings=(*placed.findings, *overlap_findings(stimulus), *stimulus.findings),
        n_samples=placed.n_samples,
        sampling_rate_hz=placed.sampling_rate_hz,
        n_units=placed.n_units,
        n_words=stimulus.words.height,
        n_events=0,
        n_events_excluded=0,
        missing={},
    )
    if (unusable := _unusable(placed, seen.n_words, entry.max_bad_units)) is not None:
        return _excluded(seen, unusable)
    grid = _usable_units(placed)
    if entry.preprocess.missing == "keep" and not np.isfinite(grid.responses).all():
        raise RecordingError(
            "a readout cannot use missing responses",
            where=f"{placed.where}; option 'preprocess.missing' of dataset '{name}'",
            got=f"{int((~np.isfinite(grid.responses)).sum())} missing responses, which are kept",
            expected="finite responses",
            remedy='set it to "drop_events" or "drop_units"',
        )
    of_regions: dict[str, Any] = {}
    if entry.grid.units == "regions":
        of_regions = {
            "region_sizes": tuple(len(own) for own in members_of_regions(grid.units).values()),
            "read_units": lambda: _usable_units(place(dataset, recording_id, stimulus, entry)),
        }
        grid = average_regions(grid)
    seen = replace(
        seen,
        findings=(*seen.findings, *(_left_out(e, placed.where) for e in grid.exclusions)),
        n_events=grid.n_events,
        n_events_excluded=grid.n_candidate_events - grid.n_events,
    )
    folds = make_folds(grid.n_events, grid.story, config.readout)
    if isinstance(folds, Reason):
        return _excluded(seen, _too_short(folds, grid, placed.where, config.readout))
    no_nuisance = np.empty((grid.n_events, 0))
    prepared = Prepared(name, recording_id, grid, stimulus, no_nuisance, {}, folds, **of_regions)
    prepared, missing = _with_predictors(prepared, config, language)
    findings = (*seen.findings, *nuisance_findings(stimulus, config.nuisance))
    return replace(seen, prepared=prepared, missing=missing, findings=findings)


def _usable_units(placed: OnGrid) -> EventGrid:
    """The grid without units that cannot be used."""
    assert placed.grid is not None
    grid, usable = placed.grid, list(placed.usable)
    if len(usable) == len(grid.units.ids):
        return grid
    responses = np.ascontiguousarray(grid.responses[..., usable])
    return replace(grid, responses=responses, units=grid.units.take(usable))


def _excluded(seen: Inspection, finding: Finding) -> Inspection:
    return replace(seen, reason=finding.reason, findings=(*seen.findings, finding))


def _unusable(placed: OnGrid, n_words: int, most_bad: float) -> Finding | None:
    """Why too little of a recording is usable, or None."""
    where = placed.where
    if placed.grid is None:
        found = f"{placed.n_samples} samples, {placed.n_units} units, {n_words} words"
        remedy = "remove the recording, or add its data"
        return Finding("recording", Reason.EMPTY_RUN, "excluded", where, found, "at least one of each", remedy)
    n_bad = placed.n_units - len(placed.usable)
    if placed.usable and n_bad <= most_bad * placed.n_units:
        return None
    found = f"{n_bad} of {placed.n_units} units are unusable"
    expected, remedy = (f"at most {most_bad:.0%} (max_bad_units of the dataset)", "fix or remove the recording")
    return Finding("units", Reason.TOO_MANY_BAD_UNITS, "excluded", where, found, expected, remedy)


_EXCLUSIONS = {
    Reason.WORDS_OUTSIDE_RECORDING: (
        "every event with a response at every lag",
        "shorten the lags or the window, or trim the words table; the events are left out",
    ),
    Reason.WORDS_WITHOUT_TIME: (
        "a time for every word in this recording",
        "check the recording's triggers; the events are left out",
    ),
    Reason.BAD_SPAN: (
        "signals without artefacts",
        "none needed if these times are known to be bad; see preprocess.artefact_threshold",
    ),
    Reason.MISSING_SAMPLES: (
        "finite values in every window",
        "none needed if the gaps are known; see preprocess.missing",
    ),
    Reason.NO_WORDS_IN_TR: (
        "at least one word onset in a TR",
        "none needed: a TR without words has no features, and is left out",
    ),
}
"""What is expected of events that the grid leaves out, and what to do."""


def _left_out(exclusion: Exclusion, where: str) -> Finding:
    expected, remedy = _EXCLUSIONS[exclusion.reason]
    found = f"{exclusion.n_events} events; {exclusion.detail}"
    return Finding("events", exclusion.reason, "excluded", where, found, expected, remedy)


def _too_short(reason: Reason, grid: EventGrid, where: str, readout: ReadoutConfig) -> Finding:
    found = f"{grid.n_events} events in {len(np.unique(grid.story))} stories"
    expected = f"{readout.folds} folds of at least {readout.min_test_events} test and {readout.min_train_events} "
    expected += f"training events after a gap of {readout.gap_events}"
    remedy = "use fewer folds, a smaller gap or lower minima, or leave the recording out"
    return Finding("folds", reason, "excluded", where, found, expected, remedy)


def _with_predictors(
    prepared: Prepared, config: SharedConfig, language: Language
) -> tuple[Prepared, dict[tuple[str, str], Missing]]:
    """The recording with nuisance and mechanisms, and which of them are not available."""
    stimulus, grid = prepared.stimulus, prepared.grid
    nuisance, _, missing_nuisance = build_nuisance(stimulus, config.nuisance)
    values, available, missing_mechanisms = mechanism_matrix(
        config.mechanisms.include, _mechanism_inputs(stimulus, config, language), config.mechanisms.options
    )
    by_delay = (grid.n_events, grid.n_delays, len(available))
    on_grid = grid.pool(values).reshape(by_delay) if available else np.empty(by_delay)
    mechanisms, delayed = {}, {}
    missing = {("nuisance", k): v for k, v in missing_nuisance.items()}
    missing |= {("mechanism", k): v for k, v in missing_mechanisms.items()}
    for column, mechanism in enumerate(available):
        scalars = on_grid[:, :, column]
        constant = scalars.max(axis=0) == scalars.min(axis=0)
        if constant.any():
            value = scalars[0, np.argmax(constant)]
            detail = f"'{mechanism}' is {value:g} at every event of stimulus '{stimulus.id}'"
            missing["mechanism", mechanism] = Missing(Reason.MECHANISM_CONSTANT, detail)
        else:
            mechanisms[mechanism], delayed[mechanism] = scalars[:, 0], scalars
    extractable = {name for name, why in missing_mechanisms.items() if why.reason is Reason.FEATURES_NOT_EXTRACTED}
    pending = tuple(name for name in config.mechanisms.include if name in extractable)
    complete = replace(
        prepared,
        nuisance=grid.pool(nuisance),
        mechanisms=mechanisms,
        pending=pending,
        delayed=delayed if grid.fir_delays else {},
    )
    return complete, missing


def _mechanism_inputs(stimulus: Stimulus, config: SharedConfig, language: Language) -> MechanismInputs:
    """What mechanisms are computed from; only what one of them needs is parsed or read."""
    included = config.mechanisms.include
    needed = [MECHANISMS.get(name) for name in included if name not in stimulus.mechanisms]
    read = parse = None
    if lacking := stimulus.lacks("word"):
        absent = Missing(Reason.MECHANISM_NOT_OFFERED, f"stimulus '{stimulus.id}': {lacking}")
        return MechanismInputs(stimulus, absent, absent)
    if any(mechanism.reads_language for mechanism in needed):
        read = language(stimulus)
    if any(mechanism.reads_parse for mechanism in needed):
        parse = read_parse(stimulus, config.mechanisms.parser, where="option 'mechanisms.parser'")
    return MechanismInputs(stimulus, read or NO_LANGUAGE, parse or NO_PARSE)


def members_of_regions(units: Units) -> dict[str, IntArray]:
    """Units of every region, in the order in which regions first appear."""
    labels = np.array(units.regions)
    return {region: np.flatnonzero(labels == region) for region in dict.fromkeys(units.regions)}


def average_regions(grid: EventGrid) -> EventGrid:
    """Replace units by the means of their regions, in the order in which regions first appear."""
    regions, members = zip(*members_of_regions(grid.units).items(), strict=True)
    responses = np.stack([grid.responses[..., m].mean(axis=-1) for m in members], axis=-1)
    coordinates = grid.units.coordinates_mm
    means = None if coordinates is None else np.stack([coordinates[m].mean(axis=0) for m in members])
    units = Units(regions, regions, means, grid.units.coordinate_frame)
    return replace(grid, responses=np.ascontiguousarray(responses), units=units)


KEPT_FEATURE_SETS = 8
"""Feature sets of a model that stay in memory: a layer, the one before, its contexts and a few draws."""


class ModelOnGrid:
    """A model's feature sets for one recording, pooled onto its events; the last few are kept."""

    def __init__(self, model: str, source: ModelSource, prepared: Placed) -> None:
        self.model = model
        self._source = source
        self._prepared = prepared
        # An `lru_cache` of a method is a reference cycle, which keeps the features until garbage is collected.
        self._kept: OrderedDict[FeatureKey, FloatArray] = OrderedDict()

    @cached_property
    def offered(self) -> dict[tuple[int, str], int]:
        """Number of draws on offer for each (layer, context)."""
        draws: dict[tuple[int, str], list[int]] = {}
        for key in self._source.offers(self.model, self._prepared.stimulus):
            draws.setdefault((key.layer, key.context), []).append(key.draw)
        for (layer, context), numbers in draws.items():
            if sorted(numbers) != list(range(len(numbers))):
                raise FeatureError(
                    f"draws of model '{self.model}', layer {layer}, context '{context}' are not counted from 0",
                    where=self._prepared.stimulus.where,
                    got=f"draws {sorted(numbers)}",
                    expected=f"draws 0 to {len(numbers) - 1}",
                    remedy="number the draws from 0 without gaps",
                )
        return {place: len(numbers) for place, numbers in draws.items()}

    def ready(self, contexts: Sequence[str]) -> bool:
        """Whether features in these contexts can be loaded without extraction."""
        return self._source.ready(self.model, self._prepared.stimulus, contexts)

    def width(self, layer: int) -> int:
        """Columns of a layer's features in full context, at all delays."""
        width = self._source.width(FeatureKey(self.model, layer, FULL), self._prepared.stimulus)
        return width * self._prepared.grid.n_delays

    def check(self) -> None:
        """Raise `FeatureError` where a feature set on offer would not load."""
        for key in self._source.offers(self.model, self._prepared.stimulus):
            self._source.check(key, self._prepared.stimulus)

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers with full-context features."""
        return tuple(sorted(layer for layer, context in self.offered if context == FULL))

    def load(self, layer: int, context: str = FULL, draw: int = 0) -> FloatArray:
        """Features on the event grid, [n_events, n_delays · columns]."""
        kept, key = self._kept, FeatureKey(self.model, layer, context, draw)
        if key not in kept:
            if len(kept) == KEPT_FEATURE_SETS:
                kept.popitem(last=False)
            kept[key] = self._prepared.grid.pool(self.words(layer, context, draw))
        kept.move_to_end(key)
        return kept[key]

    def words(self, layer: int, context: str = FULL, draw: int = 0) -> FloatArray:
        """Features of every word, [n_words, columns]."""
        key, stimulus = FeatureKey(self.model, layer, context, draw), self._prepared.stimulus
        values = self._source.load(key, stimulus)
        check_features(values, key, stimulus, where=f"model source '{self._source.name}'")
        return values

    def require_layer(self, layer: int) -> None:
        """Raise `FeatureError` unless the model offers ``layer``."""
        if layer not in self.layers:
            raise FeatureError(
                f"model '{self.model}' has no layer {layer}",
                where=f"[[models]] '{self.model}', option 'layers'; stimulus '{self._prepared.stimulus.id}' "
                f"of dataset '{self._prepared.dataset}' ({self._prepared.stimulus.where})",
                got=layer,
                expected=f"one of the layers on offer: {list(self.layers)}",
                remedy="name a layer that the model offers, or add its features",
            )
