"""Level 2: does the model relate to the brain's units as the units relate to one another?

brain pattern of unit i   b_i = [a(u_i, u_j)] for j ≠ i
model pattern             q   = [a(z, u_j)]   for all j
delta_rel(i) = ρ(b_i, q_real without i) − best over controls c of ρ(b_i, q_c without i)

Similarity ignores size: uninformative features have tiny patterns, some of which resemble the brain's. The statistic of
the nulls is therefore the similarity times the spread of the pattern,

    s(q) = mean over i of ρ(b_i, q without i) · sd(q) / c,

with a constant c that is a symmetric function of all that is compared. Three nulls:

``surrogate``   s(q) of every draw of a surrogate control: features without information about the stimulus.
``unit_order``  s(q_real) in a random order of the units.
``swap``        against a rival r: s(q_real) − s(q_r), with the shapes of q_real and q_r (their deviations from their
                means) exchanged at random units; a random rival has another draw in every exchange.

With ``region_as = "population"``, u_i is a region as the population of its units (`populations`).

Orders and exchanges are the same for all measures and similarities of a recording, and for all recordings of the same
units, so that draws can be compared over them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import polars as pl

from lpact.analyses.lpact.best_control import best_control
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.populations import Populations
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES, ProfileSimilarity
from lpact.analyses.lpact.levels.readouts import (
    NUISANCE,
    REAL,
    Condition,
    LayerInputs,
    conditions,
    fit_layer,
    fit_nuisance,
    nullable,
)
from lpact.analyses.lpact.tables import levels
from lpact.codes import Reason
from lpact.datasets.base import Units
from lpact.inputs.prepare import Prepared, compute_settings, ridge_grid
from lpact.math.columns import mean_of_finite
from lpact.math.seeding import keyed_rng
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.measures import MEASURES, LinearPredictivity, Measure
from lpact.splits import Split, alternating_halves, contiguous
from lpact.store import frame, frame_from_columns
from lpact.tables import Table


@dataclass(frozen=True)
class BrainPatterns:
    """Patterns of units by measure, [N, N], and split-half reliability of each, [N]; NaN where a unit is missing."""

    unit_ids: tuple[str, ...]
    matrices: Mapping[str, FloatArray]
    reliability: Mapping[str, FloatArray]

    @cached_property
    def unit_index(self) -> dict[str, int]:
        """Index of every unit."""
        return {unit: i for i, unit in enumerate(self.unit_ids)}

    @property
    def order_hash(self) -> str:
        """Hash of the unit order."""
        return Units(self.unit_ids, self.unit_ids).order_hash() if self.unit_ids else "none"

    @classmethod
    def read(cls, table: pl.DataFrame, order: tuple[str, ...] | None = None) -> BrainPatterns:
        """From the rows of one recording; ``order`` is that of the patterns' elements (None: by ``unit_index``)."""
        if order is None:
            order = tuple(table.sort("unit_index")["unit"].unique(maintain_order=True))
        matrices, reliability = {}, {}
        for (name,), part in table.group_by("alignment", maintain_order=True):
            rows = pl.DataFrame({"unit": order}).join(part, on="unit", how="left", maintain_order="left")
            matrices[str(name)] = np.array(rows["pattern"].to_list(), dtype=np.float64)
            if "split_half_reliability" in rows.columns:
                own = rows["split_half_reliability"].cast(pl.Float64)
                reliability[str(name)] = own.to_numpy()
        return cls(order, matrices, reliability)

    def in_order(self, order: tuple[str, ...]) -> BrainPatterns:
        """The same in another unit order; NaN for units that are missing here."""
        shared = [i for i, unit in enumerate(order) if unit in self.unit_index]
        source = [self.unit_index[order[i]] for i in shared]
        nan = np.full((len(order), len(order)), np.nan)
        matrices = {name: nan.copy() for name in self.matrices}
        reliability = {name: nan[0].copy() for name in self.matrices}
        for name, values in self.matrices.items():
            matrices[name][np.ix_(shared, shared)] = values[np.ix_(source, source)]
            reliability[name][shared] = self.reliability[name][source]
        return BrainPatterns(order, matrices, reliability)


def build_measures(config: LPactConfig, prepared: Prepared | None = None) -> dict[str, Measure]:
    """Instances of the study's alignment measures, by name; for a recording, with the settings of its readout."""
    options = config.relational.options
    measures = {
        name: MEASURES.build(name, options.get(name), where="relational.alignments")
        for name in config.relational.alignments
    }
    if prepared is None:
        return measures
    settings = ridge_grid(config.readout, prepared), compute_settings(config.readout)
    return {
        name: measure.using(*settings) if isinstance(measure, LinearPredictivity) else measure
        for name, measure in measures.items()
    }


@dataclass(frozen=True)
class LaggedResponses:
    """What measures look at in a recording: responses [n_lags, n_events, n_units], and the outer folds.

    With ``populations``, patterns are those of regions.
    """

    lagged: FloatArray
    reference_lag: int
    split: Split
    populations: Populations | None = None

    @classmethod
    def of(cls, prepared: Prepared, populations: Populations | None = None) -> LaggedResponses:
        """The responses of a recording, with the folds of its readouts."""
        grid, split = prepared.grid, Split.of_blocks(prepared.folds)
        return cls(grid.responses, grid.reference_lag, split, populations)

    @property
    def reference(self) -> FloatArray:
        """Responses at the reference lag, [n_events, n_units]."""
        reference: FloatArray = self.lagged[self.reference_lag]
        return reference

    def take(self, rows: IntArray) -> LaggedResponses:
        """The same units over some of the events, with as many contiguous folds."""
        split = contiguous(len(rows), len(self.split), gap=self.split.gap)
        return replace(self, lagged=self.lagged[:, rows], split=split)

    def patterns(self, measure: Measure) -> FloatArray:
        """Patterns of all units (or regions), [N, N]; a unit has no entry for itself."""
        given = (self.reference, self.split, self.lagged)
        own = self.populations
        matrix = (own.pairwise(measure, *given) if own else measure.pairwise(*given)).copy()
        np.fill_diagonal(matrix, np.nan)
        return matrix


def measure_brain_patterns(*, config: LPactConfig, prepared: Prepared) -> dict[str, pl.DataFrame]:
    """Patterns of one recording's units among themselves, whole and in split halves."""
    units = prepared.grid.units
    coordinates = units.coordinates_mm
    if coordinates is None:
        coordinates = np.full((len(units.ids), 3), np.nan)
    common = {**prepared.key, "unit": list(units.ids), "unit_order_hash": units.order_hash()}
    index = {"unit_index": np.arange(len(units.ids))}
    about = {
        "region": list(units.regions),
        **dict(zip(("x_mm", "y_mm", "z_mm"), coordinates.T, strict=True)),
        "coordinate_frame": units.coordinate_frame,
    }
    populations = Populations.of(config.relational, prepared)
    lacking = np.zeros(len(units.ids), bool) if populations is None else populations.lacking
    measured = prepared if populations is None else prepared.of_units
    responses = LaggedResponses.of(measured, populations)
    rows_of_halves = alternating_halves(prepared.n_events, config.relational.half_blocks)
    halves = [responses.take(rows) for rows in rows_of_halves]
    correlation = PROFILES.build("pearson")
    tables: dict[Table, list[pl.DataFrame]] = {}
    for name, measure in build_measures(config, measured).items():
        own = {**common, "alignment": name}
        whole = responses.patterns(measure)
        parts = [half.patterns(measure) for half in halves]
        reliability = correlation.compare_pairs(parts[0], parts[1])
        reasons = {"split_half_reliability": reliability, "reason": _reasons(reliability, lacking)}
        _add(tables, levels.BRAIN_PATTERNS, {**own, **index, "pattern": whole, **reasons})
        for half, part in enumerate(parts):
            _add(tables, levels.HALF_PATTERNS, {**own, "half": half, "pattern": part})
    _add(tables, levels.BRAIN_UNIT_INDEX, common | index | about)
    return {table.name: pl.concat(parts) for table, parts in tables.items()}


def measure_relational(
    layer: LayerInputs,
    brain: BrainPatterns | Reason,
    readout_scores: Mapping[tuple[str, int], FloatArray],
) -> dict[str, pl.DataFrame]:
    """Compare one layer's patterns, real and control, with the brain's.

    ``brain`` is a reason where no other recording offers patterns for these units. ``readout_scores`` holds level 1's
    held-out Pearson score of every unit by (condition, draw), nuisance included; populations have readouts of their
    own.
    """
    config, units = layer.config, layer.prepared.grid.units
    order, n_units = units.order_hash(), len(units.ids)
    populations = Populations.of(config.relational, layer.prepared)
    lacking = np.zeros(n_units, dtype=bool) if populations is None else populations.lacking
    reason = Reason.OK
    if isinstance(brain, Reason):
        reason, nan = brain, np.full((n_units, n_units), np.nan)
        names = config.relational.alignments
        brain = BrainPatterns((), dict.fromkeys(names, nan), dict.fromkeys(names, nan[0]))
    if n_units - lacking.sum() < config.relational.min_units:
        reason = Reason.TOO_FEW_UNITS
    about = {
        "brain_patterns_from": config.relational.brain_patterns_from,
        "model_unit_order_hash": order,
        "brain_unit_order_hash": brain.order_hash,
        "confirmatory": layer.confirmatory,
    }
    kinds, patterns = _model_patterns(layer, readout_scores, populations)
    shuffles = draw_shuffles(layer)
    tables: dict[Table, list[pl.DataFrame]] = {}
    nulls: list[dict[str, object]] = []
    for alignment, own in patterns.items():
        columns = {
            **layer.key,
            "alignment": alignment,
            "condition": [c for c, _ in own],
            "draw": [d for _, d in own],
            "unit_order_hash": order,
            "pattern": np.stack(list(own.values())),
        }
        _add(tables, levels.MODEL_PATTERNS, columns)
        for name in config.relational.profiles:
            profile = PROFILES.build(name)
            key = {**layer.key, "alignment": alignment, "profile": name}
            matrix = brain.matrices[alignment]
            for row in relational_nulls(own, kinds, profile, matrix, shuffles):
                why = row["reason"] if reason is Reason.OK else reason
                nulls.append({**key, **row, "reason": why})
            scores, contrast = _compare(list(units.ids), profile, own, kinds, matrix, config)
            _add(tables, levels.PROFILE_SCORES, key | scores)
            reasons = _reasons(np.asarray(contrast["delta_rel"]), lacking, reason)
            reliability = {"split_half_reliability": brain.reliability[alignment]}
            row = {**key, **contrast, **reliability, **about, "reason": reasons}
            _add(tables, levels.PROFILE_DELTAS, row)
    made = {table.name: pl.concat(parts) for table, parts in tables.items()}
    return made | {
        levels.RELATIONAL_NULLS.name: frame(levels.RELATIONAL_NULLS, nulls),
        levels.RELATIONAL_SUMMARY.name: _summary(layer.key, made[levels.PROFILE_DELTAS.name]),
    }


def _add(tables: dict[Table, list[pl.DataFrame]], table: Table, columns: Mapping[str, object]) -> None:
    tables.setdefault(table, []).append(frame_from_columns(table.measured(), columns))


def _reasons(values: FloatArray, lacking: BoolArray, reason: Reason = Reason.OK) -> list[Reason]:
    """Reason of every row: ``reason`` for all, that a region is ``lacking`` units, or that its number is undefined."""
    if reason is not Reason.OK:
        return [reason] * len(values)
    reasons = np.where(np.isfinite(values), Reason.OK, Reason.UNDEFINED_SCORE)
    return [Reason(own) for own in np.where(lacking, Reason.TOO_FEW_UNITS, reasons)]


def _model_patterns(
    layer: LayerInputs,
    readout_scores: Mapping[tuple[str, int], FloatArray],
    populations: Populations | None,
) -> tuple[Kinds, dict[str, Patterns]]:
    """Conditions (counted or not, surrogate or not), and their patterns by measure and (condition, draw)."""
    prepared = layer.prepared
    measures = build_measures(layer.config, prepared)
    align: dict[str, Callable[[FloatArray], FloatArray]] = {
        name: partial(own.to_units, Y=prepared.reference) for name, own in measures.items()
    }
    if populations is not None:
        units = prepared.of_units
        align = {name: populations.to_regions(own, units.reference) for name, own in measures.items()}
        if any(measure.from_readout for measure in measures.values()):
            readouts = fit_layer(replace(layer, prepared=units), fit_nuisance(layer.config, units))
            readout_scores = {key: populations.means(r) for key, r in readouts.pearson.items()}
    patterns: dict[str, dict[tuple[str, int], FloatArray]] = {name: {} for name in measures}
    kinds: dict[str, tuple[bool, bool]] = {}
    nuisance = Condition(NUISANCE, 0, False, False, prepared.nuisance)
    for condition in (*conditions(layer), nuisance):
        key = (condition.name, condition.draw)
        kinds[condition.name] = (condition.counted, condition.surrogate)
        for name, measure in measures.items():
            if not condition.n_features:
                pattern = np.full(len(prepared.grid.units.ids), np.nan)
            elif measure.from_readout:
                pattern = readout_scores[key]
            else:
                pattern = align[name](condition.features)
            patterns[name][key] = pattern
    return kinds, dict(patterns)


def _compare(
    units: list[str],
    profile: ProfileSimilarity,
    patterns: Patterns,
    kinds: Kinds,
    brain: FloatArray,
    config: LPactConfig,
) -> tuple[dict[str, object], dict[str, object]]:
    """Similarity of every unit's pattern with every condition's (mean over draws), and the contrast, as columns."""
    names = list(kinds)
    similarities = profile.compare(brain, np.stack(list(patterns.values())))
    owner = np.array([names.index(c) for c, _ in patterns])
    draws = [similarities[owner == i] for i in range(len(names))]
    by_condition = np.stack([mean_of_finite(own) for own in draws])
    counted = [kinds[n][0] for n in names]
    scores: dict[str, object] = {
        "unit": units * len(names),
        "condition": np.repeat(names, len(units)),
        "counted": np.repeat(counted, len(units)),
        "similarity": by_condition.ravel(),
        "n_draws": np.concatenate([np.isfinite(own).sum(axis=0) for own in draws]),
    }
    rivals = [i for i, n in enumerate(names) if n != REAL and counted[i]]
    index, best = best_control(by_condition[rivals], config.controls.best_control_rule)
    real = by_condition[names.index(REAL)]
    contrast: dict[str, object] = {
        "unit": units,
        "real_similarity": real,
        "best_control": [names[rivals[i]] if i >= 0 else None for i in index],
        "best_control_similarity": best,
        "delta_rel": real - best,
    }
    return scores, contrast


def _summary(key: Mapping[str, object], deltas: pl.DataFrame) -> pl.DataFrame:
    """Over units, per measure and profile similarity."""
    rows = deltas.group_by("alignment", "profile", maintain_order=True).agg(
        n_units=pl.len(),
        mean_real_similarity=pl.col("real_similarity").mean(),
        mean_delta_rel=pl.col("delta_rel").mean(),
        reason=pl.col("reason").sort_by(pl.col("reason") != Reason.OK.value).first(),
    )
    return frame(levels.RELATIONAL_SUMMARY.measured(), [{**key, **row} for row in rows.to_dicts()])


SURROGATE = "surrogate"
UNIT_ORDER = "unit_order"
SWAP = "swap"

Patterns = Mapping[tuple[str, int], FloatArray]
"""Patterns [N] by (condition, draw)."""
Kinds = Mapping[str, tuple[bool, bool]]
"""Conditions: whether each is counted, and whether it is a surrogate."""


def draw_shuffles(layer: LayerInputs) -> tuple[IntArray, BoolArray]:
    """Unit orders [D, N] and exchanges [D, N] of one layer, the same for recordings with the same comparable units.

    A pattern that fits by chance fits all subjects; separate draws would average that out of the null.
    """
    prepared, units = layer.prepared, layer.prepared.grid.units
    n_draws, n_units = layer.config.relational.permutations, len(units.ids)
    place = (prepared.dataset, units.order_hash()) if units.comparable else prepared.key.values()
    rng = keyed_rng(layer.config.seed, "unit order", *place, layer.model.model, layer.layer)
    orders = np.stack([rng.permutation(n_units) for _ in range(n_draws)])
    return orders, rng.integers(0, 2, (n_draws, n_units)).astype(bool)


def relational_nulls(
    patterns: Patterns,
    kinds: Kinds,
    profile: ProfileSimilarity,
    brain: FloatArray,
    shuffles: tuple[IntArray, BoolArray],
) -> list[dict[str, object]]:
    """Observed statistic and draws of every null, for one measure and profile similarity; ``brain`` is [N, N]."""
    surrogates = [name for name, (_, surrogate) in kinds.items() if surrogate]
    rivals = [name for name in kinds if name != REAL and name not in surrogates]
    own = patterns[REAL, 0]
    drawn = {
        name: np.stack([p for (condition, _), p in patterns.items() if condition == name])
        for name in (*surrogates, *rivals)
    }
    orders, exchanges = shuffles
    exchanged = {name: _exchange(own, drawn[name], exchanges) for name in rivals}
    # One call for all patterns: what is computed from the brain alone is computed once.
    stacks = [own[None], own[orders], *drawn.values()]
    stacks += [side for both in exchanged.values() for side in both]
    ends = np.cumsum([len(stack) for stack in stacks])
    similarities = iter(np.split(mean_of_finite(profile.compare(brain, np.vstack(stacks)), 1), ends[:-1]))
    similar, shuffled = float(next(similarities)[0]), next(similarities)
    of_drawn = {name: next(similarities) for name in drawn}
    own_spread = _spread(own[None])
    rows = []
    for name in surrogates:
        spread = np.concatenate([own_spread, _spread(drawn[name])])
        values = np.concatenate([[similar], of_drawn[name]]) * spread / _scale(spread)
        rows.append(_row(SURROGATE, name, values[0], values[1:], similar - _mean(of_drawn[name])))
    rows.append(_row(UNIT_ORDER, UNIT_ORDER, similar, shuffled, similar - _mean(shuffled)))
    for name in rivals:
        spread = _spread(drawn[name])
        scale = _scale(np.concatenate([own_spread, spread]))
        first, second = (next(similarities) * _spread(side) / scale for side in exchanged[name])
        ahead = float(similar * own_spread[0] / scale) - _mean(of_drawn[name] * spread / scale)
        rows.append(_row(SWAP, name, ahead, first - second, similar - _mean(of_drawn[name])))
    return rows


def _exchange(own: FloatArray, others: FloatArray, exchanges: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Both patterns [D, N] after every exchange, d with draw d of the rival, counted around; their means stay."""
    other = others[np.arange(len(exchanges)) % len(others)]
    own_mean, other_mean = (mean_of_finite(p, 1, keepdims=True) for p in (own[None], other))
    mine, theirs = own - own_mean, other - other_mean
    first = own_mean + np.where(exchanges, theirs, mine)
    return first, other_mean + np.where(exchanges, mine, theirs)


def _spread(patterns: FloatArray) -> FloatArray:
    """Standard deviation over the units with a number, [D, N] → [D]."""
    finite = np.isfinite(patterns)
    centred = np.where(finite, patterns - mean_of_finite(patterns, 1, keepdims=True), 0.0)
    spread: FloatArray = np.sqrt((centred**2).sum(axis=1) / np.maximum(finite.sum(axis=1), 1))
    return spread


def _scale(spreads: FloatArray) -> float:
    """Root mean square of spreads; 1 where nothing varies."""
    scale = float(np.sqrt(np.mean(spreads**2)))
    return scale if scale > 0.0 else 1.0


def _mean(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")


def _row(test: str, against: str, observed: float, draws: FloatArray, advantage: float) -> dict[str, object]:
    return {
        "test": test,
        "against": against,
        "observed": float(observed) if np.isfinite(observed) else None,
        "draws": nullable(draws),
        "advantage": advantage if np.isfinite(advantage) else None,
        "reason": Reason.OK if np.isfinite([observed, advantage]).all() else Reason.UNDEFINED_SCORE,
    }
