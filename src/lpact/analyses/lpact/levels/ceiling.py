"""Level 4: how well do brains agree with brains, and how close does the model come?

For paired brain patterns p_a, p_b of one unit, reliability is ρ(p_a, p_b), with the same profile similarity ρ as at
level 2; of responses to the same stimulus it is their correlation over events. A recording's reliability is the median
over shared units, averaged over its partners.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.pairing import (
    MISSING_PARTNER,
    MODES,
    SPLIT_HALF,
    comparable,
    paired,
)
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES, ProfileSimilarity
from lpact.analyses.lpact.tables.ceilings import (
    BRAIN_CEILING,
    NORMALIZED_PREDICTIVE,
    NORMALIZED_SCORES,
)
from lpact.ceilings import correlation_with_mean, spearman_brown, standardised
from lpact.codes import Reason
from lpact.datasets.base import RecordingId
from lpact.math.scores import pearson_columns
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.store import empty, frame
from lpact.tables import CONTEXT_KEY, RECORDING_KEY

RESPONSE = "response"
RESPONSE_TO_MEAN = "response_to_mean"
PROFILE = "profile"
MIN_SHARED_EVENTS = 10
"""Events that two recordings must share for a correlation over events."""


@dataclass(frozen=True)
class BrainOnGrid:
    """What reliability needs of one recording.

    ``responses`` is [n_events, n_units] at the reference lag; ``patterns`` and both ``halves`` hold [N, N] by measure.
    Events are identified by their first word and their time on the stimulus' clock.
    """

    id: RecordingId
    unit_ids: tuple[str, ...]
    onset_s: FloatArray
    first_word: IntArray
    comparable: bool
    responses: FloatArray
    patterns: Mapping[str, FloatArray]
    halves: tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]]

    @cached_property
    def unit_index(self) -> dict[str, int]:
        """Place of every unit."""
        return {unit: i for i, unit in enumerate(self.unit_ids)}

    @cached_property
    def event_index(self) -> dict[tuple[int, float], int]:
        """Place of every event."""
        keys = zip(self.first_word.tolist(), self.onset_s.tolist(), strict=True)
        return {key: i for i, key in enumerate(keys)}


def run(*, config: LPactConfig, dataset: str, brains: Sequence[BrainOnGrid]) -> pl.DataFrame:
    """Reliability of every recording of one dataset, in every mode, measure and profile similarity."""
    profiles = {name: PROFILES.build(name) for name in config.relational.profiles}
    rows = []
    for own in brains:
        key = dict(
            zip(RECORDING_KEY, (dataset, own.id.subject, own.id.session, own.id.run), strict=True)
        )
        own_rows = []
        for mode in MODES:
            others: list[BrainOnGrid] = []
            reason = Reason.OK
            if mode != SPLIT_HALF:
                partners = [other for other in brains if paired(mode, own.id, other.id)]
                others = [other for other in partners if comparable(own, other)]
                if not partners:
                    reason = MISSING_PARTNER[mode]
                elif not others:
                    reason = Reason.UNITS_NOT_COMPARABLE
            for alignment in config.relational.alignments:
                for name, profile in profiles.items():
                    result = _profile_reliability(
                        mode, own, others, reason, alignment, profile, config.relational.min_units
                    )
                    own_rows.append(
                        {
                            **key,
                            "mode": mode,
                            "kind": PROFILE,
                            "alignment": alignment,
                            "profile": name,
                            **result,
                        }
                    )
            for kind, reliability in _RESPONSE_KINDS.items():
                own_rows.append(
                    {
                        **key,
                        "mode": mode,
                        "kind": kind,
                        "alignment": RESPONSE,
                        "profile": "pearson",
                        **_response_reliability(mode, own, others, reason, reliability),
                    }
                )
        rows += [{**row, "alone": _alone(row, own_rows)} for row in own_rows]
    return frame(BRAIN_CEILING, rows) if rows else empty(BRAIN_CEILING)


def _alone(row: Mapping[str, object], rows: Sequence[Mapping[str, object]]) -> bool:
    """Whether split half is the only valid mode of this kind, measure and similarity."""
    if row["mode"] != SPLIT_HALF or not row["valid"]:
        return False
    same = ("kind", "alignment", "profile")
    peers = [r for r in rows if all(r[c] == row[c] for c in same) and r["mode"] != SPLIT_HALF]
    return not any(r["valid"] for r in peers)


def _invalid(reason: Reason, n_partners: int = 0, n_shared: int = 0) -> dict[str, object]:
    return {
        "valid": False,
        "reason": reason,
        "reliability": None,
        "reliability_spearman_brown": None,
        "n_partners": n_partners,
        "n_units_shared": n_shared,
    }


def _valid(values: Sequence[float], n_shared: int) -> dict[str, object]:
    reliability = float(np.mean(values))
    if not np.isfinite(reliability):
        return _invalid(Reason.UNDEFINED_SCORE, len(values), n_shared)
    corrected = float(spearman_brown(reliability))
    return {
        "valid": True,
        "reason": Reason.OK,
        "reliability": reliability,
        "reliability_spearman_brown": corrected if np.isfinite(corrected) else None,
        "n_partners": len(values),
        "n_units_shared": n_shared,
    }


def _median(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else float("nan")


def _over_partners(
    own: BrainOnGrid,
    others: Sequence[BrainOnGrid],
    min_shared: int,
    reliability: Callable[[BrainOnGrid, list[int], list[int]], FloatArray],
) -> dict[str, object]:
    """Average a reliability over all partners that share enough units."""
    values, n_shared = [], []
    for other in others:
        shared = [unit for unit in own.unit_ids if unit in other.unit_index]
        if len(shared) < min_shared:
            continue
        own_rows = [own.unit_index[u] for u in shared]
        other_rows = [other.unit_index[u] for u in shared]
        values.append(_median(reliability(other, own_rows, other_rows)))
        n_shared.append(len(shared))
    if not values:
        return _invalid(Reason.TOO_FEW_SHARED_UNITS)
    return _valid(values, min(n_shared))


def _profile_reliability(
    mode: str,
    own: BrainOnGrid,
    others: Sequence[BrainOnGrid],
    reason: Reason,
    alignment: str,
    profile: ProfileSimilarity,
    min_units: int,
) -> dict[str, object]:
    if len(own.unit_ids) < min_units:
        return _invalid(Reason.TOO_FEW_UNITS)
    if mode == SPLIT_HALF:
        first, second = (half[alignment] for half in own.halves)
        return _valid([_median(profile.compare_pairs(first, second))], len(own.unit_ids))
    if reason is not Reason.OK:
        return _invalid(reason)

    def reliability(other: BrainOnGrid, rows: list[int], other_rows: list[int]) -> FloatArray:
        a = own.patterns[alignment][np.ix_(rows, rows)]
        b = other.patterns[alignment][np.ix_(other_rows, other_rows)]
        return profile.compare_pairs(a, b)

    return _over_partners(own, others, min_units, reliability)


ResponseReliability = Callable[[BrainOnGrid, Sequence[BrainOnGrid]], dict[str, object]]


def _response_reliability(
    mode: str,
    own: BrainOnGrid,
    others: Sequence[BrainOnGrid],
    reason: Reason,
    reliability: ResponseReliability,
) -> dict[str, object]:
    if mode == SPLIT_HALF:
        return _invalid(Reason.NO_REPEATED_MEASURE)
    if reason is not Reason.OK:
        return _invalid(reason)
    same = [other for other in others if other.id.stimulus == own.id.stimulus]
    if not same:
        return _invalid(Reason.DIFFERENT_STIMULUS)
    aligned = [other for other in same if len(_shared_events(own, other)[0]) >= MIN_SHARED_EVENTS]
    if not aligned:
        return _invalid(Reason.DIFFERENT_EVENTS)
    return reliability(own, aligned)


def _shared_events(own: BrainOnGrid, other: BrainOnGrid) -> tuple[IntArray, IntArray]:
    """Rows of the events that both recordings hold."""
    shared = [key for key in own.event_index if key in other.event_index]
    own_rows = np.array([own.event_index[key] for key in shared], dtype=np.int64)
    other_rows = np.array([other.event_index[key] for key in shared], dtype=np.int64)
    return own_rows, other_rows


def _to_partners(own: BrainOnGrid, others: Sequence[BrainOnGrid]) -> dict[str, object]:
    """Correlation with the responses of every partner, one at a time."""

    def reliability(other: BrainOnGrid, units: list[int], other_units: list[int]) -> FloatArray:
        rows, other_rows = _shared_events(own, other)
        return pearson_columns(
            own.responses[rows][:, units], other.responses[other_rows][:, other_units]
        )

    return _over_partners(own, others, 1, reliability)


def _to_mean(own: BrainOnGrid, others: Sequence[BrainOnGrid]) -> dict[str, object]:
    """Correlation with the mean of the partners' standardised responses, which averages out their noise.

    An event counts where at least two partners hold it, and a unit where at least two partners have it.
    """
    if len(others) < 2:
        return _invalid(Reason.SINGLE_PARTNER, len(others))
    values, n_events = correlation_with_mean(
        own.responses,
        (_on_own_grid(own, other) for other in others),
        min_others=2,
        min_stimuli=MIN_SHARED_EVENTS,
    )
    shared = n_events >= MIN_SHARED_EVENTS
    if not shared.any():
        return _invalid(Reason.TOO_FEW_SHARED_UNITS, len(others))
    result = _valid([_median(values)], int(shared.sum()))
    return result | {"n_partners": len(others), "reliability_spearman_brown": None}


def _on_own_grid(own: BrainOnGrid, other: BrainOnGrid) -> tuple[FloatArray, BoolArray]:
    """A partner's standardised responses at one's own events and units, and where it has any."""
    rows, other_rows = _shared_events(own, other)
    units = [u for u in own.unit_ids if u in other.unit_index]
    place = np.ix_(rows, np.array([own.unit_index[u] for u in units], dtype=np.int64))
    values, present = np.zeros(own.responses.shape), np.zeros(own.responses.shape, dtype=bool)
    z = standardised(other.responses[:, [other.unit_index[u] for u in units]])
    values[place], present[place] = z[other_rows], True
    return values, present


_RESPONSE_KINDS: Mapping[str, ResponseReliability] = {
    RESPONSE: _to_partners,
    RESPONSE_TO_MEAN: _to_mean,
}


def normalize_relational(ceilings: pl.DataFrame, deltas: pl.DataFrame) -> pl.DataFrame:
    """Divide level 2's similarities and contrasts by the strictest valid reliability of the recording."""
    order = {mode: i for i, mode in enumerate(MODES)}
    strictest = (
        ceilings.filter(pl.col("valid") & (pl.col("kind") == PROFILE))
        .with_columns(order=pl.col("mode").replace_strict(order, return_dtype=pl.Int64))
        .sort("order")
        .group_by(*RECORDING_KEY, "alignment", "profile", maintain_order=True)
        .first()
        .select(
            *RECORDING_KEY, "alignment", "profile", "mode", "reliability", split_half_alone="alone"
        )
    )
    joined = deltas.join(strictest, on=[*RECORDING_KEY, "alignment", "profile"], how="left")
    positive = pl.col("reliability") > 0
    reason = (
        pl.when(pl.col("reason") != Reason.OK.value)
        .then(pl.col("reason"))
        .when(pl.col("reliability").is_null())
        .then(pl.lit(Reason.NO_VALID_CEILING.value))
        .when(~positive)
        .then(pl.lit(Reason.NONPOSITIVE_RELIABILITY.value))
        .otherwise(pl.lit(Reason.OK.value))
    )
    normalized = joined.with_columns(
        split_half_alone=pl.col("split_half_alone").fill_null(False),
        fraction_of_ceiling=pl.when(positive).then(
            pl.col("real_similarity") / pl.col("reliability")
        ),
        delta_fraction=pl.when(positive).then(pl.col("delta_rel") / pl.col("reliability")),
        reason=reason,
    )
    return normalized.select(NORMALIZED_SCORES.measured().column_names)


def normalize_predictive(ceilings: pl.DataFrame, predictive: pl.DataFrame) -> pl.DataFrame:
    """Divide level 1's held-out Pearson scores by the response reliability of every mode."""
    response = ceilings.filter(pl.col("kind") == RESPONSE).select(
        *RECORDING_KEY, "mode", "reliability", ceiling_reason="reason"
    )
    pearson = predictive.filter(pl.col("metric") == "pearson").select(
        *CONTEXT_KEY, "real_score", "delta_control", "reason"
    )
    joined = pearson.join(response, on=list(RECORDING_KEY), how="inner")
    positive = pl.col("reliability") > 0
    reason = (
        pl.when(pl.col("reason") != Reason.OK.value)
        .then(pl.col("reason"))
        .when(pl.col("ceiling_reason") != Reason.OK.value)
        .then(pl.col("ceiling_reason"))
        .when(~positive)
        .then(pl.lit(Reason.NONPOSITIVE_RELIABILITY.value))
        .otherwise(pl.lit(Reason.OK.value))
    )
    return joined.with_columns(
        fraction_of_ceiling=pl.when(positive).then(pl.col("real_score") / pl.col("reliability")),
        delta_fraction=pl.when(positive).then(pl.col("delta_control") / pl.col("reliability")),
        reason=reason,
    ).select(NORMALIZED_PREDICTIVE.column_names)
