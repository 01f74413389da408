"""Level 4: how well do brains agree with brains, and how close does the model come?

Reliability is the agreement of a recording with its partners (`lpact.ceilings`): the similarity ρ of level 2 between
patterns of the same unit, or the correlation over events of responses to the same stimulus. It is the median over
shared units, averaged over partners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.pairing import MISSING_PARTNER, MODES, SPLIT_HALF, comparable, paired
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES, ProfileSimilarity
from lpact.analyses.lpact.tables import levels
from lpact.ceilings import Ceiling, agreement, correlation_with_mean, spearman_brown, standardised
from lpact.codes import Reason
from lpact.datasets.base import RecordingId
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.store import empty, frame
from lpact.tables import CONTEXT_KEY, RECORDING_KEY

RESPONSE = "response"
PROFILE = "profile"
MIN_SHARED_EVENTS = 10
"""Events that two recordings must share for a correlation over events."""

Row = dict[str, object]


@dataclass(frozen=True)
class BrainOnGrid:
    """One recording: ``responses`` [n_events, n_units] at the reference lag, ``patterns`` and ``halves`` by measure.

    Events are identified by their first word and their time on the clock of the stimulus.
    """

    id: RecordingId
    unit_ids: tuple[str, ...]
    onset_s: FloatArray
    first_word: IntArray
    comparable: bool
    responses: FloatArray
    patterns: Mapping[str, FloatArray]
    halves: tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]]
    lacks_units: bool = False
    """Whether too few of its regions have the units that a population needs."""

    @cached_property
    def units(self) -> dict[str, int]:
        """Column of every unit."""
        return {unit: i for i, unit in enumerate(self.unit_ids)}

    @cached_property
    def events(self) -> dict[tuple[int, float], int]:
        """Row of every event."""
        keys = zip(self.first_word.tolist(), self.onset_s.tolist(), strict=True)
        return {key: i for i, key in enumerate(keys)}

    def shared_units(self, other: BrainOnGrid) -> tuple[list[int], list[int]]:
        """Columns of the shared units, in this recording and in the other."""
        return _shared(self.units, other.units)

    def shared_events(self, other: BrainOnGrid) -> tuple[list[int], list[int]]:
        """Rows of the shared events, in this recording and in the other."""
        return _shared(self.events, other.events)

    def patterns_of(self, other: BrainOnGrid, alignment: str) -> tuple[FloatArray, BoolArray]:
        """A partner's patterns in the unit order of this recording, and which entries are present."""
        own, theirs = self.shared_units(other)
        values = other.patterns[alignment][np.ix_(theirs, theirs)]
        return _placed(self.patterns[alignment].shape, own, own, values)

    def responses_of(self, other: BrainOnGrid, *, standard: bool = False) -> tuple[FloatArray, BoolArray]:
        """A partner's responses at the events and units of this recording, and which are present."""
        units, their_units = self.shared_units(other)
        rows, their_rows = self.shared_events(other)
        values = other.responses[:, their_units]
        values = standardised(values) if standard else values
        return _placed(self.responses.shape, rows, units, values[their_rows])


def _shared(own: Mapping[Any, int], other: Mapping[Any, int]) -> tuple[list[int], list[int]]:
    shared = [key for key in own if key in other]
    return [own[key] for key in shared], [other[key] for key in shared]


def _placed(
    shape: tuple[int, ...], rows: list[int], columns: list[int], values: FloatArray
) -> tuple[FloatArray, BoolArray]:
    placed, present = np.zeros(shape), np.zeros(shape, dtype=bool)
    place = np.ix_(np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64))
    placed[place], present[place] = values, True
    return placed, present


def measure_ceilings(*, config: LPactConfig, dataset: str, brains: Sequence[BrainOnGrid]) -> pl.DataFrame:
    """Reliability of every recording of one dataset, in every mode, measure and profile similarity."""
    profiles = {name: PROFILES.build(name) for name in config.relational.profiles}
    rows: list[Row] = []
    for own in brains:
        key = own.id.key(dataset)
        own_rows: list[Row] = []
        for mode in MODES:
            partners = _partners(mode, own, brains)
            kinds = {
                (PROFILE, alignment, name): _of_patterns(own, partners, alignment, profile, config.relational.min_units)
                for alignment in config.relational.alignments
                for name, profile in profiles.items()
            }
            kinds[RESPONSE, RESPONSE, "pearson"] = _of_responses(own, partners)
            kinds["response_to_mean", RESPONSE, "pearson"] = _of_mean_response(own, partners)
            for (kind, alignment, profile), found in kinds.items():
                summary = {"kind": kind, "alignment": alignment, "profile": profile}
                own_rows.append({**key, "mode": mode, **summary, **found})
        valid = {_summary(row) for row in own_rows if row["mode"] != SPLIT_HALF and row["valid"]}
        for row in own_rows:
            alone = row["mode"] == SPLIT_HALF and row["valid"] and _summary(row) not in valid
            rows.append({**row, "alone": alone})
    return frame(levels.BRAIN_CEILING, rows) if rows else empty(levels.BRAIN_CEILING)


def _summary(row: Row) -> tuple[object, ...]:
    return row["kind"], row["alignment"], row["profile"]


Partners = Sequence[BrainOnGrid] | Reason | None
"""Recordings to compare with, or why there are none; None: the halves of the recording itself."""


def _partners(mode: str, own: BrainOnGrid, brains: Sequence[BrainOnGrid]) -> Partners:
    if mode == SPLIT_HALF:
        return None
    partners = [other for other in brains if paired(mode, own.id, other.id)]
    if not partners:
        return MISSING_PARTNER[mode]
    return [other for other in partners if comparable(own, other)] or Reason.UNITS_NOT_COMPARABLE


def _result(found: Ceiling | Reason, n_partners: int = 0, n_units: int = 0, *, corrected: bool = True) -> Row:
    """Columns of one reliability."""
    typical = found.typical if isinstance(found, Ceiling) else np.nan
    valid, brown = bool(np.isfinite(typical)), float(spearman_brown(typical))
    undefined = found if isinstance(found, Reason) else Reason.UNDEFINED_SCORE
    return {
        "valid": valid,
        "reason": Reason.OK if valid else undefined,
        "reliability": typical if valid else None,
        "reliability_spearman_brown": brown if corrected and np.isfinite(brown) else None,
        "n_partners": n_partners,
        "n_units_shared": n_units,
    }


def _of_patterns(
    own: BrainOnGrid, partners: Partners, alignment: str, profile: ProfileSimilarity, min_units: int
) -> Row:
    """Reliability of the units' patterns."""
    if own.lacks_units or len(own.unit_ids) < min_units:
        return _result(Reason.TOO_FEW_UNITS)
    if isinstance(partners, Reason):
        return _result(partners)
    if partners is None:
        first, second = (half[alignment] for half in own.halves)
        halves = agreement(first, [(second, np.ones(second.shape, bool))], profile.compare_pairs)
        return _result(halves, 1, len(own.unit_ids))
    partners = [other for other in partners if not other.lacks_units]
    used, n_shared = _with_units(own, partners, min_units)
    if not used:
        return _result(Reason.TOO_FEW_SHARED_UNITS)
    others = (own.patterns_of(other, alignment) for other in used)
    found = agreement(own.patterns[alignment], others, profile.compare_pairs)
    return _result(found, len(used), n_shared)


def _with_units(own: BrainOnGrid, partners: Sequence[BrainOnGrid], min_units: int) -> tuple[list[BrainOnGrid], int]:
    """Partners that share enough units, and the fewest that one of them shares."""
    n_shared = [len(own.shared_units(other)[0]) for other in partners]
    used = [other for other, n in zip(partners, n_shared, strict=True) if n >= min_units]
    return used, min((n for n in n_shared if n >= min_units), default=0)


def _of_responses(own: BrainOnGrid, partners: Partners) -> Row:
    """Correlation with the responses of every partner, one at a time."""
    same = _same_events(own, partners)
    if isinstance(same, Reason):
        return _result(same)
    used, n_shared = _with_units(own, same, 1)
    if not used:
        return _result(Reason.TOO_FEW_SHARED_UNITS)
    found = agreement(own.responses, (own.responses_of(other) for other in used))
    return _result(found, len(used), n_shared)


def _of_mean_response(own: BrainOnGrid, partners: Partners) -> Row:
    """Correlation with the mean standardised response of partners, where at least two have the event and unit."""
    same = _same_events(own, partners)
    if isinstance(same, Reason):
        return _result(same)
    n_partners = len(same)
    if n_partners < 2:
        return _result(Reason.SINGLE_PARTNER, n_partners)
    others = (own.responses_of(other, standard=True) for other in same)
    values, n_events = correlation_with_mean(own.responses, others, min_stimuli=MIN_SHARED_EVENTS)
    n_shared = int((n_events >= MIN_SHARED_EVENTS).sum())
    if not n_shared:
        return _result(Reason.TOO_FEW_SHARED_UNITS, n_partners)
    return _result(Ceiling(values[None]), n_partners, n_shared, corrected=False)


def _same_events(own: BrainOnGrid, partners: Partners) -> list[BrainOnGrid] | Reason:
    """Partners with the same stimulus and enough of the same events, or why there are none."""
    if partners is None:
        return Reason.NO_REPEATED_MEASURE
    if isinstance(partners, Reason):
        return partners
    same = [other for other in partners if other.id.stimulus == own.id.stimulus]
    if not same:
        return Reason.DIFFERENT_STIMULUS
    aligned = [o for o in same if len(own.shared_events(o)[0]) >= MIN_SHARED_EVENTS]
    return aligned or Reason.DIFFERENT_EVENTS


def normalize_relational(ceilings: pl.DataFrame, deltas: pl.DataFrame) -> pl.DataFrame:
    """Divide the similarities and contrasts of level 2 by the strictest valid reliability of the recording."""
    order = {mode: i for i, mode in enumerate(MODES)}
    by = [*RECORDING_KEY, "alignment", "profile"]
    strictest = (
        ceilings.filter(pl.col("valid") & (pl.col("kind") == PROFILE))
        .with_columns(order=pl.col("mode").replace_strict(order, return_dtype=pl.Int64))
        .sort("order")
        .group_by(*by, maintain_order=True)
        .first()
        .select(*by, "mode", "reliability", split_half_alone="alone")
    )
    joined = deltas.join(strictest, on=by, how="left").with_columns(
        split_half_alone=pl.col("split_half_alone").fill_null(False),
        ceiling_reason=pl.when(pl.col("reliability").is_null())
        .then(pl.lit(Reason.NO_VALID_CEILING.value))
        .otherwise(pl.lit(Reason.OK.value)),
    )
    normalized = _fractions(joined, "real_similarity", "delta_rel")
    return normalized.select(levels.NORMALIZED_SCORES.measured().column_names)


def normalize_predictive(ceilings: pl.DataFrame, predictive: pl.DataFrame) -> pl.DataFrame:
    """Divide the held-out Pearson scores of level 1 by the response reliability of every mode."""
    response = ceilings.filter(pl.col("kind") == RESPONSE).select(
        *RECORDING_KEY, "mode", "reliability", ceiling_reason="reason"
    )
    pearson = predictive.filter(pl.col("metric") == "pearson").select(
        *CONTEXT_KEY, "real_score", "delta_control", "reason"
    )
    joined = pearson.join(response, on=list(RECORDING_KEY), how="inner")
    normalized = _fractions(joined, "real_score", "delta_control")
    return normalized.select(levels.NORMALIZED_PREDICTIVE.column_names)


def _fractions(joined: pl.DataFrame, score: str, contrast: str) -> pl.DataFrame:
    """Score and contrast as fractions of a positive ``reliability``, or the reason why not."""
    positive, ok = pl.col("reliability") > 0, Reason.OK.value
    reason = (
        pl.when(pl.col("reason") != ok)
        .then(pl.col("reason"))
        .when(pl.col("ceiling_reason") != ok)
        .then(pl.col("ceiling_reason"))
        .when(~positive)
        .then(pl.lit(Reason.NONPOSITIVE_RELIABILITY.value))
        .otherwise(pl.lit(ok))
    )
    return joined.with_columns(
        fraction_of_ceiling=pl.when(positive).then(pl.col(score) / pl.col("reliability")),
        delta_fraction=pl.when(positive).then(pl.col(contrast) / pl.col("reliability")),
        reason=reason,
    )
