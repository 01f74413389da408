"""Nulls of the relational statistic: the model's pattern is unrelated to the units.

The similarity of a context, measure and profile similarity ρ is the mean over units of ρ(b_i, q without i). It
ignores size: uninformative features have patterns too, tiny ones, and some of them resemble the brain's. The statistic
is therefore the similarity times the spread of the pattern,

    s(q) = mean over i of ρ(b_i, q without i) · sd(q) / c,

with a constant c that is a symmetric function of all that is compared. Three nulls:

``surrogate``   s(q) of every draw of a surrogate control: features without information about the stimulus.
``unit_order``  s(q_real) in a random order of the units.
``swap``        against a rival r: s(q_real) − s(q_r), with the shapes of q_real and q_r (their deviations from their
                means) exchanged at random units; a random rival has another draw in every exchange.

Orders and exchanges are the same for all measures and similarities of a recording, and for all recordings of the same
units, so that draws can be compared over them. The plain advantage in similarity is kept beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.conditions import REAL
from lpact.analyses.lpact.levels.profiles.similarity import ProfileSimilarity
from lpact.analyses.lpact.tables.levels import RELATIONAL_NULLS
from lpact.codes import Reason
from lpact.inputs.prepare import Prepared
from lpact.math.seeding import keyed_rng
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.store import frame

SURROGATE = "surrogate"
UNIT_ORDER = "unit_order"
SWAP = "swap"

Patterns = Mapping[tuple[str, int], FloatArray]


@dataclass(frozen=True)
class Shuffles:
    """Unit orders [D, N] and exchanges [D, N] of one context."""

    orders: IntArray
    exchanges: BoolArray

    @classmethod
    def draw(
        cls, config: LPactConfig, prepared: Prepared, context: tuple[str, int], n_units: int
    ) -> Shuffles:
        """Draw them for a context.

        Recordings with the same comparable units have the same ones: where a pattern fits the units by chance it fits
        them in everybody; separate draws would average that out of the null, but not out of the observed value.
        """
        n_draws = config.relational.permutations
        units = prepared.grid.units
        place = (
            (prepared.dataset, units.order_hash()) if units.comparable else prepared.key.values()
        )
        rng = keyed_rng(config.seed, "unit order", *place, *context)
        orders = np.stack([rng.permutation(n_units) for _ in range(n_draws)])
        return cls(orders, rng.integers(0, 2, (n_draws, n_units)).astype(bool))


def relational_nulls(
    key: Mapping[str, object],
    patterns: Mapping[str, Patterns],
    profiles: Mapping[str, ProfileSimilarity],
    brains: Mapping[str, FloatArray],
    surrogates: Sequence[str],
    rivals: Sequence[str],
    shuffles: Shuffles,
    reason: Reason,
) -> pl.DataFrame:
    """Observed statistic and draws of every null, for one context; ``reason`` says why nothing may be made of it.

    ``patterns`` holds [N] by measure, then (condition, draw); ``brains`` [N, N] by measure.
    """
    rows: list[dict[str, object]] = []
    for alignment, by_condition in patterns.items():
        brain = brains[alignment]
        for name, profile in profiles.items():
            place = {**key, "alignment": alignment, "profile": name}
            for row in _tests(by_condition, profile, brain, surrogates, rivals, shuffles):
                why = row["reason"] if reason is Reason.OK else reason
                rows.append({**place, **row, "reason": why})
    return frame(RELATIONAL_NULLS, rows)


def _tests(
    patterns: Patterns,
    profile: ProfileSimilarity,
    brain: FloatArray,
    surrogates: Sequence[str],
    rivals: Sequence[str],
    shuffles: Shuffles,
) -> list[dict[str, object]]:
    own = patterns[REAL, 0]
    drawn = {name: _stack(patterns, name) for name in (*surrogates, *rivals)}
    exchanged = {name: _exchange(own, drawn[name], shuffles.exchanges) for name in rivals}
    # One call for all patterns: what is computed from the brain alone is computed once.
    stacks = [own[None], own[shuffles.orders], *drawn.values()]
    stacks += [side for both in exchanged.values() for side in both]
    ends = np.cumsum([len(stack) for stack in stacks])
    similarities = iter(np.split(_similarity(profile, brain, np.vstack(stacks)), ends[:-1]))
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


def _stack(patterns: Patterns, condition: str) -> FloatArray:
    return np.stack([p for (name, _), p in patterns.items() if name == condition])


def _exchange(
    own: FloatArray, others: FloatArray, exchanges: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Both patterns [D, N] after every exchange; exchange d is with draw d of the rival, counted around.

    Deviations from the patterns' own means are exchanged, and the means stay: how strong a pattern is overall is no
    matter of which unit is which.
    """
    other = others[np.arange(len(exchanges)) % len(others)]
    own_mean, other_mean = _row_mean(own[None]), _row_mean(other)
    mine, theirs = own - own_mean, other - other_mean
    first = own_mean + np.where(exchanges, theirs, mine)
    return first, other_mean + np.where(exchanges, mine, theirs)


def _row_mean(patterns: FloatArray) -> FloatArray:
    """Mean over the units with a number, [D, N] → [D, 1]."""
    finite = np.isfinite(patterns)
    total = np.where(finite, patterns, 0.0).sum(axis=1, keepdims=True)
    mean: FloatArray = total / np.maximum(finite.sum(axis=1, keepdims=True), 1)
    return mean


def _spread(patterns: FloatArray) -> FloatArray:
    """Standard deviation over the units with a number, [D, N] → [D]."""
    finite = np.isfinite(patterns)
    count = np.maximum(finite.sum(axis=1), 1)
    centred = np.where(finite, patterns - _row_mean(patterns), 0.0)
    spread: FloatArray = np.sqrt((centred**2).sum(axis=1) / count)
    return spread


def _scale(spreads: FloatArray) -> float:
    """Root mean square of spreads; 1 where nothing varies."""
    scale = float(np.sqrt(np.mean(spreads**2)))
    return scale if scale > 0.0 else 1.0


def _mean(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")


def _similarity(profile: ProfileSimilarity, brain: FloatArray, patterns: FloatArray) -> FloatArray:
    """Mean over units of the similarity of every pattern, [D, N] → [D]; NaN where no unit has one."""
    similarity = profile.compare(brain, patterns)
    finite = np.isfinite(similarity)
    count = finite.sum(axis=1)
    total = np.where(finite, similarity, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _row(
    test: str, against: str, observed: float, draws: FloatArray, advantage: float
) -> dict[str, object]:
    return {
        "test": test,
        "against": against,
        "observed": float(observed) if np.isfinite(observed) else None,
        "draws": [float(d) if np.isfinite(d) else None for d in draws],
        "advantage": advantage if np.isfinite(advantage) else None,
        "reason": Reason.OK if np.isfinite([observed, advantage]).all() else Reason.UNDEFINED_SCORE,
    }
