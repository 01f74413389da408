"""Level 2: does the model relate to the brain's units as the units relate to one another?

brain pattern of unit i   b_i = [a(u_i, u_j)] for j ≠ i
model pattern             q   = [a(z, u_j)]   for all j
delta_rel(i) = ρ(b_i, q_real without i) − best over controls c of ρ(b_i, q_c without i)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.conditions import REAL, Condition, best_control, conditions
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES, ProfileSimilarity
from lpact.analyses.lpact.levels.readouts import NUISANCE
from lpact.analyses.lpact.levels.relational_nulls import Shuffles, relational_nulls
from lpact.analyses.lpact.tables.levels import (
    BRAIN_PATTERNS,
    BRAIN_UNIT_INDEX,
    HALF_PATTERNS,
    MODEL_PATTERNS,
    PROFILE_DELTAS,
    PROFILE_SCORES,
    RELATIONAL_NULLS,
    RELATIONAL_SUMMARY,
)
from lpact.codes import Reason
from lpact.inputs.prepare import ModelOnGrid, Prepared, compute_settings, ridge_grid
from lpact.math.types import FloatArray, IntArray
from lpact.measures import MEASURES, LinearPredictivity, Measure
from lpact.splits import Split, alternating_halves, contiguous
from lpact.store import frame, frame_from_columns


@dataclass(frozen=True)
class BrainPatterns:
    """Brain patterns that a context is compared with.

    ``matrices`` holds [N, N] for every measure, in the context's own unit order; NaN where the partner recordings have
    no such pair. ``reliability`` holds the split-half reliability of each unit's pattern. ``unit_order_hash`` is that
    of the order the matrices are in.
    """

    matrices: Mapping[str, FloatArray]
    reliability: Mapping[str, FloatArray]
    unit_order_hash: str


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


def build_profiles(config: LPactConfig) -> dict[str, ProfileSimilarity]:
    """Instances of the study's profile similarities, by name."""
    return {
        name: PROFILES.build(name, where="relational.profiles")
        for name in config.relational.profiles
    }


@dataclass(frozen=True)
class LaggedResponses:
    """What measures look at in a recording: responses [n_lags, n_events, n_units], and the outer folds."""

    lagged: FloatArray
    reference_lag: int
    split: Split

    @classmethod
    def of(cls, prepared: Prepared) -> LaggedResponses:
        """The responses of a recording, with the folds of its readouts."""
        grid = prepared.grid
        return cls(grid.responses, grid.reference_lag, Split.of_blocks(prepared.folds))

    @property
    def reference(self) -> FloatArray:
        """LaggedResponses at the reference lag, [n_events, n_units]."""
        reference: FloatArray = self.lagged[self.reference_lag]
        return reference

    def take(self, rows: IntArray) -> LaggedResponses:
        """The same units over some of the events, with as many contiguous folds."""
        split = contiguous(len(rows), len(self.split), gap=self.split.gap)
        return LaggedResponses(self.lagged[:, rows], self.reference_lag, split)

    def patterns(self, measure: Measure) -> FloatArray:
        """Patterns of all units, [N, N]; a unit has no entry for itself."""
        matrix = measure.pairwise(self.reference, self.split, self.lagged).copy()
        np.fill_diagonal(matrix, np.nan)
        return matrix


def run_brain(*, config: LPactConfig, prepared: Prepared) -> dict[str, pl.DataFrame]:
    """Patterns of one recording's units among themselves, whole and in split halves."""
    units = prepared.grid.units
    order = units.order_hash()
    coordinates = units.coordinates_mm
    if coordinates is None:
        coordinates = np.full((len(units.ids), 3), np.nan)
    index = {
        **prepared.key,
        "unit": list(units.ids),
        "unit_index": np.arange(len(units.ids)),
        "region": list(units.regions),
        **{name: coordinates[:, i] for i, name in enumerate(("x_mm", "y_mm", "z_mm"))},
        "coordinate_frame": units.coordinate_frame,
        "unit_order_hash": order,
    }
    responses = LaggedResponses.of(prepared)
    halves = [
        responses.take(rows)
        for rows in alternating_halves(prepared.n_events, config.relational.half_blocks)
    ]
    correlation = PROFILES.build("pearson")
    patterns, half_patterns = [], []
    for name, measure in build_measures(config, prepared).items():
        whole = responses.patterns(measure)
        parts = [half.patterns(measure) for half in halves]
        reliability = correlation.compare_pairs(parts[0], parts[1])
        common = {**prepared.key, "alignment": name, "unit": list(units.ids)}
        patterns.append(
            frame_from_columns(
                BRAIN_PATTERNS,
                {
                    **common,
                    "unit_index": np.arange(len(units.ids)),
                    "unit_order_hash": order,
                    "pattern": whole,
                    "split_half_reliability": reliability,
                    "reason": [
                        Reason.OK if r else Reason.UNDEFINED_SCORE for r in np.isfinite(reliability)
                    ],
                },
            )
        )
        half_patterns += [
            frame_from_columns(
                HALF_PATTERNS, {**common, "half": half, "unit_order_hash": order, "pattern": part}
            )
            for half, part in enumerate(parts)
        ]
    return {
        BRAIN_UNIT_INDEX.name: frame_from_columns(BRAIN_UNIT_INDEX, index),
        BRAIN_PATTERNS.name: pl.concat(patterns),
        HALF_PATTERNS.name: pl.concat(half_patterns),
    }


def run(
    *,
    config: LPactConfig,
    prepared: Prepared,
    model: ModelOnGrid,
    layer: int,
    confirmatory: bool,
    brain_patterns: BrainPatterns | Reason,
    readout_scores: Mapping[tuple[str, int], FloatArray],
) -> dict[str, pl.DataFrame]:
    """Compare one context's patterns, real and control, with the brain's.

    ``readout_scores`` holds level 1's held-out Pearson score of every unit by (condition, draw), nuisance included.
    ``brain_patterns`` is a reason where no other recording offers patterns for these units.
    """
    key = {**prepared.key, "model": model.model, "layer": layer}
    order, n_units = prepared.grid.units.order_hash(), len(prepared.grid.units.ids)
    found = _collect(config, prepared, model, layer, readout_scores)
    profiles = build_profiles(config)
    reason = Reason.OK
    if isinstance(brain_patterns, Reason):
        reason, brain_patterns = brain_patterns, _no_patterns(config, n_units)
    if n_units < config.relational.min_units:
        reason = Reason.TOO_FEW_UNITS
    comparisons = [
        _compare(
            {**key, "alignment": alignment, "profile": name},
            profile,
            found,
            brain_patterns,
            prepared,
            config,
        )
        for alignment in found.patterns
        for name, profile in profiles.items()
    ]
    deltas = pl.concat(
        [
            frame_from_columns(
                PROFILE_DELTAS.measured(),
                {
                    **columns,
                    "brain_patterns_from": config.relational.brain_patterns_from,
                    "model_unit_order_hash": order,
                    "brain_unit_order_hash": brain_patterns.unit_order_hash,
                    "confirmatory": confirmatory,
                    "reason": _row_reasons(reason, np.asarray(columns["delta_rel"])),
                },
            )
            for _, columns in comparisons
        ]
    )
    nulls = relational_nulls(
        key,
        found.patterns,
        profiles,
        brain_patterns.matrices,
        found.surrogates,
        found.rivals,
        Shuffles.draw(config, prepared, (model.model, layer), n_units),
        reason,
    )
    return {
        RELATIONAL_NULLS.name: nulls,
        MODEL_PATTERNS.name: pl.concat(
            [_pattern_frame(key, n, patterns, order) for n, patterns in found.patterns.items()]
        ),
        PROFILE_SCORES.name: pl.concat([scores for scores, _ in comparisons]),
        PROFILE_DELTAS.name: deltas,
        RELATIONAL_SUMMARY.name: _summary(key, deltas),
    }


@dataclass(frozen=True)
class _Collected:
    """Model patterns by measure, then (condition, draw), and what the conditions are."""

    patterns: dict[str, dict[tuple[str, int], FloatArray]]
    counted: dict[str, bool]
    surrogates: tuple[str, ...]

    @property
    def rivals(self) -> tuple[str, ...]:
        """Conditions with information about the stimulus, nuisance among them."""
        return tuple(n for n in self.counted if n != REAL and n not in self.surrogates)


def _collect(
    config: LPactConfig,
    prepared: Prepared,
    model: ModelOnGrid,
    layer: int,
    readout_scores: Mapping[tuple[str, int], FloatArray],
) -> _Collected:
    """Patterns of the real features, every control and nuisance."""
    measures = build_measures(config, prepared)
    patterns: dict[str, dict[tuple[str, int], FloatArray]] = {name: {} for name in measures}
    counted: dict[str, bool] = {}
    surrogates: dict[str, None] = {}
    nuisance = Condition(NUISANCE, 0, False, False, prepared.nuisance)
    for condition in (*conditions(config, prepared, model, layer), nuisance):
        key = (condition.name, condition.draw)
        counted[condition.name] = condition.counted
        if condition.surrogate:
            surrogates[condition.name] = None
        for name, measure in measures.items():
            if not condition.n_features:
                pattern = np.full(len(prepared.grid.units.ids), np.nan)
            elif measure.from_readout:
                pattern = readout_scores[key]
            else:
                pattern = measure.to_units(condition.features, prepared.reference)
            patterns[name][key] = pattern
    return _Collected(patterns, counted, tuple(surrogates))


def _no_patterns(config: LPactConfig, n_units: int) -> BrainPatterns:
    nothing = {name: np.full((n_units, n_units), np.nan) for name in config.relational.alignments}
    return BrainPatterns(nothing, {name: np.full(n_units, np.nan) for name in nothing}, "none")


def _row_reasons(reason: Reason, delta: FloatArray) -> list[Reason]:
    if reason is not Reason.OK:
        return [reason] * len(delta)
    return [Reason.OK if d else Reason.UNDEFINED_SCORE for d in np.isfinite(delta)]


def _pattern_frame(
    key: Mapping[str, object],
    alignment: str,
    patterns: Mapping[tuple[str, int], FloatArray],
    order: str,
) -> pl.DataFrame:
    return frame_from_columns(
        MODEL_PATTERNS,
        {
            **key,
            "alignment": alignment,
            "condition": [c for c, _ in patterns],
            "draw": [d for _, d in patterns],
            "unit_order_hash": order,
            "pattern": np.stack(list(patterns.values())),
        },
    )


def _compare(
    key: Mapping[str, object],
    profile: ProfileSimilarity,
    found: _Collected,
    brain: BrainPatterns,
    prepared: Prepared,
    config: LPactConfig,
) -> tuple[pl.DataFrame, dict[str, object]]:
    """Similarity of every unit's pattern with every condition's (mean over draws), and the contrast.

    ``key`` names the context, the alignment measure and the profile similarity.
    """
    units, alignment = list(prepared.grid.units.ids), str(key["alignment"])
    patterns, counted = found.patterns[alignment], found.counted
    names = list(counted)
    similarities = profile.compare(brain.matrices[alignment], np.stack(list(patterns.values())))
    by_condition = np.full((len(names), len(units)), np.nan)
    n_draws = np.zeros((len(names), len(units)), dtype=np.int64)
    owner = np.array([names.index(c) for c, _ in patterns])
    for i in range(len(names)):
        draws = similarities[owner == i]
        finite = np.isfinite(draws)
        n_draws[i] = finite.sum(axis=0)
        total = np.where(finite, draws, 0.0).sum(axis=0)
        by_condition[i] = np.divide(total, n_draws[i], out=by_condition[i], where=n_draws[i] > 0)
    scores = frame_from_columns(
        PROFILE_SCORES,
        {
            **key,
            "unit": units * len(names),
            "condition": np.repeat(names, len(units)),
            "counted": np.repeat([counted[n] for n in names], len(units)),
            "similarity": by_condition.ravel(),
            "n_draws": n_draws.ravel(),
        },
    )
    rivals = [i for i, n in enumerate(names) if n != REAL and counted[n]]
    index, best = best_control(by_condition[rivals], config.controls.best_control_rule)
    real = by_condition[names.index(REAL)]
    contrast: dict[str, object] = {
        **key,
        "unit": units,
        "split_half_reliability": brain.reliability[alignment],
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
    return frame(RELATIONAL_SUMMARY.measured(), [{**key, **row} for row in rows.to_dicts()])
